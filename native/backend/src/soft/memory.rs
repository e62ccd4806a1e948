//! Allocations in the session's address range, and the pages behind them.

use crate::error::{CudaError, CudaResult, code};
use sluice_softgpu::{Arena, GRANULE, PAGE};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The end of the range belongs to modules' variables and the kernels' heap, whose addresses the device chooses: this
/// share of it …
const VARIABLE_SHARE: u64 = 16;
/// … and at least so many bytes.
const VARIABLE_BYTES: u64 = 1 << 30;

/// See the module.
pub struct Memory {
    arena: Arena,
    /// See [`Memory::usable`].
    usable: u64,
    exact: bool,
    state: Mutex<State>,
}

/// An allocation that was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    address: u64,
    bytes: u64,
}

struct State {
    /// Address to bytes.
    allocations: BTreeMap<u64, u64>,
    /// Freed, with pages that queued work may still use.
    freed: Vec<Block>,
    /// Where the next module's variables go; addresses are not used twice.
    next_variable: u64,
}

impl Memory {
    /// Reserves a range.  In an `exact` one an allocation ends with its last byte; else its granule is accessible to the
    /// end, as on a card, where programs that go a little too far run.  Of `lent` memory other workers can have a view.
    pub fn reserve(base: u64, bytes: u64, exact: bool, lent: bool) -> CudaResult<Memory> {
        if bytes < 2 * VARIABLE_BYTES {
            return Err(CudaError::new(code::INVALID_VALUE, "an address range of at least 2 GiB is needed"));
        }
        let reserve = if lent { Arena::reserve_shared } else { Arena::reserve };
        let arena = reserve(base, bytes).map_err(|error| CudaError::new(code::INVALID_VALUE, error.to_string()))?;
        let variables = (bytes / VARIABLE_SHARE / PAGE * PAGE).max(VARIABLE_BYTES);
        let next_variable = base + bytes - variables;
        Ok(Memory {
            arena,
            usable: bytes - variables,
            exact,
            state: Mutex::new(State { allocations: BTreeMap::new(), freed: Vec::new(), next_variable }),
        })
    }

    /// The address space that kernels run in.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the range, from its beginning, that allocations may use.
    pub fn usable(&self) -> u64 {
        self.usable
    }

    /// Backs an allocation with pages, new ones zeroed; small neighbours share a page, of which each has its own bytes.
    /// Answers whether something that was freed here may still be in use by queued work.
    pub fn alloc(&self, address: u64, bytes: u64) -> CudaResult<bool> {
        let limit = self.arena.base() + self.usable();
        let end = address.checked_add(bytes).filter(|end| bytes > 0 && address >= self.arena.base() && *end <= limit);
        let end =
            end.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "the allocation leaves the session's range"))?;
        let mut state = self.state();
        if state.overlapping(address, end).next().is_some() {
            return Err(CudaError::new(code::INVALID_VALUE, "something is allocated there already"));
        }
        if !address.is_multiple_of(GRANULE) {
            return Err(CudaError::new(code::INVALID_VALUE, format!("allocations begin at multiples of {GRANULE}")));
        }
        let extent = self.extent(bytes);
        self.arena.allocate(address, extent).map_err(|error| CudaError::new(code::OUT_OF_MEMORY, error.to_string()))?;
        state.allocations.insert(address, bytes);
        Ok(state.freed.iter().any(|block| block.address < end && block.address + block.bytes > address))
    }

    /// Ends an allocation; its pages stay until [`Memory::release`].
    pub fn free(&self, address: u64) -> CudaResult<Block> {
        let mut state = self.state();
        let bytes = state.allocations.remove(&address);
        let bytes = bytes.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "nothing is allocated there"))?;
        let block = Block { address, bytes };
        state.freed.push(block);
        Ok(block)
    }

    /// Gives a freed allocation's pages back, as far as nothing else is on them: no other allocation, and none that was
    /// freed later and that queued work may still use.
    pub fn release(&self, block: Block) -> CudaResult<u64> {
        let mut state = self.state();
        if let Some(at) = state.freed.iter().position(|freed| *freed == block) {
            state.freed.swap_remove(at);
        }
        let (mut from, last) = pages(block.address, block.address + block.bytes);
        let mut gaps = Vec::new();
        let freed = state.freed.iter().map(|block| (block.address, block.address + block.bytes));
        let freed = freed.filter(|(address, end)| *address < last && *end > from);
        let mut in_use: Vec<(u64, u64)> = state.overlapping(from, last).chain(freed).collect();
        in_use.sort_unstable();
        for (address, end) in &in_use {
            let (used_from, used_to) = pages(*address, *end);
            gaps.push((from, used_from.max(from)));
            from = from.max(used_to);
        }
        gaps.push((from, last.max(from)));
        for (from, to) in gaps.into_iter().filter(|(from, to)| from < to) {
            self.arena.discard(from, to - from).map_err(|error| CudaError::new(code::UNKNOWN, error.to_string()))?;
        }
        // Of pages that stay, the block's part is nobody's any more: the first and the last page of what is in use.
        let (first, last) = pages(block.address, block.address + block.bytes);
        let mut shared: Vec<u64> = in_use.iter().flat_map(|(address, end)| [*address, *end - 1]).collect();
        shared.iter_mut().for_each(|address| *address = *address / PAGE * PAGE);
        shared.dedup();
        for page in shared.into_iter().filter(|page| (first..last).contains(page)) {
            let ranges: Vec<Range<u64>> = in_use
                .iter()
                .map(|(address, end)| *address..*address + self.extent(end - address))
                .filter(|r| r.start < page + PAGE && r.end > page)
                .collect();
            self.arena.share(page, &ranges).map_err(|error| CudaError::new(code::UNKNOWN, error.to_string()))?;
        }
        Ok(block.bytes)
    }

    /// How many bytes from an allocation's beginning may be accessed.
    fn extent(&self, bytes: u64) -> u64 {
        if self.exact { bytes } else { bytes.next_multiple_of(GRANULE) }
    }

    /// Whether these bytes are the session's and nothing is allocated there.
    pub fn is_free(&self, address: u64, bytes: u64) -> bool {
        let limit = self.arena.base() + self.usable();
        let end = address.checked_add(bytes).filter(|end| address >= self.arena.base() && *end <= limit);
        end.is_some_and(|end| self.state().overlapping(address, end).next().is_none())
    }

    /// Where an address that is not allocated lies, seen from the nearest allocation: for a person. None where it is
    /// allocated, and where nothing is.
    pub fn nearest(&self, address: u64) -> Option<String> {
        let range = self.arena.base()..self.arena.base() + self.arena.len();
        if address < PAGE {
            return Some("a null pointer".to_owned());
        }
        if !range.contains(&address) {
            return Some(
                "no memory of this GPU. Check the index; the program's own memory must be copied first".to_owned(),
            );
        }
        let state = self.state();
        let behind = match state.allocations.range(..=address).next_back() {
            Some((start, bytes)) if address < start + bytes => return None,
            Some((start, bytes)) => Some((address - (start + bytes), "behind", *start, *bytes)),
            None => None,
        };
        let after = state.allocations.range(address..).next();
        let before = after.map(|(start, bytes)| (start - address, "before", *start, *bytes));
        let (distance, side, start, bytes) = behind.into_iter().chain(before).min()?;
        Some(format!("{distance} bytes {side} the allocation of {bytes} bytes at {start:#x}"))
    }

    /// Bytes allocated.
    pub fn allocated(&self) -> u64 {
        self.state().allocations.values().sum()
    }

    /// Memory for a module's variables or the kernels' heap, on pages of its own.
    pub fn take_variables(&self, bytes: u64) -> CudaResult<u64> {
        let length = bytes.next_multiple_of(PAGE);
        let mut state = self.state();
        let base = state.next_variable;
        if length > self.arena.base() + self.arena.len() - base {
            return Err(CudaError::new(code::OUT_OF_MEMORY, "no more room for modules' variables and the heap"));
        }
        let extent = self.extent(bytes);
        self.arena.allocate(base, extent).map_err(|error| CudaError::new(code::OUT_OF_MEMORY, error.to_string()))?;
        state.next_variable = base + length;
        Ok(base)
    }

    /// Gives what [`Memory::take_variables`] gave back.
    pub fn give_variables_back(&self, base: u64, bytes: u64) {
        // The pages are ours; should the system refuse, their memory stays, and nobody uses it.
        let _ = self.arena.discard(base, bytes.next_multiple_of(PAGE));
    }
}

/// The whole pages that hold `from..to`.
fn pages(from: u64, to: u64) -> (u64, u64) {
    (from / PAGE * PAGE, to.next_multiple_of(PAGE))
}

impl State {
    /// Allocations with a byte in `from..to`, as (address, end), the last first.
    fn overlapping(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
        let before = self.allocations.range(..to.max(from)).rev();
        before.map(|(address, bytes)| (*address, address + bytes)).take_while(move |(_, end)| *end > from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x10_0000_0000;

    fn free(memory: &Memory, address: u64) -> CudaResult<u64> {
        memory.release(memory.free(address)?)
    }

    #[test]
    fn neighbours_on_one_page_live_and_die_alone() {
        let memory = Memory::reserve(BASE, 4 << 30, true, false).expect("range");
        memory.alloc(BASE, 512).expect("first");
        memory.alloc(BASE + 512, 6000).expect("second");
        memory.arena().write(BASE + 512, &[7; 6000]).expect("written");
        assert_eq!(free(&memory, BASE), Ok(512));
        let mut byte = [0];
        memory.arena().read(BASE + 512 + 5999, &mut byte).expect("still there");
        assert_eq!(byte, [7]);
        assert_eq!(free(&memory, BASE + 512), Ok(6000));
        assert!(memory.arena().read(BASE + 512, &mut byte).is_err());
        assert!(memory.arena().is_empty());
    }

    #[test]
    fn an_allocation_reaches_to_the_end_of_its_granule_unless_exact_bounds_are_asked_for() {
        let memory = Memory::reserve(BASE + (48 << 30), 4 << 30, false, false).expect("range");
        memory.alloc(BASE + (48 << 30), 40).expect("allocated");
        let (base, mut byte) = (memory.arena().base(), [0]);
        memory.arena().read(base + 511, &mut byte).expect("as on a card");
        assert!(memory.arena().read(base + 512, &mut byte).is_err());
        memory.alloc(base + 512, 1000).expect("a neighbour");
        assert_eq!(free(&memory, base), Ok(40));
        assert!(memory.arena().read(base + 511, &mut byte).is_err());
        memory.arena().read(base + 1535, &mut byte).expect("the neighbour's last granule");
    }

    #[test]
    fn an_address_is_told_by_the_nearest_allocation_if_it_is_the_devices() {
        let memory = Memory::reserve(BASE + (56 << 30), 4 << 30, false, false).expect("range");
        let base = memory.arena().base();
        assert_eq!(memory.nearest(base), None);
        memory.alloc(base, 40).expect("allocated");
        let behind = format!("24 bytes behind the allocation of 40 bytes at {base:#x}");
        assert_eq!(memory.nearest(base + 64), Some(behind));
        assert_eq!(memory.nearest(base + 39), None);
        memory.alloc(base + PAGE, 800).expect("allocated");
        let before = format!("16 bytes before the allocation of 800 bytes at {:#x}", base + PAGE);
        assert_eq!(memory.nearest(base + PAGE - 16), Some(before));
        for (address, said) in
            [(8, "null pointer"), (0x7fff_0000_0000, "no memory of this GPU"), (u64::MAX, "no memory")]
        {
            let text = memory.nearest(address).expect("said");
            assert!(text.contains(said) && !text.contains("behind"), "{address:#x}: {text}");
        }
    }

    /// Random allocations and frees of small and large pieces, released late: exactly what is allocated, or freed and not
    /// released, may be used.
    #[test]
    fn exactly_what_is_allocated_may_be_used() {
        let memory = Memory::reserve(BASE + (40 << 30), 4 << 30, true, false).expect("range");
        let (base, pages) = (memory.arena().base(), 24u64);
        let (mut live, mut freed, mut random) = (Vec::<Block>::new(), Vec::<Block>::new(), 7u64);
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for _ in 0..4000 {
            match next(4) {
                0 | 1 => {
                    let address = base + next(pages * PAGE / GRANULE) * GRANULE;
                    let bytes = if next(3) == 0 { 1 + next(4 * PAGE) } else { 1 + next(700) };
                    // The client's allocations never share a granule.
                    let end = (address + bytes).next_multiple_of(GRANULE);
                    let apart =
                        |b: &Block| b.address >= end || (b.address + b.bytes).next_multiple_of(GRANULE) <= address;
                    if live.iter().all(apart) {
                        memory.alloc(address, bytes).expect("free");
                        live.push(Block { address, bytes });
                    }
                }
                2 if !live.is_empty() => {
                    let gone = live.swap_remove(next(live.len() as u64) as usize);
                    freed.push(memory.free(gone.address).expect("live"));
                }
                3 if !freed.is_empty() => {
                    let gone = freed.swap_remove(next(freed.len() as u64) as usize);
                    assert_eq!(memory.release(gone), Ok(gone.bytes));
                }
                _ => continue,
            }
            let held = |at: u64| live.iter().chain(&freed).any(|b| b.address <= at && at < b.address + b.bytes);
            for _ in 0..40 {
                let (at, length) = (base + next((pages + 5) * PAGE), 1 + next(5000));
                let wanted = (at..at + length).all(held);
                assert_eq!(memory.arena().contains(at, length), wanted, "{at:#x}, {length}: {live:x?} {freed:x?}");
                assert_eq!(memory.arena().contains(at, 1), held(at), "{at:#x}: {live:x?} {freed:x?}");
            }
        }
    }

    #[test]
    fn freed_pages_come_back_as_zeros() {
        let memory = Memory::reserve(BASE + (8 << 30), 4 << 30, true, false).expect("range");
        let at = memory.arena().base();
        memory.alloc(at, 4096).expect("first");
        memory.arena().write(at, &[9; 4096]).expect("written");
        free(&memory, at).expect("freed");
        memory.alloc(at, 4096).expect("again");
        let mut bytes = [1; 4096];
        memory.arena().read(at, &mut bytes).expect("read");
        assert_eq!(bytes, [0; 4096]);
    }

    #[test]
    fn an_address_used_again_before_its_pages_are_released_keeps_them() {
        let memory = Memory::reserve(BASE + (24 << 30), 4 << 30, true, false).expect("range");
        let at = memory.arena().base();
        assert_eq!(memory.alloc(at, 3 * PAGE), Ok(false));
        let block = memory.free(at).expect("freed");
        assert_eq!(memory.alloc(at + PAGE, 100), Ok(true));
        memory.arena().write(at + PAGE, &[5; 100]).expect("written");
        assert_eq!(memory.release(block), Ok(3 * PAGE));
        let mut byte = [0];
        memory.arena().read(at + PAGE, &mut byte).expect("still there");
        assert_eq!(byte, [5]);
        assert!(memory.arena().read(at, &mut byte).is_err());
        assert!(memory.arena().read(at + 2 * PAGE, &mut byte).is_err());
    }

    #[test]
    fn pages_stay_for_a_block_that_was_freed_later() {
        let memory = Memory::reserve(BASE + (32 << 30), 4 << 30, true, false).expect("range");
        let at = memory.arena().base();
        memory.alloc(at, 3000).expect("first");
        let first = memory.free(at).expect("freed");
        // The same address again, and a neighbour on its page: both are freed before the first one's work has run.
        assert_eq!(memory.alloc(at, 3000), Ok(true));
        assert_eq!(memory.alloc(at + PAGE - 512, 1024), Ok(false));
        memory.arena().write(at, &[3; 3000]).expect("written");
        memory.arena().write(at + PAGE - 512, &[4; 1024]).expect("written");
        let again = memory.free(at).expect("freed");
        let neighbour = memory.free(at + PAGE - 512).expect("freed");
        assert_eq!(memory.release(first), Ok(3000));
        let mut byte = [0];
        memory.arena().read(at, &mut byte).expect("its work has not run");
        assert_eq!(byte, [3]);
        assert_eq!(memory.release(again), Ok(3000));
        memory.arena().read(at + PAGE - 512, &mut byte).expect("nor has this one's");
        assert_eq!(byte, [4]);
        assert_eq!(memory.release(neighbour), Ok(1024));
        assert!(memory.arena().is_empty());
    }

    #[test]
    fn what_overlaps_or_leaves_the_range_is_refused() {
        let memory = Memory::reserve(BASE + (16 << 30), 4 << 30, true, false).expect("range");
        let at = memory.arena().base();
        memory.alloc(at + 4096, 4096).expect("first");
        assert!(memory.alloc(at + 7680, 10).is_err() && memory.alloc(at + 9000, 10).is_err());
        assert!(memory.alloc(at, 4097).is_err());
        assert!(memory.alloc(at + (4 << 30) - 4096, 4096).is_err());
        assert!(memory.alloc(at, u64::MAX).is_err());
        assert!(memory.free(at).is_err());
    }
}
