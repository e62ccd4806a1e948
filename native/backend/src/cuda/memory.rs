//! Physical memory at the addresses that the client chose, by the driver's virtual memory management.

use super::loader::{Access, AllocationProperties, Driver, Handle, Location, Status};
use super::mapped::Mapped;
use super::peers::DESCRIPTOR;
use crate::error::{CudaError, CudaResult, code};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most that one physical allocation backs: large allocations take few driver calls, and what a small neighbour
/// keeps mapped stays bounded.
const PIECE_BYTES: u64 = 64 << 20;
/// Threads that copy at a time when memory is parked: one alone is slower than the bus.
const COPIERS: usize = 4;

/// One mapped piece: whole chunks.
struct Piece {
    bytes: u64,
    handle: u64,
    /// Allocations with a byte in it, freed ones that work may still use among them.
    users: u32,
    /// Workers of other devices that it was lent to and has been asked back from.
    away: u32,
}

/// Parked pieces: address and contents.
type Parked = Vec<(u64, Vec<u8>)>;

/// The session's range, its pieces and allocations.
pub struct Memory {
    driver: &'static Driver,
    base: u64,
    bytes: u64,
    chunk: u64,
    properties: AllocationProperties,
    pieces: BTreeMap<u64, Piece>,
    allocations: BTreeMap<u64, u64>,
    /// Freed while work may still use it: using the address again needs a fence.
    freed: Vec<(u64, u64)>,
    parked: Parked,
    /// What the program maps itself.
    mapped: Mapped,
    /// Bytes of the device behind all of it.
    backing: Arc<AtomicU64>,
}

// SAFETY: the raw pointer in `properties` is null; all else is plain data, and the driver's functions may be called from
// any thread that has set the context.
unsafe impl Send for Memory {}

/// Reserves exactly these addresses.
pub(super) fn reserve_at(driver: &Driver, base: u64, bytes: u64) -> CudaResult<()> {
    let mut got = 0;
    // SAFETY: a live local; the address is a hint.
    driver.check(unsafe { (driver.address_reserve)(&mut got, bytes as usize, 0, base, 0) })?;
    if got == base {
        return Ok(());
    }
    // SAFETY: the range was just reserved and nothing is mapped in it.
    unsafe { (driver.address_free)(got, bytes as usize) };
    Err(CudaError::new(code::INVALID_VALUE, "the driver gave another address range"))
}

impl Memory {
    /// Reserves the range, or as large a part of its beginning as the driver has free.
    /// `backing` is told how many bytes of the device lie behind what is allocated: before they are taken, and after they
    /// have been given back. Pieces of `lent` memory can be lent to other devices' workers.
    pub fn reserve(
        driver: &'static Driver,
        device: i32,
        (base, bytes): (u64, u64),
        backing: Arc<AtomicU64>,
        lent: bool,
    ) -> CudaResult<Memory> {
        let properties = AllocationProperties {
            kind: 1,
            handle_types: if lent { DESCRIPTOR } else { 0 },
            location: Location { kind: 1, id: device },
            windows: std::ptr::null_mut(),
            flags: [0; 8],
        };
        let mut chunk = 0;
        // SAFETY: live locals of the types that cuda.h names; 0 = the smallest granularity.
        driver.check(unsafe { (driver.granularity)(&mut chunk, &properties, 0) })?;
        let chunk = (chunk as u64).max(2 << 20);
        if !base.is_multiple_of(chunk) || !bytes.is_multiple_of(chunk) {
            return Err(CudaError::new(code::INVALID_VALUE, format!("the range must be a multiple of {chunk} bytes")));
        }
        let parts = [bytes, bytes / 2, bytes / 4].map(|part| part / chunk * chunk);
        let mut refusal = Ok(());
        for bytes in parts {
            refusal = reserve_at(driver, base, bytes);
            if refusal.is_ok() {
                let (pieces, allocations) = Default::default();
                let (freed, parked) = Default::default();
                let mapped = Mapped::new(driver, properties, Arc::clone(&backing));
                return Ok(Memory {
                    driver,
                    base,
                    bytes,
                    chunk,
                    properties,
                    pieces,
                    allocations,
                    freed,
                    parked,
                    mapped,
                    backing,
                });
            }
        }
        refusal.and(Err(CudaError::new(code::INVALID_VALUE, "an empty address range")))
    }

    /// Where the range begins, and its bytes.
    pub fn range(&self) -> (u64, u64) {
        (self.base, self.bytes)
    }

    /// Pieces with a byte of these addresses that allocations use: address, bytes and the driver's handle.
    pub fn pieces_between(&self, from: u64, to: u64) -> Vec<(u64, u64, u64)> {
        let pieces = self.pieces_of(from, to).into_iter().filter_map(|at| Some((at, self.pieces.get(&at)?)));
        pieces.filter(|(_, piece)| piece.users > 0).map(|(at, piece)| (at, piece.bytes, piece.handle)).collect()
    }

    /// Where the piece begins that backs an address.
    fn piece_at(&self, address: u64) -> Option<u64> {
        let (start, piece) = self.pieces.range(..=address).next_back()?;
        (start + piece.bytes > address).then_some(*start)
    }

    /// The pieces with a byte of these addresses.
    fn pieces_of(&self, address: u64, end: u64) -> Vec<u64> {
        let first = self.piece_at(address).unwrap_or(address);
        self.pieces.range(first..end).map(|(start, _)| *start).collect()
    }

    /// Backs an allocation; answers whether a fence is needed before the address is used.
    pub fn alloc(&mut self, address: u64, bytes: u64) -> CudaResult<bool> {
        let end = address
            .checked_add(bytes)
            .filter(|end| bytes > 0 && address >= self.base && *end <= self.base + self.bytes);
        let end =
            end.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "the allocation leaves the session's range"))?;
        let before = self.allocations.range(..end).next_back();
        if before.is_some_and(|(other, length)| other + length > address) {
            return Err(CudaError::new(code::INVALID_VALUE, "something is allocated there already"));
        }
        let mut made = Vec::new();
        let (mut at, last) = (address / self.chunk * self.chunk, end.next_multiple_of(self.chunk));
        while at < last {
            if let Some(piece) = self.piece_at(at) {
                at = piece + self.pieces.get(&piece).map_or(self.chunk, |piece| piece.bytes);
                continue;
            }
            let next = self.pieces.range(at..).next().map_or(last, |(start, _)| (*start).min(last));
            // A chunk that others may share stands alone, so that what is freed whole goes back whole.
            let shared = at < address || at + self.chunk > end;
            let whole = next.min(end / self.chunk * self.chunk).min(at + PIECE_BYTES);
            let length = if shared { self.chunk } else { whole - at };
            if let Err(error) = self.map(at, length) {
                made.into_iter().for_each(|at| self.unmap(at));
                return Err(error);
            }
            made.push(at);
            at += length;
        }
        for at in self.pieces_of(address, end) {
            if let Some(piece) = self.pieces.get_mut(&at) {
                piece.users += 1;
            }
        }
        self.allocations.insert(address, bytes);
        Ok(self.freed.iter().any(|(from, to)| *from < end && *to > address))
    }

    fn map(&mut self, at: u64, bytes: u64) -> CudaResult<()> {
        self.backing.fetch_add(bytes, Ordering::AcqRel);
        let mapped = self.map_backed(at, bytes);
        if mapped.is_err() {
            self.backing.fetch_sub(bytes, Ordering::AcqRel);
        }
        mapped
    }

    fn map_backed(&mut self, at: u64, bytes: u64) -> CudaResult<()> {
        let (driver, length) = (self.driver, bytes as usize);
        let mut handle = 0;
        // SAFETY: a live local, and properties that `reserve` filled in.
        driver.check(unsafe { (driver.memory_create)(&mut handle, length, &self.properties, 0) })?;
        let access = Access { location: self.properties.location, flags: 3 };
        // SAFETY: the piece lies in the reserved range and is not mapped; the handle was just made.
        let mapped = driver.check(unsafe { (driver.memory_map)(at, length, 0, handle, 0) }).and_then(|()| {
            // SAFETY: just mapped.
            driver.check(unsafe { (driver.memory_access)(at, length, &access, 1) }).inspect_err(|_| {
                // SAFETY: as above.
                unsafe { (driver.memory_unmap)(at, length) };
            })
        });
        if let Err(error) = mapped {
            // SAFETY: made above, mapped nowhere.
            unsafe { (driver.memory_release)(handle) };
            return Err(error);
        }
        self.pieces.insert(at, Piece { bytes, handle, users: 0, away: 0 });
        Ok(())
    }

    fn unmap(&mut self, at: u64) {
        if let Some(piece) = self.pieces.remove(&at) {
            // SAFETY: mapped by `map` with this handle; no work uses it any more.  An error leaves nothing to do.
            unsafe {
                (self.driver.memory_unmap)(at, piece.bytes as usize);
                (self.driver.memory_release)(piece.handle);
            }
            self.backing.fetch_sub(piece.bytes, Ordering::AcqRel);
        }
    }

    /// Ends an allocation; its pieces stay mapped until [`Memory::release`].
    pub fn free(&mut self, address: u64) -> CudaResult<u64> {
        let bytes = self.allocations.remove(&address);
        let bytes = bytes.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "nothing is allocated there"))?;
        // What is parked has no work that could use it.
        if self.parked.is_empty() {
            self.freed.push((address, address + bytes));
        }
        Ok(bytes)
    }

    /// All work issued before the free has run: the pieces that no allocation uses any more, to be [let go](Memory::let_go).
    pub fn release(&mut self, address: u64, bytes: u64) -> Vec<u64> {
        let Some(at) = self.freed.iter().position(|freed| *freed == (address, address + bytes)) else {
            // Parking has already let go of it.
            return Vec::new();
        };
        self.freed.swap_remove(at);
        let mut unused = self.pieces_of(address, address + bytes);
        unused.retain(|at| {
            self.pieces.get_mut(at).is_some_and(|piece| {
                piece.users = piece.users.saturating_sub(1);
                piece.users == 0
            })
        });
        unused
    }

    /// A piece goes back to the driver if no allocation uses it and so many others that it is asked back from have returned
    /// it ([`Memory::returned`]).
    pub fn let_go(&mut self, at: u64, holders: usize) {
        let Some(piece) = self.pieces.get_mut(&at) else { return };
        piece.away += holders as u32;
        if piece.away == 0 && piece.users == 0 {
            self.unmap(at);
        }
    }

    /// Whether somebody has a piece that was asked back.
    pub fn is_away(&self) -> bool {
        self.pieces.values().any(|piece| piece.away > 0)
    }

    /// One that a piece was asked back from has it no more.
    pub fn returned(&mut self, at: u64) {
        if let Some(piece) = self.pieces.get_mut(&at) {
            piece.away = piece.away.saturating_sub(1);
        }
        self.let_go(at, 0);
    }

    /// See [`Mapped::create`].
    pub fn create_physical(&mut self, handle: u64, bytes: u64) -> CudaResult<()> {
        self.mapped.create(handle, bytes)
    }

    /// See [`Mapped::release`].
    pub fn release_physical(&mut self, handle: u64) -> CudaResult<()> {
        self.mapped.release(handle)
    }

    /// Maps it inside the session's range.
    pub fn map_physical(&mut self, address: u64, bytes: u64, handle: u64) -> CudaResult<()> {
        self.inside(address, bytes)?;
        self.mapped.map(address, bytes, handle)
    }

    /// Unmaps whole mappings.
    pub fn unmap_physical(&mut self, address: u64, bytes: u64) -> CudaResult<()> {
        self.inside(address, bytes)?;
        self.mapped.unmap(address, bytes)
    }

    /// Reading and writing, or nothing.
    pub fn set_access(&mut self, address: u64, bytes: u64, accessible: bool) -> CudaResult<()> {
        self.inside(address, bytes)?;
        self.mapped.set_access(address, bytes, accessible)
    }

    /// A mapping lies in the session's range, where the client has allocated nothing.
    fn inside(&self, address: u64, bytes: u64) -> CudaResult<()> {
        let end = address.checked_add(bytes).filter(|end| address >= self.base && *end <= self.base + self.bytes);
        let free = end.is_some_and(|end| self.pieces_of(address, end).is_empty());
        if free { Ok(()) } else { Err(CudaError::new(code::INVALID_VALUE, "not a free part of the session's range")) }
    }

    /// Allocations with a byte of these addresses.
    fn users(&self, from: u64, to: u64) -> u32 {
        let inside = |(address, bytes): &(&u64, &u64)| **address < to && **address + **bytes > from;
        self.allocations.range(..to).filter(inside).count() as u32
    }

    /// Copies all that is allocated to the host and gives it back; no work is running.
    pub fn park(&mut self, context: Handle) -> CudaResult<u64> {
        self.freed.clear();
        let used: Vec<(u64, u64)> = self.pieces.iter().map(|(at, piece)| (*at, piece.bytes)).collect();
        let used: Vec<_> = used.into_iter().filter(|(at, bytes)| self.users(*at, at + bytes) > 0).collect();
        let reach = self.mapped.reach()?;
        let own = reach.at.iter().map(|(handle, at)| (*at, self.mapped.bytes_of(*handle)));
        let mut contents: Parked =
            used.iter().copied().chain(own).map(|(at, bytes)| (at, vec![0u8; bytes as usize])).collect();
        let copied = side_by_side(self.driver, context, &mut contents, |driver, at, data| {
            // SAFETY: the piece is mapped and as long as the buffer.
            unsafe { (driver.copy_out_now)(data.as_mut_ptr().cast(), at, data.len()) }
        });
        self.mapped.leave(&reach);
        copied?;
        let own = contents.split_off(used.len());
        self.mapped.park(reach.at.iter().map(|(handle, _)| *handle).zip(own.into_iter().map(|(_, data)| data)));
        let addresses: Vec<u64> = self.pieces.keys().copied().collect();
        addresses.into_iter().for_each(|at| self.unmap(at));
        self.parked = contents;
        Ok(self.allocations.values().sum::<u64>() + self.mapped.bytes())
    }

    /// Maps what is parked again and copies it back; what was freed meanwhile stays away.
    pub fn unpark(&mut self, context: Handle) -> CudaResult<()> {
        let wanted: Vec<(u64, u64, u32)> = self
            .parked
            .iter()
            .map(|(at, data)| (*at, data.len() as u64, self.users(*at, *at + data.len() as u64)))
            .filter(|(_, _, users)| *users > 0)
            .collect();
        let mapped = wanted.iter().try_for_each(|(at, bytes, users)| {
            self.map(*at, *bytes)?;
            if let Some(piece) = self.pieces.get_mut(at) {
                piece.users = *users;
            }
            Ok(())
        });
        let reach = mapped.and_then(|()| self.mapped.unpark()).and_then(|()| self.mapped.reach());
        let reach = reach.inspect_err(|_| self.unmap_all())?;
        let mut parked = std::mem::take(&mut self.parked);
        parked.retain(|(at, _)| self.pieces.contains_key(at));
        for (handle, at) in &reach.at {
            parked.push((*at, self.mapped.take_contents(*handle)));
        }
        let copied = side_by_side(self.driver, context, &mut parked, |driver, at, data| {
            // SAFETY: just mapped, as long as the buffer.
            unsafe { (driver.copy_in_now)(at, data.as_ptr().cast(), data.len()) }
        });
        self.mapped.leave(&reach);
        copied
    }

    fn unmap_all(&mut self) {
        let made: Vec<u64> = self.pieces.keys().copied().collect();
        made.into_iter().for_each(|at| self.unmap(at));
        self.mapped.give_back();
    }
}

/// Copies several pieces at a time, each on a thread that has the context.
fn side_by_side(
    driver: &'static Driver,
    context: Handle,
    pieces: &mut Parked,
    copy: impl Fn(&Driver, u64, &mut Vec<u8>) -> Status + Sync,
) -> CudaResult<()> {
    let (context, copy) = (context as usize, &copy);
    let share = pieces.len().div_ceil(COPIERS).max(1);
    std::thread::scope(|scope| {
        let work = |part: &mut [(u64, Vec<u8>)]| {
            // SAFETY: the primary context, retained for the life of the process.
            driver.check(unsafe { (driver.context_set)(context as Handle) })?;
            part.iter_mut().try_for_each(|(at, data)| driver.check(copy(driver, *at, data)))
        };
        let threads: Vec<_> = pieces.chunks_mut(share).map(|part| scope.spawn(move || work(part))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(lost()))).fold(Ok(()), Result::and)
    })
}

fn lost() -> CudaError {
    CudaError::new(code::UNKNOWN, "a thread that copied memory is gone")
}
