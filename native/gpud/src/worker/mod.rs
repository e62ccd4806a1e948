//! A worker: one process for one client process, under its lease's limits.
//!
//! The main thread carries out the supervisor's orders, one thread reads the client's frames and executes them in
//! their order (or, where the device may wait for the client, has another one do so), and one writes what was measured into the lease's account.  The device's own threads finish work.

mod behind;
mod bulk;
mod devices;
mod dispatch;
mod gate;
mod gpu_time;
mod graph;
mod host;
mod host_memory;
mod link;
mod outbox;
mod peers;
mod pinned;
mod session;

use crate::arbiter::bell::Bell;
use crate::control::messages::{EndMode, RunningKernel};
use crate::images::Image;
use crate::ledger::{Away, Ledger};
use crate::orders::{Order, Report};
use crate::passing::Channel;
use behind::Behind;
use gate::Gate;
use gpu_time::GpuTime;
use outbox::Outbox;
use peers::Peers;
use session::{DRAIN_TIME, Session};
use sluice_backend::log;
use sluice_protocol::Failure;
use sluice_protocol::handshake::{AddressRange, Device, DeviceProfile, Handshake, Refused, RefusedCode, Welcome};
use sluice_protocol::{FEATURES, SHARED_LANES, VERSION_MAJOR, VERSION_MINOR, cuda, opcode};
use sluice_transport::shared::Memory;
use sluice_transport::stream::Closer;
use sluice_transport::{Lanes, PeerProcess, ReadHalf, Stream, WriteHalf, write_handshake};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The descriptor on which a worker finds its supervisor.
pub const SUPERVISOR_DESCRIPTOR: i32 = 3;
/// What runs is held when the client has been away for so long: nearly always its process has died.
const HOLD_TIME: Duration = Duration::from_secs(1);
/// How often it is looked whether the process of a client that is away has ended.
const LOOK_TIME: Duration = Duration::from_millis(50);
/// Lanes of a session that get memory to share: as many as clients open.
const MOST_SHARED_LANES: u16 = 4;
/// How long a client may take to hand its memory file over.
const HAND_OVER_TIME: Duration = Duration::from_secs(5);
/// How often measurements are written into the lease's account.
const SETTLE_TIME: Duration = Duration::from_millis(200);
/// How many of these times pass from one report of a kernel's progress to the next.
const SETTLES_A_REPORT: u32 = 5;

/// A client's connection and the last frame that it has received.
struct Arrival {
    connection: Stream,
    received: u64,
}

/// A worker that has lost one of its own threads is of no use: it ends, and its client hears of it.  A panic inside
/// device work is caught where the work runs.
fn end_when_a_thread_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        if matches!(std::thread::current().name(), Some("main" | "frames" | "meter"))
            || std::thread::current().name().is_some_and(|name| name.starts_with("lane"))
        {
            std::process::abort();
        }
    }));
}

/// Runs a worker process to its end.
pub fn main() -> io::Result<()> {
    end_when_a_thread_panics();
    // SAFETY: the supervisor puts the socket there before exec, and nothing else in this process owns it.
    let supervisor = Arc::new(unsafe { Channel::from_raw(SUPERVISOR_DESCRIPTOR) });
    let Some((order, descriptors)) = supervisor.receive::<Order>()? else { return Ok(()) };
    let Order::Start {
        tls,
        backend,
        device: report,
        lease,
        client,
        ranges,
        return_seconds,
        nonce,
        exact_bounds,
        others,
    } = order
    else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the first order is not a start"));
    };
    let [account, connection, bell] = take(descriptors)?;
    let connection = Stream::from_parts(connection, tls)?;
    let outbox = Arc::new(Outbox::default());
    let observer = {
        let outbox = Arc::clone(&outbox);
        move |error: &sluice_backend::CudaError| {
            session::send_async_error(&outbox, 0, &Failure::new(error.code, error.text.clone()));
        }
    };
    let opened = devices::open(&backend, &report, exact_bounds, Box::new(observer)).map(|device| {
        let peers = device.peers(&others);
        let range = ranges.iter().find_map(|range| {
            let bytes = device.reserve(range.base, range.bytes).ok()?;
            Some(AddressRange { base: range.base, bytes })
        });
        (device, range, peers)
    });
    let refusal = match opened {
        Ok((device, Some(range), peers)) => {
            let greeting =
                Greeting { report: *report, client, range, peers, outbox: Arc::clone(&outbox), return_seconds, nonce };
            let printing = Arc::clone(&outbox);
            device.print_to(Box::new(move |text| {
                let _due = printing.expect_with_room(text.len() as u64);
                session::send_printed(&printing, text);
            }));
            let ledger = Arc::new(Ledger::map(account)?);
            let gate = Arc::new(Gate::new(Arc::clone(&ledger), lease.slot, Bell::from_descriptor(bell)));
            device.ask(Arc::clone(&gate) as _);
            let session = Session::new(device, outbox, Arc::clone(&supervisor), lease, client, ledger, gate);
            let (ending, gpu_time) = (Arc::clone(&supervisor), Arc::clone(&session.gpu_time));
            session.outbox.end_session_by(Box::new(move || end_soon(&gpu_time, &ending)));
            return work(session, greeting, connection, &supervisor);
        }
        Ok((_, None, _)) => Refused {
            code: RefusedCode::Range,
            text: "none of the proposed address ranges is free on the GPU server".to_owned(),
        },
        Err(error) => Refused { code: RefusedCode::Unavailable, text: error.to_string() },
    };
    let (_, writing) = connection.split()?;
    supervisor.send(&Report::Refused { text: refusal.text.clone() }, &[])?;
    outbox.connect(writing, (opcode::REFUSED, refusal.encode()), 0);
    supervisor.send(&Report::Closed { clean: true }, &[])
}

fn take(descriptors: Vec<OwnedFd>) -> io::Result<[OwnedFd; 3]> {
    descriptors.try_into().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not three descriptors"))
}

/// What a client that connects is told.
struct Greeting {
    report: crate::control::messages::DeviceReport,
    /// The client's process, as it calls itself.
    client: u32,
    range: AddressRange,
    /// Devices whose memory this one can reach.
    peers: Vec<String>,
    outbox: Arc<Outbox>,
    return_seconds: u64,
    nonce: String,
}

impl Greeting {
    fn welcome(&self, session: &Session) -> Welcome {
        let profile = &self.report.profile;
        Welcome {
            version: [VERSION_MAJOR, VERSION_MINOR],
            features: FEATURES.iter().map(|name| (*name).to_owned()).collect(),
            session_id: session.lease().session_id.clone(),
            executed: self.outbox.received(),
            range: self.range,
            device: Device {
                uuid: self.report.uuid.clone(),
                gpu_type: self.report.gpu_type.clone(),
                profile: DeviceProfile {
                    name: profile.name.clone(),
                    compute_capability_major: profile.compute_capability_major as i32,
                    compute_capability_minor: profile.compute_capability_minor as i32,
                    total_memory_bytes: profile.total_memory_bytes,
                    driver_version: profile.driver_version,
                    driver: profile.driver.clone(),
                    attributes: profile.attributes.clone(),
                },
                peers: self.peers.clone(),
            },
            memory_bytes: session.lease().memory_bytes,
            credit: session.idle_credit(),
            return_seconds: self.return_seconds,
            nonce: self.nonce.clone(),
        }
    }
}

/// The session, shared by the threads that execute frames and orders.
type Shared = Arc<Mutex<Session>>;

/// A lock, also one that a thread held when it panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(session: Session, greeting: Greeting, connection: Stream, supervisor: &Channel) -> io::Result<()> {
    let peers = Peers::of(&session);
    let session = Arc::new(Mutex::new(session));
    let greeting = Arc::new(greeting);
    let (arrivals, arriving) = channel();
    let mut current = connection.closer()?;
    let first = Unwelcomed::of(connection, &greeting)?;
    // From here on we answer the client, and nobody else does: without the supervisor's knowledge we write nothing.
    supervisor.send(&Report::Opened, &[])?;
    // Before any order is carried out: one that ends the lease tells the client so behind the welcome.
    let first = first.welcome(&session, &greeting, 0);
    let frames = Arc::clone(&session);
    let greets = Arc::clone(&greeting);
    std::thread::Builder::new().name("frames".to_owned()).spawn(move || {
        let clean = serve(&frames, &greets, first, &arriving);
        end(&lock(&frames), clean);
    })?;
    let meter = Arc::clone(&session);
    std::thread::Builder::new().name("meter".to_owned()).spawn(move || measure(&meter))?;
    while let Some((order, descriptors)) = supervisor.receive::<Order>()? {
        carry_out(order, descriptors, &session, &greeting, &peers, &arrivals, &mut current)?;
    }
    // The supervisor is gone, and with it every lease.
    Ok(())
}

/// Of a kernel's name so many characters are told.
const MOST_OF_A_NAME: usize = 200;

/// Writes into the account what was measured, tells of kernels that run long, and ends a session that takes more of the
/// host than it may.
fn measure(session: &Mutex<Session>) {
    let mut told = None;
    loop {
        for _ in 0..SETTLES_A_REPORT {
            std::thread::sleep(SETTLE_TIME);
            lock(session).settle();
        }
        let session = lock(session);
        if let Some(text) = session.takes_too_much() {
            log!("gpud worker: {text}");
            session.send_async_error(&Failure::new(cuda::ERROR_LAUNCH_FAILED, text));
            std::thread::sleep(link::LINGER_TIME);
            end(&session, false);
        }
        let running = session.device.running().map(|now| {
            let seconds = now.worked.as_secs();
            // A program may give its kernels names of any length.
            let kernel = now.kernel.chars().take(MOST_OF_A_NAME).collect();
            RunningKernel { kernel, blocks_done: now.done, blocks: now.blocks, seconds }
        });
        if running != told {
            session.report(&Report::Running { running: running.clone() });
            told = running;
        }
    }
}

/// The client's next connection, if it comes within a time. While it is away, what it has on the device is held.
///
/// A client whose `process` has ended does not come back: gpud saw which process made the last connection.
fn next_arrival(
    session: &Shared,
    arriving: &Receiver<Arrival>,
    process: Option<&PeerProcess>,
    within: Duration,
) -> Option<Arrival> {
    let (began, mut held) = (Instant::now(), false);
    loop {
        match arriving.recv_timeout(LOOK_TIME) {
            Ok(arrival) => {
                if held {
                    lock(session).device.pause(false);
                }
                return Some(arrival);
            }
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if began.elapsed() >= within || process.is_some_and(PeerProcess::has_ended) {
            return None;
        }
        if !held && began.elapsed() >= HOLD_TIME {
            lock(session).hold();
            held = true;
        }
    }
}

/// A connection that has not been welcomed.
struct Unwelcomed {
    writing: WriteHalf,
    line: Line,
}

/// A welcomed connection, to be read.
struct Line {
    reading: ReadHalf,
    closer: Closer,
    /// The client's process, where its end can be seen from here.
    process: Option<PeerProcess>,
}

impl Unwelcomed {
    fn of(connection: Stream, greeting: &Greeting) -> io::Result<Unwelcomed> {
        let process = PeerProcess::of(connection.as_raw_fd(), greeting.client);
        let (reading, writing) = connection.split()?;
        let closer = writing.closer()?;
        Ok(Unwelcomed { writing, line: Line { reading, closer, process } })
    }

    /// Writes the welcome and what the client has not received.
    fn welcome(self, session: &Shared, greeting: &Greeting, received: u64) -> Line {
        let welcome = greeting.welcome(&lock(session));
        greeting.outbox.connect(self.writing, (opcode::WELCOME, welcome.encode()), received);
        self.line
    }
}

/// Executes connection after connection, from the first, which is welcomed; answers whether the session ended in order.
fn serve(session: &Shared, greeting: &Greeting, first: Line, arriving: &Receiver<Arrival>) -> bool {
    let return_time = Duration::from_secs(greeting.return_seconds);
    let behind = {
        let session = lock(session);
        Behind::new(Arc::clone(&session.host), Arc::clone(&session.bulk), Arc::clone(&greeting.outbox.memory))
    };
    let mut line = first;
    loop {
        let end = link::serve(&mut line.reading, &line.closer, session, &greeting.outbox, &behind);
        greeting.outbox.disconnect();
        match end {
            link::End::Silent => lock(session).set_away(Away::Silent),
            link::End::Closed => lock(session).set_away(Away::Closed),
            link::End::Broken => return false,
            link::End::Goodbye => return true,
        }
        let Some(arrival) = next_arrival(session, arriving, line.process.as_ref(), return_time) else { return false };
        lock(session).set_present();
        let Ok(next) = Unwelcomed::of(arrival.connection, greeting) else { return false };
        line = next.welcome(session, greeting, arrival.received);
    }
}

/// Ends this process when its client has had time to read the last words. The caller holds the outbox, and may hold the
/// session.
fn end_soon(gpu_time: &Arc<GpuTime>, supervisor: &Arc<Channel>) {
    log!("gpud worker: a session ends: its client does not acknowledge answers");
    let (gpu_time, supervisor) = (Arc::clone(gpu_time), Arc::clone(supervisor));
    let ending = std::thread::Builder::new().name("end".to_owned()).spawn(move || {
        std::thread::sleep(link::LINGER_TIME);
        close(&gpu_time, &supervisor, false);
        std::process::exit(1);
    });
    if ending.is_err() {
        std::process::exit(1);
    }
}

/// Ends this process: its memory is gone with it.
fn end(session: &Session, clean: bool) -> ! {
    session.settle();
    close(&session.gpu_time, &session.supervisor, clean);
    std::process::exit(0)
}

/// Writes the last GPU time into the account, then tells the supervisor that the session is over. After that the
/// supervisor may count what the account says.
fn close(gpu_time: &GpuTime, supervisor: &Channel, clean: bool) {
    gpu_time.settle();
    // A supervisor that is gone needs no report.
    let _ = supervisor.send(&Report::Closed { clean }, &[]);
}

fn serve_lane(
    lanes: &Arc<Lanes>,
    index: u16,
    mut stream: Stream,
    mut welcome: Welcome,
    shared: bool,
) -> io::Result<()> {
    // Without memory to share, the socket carries everything.
    let memory = if shared && index < MOST_SHARED_LANES { Memory::create().ok() } else { None };
    if memory.is_some() {
        welcome.features.push(SHARED_LANES.to_owned());
    }
    write_handshake(&mut stream, &welcome)?;
    if let Some(memory) = memory {
        stream = stream.offer(memory)?;
    }
    lanes.attach(index.into(), stream)?()
}

/// Takes the client's memory file from a connection that brings nothing else, and answers with one byte whether copies
/// from and to it are possible.
fn take_pinned(session: &Shared, mut stream: Stream, welcome: &Welcome) -> io::Result<()> {
    stream.set_timeout(Some(HAND_OVER_TIME))?;
    write_handshake(&mut stream, welcome)?;
    let file = stream.take_over()?;
    let mut session = lock(session);
    let taken = session.pinned.take_file(file);
    stream.write_all(&[u8::from(taken)])?;
    if taken {
        session.pinned.keep_line(stream);
    }
    Ok(())
}

fn carry_out(
    order: Order,
    descriptors: Vec<OwnedFd>,
    session: &Shared,
    greeting: &Greeting,
    peers: &Peers,
    arrivals: &Sender<Arrival>,
    current: &mut Closer,
) -> io::Result<()> {
    match order {
        Order::Start { .. } => return Err(io::Error::new(io::ErrorKind::InvalidData, "a second start")),
        Order::Connection { tls, received } => {
            if let Some(connection) = descriptors.into_iter().next() {
                let connection = Stream::from_parts(connection, tls)?;
                current.close();
                *current = connection.closer()?;
                let _ = arrivals.send(Arrival { connection, received });
            }
        }
        Order::Lane { tls, index, shared } => {
            if let Some(connection) = descriptors.into_iter().next() {
                let (lanes, welcome) = {
                    let session = lock(session);
                    (Arc::clone(&session.bulk.lanes), greeting.welcome(&session))
                };
                let serve = move || {
                    // A lane that breaks comes back; until then the others carry its pieces.
                    let serve = |stream| serve_lane(&lanes, index, stream, welcome, shared);
                    let _ = Stream::from_parts(connection, tls).and_then(serve);
                };
                std::thread::Builder::new().name(format!("lane-in-{index}")).spawn(serve)?;
            }
        }
        Order::Pinned { tls } => {
            if let Some(connection) = descriptors.into_iter().next() {
                let (session, welcome) = (Arc::clone(session), greeting.welcome(&lock(session)));
                let take = move || {
                    // A client whose memory does not come copies by lanes.
                    let take = |stream| take_pinned(&session, stream, &welcome);
                    let _ = Stream::from_parts(connection, tls).and_then(take);
                };
                std::thread::Builder::new().name("pinned".to_owned()).spawn(take)?;
            }
        }
        Order::EndLease { mode, reason, park_limit } => {
            let drained = match mode {
                EndMode::Park => {
                    let drained = lock(session).drain(&reason);
                    let drained = drained.recv_timeout(DRAIN_TIME).unwrap_or(false);
                    if drained {
                        peers.recall();
                    }
                    drained
                }
                EndMode::Kill => false,
            };
            let mut session = lock(session);
            let parked = if drained { session.park(&reason, park_limit) } else { None };
            if parked.is_none() {
                session.tell_ended(false, &reason);
                session.settle();
            }
            session.report(&Report::Ended { parked_bytes: parked.unwrap_or(0) });
            if parked.is_none() {
                session.device.cancel();
                link::linger(current);
                end(&session, true);
            }
        }
        Order::Rebound { call, lease } => {
            if let Some(account) = descriptors.into_iter().next() {
                lock(session).rebound(call, lease, Ledger::map(account)?);
            }
        }
        Order::Image => {
            let image = descriptors.into_iter().next().and_then(|memory| Image::open(memory).ok());
            lock(session).image_found(image);
        }
        Order::Linked { call } => {
            if let Some(line) = descriptors.into_iter().next()
                && let Err(error) = peers.borrow(call, Channel::from_end(line))
            {
                let failure = Failure::new(cuda::ERROR_OUT_OF_MEMORY, error.to_string());
                peers.links.refuse(call, failure);
            }
        }
        Order::NotLinked { call } => {
            let text =
                "this workspace has no such session on another GPU of this server, or it is linked already".to_owned();
            peers.links.refuse(call, Failure::new(cuda::ERROR_PEER_ACCESS_UNSUPPORTED, text));
        }
        Order::Lend => {
            if let Some(line) = descriptors.into_iter().next() {
                // The other worker finds the line's end.
                let _ = peers.lend(Channel::from_end(line));
            }
        }
        Order::NotRebound { call, text } => lock(session).not_rebound(call, text),
        Order::Recall { bytes } => lock(session).recall(bytes),
        Order::Freed => lock(session).freed(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_backend::soft::SoftDevice;
    use sluice_backend::{Device as _, FunctionRef, LaunchConfig, ModuleId, StreamId};

    /// Sixty-four threads that count to a million.
    const BUSY: &[u8] = b"
.version 7.5
.target sm_75
.address_size 64
.visible .entry busy()
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    mov.u32 %r1, 0;
L:
    add.s32 %r1, %r1, 1;
    setp.lt.s32 %p1, %r1, 1000000;
    @%p1 bra L;
    ret;
}
";

    /// Runs the kernel to its end.
    fn run(device: &SoftDevice) {
        let config = LaunchConfig {
            grid: [1; 3],
            block: [64, 1, 1],
            shared_bytes: 0,
            cooperative: false,
            params: Vec::new(),
            attributes: Vec::new(),
        };
        let function = FunctionRef { module: ModuleId(1), index: 0 };
        device.launch(StreamId::LEGACY, function, config).expect("queued");
        let (sender, done) = channel();
        device.synchronize(Box::new(move |outcome| drop(sender.send(outcome)))).expect("queued");
        done.recv().expect("an answer").expect("run");
    }

    #[test]
    fn the_last_gpu_time_is_in_the_account_before_the_supervisor_hears_of_the_end() {
        let device = Arc::new(SoftDevice::open(1, false, Box::new(|_| ())).expect("opens"));
        device.reserve(0x2000_0000_0000, 4 << 30).expect("reserved");
        device.load_module(ModuleId(1), BUSY).expect("loaded");
        let ledger = Arc::new(Ledger::create(1 << 30).expect("memfd"));
        let gpu_time = GpuTime::new(Arc::clone(&device) as _, Arc::clone(&ledger), 3);
        let (near, far) = Channel::pair().expect("a pair");
        run(&device);
        assert_eq!(ledger.slot(3).gpu_time_ns, 0);
        close(&gpu_time, &far, false);
        let (report, _) = near.receive::<Report>().expect("read").expect("a report");
        assert_eq!(report, Report::Closed { clean: false });
        let first = ledger.slot(3).gpu_time_ns;
        assert!(first > 0 && first == device.gpu_time().as_nanos() as u64);
        // Another lease pays for what comes later.
        let next = Arc::new(Ledger::create(1 << 30).expect("memfd"));
        gpu_time.sit(Arc::clone(&next), 5);
        run(&device);
        gpu_time.settle();
        assert_eq!(ledger.slot(3).gpu_time_ns, first);
        assert_eq!(first + next.slot(5).gpu_time_ns, device.gpu_time().as_nanos() as u64);
        assert!(next.slot(5).gpu_time_ns > 0);
    }
}
