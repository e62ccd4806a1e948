//! The client's own allocator inside a session's address range, and its credit.
//!
//! Pure bookkeeping: no memory is touched. Blocks start at multiples of [`ALIGNMENT`]; the free block that fits best
//! is taken, at its front.

use std::collections::{BTreeMap, BTreeSet};

/// CUDA promises at least 256; kernels that load vectors profit from more.
pub const ALIGNMENT: u64 = 512;

/// Addresses and credit of one session.
#[derive(Debug)]
pub struct Arena {
    base: u64,
    end: u64,
    /// Bytes that may be allocated without asking gpud.
    pub credit: u64,
    /// address → bytes asked for, and whose they are.
    live: BTreeMap<u64, (u64, u64)>,
    /// address → bytes.
    free: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    /// Addresses without memory that the program reserved: address → bytes.
    reserved: BTreeMap<u64, u64>,
}

/// Why an address does not name memory.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Inside a live allocation: its start and size.
    Live { start: u64, bytes: u64 },
    /// In the range, not allocated (any more), or longer than the allocation.
    Unmapped,
    /// Outside the range.
    Foreign,
}

impl Arena {
    /// An empty arena.
    pub fn new(base: u64, bytes: u64, credit: u64) -> Self {
        let start = base.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        let end = base + bytes;
        let (live, free, by_size, reserved) = Default::default();
        let mut arena = Self { base, end, credit, live, free, by_size, reserved };
        arena.put_free(start, end.saturating_sub(start));
        arena
    }

    fn put_free(&mut self, address: u64, bytes: u64) {
        if bytes > 0 {
            self.free.insert(address, bytes);
            self.by_size.insert((bytes, address));
        }
    }

    fn take_free(&mut self, address: u64) -> Option<u64> {
        let bytes = self.free.remove(&address)?;
        self.by_size.remove(&(bytes, address));
        Some(bytes)
    }

    /// An address for `bytes` of this owner, paid from the credit. `Err(missing)` when the credit is too small by `missing` bytes;
    /// `Ok(None)` when the range has no place.
    pub fn alloc(&mut self, bytes: u64, owner: u64) -> Result<Option<u64>, u64> {
        if self.credit < bytes {
            return Err(bytes - self.credit);
        }
        let Some(size) = bytes.checked_next_multiple_of(ALIGNMENT) else { return Ok(None) };
        let Some(&(block, address)) = self.by_size.range((size, 0)..).next() else { return Ok(None) };
        self.take_free(address);
        self.put_free(address + size, block - size);
        self.live.insert(address, (bytes, owner));
        self.credit -= bytes;
        Ok(Some(address))
    }

    /// Ends the allocation that starts at `address`; its bytes are credit again. None when there is none.
    pub fn release(&mut self, address: u64) -> Option<u64> {
        let (bytes, _) = self.live.remove(&address)?;
        self.credit += bytes;
        self.give(address, bytes.next_multiple_of(ALIGNMENT));
        Some(bytes)
    }

    /// A piece is free again, and one with its free neighbours.
    fn give(&mut self, address: u64, bytes: u64) {
        let (mut start, mut size) = (address, bytes);
        if let Some((&before, &length)) = self.free.range(..address).next_back()
            && before + length == address
        {
            self.take_free(before);
            start = before;
            size += length;
        }
        if let Some(length) = self.take_free(start + size) {
            size += length;
        }
        self.put_free(start, size);
    }

    /// Takes addresses without memory behind them: at `wish` if that is free, else where they fit. `alignment` is a
    /// power of two, `bytes` a multiple of [`ALIGNMENT`].
    pub fn reserve(&mut self, bytes: u64, alignment: u64, wish: u64) -> Option<u64> {
        let holds = |(&start, &length): (&u64, &u64)| {
            let end = wish.checked_add(bytes)?;
            (wish.is_multiple_of(alignment) && end <= start + length).then_some((start, wish))
        };
        let wished = self.free.range(..=wish).next_back().and_then(holds);
        let fitting = || {
            self.by_size.range((bytes, 0)..).find_map(|&(length, start)| {
                let at = start.checked_next_multiple_of(alignment)?;
                (at.checked_add(bytes)? <= start + length).then_some((start, at))
            })
        };
        let (block, at) = wished.or_else(fitting)?;
        let length = self.take_free(block)?;
        self.put_free(block, at - block);
        self.put_free(at + bytes, block + length - (at + bytes));
        self.reserved.insert(at, bytes);
        Some(at)
    }

    /// Ends a reservation; false when there is none of these bytes.
    pub fn unreserve(&mut self, address: u64, bytes: u64) -> bool {
        if self.reserved.get(&address) != Some(&bytes) {
            return false;
        }
        self.reserved.remove(&address);
        self.give(address, bytes);
        true
    }

    /// Whether these addresses lie inside one reservation.
    pub fn is_reserved(&self, address: u64, bytes: u64) -> bool {
        let before = self.reserved.range(..=address).next_back();
        before.is_some_and(|(start, length)| address.checked_add(bytes).is_some_and(|end| end <= start + length))
    }

    /// What lies at `address` for `bytes` bytes.
    pub fn lookup(&self, address: u64, bytes: u64) -> Lookup {
        if address < self.base || address >= self.end {
            return Lookup::Foreign;
        }
        match self.live.range(..=address).next_back() {
            Some((&start, &(size, _))) if address < start + size && bytes <= start + size - address => {
                Lookup::Live { start, bytes: size }
            }
            _ => Lookup::Unmapped,
        }
    }

    /// Takes up to `wanted` bytes from the credit, to give them back.
    pub fn give_up_credit(&mut self, wanted: u64) -> u64 {
        let given = self.credit.min(wanted);
        self.credit -= given;
        given
    }

    /// Starts of an owner's live allocations.
    pub fn addresses(&self, owner: u64) -> Vec<u64> {
        self.live.iter().filter(|(_, (_, of))| *of == owner).map(|(address, _)| *address).collect()
    }

    /// Bytes of live allocations.
    pub fn used(&self) -> u64 {
        self.live.values().map(|(bytes, _)| bytes).sum()
    }

    /// First address and length of the range.
    pub fn range(&self) -> (u64, u64) {
        (self.base, self.end - self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_neighbours_become_one_block_again() {
        let mut arena = Arena::new(1 << 40, 4096, 10_000);
        let blocks: Vec<u64> = (0..8).map(|_| arena.alloc(512, 0).expect("credit").expect("place")).collect();
        assert_eq!(arena.alloc(1, 0), Ok(None), "the range is full");
        for index in [1, 3, 2, 0, 7, 5, 6, 4] {
            assert_eq!(arena.release(blocks[index]), Some(512));
        }
        assert_eq!(arena.alloc(4096, 0), Ok(Some(1 << 40)));
    }

    #[test]
    fn credit_is_exact_to_the_byte() {
        let mut arena = Arena::new(1 << 40, 1 << 20, 1000);
        let block = arena.alloc(999, 0).expect("credit").expect("place");
        assert_eq!(arena.alloc(3, 0), Err(2));
        assert_eq!(arena.release(block), Some(999));
        assert_eq!(arena.credit, 1000);
        assert_eq!(arena.give_up_credit(4000), 1000);
    }

    #[test]
    fn an_access_past_an_allocation_is_seen() {
        let mut arena = Arena::new(1 << 40, 1 << 20, 1 << 20);
        let block = arena.alloc(100, 0).expect("credit").expect("place");
        assert_eq!(arena.lookup(block + 99, 1), Lookup::Live { start: block, bytes: 100 });
        assert_eq!(arena.lookup(block + 99, 2), Lookup::Unmapped);
        assert_eq!(arena.lookup(block + 100, 1), Lookup::Unmapped);
        assert_eq!(arena.lookup(5, 1), Lookup::Foreign);
        assert_eq!(arena.release(block + 1), None);
    }

    #[test]
    fn reserved_addresses_are_aligned_and_nobody_elses() {
        let mut arena = Arena::new(1 << 40, 1 << 30, 1 << 30);
        let block = arena.alloc(100, 0).expect("credit").expect("place");
        let first = arena.reserve(4 << 20, 2 << 20, 0).expect("place");
        assert!(first.is_multiple_of(2 << 20) && first > block);
        let wish = first + (64 << 20);
        assert_eq!(arena.reserve(2 << 20, 2 << 20, wish), Some(wish));
        let other = arena.reserve(2 << 20, 2 << 20, wish).expect("elsewhere");
        assert!(other != wish && !(first..first + (4 << 20)).contains(&other));
        assert!(arena.is_reserved(first + 4096, (4 << 20) - 4096) && !arena.is_reserved(first, (4 << 20) + 1));
        assert_eq!(arena.lookup(first, 1), Lookup::Unmapped);
        assert!(!arena.unreserve(first, 2 << 20) && arena.unreserve(first, 4 << 20));
        assert!(arena.unreserve(wish, 2 << 20) && arena.unreserve(other, 2 << 20));
        arena.release(block);
        assert_eq!(arena.alloc(1 << 30, 0), Ok(Some(1 << 40)));
    }

    #[test]
    fn no_two_live_blocks_ever_overlap() {
        let mut arena = Arena::new(1 << 40, 1 << 16, 1 << 20);
        let mut live: Vec<(u64, u64)> = Vec::new();
        let mut seed = 7u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let random = seed >> 33;
            if random.is_multiple_of(3) && !live.is_empty() {
                let (address, bytes) = live.swap_remove(random as usize % live.len());
                assert_eq!(arena.release(address), Some(bytes));
            } else if let Ok(Some(address)) = arena.alloc(1 + random % 3000, 0) {
                let bytes = 1 + random % 3000;
                assert!(live.iter().all(|&(a, b)| address + bytes <= a || a + b <= address));
                live.push((address, bytes));
            }
        }
        assert_eq!(arena.used(), live.iter().map(|block| block.1).sum::<u64>());
    }
}
