//! One generation: a session on one gpud, its address range and credit.

use crate::arena::{Arena, Lookup};
use crate::connection::{Connection, Notices};
use crate::dial::{self, DialError, Ticket};
use crate::error::{CudaError, CudaResult};
use crate::host::HostSide;
use crate::mappings::Mappings;
use crate::progress::Progress;
use crate::{journal, message, output};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{Context, SHA256};
use sluice_protocol::control::{AsyncError, LeaseEnded, PeerLost};
use sluice_protocol::handshake::{AddressRange, IMAGE_CONTEXT, RefusedCode, Welcome};
use sluice_protocol::messages::{
    ContextReset, LeaseProcesses, MemAlloc, MemFree, MemGrow, MemInfo, PeerLink, PhysicalCreate, PhysicalRelease,
    PrintLimit, Rebind, StackLimit,
};
use sluice_protocol::{
    DecodeError, LEASE_PROCESSES, LeaseProcess, MODULE_STORE, ModuleInfo, PRINT_LIMIT, Reader, STACK_LIMIT, Wire, cuda,
    opcode,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const BOUND: u8 = 0;
const PARKED: u8 = 1;
const LOST: u8 = 2;

/// Device addresses of one generation: at most this many bytes.
const RANGE_BYTES: u64 = 256 << 30;
/// Where ranges are proposed first: above programs and their heap, below libraries and stacks.
const RANGE_START: u64 = 0x2000_0000_0000;

/// See the module's documentation.
pub struct Session {
    /// Counts up in the life of the process, over all its devices.
    pub generation: u64,
    /// Ordinal of the device in this process.
    pub device: usize,
    pub connection: Arc<Connection>,
    pub shared: Arc<Shared>,
    pub welcome: Welcome,
    /// The program has asked whether an event was passed.
    queries_events: AtomicBool,
    /// What is known to be done at gpud.
    pub progress: Progress,
    /// What its server knows of the libraries beside the driver.
    pub libraries: crate::library::Remote,
    /// Whether another device reaches the memory of this one.
    lent: AtomicBool,
    /// Held by who asks for another device's memory.
    linking: Mutex<()>,
}

/// What the connection's reading thread may touch.
pub struct Shared {
    phase: AtomicU8,
    loss: Mutex<Option<String>>,
    arena: Mutex<Arena>,
    sticky: AtomicBool,
    error: Mutex<Option<CudaError>>,
    memory_bytes: AtomicU64,
    lease_id: Mutex<String>,
    /// Freed while parked: gpud hears of it after the next attach.
    deferred: Mutex<Vec<u64>>,
    /// Module globals: (address, bytes).
    globals: Mutex<Vec<(u64, u64)>>,
    /// Bytes of the heap for `malloc` in kernels; 0: no module has needed one.
    heap: AtomicU64,
    /// Host functions and memory that gpud asks for.
    pub host: HostSide,
    /// The program's own physical memory.
    mappings: Mutex<Mappings>,
    /// Sessions of other devices whose memory was asked for, by generation.
    peers: Mutex<BTreeMap<u64, Peer>>,
}

/// Another device's session.
struct Peer {
    /// Of its welcome.
    nonce: String,
    /// Whether its memory is reached.
    reached: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a program hears whose lease has ended without a word of the GPU server about it.
pub const GIVEN_BACK: &str = "This GPU was given back. Run %gpu attach to borrow one again.";

impl Shared {
    /// Nothing reaches the GPU any more, nor comes from there.
    fn lose(&self) {
        self.phase.store(LOST, Ordering::Release);
        self.host.fail(cuda::ERROR_DEVICE_UNAVAILABLE);
    }

    /// The error that is held; one that is not sticky is told once.
    fn take_error(&self) -> CudaResult {
        let mut held = lock(&self.error);
        match &*held {
            Some(error) if cuda::is_sticky(error.code) => Err(error.clone()),
            _ => {
                self.sticky.store(false, Ordering::Release);
                held.take().map_or(Ok(()), Err)
            }
        }
    }
}

impl Notices for Shared {
    fn async_error(&self, error: AsyncError) {
        journal::note(format!("the GPU server: error {}: {}", error.code, error.text));
        if error.sticky {
            let code = error.code;
            *lock(&self.error) = Some(CudaError::new(code, error.text));
            self.sticky.store(true, Ordering::Release);
            self.host.fail(code);
        }
    }

    fn lease_ended(&self, ended: LeaseEnded) {
        // Under the lock of the words, which `unpark` takes too: what gpud has parked does not become usable again.
        journal::note(format!("the GPU server: {}", ended.reason));
        let mut loss = lock(&self.loss);
        *loss = Some(ended.reason);
        if ended.parked {
            let _ = self.phase.compare_exchange(BOUND, PARKED, Ordering::AcqRel, Ordering::Acquire);
        } else {
            self.lose();
        }
    }

    fn notice(&self, opcode: u16, payload: &[u8]) -> Result<(), DecodeError> {
        if opcode == opcode::PEER_LOST {
            let lost = PeerLost::take(&mut Reader::new(payload))?;
            let mut peers = lock(&self.peers);
            peers.values_mut().filter(|peer| peer.nonce == lost.nonce).for_each(|peer| peer.reached = false);
            return Ok(());
        }
        self.host.notice(opcode, payload)
    }

    fn printed(&self, text: &str) {
        output::keep(text);
    }

    fn credit_recall(&self, bytes: u64) -> u64 {
        // A thread may hold the arena while it waits for room in the window, which only this thread can make.
        for _ in 0..20 {
            if let Ok(mut arena) = self.arena.try_lock() {
                return arena.give_up_credit(bytes);
            }
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        0
    }

    fn failed_late(&self, error: CudaError) {
        // With the lease everything fails, and says so itself.
        if error.code != cuda::ERROR_DEVICE_UNAVAILABLE {
            journal::note(format!("a copy that nobody waited for: error {}", error.code));
            lock(&self.error).get_or_insert(error);
            self.sticky.store(true, Ordering::Release);
        }
    }

    fn lost(&self, text: &str) {
        // The call that waits fails with a code that frameworks give words of their own.
        message::tell(message::Kind::Lease, text);
        lock(&self.loss).get_or_insert_with(|| text.to_owned());
        self.lose();
    }
}

/// Why there is no session in [`Session::usable`].
pub enum Unusable {
    Parked,
    /// For good, with the reason in words.
    Lost(String),
}

impl Session {
    /// Opens a session of device number `device` as generation `generation`.
    pub fn open(ticket: Ticket, generation: u64, device: usize, lease_id: String) -> Result<Arc<Self>, DialError> {
        let mut slot = generation;
        for _ in 0..4 {
            let ranges = propose(&mut slot);
            let (stream, welcome) = match dial::open(&ticket, ranges, None, None) {
                Err(DialError::Refused(refused)) if refused.code == RefusedCode::Range => continue,
                other => other?,
            };
            let shared = Arc::new(Shared {
                phase: AtomicU8::new(BOUND),
                loss: Mutex::new(None),
                arena: Mutex::new(Arena::new(welcome.range.base, welcome.range.bytes, welcome.credit)),
                sticky: AtomicBool::new(false),
                error: Mutex::new(None),
                memory_bytes: AtomicU64::new(welcome.memory_bytes),
                lease_id: Mutex::new(lease_id),
                deferred: Mutex::new(Vec::new()),
                globals: Mutex::new(Vec::new()),
                heap: AtomicU64::new(0),
                host: HostSide::default(),
                mappings: Mutex::default(),
                peers: Mutex::default(),
            });
            let notices: Arc<dyn Notices> = Arc::clone(&shared) as Arc<dyn Notices>;
            let connection = Connection::start(stream, &welcome, ticket, notices)
                .map_err(|error| DialError::Io(error.to_string()))?;
            shared.host.connect(&connection);
            let progress = Progress::default();
            let libraries = crate::library::Remote::default();
            let queries_events = AtomicBool::new(false);
            return Ok(Arc::new(Self {
                generation,
                device,
                connection,
                shared,
                welcome,
                queries_events,
                progress,
                libraries,
                lent: AtomicBool::new(false),
                linking: Mutex::default(),
            }));
        }
        Err(DialError::Io("no address range is free on both sides".into()))
    }

    /// What shows gpud that this process holds an image; None: gpud keeps none.
    pub fn proof_of(&self, image: &[u8]) -> Option<[u8; 32]> {
        let keeps = self.welcome.features.iter().any(|feature| feature == MODULE_STORE);
        let nonce = URL_SAFE_NO_PAD.decode(&self.welcome.nonce).ok().filter(|_| keeps)?;
        let mut digest = Context::new(&SHA256);
        [IMAGE_CONTEXT, &nonce, image].into_iter().for_each(|part| digest.update(part));
        digest.finish().as_ref().try_into().ok()
    }

    /// Whether calls can go to gpud now.
    pub fn usable(&self) -> Result<(), Unusable> {
        match self.shared.phase.load(Ordering::Acquire) {
            BOUND => Ok(()),
            PARKED => Err(Unusable::Parked),
            _ => Err(Unusable::Lost(self.loss().unwrap_or_else(|| "Your GPU is gone.".into()))),
        }
    }

    /// The words with which the lease ended.
    pub fn loss(&self) -> Option<String> {
        lock(&self.shared.loss).clone()
    }

    /// The lease was given back by this process; memory may stay parked at gpud.
    pub fn park(&self) {
        let _ = self.shared.phase.compare_exchange(BOUND, PARKED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The lease could not be given back after [`Session::park`]: it is used on, unless gpud has ended it meanwhile.
    pub fn unpark(&self) {
        let usable = {
            // A free that saw the session parked has been noted when the arena is ours.
            let _arena = lock(&self.shared.arena);
            let loss = lock(&self.shared.loss);
            loss.is_none()
                && self.shared.phase.compare_exchange(PARKED, BOUND, Ordering::AcqRel, Ordering::Acquire).is_ok()
        };
        if usable {
            let deferred = std::mem::take(&mut *lock(&self.shared.deferred));
            for address in deferred {
                // A connection that is lost by now fails the next call of the program, with the reason.
                let _ = self.free(address);
            }
            let _ = self.release_unused();
        }
    }

    /// Takes up a new lease on the same worker.
    pub fn rebind(&self, token: &str) -> CudaResult {
        let reply = self.connection.call(&Rebind { token })?;
        self.connection.set_token(token.to_owned());
        self.shared.memory_bytes.store(reply.memory_bytes, Ordering::Release);
        *lock(&self.shared.lease_id) = reply.lease_id;
        lock(&self.shared.arena).credit = reply.credit;
        *lock(&self.shared.loss) = None;
        self.shared.phase.store(BOUND, Ordering::Release);
        let deferred = std::mem::take(&mut *lock(&self.shared.deferred));
        deferred.into_iter().try_for_each(|address| self.free(address))?;
        self.release_unused()
    }

    /// Whether the other session's device is on the same server, and this one's can reach its memory.
    pub fn can_reach(&self, other: &Self) -> bool {
        self.welcome.device.peers.contains(&other.welcome.device.uuid)
    }

    /// Whether it does.
    pub fn reaches(&self, other: &Self) -> bool {
        lock(&self.shared.peers).get(&other.generation).is_some_and(|peer| peer.reached)
    }

    /// Has this session's device reach the memory of another one's; false where it cannot.
    pub fn reach(&self, other: &Self) -> bool {
        if !self.can_reach(other) {
            return false;
        }
        if let Some(known) = lock(&self.shared.peers).get(&other.generation) {
            return known.reached;
        }
        // One asks; the other waits for its answer, and nobody else does.
        let _one = lock(&self.linking);
        if let Some(known) = lock(&self.shared.peers).get(&other.generation) {
            return known.reached;
        }
        // What is allocated there from now on is there when the call returns; what was before is behind this question.
        other.lent.store(true, Ordering::Release);
        let nonce = other.welcome.nonce.clone();
        let linked = self.connection.call(&PeerLink { nonce: &nonce });
        if linked.as_ref().is_err_and(|error| error.code == cuda::ERROR_DEVICE_UNAVAILABLE) {
            // Tried again when there is a lease.
            return false;
        }
        let reached =
            linked.inspect_err(|error| journal::note(format!("no peer access: error {}", error.code))).is_ok();
        lock(&self.shared.peers).insert(other.generation, Peer { nonce, reached });
        // Whatever the answer, what was asked for before it has been done.
        let _ = other.connection.call(&MemInfo);
        reached
    }

    /// Whether other devices that reach this one's memory reach these bytes: what is allocated, and not what the program
    /// maps itself or a module brings.
    pub fn lends(&self, address: u64, bytes: u64) -> bool {
        matches!(lock(&self.shared.arena).lookup(address, bytes), Lookup::Live { .. })
    }

    /// An error of work that nobody waits for: the next call that may tell of it does.
    pub fn keep_error(&self, error: CudaError) {
        self.shared.failed_late(error);
    }

    /// Whether another device reaches the memory of this one.
    pub fn is_lent(&self) -> bool {
        self.lent.load(Ordering::Acquire)
    }

    /// The program asks whether an event was passed.
    pub fn events_are_queried(&self) {
        self.queries_events.store(true, Ordering::Relaxed);
    }

    /// Whether it ever has.
    pub fn queries_events(&self) -> bool {
        self.queries_events.load(Ordering::Relaxed)
    }

    /// The lease that the session is bound to.
    pub fn lease_id(&self) -> String {
        lock(&self.shared.lease_id).clone()
    }

    /// Memory of the lease.
    pub fn memory_bytes(&self) -> u64 {
        self.shared.memory_bytes.load(Ordering::Acquire)
    }

    /// The client processes of the lease and the bytes that count for each, as gpud has them; None: it does not tell.
    pub fn processes(&self) -> Option<Vec<LeaseProcess>> {
        let tells = self.welcome.features.iter().any(|feature| feature == LEASE_PROCESSES);
        let answer = tells.then(|| self.connection.call(&LeaseProcesses))?;
        answer.ok().map(|answer| answer.processes)
    }

    /// Bytes of live allocations, and of physical memory that the program maps itself.
    pub fn used_bytes(&self) -> u64 {
        let allocated = lock(&self.shared.arena).used();
        allocated + self.mappings().used()
    }

    /// An error after which nothing works any more in this generation, or, once, one of work that nobody waited for.
    #[inline]
    pub fn check_sticky(&self) -> CudaResult {
        if self.shared.sticky.load(Ordering::Acquire) { self.shared.take_error() } else { Ok(()) }
    }

    /// Device memory of a context, or of none (0): posted within the credit, else after gpud has granted more. Where another
    /// device reaches it, it is there when this returns.
    pub fn alloc(&self, bytes: u64, context: u64) -> CudaResult<u64> {
        let address = self.alloc_posted(bytes, context)?;
        if self.is_lent()
            && let Err(error) = self.connection.call(&MemInfo)
        {
            let _ = self.free(address);
            return Err(error);
        }
        Ok(address)
    }

    fn alloc_posted(&self, bytes: u64, context: u64) -> CudaResult<u64> {
        loop {
            let mut arena = lock(&self.shared.arena);
            match arena.alloc(bytes, context) {
                Ok(Some(address)) => {
                    // Posted under the lock: a free and an allocation of one address must not overtake each other.
                    let posted = self.connection.post(&MemAlloc { address, bytes });
                    if posted.is_err() {
                        arena.release(address);
                    }
                    return posted.map(|()| address);
                }
                Ok(None) => return Err(CudaError::code(cuda::ERROR_OUT_OF_MEMORY)),
                Err(missing) => {
                    drop(arena);
                    if bytes > self.memory_bytes() {
                        return Err(CudaError::code(cuda::ERROR_OUT_OF_MEMORY));
                    }
                    let granted = self.connection.call(&MemGrow { bytes: missing })?.granted;
                    lock(&self.shared.arena).credit += granted;
                }
            }
        }
    }

    /// Bytes of the credit, for memory that gpud is asked for by a call.
    fn take_credit(&self, bytes: u64) -> CudaResult {
        loop {
            let missing = {
                let mut arena = lock(&self.shared.arena);
                if arena.credit >= bytes {
                    arena.credit -= bytes;
                    return Ok(());
                }
                bytes - arena.credit
            };
            if bytes > self.memory_bytes() {
                return Err(CudaError::code(cuda::ERROR_OUT_OF_MEMORY));
            }
            let granted = self.connection.call(&MemGrow { bytes: missing })?.granted;
            lock(&self.shared.arena).credit += granted;
        }
    }

    /// The program's own physical memory; one lock at a time, never with the arena's.
    pub fn mappings(&self) -> MutexGuard<'_, Mappings> {
        lock(&self.shared.mappings)
    }

    /// Physical memory without an address.
    pub fn create_physical(&self, handle: u64, bytes: u64) -> CudaResult {
        self.take_credit(bytes)?;
        let made = self.connection.call(&PhysicalCreate { handle, bytes });
        if made.is_err() {
            lock(&self.shared.arena).credit += bytes;
        }
        made?;
        self.mappings().create(handle, bytes);
        Ok(())
    }

    /// Gives physical memory back that nobody holds or maps; of a parked session after the next attach.
    pub fn release_unused(&self) -> CudaResult {
        if self.usable().is_err() {
            return Ok(());
        }
        let unused = self.mappings().take_unused();
        for (handle, bytes) in unused {
            self.connection.post(&PhysicalRelease { handle })?;
            lock(&self.shared.arena).credit += bytes;
        }
        Ok(())
    }

    /// Addresses without memory.
    pub fn reserve(&self, bytes: u64, alignment: u64, wish: u64) -> Option<u64> {
        lock(&self.shared.arena).reserve(bytes, alignment, wish)
    }

    /// As [`Arena::unreserve`].
    pub fn unreserve(&self, address: u64, bytes: u64) -> bool {
        lock(&self.shared.arena).unreserve(address, bytes)
    }

    /// As [`Arena::is_reserved`].
    pub fn is_reserved(&self, address: u64, bytes: u64) -> bool {
        lock(&self.shared.arena).is_reserved(address, bytes)
    }

    /// Ends an allocation.
    pub fn free(&self, address: u64) -> CudaResult {
        let mut arena = lock(&self.shared.arena);
        if !matches!(arena.lookup(address, 0), Lookup::Live { start, .. } if start == address) {
            return Err(crate::error::INVALID_VALUE);
        }
        match self.usable() {
            Ok(()) => {
                self.connection.post(&MemFree { address })?;
                arena.release(address);
            }
            // The block stays taken until gpud has heard of it.
            Err(Unusable::Parked) => {
                let mut deferred = lock(&self.shared.deferred);
                if deferred.contains(&address) {
                    return Err(crate::error::INVALID_VALUE);
                }
                deferred.push(address);
            }
            Err(Unusable::Lost(_)) => {}
        }
        Ok(())
    }

    /// Ends every allocation of a context.
    pub fn free_of(&self, context: u64) {
        let addresses = lock(&self.shared.arena).addresses(context);
        for address in addresses {
            // Freed already; or the connection is lost, which fails the next call of the program with the reason.
            let _ = self.free(address);
        }
    }

    /// What lies at an address.
    pub fn lookup(&self, address: u64, bytes: u64) -> Lookup {
        let found = lock(&self.shared.arena).lookup(address, bytes);
        if matches!(found, Lookup::Live { .. }) {
            return found;
        }
        let global = lock(&self.shared.globals)
            .iter()
            .copied()
            .find(|&(start, size)| address >= start && address < start + size && bytes <= start + size - address);
        let own = global.or_else(|| self.mappings().lookup(address, bytes).map(|own| (own.address, own.bytes)));
        own.map_or(found, |(start, bytes)| Lookup::Live { start, bytes })
    }

    /// Whether an address is of this device, live or not.
    pub fn owns(&self, address: u64) -> bool {
        !matches!(self.lookup(address, 0), Lookup::Foreign)
    }

    /// Learns where a module's globals lie, and how large the kernels' heap is.
    pub fn loaded(&self, info: &ModuleInfo) {
        self.shared.heap.store(info.heap, Ordering::Release);
        lock(&self.shared.globals).extend(info.globals.iter().map(|global| (global.address, global.bytes)));
    }

    /// A module's globals lie there no more.
    pub fn unloaded(&self, info: &ModuleInfo) {
        let gone = |address| info.globals.iter().any(|global| global.address == address);
        lock(&self.shared.globals).retain(|(address, _)| !gone(*address));
    }

    /// Bytes of the heap for `malloc` in kernels; 0: no module has needed one.
    pub fn heap(&self) -> u64 {
        self.shared.heap.load(Ordering::Acquire)
    }

    /// The context has ended, and with it the kernels' heap.
    pub fn reset(&self) -> CudaResult {
        self.shared.heap.store(0, Ordering::Release);
        self.connection.post(&ContextReset)
    }

    /// How many bytes of what a kernel prints are kept from now on; a gpud that does not know it keeps a mebibyte.
    pub fn limit_printed(&self, bytes: u64) {
        output::keep_at_least(bytes as usize);
        if self.welcome.features.iter().any(|name| name == PRINT_LIMIT) {
            // A connection that is lost by now fails the next call of the program, with the reason.
            let _ = self.connection.post(&PrintLimit { bytes });
        }
    }

    /// How many bytes of stack each thread of a kernel has from now on; a gpud that does not know it leaves that to its driver.
    pub fn limit_stack(&self, bytes: u64) -> CudaResult {
        if self.welcome.features.iter().any(|name| name == STACK_LIMIT) {
            self.connection.call(&StackLimit { bytes })?;
        }
        Ok(())
    }

    /// First address and length of the range.
    pub fn range(&self) -> (u64, u64) {
        (self.welcome.range.base, self.welcome.range.bytes)
    }

    /// It was given back, and nothing of it is kept.
    pub fn end_given_back(&self) {
        lock(&self.shared.loss).get_or_insert_with(|| GIVEN_BACK.to_owned());
        self.shared.lose();
        self.close();
    }

    /// Says goodbye.
    pub fn close(&self) {
        message::reset();
        self.shared.phase.store(LOST, Ordering::Release);
        self.connection.close();
    }
}

/// Reserves ranges of this process's own address space (no access), so that device addresses never name anything
/// else here. They stay reserved: a device address is never used again in the life of the process.
fn propose(slot: &mut u64) -> Vec<AddressRange> {
    let mut ranges = Vec::new();
    for _ in 0..64 {
        let base = RANGE_START + *slot * RANGE_BYTES;
        *slot += 1;
        if let Some(range) = reserve(base, RANGE_BYTES) {
            ranges.push(range);
        }
        if ranges.len() == 4 {
            return ranges;
        }
    }
    // Small address spaces: whatever the kernel has left.
    for bytes in [RANGE_BYTES, 64 << 30, 16 << 30, 4 << 30] {
        if ranges.is_empty()
            && let Some(range) = reserve(0, bytes)
        {
            ranges.push(range);
        }
    }
    ranges
}

fn reserve(base: u64, bytes: u64) -> Option<AddressRange> {
    let fixed = if base == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    // SAFETY: a fresh mapping without access; MAP_FIXED_NOREPLACE never touches an existing one.
    let address = unsafe {
        libc::mmap(
            base as *mut libc::c_void,
            bytes as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return None;
    }
    if base != 0 && address as u64 != base {
        // A kernel older than MAP_FIXED_NOREPLACE took the address as a hint.
        // SAFETY: the mapping was just made here.
        unsafe { libc::munmap(address, bytes as usize) };
        return None;
    }
    Some(AddressRange { base: address as u64, bytes })
}
