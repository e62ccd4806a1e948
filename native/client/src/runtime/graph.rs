//! Nodes of graphs. The driver keeps them; here their descriptions are translated: a kernel is named by its stub, a
//! copy says less, and a variable of the program stands for an address.

use super::context::context;
use super::copy::{kind, memory_type, of_driver};
use super::function::with_function;
use super::register;
use super::symbol::{source_place, target_place};
use super::types::{Copy3D, DriverCopy3D, Extent, GraphCopy, GraphKernel, GraphNode, PitchedPtr, Position};
use crate::driver::graph::layout;
use crate::driver::{self, put};
use crate::error::{CudaResult, INVALID_VALUE};
use std::ffi::c_void;

// Kernels

/// Does something with a kernel's description as the driver takes it.
///
/// # Safety
/// Null, or the program's description.
unsafe fn with_kernel(parameters: *const GraphKernel, work: impl Fn(*const c_void) -> CudaResult) -> CudaResult {
    // SAFETY: as the caller's.
    let found = *unsafe { parameters.as_ref() }.ok_or(INVALID_VALUE)?;
    with_function(found.function, |function| {
        // Both versions of the driver's structure begin alike, and the second ends in zeros.
        let translated = layout::KernelV2 {
            first: layout::KernelV1 {
                function,
                grid: [found.grid.x, found.grid.y, found.grid.z],
                block: [found.block.x, found.block.y, found.block.z],
                shared_bytes: found.shared_bytes,
                parameters: found.arguments,
                extra: found.extra,
            },
            kernel: 0,
            context: 0,
        };
        work((&raw const translated).cast())
    })
}

/// A kernel's description as the program gave it: by its stub where it has one.
fn kernel_of_runtime(found: &layout::KernelV1) -> GraphKernel {
    let stub = register::stub(found.function);
    let size = |[x, y, z]: [u32; 3]| super::types::Dim3 { x, y, z };
    GraphKernel {
        function: if stub == 0 { found.function } else { stub },
        grid: size(found.grid),
        block: size(found.block),
        shared_bytes: found.shared_bytes,
        arguments: found.parameters,
        extra: found.extra,
    }
}

pub unsafe fn cudaGraphAddKernelNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *const GraphKernel,
) -> CudaResult {
    // SAFETY: the caller's description, output and list.
    unsafe {
        with_kernel(parameters, |parameters| driver::cuGraphAddKernelNode_v2(node, graph, after, count, parameters))
    }
}

pub unsafe fn cudaGraphKernelNodeGetParams(node: usize, parameters: *mut GraphKernel) -> CudaResult {
    let found = driver::describe_kernel(context()?, node)?;
    // SAFETY: the caller's output.
    unsafe { put(parameters, kernel_of_runtime(&found)) }
}

pub unsafe fn cudaGraphKernelNodeSetParams(node: usize, parameters: *const GraphKernel) -> CudaResult {
    // SAFETY: the caller's description.
    unsafe { with_kernel(parameters, |parameters| driver::cuGraphKernelNodeSetParams_v2(node, parameters)) }
}

pub unsafe fn cudaGraphExecKernelNodeSetParams(
    executable: usize,
    node: usize,
    parameters: *const GraphKernel,
) -> CudaResult {
    // SAFETY: the caller's description.
    unsafe {
        with_kernel(parameters, |parameters| driver::cuGraphExecKernelNodeSetParams_v2(executable, node, parameters))
    }
}

// Copies

/// A copy as the driver takes it. A node copies something.
///
/// # Safety
/// Null, or the program's description.
unsafe fn slices(copy: *const Copy3D) -> CudaResult<DriverCopy3D> {
    // SAFETY: as the caller's.
    of_driver(unsafe { copy.as_ref() }.ok_or(INVALID_VALUE)?)?.ok_or(INVALID_VALUE)
}

/// A copy of bytes that lie one behind the other.
fn linear(target: u64, source: u64, bytes: usize, kind: u32) -> CudaResult<DriverCopy3D> {
    let place = |address| PitchedPtr { address, pitch: bytes, width: bytes, height: 1 };
    let extent = Extent { width: bytes, height: 1, depth: 1 };
    let copy = Copy3D { source: place(source), target: place(target), extent, kind, ..Copy3D::default() };
    of_driver(&copy)?.ok_or(INVALID_VALUE)
}

fn from_symbol(target: u64, symbol: usize, bytes: usize, offset: usize, kind: u32) -> CudaResult<DriverCopy3D> {
    linear(target, source_place(symbol, bytes, offset, kind)?, bytes, kind)
}

fn to_symbol(symbol: usize, source: u64, bytes: usize, offset: usize, kind: u32) -> CudaResult<DriverCopy3D> {
    linear(target_place(symbol, bytes, offset, kind)?, source, bytes, kind)
}

/// A copy's description for the program.
fn copy_of_runtime(found: &layout::Copy3D) -> Copy3D {
    let (host, device) = (memory_type(false), memory_type(true));
    let side = |side: &layout::Side| {
        let address = if side.kind == host { side.host as u64 } else { side.device };
        let position = Position { x: side.x, y: side.y, z: side.z };
        (position, PitchedPtr { address, pitch: side.pitch, width: found.width, height: side.height })
    };
    let ((source_position, source), (target_position, target)) = (side(&found.source), side(&found.target));
    let kind = match (found.source.kind, found.target.kind) {
        (from, to) if from == host && to == host => kind::HOST_TO_HOST,
        (from, to) if from == host && to == device => kind::HOST_TO_DEVICE,
        (from, to) if from == device && to == host => kind::DEVICE_TO_HOST,
        (from, to) if from == device && to == device => kind::DEVICE_TO_DEVICE,
        _ => kind::DEFAULT,
    };
    let extent = Extent { width: found.width, height: found.height, depth: found.depth };
    Copy3D { source_array: 0, source_position, source, target_array: 0, target_position, target, extent, kind }
}

unsafe fn add_copy(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    copy: &DriverCopy3D,
) -> CudaResult {
    // SAFETY: the caller's output and list.
    unsafe { driver::cuGraphAddMemcpyNode(node, graph, after, count, std::ptr::from_ref(copy).cast(), 0) }
}

fn set_copy(node: usize, copy: &DriverCopy3D) -> CudaResult {
    // SAFETY: a live description.
    unsafe { driver::cuGraphMemcpyNodeSetParams(node, std::ptr::from_ref(copy).cast()) }
}

fn set_copy_of(executable: usize, node: usize, copy: &DriverCopy3D) -> CudaResult {
    // SAFETY: a live description.
    unsafe { driver::cuGraphExecMemcpyNodeSetParams(executable, node, std::ptr::from_ref(copy).cast(), 0) }
}

pub unsafe fn cudaGraphAddMemcpyNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    copy: *const Copy3D,
) -> CudaResult {
    // SAFETY: the caller's description, output and list.
    unsafe { add_copy(node, graph, after, count, &slices(copy)?) }
}

pub unsafe fn cudaGraphMemcpyNodeGetParams(node: usize, copy: *mut Copy3D) -> CudaResult {
    context()?;
    let mut found = std::mem::MaybeUninit::<layout::Copy3D>::uninit();
    // SAFETY: a live local, which is written when this succeeds; the caller's output.
    unsafe {
        driver::cuGraphMemcpyNodeGetParams(node, found.as_mut_ptr().cast())?;
        put(copy, copy_of_runtime(found.assume_init_ref()))
    }
}

pub unsafe fn cudaGraphMemcpyNodeSetParams(node: usize, copy: *const Copy3D) -> CudaResult {
    // SAFETY: the caller's description.
    set_copy(node, &unsafe { slices(copy)? })
}

pub unsafe fn cudaGraphExecMemcpyNodeSetParams(executable: usize, node: usize, copy: *const Copy3D) -> CudaResult {
    // SAFETY: the caller's description.
    set_copy_of(executable, node, &unsafe { slices(copy)? })
}

pub unsafe fn cudaGraphAddMemcpyNode1D(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    target: u64,
    source: u64,
    bytes: usize,
    kind: u32,
) -> CudaResult {
    // SAFETY: the caller's output and list.
    unsafe { add_copy(node, graph, after, count, &linear(target, source, bytes, kind)?) }
}

pub unsafe fn cudaGraphMemcpyNodeSetParams1D(
    node: usize,
    target: u64,
    source: u64,
    bytes: usize,
    kind: u32,
) -> CudaResult {
    set_copy(node, &linear(target, source, bytes, kind)?)
}

pub unsafe fn cudaGraphExecMemcpyNodeSetParams1D(
    executable: usize,
    node: usize,
    target: u64,
    source: u64,
    bytes: usize,
    kind: u32,
) -> CudaResult {
    set_copy_of(executable, node, &linear(target, source, bytes, kind)?)
}

pub unsafe fn cudaGraphAddMemcpyNodeFromSymbol(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    target: u64,
    symbol: usize,
    bytes: usize,
    offset: usize,
    kind: u32,
) -> CudaResult {
    // SAFETY: the caller's output and list.
    unsafe { add_copy(node, graph, after, count, &from_symbol(target, symbol, bytes, offset, kind)?) }
}

pub unsafe fn cudaGraphMemcpyNodeSetParamsFromSymbol(
    node: usize,
    target: u64,
    symbol: usize,
    bytes: usize,
    offset: usize,
    kind: u32,
) -> CudaResult {
    set_copy(node, &from_symbol(target, symbol, bytes, offset, kind)?)
}

pub unsafe fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
    executable: usize,
    node: usize,
    target: u64,
    symbol: usize,
    bytes: usize,
    offset: usize,
    kind: u32,
) -> CudaResult {
    set_copy_of(executable, node, &from_symbol(target, symbol, bytes, offset, kind)?)
}

pub unsafe fn cudaGraphAddMemcpyNodeToSymbol(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    symbol: usize,
    source: u64,
    bytes: usize,
    offset: usize,
    kind: u32,
) -> CudaResult {
    // SAFETY: the caller's output and list.
    unsafe { add_copy(node, graph, after, count, &to_symbol(symbol, source, bytes, offset, kind)?) }
}

pub unsafe fn cudaGraphMemcpyNodeSetParamsToSymbol(
    node: usize,
    symbol: usize,
    source: u64,
    bytes: usize,
    offset: usize,
    kind: u32,
) -> CudaResult {
    set_copy(node, &to_symbol(symbol, source, bytes, offset, kind)?)
}

pub unsafe fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
    executable: usize,
    node: usize,
    symbol: usize,
    source: u64,
    bytes: usize,
    offset: usize,
    kind: u32,
) -> CudaResult {
    set_copy_of(executable, node, &to_symbol(symbol, source, bytes, offset, kind)?)
}

// Fills: cudaMemsetParams is CUDA_MEMSET_NODE_PARAMS

pub unsafe fn cudaGraphAddMemsetNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *const c_void,
) -> CudaResult {
    context()?;
    // SAFETY: the caller's description, output and list.
    unsafe { driver::cuGraphAddMemsetNode(node, graph, after, count, parameters, 0) }
}

pub unsafe fn cudaGraphExecMemsetNodeSetParams(
    executable: usize,
    node: usize,
    parameters: *const c_void,
) -> CudaResult {
    context()?;
    // SAFETY: the caller's description.
    unsafe { driver::cuGraphExecMemsetNodeSetParams(executable, node, parameters, 0) }
}

// Every kind by one structure, which is the driver's but for kernels and copies

/// cudaGraphNodeTypeKernel
const KERNEL: u32 = 0;
/// cudaGraphNodeTypeMemcpy
const COPY: u32 = 1;

/// The words of a structure that is shorter than a node's body.
fn body<T: Copy>(value: &T) -> [u64; 29] {
    const { assert!(size_of::<T>() <= size_of::<[u64; 29]>()) };
    let mut words = [0; 29];
    // SAFETY: plain data, and there is room for it.
    unsafe { words.as_mut_ptr().cast::<T>().write_unaligned(*value) };
    words
}

/// Does something with a node's description as the driver takes it; what the driver writes into it reaches the program.
///
/// # Safety
/// Null, or the program's description.
unsafe fn with_node(parameters: *mut GraphNode, work: impl Fn(*mut c_void) -> CudaResult) -> CudaResult {
    context()?;
    // SAFETY: as the caller's.
    let mut node = *unsafe { parameters.as_ref() }.ok_or(INVALID_VALUE)?;
    let inside: *const c_void = node.body.as_ptr().cast();
    match node.kind {
        // SAFETY: the body is read as its kind says; it is larger than either structure.
        KERNEL => unsafe {
            let found = *inside.cast::<GraphKernel>();
            with_kernel(&raw const found, |kernel| {
                let mut node = GraphNode { body: body(&*kernel.cast::<layout::KernelV2>()), ..node };
                work((&raw mut node).cast())
            })
        },
        COPY => {
            // SAFETY: as above.
            let copy = unsafe { slices(&raw const (*inside.cast::<GraphCopy>()).copy)? };
            // The copy lies at the same place in both.
            node.body = [0; 29];
            node.body[2..].copy_from_slice(&body(&copy)[..27]);
            work((&raw mut node).cast())
        }
        _ => work(parameters.cast()),
    }
}

pub unsafe fn cudaGraphAddNode_12(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *mut GraphNode,
) -> CudaResult {
    // SAFETY: the caller's description, output and list.
    unsafe { with_node(parameters, |parameters| driver::cuGraphAddNode(node, graph, after, count, parameters)) }
}

pub unsafe fn cudaGraphAddNode_v2(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    data: *const c_void,
    count: usize,
    parameters: *mut GraphNode,
) -> CudaResult {
    // SAFETY: the caller's description, output and lists.
    unsafe {
        with_node(parameters, |parameters| driver::cuGraphAddNode_v2(node, graph, after, data, count, parameters))
    }
}

pub unsafe fn cudaGraphAddNode_13(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    data: *const c_void,
    count: usize,
    parameters: *mut GraphNode,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cudaGraphAddNode_v2(node, graph, after, data, count, parameters) }
}

pub unsafe fn cudaGraphNodeSetParams(node: usize, parameters: *mut GraphNode) -> CudaResult {
    // SAFETY: the caller's description.
    unsafe { with_node(parameters, |parameters| driver::cuGraphNodeSetParams(node, parameters)) }
}

pub unsafe fn cudaGraphExecNodeSetParams(executable: usize, node: usize, parameters: *mut GraphNode) -> CudaResult {
    // SAFETY: the caller's description.
    unsafe { with_node(parameters, |parameters| driver::cuGraphExecNodeSetParams(executable, node, parameters)) }
}

pub unsafe fn cudaGraphNodeGetParams(node: usize, parameters: *mut GraphNode) -> CudaResult {
    context()?;
    let mut found = GraphNode { kind: 0, reserved: [0; 3], body: [0; 29], end: 0 };
    // SAFETY: a live local, which is read as its kind says.
    unsafe {
        driver::cuGraphNodeGetParams(node, (&raw mut found).cast())?;
        let inside: *const c_void = found.body.as_ptr().cast();
        match found.kind {
            KERNEL => found.body = body(&kernel_of_runtime(&(*inside.cast::<layout::KernelV2>()).first)),
            COPY => {
                let copy = copy_of_runtime(&(*inside.cast::<layout::CopyNode>()).copy);
                found.body = body(&GraphCopy { copy, ..GraphCopy::default() });
            }
            _ => {}
        }
        put(parameters, found)
    }
}
