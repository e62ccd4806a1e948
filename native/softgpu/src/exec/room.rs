//! Memory of this process for the registers, local and shared memory of the threads of a launch.

use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes that the threads of a launch may have at the same time: a block of 1024 threads with 256 KiB of local
/// memory each, and their registers.
pub const MOST: u64 = 288 << 20;

/// What a launch may still take.
pub struct Room(AtomicU64);

impl Room {
    /// So many bytes.
    pub fn new(bytes: u64) -> Room {
        Room(AtomicU64::new(bytes))
    }

    /// Takes so many bytes until the launch ends; false if there are fewer.
    pub fn take(&self, bytes: u64) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    /// Gives back what was taken.
    pub fn give(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}
