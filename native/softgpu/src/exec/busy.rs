//! How long the threads of an engine have had blocks: what a card tells of its multiprocessors as "SM active".

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Counts the time of threads that have blocks, those that have them now until now.
pub struct Busy {
    threads: u32,
    state: Mutex<State>,
}

struct State {
    /// Threads that have blocks. Launches from several streams can have more than the engine counts as its own.
    now: u32,
    since: Instant,
    /// Nanoseconds, added up over the threads.
    total: u64,
}

impl State {
    fn settle(&mut self, threads: u32) {
        let passed = std::mem::replace(&mut self.since, Instant::now());
        let passed = self.since.saturating_duration_since(passed).as_nanos() as u64;
        self.total += passed * u64::from(self.now.min(threads));
    }
}

/// A thread that has blocks, as long as this lives.
pub struct Working<'a>(&'a Busy);

impl Busy {
    /// For an engine of so many threads (at least one).
    pub fn new(threads: usize) -> Busy {
        let state = Mutex::new(State { now: 0, since: Instant::now(), total: 0 });
        Busy { threads: threads.clamp(1, u32::MAX as usize) as u32, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.settle(self.threads);
        state
    }

    /// The calling thread has blocks from now on.
    pub fn begin(&self) -> Working<'_> {
        self.state().now += 1;
        Working(self)
    }

    /// The calling thread, which has blocks, has none while `wait` runs.
    pub fn rest(&self, wait: impl FnOnce()) {
        self.state().now -= 1;
        wait();
        self.state().now += 1;
    }

    /// Time in which threads had blocks, averaged over all of the engine's: half of it while half of them have.
    pub fn active(&self) -> Duration {
        Duration::from_nanos(self.state().total / u64::from(self.threads))
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.state().now -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_millis(40);

    fn passes(busy: &Busy) -> Duration {
        let before = busy.active();
        std::thread::sleep(TIME);
        busy.active() - before
    }

    #[test]
    fn time_is_counted_by_the_threads_that_have_blocks_and_more_than_all_of_them_never_work() {
        let busy = Busy::new(4);
        assert_eq!(passes(&busy), Duration::ZERO);
        let first = busy.begin();
        let one = passes(&busy);
        assert!(one >= TIME / 4 && one < TIME, "{one:?} of {TIME:?}");
        busy.rest(|| assert_eq!(passes(&busy), Duration::ZERO));
        let others = [(); 7].map(|()| busy.begin());
        let began = Instant::now();
        let all = passes(&busy);
        assert!(all >= TIME && all <= began.elapsed(), "{all:?}");
        drop((first, others));
        assert_eq!(passes(&busy), Duration::ZERO);
    }
}
