//! What the launches of an engine have done so far, and how long they have worked.

use super::loaded::Prepared;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far a launch that runs has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The kernel's name as the module has it.
    pub kernel: String,
    /// Blocks that have ended.
    pub done: u64,
    /// Blocks of the grid.
    pub blocks: u64,
    /// How long it has worked; time in which the engine was paused does not count.
    pub worked: Duration,
}

/// One launch.
pub struct Progress {
    kernel: Arc<Prepared>,
    blocks: u64,
    done: AtomicU64,
    watch: Mutex<Stopwatch>,
    resting: AtomicBool,
}

#[derive(Default)]
struct Stopwatch {
    before: Duration,
    since: Option<Instant>,
}

impl Stopwatch {
    fn worked(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn stop(&mut self) {
        *self = Stopwatch { before: self.worked(), since: None };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Progress {
    /// A launch that begins.
    pub fn new(kernel: Arc<Prepared>, blocks: u64) -> Progress {
        let watch = Mutex::new(Stopwatch { before: Duration::ZERO, since: Some(Instant::now()) });
        Progress { kernel, blocks, done: AtomicU64::new(0), watch, resting: AtomicBool::new(false) }
    }

    /// So many more blocks have ended.
    pub fn blocks_done(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
    }

    /// Stops the time while `wait` runs.  False, at once, when another thread of the launch does that already.
    pub fn rest(&self, wait: impl FnOnce()) -> bool {
        if self.resting.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.watch().stop();
        wait();
        self.watch().since = Some(Instant::now());
        self.resting.store(false, Ordering::Release);
        true
    }

    /// Whether the time is stopped.
    pub fn resting(&self) -> bool {
        self.resting.load(Ordering::Acquire)
    }

    fn watch(&self) -> MutexGuard<'_, Stopwatch> {
        lock(&self.watch)
    }

    fn running(&self) -> Running {
        Running {
            kernel: self.kernel.name.clone(),
            done: self.done.load(Ordering::Relaxed),
            blocks: self.blocks,
            worked: self.watch().worked(),
        }
    }
}

/// All launches of an engine.
#[derive(Default)]
pub struct Launches(Mutex<State>);

#[derive(Default)]
struct State {
    /// The oldest first.
    running: Vec<Arc<Progress>>,
    /// What those that have ended have worked.
    ended: Duration,
}

/// A launch in the list, as long as it runs.
pub struct Listed<'a> {
    launches: &'a Launches,
    pub progress: Arc<Progress>,
}

impl Launches {
    /// Lists a launch that begins.
    pub fn begin(&self, kernel: Arc<Prepared>, blocks: u64) -> Listed<'_> {
        let progress = Arc::new(Progress::new(kernel, blocks));
        lock(&self.0).running.push(Arc::clone(&progress));
        Listed { launches: self, progress }
    }

    /// The launches that run, the oldest first.
    pub fn running(&self) -> Vec<Running> {
        lock(&self.0).running.iter().map(|progress| progress.running()).collect()
    }

    /// What all launches have worked, those that run until now.
    pub fn worked(&self) -> Duration {
        let state = lock(&self.0);
        state.ended + state.running.iter().map(|progress| progress.watch().worked()).sum::<Duration>()
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.launches.0);
        state.running.retain(|other| !Arc::ptr_eq(other, &self.progress));
        state.ended += self.progress.watch().worked();
    }
}
