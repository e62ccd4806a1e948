//! A lease's door to its device, in memory that the arbiter and the lease's workers share.
//!
//! Work comes in through an open door with two atomic operations.  In front of a closed one it waits (a futex), after
//! ringing the bell.

use super::bell::Bell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The lease's part: written by the arbiter.
#[repr(C)]
#[derive(Default)]
pub struct Door {
    /// 1 = open.
    open: AtomicU32,
    /// 1 = another lease waits for the device, or this one has a ceiling: when its work ends matters.
    contended: AtomicU32,
    /// While others waited: time on the device, and what the lease's share of the time was.
    delivered_ns: AtomicU64,
    promised_ns: AtomicU64,
}

/// A worker's part: what it has on the device and before the door.
#[repr(C)]
#[derive(Default)]
pub struct Visit {
    running: AtomicU32,
    waiting: AtomicU32,
    /// When the last work ended, on the clock that all processes share.
    left_ns: AtomicU64,
}

/// What a worker has on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub running: u32,
    pub waiting: u32,
    pub left: Duration,
}

impl Door {
    /// Opens or closes the door, and says whether others wait or the lease has a ceiling.
    pub fn set(&self, open: bool, contended: bool) {
        self.contended.store(u32::from(contended), Ordering::SeqCst);
        if self.open.swap(u32::from(open), Ordering::SeqCst) == 0 && open {
            // SAFETY: wakes all that wait on a word of mapped memory; the futex is shared between processes.
            unsafe { libc::syscall(libc::SYS_futex, self.open.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
        }
    }

    /// States what was delivered and promised so far.
    pub fn set_delivery(&self, delivered: Duration, promised: Duration) {
        self.delivered_ns.store(delivered.as_nanos() as u64, Ordering::Relaxed);
        self.promised_ns.store(promised.as_nanos() as u64, Ordering::Relaxed);
    }

    /// What was delivered and promised while others waited.
    pub fn delivery(&self) -> (Duration, Duration) {
        let read = |value: &AtomicU64| Duration::from_nanos(value.load(Ordering::Relaxed));
        (read(&self.delivered_ns), read(&self.promised_ns))
    }

    /// Waits for the lease's turn and begins an operation; answers whether it matters when that ends.
    pub fn enter(&self, visit: &Visit, bell: &Bell) -> bool {
        loop {
            // The arbiter closes the door and then looks who is inside; here it is the other way round, so that one
            // of the two sees the other.
            visit.running.fetch_add(1, Ordering::SeqCst);
            if self.open.load(Ordering::SeqCst) == 1 {
                return self.contended.load(Ordering::Relaxed) == 1;
            }
            visit.waiting.fetch_add(1, Ordering::SeqCst);
            visit.running.fetch_sub(1, Ordering::SeqCst);
            bell.ring();
            while self.open.load(Ordering::SeqCst) == 0 {
                // SAFETY: waits on a word of mapped memory for as long as it is zero; no time limit.
                unsafe {
                    let forever = std::ptr::null::<libc::timespec>();
                    libc::syscall(libc::SYS_futex, self.open.as_ptr(), libc::FUTEX_WAIT, 0, forever);
                }
            }
            visit.running.fetch_add(1, Ordering::SeqCst);
            visit.waiting.fetch_sub(1, Ordering::SeqCst);
            if self.open.load(Ordering::SeqCst) == 1 {
                return self.contended.load(Ordering::Relaxed) == 1;
            }
            visit.running.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Ends an operation.
    pub fn leave(&self, visit: &Visit, bell: &Bell) {
        visit.left_ns.store(clock().as_nanos() as u64, Ordering::Relaxed);
        let last = visit.running.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.contended.load(Ordering::SeqCst) == 1 && self.open.load(Ordering::SeqCst) == 0 {
            bell.ring();
        }
    }
}

impl Visit {
    /// What the worker has on the device.
    pub fn read(&self) -> Use {
        Use {
            running: self.running.load(Ordering::SeqCst),
            waiting: self.waiting.load(Ordering::SeqCst),
            left: Duration::from_nanos(self.left_ns.load(Ordering::Relaxed)),
        }
    }

    /// Forgets a worker that is gone.
    pub fn clear(&self) {
        self.running.store(0, Ordering::SeqCst);
        self.waiting.store(0, Ordering::SeqCst);
    }
}

impl Use {
    /// Of several workers together.
    pub fn plus(self, other: Use) -> Use {
        Use {
            running: self.running + other.running,
            waiting: self.waiting + other.waiting,
            left: self.left.max(other.left),
        }
    }
}

/// Time on the clock that all processes of a machine share.
pub fn clock() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a value on the stack; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
