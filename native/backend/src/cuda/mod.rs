//! A real GPU through the driver API of libcuda.so.1, loaded at run time: no toolkit is needed to build or to start.
//!
//! Issuing work never waits: whatever waits does so on a thread of [`waiters::Waiters`], behind an event that marks
//! its place.  Kernels, graphs, library calls, large copies and large fills are issued in the lease's [`turn`]; GPU time
//! is the time in which there was such work.  Bulk copies between the program and the device go through [`window`]s of
//! pinned memory, outside of it: a copy engine moves what the line brings while kernels run, and work of the lease that
//! waits for such a copy would wait for a turn that cannot come before that work has ended.  From and to memory that the
//! client shares with this process ([`pinned`]) the copy engine moves them straight.

mod describe;
mod graph;
mod libraries;
mod links;
mod loader;
mod mapped;
mod memory;
mod meter;
mod outgoing;
mod peers;
mod pinned;
mod printed;
mod staging;
mod symbols;
#[cfg(test)]
mod tests;
mod turn;
mod waiters;
mod window;
mod words;

pub use describe::describe;
pub use links::linked;
pub use meter::{Meter, NVML, Reading, Source, Weights};

/// Where the driver is on most hosts.
pub const DRIVER: &str = "libcuda.so.1";

use crate::device::{Device, Done, ErrorObserver, HostWork, LONG, Printer};
use crate::error::{CudaError, CudaResult, code};
use crate::gate::Gate;
use crate::graph::{GraphId, HostSide, MemoryOperation, Node, NodeWork, RecordingId};
use crate::peer::{Borrower, Part};
use crate::pinned::{PinnedMemory, PinnedPart};
use crate::types::{
    Copy2D, EventId, Fill, FunctionInfo, FunctionRef, GlobalInfo, LaunchAttribute, LaunchConfig, LibraryAnswer,
    LibraryCall, ModuleId, ModuleInfo, Running, StreamId,
};
use crate::window::{Opened, Way};
use loader::{Attribute, AttributeValue, Copy2DDescription, Driver, EncodedTensorMap, Handle, LaunchDescription};
use memory::Memory;
use outgoing::Outgoing;
use peers::{Borrowed, Lent};
use pinned::Pinned;
use printed::Printed;
use sluice_protocol::tensor_map::{MOST_DIMENSIONS, TENSOR_MAP_BYTES, TensorMap, TensorWindow};
use sluice_softgpu::plain_name;
use staging::Staging;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use turn::{Turn, Work};
use waiters::Waiters;
use window::PinnedWindow;
use words::Words;

/// Flags of an event for which nobody waits in a hurry: without timing, and who waits sleeps.
const SLEEPS: u32 = 3;
/// CUDA_ERROR_INVALID_VALUE
const INVALID_VALUE: i32 = 1;
/// Longest words of the compiler of PTX.
const LOG_BYTES: usize = 8 << 10;
/// `CUfunction_attribute` numbers 0 to 9.
const FUNCTION_ATTRIBUTES: usize = 10;
/// A copy between host and device that is under way counts as so many operations: each has a thread that waits for it,
/// and mostly a buffer.
const OPERATIONS_PER_COPY: u64 = 256;
/// Copies and fills up to this size take no turn.
const LIGHT_BYTES: u64 = 1 << 20;

/// A handle of the driver, which any thread may use once it has set the context.
#[derive(Clone, Copy)]
struct Shareable(Handle);
// SAFETY: the driver's handles are not bound to a thread.
unsafe impl Send for Shareable {}

/// A function of a module.
struct Function {
    handle: Shareable,
    info: FunctionInfo,
    /// As people know it.
    name: Arc<str>,
}

struct Loaded {
    module: Shareable,
    functions: Vec<Function>,
}

impl State {
    fn function(&self, function: FunctionRef) -> CudaResult<&Function> {
        let module = self.modules.get(&function.module);
        module.and_then(|module| module.functions.get(function.index as usize)).ok_or_else(|| unknown("function"))
    }
}

/// The heap for `malloc` in kernels, bytes. The driver makes it with the first module that needs one and keeps it as long
/// as its context lives.
#[derive(Default)]
struct Heap {
    wished: u64,
    /// The most that the driver may have made.
    made: u64,
    /// What the program's context has; it may have ended where the driver's goes on.
    counted: u64,
}

#[derive(Default)]
struct State {
    streams: HashMap<StreamId, Shareable>,
    events: HashMap<EventId, Shareable>,
    modules: HashMap<ModuleId, Loaded>,
    graphs: HashMap<GraphId, graph::Executable>,
}

struct Shared {
    driver: &'static Driver,
    context: Shareable,
    device: i32,
    memory: Mutex<Option<Memory>>,
    /// Whether memory may be lent to other devices' workers.
    shares: AtomicBool,
    lending: Mutex<Vec<Lent>>,
    borrowed: Mutex<Borrowed>,
    /// Bytes of the device behind what has been allocated.
    backing: Arc<AtomicU64>,
    staging: Mutex<Staging>,
    outgoing: Outgoing,
    sticky: Mutex<Option<CudaError>>,
    observer: ErrorObserver,
    printed: OnceLock<Printed>,
}

// SAFETY: the context's handle may be used from any thread; all else is behind mutexes or immutable.
unsafe impl Sync for Shared {}

/// See the module.
pub struct CudaDevice {
    shared: Arc<Shared>,
    state: Mutex<State>,
    waiters: Waiters,
    libraries: libraries::Libraries,
    turn: Arc<Turn>,
    /// The streams of bulk copies to the device and from it.
    lanes: [Shareable; 2],
    heap: Mutex<Heap>,
    /// Whether the program has used the legacy default stream: marking it would order streams that it never named.
    legacy: AtomicBool,
    pinned: Pinned,
    words: Words,
}

// SAFETY: the handles of `lanes` may be used from any thread; all else is behind mutexes or immutable.
unsafe impl Sync for CudaDevice {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unknown(what: &str) -> CudaError {
    CudaError::new(code::INVALID_HANDLE, format!("there is no such {what}"))
}

impl Shared {
    /// A call's outcome; the first sticky error is told at once.
    fn check(&self, status: i32) -> CudaResult<()> {
        let outcome = self.driver.check(status);
        if let Err(error) = &outcome
            && error.is_sticky()
        {
            let mut sticky = lock(&self.sticky);
            if sticky.is_none() {
                *sticky = Some(error.clone());
                drop(sticky);
                (self.observer)(error);
            }
        }
        outcome
    }

    /// Makes the context the calling thread's, and answers the sticky error if there is one.
    fn enter(&self) -> CudaResult<&'static Driver> {
        if let Some(error) = lock(&self.sticky).clone() {
            return Err(error);
        }
        // SAFETY: the primary context is retained for the life of the process.
        self.check(unsafe { (self.driver.context_set)(self.context.0) })?;
        Ok(self.driver)
    }

    /// Asks the driver for one of the context's limits.
    fn wish(&self, limit: std::ffi::c_uint, bytes: u64) {
        if let Ok(driver) = self.enter() {
            // SAFETY: no pointers; the context is current.
            unsafe { (driver.context_set_limit)(limit, bytes as usize) };
        }
    }

    /// Threads that the device runs at once at most.
    fn resident_threads(&self) -> CudaResult<u64> {
        /// CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, _MAX_THREADS_PER_MULTIPROCESSOR
        const OF_DEVICE: [i32; 2] = [16, 39];
        let mut threads = 1;
        for attribute in OF_DEVICE {
            let mut value = 0;
            // SAFETY: the driver writes one number.
            self.check(unsafe { (self.driver.device_attribute)(&mut value, attribute, self.device) })?;
            threads *= u64::from(value.unsigned_abs());
        }
        Ok(threads)
    }

    fn memory<T>(&self, body: impl FnOnce(&mut Memory) -> CudaResult<T>) -> CudaResult<T> {
        let mut memory = lock(&self.memory);
        let memory =
            memory.as_mut().ok_or_else(|| CudaError::new(code::UNKNOWN, "the session has no address range"))?;
        body(memory)
    }

    /// An event, without timing unless wanted.
    fn event(&self, flags: u32) -> CudaResult<Shareable> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        self.check(unsafe { (self.driver.event_create)(&mut event, flags) })?;
        Ok(Shareable(event))
    }

    /// Marks a place in a stream, for somebody who waits: the wait spins, as a program's own does on its card.
    fn mark(&self, stream: Handle) -> CudaResult<Shareable> {
        self.mark_with(stream, 2)
    }

    /// As [`Shared::mark`], with these flags of `cuEventCreate`.
    fn mark_with(&self, stream: Handle, flags: u32) -> CudaResult<Shareable> {
        let event = self.event(flags)?;
        // SAFETY: a stream and an event of this context.
        self.check(unsafe { (self.driver.event_record)(event.0, stream) })?;
        Ok(event)
    }

    /// Waits for an event and ends it.
    fn pass(&self, event: Shareable) -> CudaResult<()> {
        let outcome = self.enter().and_then(|driver| {
            // SAFETY: an event that this code made and nobody else destroys.
            self.check(unsafe { (driver.event_synchronize)(event.0) })
        });
        self.hear();
        // SAFETY: as above; no copy is on the list any more that this event marks.
        unsafe { (self.driver.event_destroy)(event.0) };
        outcome
    }

    /// Something has waited for the device: what was printed and what was copied out is there.
    fn hear(&self) {
        if let Some(printed) = self.printed.get() {
            printed.tell();
        }
        self.deliver();
    }
}

/// A launch in the driver's layout.
fn with_description<T>(config: &LaunchConfig, stream: Handle, body: impl FnOnce(&LaunchDescription) -> T) -> T {
    let attributes = graph::attributes(config);
    let attributes = attributes.iter().map(|a| Attribute { id: a.id, padding: 0, value: AttributeValue(a.value) });
    let attributes: Vec<Attribute> = attributes.collect();
    body(&LaunchDescription {
        grid: config.grid,
        block: config.block,
        shared_bytes: config.shared_bytes,
        stream,
        attributes: attributes.as_ptr(),
        count: attributes.len() as u32,
    })
}

impl CudaDevice {
    fn function_handle(&self, function: FunctionRef) -> CudaResult<Handle> {
        lock(&self.state).function(function).map(|function| function.handle.0)
    }

    /// Opens the device with this UUID by the driver in this library, and keeps its primary context.
    pub fn open(library: &str, uuid: &str, observer: ErrorObserver) -> CudaResult<CudaDevice> {
        let driver = Driver::open(library)?;
        let device = describe::find(driver, uuid)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the driver writes one handle; the device number came from the driver.
        driver.check(unsafe { (driver.context_retain)(&mut context, device) })?;
        let shared = Shared {
            driver,
            context: Shareable(context),
            device,
            memory: Mutex::new(None),
            shares: AtomicBool::new(false),
            lending: Mutex::default(),
            borrowed: Mutex::default(),
            backing: Arc::default(),
            staging: Mutex::new(Staging::new(driver)),
            outgoing: Outgoing::default(),
            sticky: Mutex::new(None),
            observer,
            printed: OnceLock::new(),
        };
        shared.enter()?;
        let lane = || {
            let mut stream = std::ptr::null_mut();
            // SAFETY: the driver writes one handle; 1 = not ordered with the default stream.
            shared.check(unsafe { (driver.stream_create)(&mut stream, 1, 0) }).map(|()| Shareable(stream))
        };
        let lanes = [lane()?, lane()?];
        Ok(CudaDevice {
            shared: Arc::new(shared),
            state: Mutex::default(),
            waiters: Waiters::default(),
            libraries: libraries::Libraries::default(),
            turn: Arc::default(),
            lanes,
            heap: Mutex::default(),
            legacy: AtomicBool::new(false),
            pinned: Pinned::default(),
            words: Words::default(),
        })
    }

    /// Issues work in the lease's turn.
    fn in_turn(&self, stream: Handle, work: Option<Work>, issue: impl FnOnce() -> CudaResult<()>) -> CudaResult<()> {
        self.turn.take(&self.shared, stream, work, issue)
    }

    /// Moves so many bytes, in the lease's turn if they are many.
    fn move_bytes(&self, stream: Handle, bytes: u64, issue: impl FnOnce() -> CudaResult<()>) -> CudaResult<()> {
        if bytes <= LIGHT_BYTES { issue() } else { self.in_turn(stream, None, issue) }
    }

    fn stream(&self, stream: StreamId) -> CudaResult<Handle> {
        if stream == StreamId::LEGACY {
            self.legacy.store(true, Ordering::Relaxed);
            return Ok(std::ptr::null_mut());
        }
        lock(&self.state).streams.get(&stream).map(|handle| handle.0).ok_or_else(|| unknown("stream"))
    }

    fn event_handle(&self, event: EventId) -> CudaResult<Handle> {
        lock(&self.state).events.get(&event).map(|handle| handle.0).ok_or_else(|| unknown("event"))
    }

    /// Calls back when the place in the stream has been passed; `then` runs on the waiting thread.
    fn after<T: Send + 'static>(
        &self,
        stream: Handle,
        then: impl FnOnce(&Shared) -> T + Send + 'static,
        done: Done<T>,
    ) -> CudaResult<()> {
        let event = self.shared.mark(stream)?;
        let shared = Arc::clone(&self.shared);
        self.waiters.run(Box::new(move || done(shared.pass(event).map(|()| then(&shared)))));
        Ok(())
    }

    /// Every stream that may have work, the default one first.
    fn all_streams(&self) -> Vec<Shareable> {
        let state = lock(&self.state);
        let legacy = self.legacy.load(Ordering::Relaxed).then_some(Shareable(std::ptr::null_mut()));
        legacy.into_iter().chain(state.streams.values().copied()).collect()
    }

    /// Makes later work of every stream wait for what all streams hold now.
    fn fence(&self) -> CudaResult<()> {
        let streams = self.all_streams();
        let marks: Vec<Shareable> =
            streams.iter().map(|stream| self.shared.mark(stream.0)).collect::<Result<_, _>>()?;
        for (stream, mark) in streams.iter().flat_map(|stream| marks.iter().map(move |mark| (stream, mark))) {
            // SAFETY: streams and events of this context.
            self.shared.check(unsafe { (self.shared.driver.stream_wait)(stream.0, mark.0, 0) })?;
        }
        for mark in marks {
            // SAFETY: the driver keeps an event alive that work waits for.
            unsafe { (self.shared.driver.event_destroy)(mark.0) };
        }
        Ok(())
    }

    /// Runs `then` when everything issued so far has run, also after a failure.
    fn after_all(&self, then: impl FnOnce(&Arc<Shared>) + Send + 'static) -> CudaResult<()> {
        let marks: Vec<Shareable> = self
            .all_streams()
            .iter()
            .map(|stream| self.shared.mark_with(stream.0, SLEEPS))
            .collect::<Result<_, _>>()?;
        let shared = Arc::clone(&self.shared);
        self.waiters.run(Box::new(move || {
            marks.into_iter().for_each(|mark| drop(shared.pass(mark)));
            then(&shared);
        }));
        Ok(())
    }

    /// Queues a function that does not wait.
    fn launch_now(&self, stream: Handle, work: impl FnOnce() + Send + 'static) -> CudaResult<()> {
        let work: Box<dyn FnOnce() + Send> = Box::new(work);
        let data = Box::into_raw(Box::new(work));
        // SAFETY: a stream of this context; the function takes the box over.
        let outcome =
            self.shared.check(unsafe { (self.shared.driver.launch_host)(stream, graph::run_now, data.cast()) });
        if outcome.is_err() {
            // SAFETY: the driver has not taken it.
            drop(unsafe { Box::from_raw(data) });
        }
        outcome
    }

    /// Loads an image that is NUL-terminated text or a binary that carries its own length; of PTX that is wrong, the error
    /// has the compiler's words.
    fn load_with_log(&self, driver: &Driver, image: &[u8]) -> CudaResult<Handle> {
        /// CU_JIT_ERROR_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
        const LOG: [u32; 2] = [5, 6];
        let (mut handle, mut log) = (std::ptr::null_mut(), vec![0u8; LOG_BYTES]);
        // The second value is a size, where pointers stand.
        let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(LOG_BYTES)];
        // SAFETY: the image as above; lists of two, and a buffer as long as they say.
        let status =
            unsafe { (driver.module_load)(&mut handle, image.as_ptr().cast(), 2, LOG.as_ptr(), values.as_mut_ptr()) };
        self.shared.check(status).map_err(|error| {
            let words = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
            let words = words.trim();
            if words.is_empty() || error.text.contains(words) {
                error
            } else {
                CudaError::new(error.code, format!("{}: {words}", error.text))
            }
        })?;
        Ok(handle)
    }

    /// A function by its name, and what there is to know of it. Which functions a module has is told by handles that the
    /// driver has not loaded yet (CUDA_MODULE_LOADING is lazy unless set), and of those it tells no parameters and no
    /// attributes.
    fn describe_function(&self, module: Handle, listed: Handle) -> CudaResult<Function> {
        let driver = self.shared.driver;
        let (mut name, mut function) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: the driver writes a pointer to a string that lives as long as the module, and a handle.
        self.shared.check(unsafe { (driver.function_name)(&mut name, listed) })?;
        // SAFETY: as above.
        self.shared.check(unsafe { (driver.module_function)(&mut function, module, name) })?;
        // SAFETY: a function of a loaded module.
        self.shared.check(unsafe { (driver.function_load)(function) })?;
        let mut params = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the driver writes two sizes.
            match unsafe { (driver.function_parameter)(function, params.len(), &mut offset, &mut size) } {
                // An index past the end.
                INVALID_VALUE => break,
                status => self.shared.check(status)?,
            }
            params.push((offset as u32, size as u32));
        }
        let mut attributes = [0u32; FUNCTION_ATTRIBUTES];
        for (number, value) in attributes.iter_mut().enumerate() {
            let mut got = 0;
            // SAFETY: the driver writes one int.
            self.shared.check(unsafe { (driver.function_attribute)(&mut got, number as i32, function) })?;
            *value = got as u32;
        }
        let [threads, shared, constant, local, registers, ptx, binary, _, dynamic, _] = attributes;
        let info = FunctionInfo {
            // SAFETY: not null after success, NUL-terminated.
            name: unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned(),
            params,
            max_threads_per_block: threads,
            static_shared_bytes: shared,
            const_bytes: constant,
            local_bytes: local,
            registers,
            ptx_version: ptx,
            binary_version: binary,
            max_dynamic_shared_bytes: dynamic,
        };
        let name = plain_name(&info.name).into();
        Ok(Function { handle: Shareable(function), info, name })
    }

    /// The module's variables and where the driver has put them.
    fn globals(&self, module: Handle, image: &[u8]) -> Vec<GlobalInfo> {
        let find = |name: String| {
            let (symbol, mut address, mut bytes) = (CString::new(name.as_str()).ok()?, 0, 0);
            let found =
                // SAFETY: live locals and a C string.
                unsafe { (self.shared.driver.module_global)(&mut address, &mut bytes, module, symbol.as_ptr()) };
            (found == 0).then_some(GlobalInfo { name, address, bytes: bytes as u64 })
        };
        symbols::variables(image).into_iter().filter_map(find).collect()
    }

    fn functions(&self, module: Handle) -> CudaResult<Vec<Function>> {
        let driver = self.shared.driver;
        let mut count = 0;
        // SAFETY: the driver writes one number.
        self.shared.check(unsafe { (driver.module_function_count)(&mut count, module) })?;
        let mut handles = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: the array has room for `count` handles.
        self.shared.check(unsafe { (driver.module_functions)(handles.as_mut_ptr(), count, module) })?;
        handles.into_iter().map(|handle| self.describe_function(module, handle)).collect()
    }
}

impl Device for CudaDevice {
    fn print_to(&self, printer: Printer) {
        match Printed::capture(printer) {
            Ok(printed) => drop(self.shared.printed.set(printed)),
            Err(error) => crate::log!("gpud: what kernels print is lost: {error}"),
        }
    }

    fn ask(&self, gate: Arc<dyn Gate>) {
        self.turn.ask(gate);
    }

    fn peers(&self, others: &[String]) -> Vec<String> {
        let peers = if others.is_empty() { Vec::new() } else { self.shared.peers(others).unwrap_or_default() };
        self.shared.shares.store(!peers.is_empty(), Ordering::Relaxed);
        peers
    }

    fn lend(&self, to: Arc<dyn Borrower>) -> CudaResult<()> {
        self.shared.enter()?;
        self.shared.lend(to)
    }

    fn borrow(&self, part: Part, memory: OwnedFd) -> CudaResult<()> {
        self.take_part(part, &memory)
    }

    fn recall(&self) {
        self.shared.recall();
    }

    fn give_back(&self, address: u64, done: Box<dyn FnOnce() + Send>) {
        self.return_part(address, done);
    }

    fn reserve(&self, base: u64, bytes: u64) -> CudaResult<u64> {
        let driver = self.shared.enter()?;
        let backing = Arc::clone(&self.shared.backing);
        let shares = self.shared.shares.load(Ordering::Relaxed);
        let memory = Memory::reserve(driver, self.shared.device, (base, bytes), backing, shares)?;
        let (_, bytes) = memory.range();
        *lock(&self.shared.memory) = Some(memory);
        Ok(bytes)
    }

    fn alloc(&self, address: u64, bytes: u64) -> CudaResult<()> {
        self.shared.enter()?;
        let again = self.shared.memory(|memory| memory.alloc(address, bytes))?;
        self.shared.give(address, address + bytes)?;
        if again { self.fence() } else { Ok(()) }
    }

    fn free(&self, address: u64, done: Done<u64>) -> CudaResult<()> {
        let bytes = self.shared.memory(|memory| memory.free(address))?;
        if self.shared.enter().is_err() {
            // The context is lost, and its memory with it when the process ends.
            done(Ok(bytes));
            return Ok(());
        }
        self.after_all(move |shared| shared.release(address, bytes, done))
    }

    fn create_physical(&self, handle: u64, bytes: u64) -> CudaResult<()> {
        self.shared.enter()?;
        self.shared.memory(|memory| memory.create_physical(handle, bytes))
    }

    fn release_physical(&self, handle: u64) -> CudaResult<()> {
        // Of a lost context the driver's answer says nothing new: the memory ends with the process.
        let released = self.shared.memory(|memory| memory.release_physical(handle));
        if self.shared.enter().is_err() { Ok(()) } else { released }
    }

    fn map_physical(&self, address: u64, bytes: u64, handle: u64) -> CudaResult<()> {
        self.shared.enter()?;
        self.shared.memory(|memory| memory.map_physical(address, bytes, handle))
    }

    fn unmap_physical(&self, address: u64, bytes: u64) -> CudaResult<()> {
        self.shared.enter()?;
        self.shared.memory(|memory| memory.unmap_physical(address, bytes))
    }

    fn set_access(&self, address: u64, bytes: u64, accessible: bool) -> CudaResult<()> {
        self.shared.enter()?;
        self.shared.memory(|memory| memory.set_access(address, bytes, accessible))
    }

    fn copy_in(&self, stream: StreamId, dst: u64, data: &[u8]) -> CudaResult<()> {
        let (driver, stream) = (self.shared.enter()?, self.stream(stream)?);
        let buffer = lock(&self.shared.staging).take(data.len())?;
        // SAFETY: the buffer is at least as long as the data, and nobody else uses it.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), buffer.memory.cast::<u8>(), data.len()) };
        let issued = self.move_bytes(stream, data.len() as u64, || {
            // SAFETY: as above; the buffer is lent until the copy is done.
            self.shared.check(unsafe { (driver.copy_in)(dst, buffer.memory, data.len(), stream) })
        });
        if let Err(error) = issued {
            lock(&self.shared.staging).give_back(buffer);
            return Err(error);
        }
        let event = self.shared.mark(stream)?;
        lock(&self.shared.staging).lend(buffer, event.0);
        Ok(())
    }

    fn copy_out(&self, stream: StreamId, src: u64, bytes: u64, done: Done<Vec<u8>>) -> CudaResult<()> {
        let stream = self.stream(stream)?;
        self.move_bytes(stream, bytes, || self.shared.copy_out(&self.waiters, stream, src, bytes as usize, done))
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
        let handle = self.stream(stream)?;
        let (shared, waiters) = (Arc::clone(&self.shared), self.waiters.clone());
        let lane = self.lanes[usize::from(way == Way::Out)];
        let work: HostWork = Box::new(move |go_on| {
            let (lane, again, go_on) = (lane, waiters.clone(), Mutex::new(Some(go_on)));
            // Not here: the driver's thread for host functions may not call the driver.
            let open = move || {
                let lane = lane;
                opened(Arc::new(PinnedWindow { shared, waiters: again, stream: lane, address, bytes, go_on }));
            };
            waiters.run(Box::new(open));
        });
        if way == Way::Out {
            self.shared.enter()?;
            self.after(handle, |_| (), done)?;
            return self.host_work(stream, work);
        }
        self.host_work(stream, work)?;
        self.after(handle, |_| (), done)
    }

    fn open_pinned(&self, memory: &Arc<PinnedMemory>) -> CudaResult<()> {
        self.lock_pages(memory)
    }

    fn close_pinned(&self, memory: Arc<PinnedMemory>) {
        self.unlock_pages(memory);
    }

    fn copy_pinned(
        &self,
        stream: StreamId,
        way: Way,
        address: u64,
        part: PinnedPart,
        done: Done<()>,
    ) -> CudaResult<()> {
        self.copy_locked(stream, way, address, part, done)
    }

    fn copy_2d(&self, stream: StreamId, copy: Copy2D) -> CudaResult<()> {
        let (driver, stream) = (self.shared.enter()?, self.stream(stream)?);
        let bytes = copy.width.saturating_mul(copy.height);
        let issue = |work: &dyn Fn() -> CudaResult<()>| self.move_bytes(stream, bytes, work);
        if copy.height == 1 {
            let bytes = copy.width as usize;
            // SAFETY: the driver checks the addresses.
            return issue(&|| self.shared.check(unsafe { (driver.copy_device)(copy.dst, copy.src, bytes, stream) }));
        }
        let description = Copy2DDescription {
            src_x: 0,
            src_y: 0,
            src_kind: 2,
            src_host: std::ptr::null(),
            src_device: copy.src,
            src_array: std::ptr::null_mut(),
            src_pitch: copy.src_pitch as usize,
            dst_x: 0,
            dst_y: 0,
            dst_kind: 2,
            dst_host: std::ptr::null_mut(),
            dst_device: copy.dst,
            dst_array: std::ptr::null_mut(),
            dst_pitch: copy.dst_pitch as usize,
            width: copy.width as usize,
            height: copy.height as usize,
        };
        // SAFETY: a description of the layout that cuda.h names; the driver checks the addresses.
        issue(&|| self.shared.check(unsafe { (driver.copy_2d)(&description, stream) }))
    }

    fn fill(&self, stream: StreamId, fill: Fill) -> CudaResult<()> {
        let (driver, stream) = (self.shared.enter()?, self.stream(stream)?);
        let (width, height, value) = (fill.width as usize, fill.height as usize, fill.value);
        let pitch = if height == 1 { width * fill.element as usize } else { fill.pitch as usize };
        let bytes = fill.width.saturating_mul(fill.height).saturating_mul(u64::from(fill.element));
        self.move_bytes(stream, bytes, || {
            // SAFETY: the driver checks the address.
            let status = unsafe {
                match fill.element {
                    1 => (driver.fill_8)(fill.dst, pitch, value as u8, width, height, stream),
                    2 => (driver.fill_16)(fill.dst, pitch, value as u16, width, height, stream),
                    4 => (driver.fill_32)(fill.dst, pitch, value, width, height, stream),
                    _ => return Err(CudaError::new(code::INVALID_VALUE, "an element of 1, 2 or 4 bytes")),
                }
            };
            self.shared.check(status)
        })
    }

    fn load_module(&self, module: ModuleId, image: &[u8]) -> CudaResult<ModuleInfo> {
        let driver = self.shared.enter()?;
        if lock(&self.state).modules.contains_key(&module) {
            return Err(CudaError::new(code::INVALID_HANDLE, "the module's handle is already in use"));
        }
        // PTX text ends with a NUL for the driver.
        let text = [image, &[0]].concat();
        let handle = self.load_with_log(driver, &text)?;
        let functions = self.functions(handle)?;
        let globals = self.globals(handle, image);
        let bytes = self.heap_with(image).unwrap_or_default();
        {
            let mut heap = lock(&self.heap);
            (heap.made, heap.counted) = (heap.made.max(bytes), bytes);
        }
        let functions_info = functions.iter().map(|function| function.info.clone()).collect();
        let info = ModuleInfo { functions: functions_info, globals, bytes: 0, heap: bytes };
        lock(&self.state).modules.insert(module, Loaded { module: Shareable(handle), functions });
        Ok(info)
    }

    /// The driver refuses it once a kernel that allocates has run; the size then stays.
    fn wish_heap(&self, bytes: u64) {
        /// CU_LIMIT_MALLOC_HEAP_SIZE
        const HEAP: u32 = 2;
        lock(&self.heap).wished = bytes;
        self.shared.wish(HEAP, bytes);
    }

    fn heap_with(&self, image: &[u8]) -> Option<u64> {
        let heap = lock(&self.heap);
        let needed = symbols::uses_heap(image);
        Some(if needed { heap.counted.max(heap.wished).max(heap.made) } else { heap.counted })
    }

    fn reset(&self) {
        lock(&self.heap).counted = 0;
    }

    /// The driver refuses it once a kernel that prints has run; the size then stays.
    fn limit_printed(&self, bytes: u64) {
        /// CU_LIMIT_PRINTF_FIFO_SIZE
        const PRINTED: u32 = 1;
        self.shared.wish(PRINTED, bytes);
    }

    fn limit_stack(&self, bytes: u64, free: u64) -> CudaResult<()> {
        /// CU_LIMIT_STACK_SIZE
        const STACK: std::ffi::c_uint = 0;
        /// What every thread has without being asked for.
        const PLAIN: u64 = 1 << 10;
        let driver = self.shared.enter()?;
        let more = bytes.saturating_sub(PLAIN).saturating_mul(self.shared.resident_threads()?);
        if more > free {
            let text =
                format!("{bytes} bytes of stack for every thread of the device are more than the lease has left");
            return Err(CudaError::new(code::OUT_OF_MEMORY, text));
        }
        // SAFETY: no pointers; the context is current.
        self.shared.check(unsafe { (driver.context_set_limit)(STACK, bytes as usize) })
    }

    fn unload_module(&self, module: ModuleId) -> CudaResult<()> {
        let gone = lock(&self.state).modules.remove(&module).ok_or_else(|| unknown("module"))?;
        if self.shared.enter().is_err() {
            return Ok(());
        }
        let module = gone.module;
        self.after_all(move |shared| {
            let module = module;
            // SAFETY: a module of this context that no queued work uses any more.
            unsafe { (shared.driver.module_unload)(module.0) };
        })
    }

    fn set_function_attribute(&self, function: FunctionRef, attribute: u32, value: i32) -> CudaResult<()> {
        let driver = self.shared.enter()?;
        let handle = self.function_handle(function)?;
        // SAFETY: a function of a loaded module.
        self.shared.check(unsafe { (driver.function_set_attribute)(handle, attribute as i32, value) })
    }

    fn launch(&self, stream: StreamId, function: FunctionRef, mut config: LaunchConfig) -> CudaResult<()> {
        let (driver, stream) = (self.shared.enter()?, self.stream(stream)?);
        let mut params = std::mem::take(&mut config.params);
        let (function, mut pointers, name) = self.arguments(function, &mut params)?;
        let ([gx, gy, gz], [bx, by, bz], shared) = (config.grid, config.block, config.shared_bytes);
        let (list, none) = (pointers.as_mut_ptr(), std::ptr::null_mut());
        self.in_turn(stream, Some(Work::Kernel(name)), || {
            if !config.attributes.is_empty() {
                return with_description(&config, stream, |description| {
                    // SAFETY: as below; the description and its attributes live through the call.
                    self.shared.check(unsafe { (driver.launch_with)(description, function, list, none) })
                });
            }
            // SAFETY: a function of a loaded module; one pointer for each of its parameters, each to as many bytes as
            // the driver said; the driver copies them before it returns.
            let status = unsafe {
                if config.cooperative {
                    (driver.launch_cooperative)(function, gx, gy, gz, bx, by, bz, shared, stream, list)
                } else {
                    (driver.launch)(function, gx, gy, gz, bx, by, bz, shared, stream, list, none)
                }
            };
            self.shared.check(status)
        })
    }

    /// The driver's thread for host functions waits until the work is done.
    fn host_work(&self, stream: StreamId, work: HostWork) -> CudaResult<()> {
        let (driver, stream) = (self.shared.enter()?, self.stream(stream)?);
        let (shared, waiters) = (Arc::clone(&self.shared), self.waiters.clone());
        let (turn, place) = (Arc::clone(&self.turn), Shareable(stream));
        // What is in front of it is not taken for what is behind it.
        self.turn.retire(&self.shared, stream);
        let work: HostWork = Box::new(move |go_on| {
            let place = place;
            turn.suspend(place.0);
            shared.deliver_elsewhere(&waiters);
            work(Box::new(move || {
                let place = place;
                turn.resume(place.0);
                go_on();
            }));
        });
        let data = Box::into_raw(Box::new(work));
        // SAFETY: a stream of this context; the function takes the box over.
        let outcome = self.shared.check(unsafe { (driver.launch_host)(stream, graph::run_work, data.cast()) });
        if outcome.is_err() {
            // SAFETY: the driver has not taken it.
            drop(unsafe { Box::from_raw(data) });
        }
        outcome
    }

    fn wait(&self, stream: StreamId, work: HostWork) -> CudaResult<()> {
        self.shared.enter()?;
        let Some(word) = self.words.take(&self.shared)? else { return self.host_work(stream, work) };
        let handle = self.stream(stream)?;
        self.turn.retire(&self.shared, handle);
        let (turn, place, passed) = (Arc::clone(&self.turn), Shareable(handle), Arc::clone(&word));
        self.launch_now(handle, move || {
            let place = place;
            turn.suspend(place.0);
            work(Box::new(move || passed.pass()));
        })?;
        self.memory_operations(stream, vec![word.awaited()])?;
        let turn = Arc::clone(&self.turn);
        self.launch_now(handle, move || {
            let place = place;
            turn.resume(place.0);
            drop(word);
        })
    }

    fn set_stream_attribute(&self, stream: StreamId, attribute: &LaunchAttribute) -> CudaResult<()> {
        let (driver, stream) = (self.shared.enter()?, self.stream(stream)?);
        let value = AttributeValue(attribute.value);
        // SAFETY: a stream of this context and a value of 64 bytes.
        self.shared.check(unsafe { (driver.stream_set_attribute)(stream, attribute.id, &value) })
    }

    fn memory_operations(&self, stream: StreamId, operations: Vec<MemoryOperation>) -> CudaResult<()> {
        let (driver, stream) = (self.shared.enter()?, self.stream(stream)?);
        let mut words = graph::words(&operations);
        // SAFETY: a stream of this context and a list as long as said; the driver checks the addresses.
        self.shared.check(unsafe { (driver.stream_memory)(stream, words.len() as u32, words.as_mut_ptr(), 0) })
    }

    fn watch_event(&self, event: EventId, passed: Box<dyn FnOnce() + Send>) -> CudaResult<bool> {
        if self.query_event(event)? {
            return Ok(true);
        }
        self.synchronize_event(event, Box::new(move |_| passed())).map(|()| false)
    }

    fn instantiate_graph(
        &self,
        graph: GraphId,
        flags: u64,
        nodes: Vec<Node>,
        host: Arc<dyn HostSide>,
    ) -> CudaResult<()> {
        self.instantiate(graph, flags, nodes, host)
    }

    fn update_graph(&self, graph: GraphId, changes: Vec<(u32, bool, NodeWork)>) -> CudaResult<()> {
        self.update(graph, changes)
    }

    fn launch_graph(&self, graph: GraphId, stream: StreamId) -> CudaResult<()> {
        self.start(graph, stream)
    }

    fn upload_graph(&self, graph: GraphId, stream: StreamId) -> CudaResult<()> {
        self.upload(graph, stream)
    }

    fn destroy_graph(&self, graph: GraphId) -> CudaResult<()> {
        self.end_graph(graph)
    }

    fn occupancy_blocks(&self, function: FunctionRef, threads: u32, shared: u64, flags: u32) -> CudaResult<u32> {
        let (driver, function) = (self.shared.enter()?, self.function_handle(function)?);
        let mut blocks = 0;
        // SAFETY: a function of a loaded module; the driver writes one int.
        let status =
            unsafe { (driver.occupancy_blocks)(&mut blocks, function, threads as i32, shared as usize, flags) };
        self.shared.check(status)?;
        Ok(blocks as u32)
    }

    fn occupancy_shared(&self, function: FunctionRef, blocks: u32, threads: u32) -> CudaResult<u64> {
        let (driver, function) = (self.shared.enter()?, self.function_handle(function)?);
        let mut bytes = 0;
        // SAFETY: a function of a loaded module; the driver writes one size.
        let status = unsafe { (driver.occupancy_shared)(&mut bytes, function, blocks as i32, threads as i32) };
        self.shared.check(status)?;
        Ok(bytes as u64)
    }

    fn occupancy_clusters(&self, function: FunctionRef, config: LaunchConfig, potential: bool) -> CudaResult<u32> {
        let (driver, function) = (self.shared.enter()?, self.function_handle(function)?);
        let mut count = 0;
        with_description(&config, std::ptr::null_mut(), |description| {
            // SAFETY: a function of a loaded module, a description that lives through the call; the driver writes one
            // int.
            self.shared.check(unsafe {
                if potential {
                    (driver.occupancy_cluster_size)(&mut count, function, description)
                } else {
                    (driver.occupancy_clusters)(&mut count, function, description)
                }
            })
        })?;
        Ok(count as u32)
    }

    fn encode_tensor_map(&self, map: &TensorMap) -> CudaResult<[u8; TENSOR_MAP_BYTES]> {
        /// Room for all dimensions, however many the driver looks at.
        fn padded<T: Copy + Default>(list: &[T]) -> [T; MOST_DIMENSIONS] {
            std::array::from_fn(|index| list.get(index).copied().unwrap_or_default())
        }
        let driver = self.shared.enter()?;
        let mut encoded = EncodedTensorMap([0; TENSOR_MAP_BYTES]);
        let (sizes, strides, steps) = (padded(&map.sizes), padded(&map.strides), padded(&map.element_strides));
        let (rank, [interleave, swizzle, promotion, fill]) = (map.sizes.len() as u32, map.modes);
        let (sizes, strides, steps) = (sizes.as_ptr(), strides.as_ptr(), steps.as_ptr());
        let status = match &map.window {
            TensorWindow::Tiled(window) => {
                let window = padded(window);
                // SAFETY: the driver writes the map and reads at most five numbers of each array.
                unsafe {
                    (driver.tensor_map_tiled)(
                        &mut encoded,
                        map.data_type,
                        rank,
                        map.address,
                        sizes,
                        strides,
                        window.as_ptr(),
                        steps,
                        interleave,
                        swizzle,
                        promotion,
                        fill,
                    )
                }
            }
            TensorWindow::Columns { lower, upper, channels, pixels } => {
                let (lower, upper) = (padded(lower), padded(upper));
                // SAFETY: as above.
                unsafe {
                    (driver.tensor_map_columns)(
                        &mut encoded,
                        map.data_type,
                        rank,
                        map.address,
                        sizes,
                        strides,
                        lower.as_ptr(),
                        upper.as_ptr(),
                        *channels,
                        *pixels,
                        steps,
                        interleave,
                        swizzle,
                        promotion,
                        fill,
                    )
                }
            }
        };
        self.shared.check(status)?;
        Ok(encoded.0)
    }

    fn move_tensor_map(&self, map: [u8; TENSOR_MAP_BYTES], address: u64) -> CudaResult<[u8; TENSOR_MAP_BYTES]> {
        let driver = self.shared.enter()?;
        let mut encoded = EncodedTensorMap(map);
        // SAFETY: the driver changes the map.
        self.shared.check(unsafe { (driver.tensor_map_move)(&mut encoded, address) })?;
        Ok(encoded.0)
    }

    fn create_stream(&self, stream: StreamId, flags: u32, priority: i32) -> CudaResult<()> {
        let driver = self.shared.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        self.shared.check(unsafe { (driver.stream_create)(&mut handle, flags & 1, priority) })?;
        lock(&self.state).streams.insert(stream, Shareable(handle));
        Ok(())
    }

    fn destroy_stream(&self, stream: StreamId) -> CudaResult<()> {
        let gone = lock(&self.state).streams.remove(&stream).ok_or_else(|| unknown("stream"))?;
        match self.shared.enter() {
            Ok(driver) => {
                self.turn.retire(&self.shared, gone.0);
                self.turn.forget(gone.0);
                // SAFETY: a stream of this context, no longer in the table; the driver finishes its work first.
                self.shared.check(unsafe { (driver.stream_destroy)(gone.0) })
            }
            Err(_) => Ok(()),
        }
    }

    fn synchronize_stream(&self, stream: StreamId, done: Done<()>) -> CudaResult<()> {
        self.shared.enter()?;
        self.after(self.stream(stream)?, |_| (), done)
    }

    fn mark(&self, stream: StreamId, passed: Box<dyn FnOnce() + Send>) -> CudaResult<()> {
        self.shared.enter()?;
        self.after(self.stream(stream)?, |_| (), Box::new(move |_| passed()))
    }

    fn query_stream(&self, stream: StreamId) -> CudaResult<bool> {
        let (driver, stream) = (self.shared.enter()?, self.stream(stream)?);
        // SAFETY: a stream of this context.
        match unsafe { (driver.stream_query)(stream) } {
            600 => Ok(false),
            status => {
                self.shared.deliver();
                self.shared.check(status).map(|()| true)
            }
        }
    }

    fn wait_event(&self, stream: StreamId, event: EventId) -> CudaResult<()> {
        let (driver, stream, event) = (self.shared.enter()?, self.stream(stream)?, self.event_handle(event)?);
        self.turn.join(stream);
        // SAFETY: a stream and an event of this context.
        self.shared.check(unsafe { (driver.stream_wait)(stream, event, 0) })
    }

    fn create_event(&self, event: EventId, flags: u32) -> CudaResult<()> {
        self.shared.enter()?;
        let handle = self.shared.event(flags & 3)?;
        lock(&self.state).events.insert(event, handle);
        Ok(())
    }

    fn destroy_event(&self, event: EventId) -> CudaResult<()> {
        let gone = lock(&self.state).events.remove(&event).ok_or_else(|| unknown("event"))?;
        match self.shared.enter() {
            // SAFETY: an event of this context, no longer in the table.
            Ok(driver) => self.shared.check(unsafe { (driver.event_destroy)(gone.0) }),
            Err(_) => Ok(()),
        }
    }

    fn record_event(&self, event: EventId, stream: StreamId) -> CudaResult<()> {
        let (driver, stream, event) = (self.shared.enter()?, self.stream(stream)?, self.event_handle(event)?);
        // SAFETY: a stream and an event of this context.
        self.shared.check(unsafe { (driver.event_record)(event, stream) })
    }

    fn synchronize_event(&self, event: EventId, done: Done<()>) -> CudaResult<()> {
        self.shared.enter()?;
        let event = Shareable(self.event_handle(event)?);
        let shared = Arc::clone(&self.shared);
        self.waiters.run(Box::new(move || {
            let event = event;
            let passed = shared.enter().and_then(|driver| {
                // SAFETY: an event of this context; one that is destroyed meanwhile is answered with an error.
                shared.check(unsafe { (driver.event_synchronize)(event.0) })
            });
            shared.hear();
            done(passed);
        }));
        Ok(())
    }

    fn query_event(&self, event: EventId) -> CudaResult<bool> {
        let (driver, event) = (self.shared.enter()?, self.event_handle(event)?);
        // SAFETY: an event of this context.
        match unsafe { (driver.event_query)(event) } {
            600 => Ok(false),
            status => {
                self.shared.deliver();
                self.shared.check(status).map(|()| true)
            }
        }
    }

    fn elapsed(&self, start: EventId, end: EventId) -> CudaResult<f32> {
        let (driver, start, end) = (self.shared.enter()?, self.event_handle(start)?, self.event_handle(end)?);
        let mut milliseconds = 0.0;
        // SAFETY: the driver writes one float.
        self.shared.check(unsafe { (driver.event_elapsed)(&mut milliseconds, start, end) })?;
        self.shared.deliver();
        Ok(milliseconds)
    }

    fn synchronize(&self, done: Done<()>) -> CudaResult<()> {
        self.shared.enter()?;
        let marks: Vec<Shareable> =
            self.all_streams().iter().map(|stream| self.shared.mark(stream.0)).collect::<Result<_, _>>()?;
        let shared = Arc::clone(&self.shared);
        self.waiters.run(Box::new(move || {
            done(marks.into_iter().map(|mark| shared.pass(mark)).fold(Ok(()), Result::and));
        }));
        Ok(())
    }

    fn open_library(&self, library: u32) -> CudaResult<Vec<u32>> {
        self.shared.enter()?;
        self.libraries.missing(library)
    }

    fn call_library(&self, call: LibraryCall<'_>, done: Done<LibraryAnswer>) -> CudaResult<()> {
        self.run_library(call, done)
    }

    fn record_library(&self, recording: RecordingId, call: LibraryCall<'_>) -> CudaResult<LibraryAnswer> {
        self.keep_library(recording, call)
    }

    fn forget_library(&self, recording: RecordingId) -> CudaResult<()> {
        self.drop_library(recording)
    }

    fn gpu_time(&self) -> Duration {
        self.turn.used()
    }

    /// The driver does not tell.
    fn sm_active(&self) -> Option<Duration> {
        None
    }

    /// The driver tells nothing about a kernel that runs: see [`Turn::running`].
    fn running(&self) -> Option<Running> {
        let (work, worked) = self.turn.running().filter(|(_, worked)| *worked >= LONG)?;
        Some(Running { kernel: work.to_string(), done: 0, blocks: 0, worked })
    }

    fn backing(&self) -> Option<u64> {
        Some(self.shared.backing.load(Ordering::Acquire))
    }

    fn park(&self) -> CudaResult<u64> {
        let driver = self.shared.enter()?;
        // SAFETY: waits for the context's work.
        self.shared.check(unsafe { (driver.context_synchronize)() })?;
        // The lease's account is about to change: nobody may leave through its door later.
        self.turn.settle();
        self.shared.memory(|memory| memory.park(self.shared.context.0))
    }

    fn unpark(&self) -> CudaResult<()> {
        self.shared.enter()?;
        self.shared.memory(|memory| memory.unpark(self.shared.context.0))?;
        let (base, bytes) = self.shared.memory(|memory| Ok(memory.range()))?;
        self.shared.give(base, base + bytes)
    }

    fn backlog(&self) -> u64 {
        (self.shared.outgoing() + self.pinned.copies()) * OPERATIONS_PER_COPY
    }

    /// The driver cannot stop a kernel; it ends with the process.
    fn cancel(&self) {}
}
