//! The host's memory that sessions take for their clients: events, streams, graphs, modules, answers that are kept, data
//! that wait. All sessions of a lease share one account of it, in the lease's page.
//!
//! Objects count by an estimate that is above what either backend takes; data count by their bytes. A lease may have
//! 512 MiB, and a quarter of its device memory: programs keep an object or so for each piece of device memory, and an
//! object is much smaller than that. Beyond it, calls that take more are out of memory, as on a host that has no more.
//!
//! Promises of a session are not refused: answers, and up to [`OWN_BYTES`] of queued work. They are bounded for each
//! session, and sessions by their lease's places.
//!
//! The worker process has no limit of its own from the system. `RLIMIT_AS` and `RLIMIT_DATA` count addresses, not memory:
//! the software GPU reserves its arena, and a real driver far more. Where all that a process takes is known, the worker
//! looks at what it really has ([`is_beyond`]) and ends a session that has much more than its accounts say.

use crate::ledger::Ledger;
use sluice_protocol::{Failure, cuda};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that an event counts: a driver keeps some hundred, the software GPU less.
pub const EVENT_BYTES: u64 = 256;
/// Bytes that a stream counts: a driver keeps its queue.
pub const STREAM_BYTES: u64 = 16 << 10;
/// Bytes that a piece of device memory counts on the host.
pub const ALLOCATION_BYTES: u64 = 256;
/// Bytes that an executable graph counts besides its nodes.
pub const GRAPH_BYTES: u64 = 4 << 10;
/// Bytes that an object of a library counts besides what describes it.
pub const OBJECT_BYTES: u64 = 4 << 10;
/// Bytes that a module counts besides its image.
pub const MODULE_BYTES: u64 = 64 << 10;
/// Bytes of queued work, and of answers, that every session may have beside the account.
pub const OWN_BYTES: u64 = 32 << 20;
/// The lease's account is asked for pieces of this many bytes.
const PIECE_BYTES: u64 = 1 << 20;
/// Memory of the worker itself: program, compiler, stacks, buffers.
const WORKER_BYTES: u64 = 1 << 30;

/// The part of one session in its lease's account. Before the session begins there is no account, and nothing is refused.
#[derive(Default)]
pub struct HostMemory {
    /// The lease's account and the worker's slot there.
    seat: Mutex<Option<(Arc<Ledger>, usize)>>,
    used: AtomicU64,
    /// Bytes that the account has granted.
    reserved: AtomicU64,
}

/// Bytes that are charged until this is dropped.
pub struct Charge {
    memory: Arc<HostMemory>,
    bytes: u64,
}

impl Charge {
    /// Charges more bytes.
    pub fn grow(&mut self, bytes: u64) -> Result<(), Failure> {
        self.memory.charge(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.release(self.bytes);
    }
}

type Seat = Option<(Arc<Ledger>, usize)>;

impl HostMemory {
    /// From now on this account pays, also for what is there already.
    pub fn sit(&self, ledger: Arc<Ledger>, slot: usize) {
        let mut seat = self.lock();
        ledger.set_host(slot, self.reserved.load(Ordering::Acquire));
        *seat = Some((ledger, slot));
    }

    fn lock(&self) -> MutexGuard<'_, Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges bytes, or answers why the lease cannot have them.
    pub fn charge(&self, bytes: u64) -> Result<(), Failure> {
        let used = self.used.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
        if used <= self.reserved.load(Ordering::Acquire) {
            return Ok(());
        }
        let seat = self.lock();
        let Some((ledger, slot)) = &*seat else { return Ok(()) };
        let (used, reserved) = (self.used.load(Ordering::Acquire), self.reserved.load(Ordering::Acquire));
        let missing = used.saturating_sub(reserved);
        let generous = missing.next_multiple_of(PIECE_BYTES);
        if let Some(granted) = [generous, missing].into_iter().find(|bytes| ledger.charge_host(*slot, *bytes)) {
            self.reserved.fetch_add(granted, Ordering::AcqRel);
            return Ok(());
        }
        self.used.fetch_sub(bytes, Ordering::AcqRel);
        Err(out_of_memory(ledger))
    }

    /// As [`HostMemory::charge`], until what this returns is dropped.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> Result<Charge, Failure> {
        self.charge(bytes).map(|()| Charge { memory: Arc::clone(self), bytes })
    }

    /// A charge that is still to grow.
    pub fn nothing(self: &Arc<Self>) -> Charge {
        Charge { memory: Arc::clone(self), bytes: 0 }
    }

    /// Charges bytes that are there already, so that they may pass the limit: then nothing more is granted.
    pub fn take(&self, bytes: u64) {
        let used = self.used.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
        if used > self.reserved.load(Ordering::Acquire) {
            let seat = self.lock();
            self.settle(&seat, self.used.load(Ordering::Acquire));
        }
    }

    /// Gives charged bytes back.
    pub fn release(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let before = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).unwrap_or_default();
        let spare = self.reserved.load(Ordering::Acquire).saturating_sub(before.saturating_sub(bytes));
        if spare > 4 * PIECE_BYTES {
            let seat = self.lock();
            self.settle(&seat, self.used.load(Ordering::Acquire));
        }
    }

    /// States what is used in the account.
    fn settle(&self, seat: &Seat, used: u64) {
        if let Some((ledger, slot)) = seat {
            let reserved = used.next_multiple_of(PIECE_BYTES);
            self.reserved.store(reserved, Ordering::Release);
            ledger.set_host(*slot, reserved);
        }
    }

    /// States what queued work holds, and answers whether more may be queued.
    pub fn check_queue(&self, bytes: u64) -> Result<(), Failure> {
        if bytes <= OWN_BYTES {
            return Ok(());
        }
        let seat = self.lock();
        let Some((ledger, slot)) = &*seat else { return Ok(()) };
        ledger.set_host_queued(*slot, bytes);
        if ledger.host_used() <= ledger.host_limit() { Ok(()) } else { Err(out_of_memory(ledger)) }
    }

    /// States what queued work holds.
    pub fn settle_queue(&self, bytes: u64) {
        if let Some((ledger, slot)) = &*self.lock() {
            ledger.set_host_queued(*slot, bytes);
        }
    }

    /// Whether the lease has as much as it may, or more.
    pub fn is_exceeded(&self) -> bool {
        self.lock().as_ref().is_some_and(|(ledger, _)| ledger.host_used() >= ledger.host_limit())
    }

    /// Whether this process has more memory of its own than its lease and its accounts explain: bytes it has, and may have.
    pub fn is_beyond(&self) -> Option<(u64, u64)> {
        let explained = match &*self.lock() {
            Some((ledger, _)) => ledger.limit().saturating_add(ledger.host_limit()).saturating_add(WORKER_BYTES),
            None => return None,
        };
        let has = own_memory()?;
        (has > explained).then_some((has, explained))
    }
}

/// Memory of this process that is no file's, bytes.
fn own_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

fn out_of_memory(ledger: &Ledger) -> Failure {
    let text = format!(
        "the lease's processes have taken the {} MiB of the GPU server's own memory that the lease may have for events, \
         streams, graphs, modules and queued work; free some of them",
        ledger.host_limit() >> 20
    );
    Failure::new(cuda::ERROR_OUT_OF_MEMORY, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::HOST_BYTES;

    fn lease() -> (Arc<Ledger>, [Arc<HostMemory>; 2]) {
        let ledger = Arc::new(Ledger::create(0).expect("memfd"));
        let memories = [0, 1].map(|slot| {
            let memory = Arc::new(HostMemory::default());
            memory.sit(Arc::clone(&ledger), slot);
            memory
        });
        (ledger, memories)
    }

    #[test]
    fn the_sessions_of_a_lease_have_its_limit_together() {
        let (ledger, [first, second]) = lease();
        first.charge(HOST_BYTES - PIECE_BYTES).expect("fits");
        second.charge(PIECE_BYTES).expect("fits exactly");
        assert_eq!(second.charge(1).expect_err("full").code, cuda::ERROR_OUT_OF_MEMORY);
        assert!(second.is_exceeded());
        first.release(HOST_BYTES - PIECE_BYTES);
        assert!(ledger.host_used() <= PIECE_BYTES, "{} bytes", ledger.host_used());
        drop(second.hold(HOST_BYTES - PIECE_BYTES).expect("free again"));
        second.charge(HOST_BYTES - PIECE_BYTES).expect("given back");
    }

    #[test]
    fn what_is_there_counts_also_beyond_the_limit() {
        let (ledger, [first, second]) = lease();
        first.take(HOST_BYTES + 1);
        assert!(ledger.host_used() > HOST_BYTES && second.charge(1).is_err());
        second.check_queue(OWN_BYTES).expect("its own");
        assert!(second.check_queue(OWN_BYTES + 1).is_err());
        first.release(HOST_BYTES + 1);
        second.check_queue(OWN_BYTES + 1).expect("there is room");
    }

    #[test]
    fn giving_back_more_than_was_taken_gives_nothing() {
        let (ledger, [first, _]) = lease();
        first.charge(100).expect("fits");
        first.release(u64::MAX);
        assert!(first.charge(HOST_BYTES + 1).is_err() && ledger.host_used() <= HOST_BYTES);
    }

    #[test]
    fn a_new_lease_pays_for_what_is_there() {
        let (_, [first, _]) = lease();
        first.charge(HOST_BYTES).expect("fits");
        let next = Arc::new(Ledger::create(0).expect("memfd"));
        first.sit(Arc::clone(&next), 3);
        assert_eq!(next.host_used(), HOST_BYTES);
        next.clear(3);
        assert_eq!(next.host_used(), 0);
    }
}
