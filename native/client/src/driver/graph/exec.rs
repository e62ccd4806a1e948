//! Executable graphs: made, sent once, launched.

use super::flat::Layout;
use super::layout::Instantiate;
use super::lower::to_wire;
use super::user_object::UserObject;
use super::{Graph, Work, refused};
use crate::device::Device;
use crate::driver::{capture, current, put, put_optional, ready, stream};
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::objects::{Recording, new_handle};
use crate::process::Process;
use crate::session::Session;
use sluice_protocol::cuda;
use sluice_protocol::graph::{GraphChange, GraphNode};
use sluice_protocol::messages::{
    ContextSynchronize, GraphDestroy, GraphInstantiate, GraphLaunch, GraphUpdate, GraphUpload,
};
use std::collections::BTreeSet;
use std::ffi::c_char;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
const AUTO_FREE: u64 = 1;
/// CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD
const UPLOAD: u64 = 2;
/// CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
const DEVICE_LAUNCH: u64 = 4;
/// CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
const NODE_PRIORITY: u64 = 8;

/// An executable graph.
pub struct Executable {
    pub handle: u64,
    /// Ordinal of the device on which it was instantiated: it runs there.
    pub device: usize,
    pub id: u32,
    pub flags: u64,
    state: Mutex<State>,
}

/// See [`Executable`].
pub struct State {
    pub layout: Layout,
    /// Generation in which gpud has it; 0 none.
    generation: u64,
    /// Places that gpud does not know the newest parameters of.
    changed: BTreeSet<u32>,
    users: Vec<Arc<UserObject>>,
    /// Tells its graph, which may have only one, that it is there.
    _instance: Arc<()>,
}

impl State {
    /// Gives a node other work, or switches it.
    pub fn change(&mut self, place: u32, enabled: bool, work: Work) {
        if let Some(flat) = self.layout.flats.get_mut(place as usize) {
            flat.enabled = enabled;
            flat.work = work;
            self.changed.insert(place);
        }
    }

    /// Brings gpud up to date: the whole graph, or what has changed.
    fn ensure(&mut self, device: Device, session: &Session, handle: u64, flags: u64) -> CudaResult {
        if self.generation != session.generation {
            let nodes = self.layout.flats.iter().map(|flat| {
                let work = to_wire(device, session, &flat.work)?;
                Ok(GraphNode { after: flat.after.clone(), enabled: flat.enabled, work })
            });
            let nodes: Vec<GraphNode> = nodes.collect::<CudaResult<_>>()?;
            session.connection.call(&GraphInstantiate { graph: handle, flags, nodes })?;
            self.generation = session.generation;
            self.changed.clear();
        }
        if !self.changed.is_empty() {
            let changes = self.changed.iter().filter_map(|place| {
                let flat = self.layout.flats.get(*place as usize)?;
                let work = to_wire(device, session, &flat.work);
                Some(work.map(|work| GraphChange { node: *place, enabled: flat.enabled, work }))
            });
            let changes: Vec<GraphChange> = changes.collect::<CudaResult<_>>()?;
            session.connection.post(&GraphUpdate { graph: handle, changes })?;
            self.changed.clear();
        }
        Ok(())
    }
}

impl Executable {
    /// The executable graph of a handle.
    pub fn find(process: &Process, handle: usize) -> CudaResult<Arc<Self>> {
        process.objects.graphs.executables.get(handle).map_err(|_| INVALID_VALUE)
    }

    /// The device of a stream that it is launched into.
    fn in_stream(&self, device: Device, on: usize) -> CudaResult<Device> {
        let home = stream::home(device, on)?;
        if home.ordinal == self.device {
            return Ok(home);
        }
        Err(refused("a graph runs on the device on which it was instantiated"))
    }

    /// Its nodes, and what gpud knows of them.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes an executable graph; at gpud now when there is one, else at its first launch.
fn instantiate(device: Device, graph: usize, flags: u64) -> CudaResult<Arc<Executable>> {
    static IDS: AtomicU32 = AtomicU32::new(1);
    if flags & !(AUTO_FREE | UPLOAD | DEVICE_LAUNCH | NODE_PRIORITY) != 0 {
        return Err(INVALID_VALUE);
    }
    if flags & DEVICE_LAUNCH != 0 {
        return Err(refused("graphs that kernels launch are not supported"));
    }
    let graph = Graph::find(device.process, graph)?;
    let layout = Layout::of(&graph)?;
    let memory = graph.has_memory();
    let instance = Arc::new(());
    let users = {
        let mut state = graph.state();
        if memory && state.instance.strong_count() > 0 {
            return Err(refused("a graph with memory nodes can be instantiated only once at a time"));
        }
        state.instance = Arc::downgrade(&instance);
        state.users.clone()
    };
    let mut state = State { layout, generation: 0, changed: BTreeSet::new(), users, _instance: instance };
    let handle = new_handle();
    if let Some(session) = device.session_now() {
        session.check_sticky()?;
        state.ensure(device, &session, handle, flags)?;
    }
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    let made = Executable { handle, device: device.ordinal, id, flags, state: Mutex::new(state) };
    Ok(device.process.objects.graphs.executables.put(handle, made))
}

pub unsafe fn cuGraphInstantiateWithFlags(executable: *mut usize, graph: usize, flags: u64) -> CudaResult {
    let device = current()?;
    if executable.is_null() || flags & UPLOAD != 0 {
        return Err(INVALID_VALUE);
    }
    let made = instantiate(device, graph, flags)?;
    // SAFETY: the caller's output.
    unsafe { put(executable, made.handle as usize) }
}

pub unsafe fn cuGraphInstantiate_v2(
    executable: *mut usize,
    graph: usize,
    error_node: *mut usize,
    log: *mut c_char,
    log_bytes: usize,
) -> CudaResult {
    // SAFETY: the caller's outputs.
    unsafe {
        put_optional(error_node, 0);
        if log_bytes > 0 {
            put_optional(log, 0);
        }
        cuGraphInstantiateWithFlags(executable, graph, 0)
    }
}

pub unsafe fn cuGraphInstantiateWithParams(
    executable: *mut usize,
    graph: usize,
    parameters: *mut std::ffi::c_void,
) -> CudaResult {
    let device = current()?;
    // SAFETY: null, or the caller's CUDA_GRAPH_INSTANTIATE_PARAMS.
    let parameters = unsafe { parameters.cast::<Instantiate>().as_mut() }.ok_or(INVALID_VALUE)?;
    if executable.is_null() {
        return Err(INVALID_VALUE);
    }
    parameters.error_node = 0;
    let made = instantiate(device, graph, parameters.flags).inspect_err(|error| {
        // CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, …_INVALID_STRUCTURE
        parameters.result = if error.code == cuda::ERROR_NOT_SUPPORTED { 3 } else { 2 };
    })?;
    parameters.result = 0;
    if parameters.flags & UPLOAD != 0 {
        upload(device, &made, parameters.upload)?;
    }
    // SAFETY: the caller's output.
    unsafe { put(executable, made.handle as usize) }
}

pub unsafe fn cuGraphExecGetFlags(executable: usize, flags: *mut u64) -> CudaResult {
    let found = Executable::find(ready()?, executable)?;
    // SAFETY: the caller's output.
    unsafe { put(flags, found.flags) }
}

pub unsafe fn cuGraphExecGetId(executable: usize, id: *mut u32) -> CudaResult {
    let found = Executable::find(ready()?, executable)?;
    // SAFETY: the caller's output.
    unsafe { put(id, found.id) }
}

fn upload(device: Device, executable: &Executable, on: usize) -> CudaResult {
    let device = executable.in_stream(device, on)?;
    capture::refuse(device, on)?;
    let session = device.session()?;
    let stream = stream::at_server(device, &session, on)?;
    executable.state().ensure(device, &session, executable.handle, executable.flags)?;
    session.connection.post(&GraphUpload { graph: executable.handle, stream })
}

pub unsafe fn cuGraphUpload(executable: usize, stream: usize) -> CudaResult {
    let device = current()?;
    upload(device, &*Executable::find(device.process, executable)?, stream)
}

pub unsafe fn cuGraphLaunch(executable: usize, on: usize) -> CudaResult {
    let device = current()?;
    let executable = Executable::find(device.process, executable)?;
    // A graph does not become part of one that is captured.
    capture::refuse(device, on)?;
    let device = executable.in_stream(device, on)?;
    let session = device.session()?;
    let stream = stream::at_server(device, &session, on)?;
    // Under this lock, so that updates and launches keep their order.
    let mut state = executable.state();
    state.ensure(device, &session, executable.handle, executable.flags)?;
    device.process.objects.graphs.memory.launched(&state.layout, executable.flags & AUTO_FREE != 0)?;
    let recorded = state.layout.flats.iter().filter(|flat| flat.enabled).filter_map(|flat| match &flat.work {
        Work::RecordEvent(event) => Some(event),
        _ => None,
    });
    let mut recordings: Vec<MutexGuard<'_, Recording>> = Vec::new();
    let mut seen = BTreeSet::new();
    let recorded: Vec<_> = recorded.filter(|event| seen.insert(event.handle)).collect();
    recorded.iter().for_each(|event| device.process.objects.captures.forget_event(event.handle));
    for event in recorded {
        let mut recording = event.recording();
        let number = recording.number + 1;
        *recording =
            Recording { generation: session.generation, number, stream, mark: u64::MAX, ..Recording::default() };
        recordings.push(recording);
    }
    let mark = session.connection.post_numbered(&GraphLaunch { graph: executable.handle, stream })?;
    for mut recording in recordings {
        recording.mark = mark;
    }
    Ok(())
}

pub unsafe fn cuGraphExecDestroy(executable: usize) -> CudaResult {
    let process = ready()?;
    let removed = process.objects.graphs.executables.remove(executable).map_err(|_| INVALID_VALUE)?;
    let (generation, users) = {
        let mut state = removed.state();
        (state.generation, std::mem::take(&mut state.users))
    };
    let Some(session) = process.device(removed.device).session_now().filter(|session| session.generation == generation)
    else {
        return Ok(());
    };
    session.connection.post(&GraphDestroy { graph: removed.handle })?;
    if !users.is_empty() {
        // What the program gave the graph lives until no launch of it can be running.
        let waiting = Arc::clone(&session);
        session.shared.host.run(Box::new(move || {
            let _: Result<_, CudaError> = waiting.connection.call(&ContextSynchronize);
            drop(users);
        }));
    }
    Ok(())
}
