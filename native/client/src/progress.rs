//! What this process knows to be done at gpud without asking.
//!
//! The mark of an event's record is the number of its frame: frames of all threads are numbered as they are sent, which is
//! the order that streams have at gpud. A synchronising call takes the number of the newest frame before it is sent: what
//! is marked up to there in what it waited for is done when the answer has come. When nothing has been
//! sent since such an answer, what it waited for is idle, and waiting for it once more needs no question.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// See the module's documentation.
#[derive(Default)]
pub struct Progress {
    /// Everything up to this mark is done.
    all: AtomicU64,
    /// By stream, the mark up to which its records are done.
    streams: Mutex<HashMap<u64, u64>>,
    /// The last stream that was waited for, and the number of the frame that asked: it was idle then.
    idle: Mutex<(u64, u64)>,
    /// The frame that asked whether all streams are idle.
    all_idle: AtomicU64,
}

impl Progress {
    /// All streams have been waited for.
    pub fn all_done(&self, mark: u64) {
        self.all.fetch_max(mark, Ordering::AcqRel);
    }

    /// A stream has been waited for.
    pub fn stream_done(&self, stream: u64, mark: u64) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let done = streams.entry(stream).or_default();
        *done = (*done).max(mark);
    }

    /// A stream was found idle by the call whose last frame should be `asked`. It says nothing when other threads have
    /// sent frames meanwhile, which `newest`, the number of the last frame of all, shows.
    pub fn stream_idle(&self, stream: u64, asked: u64, newest: u64) {
        if asked == newest {
            *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = (stream, asked);
        }
    }

    /// As [`Progress::stream_idle`], of all streams.
    pub fn all_idle(&self, asked: u64, newest: u64) {
        if asked == newest {
            self.all_idle.store(asked, Ordering::Release);
        }
    }

    /// Whether a stream is known to be idle when the last frame sent is `newest`.
    pub fn is_idle(&self, stream: u64, newest: u64) -> bool {
        newest > 0
            && (self.all_idle.load(Ordering::Acquire) == newest
                || *self.idle.lock().unwrap_or_else(PoisonError::into_inner) == (stream, newest))
    }

    /// Whether all streams are known to be idle.
    pub fn are_all_idle(&self, newest: u64) -> bool {
        newest > 0 && self.all_idle.load(Ordering::Acquire) == newest
    }

    /// Whether what was marked in a stream is known to be done.
    pub fn is_done(&self, stream: u64, mark: u64) -> bool {
        mark <= self.all.load(Ordering::Acquire)
            || self
                .streams
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&stream)
                .is_some_and(|done| mark <= *done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_covers_what_was_marked_before_it_in_its_stream() {
        let progress = Progress::default();
        let (first, now, second) = (3, 5, 6);
        assert!(!progress.is_done(7, first));
        progress.stream_done(7, now);
        assert!(progress.is_done(7, first) && !progress.is_done(8, first) && !progress.is_done(7, second));
        progress.all_done(7);
        assert!(progress.is_done(8, first) && progress.is_done(7, second));
    }

    #[test]
    fn a_stream_is_idle_until_something_is_sent() {
        let progress = Progress::default();
        assert!(!progress.is_idle(0, 0) && !progress.are_all_idle(0));
        progress.stream_idle(7, 5, 5);
        assert!(progress.is_idle(7, 5) && !progress.is_idle(8, 5) && !progress.is_idle(7, 6));
        assert!(!progress.are_all_idle(5));
        // Another thread sent frame 9 while frame 8 was waited for.
        progress.stream_idle(7, 8, 9);
        assert!(!progress.is_idle(7, 8) && !progress.is_idle(7, 9));
        progress.all_idle(12, 12);
        assert!(progress.is_idle(8, 12) && progress.are_all_idle(12) && !progress.is_idle(8, 13));
    }
}
