//! The blocks of a launch that nobody has begun yet, handed out in order.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Who takes a block runs it, or has a running block do its work (`clusterlaunchcontrol.try_cancel`).
pub struct Queue {
    pub(super) grid: [u32; 3],
    pub(super) next: AtomicU64,
    pub(super) blocks: u64,
}

impl Queue {
    /// All blocks of a grid.
    pub fn new(grid: [u32; 3]) -> Queue {
        Queue { grid, next: AtomicU64::new(0), blocks: grid.iter().map(|n| u64::from(*n)).product() }
    }

    /// A grid whose blocks all begin with the launch.
    pub fn begun(grid: [u32; 3]) -> Queue {
        let queue = Queue::new(grid);
        queue.next.store(queue.blocks, Ordering::Relaxed);
        queue
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The next block's number.
    pub fn take(&self) -> Option<u64> {
        self.take_some(1).map(|numbers| numbers.start)
    }

    /// The numbers of the next blocks, at most so many.
    pub fn take_some(&self, most: u64) -> Option<Range<u64>> {
        let first = self.next.fetch_add(most, Ordering::Relaxed);
        (first < self.blocks).then(|| first..self.blocks.min(first + most))
    }

    /// Whether every block has been taken.
    pub fn is_empty(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.blocks
    }

    /// Where a block stands in the grid.
    pub fn place(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [number % x, number / x % y, number / x / y].map(|at| at as u32)
    }
}
