//! Memory lent to other devices' workers and borrowed from them, piece by piece: a piece travels as the descriptor that
//! the driver makes of it, and lies at the same addresses on both sides.  The driver keeps it as long as either has it, so
//! an owner that frees a piece asks for it back, and counts it until it has come.
//!
//! Locks, in this order: what is lent, what is allocated. A borrower's answer is waited for under the first alone; what
//! the borrower does for it takes neither.

use super::loader::{Access, Driver, Location};
use super::{CudaDevice, Shared, describe, lock};
use crate::device::Done;
use crate::error::{CudaError, CudaResult, code};
use crate::peer::{Borrower, Part};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
pub const DESCRIPTOR: i32 = 1;
/// CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
const HAS_DESCRIPTORS: i32 = 103;
/// How long a session that is to be parked waits for what it has lent.
const RETURN_TIME: Duration = Duration::from_secs(5);

/// A worker that this device's memory is lent to, and the pieces that it has.
pub struct Lent {
    to: Arc<dyn Borrower>,
    given: BTreeSet<u64>,
}

/// What this device has of others.
#[derive(Default)]
pub struct Borrowed {
    parts: BTreeMap<u64, Held>,
    /// Where reserved ranges begin. They stay reserved: nothing else comes to lie between their parts.
    ranges: BTreeSet<u64>,
    asks: u64,
}

struct Held {
    bytes: u64,
    handle: u64,
    /// The number of the return that it waits for.
    leaving: Option<u64>,
}

impl Borrowed {
    /// Maps a part. One that was asked back, and is lent again before it has gone, stays as it is: its owner keeps it until
    /// it is returned.
    fn take(&mut self, driver: &Driver, device: i32, part: Part, memory: &OwnedFd) -> CudaResult<()> {
        if let Some(held) = self.parts.get_mut(&part.address) {
            held.leaving = None;
            return Ok(());
        }
        let (base, length) = part.range;
        let end = part.address.checked_add(part.bytes).filter(|end| part.address >= base && *end <= base + length);
        end.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "a part that is not in its range"))?;
        if !self.ranges.contains(&base) {
            super::memory::reserve_at(driver, base, length)?;
            self.ranges.insert(base);
        }
        let handle = map(driver, device, part, memory)?;
        self.parts.insert(part.address, Held { bytes: part.bytes, handle, leaving: None });
        Ok(())
    }

    /// It is asked back; the number of this return.
    fn ask(&mut self, address: u64) -> u64 {
        self.asks += 1;
        if let Some(held) = self.parts.get_mut(&address) {
            held.leaving = Some(self.asks);
        }
        self.asks
    }

    /// Nothing uses it any more; it goes, unless it was lent again.
    fn end(&mut self, driver: &Driver, address: u64, number: u64) {
        if self.parts.get(&address).is_none_or(|held| held.leaving != Some(number)) {
            return;
        }
        let Some(held) = self.parts.remove(&address) else { return };
        // SAFETY: mapped by `map` with this handle; no work uses it any more. An error leaves nothing to do.
        unsafe {
            (driver.memory_unmap)(address, held.bytes as usize);
            (driver.memory_release)(held.handle);
        }
    }
}

fn map(driver: &Driver, device: i32, part: Part, memory: &OwnedFd) -> CudaResult<u64> {
    let (mut handle, length) = (0, part.bytes as usize);
    let descriptor = std::ptr::without_provenance_mut(memory.as_raw_fd() as usize);
    // SAFETY: a live local; the descriptor is one that the driver made, or it says so.
    driver.check(unsafe { (driver.memory_import)(&mut handle, descriptor, DESCRIPTOR) })?;
    let access = Access { location: Location { kind: 1, id: device }, flags: 3 };
    // SAFETY: a part of a range that is reserved for this, where nothing is mapped; the handle was just made.
    let mapped = driver.check(unsafe { (driver.memory_map)(part.address, length, 0, handle, 0) }).and_then(|()| {
        // SAFETY: just mapped.
        driver.check(unsafe { (driver.memory_access)(part.address, length, &access, 1) }).inspect_err(|_| {
            // SAFETY: as above.
            unsafe { (driver.memory_unmap)(part.address, length) };
        })
    });
    if let Err(error) = mapped {
        // SAFETY: made above, mapped nowhere.
        unsafe { (driver.memory_release)(handle) };
        return Err(error);
    }
    Ok(handle)
}

/// Calls what waits for the return of several pieces, when the last one has dropped it.
struct Finish(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Finish {
    fn new(done: impl FnOnce() + Send + 'static) -> Arc<Finish> {
        Arc::new(Finish(Mutex::new(Some(Box::new(done)))))
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        let done = lock(&self.0).take();
        done.into_iter().for_each(|done| done());
    }
}

impl Shared {
    /// Of these devices of the host, those whose memory this one reaches.
    pub(super) fn peers(&self, others: &[String]) -> CudaResult<Vec<String>> {
        let mut has = 0;
        // SAFETY: the driver writes one number.
        self.check(unsafe { (self.driver.device_attribute)(&mut has, HAS_DESCRIPTORS, self.device) })?;
        let reaches = |uuid: &&String| {
            let mut reaches = 0;
            let other = describe::find(self.driver, uuid);
            // SAFETY: the driver writes one number.
            let asked = other.map(|other| unsafe { (self.driver.device_peer)(&mut reaches, self.device, other) });
            asked == Ok(0) && reaches == 1
        };
        Ok(if has == 1 { others.iter().filter(reaches).cloned().collect() } else { Vec::new() })
    }

    /// Hands one piece over.
    fn give_piece(&self, lent: &mut Lent, range: (u64, u64), (address, bytes, handle): (u64, u64, u64)) -> bool {
        if lent.given.contains(&address) {
            return true;
        }
        let mut descriptor = -1i32;
        // SAFETY: the driver writes one descriptor; the handle is the piece's, which the caller's lock keeps.
        let exported = unsafe { (self.driver.memory_export)((&raw mut descriptor).cast(), handle, DESCRIPTOR, 0) };
        if let Err(error) = self.driver.check(exported) {
            crate::log!("gpud: memory cannot be lent to another GPU's worker: {error}");
            return false;
        }
        // SAFETY: fresh, and nobody else's.
        let memory = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let given = lent.to.give(Part { range, address, bytes }, memory.as_fd());
        match given {
            Ok(()) => lent.given.insert(address),
            Err(error) => {
                crate::log!("gpud: another GPU's worker does not reach what is lent to it: {error}");
                false
            }
        }
    }

    /// Hands what backs these addresses to those that memory is lent to and have not got it. One that cannot take it has
    /// nothing more.
    pub(super) fn give(&self, from: u64, to: u64) -> CudaResult<()> {
        let mut lending = lock(&self.lending);
        if lending.is_empty() {
            return Ok(());
        }
        let (range, pieces) = self.memory(|memory| Ok((memory.range(), memory.pieces_between(from, to))))?;
        lending.retain_mut(|lent| {
            let has_all = pieces.iter().all(|piece| self.give_piece(lent, range, *piece));
            if !has_all {
                lent.to.end();
            }
            has_all
        });
        Ok(())
    }

    /// Lends all that there is, and what will be.
    pub(super) fn lend(&self, to: Arc<dyn Borrower>) -> CudaResult<()> {
        let (base, bytes) = self.memory(|memory| Ok(memory.range()))?;
        lock(&self.lending).push(Lent { to: Arc::clone(&to), given: BTreeSet::new() });
        self.give(base, base + bytes)?;
        if lock(&self.lending).iter().any(|lent| Arc::ptr_eq(&lent.to, &to)) {
            return Ok(());
        }
        Err(CudaError::new(code::PEER_ACCESS_UNSUPPORTED, "the memory cannot be mapped on the other GPU"))
    }

    /// A freed allocation that no work of this device uses any more: pieces that nobody uses go back to the driver, those
    /// that are lent when they have been returned; `done` then.
    pub(super) fn release(self: &Arc<Self>, address: u64, bytes: u64, done: Done<u64>) {
        let finish = Finish::new(move || done(Ok(bytes)));
        // Under the lock until all have been asked: an allocation that uses a piece again lends it anew, behind that.
        let mut lending = lock(&self.lending);
        // Without a range there is nothing that could be freed.
        let unused = self.memory(|memory| Ok(memory.release(address, bytes))).unwrap_or_default();
        for at in unused {
            self.ask_back(&mut lending, at, &finish);
        }
    }

    /// Asks for a piece wherever it is; it goes back to the driver when all have returned it, if it is not used again.
    fn ask_back(self: &Arc<Self>, lending: &mut [Lent], at: u64, finish: &Arc<Finish>) {
        let holders: Vec<_> =
            lending.iter_mut().filter_map(|lent| lent.given.remove(&at).then(|| Arc::clone(&lent.to))).collect();
        let _ = self.memory(|memory| {
            memory.let_go(at, holders.len());
            Ok(())
        });
        for from in holders {
            let (shared, finish) = (Arc::clone(self), Arc::clone(finish));
            let returned = move || {
                // Of a lost context the driver's answer says nothing new: the memory ends with the process.
                let _ = shared.enter();
                let _ = shared.memory(|memory| {
                    memory.returned(at);
                    Ok(())
                });
                drop(finish);
            };
            from.take_back(at, Box::new(returned));
        }
    }

    /// Everything that is lent comes back, for a while: what is parked must not stay with others.
    pub(super) fn recall(self: &Arc<Self>) {
        let finish = Finish::new(|| ());
        {
            let mut lending = lock(&self.lending);
            let given: BTreeSet<u64> = lending.iter().flat_map(|lent| lent.given.iter().copied()).collect();
            given.into_iter().for_each(|at| self.ask_back(&mut lending, at, &finish));
        }
        let deadline = Instant::now() + RETURN_TIME;
        while self.memory(|memory| Ok(memory.is_away())).unwrap_or(false) {
            if Instant::now() > deadline {
                // What it holds will not be what lies at these addresses after this.
                crate::log!("gpud: another GPU's worker holds memory that is parked; it reaches this one's no more");
                return lock(&self.lending).drain(..).for_each(|lent| lent.to.end());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl CudaDevice {
    pub(super) fn take_part(&self, part: Part, memory: &OwnedFd) -> CudaResult<()> {
        let driver = self.shared.enter()?;
        lock(&self.shared.borrowed).take(driver, self.shared.device, part, memory)
    }

    pub(super) fn return_part(&self, address: u64, done: Box<dyn FnOnce() + Send>) {
        let number = lock(&self.shared.borrowed).ask(address);
        let done = Finish::new(done);
        let again = Arc::clone(&done);
        let ends = move |shared: &Arc<Shared>| {
            lock(&shared.borrowed).end(shared.driver, address, number);
            drop(again);
        };
        let waits = self.shared.enter().and_then(|_| self.after_all(ends));
        if waits.is_err() {
            // The context is lost, and all of its work.
            lock(&self.shared.borrowed).end(self.shared.driver, address, number);
        }
        drop(done);
    }
}
