//! The trait that a worker executes on.

use crate::error::{CudaError, CudaResult, code};
use crate::gate::Gate;
use crate::graph::{GraphId, HostSide, MemoryOperation, Node, RecordingId};
use crate::peer::{Borrower, Part};
use crate::pinned::{PinnedMemory, PinnedPart};
use crate::types::{
    Copy2D, EventId, Fill, FunctionRef, LaunchAttribute, LaunchConfig, LibraryAnswer, LibraryCall, ModuleId,
    ModuleInfo, Running, StreamId,
};
use crate::window::{Opened, Way};
use sluice_protocol::tensor_map::{TENSOR_MAP_BYTES, TensorMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// What to do when an operation has run; called once, from any thread.
pub type Done<T> = Box<dyn FnOnce(CudaResult<T>) + Send>;

/// Work that the host does in stream order: starts it, and calls the closure when the stream may go on.
pub type HostWork = Box<dyn FnOnce(Box<dyn FnOnce() + Send>) + Send>;

/// Queued operations above which a client waits in its call.
pub const BACKLOG: u64 = 65_536;

/// What has run for so long is told by [`Device::running`].
pub const LONG: Duration = Duration::from_secs(1);

/// Told about every failure of asynchronous work at the moment it happens.
pub type ErrorObserver = Box<dyn Fn(&CudaError) + Send + Sync>;

/// Hears what kernels print, before their stream's work counts as done.
pub type Printer = Box<dyn Fn(&str) + Send + Sync>;

/// One device as one client process uses it.
///
/// The worker calls these in the order in which the client issued them, from one thread.  None of them waits for
/// device work: an operation that CUDA calls blocking takes a [`Done`], which is called when its turn in stream order
/// has come.  Handles and addresses are the client's; an operation on one that does not exist fails with CUDA's code.
///
/// Errors of asynchronous work reach the [`ErrorObserver`] at once, and the next [`Done`] of a synchronising
/// operation.  A sticky one ([`CudaError::is_sticky`]) answers everything after it.
pub trait Device: Send + Sync {
    /// Where kernels print to, told once before any work. A backend whose kernels print elsewhere ignores it.
    fn print_to(&self, _printer: Printer) {}

    /// Who is asked before work runs, told once before any work. Kernels, graphs, library calls, large copies and large
    /// fills ask; nothing that only waits, queries or frees does.
    fn ask(&self, _gate: Arc<dyn Gate>) {}

    /// Those of these other devices of the host whose memory this one can reach, by their UUIDs. Asked before
    /// [`Device::reserve`] where the client has several devices: memory is then made such that it can be lent.
    fn peers(&self, _others: &[String]) -> Vec<String> {
        Vec::new()
    }

    /// Lends all that is allocated here, now and later, to another device's worker, until that is gone.
    fn lend(&self, _to: Arc<dyn Borrower>) -> CudaResult<()> {
        Err(no_peers())
    }

    /// Makes memory of another device reachable for the work that is issued from now on.
    fn borrow(&self, _part: Part, _memory: OwnedFd) -> CudaResult<()> {
        Err(no_peers())
    }

    /// Makes what was borrowed at an address unreachable once all work issued before has run; `done` then.
    fn give_back(&self, _address: u64, done: Box<dyn FnOnce() + Send>) {
        done();
    }

    /// Has what is lent come back, and waits a while for it: nothing of the session is executed any more, and it is about to
    /// be parked.
    fn recall(&self) {}

    /// Takes the address range of this session and answers how much of it, from its beginning, the client may use;
    /// the rest is for addresses that the device chooses.  Fails when any of it is in use: the client tries another.
    fn reserve(&self, base: u64, bytes: u64) -> CudaResult<u64>;

    /// Backs `bytes` at `address` (inside the reserved range).  The memory never holds another client's data.  An
    /// address that was freed may be used again at once: later work comes after the work issued before the free.
    fn alloc(&self, address: u64, bytes: u64) -> CudaResult<()>;

    /// Returns the allocation at `address` once all work issued before has run; `done` gets its size.
    fn free(&self, address: u64, done: Done<u64>) -> CudaResult<()>;

    /// Physical memory without an address; never holds another client's data.
    fn create_physical(&self, handle: u64, bytes: u64) -> CudaResult<()>;

    /// Ends it; it is mapped nowhere.
    fn release_physical(&self, handle: u64) -> CudaResult<()>;

    /// Maps the first `bytes` of it inside the reserved range, where nothing is allocated; not accessible yet.
    fn map_physical(&self, address: u64, bytes: u64, handle: u64) -> CudaResult<()>;

    /// Unmaps whole mappings that no work uses any more.
    fn unmap_physical(&self, address: u64, bytes: u64) -> CudaResult<()>;

    /// Lets kernels read and write whole mappings, or not touch them at all.
    fn set_access(&self, address: u64, bytes: u64, accessible: bool) -> CudaResult<()>;

    /// Host to device; `data` is read before this returns.
    fn copy_in(&self, stream: StreamId, dst: u64, data: &[u8]) -> CudaResult<()>;

    /// Device to host.
    fn copy_out(&self, stream: StreamId, src: u64, bytes: u64, done: Done<Vec<u8>>) -> CudaResult<()>;

    /// Opens the allocation's bytes to the host when everything issued to the stream before has run; what is issued
    /// later waits until the window is closed.  `done` is called for [`Way::In`] when it was closed, for [`Way::Out`]
    /// when its turn has come, before `opened`; after a failure only `done` is called, with the error.
    fn open_window(
        &self,
        stream: StreamId,
        way: Way,
        address: u64,
        bytes: u64,
        opened: Opened,
        done: Done<()>,
    ) -> CudaResult<()>;

    /// Makes memory of the host known, which [`Device::copy_pinned`] then takes parts of.
    fn open_pinned(&self, _memory: &Arc<PinnedMemory>) -> CudaResult<()> {
        Ok(())
    }

    /// No further copy takes parts of it. It stays mapped as long as the device holds on to it.
    fn close_pinned(&self, _memory: Arc<PinnedMemory>) {}

    /// Between the device and memory of the host, without a copy in between; `done` is called when it has run.
    fn copy_pinned(&self, stream: StreamId, way: Way, address: u64, part: PinnedPart, done: Done<()>)
    -> CudaResult<()>;

    /// Device to device.
    fn copy(&self, stream: StreamId, dst: u64, src: u64, bytes: u64) -> CudaResult<()> {
        self.copy_2d(stream, Copy2D { dst, dst_pitch: bytes, src, src_pitch: bytes, width: bytes, height: 1 })
    }

    /// Device to device, by rows.
    fn copy_2d(&self, stream: StreamId, copy: Copy2D) -> CudaResult<()>;

    /// `cuMemsetD*`.
    fn fill(&self, stream: StreamId, fill: Fill) -> CudaResult<()>;

    /// Loads PTX, a cubin or a fat binary; `image` is what the program handed over.
    fn load_module(&self, module: ModuleId, image: &[u8]) -> CudaResult<ModuleInfo>;

    /// Estimated bytes of the host that a module of this image takes: a driver keeps the image, and its own form of it.
    fn module_bytes(&self, image: &[u8]) -> u64 {
        2 * image.len() as u64
    }

    /// Whether PTX that is to be linked is valid; what it declares may be defined elsewhere. A driver tells it of the
    /// module that is made of it.
    fn check_ptx(&self, _ptx: &[u8]) -> CudaResult<()> {
        Ok(())
    }

    /// How large the heap for `malloc` in kernels is to be when a module that needs one is loaded first.
    fn wish_heap(&self, _bytes: u64) {}

    /// Bytes that the heap for `malloc` in kernels has when this image has been loaded, where loading it could not be
    /// undone: they are the lease's before it is loaded. Nothing where [`Device::load_module`] tells, and what it has
    /// taken can be given back.
    fn heap_with(&self, _image: &[u8]) -> Option<u64> {
        None
    }

    /// How many bytes are kept of what a kernel prints, from the next launch on.
    fn limit_printed(&self, _bytes: u64) {}

    /// How many bytes of stack each thread of a kernel has, from the next launch on; out of memory where all threads that
    /// the device runs at once would take more than `free`.
    fn limit_stack(&self, _bytes: u64, _free: u64) -> CudaResult<()> {
        Ok(())
    }

    /// The program has ended its context, with all that it held there.
    fn reset(&self) {}

    /// Unloads a module once all work issued before has run.
    fn unload_module(&self, module: ModuleId) -> CudaResult<()>;

    /// `cuFuncSetAttribute`.
    fn set_function_attribute(&self, function: FunctionRef, attribute: u32, value: i32) -> CudaResult<()>;

    /// Queues a kernel.
    fn launch(&self, stream: StreamId, function: FunctionRef, config: LaunchConfig) -> CudaResult<()>;

    /// Queues work of the host.
    fn host_work(&self, stream: StreamId, work: HostWork) -> CudaResult<()>;

    /// The stream waits until somebody else lets it go on; starting that does not wait, and host functions of other streams
    /// run meanwhile.
    fn wait(&self, stream: StreamId, work: HostWork) -> CudaResult<()> {
        self.host_work(stream, work)
    }

    /// `flags` as `cuStreamCreate` takes them (1 = not ordered with the legacy default stream).
    fn create_stream(&self, stream: StreamId, flags: u32, priority: i32) -> CudaResult<()>;
    /// `cuStreamSetAttribute`; hints have no effect where the device knows none.
    fn set_stream_attribute(&self, stream: StreamId, attribute: &LaunchAttribute) -> CudaResult<()> {
        let _ = (stream, attribute);
        Ok(())
    }
    /// Queues waits for and writes of words in device memory (`cuStreamBatchMemOp`).
    fn memory_operations(&self, stream: StreamId, operations: Vec<MemoryOperation>) -> CudaResult<()>;
    /// Work already queued still runs.
    fn destroy_stream(&self, stream: StreamId) -> CudaResult<()>;
    /// Calls back when everything issued to the stream before has run.
    fn synchronize_stream(&self, stream: StreamId, done: Done<()>) -> CudaResult<()>;
    /// Calls back when everything issued to the stream before has run, also after a failure, which is kept for who asks for
    /// it.
    fn mark(&self, stream: StreamId, passed: Box<dyn FnOnce() + Send>) -> CudaResult<()>;
    /// `Ok(false)` while work is running.
    fn query_stream(&self, stream: StreamId) -> CudaResult<bool>;
    /// Makes later work of the stream wait for the event's latest recording.
    fn wait_event(&self, stream: StreamId, event: EventId) -> CudaResult<()>;

    /// `flags` as `cuEventCreate` takes them (2 = without timing).
    fn create_event(&self, event: EventId, flags: u32) -> CudaResult<()>;
    /// Forgets the event.
    fn destroy_event(&self, event: EventId) -> CudaResult<()>;
    /// Marks a place in the stream.
    fn record_event(&self, event: EventId, stream: StreamId) -> CudaResult<()>;
    /// Calls back when the event's latest recording has been passed.
    fn synchronize_event(&self, event: EventId, done: Done<()>) -> CudaResult<()>;
    /// `Ok(false)` while it has not been passed.
    fn query_event(&self, event: EventId) -> CudaResult<bool>;
    /// `Ok(true)` when it has been passed; else `passed` is called when its latest recording has been, also after a
    /// failure.
    fn watch_event(&self, event: EventId, passed: Box<dyn FnOnce() + Send>) -> CudaResult<bool>;
    /// Milliseconds from one event to the other.
    fn elapsed(&self, start: EventId, end: EventId) -> CudaResult<f32>;

    /// Makes an executable graph; `flags` as `cuGraphInstantiateWithFlags` takes them.
    fn instantiate_graph(
        &self,
        graph: GraphId,
        flags: u64,
        nodes: Vec<Node>,
        host: Arc<dyn HostSide>,
    ) -> CudaResult<()>;
    /// Gives nodes other work of the same kind, or switches them on or off, for later launches.
    fn update_graph(&self, graph: GraphId, changes: Vec<(u32, bool, crate::graph::NodeWork)>) -> CudaResult<()>;
    /// Queues all of a graph.
    fn launch_graph(&self, graph: GraphId, stream: StreamId) -> CudaResult<()>;
    /// `cuGraphUpload`.
    fn upload_graph(&self, graph: GraphId, stream: StreamId) -> CudaResult<()>;
    /// Forgets a graph; what runs of it runs to its end.
    fn destroy_graph(&self, graph: GraphId) -> CudaResult<()>;

    /// Blocks of `threads` threads that fit on one multiprocessor; only a real driver is asked, for other devices the
    /// client computes it.
    fn occupancy_blocks(&self, function: FunctionRef, threads: u32, shared: u64, flags: u32) -> CudaResult<u32> {
        let _ = (function, threads, shared, flags);
        Err(computed_by_the_client())
    }
    /// Dynamic shared memory that `blocks` blocks on one multiprocessor leave each.
    fn occupancy_shared(&self, function: FunctionRef, blocks: u32, threads: u32) -> CudaResult<u64> {
        let _ = (function, blocks, threads);
        Err(computed_by_the_client())
    }
    /// Clusters that can be active at a time, or with `potential` the largest size of a cluster.
    fn occupancy_clusters(&self, function: FunctionRef, config: LaunchConfig, potential: bool) -> CudaResult<u32> {
        let _ = (function, config, potential);
        Err(CudaError::new(code::NOT_SUPPORTED, "this GPU has no thread block clusters"))
    }

    /// Encodes a tensor map whose lists are whole.
    fn encode_tensor_map(&self, map: &TensorMap) -> CudaResult<[u8; TENSOR_MAP_BYTES]> {
        let _ = map;
        Err(no_tensor_maps())
    }
    /// Gives an encoded tensor map another address.
    fn move_tensor_map(&self, map: [u8; TENSOR_MAP_BYTES], address: u64) -> CudaResult<[u8; TENSOR_MAP_BYTES]> {
        let _ = (map, address);
        Err(no_tensor_maps())
    }

    /// Calls back when everything issued before has run.
    fn synchronize(&self, done: Done<()>) -> CudaResult<()>;

    /// Loads a library that runs beside the driver (its number as in [`LibraryCall::library`]); answers the functions
    /// that it cannot execute.
    fn open_library(&self, _library: u32) -> CudaResult<Vec<u32>> {
        Err(CudaError::new(code::NOT_SUPPORTED, "this GPU server has no libraries beside its driver"))
    }

    /// Calls a library.  `done` is called when the library's status and outputs are known, which for work without
    /// outputs is at once.
    fn call_library(&self, _call: LibraryCall<'_>, _done: Done<LibraryAnswer>) -> CudaResult<()> {
        Err(CudaError::new(code::NOT_SUPPORTED, "this GPU server has no libraries beside its driver"))
    }

    /// Keeps a call to a library under a number, for nodes of graphs, and runs nothing. Every run of such a node does
    /// what the call would have done now: with the modes, workspaces and descriptions that its objects have now. A
    /// call that the library refuses, or cannot do without waiting for the device, is not kept; the answer says why.
    fn record_library(&self, _recording: RecordingId, _call: LibraryCall<'_>) -> CudaResult<LibraryAnswer> {
        Err(CudaError::new(code::NOT_SUPPORTED, "this GPU server has no libraries beside its driver"))
    }

    /// Forgets a recording; graphs made of it stay.
    fn forget_library(&self, _recording: RecordingId) -> CudaResult<()> {
        Err(CudaError::new(code::INVALID_HANDLE, "there is no such recording"))
    }

    /// Time that kernels have run so far, those that run until now.
    fn gpu_time(&self) -> Duration;

    /// Time in which the device's multiprocessors held warps of this process so far, averaged over all of them: of a
    /// kernel of few blocks a part of its time.  Nothing where the device cannot tell whose warps they are; then gpud
    /// asks it about all together ([`crate::cuda::Meter`]).
    fn sm_active(&self) -> Option<Duration>;

    /// Bytes of the device behind what has been allocated, what was freed and is still in use among them.  Nothing where
    /// all that a process takes of the device is what it allocates: there is nothing else to be measured.
    fn backing(&self) -> Option<u64> {
        None
    }

    /// The kernel that has run longest, when that is [`LONG`] and more; nothing where the device cannot tell.  Where a
    /// driver tells only that work has ended it is what has been waited for longest: see `cuda::turn`.
    fn running(&self) -> Option<Running> {
        None
    }

    /// Holds what runs, and what is issued, until it is called with `false`; nothing happens where kernels cannot be
    /// held.  What is held does not use the device, and the [`Gate`] is told so.
    fn pause(&self, _paused: bool) {}

    /// Moves every mapped byte out of the device's memory, keeping addresses; work has been drained before.
    /// Answers the bytes that are parked.
    fn park(&self) -> CudaResult<u64>;

    /// Puts parked memory back at its addresses; the caller has charged it to the new lease.
    fn unpark(&self) -> CudaResult<()>;

    /// Estimated bytes of the host that queued work holds. 0 where a driver bounds its queue.
    fn queued_bytes(&self) -> u64 {
        0
    }

    /// How much is queued, in operations; a client is made to wait above [`BACKLOG`].
    fn backlog(&self) -> u64 {
        0
    }

    /// Stops running kernels as soon as possible; their error is 702.
    fn cancel(&self);
}

fn no_tensor_maps() -> CudaError {
    CudaError::new(code::NOT_SUPPORTED, "this GPU has no tensor maps")
}

fn no_peers() -> CudaError {
    CudaError::new(code::NOT_SUPPORTED, "this GPU server's devices do not reach each other's memory")
}

fn computed_by_the_client() -> CudaError {
    CudaError::new(code::NOT_SUPPORTED, "the client computes the occupancy of this GPU")
}
