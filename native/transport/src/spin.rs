//! Waiting awake: to be woken costs more than a short wait itself.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// Longest time that is waited awake.
const AWAKE: Duration = Duration::from_micros(50);
/// A sleep this short would have been a wait within [`AWAKE`]: the rest was the waking.
const SHORT_SLEEP: Duration = Duration::from_micros(150);

/// Decides by the last waits whether the next one is begun awake. Other threads that could run go first.
#[derive(Debug, Default)]
pub struct Spin {
    /// Below 0: it has not paid lately.
    score: i32,
}

impl Spin {
    /// Waits awake for a short time, if that has paid lately; answers whether `ready` became true.
    pub fn until(&mut self, mut ready: impl FnMut() -> bool) -> bool {
        if self.score < 0 {
            return false;
        }
        let began = Instant::now();
        loop {
            if ready() {
                self.score = (self.score + 1).min(4);
                return true;
            }
            if began.elapsed() > AWAKE {
                self.score -= 2;
                return false;
            }
            std::thread::yield_now();
        }
    }

    /// Tells how long the sleep was that followed.
    pub fn slept(&mut self, time: Duration) {
        let step = if time < SHORT_SLEEP { 1 } else { -1 };
        self.score = (self.score + step).clamp(-4, 4);
    }
}

/// Whether bytes (or the end) can be read from a socket without waiting longer than this.
pub fn readable_within(socket: RawFd, milliseconds: i32) -> bool {
    let mut poll = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd.
    unsafe { libc::poll(&mut poll, 1, milliseconds) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_are_long_are_not_begun_awake_until_they_are_short_again() {
        let mut spin = Spin::default();
        assert!(spin.until(|| true));
        while spin.score >= 0 {
            assert!(!spin.until(|| false));
        }
        let began = Instant::now();
        (0..1000).for_each(|_| assert!(!spin.until(|| panic!("not asked"))));
        assert!(began.elapsed() < Duration::from_secs(1));
        (0..8).for_each(|_| spin.slept(Duration::from_micros(20)));
        assert!(spin.until(|| true));
        (0..16).for_each(|_| spin.slept(Duration::from_secs(1)));
        assert!(!spin.until(|| true));
    }
}
