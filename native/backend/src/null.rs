//! A device that executes nothing: it records calls, bytes and the points at which a program waits, and of calls to
//! libraries their arguments.
//!
//! Tests use it to count blocking round trips.  Memory reads as zero, every kernel that PTX or machine code
//! names exists.

use crate::attributes;
use crate::cubin;
use crate::device::{Device, Done, ErrorObserver, HostWork};
use crate::error::{CudaError, CudaResult, code};
use crate::graph::{Executable, GraphId, HostSide, MemoryOperation, Node, NodeWork, RecordingId};
use crate::peer::Borrower;
use crate::pinned::PinnedPart;
use crate::timeline::{StepWork, Timeline};
use crate::types::{
    Copy2D, DeviceDescription, DeviceProfile, EventId, Fill, FunctionRef, LaunchConfig, LibraryAnswer, LibraryCall,
    ModuleId, ModuleInfo, StreamId,
};
use crate::window::{Opened, Way, Window};
use crate::words;
use sluice_api::libraries::Function;
use sluice_protocol::fat_binary;
use sluice_protocol::library::{Argument, take_arguments};
use sluice_softgpu::Module;
use sluice_softlibs::{Libraries, Step};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// See the module.
pub struct NullDevice {
    timeline: Timeline,
    recording: Mutex<Option<File>>,
    memory: Mutex<BTreeMap<u64, u64>>,
    /// The program's own physical memory: handle to bytes.
    physical: Mutex<HashMap<u64, u64>>,
    modules: Mutex<HashMap<ModuleId, ModuleInfo>>,
    graphs: Mutex<HashMap<GraphId, Executable>>,
    libraries: Mutex<Libraries>,
    recordings: Mutex<HashSet<RecordingId>>,
}

/// The null devices of a host.
pub fn describe(count: u32, memory_bytes: u64, host: &[u8]) -> Vec<DeviceDescription> {
    let describe = |index| DeviceDescription {
        uuid: crate::soft::device_uuid(b"null", host, index),
        index,
        gpu_type: "null".to_owned(),
        model: "Sluice recorder (executes nothing)".to_owned(),
        memory_bytes,
        profile: DeviceProfile {
            name: "Sluice recorder (executes nothing)".to_owned(),
            ..attributes::software_gpu(memory_bytes)
        },
    };
    (0..count).map(describe).collect()
}

fn no_graph() -> CudaError {
    CudaError::new(code::INVALID_HANDLE, "there is no such graph")
}

/// The kernels of an image: PTX, machine code, or a fat binary with either.
fn describe_image(image: &[u8]) -> CudaResult<ModuleInfo> {
    let broken = || CudaError::new(code::INVALID_IMAGE, "the image is damaged");
    if fat_binary::is_fat(image) {
        let mut whole = ModuleInfo::default();
        for entry in fat_binary::entries(image).ok_or_else(broken)? {
            let part = describe_image(&entry.unpacked().ok_or_else(broken)?)?;
            whole.functions.extend(part.functions);
        }
        return Ok(whole);
    }
    if image.starts_with(b"\x7fELF") {
        return cubin::describe(image).ok_or_else(broken);
    }
    let parsed = Module::parse(image).map_err(|error| CudaError::new(error.code, error.to_string()))?;
    let functions = parsed.kernels().map(crate::soft::describe_kernel).collect();
    Ok(ModuleInfo { functions, globals: Vec::new(), ..ModuleInfo::default() })
}

impl NullDevice {
    /// Opens the device; the recording, one JSON object a line, is appended to the file if one is named.
    pub fn open(recording: Option<&str>, observer: ErrorObserver) -> CudaResult<NullDevice> {
        let open = |path: &str| {
            let file = File::options().append(true).create(true).open(path);
            file.map_err(|error| CudaError::new(code::UNKNOWN, format!("{path}: {error}")))
        };
        Ok(NullDevice {
            timeline: Timeline::new(observer),
            recording: Mutex::new(recording.map(open).transpose()?),
            memory: Mutex::default(),
            physical: Mutex::default(),
            modules: Mutex::default(),
            graphs: Mutex::default(),
            libraries: Mutex::default(),
            recordings: Mutex::default(),
        })
    }

    /// Writes one line: the operation, its stream, its bytes, and whether the program waits for it.
    fn record(&self, call: &str, stream: StreamId, bytes: u64, blocking: bool) {
        self.record_with(call, stream, bytes, blocking, String::new);
    }

    /// The same of a call to a library, with its arguments.
    fn record_library_call(&self, function: &Function, call: &LibraryCall<'_>, arguments: &[Argument<'_>]) {
        let bytes = call.arguments.len() as u64;
        self.record_with(&function.symbol, call.stream, bytes, call.waits, || {
            format!(",\"arguments\":{}", words::list(call.library, arguments))
        });
    }

    fn record_with(&self, call: &str, stream: StreamId, bytes: u64, blocking: bool, more: impl FnOnce() -> String) {
        let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = recording.as_mut() {
            let (stream, more) = (stream.0, more());
            let line = format!(
                "{{\"call\":\"{call}\",\"stream\":{stream},\"bytes\":{bytes},\"blocking\":{blocking}{more}}}\n"
            );
            if file.write_all(line.as_bytes()).is_err() {
                *recording = None;
            }
        }
    }

    fn graphs(&self) -> MutexGuard<'_, HashMap<GraphId, Executable>> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recordings(&self) -> MutexGuard<'_, HashSet<RecordingId>> {
        self.recordings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_memory(&self, address: u64, bytes: u64) -> CudaResult<()> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = memory
            .range(..=address)
            .next_back()
            .is_some_and(|(base, length)| address.checked_add(bytes).is_some_and(|end| end <= base + length));
        if inside || bytes == 0 { Ok(()) } else { Err(CudaError::new(code::INVALID_VALUE, "not allocated")) }
    }
}

/// Takes everything and holds zeros.
struct NullWindow {
    go_on: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Window for NullWindow {
    fn put(&self, _offset: u64, length: usize, fill: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<()> {
        fill(&mut vec![0; length])
    }

    fn get(&self, _offset: u64, length: usize, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        take(&vec![0; length])
    }

    fn close(&self) {
        let go_on = self.go_on.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(go_on) = go_on {
            go_on();
        }
    }
}

impl Device for NullDevice {
    fn peers(&self, others: &[String]) -> Vec<String> {
        others.to_vec()
    }

    /// There is nothing to be reached.
    fn lend(&self, _to: Arc<dyn Borrower>) -> CudaResult<()> {
        Ok(())
    }

    fn reserve(&self, _base: u64, bytes: u64) -> CudaResult<u64> {
        Ok(bytes)
    }

    fn alloc(&self, address: u64, bytes: u64) -> CudaResult<()> {
        self.record("alloc", StreamId::LEGACY, bytes, false);
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(address, bytes);
        Ok(())
    }

    fn free(&self, address: u64, done: Done<u64>) -> CudaResult<()> {
        let bytes = self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
        let bytes = bytes.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "nothing is allocated there"))?;
        self.record("free", StreamId::LEGACY, bytes, false);
        self.timeline.after_all(Box::new(move || done(Ok(bytes))));
        Ok(())
    }

    fn create_physical(&self, handle: u64, bytes: u64) -> CudaResult<()> {
        self.record("create-physical", StreamId::LEGACY, bytes, true);
        self.physical.lock().unwrap_or_else(PoisonError::into_inner).insert(handle, bytes);
        Ok(())
    }

    fn release_physical(&self, handle: u64) -> CudaResult<()> {
        let bytes = self.physical.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle);
        let bytes = bytes.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "there is no such memory"))?;
        self.record("release-physical", StreamId::LEGACY, bytes, false);
        Ok(())
    }

    fn map_physical(&self, _address: u64, bytes: u64, handle: u64) -> CudaResult<()> {
        self.record("map-physical", StreamId::LEGACY, bytes, true);
        let known = self.physical.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&handle);
        if known { Ok(()) } else { Err(CudaError::new(code::INVALID_VALUE, "there is no such memory")) }
    }

    fn unmap_physical(&self, address: u64, bytes: u64) -> CudaResult<()> {
        self.record("unmap-physical", StreamId::LEGACY, bytes, true);
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
        Ok(())
    }

    fn set_access(&self, address: u64, bytes: u64, accessible: bool) -> CudaResult<()> {
        self.record("set-access", StreamId::LEGACY, bytes, true);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if accessible {
            memory.insert(address, bytes);
        } else {
            memory.remove(&address);
        }
        Ok(())
    }

    fn copy_in(&self, stream: StreamId, dst: u64, data: &[u8]) -> CudaResult<()> {
        self.record("copy-in", stream, data.len() as u64, false);
        self.check_memory(dst, data.len() as u64)?;
        self.timeline.submit_light(stream, Box::new(|| Ok(())))
    }

    fn copy_out(&self, stream: StreamId, src: u64, bytes: u64, done: Done<Vec<u8>>) -> CudaResult<()> {
        self.record("copy-out", stream, bytes, true);
        self.check_memory(src, bytes)?;
        let zeros = vec![0; bytes as usize];
        let answer: Done<()> = Box::new(move |outcome| done(outcome.map(|()| zeros)));
        self.timeline.submit_call(stream, true, Box::new(|| Ok(())), answer)
    }

    fn open_window(
        &self,
        stream: StreamId,
        way: Way,
        address: u64,
        bytes: u64,
        opened: Opened,
        done: Done<()>,
    ) -> CudaResult<()> {
        self.check_memory(address, bytes)?;
        let work: HostWork = Box::new(move |go_on| opened(Arc::new(NullWindow { go_on: Mutex::new(Some(go_on)) })));
        match way {
            Way::In => {
                self.record("copy-in", stream, bytes, true);
                self.timeline.submit_host_call(stream, work, done)
            }
            Way::Out => {
                self.record("copy-out", stream, bytes, true);
                self.timeline.synchronize_stream(stream, done)?;
                self.timeline.submit_host(stream, work)
            }
        }
    }

    fn copy_pinned(
        &self,
        stream: StreamId,
        way: Way,
        address: u64,
        part: PinnedPart,
        done: Done<()>,
    ) -> CudaResult<()> {
        let (kind, bytes) = (if way == Way::In { "copy-in" } else { "copy-out" }, part.bytes() as u64);
        self.record(kind, stream, bytes, true);
        self.check_memory(address, bytes)?;
        self.timeline.submit_call(stream, true, Box::new(|| Ok(())), done)
    }

    fn copy_2d(&self, stream: StreamId, copy: Copy2D) -> CudaResult<()> {
        self.record("copy", stream, copy.width.saturating_mul(copy.height), false);
        self.timeline.submit_light(stream, Box::new(|| Ok(())))
    }

    fn fill(&self, stream: StreamId, fill: Fill) -> CudaResult<()> {
        self.record(
            "fill",
            stream,
            fill.width.saturating_mul(fill.height).saturating_mul(u64::from(fill.element)),
            false,
        );
        self.timeline.submit_light(stream, Box::new(|| Ok(())))
    }

    fn load_module(&self, module: ModuleId, image: &[u8]) -> CudaResult<ModuleInfo> {
        self.record("load-module", StreamId::LEGACY, image.len() as u64, true);
        let info = describe_image(image)?;
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).insert(module, info.clone());
        Ok(info)
    }

    fn unload_module(&self, module: ModuleId) -> CudaResult<()> {
        let gone = self.modules.lock().unwrap_or_else(PoisonError::into_inner).remove(&module);
        gone.map(drop).ok_or_else(|| CudaError::new(code::INVALID_HANDLE, "there is no such module"))
    }

    fn set_function_attribute(&self, _function: FunctionRef, _attribute: u32, _value: i32) -> CudaResult<()> {
        Ok(())
    }

    fn launch(&self, stream: StreamId, function: FunctionRef, config: LaunchConfig) -> CudaResult<()> {
        self.record("launch", stream, config.params.len() as u64, false);
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let known = modules.get(&function.module).is_some_and(|m| (function.index as usize) < m.functions.len());
        drop(modules);
        if !known {
            return Err(CudaError::new(code::INVALID_HANDLE, "there is no such function"));
        }
        self.timeline.submit_light(stream, Box::new(|| Ok(())))
    }

    fn host_work(&self, stream: StreamId, work: HostWork) -> CudaResult<()> {
        self.record("host-work", stream, 0, false);
        self.timeline.submit_host(stream, work)
    }

    fn create_stream(&self, stream: StreamId, flags: u32, _priority: i32) -> CudaResult<()> {
        self.timeline.create_stream(stream, flags)
    }

    fn destroy_stream(&self, stream: StreamId) -> CudaResult<()> {
        self.timeline.destroy_stream(stream)
    }

    fn synchronize_stream(&self, stream: StreamId, done: Done<()>) -> CudaResult<()> {
        self.record("synchronize-stream", stream, 0, true);
        self.timeline.synchronize_stream(stream, done)
    }

    fn mark(&self, stream: StreamId, passed: Box<dyn FnOnce() + Send>) -> CudaResult<()> {
        self.record("mark", stream, 0, false);
        self.timeline.mark(stream, passed)
    }

    fn query_stream(&self, stream: StreamId) -> CudaResult<bool> {
        self.record("query-stream", stream, 0, true);
        self.timeline.query_stream(stream)
    }

    fn wait_event(&self, stream: StreamId, event: EventId) -> CudaResult<()> {
        self.record("wait-event", stream, 0, false);
        self.timeline.wait_event(stream, event)
    }

    fn create_event(&self, event: EventId, flags: u32) -> CudaResult<()> {
        self.timeline.create_event(event, flags)
    }

    fn destroy_event(&self, event: EventId) -> CudaResult<()> {
        self.timeline.destroy_event(event)
    }

    fn record_event(&self, event: EventId, stream: StreamId) -> CudaResult<()> {
        self.record("record-event", stream, 0, false);
        self.timeline.record_event(event, stream)
    }

    fn synchronize_event(&self, event: EventId, done: Done<()>) -> CudaResult<()> {
        self.record("synchronize-event", StreamId::LEGACY, 0, true);
        self.timeline.synchronize_event(event, done)
    }

    fn query_event(&self, event: EventId) -> CudaResult<bool> {
        self.record("query-event", StreamId::LEGACY, 0, true);
        self.timeline.query_event(event)
    }

    fn elapsed(&self, start: EventId, end: EventId) -> CudaResult<f32> {
        self.record("elapsed", StreamId::LEGACY, 0, true);
        self.timeline.elapsed(start, end)
    }

    fn watch_event(&self, event: EventId, passed: Box<dyn FnOnce() + Send>) -> CudaResult<bool> {
        self.record("watch-event", StreamId::LEGACY, 0, true);
        self.timeline.watch_event(event, passed)
    }

    /// No kernel ever writes the word that a wait looks for: it is passed.
    fn memory_operations(&self, stream: StreamId, operations: Vec<MemoryOperation>) -> CudaResult<()> {
        self.record("memory-operations", stream, operations.len() as u64, false);
        self.timeline.submit_light(stream, Box::new(|| Ok(())))
    }

    fn instantiate_graph(
        &self,
        graph: GraphId,
        _flags: u64,
        nodes: Vec<Node>,
        host: Arc<dyn HostSide>,
    ) -> CudaResult<()> {
        self.record("instantiate-graph", StreamId::LEGACY, nodes.len() as u64, true);
        self.graphs().insert(graph, Executable { nodes, host });
        Ok(())
    }

    fn update_graph(&self, graph: GraphId, changes: Vec<(u32, bool, NodeWork)>) -> CudaResult<()> {
        self.record("update-graph", StreamId::LEGACY, changes.len() as u64, false);
        let mut graphs = self.graphs();
        let executable = graphs.get_mut(&graph).ok_or_else(no_graph)?;
        for (place, enabled, work) in changes {
            let node = executable.nodes.get_mut(place as usize);
            let node = node.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "there is no such node"))?;
            node.enabled = enabled;
            node.work = work;
        }
        Ok(())
    }

    fn launch_graph(&self, graph: GraphId, stream: StreamId) -> CudaResult<()> {
        let graphs = self.graphs();
        let executable = graphs.get(&graph).ok_or_else(no_graph)?;
        self.record("launch-graph", stream, executable.nodes.len() as u64, false);
        let steps = executable.steps(|work| {
            Ok::<_, CudaError>(match work {
                NodeWork::CopyOut { extent, copy, .. } => {
                    let (host, copy, bytes) = (Arc::clone(&executable.host), *copy, extent.bytes().unwrap_or(0));
                    StepWork::Light(Box::new(move || {
                        host.deliver(copy, vec![0; bytes as usize]);
                        Ok(())
                    }))
                }
                _ => StepWork::Marker,
            })
        })?;
        drop(graphs);
        self.timeline.submit_steps(stream, steps)
    }

    fn upload_graph(&self, _graph: GraphId, stream: StreamId) -> CudaResult<()> {
        self.record("upload-graph", stream, 0, false);
        Ok(())
    }

    fn destroy_graph(&self, graph: GraphId) -> CudaResult<()> {
        self.graphs().remove(&graph).map(drop).ok_or_else(no_graph)
    }

    fn synchronize(&self, done: Done<()>) -> CudaResult<()> {
        self.record("synchronize", StreamId::LEGACY, 0, true);
        self.timeline.synchronize(done);
        Ok(())
    }

    fn open_library(&self, library: u32) -> CudaResult<Vec<u32>> {
        self.record(&format!("open-library {library:#x}"), StreamId::LEGACY, 0, true);
        Ok(Vec::new())
    }

    /// Questions get the software GPU's answers where it has one, so that programs go on; work is only noted.
    fn call_library(&self, call: LibraryCall<'_>, done: Done<LibraryAnswer>) -> CudaResult<()> {
        let library = sluice_api::libraries::library((call.library >> 16) as u16);
        let function = library.and_then(|library| library.numbered(call.function));
        let arguments = take_arguments(call.arguments).ok();
        let (Some(function), Some(arguments)) = (function, arguments) else {
            return Err(CudaError::new(code::INVALID_VALUE, "there is no such library function"));
        };
        self.record_library_call(function, &call, &arguments);
        let mut libraries = self.libraries.lock().unwrap_or_else(PoisonError::into_inner);
        let prepared = libraries.prepare(call.library, call.function, call.arguments);
        drop(libraries);
        let outputs = match prepared {
            Ok(Step::Done(outputs)) => outputs,
            _ => arguments.iter().flat_map(|argument| vec![0; argument.output_bytes()]).collect(),
        };
        let answer = LibraryAnswer { outputs, ..LibraryAnswer::default() };
        let reply: Done<()> = Box::new(move |outcome| done(outcome.map(|()| answer)));
        self.timeline.submit_call(call.stream, true, Box::new(|| Ok(())), reply)
    }

    fn record_library(&self, recording: RecordingId, call: LibraryCall<'_>) -> CudaResult<LibraryAnswer> {
        let library = sluice_api::libraries::library((call.library >> 16) as u16);
        let function = library.and_then(|library| library.numbered(call.function));
        let function = function.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "there is no such function"))?;
        self.record(&format!("record {}", function.symbol), call.stream, call.arguments.len() as u64, true);
        self.recordings().insert(recording);
        Ok(LibraryAnswer::default())
    }

    fn forget_library(&self, recording: RecordingId) -> CudaResult<()> {
        self.record("forget-library", StreamId::LEGACY, 0, false);
        let known = self.recordings().remove(&recording);
        if known { Ok(()) } else { Err(CudaError::new(code::INVALID_HANDLE, "there is no such recording")) }
    }

    fn gpu_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Nothing is executed.
    fn sm_active(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn park(&self) -> CudaResult<u64> {
        Ok(self.memory.lock().unwrap_or_else(PoisonError::into_inner).values().sum())
    }

    fn unpark(&self) -> CudaResult<()> {
        Ok(())
    }

    fn cancel(&self) {}
}
