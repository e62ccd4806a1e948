//! The lease's turn on the device: work is issued when the gate lets it in, and leaves when it has run.
//!
//! Issuing never waits for the device, so one thread follows behind: it marks the streams that got work, waits until
//! the marks are passed, and tells the gate how much has left.  What it sees is also how long the device was in use.

use super::{Handle, SLEEPS, Shareable, Shared, lock};
use crate::error::CudaResult;
use crate::gate::Gate;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How often marks are made while work follows work: each costs the driver's lock.
const GATHER: Duration = Duration::from_micros(50);

/// See the module.
#[derive(Default)]
pub struct Turn {
    gate: OnceLock<Arc<dyn Gate>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Operations that are in and not marked yet, and the streams they went to.
    issued: u32,
    streams: Vec<Shareable>,
    /// Marks of streams that were destroyed meanwhile.
    marks: Vec<Shareable>,
    /// Operations that are in.
    inside: u32,
    since: Option<Instant>,
    used: Duration,
    followed: bool,
    /// Whoever follows sleeps until something is issued: waking it costs a system call.
    asleep: bool,
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
        if let Some(gate) = self.gate.get() {
            gate.enter();
        }
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
            let (count, marks) = {
                let mut state = lock(&self.state);
                while state.issued == 0 {
                    state.asleep = true;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                // Under the lock: a stream that is destroyed is taken from the list first.
                let streams = std::mem::take(&mut state.streams);
                let mut marks = std::mem::take(&mut state.marks);
                if shared.enter().is_ok() {
                    marks.extend(streams.iter().filter_map(|stream| shared.mark_with(stream.0, SLEEPS).ok()));
                }
                (std::mem::take(&mut state.issued), marks)
            };
            // After a failure that ends the context nothing runs any more.
            marks.into_iter().for_each(|mark| drop(shared.pass(mark)));
            if let Some(gate) = self.gate.get() {
                (0..count).for_each(|_| gate.leave());
            }
            let mut state = lock(&self.state);
            state.inside -= count;
            let now = Instant::now();
            let since = if state.inside > 0 { state.since.replace(now) } else { state.since.take() };
            state.used += since.map_or(Duration::ZERO, |since| now - since);
            let more = state.issued > 0;
            drop(state);
            self.changed.notify_all();
            if more {
                std::thread::sleep(GATHER);
            }
        }
    }
}
