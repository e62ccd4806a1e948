//! The lease's turn on the device: work is issued when the gate lets it in, and leaves when it has run.
//!
//! Issuing never waits for the device, so one thread follows behind: it marks the streams that got work, waits until
//! the marks are passed, and tells the gate how much has left.  What it sees is also how long the device was in use.
//!
//! While others wait for work to end, only so much of it is on the device as keeps that busy: the next lease's turn
//! begins when all of it has run.  Half of it is marked at a time, so that there is work left when the first half has run.

use super::{Handle, SLEEPS, Shareable, Shared, lock};
use crate::error::CudaResult;
use crate::gate::Gate;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How often marks are made while work follows work: each costs the driver's lock.
const GATHER: Duration = Duration::from_micros(50);
/// While others wait, so much work is on the device, as far as can be told from what ran last.
const HORIZON: Duration = Duration::from_millis(4);
/// At least one operation runs and one is queued behind it.
const FEWEST: u32 = 2;
/// Many short ones may be followed by long ones.
const MOST: u32 = 64;
/// Before anything has run.
const UNKNOWN: u32 = 16;
/// When nothing has run for longer than this, and than could be expected, what is on the device may wait for what is held
/// back: by a word in memory, an event or a host function.
const PATIENCE: Duration = Duration::from_millis(8);
/// Operations may take so many times as long as the ones before.
const SLACK: u32 = 3;
/// More is not waited for, whatever was expected.
const MOST_PATIENCE: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Default)]
pub struct Turn {
    gate: OnceLock<Arc<dyn Gate>>,
    state: Mutex<State>,
    changed: Condvar,
    /// Whether others waited when the last operation was let in.
    contended: AtomicBool,
}

/// Operations, and marks behind them.
struct Batch {
    count: u32,
    marks: Vec<Shareable>,
}

#[derive(Default)]
struct State {
    /// Operations that are in and marked, in their order.
    batches: VecDeque<Batch>,
    /// Operations that are in and not marked yet, and the streams they went to.
    issued: u32,
    streams: Vec<Shareable>,
    /// Marks of streams that were destroyed meanwhile.
    marks: Vec<Shareable>,
    /// Operations that are in.
    inside: u32,
    /// Those of them that are waited for next.
    next: u32,
    /// When something last ran, or the first of them came in.
    since: Option<Instant>,
    used: Duration,
    /// How long an operation takes: rises at once and falls slowly.
    pace: Duration,
    followed: bool,
    /// Whoever follows sleeps until something is issued: waking it costs a system call.
    asleep: bool,
}

impl State {
    /// Marks what has been issued.
    fn mark(&mut self, shared: &Shared) {
        let streams = std::mem::take(&mut self.streams);
        let mut marks = std::mem::take(&mut self.marks);
        if shared.enter().is_ok() {
            marks.extend(streams.iter().filter_map(|stream| shared.mark_with(stream.0, SLEEPS).ok()));
        }
        self.batches.push_back(Batch { count: std::mem::take(&mut self.issued), marks });
    }

    /// How many operations are on the device while others wait.
    fn most(&self) -> u32 {
        if self.pace.is_zero() {
            return UNKNOWN;
        }
        (HORIZON.div_duration_f64(self.pace) as u32).clamp(FEWEST, MOST)
    }

    /// How long it is until what is on the device counts as waiting for what is not.
    fn stuck_in(&self) -> Duration {
        let patience = (self.pace * SLACK.saturating_mul(self.next)).clamp(PATIENCE, MOST_PATIENCE);
        self.since.map_or(Duration::ZERO, |since| patience.saturating_sub(since.elapsed()))
    }

    /// So many operations have run.
    fn ran(&mut self, count: u32) {
        self.inside -= count;
        let now = Instant::now();
        let since = if self.inside > 0 { self.since.replace(now) } else { self.since.take() };
        let took = since.map_or(Duration::ZERO, |since| now - since);
        self.used += took;
        let pace = took / count.max(1);
        self.pace = pace.max((self.pace * 3 + pace) / 4);
    }
}

impl Turn {
    /// Who is asked; the first one named counts.
    pub fn ask(&self, gate: Arc<dyn Gate>) {
        let _ = self.gate.set(gate);
    }

    /// Issues one operation into a stream when the lease's turn has come.
    pub fn take<T>(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        stream: Handle,
        issue: impl FnOnce() -> CudaResult<T>,
    ) -> CudaResult<T> {
        let contended = self.enter();
        {
            let mut state = lock(&self.state);
            state.inside += 1;
            state.since.get_or_insert_with(Instant::now);
        }
        let outcome = issue();
        let mut state = lock(&self.state);
        state.issued += 1;
        if !state.streams.iter().any(|other| other.0 == stream) {
            state.streams.push(Shareable(stream));
        }
        if contended && state.issued >= state.most() / 2 {
            state.mark(shared);
        }
        if !std::mem::replace(&mut state.followed, true) {
            let (turn, shared) = (Arc::clone(self), Arc::clone(shared));
            let follower = std::thread::Builder::new().name("turn".to_owned()).spawn(move || turn.follow(&shared));
            state.followed = follower.is_ok();
        }
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if asleep {
            self.changed.notify_all();
        }
        outcome
    }

    /// Returns when the lease's turn has come, and whether others wait for it to end.
    fn enter(&self) -> bool {
        let Some(gate) = self.gate.get() else { return false };
        // Before the door: a turn that ends meanwhile is not made longer.
        if self.contended.load(Ordering::Relaxed) {
            self.hold_back();
        }
        let contended = gate.enter();
        self.contended.store(contended, Ordering::Relaxed);
        contended
    }

    /// Waits until there is little enough on the device.
    fn hold_back(&self) {
        let mut state = lock(&self.state);
        while state.inside >= state.most() {
            let left = state.stuck_in();
            if left.is_zero() {
                break;
            }
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A stream is about to be destroyed: what it still runs is marked now.
    pub fn retire(&self, shared: &Shared, stream: Handle) {
        let mut state = lock(&self.state);
        if let Some(at) = state.streams.iter().position(|other| other.0 == stream) {
            state.streams.swap_remove(at);
            state.marks.extend(shared.mark_with(stream, SLEEPS));
        }
    }

    /// Waits until everything that came in has left.
    pub fn settle(&self) {
        let mut state = lock(&self.state);
        while state.inside > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How long there was work on the device.
    pub fn used(&self) -> Duration {
        let state = lock(&self.state);
        state.used + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn follow(&self, shared: &Shared) -> ! {
        loop {
            let batch = {
                let mut state = lock(&self.state);
                loop {
                    if let Some(batch) = state.batches.pop_front() {
                        state.next = batch.count;
                        break batch;
                    }
                    if state.issued > 0 {
                        // Under the lock: a stream that is destroyed is taken from the list first.
                        state.mark(shared);
                        continue;
                    }
                    state.asleep = true;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            };
            // After a failure that ends the context nothing runs any more.
            batch.marks.into_iter().for_each(|mark| drop(shared.pass(mark)));
            if let Some(gate) = self.gate.get() {
                (0..batch.count).for_each(|_| gate.leave());
            }
            let mut state = lock(&self.state);
            state.ran(batch.count);
            let more = state.issued > 0 && state.batches.is_empty();
            drop(state);
            self.changed.notify_all();
            if more {
                std::thread::sleep(GATHER);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gate that is always open, and says whether others wait.
    struct Open(bool);

    impl Gate for Open {
        fn enter(&self) -> bool {
            self.0
        }
        fn leave(&self) {}
        fn charge(&self, _bytes: u64) -> bool {
            true
        }
        fn discharge(&self, _bytes: u64) {}
    }

    /// With so many operations on the device, each of which takes this long.
    fn turn(contended: bool, inside: u32, pace: Duration) -> Arc<Turn> {
        let turn = Arc::new(Turn::default());
        turn.ask(Arc::new(Open(contended)));
        turn.enter();
        *lock(&turn.state) = State { inside, pace, next: 1, since: Some(Instant::now()), ..State::default() };
        turn
    }

    fn held_back(turn: &Turn) -> Duration {
        let begin = Instant::now();
        turn.enter();
        begin.elapsed()
    }

    #[test]
    fn as_much_is_on_the_device_as_keeps_it_busy() {
        let most = |micros| State { pace: Duration::from_micros(micros), ..State::default() }.most();
        assert_eq!([0, 5, 50, 250, 1_000, 200_000].map(most), [UNKNOWN, MOST, MOST, 16, 4, FEWEST]);
    }

    #[test]
    fn what_takes_long_is_known_at_once_and_forgotten_slowly() {
        let mut state = State { inside: 100, since: Some(Instant::now()), ..State::default() };
        std::thread::sleep(Duration::from_millis(20));
        state.ran(10);
        assert!(state.pace >= Duration::from_millis(2) && state.most() == FEWEST, "{:?}", state.pace);
        let slow = state.pace;
        state.ran(10);
        assert!(state.pace >= slow * 7 / 10 && state.pace < slow, "{:?} after {slow:?}", state.pace);
    }

    #[test]
    fn nothing_is_held_back_while_nobody_waits() {
        assert!(held_back(&turn(false, 1_000, Duration::from_millis(1))) < PATIENCE / 2);
        assert!(held_back(&turn(true, 3, Duration::from_millis(1))) < PATIENCE / 2);
    }

    #[test]
    fn work_is_held_back_until_there_is_room() {
        let turn = turn(true, 4, Duration::from_millis(1));
        let other = Arc::clone(&turn);
        let runs = std::thread::spawn(move || {
            std::thread::sleep(PATIENCE / 4);
            lock(&other.state).ran(3);
            other.changed.notify_all();
        });
        let held = held_back(&turn);
        runs.join().expect("ran");
        assert!(held >= PATIENCE / 4 && held < PATIENCE, "{held:?}");
    }

    #[test]
    fn what_nothing_runs_without_is_held_back_once() {
        let turn = turn(true, 100, Duration::from_millis(1));
        let held = held_back(&turn);
        assert!(held >= PATIENCE / 2 && held < PATIENCE * 10, "{held:?}");
        let more: Duration = (0..100).map(|_| held_back(&turn)).sum();
        assert!(more < PATIENCE / 2, "{more:?} for what comes behind it");
    }

    #[test]
    fn long_operations_are_waited_for() {
        let turn = turn(true, FEWEST, Duration::from_millis(30));
        let held = held_back(&turn);
        assert!(held >= Duration::from_millis(80) && held < MOST_PATIENCE, "{held:?}");
    }
}
