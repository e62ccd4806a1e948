//! The program's own physical memory of one session, and where it is mapped. Pure bookkeeping.

use std::collections::{BTreeMap, HashMap};

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Mappings {
    physical: HashMap<u64, Physical>,
    /// By address.
    mapped: BTreeMap<u64, Mapping>,
}

#[derive(Debug)]
struct Physical {
    bytes: u64,
    /// Handles that the program holds.
    held: u32,
    mapped: u32,
}

/// One mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub address: u64,
    pub bytes: u64,
    pub handle: u64,
    pub accessible: bool,
}

impl Mappings {
    /// New physical memory.
    pub fn create(&mut self, handle: u64, bytes: u64) {
        self.physical.insert(handle, Physical { bytes, held: 1, mapped: 0 });
    }

    /// Its size; None when there is no such handle that the program holds.
    pub fn bytes(&self, handle: u64) -> Option<u64> {
        self.physical.get(&handle).filter(|physical| physical.held > 0).map(|physical| physical.bytes)
    }

    /// Bytes of all physical memory, mapped or not.
    pub fn used(&self) -> u64 {
        self.physical.values().map(|physical| physical.bytes).sum()
    }

    /// The program holds the handle once more.
    pub fn retain(&mut self, handle: u64) {
        if let Some(physical) = self.physical.get_mut(&handle) {
            physical.held += 1;
        }
    }

    /// The program gives a handle back: whether it held it.
    pub fn release(&mut self, handle: u64) -> bool {
        match self.physical.get_mut(&handle) {
            Some(physical) if physical.held > 0 => {
                physical.held -= 1;
                true
            }
            _ => false,
        }
    }

    /// Physical memory that nobody holds and that is mapped nowhere, with its size; it is forgotten.
    pub fn take_unused(&mut self) -> Vec<(u64, u64)> {
        let unused = |physical: &Physical| physical.held == 0 && physical.mapped == 0;
        let found = self.physical.iter().filter(|(_, physical)| unused(physical));
        let found: Vec<(u64, u64)> = found.map(|(handle, physical)| (*handle, physical.bytes)).collect();
        self.physical.retain(|_, physical| !unused(physical));
        found
    }

    /// Mappings with a byte in the range, in order.
    pub fn within(&self, address: u64, bytes: u64) -> Vec<Mapping> {
        let end = address.saturating_add(bytes);
        let before =
            self.mapped.range(..end).rev().take_while(|(_, mapping)| mapping.address + mapping.bytes > address);
        let mut found: Vec<Mapping> = before.map(|(_, mapping)| *mapping).collect();
        found.reverse();
        found
    }

    /// The mappings that fill the range exactly, whole ones without gaps; None when there are no such.
    pub fn exactly(&self, address: u64, bytes: u64) -> Option<Vec<Mapping>> {
        let found = self.within(address, bytes);
        let mut at = address;
        for mapping in &found {
            if mapping.address != at {
                return None;
            }
            at += mapping.bytes;
        }
        (!found.is_empty() && at == address.checked_add(bytes)?).then_some(found)
    }

    /// Notes a mapping, not accessible yet.
    pub fn map(&mut self, address: u64, bytes: u64, handle: u64) {
        self.mapped.insert(address, Mapping { address, bytes, handle, accessible: false });
        if let Some(physical) = self.physical.get_mut(&handle) {
            physical.mapped += 1;
        }
    }

    /// Ends mappings.
    pub fn unmap(&mut self, mappings: &[Mapping]) {
        for mapping in mappings {
            self.mapped.remove(&mapping.address);
            if let Some(physical) = self.physical.get_mut(&mapping.handle) {
                physical.mapped -= 1;
            }
        }
    }

    /// Notes that mappings can be accessed, or not.
    pub fn set_accessible(&mut self, mappings: &[Mapping], accessible: bool) {
        for mapping in mappings {
            if let Some(found) = self.mapped.get_mut(&mapping.address) {
                found.accessible = accessible;
            }
        }
    }

    /// The mapping that holds an address.
    pub fn at(&self, address: u64) -> Option<Mapping> {
        self.within(address, 1).first().copied()
    }

    /// The accessible mapping that holds the address, if accessible ones hold all the bytes from there.
    pub fn lookup(&self, address: u64, bytes: u64) -> Option<Mapping> {
        let first = self.at(address).filter(|mapping| mapping.accessible)?;
        let end = address.checked_add(bytes)?;
        let mut at = first.address + first.bytes;
        while at < end {
            let next = self.mapped.get(&at).filter(|mapping| mapping.accessible)?;
            at += next.bytes;
        }
        Some(first)
    }

    /// Whether anything is mapped in the range.
    pub fn any(&self, address: u64, bytes: u64) -> bool {
        !self.within(address, bytes).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_may_cross_from_mapping_to_mapping_but_not_into_a_gap() {
        let mut mappings = Mappings::default();
        mappings.create(16, 100);
        mappings.create(32, 100);
        mappings.map(1000, 100, 16);
        mappings.map(1100, 100, 32);
        mappings.map(1300, 100, 16);
        assert_eq!(mappings.lookup(1000, 1), None, "not accessible yet");
        assert_eq!(mappings.used(), 200, "however often it is mapped");
        let two = mappings.exactly(1000, 200).expect("two mappings");
        mappings.set_accessible(&two, true);
        assert_eq!(mappings.lookup(1050, 150).map(|mapping| mapping.address), Some(1000));
        assert_eq!(mappings.lookup(1050, 151), None);
        assert_eq!(mappings.exactly(1000, 150), None);
        assert_eq!(mappings.exactly(1100, 300), None);
        assert!(mappings.any(1290, 11) && !mappings.any(1200, 100));
    }

    #[test]
    fn memory_lives_while_it_is_held_or_mapped() {
        let mut mappings = Mappings::default();
        mappings.create(16, 100);
        mappings.map(1000, 100, 16);
        assert!(mappings.release(16) && !mappings.release(16));
        assert_eq!((mappings.bytes(16), mappings.take_unused()), (None, vec![]));
        mappings.retain(16);
        assert_eq!(mappings.bytes(16), Some(100));
        let all = mappings.exactly(1000, 100).expect("mapped");
        mappings.unmap(&all);
        assert_eq!(mappings.take_unused(), vec![]);
        assert!(mappings.release(16));
        assert_eq!(mappings.take_unused(), vec![(16, 100)]);
    }
}
