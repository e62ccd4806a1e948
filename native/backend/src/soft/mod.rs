//! The software GPU as a device: sluice-softgpu runs the kernels, the timeline orders them.

mod graph;
pub(crate) mod image;
mod libraries;
mod memory;
mod physical;
mod pinned;
mod window;
mod words;

use crate::attributes;
use crate::device::{Device, Done, ErrorObserver, HostWork, LONG, Printer};
use crate::error::{CudaError, CudaResult, code};
use crate::gate::Gate;
use crate::graph::{Executable, Extent, GraphId, HostSide, MemoryOperation, Node, NodeWork, Planes, RecordingId};
use crate::peer::{Borrower, Part};
use crate::pinned::PinnedPart;
use crate::timeline::{Job, Timeline};
use crate::types::{
    Copy2D, DeviceDescription, EventId, Fill, FunctionInfo, FunctionRef, GlobalInfo, LaunchAttribute, LaunchConfig,
    LibraryAnswer, LibraryCall, ModuleId, ModuleInfo, Running, StreamId,
};
use crate::window::{Opened, Way};
use memory::Memory;
use physical::Physical;
use sluice_softgpu::{
    Arena, DEFAULT_HEAP, Engine, Fault, Heap, KernelInfo, Launch, Lender, LoadedModule, Module, PAGE, plain_name,
};
pub use sluice_softlibs::Metered;
use sluice_softlibs::Recorded;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use window::ArenaWindow;

/// Copies up to this size run on the thread that issues them.
const LIGHT_BYTES: u64 = 1 << 20;
/// Queued host data count as one operation for so many bytes: 256 MiB fill the backlog.
const BYTES_PER_OPERATION: u64 = 4 << 10;
/// Bytes of the host that a module takes for each byte of PTX: twice the measured factor.
const IMAGE_FACTOR: u64 = 8;
/// Bytes of the host that a module takes for each function; a function may have 40 bytes of PTX.
const FUNCTION_BYTES: u64 = 2 << 10;
/// Bytes of the host that a queued operation counts besides its data.
const OPERATION_BYTES: u64 = 512;
/// Shared memory that a block has without asking for more.
const DEFAULT_SHARED: u32 = 48 << 10;
/// Shared memory that a block can ask for.
const MOST_SHARED: u32 = 64 << 10;

/// See the module.
pub struct SoftDevice {
    timeline: Timeline,
    shared: Arc<Shared>,
    physical: Mutex<Physical>,
    modules: Mutex<HashMap<ModuleId, Loaded>>,
    libraries: Mutex<sluice_softlibs::Libraries>,
    recordings: Mutex<HashMap<RecordingId, Recorded>>,
    graphs: Mutex<HashMap<GraphId, Arc<Executable>>>,
    words: words::Words,
}

/// What queued work needs.
struct Shared {
    /// Whether an allocation ends with its last byte.
    exact: bool,
    memory: OnceLock<Memory>,
    /// Whether other workers may have a view of it.
    lent: AtomicBool,
    engine: Engine,
    cancel: AtomicBool,
    printer: OnceLock<Printer>,
    /// What `malloc` of kernels takes from, once a module needs it.
    heap: Mutex<Option<Arc<Heap>>>,
    /// How large it is to be.
    wished_heap: AtomicU64,
    /// What libraries have worked; the engine knows it of kernels.
    library_time_ns: AtomicU64,
    /// Host data that waits in queued copies, bytes.
    waiting_bytes: AtomicU64,
}

/// Host data of a queued operation. They count until the operation has run, or is dropped.
struct Waiting {
    shared: Arc<Shared>,
    bytes: u64,
}

impl Waiting {
    fn of(shared: &Arc<Shared>, bytes: usize) -> Waiting {
        let bytes = bytes as u64;
        shared.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        Waiting { shared: Arc::clone(shared), bytes }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.shared.waiting_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

struct Loaded {
    module: Arc<LoadedModule>,
    kernels: Vec<Kernel>,
    /// Where the module's variables lie, and how long they are together.
    variables: Option<(u64, u64)>,
}

struct Kernel {
    name: Arc<str>,
    static_shared: u32,
    most_dynamic: u32,
    param_bytes: u32,
    unsupported: Option<String>,
}

/// The software GPUs of a host; `host` distinguishes it from others.
pub fn describe(count: u32, memory_bytes: u64, host: &[u8]) -> Vec<DeviceDescription> {
    let describe = |index| DeviceDescription {
        uuid: device_uuid(b"soft", host, index),
        index,
        gpu_type: "soft".to_owned(),
        model: attributes::software_gpu(memory_bytes).name,
        memory_bytes,
        profile: attributes::software_gpu(memory_bytes),
    };
    (0..count).map(describe).collect()
}

/// A stable `GPU-…` for a device without a serial number of its own.
pub fn device_uuid(kind: &[u8], host: &[u8], index: u32) -> String {
    // FNV-1a, twice with different beginnings: distinct is enough, nobody has to trust it.
    let hash = |mut state: u64| {
        for byte in kind.iter().chain(host).chain(&index.to_le_bytes()) {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        state
    };
    let (high, low) = (hash(0xcbf2_9ce4_8422_2325), hash(0x9e37_79b9_7f4a_7c15));
    format!(
        "GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// What a kernel's attributes are on this device.
pub fn describe_kernel(kernel: &KernelInfo) -> FunctionInfo {
    FunctionInfo {
        name: kernel.name.clone(),
        params: kernel.params.iter().map(|param| (param.offset, param.size)).collect(),
        max_threads_per_block: kernel.max_threads,
        static_shared_bytes: kernel.shared_bytes,
        const_bytes: kernel.const_bytes,
        local_bytes: kernel.local_bytes,
        registers: kernel.registers,
        ptx_version: kernel.ptx_version,
        binary_version: 75,
        max_dynamic_shared_bytes: DEFAULT_SHARED.saturating_sub(kernel.shared_bytes),
    }
}

/// Reads PTX; what is wrong with it is told in CUDA's terms.
fn parse(ptx: &[u8]) -> CudaResult<Module> {
    Module::parse(ptx).map_err(|error| CudaError::new(error.code, format!("PTX {error}")))
}

fn bad_address(error: &std::io::Error) -> CudaError {
    CudaError::new(code::INVALID_VALUE, format!("the address range is not allocated: {error}"))
}

impl SoftDevice {
    /// Opens a device with an engine of so many threads (0: one for each core).  `exact` has every access checked against
    /// the bytes that were asked for, which a card does not do.
    pub fn open(threads: usize, exact: bool, observer: ErrorObserver) -> CudaResult<SoftDevice> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = Shared {
            memory: OnceLock::new(),
            exact,
            lent: AtomicBool::new(false),
            engine: Engine::new(if threads == 0 { cores } else { threads }),
            cancel: AtomicBool::new(false),
            printer: OnceLock::new(),
            heap: Mutex::default(),
            wished_heap: AtomicU64::new(DEFAULT_HEAP),
            library_time_ns: AtomicU64::new(0),
            waiting_bytes: AtomicU64::new(0),
        };
        let (timeline, shared) = (Timeline::new(observer), Arc::new(shared));
        let words = words::Words::new(Box::new(timeline.stopped()));
        let (physical, modules, graphs) = (Mutex::default(), Mutex::default(), Mutex::default());
        Ok(SoftDevice {
            timeline,
            shared,
            physical,
            modules,
            graphs,
            libraries: Mutex::default(),
            recordings: Mutex::default(),
            words,
        })
    }

    fn physical(&self) -> MutexGuard<'_, Physical> {
        self.physical.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn modules(&self) -> MutexGuard<'_, HashMap<ModuleId, Loaded>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fill, and whether it takes microseconds.
    fn fill_job(&self, fill: Fill) -> CudaResult<(bool, Job)> {
        if !matches!(fill.element, 1 | 2 | 4) || !fill.dst.is_multiple_of(u64::from(fill.element)) {
            return Err(CudaError::new(code::INVALID_VALUE, "an element of 1, 2 or 4 bytes, aligned to its size"));
        }
        let shared = Arc::clone(&self.shared);
        let width = fill.width.saturating_mul(u64::from(fill.element));
        let extent = Extent { width, height: fill.height, depth: 1 };
        let rows = Planes { address: fill.dst, pitch: fill.pitch, slice: 0 };
        let light = graph::length(extent, &[rows])? <= LIGHT_BYTES;
        let job = Box::new(move || {
            let arena = shared.memory()?.arena();
            let value = fill.value.to_le_bytes();
            let pattern = value.get(..fill.element as usize).unwrap_or(&value);
            for (row, _) in extent.rows(rows) {
                arena.fill(row, pattern, fill.width as usize).map_err(|error| bad_address(&error))?;
            }
            Ok(())
        });
        Ok((light, job))
    }

    /// A launch, checked.
    fn kernel_job(&self, function: FunctionRef, config: LaunchConfig) -> CudaResult<Job> {
        if config.attributes.iter().any(LaunchAttribute::is_cluster) {
            return Err(CudaError::new(code::NOT_SUPPORTED, "the software GPU has no thread block clusters"));
        }
        let modules = self.modules();
        let loaded = modules.get(&function.module);
        let found = loaded.and_then(|m| Some((Arc::clone(&m.module), m.kernels.get(function.index as usize)?)));
        let (module, kernel) =
            found.ok_or_else(|| CudaError::new(code::INVALID_HANDLE, "there is no such function"))?;
        if let Some(reason) = &kernel.unsupported {
            return Err(CudaError::new(code::NO_BINARY_FOR_GPU, format!("PTX {reason}")));
        }
        if config.shared_bytes > kernel.most_dynamic || config.params.len() < kernel.param_bytes as usize {
            return Err(CudaError::new(code::INVALID_VALUE, "shared memory or parameters do not fit the kernel"));
        }
        let name = Arc::clone(&kernel.name);
        let cooperative = config.cooperative || config.attributes.iter().any(LaunchAttribute::is_cooperative);
        drop(modules);
        let shared = Arc::clone(&self.shared);
        let waiting = Waiting::of(&shared, config.params.len() + size_of_val(config.attributes.as_slice()));
        let job = Box::new(move || {
            drop(waiting);
            let heap = shared.heap();
            let launch = Launch {
                module: &module,
                kernel: &name,
                grid: config.grid,
                block: config.block,
                dynamic_shared: config.shared_bytes,
                params: &config.params,
                cooperative,
                heap: heap.as_deref(),
            };
            let (arena, mut printed) = (shared.memory()?.arena(), String::new());
            let outcome = shared.engine.launch_printing(arena, &launch, &shared.cancel, &mut printed);
            if let Some(printer) = shared.printer.get()
                && !printed.is_empty()
            {
                printer(&printed);
            }
            outcome.map(drop).map_err(|fault| CudaError::new(fault.cuda_code(), shared.describe(&fault)))
        });
        Ok(job)
    }

    fn place(&self, module: Module) -> CudaResult<(LoadedModule, Option<(u64, u64)>)> {
        let mut offsets = Vec::new();
        let mut bytes = 0u64;
        for global in module.globals() {
            bytes = bytes.next_multiple_of(u64::from(global.align.max(16)));
            offsets.push(bytes);
            bytes = bytes.saturating_add(global.size);
        }
        let memory = self.shared.memory()?;
        let base = if bytes == 0 { 0 } else { memory.take_variables(bytes)? };
        let mut next = offsets.into_iter();
        let placed =
            LoadedModule::new(Arc::new(module), |_| Ok::<u64, CudaError>(base + next.next().unwrap_or_default()))?;
        placed.initialise(memory.arena()).map_err(|error| CudaError::new(code::OUT_OF_MEMORY, error.to_string()))?;
        Ok((placed, (bytes > 0).then_some((base, bytes))))
    }
}

/// The lease's memory, of which launches borrow.
struct Lease(Arc<dyn Gate>);

impl Lender for Lease {
    fn lend(&self, bytes: u64) -> bool {
        self.0.charge(bytes)
    }

    fn take_back(&self, bytes: u64) {
        self.0.discharge(bytes);
    }
}

impl Shared {
    fn heap(&self) -> Option<Arc<Heap>> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the heap, if there is none.
    fn make_heap(&self) -> CudaResult<()> {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        if heap.is_none() {
            let bytes = self.wished_heap.load(Ordering::Relaxed).clamp(PAGE, u64::MAX - PAGE).next_multiple_of(PAGE);
            let base = self.memory()?.take_variables(bytes)?;
            // SAFETY: the pages were mapped for the heap alone, and are given back behind all queued launches.
            *heap = Some(Arc::new(unsafe { Heap::new(base, bytes) }));
        }
        Ok(())
    }

    /// A fault, for a person: an address that is not allocated with what is allocated before it.
    fn describe(&self, fault: &Fault) -> String {
        let nearest = match fault {
            Fault::IllegalAddress { address, shared_bytes: None, .. } => {
                self.memory.get().and_then(|memory| memory.nearest(*address))
            }
            _ => None,
        };
        nearest.map_or_else(|| fault.to_string(), |nearest| format!("{fault}: {nearest}"))
    }

    fn memory(&self) -> CudaResult<&Memory> {
        self.memory.get().ok_or_else(|| CudaError::new(code::UNKNOWN, "the session has no address range"))
    }
}

impl Device for SoftDevice {
    fn peers(&self, others: &[String]) -> Vec<String> {
        self.shared.lent.store(!others.is_empty(), Ordering::Relaxed);
        others.to_vec()
    }

    fn lend(&self, to: Arc<dyn Borrower>) -> CudaResult<()> {
        let arena = self.shared.memory()?.arena();
        let file =
            arena.file().ok_or_else(|| CudaError::new(code::NOT_SUPPORTED, "the memory is this worker's alone"))?;
        let range = (arena.base(), arena.len());
        let part = Part { range, address: range.0, bytes: range.1 };
        to.give(part, file).map_err(|error| CudaError::new(code::PEER_ACCESS_UNSUPPORTED, error.to_string()))
    }

    fn borrow(&self, part: Part, memory: OwnedFd) -> CudaResult<()> {
        let view = Arena::view(part.address, part.bytes, memory);
        let view = view.map_err(|error| CudaError::new(code::PEER_ACCESS_UNSUPPORTED, error.to_string()))?;
        self.shared.memory()?.arena().add_view(view);
        Ok(())
    }

    fn give_back(&self, address: u64, done: Box<dyn FnOnce() + Send>) {
        let shared = Arc::clone(&self.shared);
        self.timeline.after_all(Box::new(move || {
            // The last launches may not have let go of the arena yet.
            let ending = std::thread::Builder::new().name("view".to_owned()).spawn(move || {
                if let Some(memory) = shared.memory.get() {
                    memory.arena().end_view(address);
                }
                done();
            });
            drop(ending);
        }));
    }

    fn reserve(&self, base: u64, bytes: u64) -> CudaResult<u64> {
        let memory = Memory::reserve(base, bytes, self.shared.exact, self.shared.lent.load(Ordering::Relaxed))?;
        let usable = memory.usable();
        let taken = self.shared.memory.set(memory);
        taken.map(|()| usable).map_err(|_| CudaError::new(code::INVALID_VALUE, "a range is already reserved"))
    }

    fn alloc(&self, address: u64, bytes: u64) -> CudaResult<()> {
        if let Some(failure) = self.timeline.failure() {
            return Err(failure);
        }
        if self.shared.memory()?.alloc(address, bytes)? {
            // The address was freed while work that may use it is still queued: what follows comes after that work.
            self.timeline.fence();
        }
        Ok(())
    }

    fn free(&self, address: u64, done: Done<u64>) -> CudaResult<()> {
        let block = self.shared.memory()?.free(address)?;
        let shared = Arc::clone(&self.shared);
        self.timeline.after_all(Box::new(move || {
            done(shared.memory().and_then(|memory| memory.release(block)));
        }));
        Ok(())
    }

    fn create_physical(&self, handle: u64, bytes: u64) -> CudaResult<()> {
        self.timeline.failure().map_or_else(|| self.physical().create(handle, bytes), Err)
    }

    fn release_physical(&self, handle: u64) -> CudaResult<()> {
        self.physical().release(handle)
    }

    fn map_physical(&self, address: u64, bytes: u64, handle: u64) -> CudaResult<()> {
        let memory = self.shared.memory()?;
        self.physical().map(memory, address, bytes, handle)
    }

    fn unmap_physical(&self, address: u64, bytes: u64) -> CudaResult<()> {
        let memory = self.shared.memory()?;
        self.physical().unmap(memory, address, bytes)
    }

    fn set_access(&self, address: u64, bytes: u64, accessible: bool) -> CudaResult<()> {
        let memory = self.shared.memory()?;
        self.physical().set_access(memory, address, bytes, accessible)
    }

    fn copy_in(&self, stream: StreamId, dst: u64, data: &[u8]) -> CudaResult<()> {
        let arena = self.shared.memory()?.arena();
        if !arena.contains(dst, data.len() as u64) && !data.is_empty() {
            return Err(bad_address(&std::io::Error::other(format!("{dst:#x}, {} bytes", data.len()))));
        }
        if self.timeline.is_clear(stream)? {
            return arena.write(dst, data).map_err(|error| bad_address(&error));
        }
        let (shared, data) = (Arc::clone(&self.shared), data.to_vec());
        let waiting = Waiting::of(&shared, data.len());
        let job = Box::new(move || {
            drop(waiting);
            shared.memory()?.arena().write(dst, &data).map_err(|error| bad_address(&error))
        });
        self.timeline.submit_light(stream, job)
    }

    fn copy_out(&self, stream: StreamId, src: u64, bytes: u64, done: Done<Vec<u8>>) -> CudaResult<()> {
        let (shared, data) = (Arc::clone(&self.shared), Arc::new(Mutex::new(Vec::new())));
        let read = Arc::clone(&data);
        let job = Box::new(move || {
            let arena = shared.memory()?.arena();
            if !arena.contains(src, bytes) && bytes > 0 {
                return Err(bad_address(&std::io::Error::other(format!("{src:#x}, {bytes} bytes"))));
            }
            let mut out = vec![0; bytes as usize];
            arena.read(src, &mut out).map_err(|error| bad_address(&error))?;
            *read.lock().unwrap_or_else(PoisonError::into_inner) = out;
            Ok(())
        });
        let answer: Done<()> = Box::new(move |outcome| {
            let data = std::mem::take(&mut *data.lock().unwrap_or_else(PoisonError::into_inner));
            done(outcome.map(|()| data));
        });
        self.timeline.submit_call(stream, bytes <= LIGHT_BYTES, job, answer)
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
        if bytes == 0 || !self.shared.memory()?.arena().contains(address, bytes) {
            return Err(bad_address(&std::io::Error::other(format!("{address:#x}, {bytes} bytes"))));
        }
        let work: HostWork = Box::new(move |go_on| opened(Arc::new(ArenaWindow::new(address, bytes, go_on))));
        match way {
            Way::In => self.timeline.submit_host_call(stream, work, done),
            Way::Out => {
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
        let (shared, bytes) = (Arc::clone(&self.shared), part.bytes() as u64);
        if !shared.memory()?.arena().contains(address, bytes) {
            return Err(bad_address(&std::io::Error::other(format!("{address:#x}, {bytes} bytes"))));
        }
        let job = Box::new(move || {
            let copied = pinned::copy(shared.memory()?.arena(), way, address, &part);
            copied.map_err(|error| bad_address(&error))
        });
        self.timeline.submit_call(stream, bytes <= LIGHT_BYTES, job, done)
    }

    fn copy_2d(&self, stream: StreamId, copy: Copy2D) -> CudaResult<()> {
        let extent = Extent { width: copy.width, height: copy.height, depth: 1 };
        let [target, source] = [(copy.dst, copy.dst_pitch), (copy.src, copy.src_pitch)]
            .map(|(address, pitch)| Planes { address, pitch, slice: 0 });
        let (light, job) = self.copy_job(target, source, extent)?;
        if light { self.timeline.submit_light(stream, job) } else { self.timeline.submit(stream, job) }
    }

    fn fill(&self, stream: StreamId, fill: Fill) -> CudaResult<()> {
        let (light, job) = self.fill_job(fill)?;
        if light { self.timeline.submit_light(stream, job) } else { self.timeline.submit(stream, job) }
    }

    fn load_module(&self, module: ModuleId, image: &[u8]) -> CudaResult<ModuleInfo> {
        if let Some(failure) = self.timeline.failure() {
            return Err(failure);
        }
        if self.modules().contains_key(&module) {
            return Err(CudaError::new(code::INVALID_HANDLE, "the module's handle is already in use"));
        }
        let parsed = parse(&image::ptx_of(image)?)?;
        let first = parsed.kernels().next().and_then(|kernel| kernel.unsupported.clone());
        if let Some(error) = first
            && parsed.kernels().all(|kernel| kernel.unsupported.is_some())
        {
            return Err(CudaError::new(code::NO_BINARY_FOR_GPU, format!("PTX {error}")));
        }
        if parsed.uses_heap() {
            self.shared.make_heap()?;
        }
        let (placed, variables) = self.place(parsed)?;
        let parsed = placed.module();
        let functions: Vec<FunctionInfo> = parsed.kernels().map(describe_kernel).collect();
        let globals = parsed.globals().filter_map(|global| {
            let (address, bytes) = placed.global(&global.name)?;
            Some(GlobalInfo { name: global.name.clone(), address, bytes })
        });
        let globals = globals.collect();
        let kernels = parsed.kernels().map(|kernel| Kernel {
            name: kernel.name.as_str().into(),
            static_shared: kernel.shared_bytes,
            most_dynamic: DEFAULT_SHARED.saturating_sub(kernel.shared_bytes),
            param_bytes: kernel.param_bytes,
            unsupported: kernel.unsupported.as_ref().map(ToString::to_string),
        });
        let kernels = kernels.collect();
        let bytes = variables.map_or(0, |(_, bytes)| bytes);
        self.modules().insert(module, Loaded { module: Arc::new(placed), kernels, variables });
        let heap = self.shared.heap().map_or(0, |heap| heap.bytes());
        Ok(ModuleInfo { functions, globals, bytes, heap })
    }

    /// Text of PTX, also of some that is packed, is kept parsed and compiled.
    fn module_bytes(&self, image: &[u8]) -> u64 {
        // An image that cannot be unpacked is not loaded either.
        let Ok(ptx) = image::ptx_of(image) else { return 0 };
        let count = |word: &[u8]| ptx.windows(word.len()).filter(|text| *text == word).count() as u64;
        IMAGE_FACTOR * ptx.len() as u64 + FUNCTION_BYTES * (count(b".entry") + count(b".func"))
    }

    fn check_ptx(&self, ptx: &[u8]) -> CudaResult<()> {
        parse(ptx).map(drop)
    }

    fn wish_heap(&self, bytes: u64) {
        self.shared.wished_heap.store(bytes, Ordering::Relaxed);
    }

    fn limit_printed(&self, bytes: u64) {
        self.shared.engine.keep_printed(bytes as usize);
    }

    fn reset(&self) {
        let heap = self.shared.heap.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(heap) = heap else { return };
        let shared = Arc::clone(&self.shared);
        self.timeline.after_all(Box::new(move || {
            if let Ok(memory) = shared.memory() {
                memory.give_variables_back(heap.base(), heap.bytes());
            }
        }));
    }

    fn unload_module(&self, module: ModuleId) -> CudaResult<()> {
        let gone = self.modules().remove(&module);
        let gone = gone.ok_or_else(|| CudaError::new(code::INVALID_HANDLE, "there is no such module"))?;
        if let Some((base, bytes)) = gone.variables {
            let shared = Arc::clone(&self.shared);
            self.timeline.after_all(Box::new(move || {
                if let Ok(memory) = shared.memory() {
                    memory.give_variables_back(base, bytes);
                }
            }));
        }
        Ok(())
    }

    fn set_function_attribute(&self, function: FunctionRef, attribute: u32, value: i32) -> CudaResult<()> {
        let mut modules = self.modules();
        let kernel = modules.get_mut(&function.module).and_then(|m| m.kernels.get_mut(function.index as usize));
        let kernel = kernel.ok_or_else(|| CudaError::new(code::INVALID_HANDLE, "there is no such function"))?;
        match attribute {
            // MAX_DYNAMIC_SHARED_SIZE_BYTES
            8 => {
                let wanted = u32::try_from(value).unwrap_or(u32::MAX);
                if wanted > MOST_SHARED.saturating_sub(kernel.static_shared) {
                    return Err(CudaError::new(code::INVALID_VALUE, "more shared memory than a block can have"));
                }
                kernel.most_dynamic = wanted;
                Ok(())
            }
            // PREFERRED_SHARED_MEMORY_CARVEOUT is a hint; of clusters there are those of one block.
            9 | 11..=15 => Ok(()),
            _ => Err(CudaError::new(code::INVALID_VALUE, "the attribute cannot be set")),
        }
    }

    fn launch(&self, stream: StreamId, function: FunctionRef, config: LaunchConfig) -> CudaResult<()> {
        self.timeline.submit(stream, self.kernel_job(function, config)?)
    }

    fn ask(&self, gate: Arc<dyn Gate>) {
        self.shared.engine.borrow_from(Box::new(Lease(Arc::clone(&gate))));
        let own = Arc::clone(&gate);
        self.shared.engine.when_paused(Box::new(move |wait| {
            own.leave();
            wait();
            own.enter();
        }));
        self.timeline.ask(gate);
    }

    fn print_to(&self, printer: Printer) {
        // Told once; a second one would print everything twice.
        let _ = self.shared.printer.set(printer);
    }

    fn host_work(&self, stream: StreamId, work: HostWork) -> CudaResult<()> {
        self.timeline.submit_host(stream, work)
    }

    fn create_stream(&self, stream: StreamId, flags: u32, _priority: i32) -> CudaResult<()> {
        self.timeline.create_stream(stream, flags)
    }

    fn destroy_stream(&self, stream: StreamId) -> CudaResult<()> {
        self.timeline.destroy_stream(stream)
    }

    fn synchronize_stream(&self, stream: StreamId, done: Done<()>) -> CudaResult<()> {
        self.timeline.synchronize_stream(stream, done)
    }

    fn mark(&self, stream: StreamId, passed: Box<dyn FnOnce() + Send>) -> CudaResult<()> {
        self.timeline.mark(stream, passed)
    }

    fn query_stream(&self, stream: StreamId) -> CudaResult<bool> {
        self.timeline.query_stream(stream)
    }

    fn wait_event(&self, stream: StreamId, event: EventId) -> CudaResult<()> {
        self.timeline.wait_event(stream, event)
    }

    fn create_event(&self, event: EventId, flags: u32) -> CudaResult<()> {
        self.timeline.create_event(event, flags)
    }

    fn destroy_event(&self, event: EventId) -> CudaResult<()> {
        self.timeline.destroy_event(event)
    }

    fn record_event(&self, event: EventId, stream: StreamId) -> CudaResult<()> {
        self.timeline.record_event(event, stream)
    }

    fn synchronize_event(&self, event: EventId, done: Done<()>) -> CudaResult<()> {
        self.timeline.synchronize_event(event, done)
    }

    fn query_event(&self, event: EventId) -> CudaResult<bool> {
        self.timeline.query_event(event)
    }

    fn elapsed(&self, start: EventId, end: EventId) -> CudaResult<f32> {
        self.timeline.elapsed(start, end)
    }

    fn watch_event(&self, event: EventId, passed: Box<dyn FnOnce() + Send>) -> CudaResult<bool> {
        self.timeline.watch_event(event, passed)
    }

    fn memory_operations(&self, stream: StreamId, operations: Vec<MemoryOperation>) -> CudaResult<()> {
        let work = self.words.work(&self.shared, operations)?;
        self.timeline.submit_later(stream, work)
    }

    fn instantiate_graph(
        &self,
        graph: GraphId,
        _flags: u64,
        nodes: Vec<Node>,
        host: Arc<dyn HostSide>,
    ) -> CudaResult<()> {
        self.instantiate(graph, Executable { nodes, host })
    }

    fn update_graph(&self, graph: GraphId, changes: Vec<(u32, bool, NodeWork)>) -> CudaResult<()> {
        self.update(graph, changes)
    }

    fn launch_graph(&self, graph: GraphId, stream: StreamId) -> CudaResult<()> {
        self.timeline.submit_steps(stream, self.steps(graph)?)
    }

    /// There is nothing to prepare.
    fn upload_graph(&self, graph: GraphId, _stream: StreamId) -> CudaResult<()> {
        self.graph(graph).map(drop)
    }

    fn destroy_graph(&self, graph: GraphId) -> CudaResult<()> {
        self.forget(graph)
    }

    fn synchronize(&self, done: Done<()>) -> CudaResult<()> {
        self.timeline.synchronize(done);
        Ok(())
    }

    fn open_library(&self, library: u32) -> CudaResult<Vec<u32>> {
        libraries::open(library)
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
        let libraries = Duration::from_nanos(self.shared.library_time_ns.load(Ordering::Relaxed));
        self.shared.engine.worked() + libraries
    }

    /// The engine's threads stand for multiprocessors.
    fn sm_active(&self) -> Option<Duration> {
        Some(self.shared.engine.active())
    }

    fn running(&self) -> Option<Running> {
        let oldest = self.shared.engine.running().into_iter().find(|launch| launch.worked >= LONG)?;
        let kernel = plain_name(&oldest.kernel).to_owned();
        Some(Running { kernel, done: oldest.done, blocks: oldest.blocks, worked: oldest.worked })
    }

    fn pause(&self, paused: bool) {
        self.shared.engine.pause(paused);
    }

    /// The software GPU's memory is host memory: what is parked stays where it is, only on another account.
    fn park(&self) -> CudaResult<u64> {
        Ok(self.shared.memory()?.allocated() + self.physical().bytes())
    }

    fn unpark(&self) -> CudaResult<()> {
        Ok(())
    }

    fn queued_bytes(&self) -> u64 {
        self.timeline.backlog() * OPERATION_BYTES + self.shared.waiting_bytes.load(Ordering::Relaxed)
    }

    fn backlog(&self) -> u64 {
        self.timeline.backlog().max(self.shared.waiting_bytes.load(Ordering::Relaxed) / BYTES_PER_OPERATION)
    }

    fn cancel(&self) {
        self.shared.cancel.store(true, Ordering::Release);
    }
}
