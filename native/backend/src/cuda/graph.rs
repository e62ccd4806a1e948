//! Graphs on the driver: a `CUgraph` of the nodes, instantiated once.
//!
//! What touches the program's own memory or functions goes through host nodes: a copy from the program is a host node
//! that fetches into page-locked memory and a copy behind it, a copy to the program the other way round.

use super::loader::{
    AttributeValue, Copy3DDescription, Driver, FillNode, Handle, HostNode, KernelNode, MemoryNode, MemoryWords, Status,
};
use super::turn::Work;
use super::waiters::Waiters;
use super::{CudaDevice, Function, Shareable, Shared, lock, unknown};
use crate::error::{CudaError, CudaResult, code};
use crate::graph::{Extent, GraphId, HostSide, MemoryOperation, Node, NodeWork, Planes};
use crate::types::{FunctionRef, LaunchAttribute, LaunchConfig, StreamId};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// Attributes that a kernel node can have; the others belong to launches into streams.
const NODE_ATTRIBUTES: [u32; 12] = [1, 2, 4, 5, 8, 9, 10, 11, 14, 16, 17, 18];

/// An executable graph and all that its nodes point to.
pub struct Executable {
    executable: Shareable,
    graph: Shareable,
    nodes: Vec<Made>,
    /// What it is made of, to be made again, and the flags.
    plan: Vec<Node>,
    flags: u64,
    /// The first kernel that it runs.
    first: Option<Arc<str>>,
    program: Program,
    /// Kept to the end: launches that are queued may still use what an update has replaced.
    calls: Vec<Shareable>,
    staging: Vec<Shareable>,
}

/// One node of ours in the driver's graph.
#[derive(Clone, Copy)]
struct Made {
    /// The node that does the work.
    main: Shareable,
    /// The host node of a copy between device and program.
    partner: Option<Shareable>,
    /// What later nodes wait for.
    last: Shareable,
}

/// The program behind a graph's host nodes.
#[derive(Clone)]
struct Program {
    host: Arc<dyn HostSide>,
    shared: Arc<Shared>,
    waiters: Waiters,
}

/// What a host node does.
struct Call {
    program: Program,
    work: CallWork,
}

enum CallWork {
    Function(u64),
    Fetch { copy: u64, bytes: usize, staging: Shareable },
    Deliver { copy: u64, bytes: usize, staging: Shareable },
}

/// Runs on a thread of the driver, which goes on with the stream when this returns.
unsafe extern "C" fn run(data: *mut c_void) {
    // SAFETY: the executable keeps the call until no launch of it is queued any more.
    let call = unsafe { &*data.cast::<Call>() };
    let Call { program: Program { host, shared, waiters }, work } = call;
    shared.deliver_elsewhere(waiters);
    let (sender, done) = channel::<Vec<u8>>();
    match work {
        CallWork::Function(function) => {
            host.call(*function, Box::new(move || drop(sender.send(Vec::new()))));
            let _ = done.recv();
        }
        CallWork::Fetch { copy, bytes, staging } => {
            host.fetch(*copy, *bytes as u64, Box::new(move |data| drop(sender.send(data))));
            if let Ok(data) = done.recv() {
                // SAFETY: the memory is `bytes` long; the copy out of it waits for this function.
                unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), staging.0.cast(), data.len().min(*bytes)) };
            }
        }
        CallWork::Deliver { copy, bytes, staging } => {
            // SAFETY: the copy into the memory, `bytes` long, is done.
            let data = unsafe { std::slice::from_raw_parts(staging.0.cast::<u8>(), *bytes) }.to_vec();
            host.deliver(*copy, data);
        }
    }
}

/// Host work in a stream; see [`run`].
pub unsafe extern "C" fn run_work(data: *mut c_void) {
    // SAFETY: made by `host_work` with Box::into_raw, for this one call.
    let work = unsafe { Box::from_raw(data.cast::<crate::device::HostWork>()) };
    let (sender, done) = channel();
    work(Box::new(move || {
        let _ = sender.send(());
    }));
    let _ = done.recv();
}

/// A function that does not wait, in a stream.
pub unsafe extern "C" fn run_now(data: *mut c_void) {
    // SAFETY: made by `launch_now` with Box::into_raw, for this one call.
    let work = unsafe { Box::from_raw(data.cast::<Box<dyn FnOnce() + Send>>()) };
    work();
}

fn describe(target: Side, source: Side, extent: Extent) -> Copy3DDescription {
    let (src_kind, src_host, src_device, src_pitch, src_height) = source.parts(extent);
    let (dst_kind, dst_host, dst_device, dst_pitch, dst_height) = target.parts(extent);
    Copy3DDescription {
        src_x: 0,
        src_y: 0,
        src_z: 0,
        src_lod: 0,
        src_kind,
        src_host,
        src_device,
        src_array: std::ptr::null_mut(),
        src_reserved: std::ptr::null_mut(),
        src_pitch,
        src_height,
        dst_x: 0,
        dst_y: 0,
        dst_z: 0,
        dst_lod: 0,
        dst_kind,
        dst_host,
        dst_device,
        dst_array: std::ptr::null_mut(),
        dst_reserved: std::ptr::null_mut(),
        dst_pitch,
        dst_height,
        width: extent.width as usize,
        height: extent.height as usize,
        depth: extent.depth as usize,
    }
}

/// One side of a copy.
#[derive(Clone, Copy)]
enum Side {
    Device(Planes),
    /// Rows end to end.
    Host(Handle),
}

impl Side {
    fn parts(self, extent: Extent) -> (u32, Handle, u64, usize, usize) {
        match self {
            Side::Device(planes) => {
                let pitch = planes.pitch.max(1);
                let height = if extent.depth > 1 { planes.slice / pitch } else { extent.height };
                (2, std::ptr::null_mut(), planes.address, planes.pitch as usize, height as usize)
            }
            Side::Host(memory) => (1, memory, 0, extent.width as usize, extent.height as usize),
        }
    }
}

/// Operations in the driver's layout.
pub fn words(operations: &[MemoryOperation]) -> Vec<MemoryWords> {
    let words = operations.iter().map(|operation| MemoryWords {
        kind: operation.kind,
        // A barrier has its flags where the others have padding.
        padding: if operation.kind == 6 { operation.flags } else { 0 },
        address: operation.address,
        value: operation.value,
        flags: operation.flags,
        padding_2: 0,
        alias: 0,
        rest: [0; 1],
    });
    words.collect()
}

impl CudaDevice {
    /// The function's handle, a pointer to each of its parameters inside `params`, and its name.
    pub(super) fn arguments(
        &self,
        function: FunctionRef,
        params: &mut [u8],
    ) -> CudaResult<(Handle, Vec<*mut c_void>, Arc<str>)> {
        let state = lock(&self.state);
        let Function { handle, info, name } = state.function(function)?;
        let mut pointers: Vec<*mut c_void> = Vec::with_capacity(info.params.len());
        for (offset, size) in &info.params {
            let (offset, size) = (*offset as usize, *size as usize);
            let parameter = params.get_mut(offset..offset + size);
            let parameter = parameter.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "too few parameter bytes"))?;
            pointers.push(parameter.as_mut_ptr().cast());
        }
        Ok((handle.0, pointers, Arc::clone(name)))
    }

    fn kernel_node<T>(
        &self,
        function: FunctionRef,
        config: &LaunchConfig,
        body: impl FnOnce(&KernelNode) -> CudaResult<T>,
    ) -> CudaResult<T> {
        let mut params = config.params.clone();
        let (function, mut pointers, _) = self.arguments(function, &mut params)?;
        body(&KernelNode {
            function,
            grid: config.grid,
            block: config.block,
            shared_bytes: config.shared_bytes,
            parameters: pointers.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kernel: std::ptr::null_mut(),
            context: std::ptr::null_mut(),
        })
    }

    /// Makes an executable graph.
    pub(super) fn instantiate(
        &self,
        graph: GraphId,
        flags: u64,
        nodes: Vec<Node>,
        host: Arc<dyn HostSide>,
    ) -> CudaResult<()> {
        let made = self.build(flags, nodes, host)?;
        lock(&self.state).graphs.insert(graph, made);
        Ok(())
    }

    fn build(&self, flags: u64, plan: Vec<Node>, host: Arc<dyn HostSide>) -> CudaResult<Executable> {
        let driver = self.shared.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        self.shared.check(unsafe { (driver.graph_create)(&mut handle, 0) })?;
        let (calls, staging) = (Vec::new(), Vec::new());
        let mut made = Executable {
            executable: Shareable(std::ptr::null_mut()),
            graph: Shareable(handle),
            nodes: Vec::with_capacity(plan.len()),
            plan: Vec::new(),
            flags,
            first: None,
            program: Program { host, shared: Arc::clone(&self.shared), waiters: self.waiters.clone() },
            calls,
            staging,
        };
        let built = plan.iter().try_for_each(|node| self.add(driver, &mut made, node)).and_then(|()| {
            let mut executable = std::ptr::null_mut();
            // SAFETY: a graph of this context; the driver writes one handle.  Of the flags the driver is told what
            // concerns it: memory of graphs is the client's (bit 0), and nobody launches from the device (bit 2).
            self.shared.check(unsafe { (driver.graph_instantiate)(&mut executable, handle, flags & 8) })?;
            made.executable = Shareable(executable);
            let disabled = plan.iter().zip(&made.nodes).filter(|(node, _)| !node.enabled);
            for (_, node) in disabled {
                // SAFETY: a node of this executable graph.
                self.shared.check(unsafe { (driver.graph_set_enabled)(executable, node.main.0, 0) })?;
            }
            Ok(())
        });
        if let Err(error) = built {
            made.end(&self.shared);
            return Err(error);
        }
        made.first = self.first_kernel(&plan);
        made.plan = plan;
        Ok(made)
    }

    fn first_kernel(&self, plan: &[Node]) -> Option<Arc<str>> {
        let state = lock(&self.state);
        plan.iter().filter(|node| node.enabled).find_map(|node| match &node.work {
            NodeWork::Kernel { function, .. } => state.function(*function).ok().map(|found| Arc::clone(&found.name)),
            _ => None,
        })
    }

    fn add(&self, driver: &'static Driver, made: &mut Executable, node: &Node) -> CudaResult<()> {
        let mut before = Vec::with_capacity(node.after.len());
        for edge in &node.after {
            let from = made.nodes.get(edge.from as usize);
            before.push(from.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "an edge from a later node"))?.last.0);
        }
        let (graph, context, check) = (made.graph.0, self.shared.context.0, |status: Status| self.shared.check(status));
        let mut handle = std::ptr::null_mut();
        let (list, count) = (before.as_ptr(), before.len());
        let one = |handle: Handle| Made { main: Shareable(handle), partner: None, last: Shareable(handle) };
        // SAFETY (all calls below): a graph of this context, its own nodes as dependencies, descriptions in cuda.h's
        // layout that the driver copies before it returns.
        let done = match &node.work {
            NodeWork::Empty => {
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_empty)(&mut handle, graph, list, count) })?;
                one(handle)
            }
            NodeWork::Kernel { function, config } => {
                self.kernel_node(*function, config, |node| {
                    // SAFETY: as above.
                    check(unsafe { (driver.graph_add_kernel)(&mut handle, graph, list, count, node) })
                })?;
                for attribute in attributes(config).iter().filter(|a| NODE_ATTRIBUTES.contains(&a.id)) {
                    let value = AttributeValue(attribute.value);
                    // SAFETY: a kernel node and a value of 64 bytes.
                    check(unsafe { (driver.graph_kernel_attribute)(handle, attribute.id, &value) })?;
                }
                one(handle)
            }
            NodeWork::Copy { target, source, extent } => {
                let copy = describe(Side::Device(*target), Side::Device(*source), *extent);
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_copy)(&mut handle, graph, list, count, &copy, context) })?;
                one(handle)
            }
            NodeWork::CopyIn { target, extent, copy } => {
                let (staging, bytes) = made.stage(&self.shared, *extent)?;
                let fetch = made.call(CallWork::Fetch { copy: *copy, bytes, staging });
                let mut partner = std::ptr::null_mut();
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_host)(&mut partner, graph, list, count, &fetch) })?;
                let copy = describe(Side::Device(*target), Side::Host(staging.0), *extent);
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_copy)(&mut handle, graph, &partner, 1, &copy, context) })?;
                Made { partner: Some(Shareable(partner)), ..one(handle) }
            }
            NodeWork::CopyOut { source, extent, copy } => {
                let (staging, bytes) = made.stage(&self.shared, *extent)?;
                let description = describe(Side::Host(staging.0), Side::Device(*source), *extent);
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_copy)(&mut handle, graph, list, count, &description, context) })?;
                let deliver = made.call(CallWork::Deliver { copy: *copy, bytes, staging });
                let mut partner = std::ptr::null_mut();
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_host)(&mut partner, graph, &handle, 1, &deliver) })?;
                Made { main: Shareable(handle), partner: Some(Shareable(partner)), last: Shareable(partner) }
            }
            NodeWork::Fill(fill) => {
                let fill = FillNode::from(fill);
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_fill)(&mut handle, graph, list, count, &fill, context) })?;
                one(handle)
            }
            NodeWork::Host { function } => {
                let call = made.call(CallWork::Function(*function));
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_host)(&mut handle, graph, list, count, &call) })?;
                one(handle)
            }
            NodeWork::RecordEvent(event) => {
                let event = self.event_handle(*event)?;
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_record)(&mut handle, graph, list, count, event) })?;
                one(handle)
            }
            NodeWork::WaitEvent(event) => {
                let event = self.event_handle(*event)?;
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_wait)(&mut handle, graph, list, count, event) })?;
                one(handle)
            }
            NodeWork::Memory(operations) => {
                let mut words = words(operations);
                let node = MemoryNode { context, count: words.len() as u32, words: words.as_mut_ptr(), flags: 0 };
                // SAFETY: as above.
                check(unsafe { (driver.graph_add_memory)(&mut handle, graph, list, count, &node) })?;
                one(handle)
            }
            NodeWork::Library(recording) => {
                let child = self.recorded(*recording)?;
                // SAFETY: as above; the driver copies the child.
                check(unsafe { (driver.graph_add_child)(&mut handle, graph, list, count, child) }).map_err(|error| {
                    let text = "a library's call that allocates memory of its own cannot be part of a graph: give its \
                                handle a workspace (cublasSetWorkspace, cufftSetWorkArea) before the capture";
                    CudaError::new(error.code, format!("{}; {text}", error.text))
                })?;
                one(handle)
            }
        };
        made.nodes.push(done);
        Ok(())
    }

    /// Changes nodes of an executable graph; launches that are queued keep what they had.
    pub(super) fn update(&self, graph: GraphId, changes: Vec<(u32, bool, NodeWork)>) -> CudaResult<()> {
        let driver = self.shared.enter()?;
        let mut made = lock(&self.state).graphs.remove(&graph).ok_or_else(|| unknown("graph"))?;
        let mut again = false;
        let outcome = changes.iter().try_for_each(|(place, enabled, work)| {
            let node = made.nodes.get(*place as usize).copied().ok_or_else(|| unknown("node"))?;
            let planned = made.plan.get_mut(*place as usize).ok_or_else(|| unknown("node"))?;
            (planned.enabled, planned.work) = (*enabled, work.clone());
            match self.change(driver, &mut made, node, work) {
                // The library has chosen other kernels than last time: what is made anew has any.
                Err(_) if matches!(work, NodeWork::Library(_)) => again = true,
                changed => changed?,
            }
            if matches!(work, NodeWork::Kernel { .. } | NodeWork::Copy { .. } | NodeWork::Fill(_)) {
                // SAFETY: a node of this executable graph.
                let status = unsafe { (driver.graph_set_enabled)(made.executable.0, node.main.0, u32::from(*enabled)) };
                self.shared.check(status)?;
            }
            Ok(())
        });
        let outcome = outcome.and_then(|()| {
            if again {
                let next = self.build(made.flags, made.plan.clone(), Arc::clone(&made.program.host))?;
                let old = std::mem::replace(&mut made, next);
                self.after_all(move |shared| old.end(shared))?;
            }
            Ok(())
        });
        made.first = self.first_kernel(&made.plan);
        lock(&self.state).graphs.insert(graph, made);
        outcome
    }

    fn change(&self, driver: &'static Driver, made: &mut Executable, node: Made, work: &NodeWork) -> CudaResult<()> {
        let (graph, main, context) = (made.executable.0, node.main.0, self.shared.context.0);
        let partner = node.partner.map_or(std::ptr::null_mut(), |partner| partner.0);
        let check = |status: Status| self.shared.check(status);
        // SAFETY (all calls below): an executable graph and a node of the graph it was made of; descriptions in
        // cuda.h's layout that the driver copies before it returns.
        match work {
            NodeWork::Empty => Ok(()),
            NodeWork::Kernel { function, config } => self.kernel_node(*function, config, |node| {
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_kernel)(graph, main, node) })
            }),
            NodeWork::Copy { target, source, extent } => {
                let copy = describe(Side::Device(*target), Side::Device(*source), *extent);
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_copy)(graph, main, &copy, context) })
            }
            NodeWork::CopyIn { target, extent, copy } => {
                let (staging, bytes) = made.stage(&self.shared, *extent)?;
                let fetch = made.call(CallWork::Fetch { copy: *copy, bytes, staging });
                let copy = describe(Side::Device(*target), Side::Host(staging.0), *extent);
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_host)(graph, partner, &fetch) })?;
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_copy)(graph, main, &copy, context) })
            }
            NodeWork::CopyOut { source, extent, copy } => {
                let (staging, bytes) = made.stage(&self.shared, *extent)?;
                let deliver = made.call(CallWork::Deliver { copy: *copy, bytes, staging });
                let copy = describe(Side::Host(staging.0), Side::Device(*source), *extent);
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_copy)(graph, main, &copy, context) })?;
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_host)(graph, partner, &deliver) })
            }
            NodeWork::Fill(fill) => {
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_fill)(graph, main, &FillNode::from(fill), context) })
            }
            NodeWork::Host { function } => {
                let call = made.call(CallWork::Function(*function));
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_host)(graph, main, &call) })
            }
            NodeWork::RecordEvent(event) => {
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_record)(graph, main, self.event_handle(*event)?) })
            }
            NodeWork::WaitEvent(event) => {
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_wait)(graph, main, self.event_handle(*event)?) })
            }
            NodeWork::Memory(operations) => {
                let mut words = words(operations);
                let node = MemoryNode { context, count: words.len() as u32, words: words.as_mut_ptr(), flags: 0 };
                // SAFETY: as above.
                check(unsafe { (driver.graph_set_memory)(graph, main, &node) })
            }
            NodeWork::Library(recording) => {
                // SAFETY: as above; the driver copies the child.
                check(unsafe { (driver.graph_set_child)(graph, main, self.recorded(*recording)?) })
            }
        }
    }

    /// A graph's handle, and the first kernel that it runs.
    fn executable(&self, graph: GraphId) -> CudaResult<(Handle, Option<Arc<str>>)> {
        let state = lock(&self.state);
        let made = state.graphs.get(&graph).ok_or_else(|| unknown("graph"))?;
        Ok((made.executable.0, made.first.clone()))
    }

    /// Launches a graph.
    pub(super) fn start(&self, graph: GraphId, stream: StreamId) -> CudaResult<()> {
        let (driver, stream, (executable, first)) =
            (self.shared.enter()?, self.stream(stream)?, self.executable(graph)?);
        // SAFETY: an executable graph and a stream of this context.
        self.in_turn(stream, Some(Work::Graph(first)), || {
            self.shared.check(unsafe { (driver.graph_launch)(executable, stream) })
        })
    }

    /// Uploads a graph.
    pub(super) fn upload(&self, graph: GraphId, stream: StreamId) -> CudaResult<()> {
        let (driver, stream, (executable, _)) = (self.shared.enter()?, self.stream(stream)?, self.executable(graph)?);
        // SAFETY: an executable graph and a stream of this context.
        self.shared.check(unsafe { (driver.graph_upload)(executable, stream) })
    }

    /// Ends a graph; what it points to stays until no launch of it can be running.
    pub(super) fn end_graph(&self, graph: GraphId) -> CudaResult<()> {
        let made = lock(&self.state).graphs.remove(&graph).ok_or_else(|| unknown("graph"))?;
        if self.shared.enter().is_err() {
            // The context is lost, and everything in it; its threads may still be in a call.
            std::mem::forget(made);
            return Ok(());
        }
        self.after_all(move |shared| made.end(shared))
    }
}

/// What a launch was given, the cooperative flag among it.
pub fn attributes(config: &LaunchConfig) -> Vec<LaunchAttribute> {
    let mut list = config.attributes.clone();
    if config.cooperative && !list.iter().any(|attribute| attribute.id == 2) {
        let mut value = [0; 64];
        value[0] = 1;
        list.push(LaunchAttribute { id: 2, value });
    }
    list
}

impl Executable {
    /// A host node's description; the call it points to lives as long as the graph.
    fn call(&mut self, work: CallWork) -> HostNode {
        let data: Handle = Box::into_raw(Box::new(Call { program: self.program.clone(), work })).cast();
        self.calls.push(Shareable(data));
        HostNode { function: run, data }
    }

    /// Page-locked memory for a copy.
    fn stage(&mut self, shared: &Shared, extent: Extent) -> CudaResult<(Shareable, usize)> {
        let bytes = extent.bytes().and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "the copy is longer than memory"))?;
        let mut memory = std::ptr::null_mut();
        // SAFETY: the driver writes one pointer.
        shared.check(unsafe { (shared.driver.host_alloc)(&mut memory, bytes.max(1)) })?;
        self.staging.push(Shareable(memory));
        Ok((Shareable(memory), bytes))
    }

    /// Gives everything back to the driver.
    fn end(self, shared: &Shared) {
        // SAFETY: handles and memory that this graph made, used by nobody else.  An error leaves nothing to do.
        unsafe {
            if !self.executable.0.is_null() {
                (shared.driver.graph_exec_destroy)(self.executable.0);
            }
            (shared.driver.graph_destroy)(self.graph.0);
            for memory in self.staging {
                (shared.driver.host_free)(memory.0);
            }
            for call in self.calls {
                drop(Box::from_raw(call.0.cast::<Call>()));
            }
        }
    }
}
