//! Stream capture: work that is issued to a capturing stream becomes nodes of a graph.
//!
//! Everything is known here, because the order of issue is: which streams belong to a capture, and after which nodes the
//! next one of each comes.

use super::graph::layout::{Copy3D, DEVICE, Fill, HOST, Side};
use super::graph::nodes::edges_with;
use super::graph::{Edge, FULL, Graph, Kernel, Work};
use super::{current, put, put_optional, ready, stream};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::host::Function;
use crate::library::Recording;
use crate::objects::Event;
use crate::process::Process;
use sluice_protocol::cuda;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// CU_STREAM_CAPTURE_MODE_GLOBAL
const GLOBAL: u32 = 0;
/// CU_STREAM_CAPTURE_MODE_RELAXED
const RELAXED: u32 = 2;

const UNSUPPORTED: CudaError = CudaError::code(cuda::ERROR_STREAM_CAPTURE_UNSUPPORTED);
const INVALIDATED: CudaError = CudaError::code(cuda::ERROR_STREAM_CAPTURE_INVALIDATED);
const IMPLICIT: CudaError = CudaError::code(cuda::ERROR_STREAM_CAPTURE_IMPLICIT);
const CAPTURED_EVENT: CudaError = CudaError::code(cuda::ERROR_CAPTURED_EVENT);
const ILLEGAL_STATE: CudaError = CudaError::code(cuda::ERROR_ILLEGAL_STATE);

thread_local! {
    /// Which calls this thread wants to have forbidden during captures.
    static MODE: Cell<u32> = const { Cell::new(GLOBAL) };
    /// What the last question about a capture points to.
    static EXPOSED: RefCell<(Vec<usize>, Vec<[u8; 8]>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// One capture, from its begin to its end.
struct Capture {
    graph: Arc<Graph>,
    /// Made for this capture; else the program's own.
    own: bool,
    origin: u64,
    mode: u32,
    thread: ThreadId,
    invalid: bool,
    /// The nodes that the next one of each stream comes after.
    frontiers: HashMap<u64, Vec<Edge>>,
    /// A stream that waits for the legacy stream and the other way round is in it.
    blocking: bool,
}

/// Where an event was recorded in a capture.
struct Point {
    capture: u64,
    nodes: Vec<Edge>,
}

#[derive(Default)]
struct State {
    captures: HashMap<u64, Capture>,
    /// The capture that a stream is in.
    streams: HashMap<u64, u64>,
    events: HashMap<u64, Point>,
}

/// All captures of the process.
#[derive(Default)]
pub struct Captures {
    active: AtomicUsize,
    events: AtomicUsize,
    state: Mutex<State>,
}

impl Captures {
    #[inline]
    fn none(&self) -> bool {
        self.active.load(Ordering::Acquire) == 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The event was recorded outside of captures, or is gone.
    pub fn forget_event(&self, event: u64) {
        if self.events.load(Ordering::Acquire) > 0 {
            let mut state = self.lock();
            state.events.remove(&event);
            self.events.store(state.events.len(), Ordering::Release);
        }
    }

    /// The stream is gone. A capture that began on it is over: nobody can end it any more, and it would forbid others'
    /// calls. Another that it is in cannot go on.
    pub fn forget_stream(&self, process: &Process, stream: u64) {
        if self.none() {
            return;
        }
        let mut state = self.lock();
        let Some(id) = state.streams.remove(&stream) else { return };
        let Some(capture) = state.captures.get_mut(&id) else { return };
        capture.invalid = true;
        capture.frontiers.remove(&stream);
        if capture.origin != stream {
            return;
        }
        let ended = state.end(id);
        self.active.store(state.captures.len(), Ordering::Release);
        drop(state);
        if let Some(capture) = ended.filter(|capture| capture.own) {
            capture.graph.forget(process);
        }
    }
}

impl State {
    fn of(&mut self, stream: u64) -> Option<&mut Capture> {
        let id = self.streams.get(&stream)?;
        self.captures.get_mut(id)
    }

    /// Work in the legacy stream would wait for the blocking streams that capture, and they for it.
    fn refuse_implicit(&mut self) -> CudaResult {
        let mut found = false;
        for capture in self.captures.values_mut().filter(|capture| capture.blocking) {
            capture.invalid = true;
            found = true;
        }
        if found { Err(IMPLICIT) } else { Ok(()) }
    }

    fn end(&mut self, id: u64) -> Option<Capture> {
        self.streams.retain(|_, capture| *capture != id);
        self.captures.remove(&id)
    }
}

/// Whether the stream captures; fails when its capture has been invalidated, or when the legacy stream cannot be used.
fn capturing(process: &Process, handle: u64) -> CudaResult<bool> {
    let mut state = process.objects.captures.lock();
    if handle == 0 {
        return state.refuse_implicit().map(|()| false);
    }
    match state.of(handle) {
        Some(capture) if capture.invalid => Err(INVALIDATED),
        found => Ok(found.is_some()),
    }
}

/// Makes work a node when the stream captures; None when it does not.
fn node(device: Device, on: usize, make: impl FnOnce() -> CudaResult<Work>) -> CudaResult<Option<u64>> {
    let captures = &device.process.objects.captures;
    if captures.none() {
        return Ok(None);
    }
    let handle = stream::handle(device, on)?;
    if !capturing(device.process, handle)? {
        return Ok(None);
    }
    // Not under the lock: this may load a module.
    let made = make();
    let mut state = captures.lock();
    let work = made.inspect_err(|_| {
        // Work that is wrong ends the capture.
        if let Some(capture) = state.of(handle) {
            capture.invalid = true;
        }
    })?;
    let Some(capture) = state.of(handle) else { return Ok(None) };
    let after = capture.frontiers.get(&handle).cloned().unwrap_or_default();
    let made = capture.graph.add(device.process, work, after)?;
    capture.frontiers.insert(handle, vec![(made, FULL)]);
    Ok(Some(made))
}

/// A launch.
pub(crate) fn kernel(device: Device, on: usize, make: impl FnOnce() -> CudaResult<Kernel>) -> CudaResult<bool> {
    node(device, on, || make().map(Work::Kernel)).map(|node| node.is_some())
}

/// A plain copy; each side is host or device memory.
pub(crate) fn copy(
    device: Device,
    on: usize,
    target: (bool, u64),
    source: (bool, u64),
    bytes: usize,
) -> CudaResult<bool> {
    let side = |(device, address): (bool, u64)| Side::linear(if device { DEVICE } else { HOST }, address, bytes);
    copy_3d(device, on, || Ok(Copy3D::linear(side(target), side(source), bytes)))
}

/// Any copy.
pub(crate) fn copy_3d(device: Device, on: usize, make: impl FnOnce() -> CudaResult<Copy3D>) -> CudaResult<bool> {
    node(device, on, || make().map(Work::Copy)).map(|node| node.is_some())
}

/// A fill.
pub(crate) fn fill(device: Device, on: usize, fill: Fill) -> CudaResult<bool> {
    node(device, on, || Ok(Work::Fill(fill))).map(|node| node.is_some())
}

/// A host function.
pub(crate) fn host_function(device: Device, on: usize, function: Function, data: usize) -> CudaResult<bool> {
    node(device, on, || Ok(Work::Host { function, data })).map(|node| node.is_some())
}

/// A call to a library.
pub(crate) fn library(
    device: Device,
    on: usize,
    make: impl FnOnce() -> CudaResult<Arc<Recording>>,
) -> CudaResult<bool> {
    node(device, on, || make().map(Work::Library)).map(|node| node.is_some())
}

/// Waits for and writes of words.
pub(crate) fn memory_operations(
    device: Device,
    on: usize,
    make: impl FnOnce() -> CudaResult<Work>,
) -> CudaResult<bool> {
    node(device, on, make).map(|node| node.is_some())
}

/// An allocation in stream order: its address.
pub(crate) fn alloc(device: Device, on: usize, bytes: usize) -> CudaResult<Option<u64>> {
    let mut found = 0;
    let made = node(device, on, || {
        let (work, address) = super::graph::memory::alloc_work(device, bytes)?;
        found = address;
        Ok(work)
    })?;
    Ok(made.map(|_| found))
}

/// A free in stream order.
pub(crate) fn free(device: Device, on: usize, address: u64) -> CudaResult<bool> {
    node(device, on, || super::graph::memory::free_work(device.process, address)).map(|node| node.is_some())
}

/// A call that a capturing stream does not allow: it is invalidated.
pub(crate) fn refuse(device: Device, on: usize) -> CudaResult {
    let captures = &device.process.objects.captures;
    if captures.none() {
        return Ok(());
    }
    let handle = stream::handle(device, on)?;
    let mut state = captures.lock();
    if handle == 0 {
        return state.refuse_implicit();
    }
    match state.of(handle) {
        None => Ok(()),
        Some(capture) => {
            capture.invalid = true;
            Err(UNSUPPORTED)
        }
    }
}

/// A wait for everything: captured work would be part of it.
pub(crate) fn refuse_any(process: &Process) -> CudaResult {
    let captures = &process.objects.captures;
    if captures.none() {
        return Ok(());
    }
    let mut state = captures.lock();
    state.captures.values_mut().for_each(|capture| capture.invalid = true);
    if state.captures.is_empty() { Ok(()) } else { Err(UNSUPPORTED) }
}

/// A call that CUDA calls potentially unsafe, as an allocation: forbidden during captures, as far as their mode and this
/// thread's say.
pub(crate) fn unsafe_call(process: &Process) -> CudaResult {
    let captures = &process.objects.captures;
    if captures.none() || MODE.get() == RELAXED {
        return Ok(());
    }
    let (thread, mode) = (std::thread::current().id(), MODE.get());
    let mut state = captures.lock();
    let mut forbidden = false;
    for capture in state.captures.values_mut() {
        let own = capture.thread == thread && capture.mode != RELAXED;
        if own || (mode == GLOBAL && capture.mode == GLOBAL) {
            capture.invalid = true;
            forbidden = true;
        }
    }
    if forbidden { Err(UNSUPPORTED) } else { Ok(()) }
}

/// An event that was last recorded in a capture has no time and nobody passes it: not during the capture, which the
/// question ends, and not after it.
pub(crate) fn refuse_captured(process: &Process, event: &Event) -> CudaResult {
    let captures = &process.objects.captures;
    if captures.events.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let mut state = captures.lock();
    let Some(id) = state.events.get(&event.handle).map(|point| point.capture) else { return Ok(()) };
    let Some(capture) = state.captures.get_mut(&id) else { return Err(INVALID_VALUE) };
    capture.invalid = true;
    Err(CAPTURED_EVENT)
}

/// Records an event in a capturing stream: a mark, or with `external` a node. `false` when the stream does not capture.
pub(crate) fn record_event(device: Device, on: usize, event: &Arc<Event>, external: bool) -> CudaResult<bool> {
    let captures = &device.process.objects.captures;
    if captures.none() {
        captures.forget_event(event.handle);
        return Ok(false);
    }
    if external {
        let made = node(device, on, || Ok(Work::RecordEvent(Arc::clone(event))))?;
        return Ok(made.is_some());
    }
    let handle = stream::handle(device, on)?;
    if !capturing(device.process, handle)? {
        captures.forget_event(event.handle);
        return Ok(false);
    }
    let mut state = captures.lock();
    let Some(id) = state.streams.get(&handle).copied() else { return Ok(false) };
    let nodes = state.of(handle).and_then(|capture| capture.frontiers.get(&handle).cloned()).unwrap_or_default();
    state.events.insert(event.handle, Point { capture: id, nodes });
    captures.events.store(state.events.len(), Ordering::Release);
    Ok(true)
}

/// A wait for an event: it brings the stream into the event's capture, or adds to what its next node comes after; with
/// `external` it is a node. `false` when no capture has to do with it.
pub(crate) fn wait_event(device: Device, on: usize, event: &Arc<Event>, external: bool) -> CudaResult<bool> {
    let captures = &device.process.objects.captures;
    if captures.none() && captures.events.load(Ordering::Acquire) == 0 {
        return Ok(false);
    }
    if external {
        let made = node(device, on, || Ok(Work::WaitEvent(Arc::clone(event))))?;
        return Ok(made.is_some());
    }
    let handle = stream::handle(device, on)?;
    let own = capturing(device.process, handle)?;
    let blocking = stream::is_blocking(device, on)?;
    let recorded = event.recording().generation != 0;
    let mut guard = captures.lock();
    let state = &mut *guard;
    let Some(point) = state.events.get(&event.handle) else {
        if !own {
            return Ok(false);
        }
        if !recorded {
            // Never recorded: there is nothing to wait for.
            return Ok(true);
        }
        if let Some(capture) = state.of(handle) {
            capture.invalid = true;
        }
        return Err(CudaError::code(cuda::ERROR_STREAM_CAPTURE_ISOLATION));
    };
    let id = point.capture;
    let nodes = point.nodes.clone();
    if !state.captures.contains_key(&id) {
        return Err(CAPTURED_EVENT);
    }
    match state.streams.get(&handle).copied() {
        Some(other) if other != id => {
            for id in [id, other] {
                if let Some(capture) = state.captures.get_mut(&id) {
                    capture.invalid = true;
                }
            }
            Err(CudaError::code(cuda::ERROR_STREAM_CAPTURE_MERGE))
        }
        joined => {
            let Some(capture) = state.captures.get_mut(&id) else { return Err(CAPTURED_EVENT) };
            if capture.invalid {
                return Err(INVALIDATED);
            }
            if handle == 0 {
                capture.invalid = true;
                return Err(IMPLICIT);
            }
            let frontier = capture.frontiers.entry(handle).or_default();
            for edge in nodes {
                if !frontier.iter().any(|(node, _)| *node == edge.0) {
                    frontier.push(edge);
                }
            }
            if joined.is_none() {
                capture.blocking |= blocking;
                state.streams.insert(handle, id);
            }
            Ok(true)
        }
    }
}

/// A node was taken out of its graph.
pub(crate) fn forget_node(process: &Process, node: u64) {
    let captures = &process.objects.captures;
    if !captures.none() {
        let mut state = captures.lock();
        for capture in state.captures.values_mut() {
            capture.frontiers.values_mut().for_each(|edges| edges.retain(|(other, _)| *other != node));
        }
    }
}

fn begin(device: Device, on: usize, mode: u32, target: Option<(Arc<Graph>, Vec<Edge>)>) -> CudaResult {
    static IDS: AtomicU64 = AtomicU64::new(1);
    if mode > RELAXED {
        return Err(INVALID_VALUE);
    }
    let handle = stream::handle(device, on)?;
    if handle == 0 {
        return Err(UNSUPPORTED);
    }
    let blocking = stream::is_blocking(device, on)?;
    let captures = &device.process.objects.captures;
    let mut state = captures.lock();
    if state.streams.contains_key(&handle) {
        return Err(ILLEGAL_STATE);
    }
    let own = target.is_none();
    let (graph, after) = target.unwrap_or_else(|| (Graph::new(device.process), Vec::new()));
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    let capture = Capture {
        graph,
        own,
        origin: handle,
        mode,
        thread: std::thread::current().id(),
        invalid: false,
        frontiers: HashMap::from([(handle, after)]),
        blocking,
    };
    state.captures.insert(id, capture);
    state.streams.insert(handle, id);
    captures.active.store(state.captures.len(), Ordering::Release);
    Ok(())
}

pub unsafe fn cuStreamBeginCapture_v2(on: usize, mode: u32) -> CudaResult {
    begin(current()?, on, mode, None)
}

pub unsafe fn cuStreamBeginCapture(on: usize) -> CudaResult {
    begin(current()?, on, GLOBAL, None)
}

pub unsafe fn cuStreamBeginCaptureToGraph(
    on: usize,
    graph: usize,
    after: *const usize,
    data: *const c_void,
    count: usize,
    mode: u32,
) -> CudaResult {
    let device = current()?;
    let graph = Graph::find(device.process, graph)?;
    // SAFETY: the caller's lists.
    let after = unsafe { edges_with(after, data, count)? };
    if after.iter().any(|(node, _)| !graph.state().nodes.contains_key(node)) {
        return Err(INVALID_VALUE);
    }
    begin(device, on, mode, Some((graph, after)))
}

/// Whether all that the other streams did comes before what the origin's next node would come after.
fn joined(capture: &Capture) -> bool {
    let state = capture.graph.state();
    let mut before: HashSet<u64> = HashSet::new();
    let mut turn: Vec<u64> = capture.frontiers.get(&capture.origin).into_iter().flatten().map(|edge| edge.0).collect();
    while let Some(node) = turn.pop() {
        if before.insert(node)
            && let Some(node) = state.nodes.get(&node)
        {
            turn.extend(node.after.iter().map(|(from, _)| *from));
        }
    }
    capture.frontiers.values().flatten().all(|(node, _)| before.contains(node))
}

pub unsafe fn cuStreamEndCapture(on: usize, graph: *mut usize) -> CudaResult {
    let device = current()?;
    if graph.is_null() {
        return Err(INVALID_VALUE);
    }
    let handle = stream::handle(device, on)?;
    let captures = &device.process.objects.captures;
    let mut state = captures.lock();
    let Some(id) = state.streams.get(&handle).copied() else { return Err(ILLEGAL_STATE) };
    let Some(capture) = state.captures.get_mut(&id) else { return Err(ILLEGAL_STATE) };
    if capture.origin != handle {
        capture.invalid = true;
        return Err(CudaError::code(cuda::ERROR_STREAM_CAPTURE_UNMATCHED));
    }
    let Some(capture) = state.end(id) else { return Err(ILLEGAL_STATE) };
    captures.active.store(state.captures.len(), Ordering::Release);
    drop(state);
    let outcome = if capture.mode != RELAXED && capture.thread != std::thread::current().id() {
        // As NVIDIA's driver does, the capture is over all the same.
        Err(CudaError::code(cuda::ERROR_STREAM_CAPTURE_WRONG_THREAD))
    } else if capture.invalid {
        Err(INVALIDATED)
    } else if joined(&capture) {
        Ok(capture.graph.handle as usize)
    } else {
        Err(CudaError::code(cuda::ERROR_STREAM_CAPTURE_UNJOINED))
    };
    if outcome.is_err() && capture.own {
        capture.graph.forget(device.process);
    }
    // SAFETY: not null, the caller's output.
    unsafe { put(graph, outcome.as_ref().copied().unwrap_or(0))? };
    outcome.map(drop)
}

/// CUstreamCaptureStatus: 0 none, 1 active, 2 invalidated.
struct Seen {
    status: u32,
    id: u64,
    graph: usize,
    after: Vec<Edge>,
}

fn look(device: Device, on: usize) -> CudaResult<Seen> {
    let none = Seen { status: 0, id: 0, graph: 0, after: Vec::new() };
    let captures = &device.process.objects.captures;
    let handle = stream::handle(device, on)?;
    if captures.none() {
        return Ok(none);
    }
    let mut state = captures.lock();
    if handle == 0 {
        // A question invalidates nothing.
        let implicit = state.captures.values().any(|capture| capture.blocking);
        return if implicit { Err(IMPLICIT) } else { Ok(none) };
    }
    let id = state.streams.get(&handle).copied().unwrap_or_default();
    Ok(match state.of(handle) {
        None => none,
        Some(capture) if capture.invalid => Seen { status: 2, id, ..none },
        Some(capture) => Seen {
            status: 1,
            id,
            graph: capture.graph.handle as usize,
            after: capture.frontiers.get(&handle).cloned().unwrap_or_default(),
        },
    })
}

pub unsafe fn cuStreamIsCapturing(on: usize, status: *mut u32) -> CudaResult {
    let seen = look(current()?, on)?;
    // SAFETY: the caller's output.
    unsafe { put(status, seen.status) }
}

pub unsafe fn cuStreamGetCaptureInfo_v3(
    on: usize,
    status: *mut u32,
    id: *mut u64,
    graph: *mut usize,
    after: *mut *const usize,
    data: *mut *const c_void,
    count: *mut usize,
) -> CudaResult {
    let seen = look(current()?, on)?;
    EXPOSED.with_borrow_mut(|(nodes, edges)| {
        *nodes = seen.after.iter().map(|(node, _)| *node as usize).collect();
        *edges = seen.after.iter().map(|(_, data)| *data).collect();
        // SAFETY: the caller's outputs; the lists live until this thread asks again.
        unsafe {
            put(status, seen.status)?;
            if seen.status == 1 {
                put_optional(id, seen.id);
                put_optional(graph, seen.graph);
                put_optional(after, nodes.as_ptr());
                put_optional(data, edges.as_ptr().cast());
            }
            put_optional(count, nodes.len());
        }
        Ok(())
    })
}

pub unsafe fn cuStreamGetCaptureInfo_v2(
    on: usize,
    status: *mut u32,
    id: *mut u64,
    graph: *mut usize,
    after: *mut *const usize,
    count: *mut usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuStreamGetCaptureInfo_v3(on, status, id, graph, after, std::ptr::null_mut(), count) }
}

pub unsafe fn cuStreamGetCaptureInfo(on: usize, status: *mut u32, id: *mut u64) -> CudaResult {
    let none = std::ptr::null_mut();
    // SAFETY: as the caller's.
    unsafe { cuStreamGetCaptureInfo_v2(on, status, id, none, none.cast(), none) }
}

/// `flags`: 0 adds to what the stream's next node comes after, 1 replaces it.
pub unsafe fn cuStreamUpdateCaptureDependencies_v2(
    on: usize,
    after: *const usize,
    data: *const c_void,
    count: usize,
    flags: u32,
) -> CudaResult {
    let device = current()?;
    if flags > 1 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's lists.
    let edges = unsafe { edges_with(after, data, count)? };
    let handle = stream::handle(device, on)?;
    let mut state = device.process.objects.captures.lock();
    let capture = state.of(handle).ok_or(ILLEGAL_STATE)?;
    if capture.invalid {
        return Err(INVALIDATED);
    }
    if edges.iter().any(|(node, _)| !capture.graph.state().nodes.contains_key(node)) {
        return Err(INVALID_VALUE);
    }
    let frontier = capture.frontiers.entry(handle).or_default();
    if flags == 1 {
        frontier.clear();
    }
    for edge in edges {
        if !frontier.iter().any(|(node, _)| *node == edge.0) {
            frontier.push(edge);
        }
    }
    Ok(())
}

pub unsafe fn cuStreamUpdateCaptureDependencies(
    on: usize,
    after: *const usize,
    count: usize,
    flags: u32,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuStreamUpdateCaptureDependencies_v2(on, after, std::ptr::null(), count, flags) }
}

pub unsafe fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) -> CudaResult {
    ready()?;
    // SAFETY: null, or the caller's.
    let mode = unsafe { mode.as_mut() }.filter(|mode| **mode <= RELAXED).ok_or(INVALID_VALUE)?;
    *mode = MODE.replace(*mode);
    Ok(())
}
