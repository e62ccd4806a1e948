//! Physical memory at the addresses that the client chose, by the driver's virtual memory management.

use super::loader::{Access, AllocationProperties, Driver, Location};
use crate::error::{CudaError, CudaResult, code};
use std::collections::{BTreeMap, HashMap};

/// One mapped chunk.
struct Chunk {
    handle: u64,
    /// Allocations with a byte in it.
    users: u32,
}

/// Parked chunks: address and contents.
type Parked = Vec<(u64, Vec<u8>)>;

/// The session's range, its chunks and allocations.
pub struct Memory {
    driver: &'static Driver,
    base: u64,
    bytes: u64,
    chunk: u64,
    properties: AllocationProperties,
    chunks: BTreeMap<u64, Chunk>,
    allocations: BTreeMap<u64, u64>,
    /// Freed while work may still use it: using the address again needs a fence.
    freed: Vec<(u64, u64)>,
    parked: Parked,
    /// The program's own physical memory: the client's handle to the driver's.
    physical: HashMap<u64, u64>,
}

// SAFETY: the raw pointer in `properties` is null; all else is plain data, and the driver's functions may be called from
// any thread that has set the context.
unsafe impl Send for Memory {}

impl Memory {
    /// Reserves the range at exactly this address.
    pub fn reserve(driver: &'static Driver, device: i32, base: u64, bytes: u64) -> CudaResult<Memory> {
        let properties = AllocationProperties {
            kind: 1,
            handle_types: 0,
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
        let mut got = 0;
        // SAFETY: as above; the address is a hint.
        driver.check(unsafe { (driver.address_reserve)(&mut got, bytes as usize, 0, base, 0) })?;
        if got != base {
            // SAFETY: the range was just reserved and nothing is mapped in it.
            unsafe { (driver.address_free)(got, bytes as usize) };
            return Err(CudaError::new(code::INVALID_VALUE, "the driver gave another address range"));
        }
        let (chunks, allocations, physical) = Default::default();
        let (freed, parked) = Default::default();
        Ok(Memory { driver, base, bytes, chunk, properties, chunks, allocations, freed, parked, physical })
    }

    fn span(&self, address: u64, bytes: u64) -> impl Iterator<Item = u64> + use<> {
        let (first, chunk) = (address / self.chunk * self.chunk, self.chunk);
        (first..address + bytes).step_by(chunk as usize)
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
        for at in self.span(address, bytes) {
            if !self.chunks.contains_key(&at) {
                if let Err(error) = self.map(at) {
                    made.into_iter().for_each(|at| self.unmap(at));
                    return Err(error);
                }
                made.push(at);
            }
        }
        for at in self.span(address, bytes) {
            if let Some(chunk) = self.chunks.get_mut(&at) {
                chunk.users += 1;
            }
        }
        self.allocations.insert(address, bytes);
        Ok(self.freed.iter().any(|(from, to)| *from < end && *to > address))
    }

    fn map(&mut self, at: u64) -> CudaResult<()> {
        let (driver, length) = (self.driver, self.chunk as usize);
        let mut handle = 0;
        // SAFETY: a live local, and properties that `reserve` filled in.
        driver.check(unsafe { (driver.memory_create)(&mut handle, length, &self.properties, 0) })?;
        let access = Access { location: self.properties.location, flags: 3 };
        // SAFETY: the chunk lies in the reserved range and is not mapped; the handle was just made.
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
        self.chunks.insert(at, Chunk { handle, users: 0 });
        Ok(())
    }

    fn unmap(&mut self, at: u64) {
        if let Some(chunk) = self.chunks.remove(&at) {
            // SAFETY: mapped by `map` with this handle; no work uses it any more.  An error leaves nothing to do.
            unsafe {
                (self.driver.memory_unmap)(at, self.chunk as usize);
                (self.driver.memory_release)(chunk.handle);
            }
        }
    }

    /// Ends an allocation; its chunks stay mapped until [`Memory::release`].
    pub fn free(&mut self, address: u64) -> CudaResult<u64> {
        let bytes = self.allocations.remove(&address);
        let bytes = bytes.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "nothing is allocated there"))?;
        self.freed.push((address, address + bytes));
        Ok(bytes)
    }

    /// All work issued before the free has run: chunks that nobody uses go back to the driver.
    pub fn release(&mut self, address: u64, bytes: u64) {
        if let Some(at) = self.freed.iter().position(|freed| *freed == (address, address + bytes)) {
            self.freed.swap_remove(at);
        }
        for at in self.span(address, bytes) {
            let unused = self.chunks.get_mut(&at).is_some_and(|chunk| {
                chunk.users = chunk.users.saturating_sub(1);
                chunk.users == 0
            });
            if unused {
                self.unmap(at);
            }
        }
    }

    /// Physical memory without an address, all zeros (as the driver makes it).
    pub fn create_physical(&mut self, handle: u64, bytes: u64) -> CudaResult<()> {
        let mut made = 0;
        // SAFETY: a live local, and properties that `reserve` filled in.
        self.driver.check(unsafe { (self.driver.memory_create)(&mut made, bytes as usize, &self.properties, 0) })?;
        self.physical.insert(handle, made);
        Ok(())
    }

    /// Gives it back; the driver keeps what is still mapped.
    pub fn release_physical(&mut self, handle: u64) -> CudaResult<()> {
        let gone = self.physical.remove(&handle);
        let gone = gone.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "there is no such memory"))?;
        // SAFETY: made above, and released once.
        self.driver.check(unsafe { (self.driver.memory_release)(gone) })
    }

    /// Maps it inside the session's range.
    pub fn map_physical(&mut self, address: u64, bytes: u64, handle: u64) -> CudaResult<()> {
        let known = self.physical.get(&handle).copied();
        let known = known.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "there is no such memory"))?;
        self.inside(address, bytes)?;
        // SAFETY: the range is reserved; the driver refuses what is mapped already.
        self.driver.check(unsafe { (self.driver.memory_map)(address, bytes as usize, 0, known, 0) })
    }

    /// Unmaps whole mappings.
    pub fn unmap_physical(&mut self, address: u64, bytes: u64) -> CudaResult<()> {
        self.inside(address, bytes)?;
        // SAFETY: the client has waited for all work; the driver refuses what is not a whole mapping.
        self.driver.check(unsafe { (self.driver.memory_unmap)(address, bytes as usize) })
    }

    /// Reading and writing, or nothing.
    pub fn set_access(&mut self, address: u64, bytes: u64, accessible: bool) -> CudaResult<()> {
        self.inside(address, bytes)?;
        let access = Access { location: self.properties.location, flags: if accessible { 3 } else { 0 } };
        // SAFETY: one description; the driver refuses what is not mapped.
        self.driver.check(unsafe { (self.driver.memory_access)(address, bytes as usize, &access, 1) })
    }

    /// A mapping lies in the session's range, where the client has allocated nothing.
    fn inside(&self, address: u64, bytes: u64) -> CudaResult<()> {
        let end = address.checked_add(bytes).filter(|end| address >= self.base && *end <= self.base + self.bytes);
        let free = end.is_some_and(|end| self.chunks.range(address..end).next().is_none());
        if free { Ok(()) } else { Err(CudaError::new(code::INVALID_VALUE, "not a free part of the session's range")) }
    }

    /// Copies all chunks to the host and gives them back; no work is running.
    pub fn park(&mut self) -> CudaResult<u64> {
        if !self.physical.is_empty() {
            let text = "memory that the program mapped itself cannot be kept without a lease on this device yet";
            return Err(CudaError::new(code::NOT_SUPPORTED, text));
        }
        let addresses: Vec<u64> = self.chunks.keys().copied().collect();
        for at in addresses {
            let mut contents = vec![0u8; self.chunk as usize];
            // SAFETY: the chunk is mapped and as long as the buffer.
            self.driver
                .check(unsafe { (self.driver.copy_out_now)(contents.as_mut_ptr().cast(), at, contents.len()) })?;
            self.parked.push((at, contents));
            self.unmap(at);
        }
        Ok(self.allocations.values().sum())
    }

    /// Maps parked chunks again and copies their contents back.
    pub fn unpark(&mut self) -> CudaResult<()> {
        while let Some((at, contents)) = self.parked.pop() {
            let copied = self.map(at).and_then(|()| {
                // SAFETY: just mapped, as long as the buffer.
                self.driver.check(unsafe { (self.driver.copy_in_now)(at, contents.as_ptr().cast(), contents.len()) })
            });
            if let Err(error) = copied {
                self.unmap(at);
                self.parked.push((at, contents));
                return Err(error);
            }
            let (from, to) = (at, at + self.chunk);
            let users = self.allocations.iter().filter(|(address, bytes)| **address < to && *address + *bytes > from);
            let users = users.count() as u32;
            if let Some(chunk) = self.chunks.get_mut(&at) {
                chunk.users = users;
            }
        }
        Ok(())
    }
}
