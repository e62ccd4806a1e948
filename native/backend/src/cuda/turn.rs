//! The lease's turn on the device: work is issued when the gate lets it in, and leaves when it has run.
//!
//! Issuing never waits for the device, so one thread follows behind: it marks the streams that got work, waits until
//! the marks are passed, and tells the gate how much has left.  What it sees is also how long the device was in use.
//!
//! While others wait for work to end, only so much of it is on the device as keeps that busy: the next lease's turn
//! begins when all of it has run.  Half of it is marked at a time, so that there is work left when the first half has run.
//!
//! It also tells what has run long.  Of what was issued it remembers the first operation of each stream behind each
//! mark, so that this costs a launch next to nothing.

use super::{Handle, SLEEPS, Shareable, Shared, lock};
use crate::error::CudaResult;
use crate::gate::Gate;
use std::collections::VecDeque;
use std::fmt;
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
    /// Nobody calls the driver with this lock: its thread for host functions takes it.
    watch: Mutex<Watch>,
}

/// What was issued, as people know it.
#[derive(Clone, Debug)]
pub enum Work {
    /// A kernel by its name.
    Kernel(Arc<str>),
    /// A graph, and the first kernel in it if it has one.
    Graph(Option<Arc<str>>),
    /// A function of a library.
    Call(&'static str),
}

impl fmt::Display for Work {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Kernel(name) => out.write_str(name),
            Work::Graph(Some(name)) => write!(out, "a graph with {name}"),
            Work::Graph(None) => out.write_str("a graph"),
            Work::Call(name) => out.write_str(name),
        }
    }
}

/// A stream, and the first that went to it since its last mark; nothing where only copies and fills did.
#[derive(Clone)]
struct Unmarked {
    stream: Shareable,
    first: Option<Work>,
}

/// A mark behind operations of one stream.
struct Mark {
    event: Shareable,
    of: Unmarked,
}

/// Operations, and marks behind them.
struct Batch {
    count: u32,
    marks: Vec<Mark>,
}

/// What is waited for.
struct Waited {
    of: Unmarked,
    /// When it could begin: what was waited for before had ended.
    since: Instant,
}

/// What is known of what runs.
#[derive(Default)]
struct Watch {
    waited: Option<Waited>,
    /// Streams in which the host is at work: what is behind that does not run.
    hosts: Vec<Shareable>,
    /// Streams that wait for others at times, and so for the host's work in those.
    joined: Vec<Shareable>,
}

impl Watch {
    /// This mark is waited for from now on.
    fn wait_for(&mut self, mark: Option<&Mark>, since: Instant) {
        self.waited = mark.map(|mark| Waited { of: mark.of.clone(), since });
    }

    /// Whether what is in `stream` may wait for the host's work in `host`.
    fn may_wait(&self, stream: Handle, host: Handle) -> bool {
        stream == host || stream.is_null() || self.joined.iter().any(|joined| joined.0 == stream)
    }
}

#[derive(Default)]
struct State {
    /// Operations that are in and marked, in their order.
    batches: VecDeque<Batch>,
    /// Operations that are in and not marked yet, and the streams they went to.
    issued: u32,
    streams: Vec<Unmarked>,
    /// Marks that could not wait: of streams that were destroyed, or in which something else comes next.
    marks: Vec<Mark>,
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
            marks.extend(streams.into_iter().filter_map(|of| {
                let event = shared.mark_with(of.stream.0, SLEEPS).ok()?;
                Some(Mark { event, of })
            }));
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

    /// Issues one operation into a stream when the lease's turn has come; copies and fills are not named.
    pub fn take<T>(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        stream: Handle,
        work: Option<Work>,
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
        match state.streams.iter_mut().find(|other| other.stream.0 == stream) {
            Some(known) if known.first.is_none() => known.first = work,
            Some(_) => {}
            None => state.streams.push(Unmarked { stream: Shareable(stream), first: work }),
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

    /// A stream is about to be destroyed, or to get what is not issued in a turn: what it still runs is marked now.
    pub fn retire(&self, shared: &Shared, stream: Handle) {
        let mut state = lock(&self.state);
        if let Some(at) = state.streams.iter().position(|other| other.stream.0 == stream) {
            let of = state.streams.remove(at);
            state.marks.extend(shared.mark_with(stream, SLEEPS).map(|event| Mark { event, of }));
        }
    }

    /// The host works in a stream, and nothing else does until [`Turn::resume`].
    pub fn suspend(&self, stream: Handle) {
        lock(&self.watch).hosts.push(Shareable(stream));
    }

    /// The stream goes on: what is behind the host's work can begin.
    pub fn resume(&self, stream: Handle) {
        let mut watch = lock(&self.watch);
        if let Some(at) = watch.hosts.iter().position(|other| other.0 == stream) {
            watch.hosts.swap_remove(at);
        }
        let Some(mut waited) = watch.waited.take() else { return };
        if watch.may_wait(waited.of.stream.0, stream) {
            waited.since = Instant::now();
        }
        watch.waited = Some(waited);
    }

    /// The stream waits for another one, as far as that is now.
    pub fn join(&self, stream: Handle) {
        let mut watch = lock(&self.watch);
        if !watch.joined.iter().any(|joined| joined.0 == stream) {
            watch.joined.push(Shareable(stream));
        }
    }

    /// A stream has been destroyed: its handle may be another's next.
    pub fn forget(&self, stream: Handle) {
        lock(&self.watch).joined.retain(|joined| joined.0 != stream);
    }

    /// The oldest operation that is not known to have ended, and how long ago it could begin: when what was waited for
    /// before it had ended, and the host's work in front of it.  Exact where it is alone between two marks, as long
    /// operations mostly are.  Of several that were issued to one stream while others ran it is the first, though a later
    /// one may be what takes long; and it may wait for a word in memory.
    pub fn running(&self) -> Option<(Work, Duration)> {
        let watch = lock(&self.watch);
        let Waited { of, since } = watch.waited.as_ref()?;
        let held = watch.hosts.iter().any(|host| watch.may_wait(of.stream.0, host.0));
        of.first.clone().filter(|_| !held).map(|first| (first, since.elapsed()))
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
                        let since = state.since.unwrap_or_else(Instant::now);
                        lock(&self.watch).wait_for(batch.marks.first(), since);
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
            for (at, mark) in batch.marks.iter().enumerate() {
                drop(shared.pass(mark.event));
                lock(&self.watch).wait_for(batch.marks.get(at + 1), Instant::now());
            }
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
        // The least of several: a busy machine may hold a thread up by itself.
        let least = |contended, inside| {
            (0..10).map(|_| held_back(&turn(contended, inside, Duration::from_millis(1)))).min().unwrap_or_default()
        };
        assert!(least(false, 1_000) < PATIENCE / 2);
        assert!(least(true, 3) < PATIENCE / 2);
    }

    #[test]
    fn work_is_held_back_until_there_is_room() {
        // Long ones, for which it has the most patience.
        let turn = turn(true, 4, Duration::from_millis(300));
        let other = Arc::clone(&turn);
        let runs = std::thread::spawn(move || {
            std::thread::sleep(PATIENCE / 4);
            lock(&other.state).ran(3);
            other.changed.notify_all();
        });
        let held = held_back(&turn);
        runs.join().expect("ran");
        assert!(held >= PATIENCE / 4 && held < Duration::from_millis(600), "{held:?}");
    }

    #[test]
    fn what_nothing_runs_without_is_held_back_once() {
        let turn = turn(true, 100, Duration::from_millis(1));
        let held = held_back(&turn);
        assert!(held >= PATIENCE / 2 && held < PATIENCE * 100, "{held:?}");
        let more: Duration = (0..100).map(|_| held_back(&turn)).sum();
        assert!(more < PATIENCE * 50, "{more:?} for what comes behind it"); // a hundred times its patience otherwise
    }

    #[test]
    fn long_operations_are_waited_for() {
        let turn = turn(true, FEWEST, Duration::from_millis(30));
        let held = held_back(&turn);
        assert!(held >= Duration::from_millis(80) && held < MOST_PATIENCE, "{held:?}");
    }
}
