//! The account of a memory pool, in the steps of NVIDIA's driver.

use std::collections::BTreeSet;

/// Unit of reservation in pools of NVIDIA's driver, bytes: a small first allocation reserves one unit.
pub const POOL_UNIT: u64 = 32 << 20;

/// The account of a pool, in bytes, and its attributes.
#[derive(Clone, Debug)]
pub struct PoolState {
    pub release_threshold: u64,
    /// CU_MEMPOOL_ATTR_REUSE_*; reuse here always follows stream order.
    pub reuse: [i32; 3],
    pub used: u64,
    pub used_high: u64,
    /// Bytes freed since the last synchronization. The pool can use them again, and does not give them back yet.
    pub freed: u64,
    pub reserved: u64,
    pub reserved_high: u64,
    /// Ordinals of other devices that the program has given access.
    pub peers: BTreeSet<usize>,
}

impl Default for PoolState {
    fn default() -> Self {
        let (used, used_high, freed, reserved, reserved_high) = (0, 0, 0, 0, 0);
        let peers = BTreeSet::new();
        Self { release_threshold: 0, reuse: [1; 3], used, used_high, freed, reserved, reserved_high, peers }
    }
}

impl PoolState {
    /// Counts an allocation. `capacity`: bytes that the pool can reserve at all.
    pub fn take(&mut self, bytes: u64, capacity: u64) {
        self.used += bytes;
        self.used_high = self.used_high.max(self.used);
        if self.used > self.reserved {
            self.reserved = self.used.next_multiple_of(POOL_UNIT).min(capacity).max(self.used);
        }
        self.freed = self.freed.min(self.reserved - self.used);
        self.reserved_high = self.reserved_high.max(self.reserved);
    }

    /// Counts a free. The bytes stay reserved.
    pub fn give(&mut self, bytes: u64) {
        let bytes = bytes.min(self.used);
        self.used -= bytes;
        self.freed += bytes;
    }

    /// A lease has ended, and with it `bytes` of the used memory and everything that was free.
    pub fn end(&mut self, bytes: u64) {
        self.give(bytes);
        self.freed = 0;
        self.keep(0);
    }

    /// A synchronization has passed the frees: above the release threshold nothing stays reserved but what is used.
    pub fn settle(&mut self) {
        self.freed = 0;
        if self.reserved > self.release_threshold {
            self.keep(self.release_threshold / POOL_UNIT * POOL_UNIT);
        }
    }

    /// Gives back what is not needed to keep at least `bytes` reserved.
    pub fn trim(&mut self, bytes: u64) {
        self.keep(bytes.checked_next_multiple_of(POOL_UNIT).unwrap_or(bytes));
    }

    fn keep(&mut self, bytes: u64) {
        let held = (self.used + self.freed).next_multiple_of(POOL_UNIT);
        self.reserved = self.reserved.min(held.max(bytes));
    }

    /// Bytes that are reserved and not used: other allocations do not get them.
    pub fn spare(&self) -> u64 {
        self.reserved - self.used
    }
}

#[cfg(test)]
mod tests {
    use super::{POOL_UNIT, PoolState};

    #[test]
    fn a_pool_reserves_whole_units_until_a_synchronization() {
        let mut state = PoolState::default();
        state.take(300, u64::MAX);
        assert_eq!((state.used, state.reserved, state.spare()), (300, POOL_UNIT, POOL_UNIT - 300));
        state.take(POOL_UNIT, u64::MAX);
        state.give(POOL_UNIT);
        assert_eq!((state.used, state.reserved), (300, 2 * POOL_UNIT));
        state.trim(0);
        assert_eq!(state.reserved, 2 * POOL_UNIT, "no synchronization has passed the free");
        state.take(POOL_UNIT / 2, u64::MAX);
        assert_eq!(state.reserved, 2 * POOL_UNIT, "freed memory is used again");
        state.settle();
        assert_eq!((state.reserved, state.reserved_high), (POOL_UNIT, 2 * POOL_UNIT));
        state.give(300 + POOL_UNIT / 2);
        state.settle();
        assert_eq!((state.used, state.used_high, state.reserved), (0, 300 + POOL_UNIT, 0));
    }

    #[test]
    fn a_pool_begins_anew_when_its_memory_has_ended() {
        let mut state = PoolState { release_threshold: u64::MAX, ..PoolState::default() };
        state.take(300, u64::MAX);
        state.take(3 * POOL_UNIT, u64::MAX);
        state.give(3 * POOL_UNIT);
        state.end(300);
        assert_eq!((state.used, state.freed, state.reserved, state.reserved_high), (0, 0, 0, 4 * POOL_UNIT));
    }

    #[test]
    fn a_pool_keeps_what_its_threshold_or_a_trim_says() {
        let mut state = PoolState { release_threshold: 2 * POOL_UNIT, ..PoolState::default() };
        state.take(2 * POOL_UNIT, u64::MAX);
        state.give(2 * POOL_UNIT);
        state.settle();
        assert_eq!(state.reserved, 2 * POOL_UNIT);
        state.trim(1);
        assert_eq!(state.reserved, POOL_UNIT);
        state.trim(u64::MAX);
        assert_eq!(state.reserved, POOL_UNIT, "a trim reserves nothing");
        state.take(3 * POOL_UNIT, 3 * POOL_UNIT + 100);
        state.take(50, 3 * POOL_UNIT + 100);
        assert_eq!(state.reserved, 3 * POOL_UNIT + 100, "a pool reserves at most what it can get");
    }
}
