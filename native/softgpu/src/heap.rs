//! The heap that `malloc` and `free` of kernels use.
//!
//! Each allocation begins with a header of 16 bytes in the heap itself: its length and a mark made of its address. A
//! kernel may overwrite a header, as it may on a card; `free` then says so. What is free is kept outside, so that
//! nothing that a kernel writes leads out of the heap.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What CUDA gives a context that asks for nothing else (`cudaLimitMallocHeapSize`), bytes.
pub const DEFAULT_HEAP: u64 = 8 << 20;

/// Bytes of a header, and what every allocation's address is a multiple of.
const UNIT: u64 = 16;
/// Makes an address its mark.
const MARK: u64 = 0x5afe_9ea9_0b10_c4ed;

/// Memory of an arena that kernels allocate from, from any thread.
pub struct Heap {
    base: u64,
    bytes: u64,
    free: Mutex<Free>,
}

/// What is free.
#[derive(Default)]
struct Free {
    /// Address to bytes.
    by_address: BTreeMap<u64, u64>,
    /// Bytes and address.
    by_size: BTreeSet<(u64, u64)>,
}

/// `free` of something that `malloc` did not give, or that was freed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAllocated(pub u64);

impl fmt::Display for NotAllocated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "free({:#x}) of memory that malloc did not give, or a second time", self.0)
    }
}

impl Free {
    fn insert(&mut self, address: u64, bytes: u64) {
        self.by_address.insert(address, bytes);
        self.by_size.insert((bytes, address));
    }

    fn remove(&mut self, address: u64, bytes: u64) {
        self.by_address.remove(&address);
        self.by_size.remove(&(bytes, address));
    }
}

impl Heap {
    /// A heap in a mapped range of an arena, which begins at a multiple of 16.
    ///
    /// # Safety
    /// The range stays mapped as long as the heap is used, and nothing of the host refers to it.
    pub unsafe fn new(base: u64, bytes: u64) -> Heap {
        let mut free = Free::default();
        if bytes >= 2 * UNIT {
            free.insert(base, bytes / UNIT * UNIT);
        }
        Heap { base, bytes, free: Mutex::new(free) }
    }

    /// Where it begins.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// How long it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn free_now(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The words of the header at this address.
    fn header(&self, at: u64) -> [&AtomicU64; 2] {
        // SAFETY: the callers' addresses are multiples of 16 in the heap, with a header's length behind them; kernels
        // on other threads may write there, which atomics allow.
        [0, 8].map(|offset| unsafe { AtomicU64::from_ptr((at + offset) as *mut u64) })
    }

    /// Memory of so many bytes, aligned to 16; zero if there is no room.
    pub fn malloc(&self, bytes: u64) -> u64 {
        let Some(needed) = bytes.max(1).checked_next_multiple_of(UNIT).and_then(|b| b.checked_add(UNIT)) else {
            return 0;
        };
        let mut free = self.free_now();
        let Some(&(found, at)) = free.by_size.range((needed, 0)..).next() else { return 0 };
        free.remove(at, found);
        // A rest that only a header fits in stays with the allocation.
        let taken = if found - needed < 2 * UNIT { found } else { needed };
        if taken < found {
            free.insert(at + taken, found - taken);
        }
        let [length, mark] = self.header(at);
        length.store(taken, Ordering::Relaxed);
        mark.store(at ^ MARK, Ordering::Relaxed);
        at + UNIT
    }

    /// Gives memory back. Of zero, nothing.
    pub fn free(&self, address: u64) -> Result<(), NotAllocated> {
        if address == 0 {
            return Ok(());
        }
        let wrong = NotAllocated(address);
        let end = self.base + self.bytes;
        if !address.is_multiple_of(UNIT) || address < self.base + UNIT || address >= end {
            return Err(wrong);
        }
        let at = address - UNIT;
        let mut free = self.free_now();
        let [length, mark] = self.header(at);
        let (mut bytes, mut from) = (length.load(Ordering::Relaxed), at);
        if mark.load(Ordering::Relaxed) != at ^ MARK
            || !bytes.is_multiple_of(UNIT)
            || bytes < 2 * UNIT
            || bytes > end - at
        {
            return Err(wrong);
        }
        let before = free.by_address.range(..=at).next_back().map(|(a, b)| (*a, *b));
        let behind = free.by_address.range(at..).next().map(|(a, b)| (*a, *b));
        // A header that a kernel has forged.
        if before.is_some_and(|(a, b)| a + b > at) || behind.is_some_and(|(a, _)| a < at + bytes) {
            return Err(wrong);
        }
        mark.store(0, Ordering::Relaxed);
        if let Some((a, b)) = before.filter(|(a, b)| a + b == at) {
            free.remove(a, b);
            (from, bytes) = (a, bytes + b);
        }
        if let Some((a, b)) = behind.filter(|(a, _)| *a == from + bytes) {
            free.remove(a, b);
            bytes += b;
        }
        free.insert(from, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arena;

    /// Allocations of random sizes never overlap, and when all are freed the heap is whole again.
    #[test]
    fn allocations_lie_apart_and_join_again() {
        let arena = Arena::reserve(0x1_6000_0000_0000 >> 4, 1 << 20).unwrap();
        arena.map(arena.base(), 1 << 20).unwrap();
        // SAFETY: mapped until the end of the test.
        let heap = unsafe { Heap::new(arena.base(), 1 << 20) };
        let (mut live, mut state) = (BTreeMap::<u64, u64>::new(), 9u64);
        let mut refused = 0;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = state >> 33;
            if !pick.is_multiple_of(3) || live.is_empty() {
                let bytes = pick / 2 % 9000;
                let at = heap.malloc(bytes);
                if at == 0 {
                    refused += 1;
                    continue;
                }
                assert!(at.is_multiple_of(16) && at + bytes <= heap.base() + heap.bytes());
                assert!(live.range(..at + bytes.max(1)).next_back().is_none_or(|(a, b)| a + b <= at));
                live.insert(at, bytes.max(1));
            } else {
                let at = *live.keys().nth(pick as usize % live.len()).unwrap();
                live.remove(&at);
                heap.free(at).unwrap();
                assert_eq!(heap.free(at), Err(NotAllocated(at)));
            }
        }
        assert!(refused > 0, "the heap was never full");
        live.keys().for_each(|at| heap.free(*at).unwrap());
        assert_ne!(heap.malloc((1 << 20) - 16), 0);
        assert_eq!(heap.malloc(1), 0);
        assert_eq!(heap.malloc(u64::MAX), 0);
    }

    #[test]
    fn what_malloc_did_not_give_is_not_freed() {
        let arena = Arena::reserve(0x1_6100_0000_0000 >> 4, 1 << 20).unwrap();
        arena.map(arena.base(), 1 << 20).unwrap();
        // SAFETY: mapped until the end of the test.
        let heap = unsafe { Heap::new(arena.base(), 1 << 20) };
        let at = heap.malloc(100);
        assert_eq!(heap.free(0), Ok(()));
        for wrong in [at + 16, at + 1, heap.base(), heap.base() + (1 << 20), 7, !15] {
            assert_eq!(heap.free(wrong), Err(NotAllocated(wrong)));
        }
        // A header in which a kernel has written a length that covers free memory.
        arena.write(at - 16, &(1u64 << 19).to_le_bytes()).unwrap();
        assert_eq!(heap.free(at), Err(NotAllocated(at)));
    }
}
