//! Handles of this process and what they stand for.
//!
//! A handle is a number that is never used twice. An object lives through generations: it is made again at gpud on its
//! first use after a new attach.

use crate::connection::Pending;
use crate::device::MOST_DEVICES;
use crate::driver::capture::Captures;
use crate::driver::context::Current;
use crate::driver::graph::Graphs;
use crate::driver::link_input::Part;
use crate::driver::pool_state::PoolState;
use crate::driver::{occupancy, ready, tensor_map};
use crate::error::{CudaError, CudaResult, INVALID_HANDLE, NOT_FOUND};
use crate::image;
use crate::progress::Progress;
use crate::session::Session;
use sluice_protocol::frame::{ASKED_IMAGE_BYTES, MAX_FRAME_BYTES};
use sluice_protocol::messages::{
    EventCreate, FunctionSetAttribute, ModuleFind, ModuleLoad, ModuleQuery, StreamCreate, StreamSetAttribute,
};
use sluice_protocol::{FunctionInfo, ModuleInfo, cuda};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Longest image of a module: it travels in one frame, with a few numbers before it.
const MOST_IMAGE_BYTES: usize = MAX_FRAME_BYTES - 1024;

/// First handle; small numbers mean something else in CUDA (0 none, 1 legacy, 2 per-thread stream). Handles are not
/// addresses, but programs print and align them as if they were.
const FIRST: u64 = 0x5100_0000_0000;

/// All objects of one kind.
pub struct Table<T> {
    entries: RwLock<HashMap<u64, Arc<T>>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: RwLock::new(HashMap::new()) }
    }
}

static NEXT: AtomicU64 = AtomicU64::new(FIRST);

/// A handle that no object of this process ever had.
pub fn new_handle() -> u64 {
    NEXT.fetch_add(16, Ordering::Relaxed)
}

/// Whether a handle was ever given out.
pub fn is_handle(handle: u64) -> bool {
    (FIRST..NEXT.load(Ordering::Relaxed)).contains(&handle) && handle.is_multiple_of(16)
}

impl<T> Table<T> {
    /// Files an object under its handle.
    pub fn put(&self, handle: u64, object: T) -> Arc<T> {
        let object = Arc::new(object);
        self.entries.write().unwrap_or_else(PoisonError::into_inner).insert(handle, Arc::clone(&object));
        object
    }

    /// The object, or CUDA_ERROR_INVALID_HANDLE.
    pub fn get(&self, handle: usize) -> CudaResult<Arc<T>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(&(handle as u64)).cloned().ok_or(INVALID_HANDLE)
    }

    /// Takes the object out.
    pub fn remove(&self, handle: usize) -> CudaResult<Arc<T>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).remove(&(handle as u64)).ok_or(INVALID_HANDLE)
    }

    /// Every object.
    pub fn all(&self) -> Vec<(u64, Arc<T>)> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.iter().map(|(handle, object)| (*handle, Arc::clone(object))).collect()
    }
}

/// Everything that the program made.
#[derive(Default)]
pub struct Objects {
    pub contexts: Table<Context>,
    pub streams: Table<Stream>,
    pub events: Table<Event>,
    pub modules: Table<Module>,
    pub functions: Table<Function>,
    pub links: Table<Mutex<Link>>,
    pub pools: Table<Pool>,
    pub graphs: Graphs,
    pub captures: Captures,
    pub occupancy: occupancy::OccupancyCache,
    pub tensor_maps: tensor_map::TensorMapCache,
    /// Allocations that came from a pool: address → pool and bytes.
    pub from_pools: Mutex<HashMap<u64, (u64, u64)>>,
    pub libraries: crate::library::Objects,
}

impl Objects {
    /// A session of this device has ended, and with it the memory in its range of addresses. No later session of the
    /// process has the same range.
    pub fn end_pools(&self, ordinal: usize, (base, bytes): (u64, u64)) {
        let mut from_pools = self.from_pools.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ended: HashMap<u64, u64> = HashMap::new();
        from_pools.retain(|address, (pool, size)| {
            let has_ended = (base..base + bytes).contains(address);
            if has_ended {
                *ended.entry(*pool).or_default() += *size;
            }
            !has_ended
        });
        for (handle, pool) in self.pools.all().iter().filter(|(_, pool)| pool.device == ordinal) {
            let bytes = ended.get(handle).copied().unwrap_or_default();
            pool.state.lock().unwrap_or_else(PoisonError::into_inner).end(bytes);
        }
    }
}

/// A context. All contexts of a device share one at gpud.
pub struct Context {
    /// Ordinal of its device.
    pub device: usize,
    pub flags: AtomicU32,
    pub primary: bool,
    /// By number of CUlimit.
    pub limits: Mutex<[usize; 7]>,
    /// Contexts of other devices to whose memory the program has given it access.
    peers: Mutex<BTreeSet<u64>>,
}

/// What a fresh context has, by number of CUlimit.
pub const LIMITS: [usize; 7] = [1024, 1 << 20, 8 << 20, 2, 2048, 128, 0];
/// CU_LIMIT_STACK_SIZE
pub const STACK_LIMIT: usize = 0;
/// CU_LIMIT_PRINTF_FIFO_SIZE
pub const PRINT_LIMIT: usize = 1;
/// CU_LIMIT_MALLOC_HEAP_SIZE
pub const HEAP_LIMIT: usize = 2;

impl Context {
    /// With the limits of a fresh context.
    pub fn new(device: usize, flags: u32, primary: bool) -> Self {
        Self { device, flags: AtomicU32::new(flags), primary, limits: Mutex::new(LIMITS), peers: Mutex::default() }
    }

    /// See the field.
    pub fn peers(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream.
pub struct Stream {
    pub handle: u64,
    pub context: u64,
    /// Ordinal of its context's device.
    pub device: usize,
    pub flags: u32,
    pub priority: i32,
    /// What was set of CUstreamAttrValue.
    pub attributes: Mutex<BTreeMap<u32, [u8; 64]>>,
    /// Generation in which it exists at gpud.
    made: Mutex<u64>,
}

impl Stream {
    pub fn new(handle: u64, context: Current, flags: u32, priority: i32) -> Self {
        let Current { context, device } = context;
        Self { handle, context, device, flags, priority, attributes: Mutex::default(), made: Mutex::new(0) }
    }

    /// Makes it at gpud when this generation has none yet. CUDA_ERROR_INVALID_HANDLE on another device.
    pub fn ensure(&self, session: &Session) -> CudaResult {
        if self.device != session.device {
            return Err(INVALID_HANDLE);
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if *made != session.generation {
            session.connection.post(&StreamCreate {
                stream: self.handle,
                flags: self.flags,
                priority: self.priority,
            })?;
            for (attribute, value) in &*self.attributes.lock().unwrap_or_else(PoisonError::into_inner) {
                let (stream, attribute) = (self.handle, *attribute);
                session.connection.post(&StreamSetAttribute { stream, attribute, value })?;
            }
            *made = session.generation;
        }
        Ok(())
    }

    /// Whether it exists at gpud in this generation.
    pub fn is_in(&self, session: &Session) -> bool {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) == session.generation
    }
}

/// An event.
pub struct Event {
    pub handle: u64,
    pub context: u64,
    /// Ordinal of its context's device.
    pub device: usize,
    pub flags: u32,
    made: Mutex<u64>,
    recording: Mutex<Recording>,
    /// The newest record of which gpud has said that it was passed.
    passed: AtomicU64,
    /// The program has asked whether it was passed: later records are followed.
    queried: AtomicBool,
}

/// An event's last record.
#[derive(Clone, Default)]
pub struct Recording {
    /// Generation of the record; 0 when never recorded.
    pub generation: u64,
    /// Counts up with every record of this event.
    pub number: u64,
    /// The stream's handle at gpud, and its mark in [`crate::progress::Progress`]; the mark is unknown while the record
    /// is being posted.
    pub stream: u64,
    pub mark: u64,
    /// gpud tells when it is passed.
    pub watched: bool,
    /// That has been asked for, and the answer was not looked at yet.
    pub asked: Option<Arc<Pending>>,
    /// Known to be passed.
    pub passed: bool,
}

impl Event {
    pub fn new(handle: u64, context: Current, flags: u32) -> Self {
        let Current { context, device } = context;
        Self {
            handle,
            context,
            device,
            flags,
            made: Mutex::new(0),
            recording: Mutex::default(),
            passed: AtomicU64::new(0),
            queried: AtomicBool::new(false),
        }
    }

    /// The program asks whether it was passed.
    pub fn queried(&self) {
        self.queried.store(true, Ordering::Relaxed);
    }

    /// Whether the program has ever asked.
    pub fn was_queried(&self) -> bool {
        self.queried.load(Ordering::Relaxed)
    }

    /// The last record; records of one event are made under this lock, so that they keep their order.
    pub fn recording(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// gpud says that a record was passed. Waits for nobody.
    pub fn passed(&self, number: u64) {
        self.passed.fetch_max(number, Ordering::AcqRel);
    }

    /// Whether the last record is known to be passed.
    pub fn is_passed(&self, recording: &mut Recording, progress: &Progress) -> bool {
        recording.passed = recording.passed
            || self.passed.load(Ordering::Acquire) >= recording.number
            || progress.is_done(recording.stream, recording.mark);
        recording.passed
    }

    /// As [`Stream::ensure`].
    pub fn ensure(&self, session: &Session) -> CudaResult {
        if self.device != session.device {
            return Err(INVALID_HANDLE);
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if *made != session.generation {
            session.connection.post(&EventCreate { event: self.handle, flags: self.flags })?;
            *made = session.generation;
        }
        Ok(())
    }

    /// Whether it exists at gpud in this generation.
    pub fn is_in(&self, session: &Session) -> bool {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) == session.generation
    }
}

/// A module or library, with its image, so that it can be loaded again.
pub struct Module {
    pub handle: u64,
    /// Ordinal of a module's device; None is a library, which is loaded on each device that uses it.
    pub device: Option<usize>,
    /// A module's context; a library has none (0).
    pub context: u64,
    pub image: Arc<[u8]>,
    hash: [u8; 32],
    /// By device.
    bound: Mutex<[Bound; MOST_DEVICES]>,
    /// Function handles by name: asking twice gives the same.
    pub functions: Mutex<HashMap<String, u64>>,
}

#[derive(Default)]
struct Bound {
    generation: u64,
    /// What gpud said, in this or an earlier generation.
    info: Option<Arc<ModuleInfo>>,
}

impl Module {
    /// An image of a context, or as a library.
    pub fn new(handle: u64, of: Option<Current>, image: Arc<[u8]>) -> Self {
        let (device, context) = (of.map(|of| of.device), of.map_or(0, |of| of.context));
        let mut hash = [0; 32];
        hash.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, &image).as_ref());
        Self { handle, device, context, image, hash, bound: Mutex::default(), functions: Mutex::default() }
    }

    /// Loads it at gpud when this generation has not; the image travels once for each server.
    /// CUDA_ERROR_INVALID_HANDLE for a module of another device.
    pub fn ensure(&self, session: &Session) -> CudaResult<Arc<ModuleInfo>> {
        if self.device.is_some_and(|device| device != session.device) {
            return Err(INVALID_HANDLE);
        }
        let mut all = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let bound = &mut all[session.device];
        if let Some(info) = &bound.info
            && bound.generation == session.generation
        {
            return Ok(Arc::clone(info));
        }
        let heap = ready()?.device(session.device).heap_limit();
        let info = match self.found(session, heap)? {
            Some(info) => info,
            None if self.image.len() > MOST_IMAGE_BYTES => {
                let text = format!(
                    "the code of this module has {} bytes for the GPU; {MOST_IMAGE_BYTES} is the most",
                    self.image.len()
                );
                return Err(CudaError::new(cuda::ERROR_INVALID_IMAGE, text));
            }
            None => {
                let load = ModuleLoad { module: self.handle, hash: self.hash, heap, image: &self.image };
                session.connection.call(&load)?.info
            }
        };
        session.loaded(&info);
        let info = Arc::new(info);
        *bound = Bound { generation: session.generation, info: Some(Arc::clone(&info)) };
        Ok(info)
    }

    /// Loads it from what gpud keeps, if that has the image and this process can show that it holds it too.
    fn found(&self, session: &Session, heap: u64) -> CudaResult<Option<ModuleInfo>> {
        if self.image.len() < ASKED_IMAGE_BYTES {
            return Ok(None);
        }
        let (module, hash) = (self.handle, self.hash);
        let (known, info) = match session.proof_of(&self.image) {
            Some(proof) => {
                let answer = session.connection.call(&ModuleFind { module, hash, proof, heap })?;
                (answer.known, answer.info)
            }
            None => {
                let answer = session.connection.call(&ModuleQuery { module, hash, heap })?;
                (answer.known, answer.info)
            }
        };
        Ok((known != 0).then_some(info))
    }

    /// What is known of its functions: from gpud, else read out of PTX text.
    pub fn known(&self) -> Option<Arc<ModuleInfo>> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(info) = bound.iter().find_map(|bound| bound.info.clone()) {
            return Some(info);
        }
        let first = &mut bound[self.device.unwrap_or(0)];
        first.info = image::describe_ptx(&self.image).map(Arc::new);
        first.info.clone()
    }

    /// It has ended in this session: made again at its next use there.
    pub fn unloaded(&self, session: &Session) {
        let bound = &mut self.bound.lock().unwrap_or_else(PoisonError::into_inner)[session.device];
        bound.generation = 0;
        if let Some(info) = &bound.info {
            session.unloaded(info);
        }
    }

    /// Whether it is loaded at gpud in this generation.
    pub fn is_in(&self, session: &Session) -> bool {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)[session.device].generation == session.generation
    }
}

/// A function or kernel (one handle serves as both).
pub struct Function {
    pub handle: u64,
    pub name: String,
    pub module: Arc<Module>,
    /// By device.
    resolved: RwLock<[Option<Arc<Resolved>>; MOST_DEVICES]>,
    /// Attributes that the program set, to be set again in a new generation.
    set: Mutex<Vec<(u32, i32)>>,
}

/// A function as one generation knows it.
pub struct Resolved {
    pub generation: u64,
    pub index: u32,
    pub info: FunctionInfo,
    /// Bytes of the parameter buffer.
    pub parameter_bytes: usize,
    pub max_threads: u32,
    pub max_dynamic_shared: u32,
}

impl Function {
    pub fn new(handle: u64, name: String, module: Arc<Module>) -> Self {
        Self { handle, name, module, resolved: RwLock::default(), set: Mutex::default() }
    }

    /// The function in this generation; loads its module when that has not happened.
    #[inline]
    pub fn resolve(&self, session: &Session) -> CudaResult<Arc<Resolved>> {
        if let Some(resolved) = &self.resolved.read().unwrap_or_else(PoisonError::into_inner)[session.device]
            && resolved.generation == session.generation
        {
            return Ok(Arc::clone(resolved));
        }
        self.resolve_again(session)
    }

    #[cold]
    fn resolve_again(&self, session: &Session) -> CudaResult<Arc<Resolved>> {
        let module = self.module.ensure(session)?;
        let index = module.functions.iter().position(|function| function.name == self.name).ok_or(NOT_FOUND)?;
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        for &(attribute, value) in set.iter() {
            session.connection.post(&FunctionSetAttribute {
                module: self.module.handle,
                function: index as u32,
                attribute,
                value,
            })?;
        }
        let mut info = module.functions[index].clone();
        for &(attribute, value) in set.iter() {
            overwrite(&mut info.attributes, attribute, value);
        }
        let resolved = Arc::new(Resolved {
            generation: session.generation,
            index: index as u32,
            parameter_bytes: info.parameters.iter().map(|p| (p.offset + p.bytes) as usize).max().unwrap_or(0),
            max_threads: attribute_of(&info, 0).unwrap_or(1024) as u32,
            max_dynamic_shared: attribute_of(&info, 8).map_or(48 << 10, |bytes| bytes as u32),
            info,
        });
        self.resolved.write().unwrap_or_else(PoisonError::into_inner)[session.device] = Some(Arc::clone(&resolved));
        Ok(resolved)
    }

    /// What is known without asking gpud.
    pub fn known(&self) -> Option<FunctionInfo> {
        let module = self.module.known()?;
        let mut info = module.functions.iter().find(|function| function.name == self.name)?.clone();
        for &(attribute, value) in self.set.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            overwrite(&mut info.attributes, attribute, value);
        }
        Some(info)
    }

    /// Its module has ended on this device.
    pub fn forget(&self, device: usize) {
        self.resolved.write().unwrap_or_else(PoisonError::into_inner)[device] = None;
    }

    /// Sets an attribute for this and later generations, on all devices.
    pub fn set_attribute(&self, session: Option<&Session>, attribute: u32, value: i32) -> CudaResult {
        // Shared memory and its share of the cache, the required cluster, and permissions for clusters.
        if !matches!(attribute, 8 | 9 | 11..=15) {
            return Err(crate::error::CudaError::code(cuda::ERROR_INVALID_VALUE));
        }
        {
            let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
            overwrite(&mut set, attribute, value);
        }
        // Resolving again sends what was set.
        *self.resolved.write().unwrap_or_else(PoisonError::into_inner) = Default::default();
        if let Some(session) = session {
            self.resolve(session)?;
        }
        Ok(())
    }
}

/// The value of a CUfunction_attribute.
pub fn attribute_of(info: &FunctionInfo, attribute: u32) -> Option<i32> {
    info.attributes.iter().find(|(number, _)| *number == attribute).map(|(_, value)| *value)
}

fn overwrite(list: &mut Vec<(u32, i32)>, attribute: u32, value: i32) {
    match list.iter_mut().find(|(number, _)| *number == attribute) {
        Some(entry) => entry.1 = value,
        None => list.push((attribute, value)),
    }
}

/// A linker's state: what was added.
#[derive(Default)]
pub struct Link {
    pub context: u64,
    pub parts: Vec<Part>,
    pub output: Option<Box<[u8]>>,
    pub error_log: Option<crate::driver::jit::Log>,
    /// Most registers a thread of the kernels may use; zero: as many as they like.
    pub most_registers: u32,
}

impl Link {
    /// Writes what is wrong to the program's log.
    pub fn tell<T>(&mut self, result: &CudaResult<T>) {
        if let Some(log) = &mut self.error_log {
            // SAFETY: the program keeps its buffer and its lists until cuLinkDestroy.
            unsafe { log.tell(result) };
        }
    }
}

/// A memory pool: its attributes and its account. Its memory comes from the session's arena.
#[derive(Default)]
pub struct Pool {
    /// Ordinal of its device.
    pub device: usize,
    pub own: bool,
    /// 0 = no limit.
    pub most_bytes: u64,
    pub state: Mutex<PoolState>,
}

#[cfg(test)]
mod tests {
    use super::{Objects, Pool, new_handle};

    #[test]
    fn the_end_of_a_session_ends_its_range_of_addresses_alone() {
        let objects = Objects::default();
        let [first, second] = [0, 1].map(|device| {
            let handle = new_handle();
            (handle, objects.pools.put(handle, Pool { device, ..Pool::default() }))
        });
        for (address, (handle, pool)) in [(0x1000, &first), (0x5000, &first), (0x1800, &second)] {
            pool.state.lock().expect("not poisoned").take(100, u64::MAX);
            objects.from_pools.lock().expect("not poisoned").insert(address, (*handle, 100));
        }
        objects.end_pools(0, (0x1000, 0x800));
        let used = [&first, &second].map(|(_, pool)| pool.state.lock().expect("not poisoned").used);
        assert_eq!(used, [100, 100]);
        let from_pools = objects.from_pools.lock().expect("not poisoned");
        assert!(!from_pools.contains_key(&0x1000) && from_pools.len() == 2);
    }
}
