//! A lease's account, shared by its workers: one page of memory that supervisor and workers map.
//!
//! Every worker owns a slot and writes only there; what the lease uses is the sum.  A charge is made under a robust
//! mutex, so the limit holds exactly for any number of processes, and a worker that dies while it holds the mutex
//! leaves nothing half done: a slot is one word.  The lease's door to its device lies in the same page.

use crate::arbiter::bell::Bell;
use crate::arbiter::door::{Door, Use, Visit};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Client processes that one lease can have at once.
pub const SLOTS: usize = 128;

/// A client that is away for this long has probably ended. Its lease counts its memory as free for other processes, and
/// its session ends when another process needs that memory. Clients try again four times a second.
pub const GONE_TIME: Duration = Duration::from_secs(3);
/// The same where the other end closed the connection while another client of the lease stayed connected: the clients of a
/// lease are on one host, so one that lived would be back. A host whose first packet is lost tries again after a second, too
/// late if another client needs the memory just then.
pub const CLOSED_GONE_TIME: Duration = Duration::from_millis(750);

/// How a client that is away lost its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Away {
    /// Nothing came any more, as when the network fails.
    Silent,
    /// The other end closed it, as the system does for a process that has ended.
    Closed,
}

/// Bytes of the host's memory that every lease may take for its clients.
pub const HOST_BYTES: u64 = 512 << 20;
/// A lease may take its device memory divided by this in addition.
const HOST_SHARE: u64 = 4;

/// When a client was last heard of: [`Ledger::presence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    away_since: u64,
    was_closed: u64,
    present_since: u64,
}

/// What one worker has used.
#[repr(C)]
#[derive(Default)]
struct Slot {
    /// The client's process, as it calls itself; 0: it did not say, or nobody is here.
    client: AtomicU64,
    /// When the client's connection was lost, in milliseconds of the monotonic clock; 0 while it is connected.
    away_since: AtomicU64,
    /// Whether the other end closed it ([`Away::Closed`]).
    was_closed: AtomicU64,
    /// Since when the client is connected, on the same clock; 0 while it is not.
    present_since: AtomicU64,
    /// Bytes charged: allocations and idle credit.
    charged: AtomicU64,
    /// Bytes allocated.
    memory: AtomicU64,
    /// Bytes of the device behind what is allocated, modules and heap among them.
    backing: AtomicU64,
    /// Bytes that driver and libraries take beyond it: the supervisor's word.
    beyond: AtomicU64,
    parked: AtomicU64,
    /// Bytes of the client's page-locked memory that the worker has mapped.
    pinned: AtomicU64,
    /// Bytes of the host's memory that the worker has taken for its client; what it has queued is beside them.
    host: AtomicU64,
    host_queued: AtomicU64,
    gpu_time_ns: AtomicU64,
    sm_active_ns: AtomicU64,
    calls: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    visit: Visit,
}

#[repr(C)]
struct Page {
    lock: libc::pthread_mutex_t,
    limit: AtomicU64,
    door: Door,
    slots: [Slot; SLOTS],
}

/// Totals of a worker or of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes that count against the limit: allocations and idle credit.
    pub charged: u64,
    /// Bytes allocated.
    pub memory: u64,
    /// Bytes that driver and libraries take beyond what is allocated: contexts, code, work spaces.
    pub beyond: u64,
    pub parked: u64,
    pub gpu_time_ns: u64,
    /// As far as the workers can tell: [`sluice_backend::Device::sm_active`].
    pub sm_active_ns: u64,
    pub calls: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// The mapped account of one lease.
pub struct Ledger {
    page: NonNull<Page>,
    memory: OwnedFd,
}

// SAFETY: everything in the page is an atomic or the process-shared mutex; the mapping lives as long as the value.
unsafe impl Send for Ledger {}
// SAFETY: as above.
unsafe impl Sync for Ledger {}

impl Ledger {
    /// A new account with a limit in bytes.
    pub fn create(limit: u64) -> io::Result<Ledger> {
        // SAFETY: the name is a C string, the flags are valid.
        let fd = unsafe { libc::memfd_create(c"sluice-lease".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let memory = unsafe { OwnedFd::from_raw_fd(fd) };
        File::from(memory.try_clone()?).set_len(size_of::<Page>() as u64)?;
        let ledger = Ledger::map(memory)?;
        // SAFETY: the page is fresh, zeroed, and not yet shared; the mutex is initialised in place before any use.
        unsafe {
            let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attributes);
            libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST);
            let made = libc::pthread_mutex_init(&raw mut (*ledger.page.as_ptr()).lock, &attributes);
            libc::pthread_mutexattr_destroy(&mut attributes);
            if made != 0 {
                return Err(io::Error::from_raw_os_error(made));
            }
        }
        ledger.page().limit.store(limit, Ordering::Release);
        Ok(ledger)
    }

    /// Maps an account that [`Ledger::create`] made, in this or another process.
    pub fn map(memory: OwnedFd) -> io::Result<Ledger> {
        if File::from(memory.try_clone()?).metadata()?.len() < size_of::<Page>() as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the lease account is too short"));
        }
        // SAFETY: a shared mapping of a file that is long enough; the address is the kernel's choice.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Page>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                memory.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(address.cast::<Page>()) {
            Some(page) if address != libc::MAP_FAILED => Ok(Ledger { page, memory }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped for the life of `self`; shared fields are atomics, the mutex is only used through libc.
        unsafe { self.page.as_ref() }
    }

    /// The descriptor to hand to a worker.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    fn locked<T>(&self, body: impl FnOnce(&Page) -> T) -> T {
        // SAFETY: the page is mapped; only the address of the mutex is taken.
        let lock = unsafe { &raw mut (*self.page.as_ptr()).lock };
        // SAFETY: the mutex was initialised by `create` and is process-shared; EOWNERDEAD means that its holder died,
        // and no slot can be half written, so the state is consistent at once.
        unsafe {
            if libc::pthread_mutex_lock(lock) == libc::EOWNERDEAD {
                libc::pthread_mutex_consistent(lock);
            }
        }
        let out = body(self.page());
        // SAFETY: held by this thread.
        unsafe { libc::pthread_mutex_unlock(lock) };
        out
    }

    /// Bytes that count against the limit: what is charged, and what driver and libraries take.
    pub fn used(&self) -> u64 {
        self.page().used()
    }

    /// The lease's memory limit in bytes.
    pub fn limit(&self) -> u64 {
        self.page().limit.load(Ordering::Acquire)
    }

    /// Charges `bytes` to a slot, or answers `false` and charges nothing when the lease's limit would be passed.
    pub fn charge(&self, slot: usize, bytes: u64) -> bool {
        self.locked(|page| {
            let used = page.used();
            let fits = used.checked_add(bytes).is_some_and(|sum| sum <= page.limit.load(Ordering::Acquire));
            if fits && let Some(slot) = page.slots.get(slot) {
                slot.charged.fetch_add(bytes, Ordering::AcqRel);
            }
            fits
        })
    }

    /// Gives charged bytes back.
    pub fn release(&self, slot: usize, bytes: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            let _ =
                slot.charged.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(old.saturating_sub(bytes)));
        }
    }

    /// States what of the charge is allocated.
    pub fn set_memory(&self, slot: usize, bytes: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.memory.store(bytes, Ordering::Release);
        }
    }

    /// States how many bytes of the device lie behind a slot's allocations: before they are taken, and after they have
    /// been given back.
    pub fn set_backing(&self, slot: usize, bytes: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.backing.store(bytes, Ordering::Release);
        }
    }

    /// What was stated last.
    pub fn backing(&self, slot: usize) -> u64 {
        self.page().slots.get(slot).map_or(0, |slot| slot.backing.load(Ordering::Acquire))
    }

    /// Charges a slot with what driver and libraries take.  It is there already, so that it may pass the limit: then
    /// nothing more is granted.
    pub fn set_beyond(&self, slot: usize, bytes: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.beyond.store(bytes, Ordering::Release);
        }
    }

    /// States what a slot has parked in the host's memory.
    pub fn set_parked(&self, slot: usize, bytes: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.parked.store(bytes, Ordering::Release);
        }
    }

    /// Lets a slot map so many bytes more of page-locked memory, or answers `false` when all of the lease would have more of
    /// it than device memory.
    pub fn pin(&self, slot: usize, bytes: u64) -> bool {
        self.locked(|page| {
            let pinned = page.slots.iter().map(|slot| slot.pinned.load(Ordering::Acquire));
            let sum = pinned.fold(bytes, u64::saturating_add);
            let fits = sum <= page.limit.load(Ordering::Acquire);
            if fits && let Some(slot) = page.slots.get(slot) {
                slot.pinned.fetch_add(bytes, Ordering::AcqRel);
            }
            fits
        })
    }

    /// States how many bytes of page-locked memory a slot has mapped.
    pub fn set_pinned(&self, slot: usize, bytes: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.pinned.store(bytes, Ordering::Release);
        }
    }

    /// Bytes of the host's memory that the lease's workers may take for their clients.
    pub fn host_limit(&self) -> u64 {
        HOST_BYTES + self.limit() / HOST_SHARE
    }

    /// Bytes of the host's memory that the lease's workers have taken.
    pub fn host_used(&self) -> u64 {
        self.page().host_used()
    }

    /// Charges a slot with more of the host's memory; answers `false` when the limit would be passed.
    pub fn charge_host(&self, slot: usize, bytes: u64) -> bool {
        let limit = self.host_limit();
        self.locked(|page| {
            let fits = page.host_used().checked_add(bytes).is_some_and(|sum| sum <= limit);
            if fits && let Some(slot) = page.slots.get(slot) {
                slot.host.fetch_add(bytes, Ordering::AcqRel);
            }
            fits
        })
    }

    /// States what a slot has taken of the host's memory.
    pub fn set_host(&self, slot: usize, bytes: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.host.store(bytes, Ordering::Release);
        }
    }

    /// States the host's memory of a slot's queued work, which counts beside [`Ledger::set_host`].
    pub fn set_host_queued(&self, slot: usize, bytes: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.host_queued.store(bytes, Ordering::Release);
        }
    }

    /// Counts work of a slot.
    pub fn count(&self, slot: usize, calls: u64, bytes_in: u64, bytes_out: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.calls.fetch_add(calls, Ordering::Relaxed);
            slot.bytes_in.fetch_add(bytes_in, Ordering::Relaxed);
            slot.bytes_out.fetch_add(bytes_out, Ordering::Relaxed);
        }
    }

    /// States the GPU time measured so far.
    pub fn set_gpu_time(&self, slot: usize, nanoseconds: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.gpu_time_ns.store(nanoseconds, Ordering::Relaxed);
        }
    }

    /// States for how long multiprocessors held the slot's warps so far.
    pub fn set_sm_active(&self, slot: usize, nanoseconds: u64) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.sm_active_ns.store(nanoseconds, Ordering::Relaxed);
        }
    }

    /// The lease's door to its device.
    pub fn door(&self) -> &Door {
        &self.page().door
    }

    /// Waits for the lease's turn on its device and begins an operation of this slot's worker; answers whether it matters
    /// when that ends.
    pub fn enter(&self, slot: usize, bell: &Bell) -> bool {
        self.page().slots.get(slot).is_some_and(|slot| self.door().enter(&slot.visit, bell))
    }

    /// Ends what [`Ledger::enter`] began.
    pub fn leave(&self, slot: usize, bell: &Bell) {
        if let Some(slot) = self.page().slots.get(slot) {
            self.door().leave(&slot.visit, bell);
        }
    }

    /// What all workers have on the device and before the door.
    pub fn on_device(&self) -> Use {
        self.page().slots.iter().map(|slot| slot.visit.read()).fold(Use::default(), Use::plus)
    }

    /// What one slot has used.
    pub fn slot(&self, slot: usize) -> Totals {
        self.page().slots.get(slot).map(Slot::totals).unwrap_or_default()
    }

    /// States whose slot it is: the client's process, as that calls itself.
    pub fn set_client(&self, slot: usize, pid: u32) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.client.store(pid.into(), Ordering::Release);
        }
    }

    /// Whether and since when the slot's client is connected or away, for the account that takes its place.
    pub fn presence(&self, slot: usize) -> Presence {
        let read = |field: fn(&Slot) -> &AtomicU64| {
            self.page().slots.get(slot).map_or(0, |slot| field(slot).load(Ordering::Acquire))
        };
        Presence {
            away_since: read(|slot| &slot.away_since),
            was_closed: read(|slot| &slot.was_closed),
            present_since: read(|slot| &slot.present_since),
        }
    }

    /// Takes over what another account says of the client.
    pub fn set_presence(&self, slot: usize, presence: Presence) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.present_since.store(presence.present_since, Ordering::Release);
            slot.was_closed.store(presence.was_closed, Ordering::Release);
            slot.away_since.store(presence.away_since, Ordering::Release);
        }
    }

    /// States that the slot's client is connected.
    pub fn set_present(&self, slot: usize) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.away_since.store(0, Ordering::Release);
            slot.present_since.store(now(), Ordering::Release);
        }
    }

    /// States that the slot's client is away: its connection was lost, and it may come back.
    pub fn set_away(&self, slot: usize, how: Away) {
        if let Some(slot) = self.page().slots.get(slot) {
            slot.present_since.store(0, Ordering::Release);
            slot.was_closed.store((how == Away::Closed).into(), Ordering::Release);
            slot.away_since.store(now(), Ordering::Release);
        }
    }

    /// Whether the slot's client is away.
    pub fn is_away(&self, slot: usize) -> bool {
        self.page().slots.get(slot).is_some_and(|slot| slot.away_since.load(Ordering::Acquire) != 0)
    }

    /// Whether the slot's client is away for so long that it has probably ended ([`GONE_TIME`], [`CLOSED_GONE_TIME`]).
    pub fn is_gone(&self, slot: usize) -> bool {
        let (now, served_since) = (now(), self.served_since());
        self.page().slots.get(slot).is_some_and(|slot| slot.is_gone(now, served_since))
    }

    /// Since when one of the clients has been connected without a break; `None`: none is.
    fn served_since(&self) -> Option<u64> {
        let since = self.page().slots.iter().map(|slot| slot.present_since.load(Ordering::Acquire));
        since.filter(|since| *since != 0).min()
    }

    /// The processes of the clients that have said theirs, and what each has used; without clients that are gone.
    pub fn clients(&self) -> impl Iterator<Item = (u32, Totals)> {
        let client = |slot: &Slot| (slot.client.load(Ordering::Acquire) as u32, slot.totals());
        self.present().map(client).filter(|(pid, _)| *pid != 0)
    }

    /// Bytes of the device that a program sees as taken. The memory of a client that is gone is not among them: its session
    /// still holds the memory, and gives it up when another process asks for it.
    pub fn taken_by_present(&self) -> u64 {
        self.present().map(Slot::totals).fold(Totals::default(), Totals::plus).taken()
    }

    /// Slots, without those of clients that are gone.
    fn present(&self) -> impl Iterator<Item = &Slot> {
        let (now, served_since) = (now(), self.served_since());
        self.page().slots.iter().filter(move |slot| !slot.is_gone(now, served_since))
    }

    /// What all slots have used.
    pub fn totals(&self) -> Totals {
        self.page().slots.iter().map(Slot::totals).fold(Totals::default(), Totals::plus)
    }

    /// Empties the slot of a worker that is gone, and answers what it had used.
    pub fn clear(&self, slot: usize) -> Totals {
        self.locked(|page| {
            let Some(slot) = page.slots.get(slot) else { return Totals::default() };
            let totals = slot.totals();
            slot.visit.clear();
            for field in [
                &slot.client,
                &slot.away_since,
                &slot.was_closed,
                &slot.present_since,
                &slot.charged,
                &slot.memory,
                &slot.backing,
                &slot.beyond,
                &slot.parked,
                &slot.pinned,
                &slot.host,
                &slot.host_queued,
                &slot.gpu_time_ns,
                &slot.sm_active_ns,
                &slot.calls,
                &slot.bytes_in,
                &slot.bytes_out,
            ] {
                field.store(0, Ordering::Release);
            }
            totals
        })
    }
}

impl Page {
    fn host_used(&self) -> u64 {
        let fields = self.slots.iter().flat_map(|slot| [&slot.host, &slot.host_queued]);
        fields.map(|field| field.load(Ordering::Acquire)).fold(0, u64::saturating_add)
    }

    fn used(&self) -> u64 {
        self.slots.iter().map(Slot::used).fold(0, u64::saturating_add)
    }
}

/// Milliseconds of the monotonic clock, which is the same for all processes of a host; never 0.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    // The clock may begin with the host.
    (time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000).max(1)
}

impl Slot {
    /// Whether the slot's client is gone at this moment; `served_since`: since when another of the lease is connected.
    fn is_gone(&self, now: u64, served_since: Option<u64>) -> bool {
        let since = self.away_since.load(Ordering::Acquire);
        let has_passed = |since: u64, time: Duration| now.saturating_sub(since) >= time.as_millis() as u64;
        if since == 0 {
            return false;
        }
        let was_closed = self.was_closed.load(Ordering::Acquire) != 0;
        let could_be_back = was_closed.then_some(served_since).flatten();
        has_passed(since, GONE_TIME)
            || could_be_back.is_some_and(|served| has_passed(since.max(served), CLOSED_GONE_TIME))
    }

    /// Bytes that count against the lease's limit.
    fn used(&self) -> u64 {
        self.charged.load(Ordering::Acquire).saturating_add(self.beyond.load(Ordering::Acquire))
    }

    fn totals(&self) -> Totals {
        Totals {
            charged: self.charged.load(Ordering::Acquire),
            memory: self.memory.load(Ordering::Acquire),
            beyond: self.beyond.load(Ordering::Acquire),
            parked: self.parked.load(Ordering::Acquire),
            gpu_time_ns: self.gpu_time_ns.load(Ordering::Relaxed),
            sm_active_ns: self.sm_active_ns.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
        }
    }
}

impl Totals {
    /// Bytes that count against the limit: allocations, idle credit, and what driver and libraries take.
    pub fn used(&self) -> u64 {
        self.charged.saturating_add(self.beyond)
    }

    /// Bytes of the device that are taken: idle credit is not, as it is asked back when it is wanted.
    pub fn taken(&self) -> u64 {
        self.memory.saturating_add(self.beyond)
    }

    /// The sum of two.
    pub fn plus(self, other: Totals) -> Totals {
        Totals {
            charged: self.charged + other.charged,
            memory: self.memory + other.memory,
            beyond: self.beyond + other.beyond,
            parked: self.parked + other.parked,
            gpu_time_ns: self.gpu_time_ns + other.gpu_time_ns,
            sm_active_ns: self.sm_active_ns + other.sm_active_ns,
            calls: self.calls + other.calls,
            bytes_in: self.bytes_in + other.bytes_in,
            bytes_out: self.bytes_out + other.bytes_out,
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size, and nothing borrows from it any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), size_of::<Page>()) };
    }
}

#[cfg(test)]
impl Ledger {
    /// Has the slot's client be away for as long as makes it gone.
    pub fn expire(&self, slot: usize) {
        self.page().slots[slot].away_since.store(now() - GONE_TIME.as_millis() as u64, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn many_threads_never_pass_the_limit() {
        let ledger = Arc::new(Ledger::create(1_000).expect("memfd"));
        let threads: Vec<_> = (0..8)
            .map(|slot| {
                let ledger = Arc::clone(&ledger);
                std::thread::spawn(move || (0..1_000).filter(|_| ledger.charge(slot, 7)).count() as u64)
            })
            .collect();
        let granted: u64 = threads.into_iter().map(|thread| thread.join().expect("thread")).sum();
        assert_eq!(granted, 1_000 / 7);
        assert_eq!(ledger.totals().charged, granted * 7);
        assert!(ledger.charge(0, 1_000 - granted * 7));
        assert!(!ledger.charge(0, 1));
    }

    #[test]
    fn what_driver_and_libraries_take_counts_against_the_limit() {
        let ledger = Ledger::create(1_000).expect("memfd");
        ledger.set_beyond(0, 600);
        assert!(!ledger.charge(1, 401) && ledger.charge(1, 400));
        // It is taken, whether it fits or not.
        ledger.set_beyond(0, 700);
        assert!(!ledger.charge(1, 1));
        assert_eq!((ledger.totals().charged, ledger.totals().beyond), (400, 700));
        ledger.clear(0);
        assert!(ledger.charge(1, 600) && ledger.totals().beyond == 0);
    }

    #[test]
    fn the_processes_of_a_lease_map_no_more_page_locked_memory_than_it_has_device_memory() {
        let ledger = Ledger::create(1_000).expect("memfd");
        assert!(ledger.pin(0, 600) && !ledger.pin(1, 401) && ledger.pin(1, 400));
        assert!(!ledger.pin(2, 1) && !ledger.pin(2, u64::MAX));
        // It is no device memory.
        assert!(ledger.charge(0, 1_000));
        ledger.set_pinned(0, 100);
        assert!(ledger.pin(2, 500));
        ledger.clear(1);
        assert!(ledger.pin(2, 400) && !ledger.pin(2, 1));
    }

    #[test]
    fn clients_are_listed_while_they_are_there() {
        let ledger = Ledger::create(1_000).expect("memfd");
        let listed = || ledger.clients().map(|(pid, totals)| (pid, totals.taken())).collect::<Vec<_>>();
        ledger.set_memory(0, 100);
        assert_eq!(listed(), [], "it did not say who it is");
        ledger.set_client(0, 41);
        ledger.set_client(2, u32::MAX);
        ledger.set_memory(2, 20);
        ledger.set_beyond(2, 3);
        assert_eq!(listed(), [(41, 100), (u32::MAX, 23)]);
        ledger.clear(0);
        assert_eq!(listed(), [(u32::MAX, 23)]);
    }

    #[test]
    fn memory_of_a_client_that_is_gone_is_charged_and_not_shown() {
        let ledger = Ledger::create(1_000).expect("memfd");
        for (slot, client) in [(0, 41), (1, 42)] {
            assert!(ledger.charge(slot, 400));
            ledger.set_memory(slot, 400);
            ledger.set_client(slot, client);
        }
        let seen = || (ledger.taken_by_present(), ledger.clients().map(|(pid, _)| pid).collect::<Vec<_>>());
        let away_for = |time: u64| ledger.page().slots[0].away_since.store(now() - time, Ordering::Release);
        ledger.set_away(0, Away::Silent);
        assert_eq!(seen(), (800, vec![41, 42]), "its connection was just lost");
        away_for(GONE_TIME.as_millis() as u64);
        assert_eq!(seen(), (400, vec![42]));
        assert!(!ledger.charge(1, 201), "its session still has it");
        assert_eq!(ledger.totals().taken(), 800);
        ledger.set_present(0);
        assert_eq!(seen(), (800, vec![41, 42]), "it is back");
        ledger.set_away(0, Away::Silent);
        away_for(GONE_TIME.as_millis() as u64);
        ledger.clear(0);
        ledger.set_memory(0, 100);
        assert_eq!(seen().0, 500, "the next client of the slot is present");
    }

    #[test]
    fn a_client_whose_connection_was_closed_is_gone_sooner_when_another_is_served_all_the_time() {
        let ledger = Ledger::create(1_000).expect("memfd");
        (0..2).for_each(|slot| ledger.set_present(slot));
        let slots = &ledger.page().slots;
        let time = CLOSED_GONE_TIME.as_millis() as u64;
        ledger.set_away(0, Away::Closed);
        assert!(!ledger.is_gone(0), "it was just closed");
        slots[0].away_since.store(now() - time, Ordering::Release);
        assert!(!ledger.is_gone(0), "the other has just come: something between was away for both");
        slots[1].present_since.store(now() - time, Ordering::Release);
        assert!(ledger.is_gone(0));
        slots[0].was_closed.store(0, Ordering::Release);
        assert!(!ledger.is_gone(0), "the network may be at fault");
        slots[0].was_closed.store(1, Ordering::Release);
        ledger.set_away(1, Away::Closed);
        assert!(!ledger.is_gone(0), "nobody is served");
    }

    #[test]
    fn another_account_takes_over_that_a_client_is_away() {
        let [old, new] = [0, 1].map(|_| Ledger::create(1_000).expect("memfd"));
        old.set_away(0, Away::Silent);
        old.page().slots[0].away_since.store(now() - GONE_TIME.as_millis() as u64, Ordering::Release);
        new.set_presence(5, old.presence(0));
        assert!(new.is_gone(5));
        new.set_present(5);
        assert!(!new.is_gone(5));
    }

    #[test]
    fn a_charge_that_overflows_is_refused() {
        let ledger = Ledger::create(u64::MAX).expect("memfd");
        assert!(ledger.charge(0, 10));
        assert!(!ledger.charge(1, u64::MAX));
    }

    #[test]
    fn a_process_that_dies_holding_the_lock_blocks_nobody() {
        let ledger = Ledger::create(100).expect("memfd");
        // SAFETY: the child only takes the lock and exits; it allocates nothing.
        let child = unsafe { libc::fork() };
        if child == 0 {
            ledger.locked(|_| unsafe { libc::_exit(0) });
        }
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        assert!(ledger.charge(3, 100));
        assert_eq!(ledger.clear(3).charged, 100);
        assert_eq!(ledger.totals().charged, 0);
    }
}
