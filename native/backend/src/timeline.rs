//! Streams and events of a device that has no queues of its own.
//!
//! Every operation is a node that waits for the nodes before it, as CUDA orders them: the same stream; the legacy
//! default stream and the blocking streams each other; an event's recording.  A node whose turn has come runs on a
//! pool of threads, or at once on the thread that finished the last node before it when it is *light*.  Nothing
//! that waits holds a thread.  The pool is small, and grows where work has waited for a thread so long that what the
//! others do may be waiting for it: kernels may wait for each other in memory.

use crate::device::{Done, ErrorObserver, HostWork};
use crate::error::{CudaError, CudaResult, code};
use crate::gate::Gate;
use crate::types::{EventId, StreamId};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Threads that run operations; kernels bring the engine's own threads.
const POOL_THREADS: usize = 4;
/// Operations that run at the same time: as many kernels as a card has resident.
const MOST_THREADS: usize = 128;
/// How long an operation waits for a thread before it gets one of its own.
const PATIENCE: Duration = Duration::from_millis(10);
/// How long such a thread stays for more.
const STAY: Duration = Duration::from_secs(1);

/// An operation.
pub type Job = Box<dyn FnOnce() -> CudaResult<()> + Send>;

/// An operation that ends when somebody else calls back, with its outcome; starting it takes microseconds.
pub type Later = Box<dyn FnOnce(Done<()>) + Send>;

/// One operation of a graph that is run.
pub struct Step {
    /// Places of earlier steps.
    pub after: Vec<usize>,
    pub work: StepWork,
}

/// What a step does.
pub enum StepWork {
    Marker,
    /// Takes microseconds.
    Light(Job),
    Heavy(Job),
    Later(Later),
    /// Is a recording of the event.
    Record(EventId),
    /// Waits for the event's recording before the graph.
    Wait(EventId),
}

/// Who is told when a node has run.
enum Notice {
    /// A synchronising call: it gets the error that CUDA would report there.
    Report(Done<()>),
    /// Housekeeping, done after a failure as well.
    Quiet(Box<dyn FnOnce() + Send>),
}

/// What a node does when its turn comes.
enum Work {
    /// Runs on the pool.
    Heavy(Job),
    /// Runs on whichever thread made it ready: it takes microseconds.
    Light(Job),
    /// Marks a place.
    Marker,
    /// Goes on when somebody says so.
    Later(Later),
}

struct Node {
    waiting_for: usize,
    followers: Vec<u64>,
    work: Option<Work>,
    notices: Vec<Notice>,
}

struct Stream {
    /// Ordered with the legacy default stream.
    blocking: bool,
    tail: Option<u64>,
}

#[derive(Default)]
struct Event {
    timing: bool,
    recording: Option<u64>,
    passed: Option<Instant>,
}

#[derive(Default)]
struct State {
    next: u64,
    nodes: HashMap<u64, Node>,
    streams: HashMap<StreamId, Stream>,
    /// Streams that were destroyed with work in them, and whether they were ordered with the legacy default stream.
    loose: HashMap<u64, bool>,
    /// The last fence, for streams that are made behind it.
    fence: Option<u64>,
    events: HashMap<EventId, Event>,
    /// Recordings that have not been passed, and the event each belongs to.
    recordings: HashMap<u64, EventId>,
    ready: VecDeque<u64>,
    /// Threads that tell others of what has run.
    telling: usize,
    /// Threads of the pool, and those of them that have nothing to do.
    threads: usize,
    idle: usize,
    sticky: Option<CudaError>,
    /// A failure that the next synchronising call reports, once.
    pending: Option<CudaError>,
    stopped: bool,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// There is more to do than threads that have nothing to do.
    short: Condvar,
    observer: ErrorObserver,
    gate: OnceLock<Arc<dyn Gate>>,
}

/// The streams and events of one session.
pub struct Timeline {
    shared: Arc<Shared>,
}

impl Timeline {
    /// A timeline with only the legacy default stream.
    pub fn new(observer: ErrorObserver) -> Timeline {
        let mut state = State { next: 1, ..State::default() };
        state.streams.insert(StreamId::LEGACY, Stream { blocking: true, tail: None });
        let (state, wake, short, gate) = (Mutex::new(state), Condvar::new(), Condvar::new(), OnceLock::new());
        let shared = Arc::new(Shared { state, wake, short, observer, gate });
        (0..POOL_THREADS).for_each(|_| shared.add_thread(&mut shared.lock()));
        let stands_by = Arc::clone(&shared);
        let spawned = std::thread::Builder::new().name("stream-reserve".into()).spawn(move || stands_by.stand_by());
        debug_assert!(spawned.is_ok(), "threads at start");
        Timeline { shared }
    }

    /// Asks the gate before every operation that takes a while; the first one named counts.
    pub fn ask(&self, gate: Arc<dyn Gate>) {
        let _ = self.shared.gate.set(gate);
    }

    /// The sticky error, if there is one.
    pub fn failure(&self) -> Option<CudaError> {
        self.shared.lock().sticky.clone()
    }

    /// Queues work that takes a while.
    pub fn submit(&self, stream: StreamId, job: Job) -> CudaResult<()> {
        self.shared.enqueue(stream, Work::Heavy(job), Vec::new(), None, None)
    }

    /// Queues work that takes microseconds: when nothing is before it, it runs before this returns.
    pub fn submit_light(&self, stream: StreamId, job: Job) -> CudaResult<()> {
        if !self.is_clear(stream)? {
            return self.shared.enqueue(stream, Work::Light(job), Vec::new(), None, None);
        }
        match run(job) {
            Ok(()) => Ok(()),
            // A failure takes the way of all others.
            Err(error) => self.shared.enqueue(stream, Work::Light(Box::new(|| Err(error))), Vec::new(), None, None),
        }
    }

    /// Operations that have not run.
    pub fn backlog(&self) -> u64 {
        self.shared.lock().nodes.len() as u64
    }

    /// Whether nothing is before the stream's next operation, so that it may be done at once.
    pub fn is_clear(&self, stream: StreamId) -> CudaResult<bool> {
        let mut state = self.shared.lock();
        match state.sticky.clone() {
            Some(failure) => Err(failure),
            None => Ok(state.before(stream)?.is_empty()),
        }
    }

    /// Queues work whose caller waits for it; `light` as in [`Timeline::submit_light`].
    pub fn submit_call(&self, stream: StreamId, light: bool, job: Job, done: Done<()>) -> CudaResult<()> {
        let work = if light { Work::Light(job) } else { Work::Heavy(job) };
        self.shared.enqueue(stream, work, vec![Notice::Report(done)], None, None)
    }

    /// Queues work of the host.
    pub fn submit_host(&self, stream: StreamId, work: HostWork) -> CudaResult<()> {
        self.submit_later(stream, host(work))
    }

    /// As [`Timeline::submit_host`]; `done` is called when the stream goes on.
    pub fn submit_host_call(&self, stream: StreamId, work: HostWork, done: Done<()>) -> CudaResult<()> {
        self.shared.enqueue(stream, Work::Later(host(work)), vec![Notice::Report(done)], None, None)
    }

    /// Queues an operation that ends when somebody calls back.
    pub fn submit_later(&self, stream: StreamId, work: Later) -> CudaResult<()> {
        self.shared.enqueue(stream, Work::Later(work), Vec::new(), None, None)
    }

    /// Whether a sticky error has stopped everything; may be asked after the timeline is gone.
    pub fn stopped(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || {
            shared.upgrade().is_none_or(|shared| {
                let state = shared.lock();
                state.stopped || state.sticky.is_some()
            })
        }
    }

    /// Queues a graph: its first steps come after the stream's work so far, later work after all of its steps.
    pub fn submit_steps(&self, stream: StreamId, steps: Vec<Step>) -> CudaResult<()> {
        self.shared.enqueue_steps(stream, steps)
    }

    /// Runs `job` once everything issued so far has run; nothing waits for it.  It also runs after a failure.
    pub fn after_all(&self, job: Box<dyn FnOnce() + Send>) {
        let mut state = self.shared.lock();
        let tails = state.all_tails();
        self.shared.attach(state, &tails, Work::Marker, vec![Notice::Quiet(job)]);
    }

    /// Makes everything issued later, in any stream, wait for everything issued so far.
    pub fn fence(&self) {
        let mut state = self.shared.lock();
        let tails = state.all_tails();
        if tails.is_empty() {
            return;
        }
        let node = state.next;
        state.streams.values_mut().for_each(|stream| stream.tail = Some(node));
        state.fence = Some(node);
        self.shared.attach(state, &tails, Work::Marker, Vec::new());
    }

    /// Calls back when everything issued so far has run.
    pub fn synchronize(&self, done: Done<()>) {
        let mut state = self.shared.lock();
        let tails = state.all_tails();
        self.shared.attach(state, &tails, Work::Marker, vec![Notice::Report(done)]);
    }

    /// Adds a stream.
    pub fn create_stream(&self, stream: StreamId, flags: u32) -> CudaResult<()> {
        let mut state = self.shared.lock();
        if stream.0 <= 2 || state.streams.contains_key(&stream) {
            return Err(CudaError::new(code::INVALID_HANDLE, "the stream's handle is already in use"));
        }
        let tail = state.fence.filter(|node| state.nodes.contains_key(node));
        state.streams.insert(stream, Stream { blocking: flags & 1 == 0, tail });
        Ok(())
    }

    /// Removes a stream; what it holds still runs.
    pub fn destroy_stream(&self, stream: StreamId) -> CudaResult<()> {
        let mut state = self.shared.lock();
        if stream == StreamId::LEGACY {
            return Err(CudaError::new(code::INVALID_HANDLE, "the default stream cannot be destroyed"));
        }
        let gone = state.streams.remove(&stream).ok_or_else(|| unknown("stream"))?;
        if let Some(tail) = gone.tail.filter(|tail| state.nodes.contains_key(tail)) {
            state.loose.insert(tail, gone.blocking);
        }
        Ok(())
    }

    /// Calls back when everything issued to the stream so far has run.
    pub fn synchronize_stream(&self, stream: StreamId, done: Done<()>) -> CudaResult<()> {
        let mut state = self.shared.lock();
        let tails = state.before(stream)?;
        self.shared.attach(state, &tails, Work::Marker, vec![Notice::Report(done)]);
        Ok(())
    }

    /// Runs `job` once everything issued to the stream so far has run, also after a failure, which it does not tell.
    pub fn mark(&self, stream: StreamId, job: Box<dyn FnOnce() + Send>) -> CudaResult<()> {
        let mut state = self.shared.lock();
        let tails = state.before(stream)?;
        self.shared.attach(state, &tails, Work::Marker, vec![Notice::Quiet(job)]);
        Ok(())
    }

    /// Whether everything issued to the stream so far has run.
    pub fn query_stream(&self, stream: StreamId) -> CudaResult<bool> {
        let mut state = self.shared.lock_told();
        if let Some(failure) = state.report() {
            return Err(failure);
        }
        Ok(state.before(stream)?.is_empty())
    }

    /// Adds an event.
    pub fn create_event(&self, event: EventId, flags: u32) -> CudaResult<()> {
        let mut state = self.shared.lock();
        if state.events.contains_key(&event) {
            return Err(CudaError::new(code::INVALID_HANDLE, "the event's handle is already in use"));
        }
        state.events.insert(event, Event { timing: flags & 2 == 0, ..Event::default() });
        Ok(())
    }

    /// Removes an event.
    pub fn destroy_event(&self, event: EventId) -> CudaResult<()> {
        self.shared.lock().events.remove(&event).map(drop).ok_or_else(|| unknown("event"))
    }

    /// Marks a place in the stream.
    pub fn record_event(&self, event: EventId, stream: StreamId) -> CudaResult<()> {
        self.shared.enqueue(stream, Work::Marker, Vec::new(), Some(event), None)
    }

    /// Makes the stream wait for the event's latest recording.
    pub fn wait_event(&self, stream: StreamId, event: EventId) -> CudaResult<()> {
        self.shared.enqueue(stream, Work::Marker, Vec::new(), None, Some(event))
    }

    /// Calls back when the event's latest recording has been passed.
    pub fn synchronize_event(&self, event: EventId, done: Done<()>) -> CudaResult<()> {
        let state = self.shared.lock();
        let recording = state.events.get(&event).ok_or_else(|| unknown("event"))?.recording;
        let tails: Vec<u64> = recording.filter(|node| state.nodes.contains_key(node)).into_iter().collect();
        self.shared.attach(state, &tails, Work::Marker, vec![Notice::Report(done)]);
        Ok(())
    }

    /// `true` when the event's latest recording has been passed; else runs `job` when it has been, also after a failure.
    pub fn watch_event(&self, event: EventId, job: Box<dyn FnOnce() + Send>) -> CudaResult<bool> {
        let state = self.shared.lock_told();
        let recording = state.events.get(&event).ok_or_else(|| unknown("event"))?.recording;
        match recording.filter(|node| state.nodes.contains_key(node)) {
            None => Ok(true),
            Some(node) => {
                self.shared.tell(state, node, Notice::Quiet(job));
                Ok(false)
            }
        }
    }

    /// Whether the event's latest recording has been passed (an event never recorded counts as passed).
    pub fn query_event(&self, event: EventId) -> CudaResult<bool> {
        let mut state = self.shared.lock_told();
        if let Some(failure) = state.report() {
            return Err(failure);
        }
        let event = state.events.get(&event).ok_or_else(|| unknown("event"))?;
        Ok(event.recording.is_none() || event.passed.is_some())
    }

    /// Milliseconds between two recordings.
    pub fn elapsed(&self, start: EventId, end: EventId) -> CudaResult<f32> {
        let mut state = self.shared.lock();
        if let Some(failure) = state.report() {
            return Err(failure);
        }
        let (start, end) = (
            state.events.get(&start).ok_or_else(|| unknown("event"))?,
            state.events.get(&end).ok_or_else(|| unknown("event"))?,
        );
        if !start.timing || !end.timing || start.recording.is_none() || end.recording.is_none() {
            return Err(CudaError::new(code::INVALID_HANDLE, "both events must be recorded, with timing"));
        }
        match (start.passed, end.passed) {
            (Some(from), Some(to)) if to >= from => Ok((to - from).as_secs_f32() * 1e3),
            (Some(from), Some(to)) => Ok(-((from - to).as_secs_f32() * 1e3)),
            _ => Err(CudaError::new(code::NOT_READY, "")),
        }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.wake.notify_all();
        self.shared.short.notify_all();
    }
}

/// Runs a job; one that panics has failed as a kernel fails, and its stream goes on to say so.
fn run(job: Job) -> CudaResult<()> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).unwrap_or_else(|_| {
        let text = "the GPU server failed inside this operation; its log says where";
        Err(CudaError::new(code::LAUNCH_FAILED, text))
    })
}

/// Work of the host as an operation: it cannot fail.
fn host(work: HostWork) -> Later {
    Box::new(move |done| work(Box::new(move || done(Ok(())))))
}

fn unknown(what: &str) -> CudaError {
    CudaError::new(code::INVALID_HANDLE, format!("there is no such {what}"))
}

impl State {
    /// The last unfinished operations of all streams.
    fn all_tails(&mut self) -> Vec<u64> {
        let nodes = &self.nodes;
        self.loose.retain(|node, _| nodes.contains_key(node));
        let streams = self.streams.values().filter_map(|stream| stream.tail).filter(|tail| nodes.contains_key(tail));
        streams.chain(self.loose.keys().copied()).collect()
    }

    /// What an operation in `stream` has to wait for.
    fn before(&mut self, stream: StreamId) -> CudaResult<Vec<u64>> {
        let own = self.streams.get(&stream).ok_or_else(|| unknown("stream"))?;
        let mut tails: Vec<u64> = own.tail.into_iter().collect();
        if stream == StreamId::LEGACY {
            tails.extend(self.streams.values().filter(|other| other.blocking).filter_map(|other| other.tail));
            tails.extend(self.loose.iter().filter(|(_, blocking)| **blocking).map(|(node, _)| *node));
        } else if own.blocking {
            tails.extend(self.streams.get(&StreamId::LEGACY).and_then(|legacy| legacy.tail));
        }
        tails.retain(|tail| self.nodes.contains_key(tail));
        tails.sort_unstable();
        tails.dedup();
        Ok(tails)
    }

    /// Files a node behind others; `true` when none of them is left to wait for.
    fn insert(&mut self, id: u64, behind: &[u64], work: Work, notices: Vec<Notice>) -> bool {
        let mut waiting_for = 0;
        for tail in behind {
            if let Some(before) = self.nodes.get_mut(tail) {
                before.followers.push(id);
                waiting_for += 1;
            }
        }
        self.nodes.insert(id, Node { waiting_for, followers: Vec::new(), work: Some(work), notices });
        waiting_for == 0
    }

    /// The error that a synchronising call has to report now.
    fn report(&mut self) -> Option<CudaError> {
        self.sticky.clone().or_else(|| self.pending.take())
    }
}

/// Of work that somebody answers.
enum Answer {
    /// Whoever starts it has not come back.
    Starting,
    Early(CudaResult<()>),
    Awaited,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state when all who waited for what has run have been told: for who asks whether something has, and may not
    /// hear of it before them.
    fn lock_told(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while state.telling > 0 {
            drop(state);
            std::thread::yield_now();
            state = self.lock();
        }
        state
    }

    /// Adds a node to a stream; `records` is the event it marks, `awaits` the event it waits for.
    fn enqueue(
        self: &Arc<Self>,
        stream: StreamId,
        work: Work,
        notices: Vec<Notice>,
        records: Option<EventId>,
        awaits: Option<EventId>,
    ) -> CudaResult<()> {
        let mut state = self.lock();
        if let Some(failure) = state.sticky.clone() {
            return Err(failure);
        }
        let mut tails = state.before(stream)?;
        if let Some(event) = awaits {
            let recording = state.events.get(&event).ok_or_else(|| unknown("event"))?.recording;
            tails.extend(recording.filter(|node| state.nodes.contains_key(node)));
        }
        let node = state.next;
        if let Some(event) = records {
            let event_state = state.events.get_mut(&event).ok_or_else(|| unknown("event"))?;
            event_state.recording = Some(node);
            event_state.passed = None;
            state.recordings.insert(node, event);
        }
        if let Some(stream) = state.streams.get_mut(&stream) {
            stream.tail = Some(node);
        }
        self.attach(state, &tails, work, notices);
        Ok(())
    }

    /// Adds a graph to a stream: a node a step, and one behind them all.
    fn enqueue_steps(self: &Arc<Self>, stream: StreamId, steps: Vec<Step>) -> CudaResult<()> {
        let mut state = self.lock();
        if let Some(failure) = state.sticky.clone() {
            return Err(failure);
        }
        let tails = state.before(stream)?;
        for (place, step) in steps.iter().enumerate() {
            if step.after.iter().any(|before| *before >= place) {
                return Err(CudaError::new(code::INVALID_VALUE, "a node comes before one that it depends on"));
            }
            if let StepWork::Record(event) | StepWork::Wait(event) = &step.work
                && !state.events.contains_key(event)
            {
                return Err(unknown("event"));
            }
        }
        let first = state.next;
        let join = first + steps.len() as u64;
        state.next = join + 1;
        let mut last: HashSet<u64> = (first..join).collect();
        let mut turn = Vec::new();
        for (id, step) in (first..join).zip(steps) {
            let mut before: Vec<u64> = step.after.iter().map(|place| first + *place as u64).collect();
            for node in &before {
                last.remove(node);
            }
            if before.is_empty() {
                before.extend_from_slice(&tails);
            }
            let work = match step.work {
                StepWork::Marker => Work::Marker,
                StepWork::Light(job) => Work::Light(job),
                StepWork::Heavy(job) => Work::Heavy(job),
                StepWork::Later(work) => Work::Later(work),
                StepWork::Wait(event) => {
                    let recording = state.events.get(&event).and_then(|event| event.recording);
                    before.extend(recording.filter(|node| *node < first));
                    Work::Marker
                }
                StepWork::Record(event) => {
                    if let Some(event) = state.events.get_mut(&event) {
                        event.recording = Some(id);
                        event.passed = None;
                    }
                    state.recordings.insert(id, event);
                    Work::Marker
                }
            };
            if state.insert(id, &before, work, Vec::new()) {
                turn.push(id);
            }
        }
        let before: Vec<u64> = if last.is_empty() { tails } else { last.into_iter().collect() };
        if state.insert(join, &before, Work::Marker, Vec::new()) {
            turn.push(join);
        }
        if let Some(stream) = state.streams.get_mut(&stream) {
            stream.tail = Some(join);
        }
        turn.reverse();
        self.start(state, turn, false);
        Ok(())
    }

    /// Adds a node behind `tails`, and runs it if there are none.
    fn attach(self: &Arc<Self>, mut state: MutexGuard<'_, State>, tails: &[u64], work: Work, notices: Vec<Notice>) {
        let id = state.next;
        state.next += 1;
        if state.insert(id, tails, work, notices) {
            self.start(state, vec![id], false);
        }
    }

    /// Has somebody told that a node has run, before anything that comes after it.
    fn tell(self: &Arc<Self>, mut state: MutexGuard<'_, State>, id: u64, notice: Notice) {
        match state.nodes.get_mut(&id) {
            Some(node) => node.notices.push(notice),
            None => self.attach(state, &[], Work::Marker, vec![notice]),
        }
    }

    /// Runs nodes whose turn has come, and those that they set free, as far as that needs no other thread.  A pool
    /// thread that calls this `takes` one of those that need one itself, so that none is woken for a stream that goes
    /// on.
    fn start<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>, mut turn: Vec<u64>, mut takes: bool) {
        while let Some(id) = turn.pop() {
            let failed = state.sticky.clone();
            let Some(node) = state.nodes.get_mut(&id) else { continue };
            let heavy = matches!(node.work, Some(Work::Heavy(_)));
            if heavy && failed.is_none() {
                state.ready.push_back(id);
                if !std::mem::take(&mut takes) {
                    self.wake.notify_one();
                }
                if state.ready.len() > state.idle {
                    self.short.notify_one();
                }
                continue;
            }
            let work = node.work.take();
            drop(state);
            let outcome = match (work, failed) {
                (_, Some(failure)) => Err(failure),
                (Some(Work::Light(job)), None) => run(job),
                (Some(Work::Later(start)), None) => match self.start_later(id, start) {
                    Some(outcome) => outcome,
                    // The node stays in the table until the answer has come.
                    None => {
                        state = self.lock();
                        continue;
                    }
                },
                _ => Ok(()),
            };
            state = self.finish(id, outcome, &mut turn);
        }
    }

    /// Starts work that somebody answers later; the outcome of work that has ended by then: many of them in a row are not
    /// ended inside one another.
    fn start_later(self: &Arc<Self>, id: u64, start: Later) -> Option<CudaResult<()>> {
        let shared = Arc::downgrade(self);
        let answer = Arc::new(Mutex::new(Answer::Starting));
        let answered = Arc::clone(&answer);
        start(Box::new(move |outcome| {
            let mut answer = answered.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*answer, Answer::Starting) {
                *answer = Answer::Early(outcome);
                return;
            }
            drop(answer);
            if let Some(shared) = shared.upgrade() {
                let mut turn = Vec::new();
                let state = shared.finish(id, outcome, &mut turn);
                shared.start(state, turn, false);
            }
        }));
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *answer, Answer::Awaited) {
            Answer::Early(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Takes out a node that has run, tells who waited for it, and collects the nodes that it set free.
    fn finish(&self, id: u64, outcome: CudaResult<()>, turn: &mut Vec<u64>) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let Some(Node { notices, followers, .. }) = state.nodes.remove(&id) else { return state };
        let reports = notices.iter().any(|notice| matches!(notice, Notice::Report(_)));
        let mut own = None;
        let mut news = None;
        if let Err(error) = outcome
            && state.sticky.is_none()
        {
            if error.is_sticky() {
                state.sticky = Some(error.clone());
                news = Some(error);
            } else if reports {
                // The caller waits for this very operation and hears of it there, and only there.
                own = Some(error);
            } else {
                state.pending = Some(error.clone());
                news = Some(error);
            }
        }
        if let Some(event) = state.recordings.remove(&id)
            && let Some(event) = state.events.get_mut(&event)
            && event.recording == Some(id)
        {
            event.passed = Some(Instant::now());
        }
        if !notices.is_empty() || news.is_some() {
            let report = own.or_else(|| if reports { state.report() } else { None });
            state.telling += 1;
            drop(state);
            if let Some(error) = &news {
                (self.observer)(error);
            }
            for notice in notices {
                match notice {
                    Notice::Report(done) => done(report.clone().map_or(Ok(()), Err)),
                    Notice::Quiet(job) => job(),
                }
            }
            state = self.lock();
            state.telling -= 1;
        }
        state.loose.remove(&id);
        for follower in followers {
            if let Some(waiting) = state.nodes.get_mut(&follower) {
                waiting.waiting_for -= 1;
                if waiting.waiting_for == 0 {
                    turn.push(follower);
                }
            }
        }
        state
    }

    /// Runs a job when it is this session's turn.
    fn pass(&self, job: Job) -> CudaResult<()> {
        let Some(gate) = self.gate.get() else { return run(job) };
        gate.enter();
        let outcome = run(job);
        gate.leave();
        outcome
    }

    /// Adds a thread to the pool, if the system gives one.
    fn add_thread(self: &Arc<Self>, state: &mut State) {
        let shared = Arc::clone(self);
        let name = format!("stream-{}", state.threads);
        if std::thread::Builder::new().name(name).spawn(move || shared.serve()).is_ok() {
            state.threads += 1;
        }
    }

    /// A pool thread's life; one above the pool's usual number ends when there has been nothing to do for a while.
    fn serve(self: &Arc<Self>) {
        let (mut state, mut rested) = (self.lock(), false);
        loop {
            if let Some(id) = state.ready.pop_front() {
                let failed = state.sticky.clone();
                let work = state.nodes.get_mut(&id).and_then(|node| node.work.take());
                drop(state);
                let outcome = match (work, failed) {
                    (_, Some(failure)) => Err(failure),
                    (Some(Work::Heavy(job)), None) => self.pass(job),
                    _ => Ok(()),
                };
                let mut turn = Vec::new();
                let after = self.finish(id, outcome, &mut turn);
                self.start(after, turn, true);
                state = self.lock();
            } else if state.stopped || (rested && state.threads > POOL_THREADS) {
                state.threads -= 1;
                return;
            } else {
                state.idle += 1;
                let (woken, slept) = self.wake.wait_timeout(state, STAY).unwrap_or_else(PoisonError::into_inner);
                (state, rested) = (woken, slept.timed_out());
                state.idle -= 1;
            }
        }
    }

    /// Adds threads for work that has waited for one for too long.
    fn stand_by(self: &Arc<Self>) {
        let mut state = self.lock();
        while !state.stopped {
            let Some(&first) = state.ready.front().filter(|_| state.threads < MOST_THREADS) else {
                state = self.short.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            std::thread::sleep(PATIENCE);
            state = self.lock();
            if state.ready.front() == Some(&first) {
                self.add_thread(&mut state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    const A: StreamId = StreamId(10);
    const B: StreamId = StreamId(11);
    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(100);

    /// A timeline with two streams, and what it has told its observer.
    fn timeline(flags: u32) -> (Timeline, Receiver<CudaError>) {
        let (sender, told) = channel();
        let timeline = Timeline::new(Box::new(move |error| drop(sender.send(error.clone()))));
        timeline.create_stream(A, flags).expect("new");
        timeline.create_stream(B, flags).expect("new");
        (timeline, told)
    }

    /// Work that ends when the sender is used or dropped.
    fn hold(timeline: &Timeline, stream: StreamId) -> Sender<()> {
        let (release, held) = channel::<()>();
        let job = Box::new(move || {
            let _ = held.recv();
            Ok(())
        });
        timeline.submit(stream, job).expect("queued");
        release
    }

    fn log(timeline: &Timeline, stream: StreamId, list: &Arc<Mutex<Vec<u32>>>, number: u32) {
        let list = Arc::clone(list);
        let job = Box::new(move || {
            list.lock().expect("list").push(number);
            Ok(())
        });
        timeline.submit(stream, job).expect("queued");
    }

    fn wait(timeline: &Timeline, stream: StreamId) -> Receiver<CudaResult<()>> {
        let (sender, done) = channel();
        timeline.synchronize_stream(stream, Box::new(move |outcome| drop(sender.send(outcome)))).expect("known");
        done
    }

    #[test]
    fn a_stream_keeps_its_order() {
        let (timeline, _) = timeline(1);
        let list = Arc::default();
        (0..200).for_each(|number| log(&timeline, A, &list, number));
        assert_eq!(wait(&timeline, A).recv_timeout(LONG), Ok(Ok(())));
        assert_eq!(*list.lock().expect("list"), (0..200).collect::<Vec<_>>());
    }

    /// So many host functions that let the stream go on at once would not fit into a stack inside one another.
    #[test]
    fn work_that_is_answered_at_once_is_ended_where_it_was_started() {
        let (timeline, _) = timeline(1);
        let release = hold(&timeline, A);
        for _ in 0..20_000 {
            timeline.submit_host(A, Box::new(|go_on| go_on())).expect("queued");
        }
        let (passed, marked) = channel();
        let tell = move || {
            let _ = passed.send(());
        };
        timeline.mark(A, Box::new(tell)).expect("marked");
        assert!(marked.recv_timeout(SHORT).is_err());
        drop(release);
        assert_eq!(marked.recv_timeout(LONG), Ok(()));
    }

    #[test]
    fn streams_do_not_wait_for_each_other() {
        let (timeline, _) = timeline(1);
        let release = hold(&timeline, A);
        assert_eq!(wait(&timeline, B).recv_timeout(LONG), Ok(Ok(())));
        assert_eq!(wait(&timeline, StreamId::LEGACY).recv_timeout(LONG), Ok(Ok(())));
        assert_eq!(timeline.query_stream(A), Ok(false));
        drop(release);
        assert_eq!(wait(&timeline, A).recv_timeout(LONG), Ok(Ok(())));
        assert_eq!(timeline.query_stream(A), Ok(true));
    }

    #[test]
    fn the_legacy_stream_waits_for_blocking_streams_and_they_for_it() {
        let (timeline, _) = timeline(0);
        let list = Arc::default();
        let first = hold(&timeline, A);
        log(&timeline, StreamId::LEGACY, &list, 1);
        log(&timeline, B, &list, 2);
        let done = wait(&timeline, B);
        assert!(done.recv_timeout(SHORT).is_err(), "B waits for the default stream, and that for A");
        drop(first);
        assert_eq!(done.recv_timeout(LONG), Ok(Ok(())));
        assert_eq!(*list.lock().expect("list"), [1, 2]);
    }

    /// Work in more streams than the pool usually has threads, all of which waits for the last one's.
    #[test]
    fn work_that_waits_for_other_streams_gets_threads_of_its_own() {
        let (timeline, _) = timeline(1);
        let (sender, receiver) = channel::<()>();
        let (receiver, streams) = (Arc::new(Mutex::new(receiver)), 3 * POOL_THREADS as u64);
        for stream in (100..100 + streams).map(StreamId) {
            timeline.create_stream(stream, 1).expect("new");
            let receiver = Arc::clone(&receiver);
            let job = Box::new(move || {
                let received = receiver.lock().expect("alone").recv_timeout(LONG);
                received.map_err(|_| CudaError::new(code::UNKNOWN, "the last stream did not run"))
            });
            timeline.submit(stream, job).expect("queued");
        }
        let job = Box::new(move || {
            (0..streams).try_for_each(|_| sender.send(())).map_err(|_| CudaError::new(code::UNKNOWN, "nobody waits"))
        });
        timeline.submit(A, job).expect("queued");
        let (done, outcome) = channel();
        timeline.synchronize(Box::new(move |all| drop(done.send(all))));
        assert_eq!(outcome.recv_timeout(LONG), Ok(Ok(())));
        // Then the pool gets small again.
        let began = Instant::now();
        while timeline.shared.lock().threads > POOL_THREADS {
            assert!(began.elapsed() < LONG, "threads stay");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_event_orders_two_streams_and_measures_time() {
        let (timeline, _) = timeline(1);
        let (start, end) = (EventId(1), EventId(2));
        timeline.create_event(start, 0).expect("new");
        timeline.create_event(end, 0).expect("new");
        timeline.record_event(start, A).expect("recorded");
        let release = hold(&timeline, A);
        timeline.record_event(end, A).expect("recorded");
        timeline.wait_event(B, end).expect("known");
        let done = wait(&timeline, B);
        assert!(done.recv_timeout(SHORT).is_err());
        assert_eq!(timeline.query_event(end), Ok(false));
        assert_eq!(timeline.elapsed(start, end).map_err(|error| error.code), Err(code::NOT_READY));
        drop(release);
        assert_eq!(done.recv_timeout(LONG), Ok(Ok(())));
        assert!(timeline.elapsed(start, end).expect("both passed") >= 90.0);
    }

    #[test]
    fn a_sticky_error_stops_everything_and_is_told_once() {
        let (timeline, told) = timeline(1);
        let fault = CudaError::new(code::ILLEGAL_ADDRESS, "wild");
        let failing = fault.clone();
        let release = hold(&timeline, A);
        timeline.submit(A, Box::new(move || Err(failing))).expect("queued");
        let list: Arc<Mutex<Vec<u32>>> = Arc::default();
        log(&timeline, A, &list, 1);
        let done = wait(&timeline, A);
        drop(release);
        assert_eq!(done.recv_timeout(LONG), Ok(Err(fault.clone())));
        assert_eq!(told.recv_timeout(LONG), Ok(fault.clone()));
        assert!(list.lock().expect("list").is_empty(), "later work does not run");
        assert_eq!(timeline.submit(B, Box::new(|| Ok(()))), Err(fault.clone()));
        assert_eq!(wait(&timeline, B).recv_timeout(LONG), Ok(Err(fault)));
        assert!(told.try_recv().is_err());
    }

    #[test]
    fn work_that_panics_is_a_failed_launch() {
        let (timeline, told) = timeline(1);
        timeline.submit(A, Box::new(|| panic!("on purpose"))).expect("queued");
        let outcome = wait(&timeline, A).recv_timeout(LONG).expect("answered");
        assert_eq!(outcome.map_err(|error| error.code), Err(code::LAUNCH_FAILED));
        assert_eq!(told.recv_timeout(LONG).map(|error| error.code), Ok(code::LAUNCH_FAILED));
    }

    #[test]
    fn another_error_is_reported_by_the_next_wait_and_then_forgotten() {
        let (timeline, told) = timeline(1);
        let refusal = CudaError::new(code::NO_BINARY_FOR_GPU, "no such instruction");
        let failing = refusal.clone();
        timeline.submit(A, Box::new(move || Err(failing))).expect("queued");
        assert_eq!(wait(&timeline, A).recv_timeout(LONG), Ok(Err(refusal.clone())));
        assert_eq!(told.recv_timeout(LONG), Ok(refusal));
        assert_eq!(wait(&timeline, A).recv_timeout(LONG), Ok(Ok(())));
    }

    #[test]
    fn housekeeping_reports_nothing_and_runs_after_failures_too() {
        let (timeline, _) = timeline(1);
        timeline.submit(A, Box::new(|| Err(CudaError::new(code::INVALID_VALUE, "odd")))).expect("queued");
        let (sender, ran) = channel();
        timeline.after_all(Box::new(move || {
            let _ = sender.send(());
        }));
        ran.recv_timeout(LONG).expect("ran");
        assert!(matches!(wait(&timeline, A).recv_timeout(LONG), Ok(Err(_))), "the error waits for who asks");
    }

    #[test]
    fn a_fence_orders_what_comes_later_behind_everything() {
        let (timeline, _) = timeline(1);
        let release = hold(&timeline, A);
        timeline.fence();
        timeline.create_stream(StreamId(12), 1).expect("new");
        assert_eq!(timeline.is_clear(B), Ok(false));
        assert_eq!(timeline.is_clear(StreamId(12)), Ok(false), "also a stream made after the fence");
        drop(release);
        assert_eq!(wait(&timeline, B).recv_timeout(LONG), Ok(Ok(())));
        assert_eq!(timeline.is_clear(StreamId(12)), Ok(true));
    }

    #[test]
    fn host_work_holds_its_stream_and_no_other() {
        let (timeline, _) = timeline(1);
        let (sender, started) = channel();
        timeline.submit_host(A, Box::new(move |go_on| drop(sender.send(go_on)))).expect("queued");
        let go_on = started.recv_timeout(LONG).expect("started");
        let done = wait(&timeline, A);
        assert_eq!(wait(&timeline, B).recv_timeout(LONG), Ok(Ok(())));
        assert!(done.recv_timeout(SHORT).is_err());
        go_on();
        assert_eq!(done.recv_timeout(LONG), Ok(Ok(())));
    }

    /// A step that waits for `after` and writes its number down.
    fn step(list: &Arc<Mutex<Vec<u32>>>, after: &[usize], number: u32) -> Step {
        let list = Arc::clone(list);
        let job = Box::new(move || {
            list.lock().expect("list").push(number);
            Ok(())
        });
        Step { after: after.to_vec(), work: StepWork::Heavy(job) }
    }

    #[test]
    fn a_graph_runs_after_the_stream_before_it_and_in_the_order_of_its_edges() {
        let (timeline, _) = timeline(1);
        let list = Arc::default();
        let release = hold(&timeline, A);
        let steps = vec![step(&list, &[], 1), step(&list, &[0], 2), step(&list, &[0, 1], 3), step(&list, &[2], 4)];
        timeline.submit_steps(A, steps).expect("queued");
        log(&timeline, A, &list, 5);
        let done = wait(&timeline, A);
        assert!(done.recv_timeout(SHORT).is_err());
        assert!(list.lock().expect("list").is_empty(), "the stream's work comes first");
        drop(release);
        assert_eq!(done.recv_timeout(LONG), Ok(Ok(())));
        assert_eq!(*list.lock().expect("list"), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn branches_of_a_graph_run_side_by_side_and_what_follows_waits_for_both() {
        let (timeline, _) = timeline(1);
        let (first, second) = (channel::<()>(), channel::<()>());
        let job = |held: Receiver<()>, other: Sender<()>| -> Job {
            Box::new(move || {
                let _ = other.send(());
                held.recv_timeout(LONG).map_err(|_| CudaError::new(code::UNKNOWN, "the other branch did not run"))
            })
        };
        let steps = vec![
            Step { after: vec![], work: StepWork::Heavy(job(first.1, second.0)) },
            Step { after: vec![], work: StepWork::Heavy(job(second.1, first.0)) },
        ];
        timeline.submit_steps(A, steps).expect("queued");
        assert_eq!(wait(&timeline, A).recv_timeout(LONG), Ok(Ok(())));
    }

    #[test]
    fn a_graph_records_and_awaits_events_and_an_empty_one_keeps_the_order() {
        let (timeline, _) = timeline(1);
        let (before, inside) = (EventId(1), EventId(2));
        timeline.create_event(before, 0).expect("new");
        timeline.create_event(inside, 0).expect("new");
        let release = hold(&timeline, B);
        timeline.record_event(before, B).expect("recorded");
        let steps = vec![
            Step { after: vec![], work: StepWork::Wait(before) },
            Step { after: vec![0], work: StepWork::Record(inside) },
        ];
        timeline.submit_steps(A, steps).expect("queued");
        timeline.submit_steps(A, Vec::new()).expect("queued");
        let done = wait(&timeline, A);
        assert!(done.recv_timeout(SHORT).is_err(), "it waits for the other stream's event");
        assert_eq!(timeline.query_event(inside), Ok(false));
        let (sender, passed) = channel();
        assert_eq!(timeline.watch_event(inside, Box::new(move || sender.send(()).expect("heard"))), Ok(false));
        drop(release);
        assert_eq!(done.recv_timeout(LONG), Ok(Ok(())));
        passed.recv_timeout(LONG).expect("told");
        assert_eq!(timeline.watch_event(inside, Box::new(|| ())), Ok(true));
        let wrong = vec![Step { after: vec![0], work: StepWork::Marker }];
        assert_eq!(timeline.submit_steps(A, wrong).map_err(|error| error.code), Err(code::INVALID_VALUE));
    }

    #[test]
    fn the_legacy_stream_waits_for_a_blocking_stream_that_was_destroyed() {
        for (flags, waits) in [(0, true), (1, false)] {
            let (timeline, _) = timeline(flags);
            let release = hold(&timeline, A);
            timeline.destroy_stream(A).expect("known");
            let done = wait(&timeline, StreamId::LEGACY);
            assert_eq!(done.recv_timeout(SHORT).is_err(), waits);
            drop(release);
            if waits {
                assert_eq!(done.recv_timeout(LONG), Ok(Ok(())));
            }
        }
    }

    #[test]
    fn a_stream_destroyed_with_work_in_it_finishes_it() {
        let (timeline, _) = timeline(1);
        let list = Arc::default();
        let release = hold(&timeline, A);
        log(&timeline, A, &list, 1);
        timeline.destroy_stream(A).expect("known");
        assert!(timeline.submit(A, Box::new(|| Ok(()))).is_err());
        let (sender, done) = channel();
        timeline.synchronize(Box::new(move |outcome| drop(sender.send(outcome))));
        assert!(done.recv_timeout(SHORT).is_err());
        drop(release);
        assert_eq!(done.recv_timeout(LONG), Ok(Ok(())));
        assert_eq!(*list.lock().expect("list"), [1]);
    }

    /// As programs do that read a result and go on: whatever is issued when an answer has come runs behind what came
    /// before it, and nothing overtakes what it waits for.
    #[test]
    fn work_issued_on_an_answer_keeps_its_order() {
        let (timeline, _) = timeline(0);
        let place = Arc::new(std::sync::atomic::AtomicU64::new(0));
        for round in 1..=20_000u64 {
            let (sender, answer) = channel();
            let step = |at: u64| -> Job {
                let place = Arc::clone(&place);
                Box::new(move || {
                    let before = place.swap(round * 10 + at, std::sync::atomic::Ordering::SeqCst);
                    let wanted = if at == 0 { (round - 1) * 10 + 3 } else { round * 10 + at - 1 };
                    assert!(round == 1 && at == 0 || before == wanted, "{before} before {at} of {round}");
                    Ok(())
                })
            };
            if timeline.is_clear(StreamId::LEGACY).expect("no failure") {
                step(0)().expect("never fails");
            } else {
                timeline.submit_light(StreamId::LEGACY, step(0)).expect("queued");
            }
            timeline.submit(StreamId::LEGACY, step(1)).expect("queued");
            timeline.submit(StreamId::LEGACY, step(2)).expect("queued");
            let done: Done<()> = Box::new(move |outcome| drop(sender.send(outcome)));
            timeline.submit_call(StreamId::LEGACY, true, step(3), done).expect("queued");
            assert_eq!(answer.recv_timeout(LONG), Ok(Ok(())), "round {round}");
        }
    }
}
