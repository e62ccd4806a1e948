//! Launches: blocks in order of their numbers, spread over a pool of threads.

use super::apart::Apart;
use super::block::{Block, Turn};
use super::builtin::{DEFAULT_PRINTED, Printed};
use super::busy::{Busy, Working};
use super::lanes::Row;
use super::loaded::{LoadedModule, Prepared};
use super::progress::{Launches, Progress, Running};
use super::queue::Queue;
use super::room::{self, Account, Lender, Room};
use super::warp::{Context, MOST_LOCAL};
use crate::arena::Arena;
use crate::error::Fault;
use crate::heap::Heap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most shared memory of a block, static and dynamic: what compute capability 7.5 has.
const MOST_SHARED: u32 = 64 * 1024;
/// Most threads that a cooperative launch may have, because all of them are in memory at once.
const MOST_COOPERATIVE: u64 = 1 << 18;
/// Blocks and threads that the device's four multiprocessors have at the same time.
const MOST_RESIDENT: u64 = 4 * 16;
const MOST_RESIDENT_THREADS: u64 = 4 * 1024;
/// How long the blocks of a thread may go on before one more begins beside them: it may be what they wait for.
const PATIENCE: Duration = Duration::from_millis(10);
/// Most blocks that a worker takes at a time.
const MOST_AT_ONCE: u64 = 64;
/// How often what is paused looks whether it may go on.
const PAUSE_TIME: Duration = Duration::from_millis(10);

/// One kernel launch.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    pub module: &'a LoadedModule,
    pub kernel: &'a str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    /// The parameter buffer, laid out as [`crate::KernelInfo::params`] says.
    pub params: &'a [u8],
    /// All blocks run at the same time, so that the grid may synchronise.
    pub cooperative: bool,
    /// What `malloc` of the kernel takes from; without it every `malloc` answers null.
    pub heap: Option<&'a Heap>,
}

impl Launch<'_> {
    /// Blocks of its grid.
    fn blocks(&self) -> u64 {
        self.grid.iter().map(|extent| u64::from(*extent)).product()
    }

    /// Blocks that are in memory at the same time when so many threads work on them.
    fn together(&self, threads: u64) -> u64 {
        if self.cooperative { self.blocks() } else { threads }
    }
}

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchStats {
    /// Instructions executed, counted once a warp.
    pub instructions: u64,
    pub blocks: u64,
    pub elapsed: Duration,
    /// What the kernel printed.
    pub printed: String,
}

type Job = Box<dyn FnOnce() + Send>;

/// Called once for each launch that is paused, on one of its threads, with what waits for the pause's end.
pub type Aside = Box<dyn Fn(&dyn Fn()) + Send + Sync>;

/// The pool of threads that runs launches.  Launches may come from several threads at once.
pub struct Engine {
    jobs: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    apart: Arc<Apart>,
    /// Milliseconds that one launch may take; zero: as long as it likes.
    limit: AtomicU64,
    /// Bytes that are kept of what a launch prints.
    printed: AtomicUsize,
    paused: AtomicBool,
    aside: OnceLock<Aside>,
    launches: Launches,
    busy: Busy,
    account: Account,
}

/// What the threads of one launch share.
struct Shared<'a> {
    engine: &'a Engine,
    progress: &'a Progress,
    arena: &'a Arena,
    kernel: &'a Prepared,
    launch: &'a Launch<'a>,
    params: &'a [u8],
    cancel: &'a AtomicBool,
    /// Set when a block has failed.
    stop: AtomicBool,
    queue: Queue,
    /// How many blocks a worker takes from the queue at a time.
    at_once: u64,
    workers: u32,
    shared_len: u32,
    /// What a block takes of the room when it begins.
    block_bytes: u64,
    room: Room<'a>,
    workspace: [AtomicU64; 2],
    started: Instant,
    /// Milliseconds; zero: none.
    limit: u64,
    instructions: AtomicU64,
    fault: Mutex<Option<Fault>>,
    printed: Mutex<Printed>,
}

impl Engine {
    /// Starts a pool of so many threads (at least one).
    pub fn new(threads: usize) -> Engine {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        let (mut handles, apart) = (Vec::new(), Arc::new(Apart::default()));
        let (joined, all_joined) = mpsc::channel::<()>();
        for number in 0..threads.max(1) {
            let (queue, apart, joined) = (queue.clone(), Arc::clone(&apart), joined.clone());
            let body = move || {
                apart.join();
                drop(joined);
                loop {
                    let job = queue.lock().unwrap_or_else(|e| e.into_inner()).recv();
                    match job {
                        Ok(job) => job(),
                        Err(_) => break,
                    }
                }
            };
            // A thread that cannot be started is missing from the pool; the caller's own thread always works.
            if let Ok(handle) = std::thread::Builder::new().name(format!("softgpu-{number}")).spawn(body) {
                handles.push(handle);
            }
        }
        // All of them are known before the first launch.
        drop(joined);
        let _ = all_joined.recv();
        let (limit, printed) = (AtomicU64::new(0), AtomicUsize::new(DEFAULT_PRINTED));
        let (paused, aside) = (AtomicBool::new(false), OnceLock::new());
        let (launches, account) = Default::default();
        let busy = Busy::new(threads);
        Engine { jobs: Some(jobs), threads: handles, apart, limit, printed, paused, aside, launches, busy, account }
    }

    /// Ends launches that take longer with [`Fault::Timeout`], from now on.
    pub fn set_limit(&self, limit: Option<Duration>) {
        let limit = limit.map_or(0, |limit| limit.as_millis().max(1) as u64);
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// How many bytes are kept of what a launch prints, from the next one on: a mebibyte unless it is told.  Each call
    /// counts with its text, and with 32 bytes at least.
    pub fn keep_printed(&self, bytes: usize) {
        self.printed.store(bytes, Ordering::Relaxed);
    }

    /// Stops what runs and what will be launched, between two instructions, until it is called with `false`.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// What a launch that is paused does meanwhile, told once; without, it only waits.
    pub fn when_paused(&self, aside: Aside) {
        let _ = self.aside.set(aside);
    }

    /// Who lends memory for the threads of launches that take much of it, told once; without, nobody is asked.
    pub fn borrow_from(&self, lender: Box<dyn Lender>) {
        self.account.borrow_from(lender);
    }

    /// Who lends memory for launches that take much of it.
    pub fn lender(&self) -> Option<&dyn Lender> {
        self.account.lender()
    }

    /// The launches that run, the oldest first.
    pub fn running(&self) -> Vec<Running> {
        self.launches.running()
    }

    /// How long launches have worked: the sum of those that have ended and of those that run.
    pub fn worked(&self) -> Duration {
        self.launches.worked()
    }

    /// How long the threads have had blocks, averaged over all of them; those that have now until now. A kernel of one
    /// block counts as one thread, however long it takes.
    pub fn active(&self) -> Duration {
        self.busy.active()
    }

    /// The calling thread does what a kernel would do, and counts as one that has a block as long as the answer lives.
    pub fn occupy(&self) -> Working<'_> {
        self.busy.begin()
    }

    /// Runs a kernel to its end.  `cancel` stops it soon after it becomes true.
    pub fn launch(&self, arena: &Arena, launch: &Launch, cancel: &AtomicBool) -> Result<LaunchStats, Fault> {
        let mut printed = String::new();
        let done = self.launch_printing(arena, launch, cancel, &mut printed);
        done.map(|stats| LaunchStats { printed, ..stats })
    }

    /// The same; what the kernel printed is put into `printed`, that of a kernel that failed too.
    pub fn launch_printing(
        &self,
        arena: &Arena,
        launch: &Launch,
        cancel: &AtomicBool,
        printed: &mut String,
    ) -> Result<LaunchStats, Fault> {
        let started = Instant::now();
        let kernel = launch.module.prepare(launch.kernel)?;
        let Needs { shared_len, block_bytes } = check(launch, &kernel)?;
        let _held = arena.hold();
        let blocks = launch.blocks();
        let workers = (self.threads.len().max(1) as u64).min(blocks).min(room::MOST / block_bytes);
        let (workers, room) = self.room(launch, workers, block_bytes)?;
        // A buffer of our own, aligned for every type.
        let mut buffer = vec![0u128; launch.params.len().div_ceil(16) + 1];
        // SAFETY: the buffer is at least as long as the parameters; bytes have no invalid values.
        let params = unsafe {
            std::ptr::copy_nonoverlapping(
                launch.params.as_ptr(),
                buffer.as_mut_ptr().cast::<u8>(),
                launch.params.len(),
            );
            std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), launch.params.len())
        };
        let listed = self.launches.begin(Arc::clone(&kernel), blocks);
        let shared = Shared {
            engine: self,
            progress: &listed.progress,
            arena,
            kernel: &kernel,
            launch,
            params,
            cancel,
            stop: AtomicBool::new(false),
            queue: if launch.cooperative { Queue::begun(launch.grid) } else { Queue::new(launch.grid) },
            at_once: at_once(&kernel, blocks, workers),
            workers,
            shared_len,
            block_bytes,
            room,
            workspace: [const { AtomicU64::new(0) }; 2],
            started,
            limit: self.limit.load(Ordering::Relaxed),
            instructions: AtomicU64::new(0),
            fault: Mutex::new(None),
            printed: Mutex::new(Printed::new(self.printed.load(Ordering::Relaxed))),
        };
        self.scatter(workers, launch.cooperative, &|worker| shared.work_safely(worker));
        let fault = shared.fault.into_inner().unwrap_or_else(|e| e.into_inner());
        *printed = shared.printed.into_inner().unwrap_or_else(|e| e.into_inner()).text();
        match fault {
            Some(fault) => Err(fault),
            None => Ok(LaunchStats {
                instructions: shared.instructions.into_inner(),
                blocks,
                elapsed: started.elapsed(),
                printed: String::new(),
            }),
        }
    }

    /// Room for a launch on so many threads, or on fewer where memory is short.
    fn room(&self, launch: &Launch, workers: u64, block_bytes: u64) -> Result<(u32, Room<'_>), Fault> {
        let mut threads = workers;
        loop {
            let bytes = launch.together(threads) * block_bytes;
            if let Some(room) = Room::begin(&self.account, bytes) {
                return Ok((threads as u32, room));
            }
            if launch.cooperative || threads <= 1 {
                return Err(Fault::OutOfResources(format!(
                    "{bytes} bytes of registers, local and shared memory for the threads that run at the same time; \
                     the lease has less left"
                )));
            }
            threads /= 2;
        }
    }

    /// Runs `work` for each worker number, on the pool and on this thread, and waits for those that have begun.
    /// `all`: waits until every one of them has begun; else those that the pool has no thread for are left out when
    /// this thread has finished, so that a launch never waits for another one's end.
    fn scatter(&self, workers: u32, all: bool, work: &(dyn Fn(u32) + Sync)) {
        #[derive(Default)]
        struct Gate {
            begun: u32,
            running: u32,
            closed: bool,
        }
        struct Latch {
            gate: Mutex<Gate>,
            changed: Condvar,
        }
        impl Latch {
            fn gate(&self) -> MutexGuard<'_, Gate> {
                self.gate.lock().unwrap_or_else(|e| e.into_inner())
            }
        }
        struct Running(Arc<Latch>);
        impl Drop for Running {
            fn drop(&mut self) {
                self.0.gate().running -= 1;
                self.0.changed.notify_all();
            }
        }
        let latch = Arc::new(Latch { gate: Mutex::default(), changed: Condvar::new() });
        // SAFETY: a job uses `work` only while it counts as running, which it does not once the gate is closed; this
        // function closes the gate and waits for the running ones before it returns.
        let work_static: &'static (dyn Fn(u32) + Sync) = unsafe { std::mem::transmute(work) };
        let mut sent = 0;
        let _launching = (workers > 1).then(|| self.apart.launch());
        for worker in 1..workers {
            let latch = latch.clone();
            let job: Job = Box::new(move || {
                {
                    let mut gate = latch.gate();
                    if gate.closed {
                        return;
                    }
                    gate.begun += 1;
                    gate.running += 1;
                }
                let _running = Running(latch);
                work_static(worker);
            });
            if self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok()) {
                sent += 1;
            }
        }
        work(0);
        let mut gate = latch.gate();
        gate.closed = !all;
        while gate.running > 0 || (all && gate.begun < sent) {
            gate = latch.changed.wait(gate).unwrap_or_else(|e| e.into_inner());
        }
        gate.closed = true;
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What a block of a launch needs.
struct Needs {
    /// Bytes of shared memory.
    shared_len: u32,
    /// Bytes of shared memory, registers and local memory when it begins.
    block_bytes: u64,
}

/// How many blocks each of so many workers takes at a time.  One where a block may wait for those before it; else
/// several, whose data mostly lie side by side: then the workers' processors neither fetch each other's memory nor
/// contend for the queue.
fn at_once(kernel: &Prepared, blocks: u64, workers: u32) -> u64 {
    if kernel.loops { 1 } else { (blocks / (16 * u64::from(workers))).clamp(1, MOST_AT_ONCE) }
}

/// Checks a launch against the kernel.
fn check(launch: &Launch, kernel: &Prepared) -> Result<Needs, Fault> {
    let info = launch.module.kernel(launch.kernel);
    let info = info.ok_or_else(|| Fault::InvalidLaunch(format!("no kernel `{}`", launch.kernel)))?;
    let invalid = |message: String| Err(Fault::InvalidLaunch(message));
    let [x, y, z] = launch.grid;
    if x == 0 || y == 0 || z == 0 || x > i32::MAX as u32 || y > 65535 || z > 65535 {
        return invalid(format!("a grid of {:?} blocks", launch.grid));
    }
    let [x, y, z] = launch.block;
    let threads = launch.block.iter().fold(1u64, |a, b| a.saturating_mul(u64::from(*b)));
    if x == 0 || y == 0 || z == 0 || x > 1024 || y > 1024 || z > 64 || threads > 1024 {
        return invalid(format!("a block of {:?} threads", launch.block));
    }
    if threads > u64::from(info.max_threads) {
        return invalid(format!("{threads} threads in a block, the kernel allows {}", info.max_threads));
    }
    if info.required_block.is_some_and(|b| b != launch.block) {
        return invalid(format!(
            "a block of {:?} threads, the kernel requires {:?}",
            launch.block, info.required_block
        ));
    }
    if launch.params.len() < info.param_bytes as usize {
        return invalid(format!("{} bytes of parameters, the kernel takes {}", launch.params.len(), info.param_bytes));
    }
    let total = kernel.shared_bytes.saturating_add(launch.dynamic_shared);
    if total > MOST_SHARED {
        return invalid(format!("{total} bytes of shared memory, a block has {MOST_SHARED}"));
    }
    if launch.cooperative {
        let all = threads.saturating_mul(launch.blocks());
        if all > MOST_COOPERATIVE {
            return Err(Fault::OutOfResources(format!("{all} threads in a cooperative launch")));
        }
    }
    let entry = kernel.function(0);
    let local = u64::from(entry.local_bytes);
    if local > MOST_LOCAL {
        return Err(Fault::OutOfResources(format!(
            "{local} bytes of local memory for a thread, which has {MOST_LOCAL}"
        )));
    }
    let warp_bytes = u64::from(entry.rows) * size_of::<Row>() as u64 + 32 * local;
    let block_bytes = threads.div_ceil(32) * warp_bytes + u64::from(total);
    let together = launch.together(1);
    if block_bytes.saturating_mul(together) > room::MOST {
        return Err(Fault::OutOfResources(format!(
            "{block_bytes} bytes of registers, local and shared memory for a block, {together} of them at the same time; \
             the software GPU has {} for a launch",
            room::MOST
        )));
    }
    Ok(Needs { shared_len: total, block_bytes })
}

impl Shared<'_> {
    fn context<'c>(&'c self, block: &mut Block, number: u64, worker: u32) -> Context<'c> {
        let words = (self.shared_len as usize).div_ceil(16);
        block.shared.clear();
        block.shared.resize(words, 0);
        Context {
            arena: self.arena,
            kernel: self.kernel,
            params: self.params,
            block: self.launch.block,
            uniform: self.uniform(self.queue.place(number), worker),
            known: block.known(self.kernel.compiled.accesses()),
            shared: block.shared.as_mut_ptr().cast(),
            shared_len: self.shared_len,
            workspace: if self.launch.cooperative { self.workspace.as_ptr() as u64 } else { 0 },
            heap: self.launch.heap,
            room: &self.room,
            queue: &self.queue,
            progress: self.progress,
            started: self.started,
            asks: [&self.stop, self.cancel, &self.engine.paused],
            printed: &self.printed,
        }
    }

    /// Special registers that all threads of a block share, by their number in [`crate::lower`].
    fn uniform(&self, cta: [u32; 3], worker: u32) -> [u32; 32] {
        let workspace = if self.launch.cooperative { self.workspace.as_ptr() as u64 } else { 0 };
        let mut out = [0; 32];
        out[3..6].copy_from_slice(&self.launch.block);
        out[6..9].copy_from_slice(&cta);
        out[9..12].copy_from_slice(&self.launch.grid);
        out[14] = self.launch.block.iter().product::<u32>().div_ceil(32);
        (out[15], out[16], out[17]) = (worker, self.workers, 1);
        (out[27], out[28]) = (self.launch.dynamic_shared, self.shared_len);
        // Where cooperative groups find the barrier of the grid.
        (out[30], out[31]) = ((workspace >> 32) as u32, workspace as u32);
        out
    }

    fn fail(&self, fault: Fault) {
        let mut slot = self.fault.lock().unwrap_or_else(|e| e.into_inner());
        *slot = Some(match slot.take() {
            Some(first) => first.and(fault),
            None => fault,
        });
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits until the launch is not paused any more, or is to stop.
    fn wait_paused(&self) {
        let paused = || self.engine.paused.load(Ordering::Relaxed);
        let ends = || self.cancel.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed);
        let wait = || {
            while paused() && !ends() {
                std::thread::sleep(PAUSE_TIME);
            }
        };
        let rests = self.progress.rest(|| match self.engine.aside.get() {
            Some(aside) => aside(&wait),
            None => wait(),
        });
        while !rests && (paused() || self.progress.resting()) && !ends() {
            std::thread::sleep(PAUSE_TIME);
        }
    }

    /// Whether to stop; waits while the engine is paused.  The launch's own flag is passed on to its other threads.
    fn stopping(&self) -> bool {
        if self.engine.paused.load(Ordering::Relaxed) {
            self.engine.busy.rest(|| self.wait_paused());
        }
        if self.cancel.load(Ordering::Relaxed) {
            self.fail(Fault::Cancelled);
        }
        if self.limit > 0 && self.started.elapsed() > Duration::from_millis(self.limit) {
            self.fail(Fault::Timeout { kernel: self.kernel.name.clone(), seconds: self.limit.div_ceil(1000) });
        }
        self.stop.load(Ordering::Relaxed)
    }

    /// A defect of the engine fails the launch, not the process, and never looks like success.
    fn work_safely(&self, worker: u32) {
        let _working = self.engine.busy.begin();
        let work = std::panic::AssertUnwindSafe(|| self.work(worker));
        if std::panic::catch_unwind(work).is_err() {
            self.fail(Fault::LaunchFailure("the software GPU failed; this is a defect in it".to_string()));
        }
    }

    fn work(&self, worker: u32) {
        if self.launch.cooperative {
            self.work_together(worker);
            return;
        }
        let mut block = Block::new();
        let mut fresh = true;
        while let Some(numbers) = self.queue.take_some(self.at_once) {
            let mut done = 0;
            for number in numbers {
                if self.stopping() {
                    return;
                }
                let context = self.context(&mut block, number, worker);
                block.begin(&context, fresh);
                match self.work_on(&mut block, &context) {
                    Ok(Turn::Finished) => {
                        done += 1;
                        fresh = false;
                    }
                    Ok(Turn::Unfinished) if self.stopping() => return,
                    Ok(Turn::Unfinished) => {
                        self.take_turns(std::mem::replace(&mut block, Block::new()), context, worker);
                        fresh = true;
                    }
                    Err(fault) => return self.fail(fault),
                }
            }
            self.progress.blocks_done(done);
        }
        self.instructions.fetch_add(block.take_instructions(), Ordering::Relaxed);
    }

    /// Runs a block until it has ended, the launch is to stop, or others should have a turn beside it.
    fn work_on(&self, block: &mut Block, context: &Context) -> Result<Turn, Fault> {
        let mut since = None;
        loop {
            if let Turn::Finished = block.run(context, 8)? {
                return Ok(Turn::Finished);
            }
            if self.stopping() || since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Ok(Turn::Unfinished);
            }
        }
    }

    /// Runs a block that does not end, and those after it beside it, in turn until all of them have ended.
    fn take_turns<'c>(&'c self, first: Block, context: Context<'c>, worker: u32) {
        // Those that have ended: what they hold serves the next.
        let mut idle = Vec::new();
        let mut running = VecDeque::from([(first, context)]);
        let mut most = 1;
        let mut since = Instant::now() - PATIENCE;
        let mut instructions = 0;
        while !self.stopping() {
            if since.elapsed() >= PATIENCE
                && self.may_begin(&running, &mut idle)
                && let Some(mut block) = idle.pop()
            {
                if let Some(number) = self.queue.take() {
                    let context = self.context(&mut block, number, worker);
                    block.begin(&context, true);
                    running.push_back((block, context));
                    most = most.max(running.len() + idle.len());
                }
                since = Instant::now();
            }
            let Some((mut block, context)) = running.pop_front() else { break };
            match block.run(&context, 8) {
                Ok(Turn::Finished) => {
                    self.progress.blocks_done(1);
                    instructions += block.take_instructions();
                    idle.push(block);
                    since = Instant::now();
                }
                Ok(Turn::Unfinished) => running.push_back((block, context)),
                Err(fault) => return self.fail(fault),
            }
        }
        self.room.give(self.block_bytes * (most as u64 - 1));
        self.instructions.fetch_add(instructions, Ordering::Relaxed);
    }

    /// Whether a block may begin beside those that run on this thread; there is an idle one then.
    fn may_begin(&self, running: &VecDeque<(Block, Context)>, idle: &mut Vec<Block>) -> bool {
        let threads = self.launch.block.iter().map(|b| u64::from(*b)).product::<u64>().next_multiple_of(32);
        let most = (MOST_RESIDENT_THREADS / threads).clamp(1, MOST_RESIDENT);
        if running.len() as u64 >= most || self.queue.is_empty() {
            return false;
        }
        if idle.is_empty() && self.room.take(self.block_bytes) {
            idle.push(Block::new());
        }
        !idle.is_empty()
    }

    /// A cooperative launch: this worker's share of the blocks, a round of each in turn.
    fn work_together(&self, worker: u32) {
        let mut blocks = Vec::new();
        for number in (u64::from(worker)..self.queue.blocks()).step_by(self.workers as usize) {
            let mut block = Block::new();
            let context = self.context(&mut block, number, worker);
            block.begin(&context, true);
            blocks.push((block, context));
        }
        let mut running = blocks.len();
        let mut finished = vec![false; blocks.len()];
        while running > 0 && !self.stopping() {
            for (at, (block, context)) in
                blocks.iter_mut().enumerate().filter(|(at, _)| !finished[*at]).collect::<Vec<_>>()
            {
                match block.run(context, 1) {
                    Ok(Turn::Finished) => {
                        self.progress.blocks_done(1);
                        finished[at] = true;
                        running -= 1;
                    }
                    Ok(Turn::Unfinished) => {}
                    Err(fault) => return self.fail(fault),
                }
            }
        }
        let total = blocks.iter_mut().map(|(block, _)| block.take_instructions()).sum();
        self.instructions.fetch_add(total, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    const NOTHING: &str = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";

    /// A grid of no columns is refused before a launch begins; a worker that meets one divides by zero.
    #[test]
    fn a_defect_on_any_thread_fails_the_launch_and_leaves_the_pool_whole() {
        let engine = Engine::new(4);
        let arena = Arena::reserve(0x1_7000_0000_0000 >> 4, 1 << 30).unwrap();
        let module = LoadedModule::new(Arc::new(Module::parse(NOTHING.as_bytes()).unwrap()), |_| Err(())).unwrap();
        let kernel = module.prepare("nothing").unwrap();
        let cancel = AtomicBool::new(false);
        let launch = |grid| Launch {
            module: &module,
            kernel: "nothing",
            grid,
            block: [32, 1, 1],
            dynamic_shared: 0,
            params: &[],
            cooperative: false,
            heap: None,
        };
        let impossible = launch([0, 1, 1]);
        for worker in 0..8 {
            let listed = engine.launches.begin(kernel.clone(), 64);
            let shared = Shared {
                engine: &engine,
                progress: &listed.progress,
                arena: &arena,
                kernel: &kernel,
                launch: &impossible,
                params: &[],
                cancel: &cancel,
                stop: AtomicBool::new(false),
                queue: Queue { grid: impossible.grid, next: AtomicU64::new(0), blocks: 64 },
                at_once: 1,
                workers: 4,
                shared_len: 0,
                block_bytes: 0,
                room: Room::begin(&engine.account, 0).unwrap(),
                workspace: [const { AtomicU64::new(0) }; 2],
                started: Instant::now(),
                limit: 0,
                instructions: AtomicU64::new(0),
                fault: Mutex::new(None),
                printed: Mutex::new(Printed::new(DEFAULT_PRINTED)),
            };
            // Only one of the four workers has the defect: the calling thread's or one of the pool's.
            engine.scatter(4, true, &|at| {
                if at == worker % 4 {
                    shared.work_safely(at);
                }
            });
            let fault = shared.fault.into_inner().unwrap();
            assert!(matches!(fault, Some(Fault::LaunchFailure(_))), "worker {worker}: {fault:?}");
        }
        let stats = engine.launch(&arena, &launch([64, 1, 1]), &cancel).unwrap();
        assert_eq!(stats.blocks, 64);
    }
}
