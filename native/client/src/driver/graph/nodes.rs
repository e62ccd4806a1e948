//! Nodes by kind: adding them, and their parameters.

use super::layout::{Copy3D, DEVICE, Fill, HOST, HostNode, KernelV1, KernelV2, MemoryNode, MemoryWords, Side};
use super::{Edge, EdgeData, FULL, Graph, Kernel, Work};
use crate::device::Device;
use crate::driver::function::info;
use crate::driver::{current, launch, put};
use crate::error::{CudaResult, INVALID_HANDLE, INVALID_VALUE};
use crate::objects::Event;
use crate::process::Process;
use sluice_protocol::graph::MemoryOperation;
use std::ffi::c_void;
use std::sync::Arc;

/// What a question about a node's parameters points to; kept until the parameters change.
#[derive(Clone)]
pub struct Exposed {
    _bytes: Arc<[u8]>,
    pointers: Arc<[usize]>,
    words: Arc<[MemoryWords]>,
}

/// Longer lists are none of a program's: no room is made for them.
const MOST_EDGES: usize = 1 << 24;

/// Reads a list of nodes to depend on.
///
/// # Safety
/// `list` is null or `count` long.
pub(crate) unsafe fn edges(list: *const usize, count: usize) -> CudaResult<Vec<Edge>> {
    // SAFETY: as the caller's.
    unsafe { edges_with(list, std::ptr::null(), count) }
}

/// Reads a list of nodes to depend on, with edge data when there are any.
///
/// # Safety
/// Each list is null or `count` long.
pub(crate) unsafe fn edges_with(list: *const usize, data: *const c_void, count: usize) -> CudaResult<Vec<Edge>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if list.is_null() || count > MOST_EDGES {
        return Err(INVALID_VALUE);
    }
    let data = data.cast::<EdgeData>();
    let edges = (0..count).map(|index| {
        // SAFETY: both lists are `count` long when they are there.
        unsafe {
            let data = if data.is_null() { FULL } else { data.add(index).read_unaligned() };
            (list.add(index).read_unaligned() as u64, data)
        }
    });
    Ok(edges.collect())
}

/// Adds a node and tells its handle.
///
/// # Safety
/// `node` is null or has room.
pub(crate) unsafe fn add(
    process: &Process,
    node: *mut usize,
    graph: usize,
    after: Vec<Edge>,
    work: Work,
) -> CudaResult {
    if node.is_null() {
        return Err(INVALID_VALUE);
    }
    let handle = Graph::find(process, graph)?.add(process, work, after)?;
    // SAFETY: not null, the caller's.
    unsafe { put(node, handle as usize) }
}

/// A node's work.
pub(crate) fn work_of(process: &Process, node: usize) -> CudaResult<Work> {
    let graph = Graph::of_node(process, node)?;
    let state = graph.state();
    state.nodes.get(&(node as u64)).map(|node| node.work.clone()).ok_or(INVALID_VALUE)
}

/// Gives a node other work of the same kind.
pub(crate) fn set(process: &Process, node: usize, work: Work) -> CudaResult {
    let graph = Graph::of_node(process, node)?;
    let mut state = graph.state();
    let found = state.nodes.get_mut(&(node as u64)).ok_or(INVALID_VALUE)?;
    if found.work.kind() != work.kind() {
        return Err(INVALID_VALUE);
    }
    found.work = work;
    found.exposed = None;
    Ok(())
}

fn expose(process: &Process, node: usize, make: impl FnOnce() -> Exposed) -> CudaResult<Exposed> {
    let graph = Graph::of_node(process, node)?;
    let mut state = graph.state();
    let found = state.nodes.get_mut(&(node as u64)).ok_or(INVALID_VALUE)?;
    Ok(found.exposed.get_or_insert_with(make).clone())
}

// Kernels

/// A kernel node's work, checked as a launch.
///
/// # Safety
/// The program's parameters.
pub(crate) unsafe fn kernel(device: Device, parameters: &KernelV1, kernel: usize) -> CudaResult<Kernel> {
    let handle = if parameters.function == 0 { kernel } else { parameters.function };
    let function = device.process.objects.functions.get(handle).map_err(|_| INVALID_HANDLE)?;
    let known = info(device, &function)?;
    let mut buffer = Vec::new();
    // SAFETY: the program's list of parameters.
    unsafe { launch::gather(&known.parameters, parameters.parameters, parameters.extra, &mut buffer)? };
    let made = Kernel {
        function,
        grid: parameters.grid,
        block: parameters.block,
        shared_bytes: parameters.shared_bytes,
        parameters: buffer,
        attributes: Vec::new(),
    };
    if let Some(session) = device.session_now() {
        let resolved = made.function.resolve(&session)?;
        let work = launch::Work { grid: made.grid, block: made.block, shared_bytes: made.shared_bytes, stream: 0 };
        launch::check(device, &session, &made.function, &resolved, &work, &[])?;
    }
    Ok(made)
}

/// A kernel node's parameters, in the first version's layout.
pub(crate) fn describe_kernel(device: Device, node: usize) -> CudaResult<KernelV1> {
    let Work::Kernel(kernel) = work_of(device.process, node)? else { return Err(INVALID_VALUE) };
    let known = info(device, &kernel.function)?;
    let exposed = expose(device.process, node, || {
        let bytes: Arc<[u8]> = kernel.parameters.as_slice().into();
        let start = bytes.as_ptr() as usize;
        let pointers = known.parameters.iter().map(|parameter| start + parameter.offset as usize).collect();
        Exposed { _bytes: bytes, pointers, words: Arc::new([]) }
    })?;
    Ok(KernelV1 {
        function: kernel.function.handle as usize,
        grid: kernel.grid,
        block: kernel.block,
        shared_bytes: kernel.shared_bytes,
        parameters: exposed.pointers.as_ptr().cast(),
        extra: std::ptr::null(),
    })
}

/// New parameters for a kernel node keep its attributes.
pub(crate) fn keep_attributes(old: &Work, mut kernel: Kernel) -> Work {
    if let Work::Kernel(old) = old {
        kernel.attributes.clone_from(&old.attributes);
    }
    Work::Kernel(kernel)
}

pub unsafe fn cuGraphAddKernelNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *const c_void,
) -> CudaResult {
    let device = current()?;
    // SAFETY: the caller's parameters, output and list.
    unsafe {
        let parameters = parameters.cast::<KernelV1>().as_ref().ok_or(INVALID_VALUE)?;
        let work = Work::Kernel(kernel(device, parameters, 0)?);
        add(device.process, node, graph, edges(after, count)?, work)
    }
}

pub unsafe fn cuGraphAddKernelNode_v2(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *const c_void,
) -> CudaResult {
    let device = current()?;
    // SAFETY: the caller's parameters, output and list.
    unsafe {
        let parameters = parameters.cast::<KernelV2>().as_ref().ok_or(INVALID_VALUE)?;
        let work = Work::Kernel(kernel(device, &parameters.first, parameters.kernel)?);
        add(device.process, node, graph, edges(after, count)?, work)
    }
}

pub unsafe fn cuGraphKernelNodeGetParams(node: usize, parameters: *mut c_void) -> CudaResult {
    let found = describe_kernel(current()?, node)?;
    // SAFETY: the caller's output.
    unsafe { put(parameters.cast(), found) }
}

pub unsafe fn cuGraphKernelNodeGetParams_v2(node: usize, parameters: *mut c_void) -> CudaResult {
    let found = KernelV2 { first: describe_kernel(current()?, node)?, kernel: 0, context: 0 };
    // SAFETY: the caller's output.
    unsafe { put(parameters.cast(), found) }
}

pub unsafe fn cuGraphKernelNodeSetParams(node: usize, parameters: *const c_void) -> CudaResult {
    let device = current()?;
    // SAFETY: the caller's parameters.
    let made = unsafe { kernel(device, parameters.cast::<KernelV1>().as_ref().ok_or(INVALID_VALUE)?, 0)? };
    set(device.process, node, keep_attributes(&work_of(device.process, node)?, made))
}

pub unsafe fn cuGraphKernelNodeSetParams_v2(node: usize, parameters: *const c_void) -> CudaResult {
    let device = current()?;
    // SAFETY: the caller's parameters.
    let made = unsafe {
        let parameters = parameters.cast::<KernelV2>().as_ref().ok_or(INVALID_VALUE)?;
        kernel(device, &parameters.first, parameters.kernel)?
    };
    set(device.process, node, keep_attributes(&work_of(device.process, node)?, made))
}

pub unsafe fn cuGraphKernelNodeSetAttribute(node: usize, attribute: u32, value: *const c_void) -> CudaResult {
    let process = current()?.process;
    // SAFETY: null, or the caller's CUkernelNodeAttrValue of 64 bytes.
    let value = unsafe { value.cast::<[u8; 64]>().as_ref() }.ok_or(INVALID_VALUE)?;
    let Work::Kernel(mut kernel) = work_of(process, node)? else { return Err(INVALID_VALUE) };
    launch::set_attribute(process, &mut kernel.attributes, attribute, *value)?;
    set(process, node, Work::Kernel(kernel))
}

pub unsafe fn cuGraphKernelNodeGetAttribute(node: usize, attribute: u32, value: *mut c_void) -> CudaResult {
    let Work::Kernel(kernel) = work_of(current()?.process, node)? else { return Err(INVALID_VALUE) };
    let found = kernel.attributes.iter().find(|found| found.id == attribute).map_or([0; 64], |found| found.value);
    // SAFETY: the caller's output.
    unsafe { put(value.cast(), found) }
}

pub unsafe fn cuGraphKernelNodeCopyAttributes(target: usize, source: usize) -> CudaResult {
    let process = current()?.process;
    let (Work::Kernel(mut to), Work::Kernel(from)) = (work_of(process, target)?, work_of(process, source)?) else {
        return Err(INVALID_VALUE);
    };
    to.attributes = from.attributes;
    set(process, target, Work::Kernel(to))
}

// Copies and fills

/// A copy node's work, checked as far as that needs no device.
///
/// # Safety
/// Null, or the program's CUDA_MEMCPY3D.
pub(crate) unsafe fn copy(parameters: *const c_void) -> CudaResult<Work> {
    // SAFETY: as the caller's.
    let copy = *unsafe { parameters.cast::<Copy3D>().as_ref() }.ok_or(INVALID_VALUE)?;
    for side in [&copy.source, &copy.target] {
        let unset = match side.kind {
            HOST => side.host == 0,
            super::layout::ARRAY => {
                return Err(super::refused("copies of CUDA arrays inside a graph are not supported"));
            }
            DEVICE | super::layout::UNIFIED => side.device == 0,
            _ => true,
        };
        if unset || side.lod != 0 {
            return Err(INVALID_VALUE);
        }
    }
    Ok(Work::Copy(normalised(copy)))
}

/// A pitch or height of 0 means that rows and planes lie end to end.
fn normalised(mut copy: Copy3D) -> Copy3D {
    let (width, height) = (copy.width, copy.height);
    let fill = |side: &mut Side| {
        if side.pitch == 0 {
            side.pitch = width + side.x;
        }
        if side.height == 0 {
            side.height = height + side.y;
        }
    };
    fill(&mut copy.source);
    fill(&mut copy.target);
    copy
}

pub unsafe fn cuGraphAddMemcpyNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *const c_void,
    _context: usize,
) -> CudaResult {
    // SAFETY: the caller's parameters, output and list.
    unsafe { add(current()?.process, node, graph, edges(after, count)?, copy(parameters)?) }
}

pub unsafe fn cuGraphMemcpyNodeGetParams(node: usize, parameters: *mut c_void) -> CudaResult {
    let Work::Copy(found) = work_of(current()?.process, node)? else { return Err(INVALID_VALUE) };
    // SAFETY: the caller's output.
    unsafe { put(parameters.cast(), found) }
}

pub unsafe fn cuGraphMemcpyNodeSetParams(node: usize, parameters: *const c_void) -> CudaResult {
    // SAFETY: the caller's parameters.
    set(current()?.process, node, unsafe { copy(parameters)? })
}

/// A fill node's work.
///
/// # Safety
/// Null, or the program's CUDA_MEMSET_NODE_PARAMS.
pub(crate) unsafe fn fill(parameters: *const c_void) -> CudaResult<Work> {
    // SAFETY: as the caller's.
    let fill = *unsafe { parameters.cast::<Fill>().as_ref() }.ok_or(INVALID_VALUE)?;
    let row = fill.width.checked_mul(fill.element as usize).ok_or(INVALID_VALUE)?;
    if !matches!(fill.element, 1 | 2 | 4) || row == 0 || fill.height == 0 || (fill.height > 1 && fill.pitch < row) {
        return Err(INVALID_VALUE);
    }
    Ok(Work::Fill(fill))
}

pub unsafe fn cuGraphAddMemsetNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *const c_void,
    _context: usize,
) -> CudaResult {
    // SAFETY: the caller's parameters, output and list.
    unsafe { add(current()?.process, node, graph, edges(after, count)?, fill(parameters)?) }
}

pub unsafe fn cuGraphMemsetNodeGetParams(node: usize, parameters: *mut c_void) -> CudaResult {
    let Work::Fill(found) = work_of(current()?.process, node)? else { return Err(INVALID_VALUE) };
    // SAFETY: the caller's output.
    unsafe { put(parameters.cast(), found) }
}

pub unsafe fn cuGraphMemsetNodeSetParams(node: usize, parameters: *const c_void) -> CudaResult {
    // SAFETY: the caller's parameters.
    set(current()?.process, node, unsafe { fill(parameters)? })
}

// Host functions

/// A host node's work.
///
/// # Safety
/// Null, or the program's CUDA_HOST_NODE_PARAMS.
pub(crate) unsafe fn host(parameters: *const c_void) -> CudaResult<Work> {
    // SAFETY: as the caller's.
    let found = unsafe { parameters.cast::<HostNode>().as_ref() }.ok_or(INVALID_VALUE)?;
    Ok(Work::Host { function: found.function.ok_or(INVALID_VALUE)?, data: found.data as usize })
}

pub unsafe fn cuGraphAddHostNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *const c_void,
) -> CudaResult {
    // SAFETY: the caller's parameters, output and list.
    unsafe { add(current()?.process, node, graph, edges(after, count)?, host(parameters)?) }
}

pub unsafe fn cuGraphHostNodeGetParams(node: usize, parameters: *mut c_void) -> CudaResult {
    let Work::Host { function, data } = work_of(current()?.process, node)? else { return Err(INVALID_VALUE) };
    // SAFETY: the caller's output.
    unsafe { put(parameters.cast(), HostNode { function: Some(function), data: data as *mut c_void }) }
}

pub unsafe fn cuGraphHostNodeSetParams(node: usize, parameters: *const c_void) -> CudaResult {
    // SAFETY: the caller's parameters.
    set(current()?.process, node, unsafe { host(parameters)? })
}

// Child graphs, empty nodes

/// A child node's work: a copy of the graph of now.
pub(crate) fn child(process: &Process, graph: usize) -> CudaResult<Work> {
    let graph = Graph::find(process, graph)?;
    if graph.has_memory() {
        return Err(super::refused("memory nodes inside a child graph are not supported"));
    }
    Ok(Work::Child(graph.copy(process)?))
}

pub unsafe fn cuGraphAddChildGraphNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    inner: usize,
) -> CudaResult {
    let process = current()?.process;
    // SAFETY: the caller's output and list.
    unsafe { add(process, node, graph, edges(after, count)?, child(process, inner)?) }
}

pub unsafe fn cuGraphChildGraphNodeGetGraph(node: usize, graph: *mut usize) -> CudaResult {
    let Work::Child(found) = work_of(current()?.process, node)? else { return Err(INVALID_VALUE) };
    // SAFETY: the caller's output.
    unsafe { put(graph, found.handle as usize) }
}

pub unsafe fn cuGraphAddEmptyNode(node: *mut usize, graph: usize, after: *const usize, count: usize) -> CudaResult {
    // SAFETY: the caller's output and list.
    unsafe { add(current()?.process, node, graph, edges(after, count)?, Work::Empty) }
}

// Events

fn event(process: &Process, handle: usize) -> CudaResult<Arc<Event>> {
    process.objects.events.get(handle)
}

pub unsafe fn cuGraphAddEventRecordNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    which: usize,
) -> CudaResult {
    let process = current()?.process;
    // SAFETY: the caller's output and list.
    unsafe { add(process, node, graph, edges(after, count)?, Work::RecordEvent(event(process, which)?)) }
}

pub unsafe fn cuGraphEventRecordNodeGetEvent(node: usize, out: *mut usize) -> CudaResult {
    let Work::RecordEvent(found) = work_of(current()?.process, node)? else { return Err(INVALID_VALUE) };
    // SAFETY: the caller's output.
    unsafe { put(out, found.handle as usize) }
}

pub unsafe fn cuGraphEventRecordNodeSetEvent(node: usize, which: usize) -> CudaResult {
    let process = current()?.process;
    set(process, node, Work::RecordEvent(event(process, which)?))
}

pub unsafe fn cuGraphAddEventWaitNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    which: usize,
) -> CudaResult {
    let process = current()?.process;
    // SAFETY: the caller's output and list.
    unsafe { add(process, node, graph, edges(after, count)?, Work::WaitEvent(event(process, which)?)) }
}

pub unsafe fn cuGraphEventWaitNodeGetEvent(node: usize, out: *mut usize) -> CudaResult {
    let Work::WaitEvent(found) = work_of(current()?.process, node)? else { return Err(INVALID_VALUE) };
    // SAFETY: the caller's output.
    unsafe { put(out, found.handle as usize) }
}

pub unsafe fn cuGraphEventWaitNodeSetEvent(node: usize, which: usize) -> CudaResult {
    let process = current()?.process;
    set(process, node, Work::WaitEvent(event(process, which)?))
}

// Operations on words

/// Reads a list of `cuStreamBatchMemOp`.
///
/// # Safety
/// `list` is null or `count` long.
pub(crate) unsafe fn operations(list: *const MemoryWords, count: u32) -> CudaResult<Vec<MemoryOperation>> {
    if count > 256 || (count > 0 && list.is_null()) {
        return Err(INVALID_VALUE);
    }
    let read = (0..count as usize).map(|index| {
        // SAFETY: as the caller's.
        let words = unsafe { list.add(index).read_unaligned() };
        let flags = if words.kind == 6 { words.second } else { words.flags };
        let value = if matches!(words.kind, 1 | 2) { words.value & u64::from(u32::MAX) } else { words.value };
        MemoryOperation { kind: words.kind, flags, address: words.address, value }
    });
    Ok(read.collect())
}

/// A node's work of operations on words.
///
/// # Safety
/// Null, or the program's CUDA_BATCH_MEM_OP_NODE_PARAMS.
pub(crate) unsafe fn memory(parameters: *const c_void) -> CudaResult<Work> {
    // SAFETY: as the caller's.
    let found = unsafe { parameters.cast::<MemoryNode>().as_ref() }.ok_or(INVALID_VALUE)?;
    // SAFETY: as the caller's.
    Ok(Work::Memory(unsafe { operations(found.operations, found.count)? }))
}

pub unsafe fn cuGraphAddBatchMemOpNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *const c_void,
) -> CudaResult {
    // SAFETY: the caller's parameters, output and list.
    unsafe { add(current()?.process, node, graph, edges(after, count)?, memory(parameters)?) }
}

pub unsafe fn cuGraphBatchMemOpNodeGetParams(node: usize, parameters: *mut c_void) -> CudaResult {
    let process = current()?.process;
    let Work::Memory(found) = work_of(process, node)? else { return Err(INVALID_VALUE) };
    let exposed = expose(process, node, || {
        let words = found.iter().map(|operation| MemoryWords {
            kind: operation.kind,
            second: if operation.kind == 6 { operation.flags } else { 0 },
            address: operation.address,
            value: operation.value,
            flags: operation.flags,
            padding: 0,
            alias: 0,
            rest: 0,
        });
        Exposed { _bytes: Arc::new([]), pointers: Arc::new([]), words: words.collect() }
    })?;
    let operations = exposed.words.as_ptr();
    // SAFETY: the caller's output.
    unsafe { put(parameters.cast(), MemoryNode { context: 0, count: found.len() as u32, operations, flags: 0 }) }
}

pub unsafe fn cuGraphBatchMemOpNodeSetParams(node: usize, parameters: *const c_void) -> CudaResult {
    // SAFETY: the caller's parameters.
    set(current()?.process, node, unsafe { memory(parameters)? })
}
