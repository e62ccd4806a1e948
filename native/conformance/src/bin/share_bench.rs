//! `sluice-share-bench [SECONDS] [BACKEND] [GPUD OPTION…]`: whether leases get their shares of one device (default: the
//! software GPU), as one line of JSON.
//!
//! Every program is a session of its own with a lease of its own.  A share is what a program finished beside its
//! neighbours over what the same program finished alone in the same time; gpud's own counters are not asked.  A program
//! issues its next work before it waits for the last, as one does that a device keeps waiting: alone it would otherwise
//! leave the device idle at each step, and neighbours that fill the gaps look as if shares did not hold.

use serde_json::{Value, json};
use sluice_client::dial::{Key, Ticket};
use sluice_client::session::Session;
use sluice_conformance::gpud::Gpud;
use sluice_protocol::graph::{GraphEdge, GraphNode, GraphWork};
use sluice_protocol::messages::{
    CopyOnDevice, EventCreate, EventRecord, EventSynchronize, GraphInstantiate, GraphLaunch, Launch, ModuleLoad,
    StreamSynchronize,
};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A kernel that does nothing but take time: `n` rounds in every thread. What it computes is written, or a compiler would
/// leave it out.
const SPIN: &str = ".version 7.0\n.target sm_75\n.address_size 64\n\
.visible .entry spin(.param .u64 out, .param .u32 n) {\n\
.reg .u32 %r<4>;\n.reg .u64 %rd<2>;\n.reg .pred %p<2>;\n\
ld.param.u64 %rd1, [out];\nld.param.u32 %r1, [n];\nmov.u32 %r2, 0;\nmov.u32 %r3, %tid.x;\n\
LOOP:\nadd.u32 %r2, %r2, 1;\nmad.lo.u32 %r3, %r3, 1664525, %r2;\n\
setp.lt.u32 %p1, %r2, %r1;\n@%p1 bra LOOP;\nst.global.u32 [%rd1], %r3;\nret;\n}\n";
const MODULE: u64 = 1;
const GRAPH: u64 = 1;
const STREAM: u64 = 1;
/// Mark the ends of a program's steps, in turns.
const EVENTS: [u64; 2] = [1, 2];
const GRAPH_KERNELS: u32 = 8;
/// More than caches hold: alone a program would find its data there, and beside another one not, whoever shares the
/// device.
const COPY_BYTES: u64 = 64 << 20;
/// A real driver takes some of it too.
const MEMORY: u64 = 2 << 30;
const GRID: [u32; 3] = [4, 1, 1];
const BLOCK: [u32; 3] = [64, 1, 1];
/// A measurement is cut into parts of about this length, together and alone in turns: the shorter, the less the machine
/// changes its speed between the two.
const PART: Duration = Duration::from_millis(400);
/// A part is so many times as long as an operation at least.
const OPERATIONS: u32 = 5;
/// How long programs work before a part of theirs is counted.
const BEGIN: Duration = Duration::from_millis(100);

/// Each program completes at least so often while it is counted, or the measurement fails.
const COMPLETIONS: usize = 3;
/// Fewer long waits than these are not turns but moments in which the machine did something else.
const TURNS: usize = 4;
const MOST_PATIENCE: Duration = Duration::from_secs(10);

type Outcome<T> = Result<T, String>;

/// What a program does over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// Kernels of so many microseconds, `ahead` in a step.
    Kernels { us: u64, ahead: u32 },
    /// Graphs of kernels.
    Graphs { us: u64 },
    /// Copies inside the device.
    Copies,
    /// Attached, and idle.
    Nothing,
}

impl Work {
    /// How long an operation takes on a device that does nothing else, about.
    fn length(self) -> Duration {
        match self {
            Work::Kernels { us, .. } => Duration::from_micros(us),
            Work::Graphs { us } => Duration::from_micros(us) * GRAPH_KERNELS,
            Work::Copies | Work::Nothing => Duration::ZERO,
        }
    }
}

#[derive(Clone, Copy)]
struct Program {
    milli: u32,
    work: Work,
}

const fn busy(milli: u32) -> Program {
    Program { milli, work: Work::Kernels { us: 1_000, ahead: 2 } }
}

/// One program's session, ready to work.
struct Running {
    session: Arc<Session>,
    work: Work,
    rounds_per_us: f64,
    memory: u64,
}

fn failed(error: sluice_client::error::CudaError) -> String {
    format!("{error:?}")
}

impl Running {
    fn start(gpud: &Gpud, number: usize, program: Program, rounds_per_us: f64) -> Outcome<Running> {
        let key = Arc::new(Key::generate()?);
        let lease = format!("lea-{number}-{:?}", Instant::now());
        let token = gpud.token_for_share(&key.public(), &lease, program.milli, MEMORY);
        let ticket = Ticket { address: gpud.address.parse()?, nearby: None, pin: None, token, key, several: false };
        let session = Session::open(ticket, 1, 0, lease).map_err(|error| error.to_string())?;
        let image = SPIN.as_bytes();
        let hash = ring::digest::digest(&ring::digest::SHA256, image);
        let hash = hash.as_ref().try_into().map_err(|_| "a hash of 32 bytes")?;
        session.connection.call(&ModuleLoad { module: MODULE, hash, heap: 8 << 20, image }).map_err(failed)?;
        for event in EVENTS {
            session.connection.post(&EventCreate { event, flags: 2 }).map_err(failed)?;
        }
        let memory = session.alloc(2 * COPY_BYTES, 0).map_err(failed)?;
        let running = Running { session, work: program.work, rounds_per_us, memory };
        if let Work::Graphs { us } = program.work {
            let nodes = (0..GRAPH_KERNELS).map(|place| GraphNode {
                after: place.checked_sub(1).map(|from| GraphEdge { from, data: [0; 8] }).into_iter().collect(),
                enabled: true,
                work: GraphWork::Kernel {
                    module: MODULE,
                    function: 0,
                    grid: GRID,
                    block: BLOCK,
                    shared_bytes: 0,
                    attributes: Vec::new(),
                    parameters: running.parameters(running.rounds(us)),
                },
            });
            let graph = GraphInstantiate { graph: GRAPH, flags: 0, nodes: nodes.collect() };
            running.session.connection.call(&graph).map_err(failed)?;
        }
        Ok(running)
    }

    fn rounds(&self, us: u64) -> u32 {
        (us as f64 * self.rounds_per_us) as u32
    }

    fn parameters(&self, rounds: u32) -> Vec<u8> {
        [&self.memory.to_le_bytes()[..], &rounds.to_le_bytes()[..]].concat()
    }

    fn launch(&self, rounds: u32) -> Outcome<()> {
        let parameters = self.parameters(rounds);
        let (module, function, flags, shared_bytes) = (MODULE, 0, 0, 0);
        let (grid, block, stream) = (GRID, BLOCK, STREAM);
        let launch = Launch { module, function, grid, block, shared_bytes, flags, stream, parameters: &parameters };
        self.session.connection.post(&launch).map_err(failed)
    }

    /// Issues a step of its work and marks its end.
    fn issue(&self, event: u64) -> Outcome<()> {
        let connection = &self.session.connection;
        match self.work {
            Work::Kernels { us, ahead } => (0..ahead).try_for_each(|_| self.launch(self.rounds(us)))?,
            Work::Graphs { .. } => {
                connection.post(&GraphLaunch { graph: GRAPH, stream: STREAM }).map_err(failed)?;
            }
            Work::Copies => {
                let (target, source) = (self.memory + COPY_BYTES, self.memory);
                let copy = CopyOnDevice { target, source, bytes: COPY_BYTES, stream: STREAM };
                connection.post(&copy).map_err(failed)?;
            }
            Work::Nothing => {}
        }
        connection.post(&EventRecord { event, stream: STREAM }).map_err(failed)
    }

    /// Waits for a step's end; answers how many operations it was.
    fn finish(&self, event: u64) -> Outcome<u64> {
        self.session.connection.call(&EventSynchronize { event }).map_err(failed)?;
        Ok(match self.work {
            Work::Kernels { ahead, .. } => u64::from(ahead),
            Work::Graphs { .. } | Work::Copies => 1,
            Work::Nothing => 0,
        })
    }
}

/// What a program has finished since counting began: when, and how many operations each time.
type Tally = Vec<(Instant, u64)>;

/// Operations a second of programs that worked at the same time.  All are counted over one span of whole periods, so
/// that it makes no difference whose turn it was when the counting began or ended.
fn rates(tallies: &[Tally]) -> Vec<f64> {
    let slowest = tallies.iter().min_by_key(|tally| tally.len());
    let Some((first, last)) = slowest.and_then(periods) else { return vec![0.0; tallies.len()] };
    let seconds = (last - first).as_secs_f64();
    let counted = |tally: &Tally| tally.iter().filter(|(at, _)| *at > first && *at <= last).map(|(_, done)| done).sum();
    let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    tallies.iter().map(counted).map(rate).collect()
}

/// From the first to the last time that a program's turn began: that its first completion came after a long wait.  Where
/// long waits are seldom or lie close together they were no turns, and it is from the first to the last completion.
fn periods(tally: &Tally) -> Option<(Instant, Instant)> {
    let waits = || tally.windows(2).map(|pair| (pair[1].0, pair[1].0 - pair[0].0));
    let longest = waits().map(|(_, wait)| wait).max().unwrap_or_default();
    let begins: Vec<Instant> = waits().filter(|(_, wait)| *wait * 2 >= longest).map(|(at, _)| at).collect();
    let span = |ends: &[Instant]| Some((*ends.first()?, *ends.last()?));
    let length = |span: Option<(Instant, Instant)>| span.map_or(Duration::ZERO, |(first, last)| last - first);
    let all: Vec<Instant> = tally.iter().map(|(at, _)| *at).collect();
    let turns = begins.len() >= TURNS && length(span(&begins)) * 2 >= length(span(&all));
    span(if turns { &begins } else { &all })
}

/// Programs with a thread each, of which some work at a time.
struct Field {
    programs: Vec<Running>,
    /// Whose turn it is to be measured.
    works: Vec<AtomicBool>,
    busy: Vec<AtomicBool>,
    tallies: Vec<Mutex<Tally>>,
    counting: AtomicBool,
    over: AtomicBool,
}

impl Field {
    fn new(gpud: &Gpud, programs: &[Program], rounds_per_us: f64) -> Outcome<Field> {
        let running =
            programs.iter().enumerate().map(|(at, program)| Running::start(gpud, at, *program, rounds_per_us));
        let flags = || programs.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Field {
            programs: running.collect::<Outcome<_>>()?,
            works: flags(),
            busy: flags(),
            tallies: programs.iter().map(|_| Mutex::default()).collect(),
            counting: AtomicBool::new(false),
            over: AtomicBool::new(false),
        })
    }

    /// A program's life.
    fn serve(&self, at: usize) -> Outcome<()> {
        let program = &self.programs[at];
        while !self.over.load(Ordering::SeqCst) {
            self.busy[at].store(true, Ordering::SeqCst);
            if self.works[at].load(Ordering::SeqCst) {
                let [mut issued, mut next] = EVENTS;
                program.issue(issued)?;
                while self.works[at].load(Ordering::SeqCst) && !self.over.load(Ordering::SeqCst) {
                    program.issue(next)?;
                    let done = program.finish(issued)?;
                    if self.counting.load(Ordering::SeqCst) {
                        let mut tally = self.tallies[at].lock().unwrap_or_else(PoisonError::into_inner);
                        tally.push((Instant::now(), done));
                    }
                    (issued, next) = (next, issued);
                }
                program.finish(issued)?;
            } else {
                self.busy[at].store(false, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// Operations a second of these programs, at work at the same time: counted for this time, and on until each has
    /// completed often enough.
    fn rates(&self, which: &[usize], time: Duration) -> Outcome<Vec<f64>> {
        let tally = |at: &usize| self.tallies[*at].lock().unwrap_or_else(PoisonError::into_inner);
        which.iter().for_each(|at| self.works[*at].store(true, Ordering::SeqCst));
        std::thread::sleep(BEGIN);
        which.iter().for_each(|at| tally(at).clear());
        self.counting.store(true, Ordering::SeqCst);
        std::thread::sleep(time);
        let enough = || which.iter().all(|at| tally(at).len() >= COMPLETIONS);
        let patience = Instant::now() + MOST_PATIENCE;
        while !enough() && Instant::now() < patience && !self.over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let counted = enough();
        self.counting.store(false, Ordering::SeqCst);
        let rates = rates(&which.iter().map(|at| tally(at).clone()).collect::<Vec<_>>());
        which.iter().for_each(|at| self.works[*at].store(false, Ordering::SeqCst));
        while self.busy.iter().any(|busy| busy.load(Ordering::SeqCst)) && !self.over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if counted {
            Ok(rates)
        } else {
            Err("A program completed less than three operations in ten seconds.".to_owned())
        }
    }

    /// The share of its own speed that each program reaches.  Together and alone take turns, so that what else the
    /// machine does falls on both, and the mean of the middle half of the turns' shares counts, so that a moment of it does
    /// not.
    fn shares(&self, time: Duration) -> Outcome<Vec<f64>> {
        let all: Vec<usize> = (0..self.programs.len()).filter(|at| self.programs[*at].work != Work::Nothing).collect();
        let mut shares: Vec<Vec<f64>> = vec![Vec::new(); all.len()];
        let longest = self.programs.iter().map(|program| program.work.length()).max().unwrap_or_default();
        let part = PART.max(longest * OPERATIONS);
        let rounds = time.div_duration_f64(part).round().max(1.0) as u32;
        for _ in 0..rounds {
            let together = self.rates(&all, time / rounds)?;
            let mut known: BTreeMap<Work, f64> = BTreeMap::new();
            for ((at, together), shares) in all.iter().zip(together).zip(&mut shares) {
                let work = self.programs[*at].work;
                let alone = match known.get(&work) {
                    Some(rate) => *rate,
                    None => self.rates(&[*at], time / (2 * rounds))?[0],
                };
                known.insert(work, alone);
                shares.push(together / alone);
            }
        }
        Ok(shares.into_iter().map(middle).collect())
    }
}

/// The mean of the middle half.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let outer = values.len() / 4;
    let middle = &values[outer..values.len() - outer];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// The shares of these programs on one gpud.
fn shares(gpud: &Gpud, programs: &[Program], time: Duration, rounds_per_us: f64) -> Outcome<Vec<f64>> {
    let field = Field::new(gpud, programs, rounds_per_us)?;
    let shares = std::thread::scope(|scope| {
        let serve = |at| {
            let field = &field;
            scope.spawn(move || {
                let served = field.serve(at);
                field.over.store(true, Ordering::SeqCst);
                served
            })
        };
        let threads: Vec<_> = (0..programs.len()).map(serve).collect();
        let shares = field.shares(time);
        field.over.store(true, Ordering::SeqCst);
        for thread in threads {
            thread.join().map_err(|_| "a program panicked".to_owned())??;
        }
        shares
    })?;
    field.programs.iter().for_each(|program| program.session.close());
    Ok(shares)
}

/// How many rounds the spinning kernel makes in a microsecond, launch and wait taken off.
fn calibrate(gpud: &Gpud) -> Outcome<f64> {
    let running = Running::start(gpud, 0, busy(1_000), 1.0)?;
    let timed = |rounds: u32| {
        let start = Instant::now();
        running.launch(rounds)?;
        running.session.connection.call(&StreamSynchronize { stream: STREAM }).map_err(failed)?;
        Ok::<f64, String>(start.elapsed().as_secs_f64() * 1e6)
    };
    let best = |rounds: u32| (0..8).map(|_| timed(rounds)).collect::<Outcome<Vec<_>>>();
    let least = |times: Vec<f64>| times.into_iter().fold(f64::INFINITY, f64::min);
    let (short, long) = (least(best(1_000)?), least(best(2_001_000)?));
    running.session.close();
    Ok(2_000_000.0 / (long - short).max(1.0))
}

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<Value> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(10.0), |text| text.parse().map_err(|_| "use SECONDS"))?;
    let backend = arguments.next().unwrap_or_else(|| "soft".to_owned());
    let given: Vec<String> = arguments.collect();
    let short = Program { milli: 500, work: Work::Kernels { us: 50, ahead: 64 } };
    let long = Program { milli: 500, work: Work::Kernels { us: 200_000, ahead: 1 } };
    let graphs = Program { milli: 500, work: Work::Graphs { us: 500 } };
    let copies = Program { milli: 500, work: Work::Copies };
    let busy_pairs: [(&str, Vec<Program>); 4] = [
        ("30/70", vec![busy(300), busy(700)]),
        ("10/90", vec![busy(100), busy(900)]),
        ("50/50", vec![busy(500), busy(500)]),
        ("25x4", vec![busy(250); 4]),
    ];
    let mixed: [(&str, Vec<Program>); 3] = [
        ("50 us/200 ms", vec![short, long]),
        ("graphs/kernels", vec![graphs, busy(500)]),
        ("copies/kernels", vec![copies, busy(500)]),
    ];
    let mut cases = serde_json::Map::new();
    let measure = |arbiter: &str, list: &[(&str, Vec<Program>)], cases: &mut serde_json::Map<String, Value>| {
        let options: Vec<&str> = given.iter().map(String::as_str).chain(["--arbiter", arbiter]).collect();
        let gpud = Gpud::start(&backend, &options)?;
        let time = Duration::from_secs_f64(seconds);
        let rounds_per_us = calibrate(&gpud)?;
        let (mut deviation, mut total) = (0.0_f64, f64::INFINITY);
        for (name, programs) in list {
            let reached = shares(&gpud, programs, time, rounds_per_us)?;
            let promised: u32 = programs.iter().map(|program| program.milli).sum();
            for (share, program) in reached.iter().zip(programs) {
                deviation = deviation.max((share - f64::from(program.milli) / f64::from(promised)).abs() * 100.0);
            }
            total = total.min(reached.iter().sum());
            cases.insert(format!("{name} arbiter {arbiter}"), json!(reached));
        }
        let idle = Program { milli: 500, work: Work::Nothing };
        let beside_idle = shares(&gpud, &[busy(500), idle], time, rounds_per_us)?[0];
        Ok::<_, String>((deviation, total, beside_idle))
    };
    let all: Vec<_> = busy_pairs.iter().chain(&mixed).cloned().collect();
    let (max_deviation_pp, total_vs_solo, idle_neighbour) = measure("on", &all, &mut cases)?;
    let (off_max_deviation_pp, _, _) = measure("off", &busy_pairs, &mut cases)?;
    Ok(json!({
        "max_deviation_pp": max_deviation_pp,
        "total_vs_solo": total_vs_solo,
        "idle_neighbour": idle_neighbour,
        "off_max_deviation_pp": off_max_deviation_pp,
        "shares": cases,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completions of a program that has the device in turns, `(from, to)` in microseconds of each period.
    fn tally(start: Instant, period: u64, turn: (u64, u64), operation: u64, window: (u64, u64)) -> Tally {
        let turns = (0..20).map(|number| (number * period + turn.0, number * period + turn.1));
        let ends =
            turns.flat_map(|(from, to)| (1..=(to - from) / operation).map(move |count| from + count * operation));
        let seen = ends.filter(|end| (window.0..window.1).contains(end));
        seen.map(|end| (start + Duration::from_micros(end), 1)).collect()
    }

    #[test]
    fn half_of_the_device_is_told_as_half_wherever_counting_begins() {
        let start = Instant::now();
        for offset in (0..400_000).step_by(25_000) {
            let window = (offset, offset + 1_000_000);
            let short = tally(start, 400_000, (0, 200_000), 50, window);
            let long = tally(start, 400_000, (200_000, 400_000), 200_000, window);
            let got = rates(&[short, long]);
            let shares = [got[0] / 20_000.0, got[1] / 5.0];
            assert!(shares.iter().all(|share| (share - 0.5).abs() < 0.01), "{shares:?} from {offset}");
        }
    }

    #[test]
    fn a_tenth_of_the_device_is_told_as_a_tenth_wherever_counting_begins() {
        let start = Instant::now();
        for offset in (0..40_000).step_by(2_500) {
            let window = (offset, offset + 400_000);
            let small = tally(start, 40_000, (0, 4_000), 1_000, window);
            let large = tally(start, 40_000, (4_000, 40_000), 1_000, window);
            let got = rates(&[small, large]);
            let shares = [got[0] / 1_000.0, got[1] / 1_000.0];
            assert!((shares[0] - 0.1).abs() < 0.002 && (shares[1] - 0.9).abs() < 0.01, "{shares:?} from {offset}");
        }
    }

    #[test]
    fn outliers_do_not_count() {
        assert_eq!(middle(vec![9.0, 1.0, 1.0, -70.0]), 1.0);
        assert_eq!(middle(vec![0.5]), 0.5);
    }

    #[test]
    fn one_completion_is_no_rate() {
        assert_eq!(rates(&[vec![(Instant::now(), 1)]]), [0.0]);
        assert_eq!(rates(&[Vec::new()]), [0.0]);
    }
}
