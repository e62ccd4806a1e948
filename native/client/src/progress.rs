//! What this process knows to be done at gpud without asking.
//!
//! Every record of an event takes a mark when it has been posted. A synchronising call takes the newest mark before it
//! is sent: what is marked up to there in what it waited for is done when the answer has come.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// See the module's documentation.
#[derive(Default)]
pub struct Progress {
    issued: AtomicU64,
    /// Everything up to this mark is done.
    all: AtomicU64,
    /// By stream, the mark up to which its records are done.
    streams: Mutex<HashMap<u64, u64>>,
}

impl Progress {
    /// A mark for what has just been posted.
    pub fn issue(&self) -> u64 {
        self.issued.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The newest mark: taken before a synchronising call is sent.
    pub fn now(&self) -> u64 {
        self.issued.load(Ordering::Acquire)
    }

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
        let first = progress.issue();
        let now = progress.now();
        let second = progress.issue();
        assert!(!progress.is_done(7, first));
        progress.stream_done(7, now);
        assert!(progress.is_done(7, first) && !progress.is_done(8, first) && !progress.is_done(7, second));
        progress.all_done(progress.now());
        assert!(progress.is_done(8, first) && progress.is_done(7, second));
    }
}
