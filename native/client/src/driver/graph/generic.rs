//! Nodes by one structure for all kinds (CUgraphNodeParams).

use super::layout::{AllocNode, CopyNode, Fill, HostNode, KernelV2, MemoryNode, NodeParams};
use super::nodes::{self, edges_with};
use super::{Graph, Work, refused};
use crate::device::Device;
use crate::driver::{current, put};
use crate::error::{CudaResult, INVALID_VALUE};
use std::ffi::c_void;

/// The work that the structure describes.
///
/// # Safety
/// The program's parameters, of the kind that they name.
unsafe fn work(device: Device, parameters: &NodeParams) -> CudaResult<Work> {
    let body: *const c_void = parameters.body.as_ptr().cast();
    let event = || device.process.objects.events.get(parameters.body[0] as usize);
    // SAFETY: the body is read as its kind says; it is larger than each of the structures.
    unsafe {
        match parameters.kind {
            0 => {
                let found = &*body.cast::<KernelV2>();
                nodes::kernel(device, &found.first, found.kernel).map(Work::Kernel)
            }
            1 => nodes::copy((&raw const (*body.cast::<CopyNode>()).copy).cast()),
            2 => nodes::fill(body),
            3 => nodes::host(body),
            4 => nodes::child(device.process, parameters.body[0] as usize),
            5 => Ok(Work::Empty),
            6 => event().map(Work::WaitEvent),
            7 => event().map(Work::RecordEvent),
            10 => {
                let found = &*body.cast::<AllocNode>();
                device.process.objects.graphs.memory.allocate(device, found.bytes, Some(found.pool)).map(Work::Alloc)
            }
            11 => super::memory::free_work(device.process, parameters.body[0]),
            12 => nodes::memory(body),
            8 | 9 => Err(refused("external semaphores are not supported: they live in the client's machine")),
            13 => Err(refused("conditional nodes are not supported yet")),
            _ => Err(refused("this kind of graph node is not supported")),
        }
    }
}

unsafe fn add(node: *mut usize, graph: usize, after: Vec<super::Edge>, parameters: *mut c_void) -> CudaResult {
    let device = current()?;
    // SAFETY: null, or the caller's parameters.
    let parameters = unsafe { parameters.cast::<NodeParams>().as_mut() }.ok_or(INVALID_VALUE)?;
    let inside = Graph::find(device.process, graph)?;
    // SAFETY: the caller's parameters, of the kind that they name.
    let made = unsafe { work(device, parameters)? };
    if inside.state().owner.is_some() && matches!(made, Work::Alloc(_) | Work::Free(_)) {
        return Err(refused("memory nodes inside a child graph are not supported"));
    }
    if let Work::Alloc(allocation) = &made {
        // SAFETY: the body of this kind, which takes the address back.
        unsafe { (*parameters.body.as_mut_ptr().cast::<AllocNode>()).address = allocation.address };
    }
    // SAFETY: the caller's output.
    unsafe { nodes::add(device.process, node, graph, after, made) }
}

pub unsafe fn cuGraphAddNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *mut c_void,
) -> CudaResult {
    // SAFETY: the caller's list and parameters.
    unsafe { add(node, graph, nodes::edges(after, count)?, parameters) }
}

pub unsafe fn cuGraphAddNode_v2(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    data: *const c_void,
    count: usize,
    parameters: *mut c_void,
) -> CudaResult {
    // SAFETY: the caller's lists and parameters.
    unsafe { add(node, graph, edges_with(after, data, count)?, parameters) }
}

pub unsafe fn cuGraphNodeSetParams(node: usize, parameters: *mut c_void) -> CudaResult {
    let device = current()?;
    // SAFETY: the caller's parameters, of the kind that they name.
    let made = unsafe { work(device, parameters.cast::<NodeParams>().as_ref().ok_or(INVALID_VALUE)?)? };
    match made {
        Work::Alloc(_) | Work::Free(_) | Work::Child(_) => Err(INVALID_VALUE),
        Work::Kernel(kernel) => {
            nodes::set(device.process, node, nodes::keep_attributes(&nodes::work_of(device.process, node)?, kernel))
        }
        made => nodes::set(device.process, node, made),
    }
}

pub unsafe fn cuGraphExecNodeSetParams(executable: usize, node: usize, parameters: *mut c_void) -> CudaResult {
    let device = current()?;
    // SAFETY: null, or the caller's parameters.
    let parameters = unsafe { parameters.cast::<NodeParams>().as_ref() }.ok_or(INVALID_VALUE)?;
    if parameters.kind == 4 {
        return super::update::set_child_by_handle(device.process, executable, node, parameters.body[0] as usize);
    }
    // SAFETY: the caller's parameters, of the kind that they name.
    let made = unsafe { work(device, parameters)? };
    super::update::set_work(device.process, executable, node, made)
}

pub unsafe fn cuGraphNodeGetParams(node: usize, parameters: *mut c_void) -> CudaResult {
    let device = current()?;
    if parameters.is_null() {
        return Err(INVALID_VALUE);
    }
    let found = nodes::work_of(device.process, node)?;
    let mut out = NodeParams { kind: found.kind(), reserved: [0; 3], body: [0; 29], end: 0 };
    let body: *mut c_void = out.body.as_mut_ptr().cast();
    // SAFETY: the body is larger than each of the structures, and written as its kind says.
    unsafe {
        match found {
            Work::Empty => {}
            Work::Kernel(_) => {
                let first = nodes::describe_kernel(device, node)?;
                put(body.cast(), KernelV2 { first, kernel: 0, context: 0 })?;
            }
            Work::Copy(copy) => put(body.cast(), CopyNode { flags: 0, reserved: 0, context: 0, copy })?,
            Work::Fill(fill) => put(body.cast::<Fill>(), fill)?,
            Work::Host { function, data } => {
                put(body.cast(), HostNode { function: Some(function), data: data as *mut c_void })?;
            }
            Work::Child(graph) => put(body.cast(), graph.handle)?,
            Work::WaitEvent(event) | Work::RecordEvent(event) => put(body.cast(), event.handle)?,
            Work::Alloc(_) => super::memory::cuGraphMemAllocNodeGetParams(node, body)?,
            Work::Free(address) => put(body.cast(), address)?,
            Work::Library(_) => return Err(super::refused("the inside of a library's call cannot be asked for")),
            Work::Memory(_) => {
                nodes::cuGraphBatchMemOpNodeGetParams(node, body.cast::<MemoryNode>().cast())?;
            }
        }
        put(parameters.cast(), out)
    }
}
