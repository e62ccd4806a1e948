//! Memory that the program maps itself: physical memory by its handles, and where it lies. Kept in the host while the
//! session has no lease, wherever it was mapped, accessible or not.

use super::loader::{Access, AllocationProperties, Driver};
use crate::error::{CudaError, CudaResult, code};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Physical {
    bytes: u64,
    /// The driver's handle; None while it is parked.
    made: Option<u64>,
    /// What it held when it was parked.
    contents: Vec<u8>,
}

struct Mapping {
    bytes: u64,
    handle: u64,
    accessible: bool,
}

/// See the module.
pub struct Mapped {
    driver: &'static Driver,
    properties: AllocationProperties,
    physical: HashMap<u64, Physical>,
    /// By address.
    mappings: BTreeMap<u64, Mapping>,
    /// Bytes of the device behind all that is allocated.
    backing: Arc<AtomicU64>,
}

/// An address at which each physical memory can be reached for a moment.
pub struct Reach {
    /// (handle, address)
    pub at: Vec<(u64, u64)>,
    /// Windows opened for it: (address, bytes).
    windows: Vec<(u64, u64)>,
    /// Mappings made accessible for it: (address, bytes).
    opened: Vec<(u64, u64)>,
}

fn invalid(text: &str) -> CudaError {
    CudaError::new(code::INVALID_VALUE, text)
}

impl Mapped {
    /// None yet.
    pub fn new(driver: &'static Driver, properties: AllocationProperties, backing: Arc<AtomicU64>) -> Mapped {
        Mapped { driver, properties, physical: HashMap::new(), mappings: BTreeMap::new(), backing }
    }

    /// Physical memory without an address, all zeros (as the driver makes it).
    pub fn create(&mut self, handle: u64, bytes: u64) -> CudaResult<()> {
        let made = Some(self.make(bytes)?);
        self.physical.insert(handle, Physical { bytes, made, contents: Vec::new() });
        Ok(())
    }

    fn make(&self, bytes: u64) -> CudaResult<u64> {
        let mut made = 0;
        self.backing.fetch_add(bytes, Ordering::AcqRel);
        // SAFETY: a live local, and properties that `Memory::reserve` filled in.
        let status = unsafe { (self.driver.memory_create)(&mut made, bytes as usize, &self.properties, 0) };
        self.driver.check(status).inspect_err(|_| {
            self.backing.fetch_sub(bytes, Ordering::AcqRel);
        })?;
        Ok(made)
    }

    /// Gives it back; the driver keeps what is still mapped.
    pub fn release(&mut self, handle: u64) -> CudaResult<()> {
        let gone = self.physical.remove(&handle).ok_or_else(|| invalid("there is no such memory"))?;
        let Some(made) = gone.made else { return Ok(()) };
        // SAFETY: made by `make`, and released once.
        let released = self.driver.check(unsafe { (self.driver.memory_release)(made) });
        self.backing.fetch_sub(gone.bytes, Ordering::AcqRel);
        released
    }

    /// Maps it; the range is the session's, and free.
    pub fn map(&mut self, address: u64, bytes: u64, handle: u64) -> CudaResult<()> {
        let made = self.physical.get(&handle).and_then(|physical| physical.made);
        let made = made.ok_or_else(|| invalid("there is no such memory"))?;
        // SAFETY: the range is reserved; the driver refuses what is mapped already.
        self.driver.check(unsafe { (self.driver.memory_map)(address, bytes as usize, 0, made, 0) })?;
        self.mappings.insert(address, Mapping { bytes, handle, accessible: false });
        Ok(())
    }

    /// Unmaps whole mappings.
    pub fn unmap(&mut self, address: u64, bytes: u64) -> CudaResult<()> {
        // SAFETY: the client has waited for all work; the driver refuses what is not a whole mapping.
        self.driver.check(unsafe { (self.driver.memory_unmap)(address, bytes as usize) })?;
        self.mappings.retain(|at, _| !(address..address.saturating_add(bytes)).contains(at));
        Ok(())
    }

    /// Reading and writing, or nothing.
    pub fn set_access(&mut self, address: u64, bytes: u64, accessible: bool) -> CudaResult<()> {
        self.access(address, bytes, accessible)?;
        for (_, mapping) in self.mappings.range_mut(address..address.saturating_add(bytes)) {
            mapping.accessible = accessible;
        }
        Ok(())
    }

    fn access(&self, address: u64, bytes: u64, accessible: bool) -> CudaResult<()> {
        let access = Access { location: self.properties.location, flags: if accessible { 3 } else { 0 } };
        // SAFETY: one description; the driver refuses what is not mapped.
        self.driver.check(unsafe { (self.driver.memory_access)(address, bytes as usize, &access, 1) })
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        self.physical.values().map(|physical| physical.bytes).sum()
    }

    /// Bytes of one.
    pub fn bytes_of(&self, handle: u64) -> u64 {
        self.physical.get(&handle).map_or(0, |physical| physical.bytes)
    }

    /// Makes all of it reachable until [`Mapped::leave`].
    pub fn reach(&self) -> CudaResult<Reach> {
        let mut reach = Reach { at: Vec::new(), windows: Vec::new(), opened: Vec::new() };
        let reached = self.physical.iter().try_for_each(|(handle, physical)| {
            let mine = || self.mappings.iter().filter(|(_, mapping)| mapping.handle == *handle);
            let address = match (mine().find(|(_, mapping)| mapping.accessible), mine().next(), physical.made) {
                (Some((address, _)), ..) => *address,
                (None, Some((address, mapping)), _) => {
                    self.access(*address, mapping.bytes, true)?;
                    reach.opened.push((*address, mapping.bytes));
                    *address
                }
                (None, None, Some(made)) => self.window(made, physical.bytes, &mut reach)?,
                (None, None, None) => return Err(invalid("memory that is parked cannot be reached")),
            };
            reach.at.push((*handle, address));
            Ok(())
        });
        match reached {
            Ok(()) => Ok(reach),
            Err(error) => {
                self.leave(&reach);
                Err(error)
            }
        }
    }

    /// Maps what is mapped nowhere, at addresses of its own.
    fn window(&self, made: u64, bytes: u64, reach: &mut Reach) -> CudaResult<u64> {
        let (driver, length, mut address) = (self.driver, bytes as usize, 0);
        // SAFETY: a live local; the driver chooses the addresses.
        driver.check(unsafe { (driver.address_reserve)(&mut address, length, 0, 0, 0) })?;
        reach.windows.push((address, bytes));
        // SAFETY: just reserved; a handle of `make`.
        driver.check(unsafe { (driver.memory_map)(address, length, 0, made, 0) })?;
        self.access(address, bytes, true)?;
        Ok(address)
    }

    /// Undoes what [`Mapped::reach`] did.
    pub fn leave(&self, reach: &Reach) {
        for (address, bytes) in &reach.opened {
            // It was accessible a moment ago; an error leaves nothing to do.
            let _ = self.access(*address, *bytes, false);
        }
        for (address, bytes) in &reach.windows {
            // SAFETY: a window of `reach`, which nobody uses any more; of one that was not mapped the driver says so.
            unsafe {
                (self.driver.memory_unmap)(*address, *bytes as usize);
                (self.driver.address_free)(*address, *bytes as usize);
            }
        }
    }

    /// Keeps what has been copied, and gives all memory back; addresses, handles and sizes stay known.
    pub fn park(&mut self, contents: impl Iterator<Item = (u64, Vec<u8>)>) {
        for (handle, contents) in contents {
            if let Some(physical) = self.physical.get_mut(&handle) {
                physical.contents = contents;
            }
        }
        self.give_back();
    }

    /// Gives all memory back; what was copied stays.
    pub fn give_back(&mut self) {
        for (address, mapping) in &self.mappings {
            // SAFETY: no work runs; of what is not mapped the driver says so.
            unsafe { (self.driver.memory_unmap)(*address, mapping.bytes as usize) };
        }
        for physical in self.physical.values_mut() {
            if let Some(made) = physical.made.take() {
                // SAFETY: made by `make`, mapped nowhere any more, released once.
                unsafe { (self.driver.memory_release)(made) };
                self.backing.fetch_sub(physical.bytes, Ordering::AcqRel);
            }
        }
    }

    /// Makes and maps everything again as it was; what it held is still to be copied. After an error what was made so far
    /// is still to be given back.
    pub fn unpark(&mut self) -> CudaResult<()> {
        let wanted: Vec<(u64, u64)> = self.physical.iter().map(|(handle, kept)| (*handle, kept.bytes)).collect();
        for (handle, bytes) in wanted {
            let made = self.make(bytes)?;
            if let Some(physical) = self.physical.get_mut(&handle) {
                physical.made = Some(made);
            }
        }
        for (address, mapping) in &self.mappings {
            // Memory that the program has given up stays as long as it is mapped, and so does its handle here.
            let made = self.physical.get(&mapping.handle).and_then(|physical| physical.made);
            let made = made.ok_or_else(|| invalid("a mapping without memory"))?;
            // SAFETY: an address of the session's range at which this memory lay before.
            self.driver.check(unsafe { (self.driver.memory_map)(*address, mapping.bytes as usize, 0, made, 0) })?;
            if mapping.accessible {
                self.access(*address, mapping.bytes, true)?;
            }
        }
        Ok(())
    }

    /// What one held when it was parked.
    pub fn take_contents(&mut self, handle: u64) -> Vec<u8> {
        self.physical.get_mut(&handle).map(|physical| std::mem::take(&mut physical.contents)).unwrap_or_default()
    }
}
