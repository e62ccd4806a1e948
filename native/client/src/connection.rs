//! One session's connection: numbered frames out, replies in, and its resumption after a loss.
//!
//! Posting appends to a buffer; whoever finds the link idle writes (the caller of a blocking call itself, otherwise the
//! writer thread), and what comes meanwhile is coalesced into the next write. Everything stays until it is
//! acknowledged, so that a lost connection is taken up again without the program noticing.

use crate::bulk::Bulk;
use crate::dial::{self, Ticket};
use crate::error::{CudaError, CudaResult};
use crate::fork;
use crate::pinned::Reach;
use crate::trace;
use sluice_protocol::control::{AsyncError, CreditRecall, LeaseEnded, Printed};
use sluice_protocol::frame::{Header, WINDOW_BYTES, WINDOW_FRAMES, put_frame, widen_ack};
use sluice_protocol::handshake::{Resume, Welcome};
use sluice_protocol::messages::{CallRequest, Goodbye, Request};
use sluice_protocol::reply::decode_reply;
use sluice_protocol::{DecodeError, Frame, HEADER_BYTES, Reader, Wire, cuda, opcode};
use sluice_transport::silence::is_silent;
use sluice_transport::spin::readable_within;
use sluice_transport::stream::Closer;
use sluice_transport::{FrameReader, ReadHalf, Spin, Stream, WriteHalf};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Frames received without one to send before they are acknowledged on their own account.
const ACK_FRAMES: u64 = 64;
/// As [`ACK_FRAMES`], in bytes.
const ACK_BYTES: usize = 1 << 20;
/// How often who waits for bytes looks whether the line is dead, milliseconds.
const LOOK_EVERY: i32 = 1000;
/// Longest time between two tries to take a lost connection up again.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How long after a caller has read for itself nobody else does.
const LED_PAUSE: Duration = Duration::from_millis(2);

/// What gpud tells on its own account. Called on the reading thread: must not wait.
pub trait Notices: Send + Sync {
    fn async_error(&self, error: AsyncError);
    fn lease_ended(&self, ended: LeaseEnded);
    /// What kernels have printed.
    fn printed(&self, text: &str);
    /// How many bytes of idle credit are given back.
    fn credit_recall(&self, bytes: u64) -> u64;
    /// The session is gone for good, with the sentence for a person.
    fn lost(&self, text: &str);
    /// Work that nobody waited for has failed.
    fn failed_late(&self, error: CudaError);
    /// Any other notice; one that is not known is ignored, as newer servers may tell more.
    fn notice(&self, opcode: u16, payload: &[u8]) -> Result<(), DecodeError>;
}

struct Segment {
    bytes: Arc<Vec<u8>>,
    /// Number of the last numbered frame in it.
    last: u64,
}

enum Phase {
    Open,
    Broken,
    Dead(CudaError),
}

struct Outgoing {
    phase: Phase,
    last: u64,
    acked: u64,
    /// Not yet given to a writer.
    tail: Vec<u8>,
    /// Given to a writer, not acknowledged; the last `unsent` are still to be written.
    sealed: VecDeque<Segment>,
    unsent: usize,
    bytes: usize,
    writing: bool,
    writer_sleeps: bool,
    waiting_for_space: usize,
    /// Goodbye was said: the end of the connection is expected.
    closing: bool,
    ack_sent: u64,
    spare: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Waiter {
    state: Mutex<Waited>,
    ready: Condvar,
    /// Takes the answer instead of a thread that waits.
    then: Mutex<Option<Then>>,
}

/// What to do with an answer; called where it is read, so it must not wait.
pub(crate) type Then = Box<dyn FnOnce(CudaResult<Vec<u8>>) + Send>;

#[derive(Default)]
struct Waited {
    answer: Option<CudaResult<Vec<u8>>>,
    /// A thread sleeps for it.
    sleeps: bool,
    /// That thread is asked to read.
    asked: bool,
}

/// The answer to a call that is under way.
pub struct Pending {
    connection: Arc<Connection>,
    waiter: Arc<Waiter>,
    traced: Option<trace::Waiting>,
}

/// The receiving side of the connection, owned by whoever reads.
struct Reading {
    frames: FrameReader<ReadHalf>,
    descriptor: RawFd,
    /// Bytes received since the last acknowledgement.
    unacknowledged: usize,
    spin: Spin,
}

/// Who reads.
enum Receiver {
    Nobody(Box<Reading>),
    Somebody,
    /// The connection broke; the reading thread takes it up again.
    Broken(Box<Reading>),
}

/// See the module's documentation.
pub struct Connection {
    out: Mutex<Outgoing>,
    /// There is something to write, or the phase changed.
    work: Condvar,
    /// Acknowledgements came, a write ended, or the phase changed.
    space: Condvar,
    socket: Mutex<Option<WriteHalf>>,
    closer: Mutex<Option<Closer>>,
    calls: Mutex<HashMap<u64, Arc<Waiter>>>,
    reader: Mutex<Receiver>,
    /// The reading thread should look whether to read.
    reader_wanted: Condvar,
    /// How often a caller has read for itself.
    led: AtomicU64,
    /// Somebody waits for acknowledgements, which only a reader brings.
    hungry: AtomicBool,
    /// Number of the last frame, for who must not wait for the lock.
    newest: AtomicU64,
    pub(crate) bulk: Bulk,
    pub(crate) reach: Reach,
    received: AtomicU64,
    ticket: Mutex<Ticket>,
    session_id: String,
    /// How long a lost connection is tried again: gpud keeps the session no longer.
    returns_within: Duration,
    notices: Arc<dyn Notices>,
    /// Times that the connection was taken up again.
    pub resumed: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of the calling thread, from 1.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

impl Connection {
    /// Takes over a welcomed stream and starts the session's two threads.
    pub fn start(
        stream: Stream,
        welcome: &Welcome,
        ticket: Ticket,
        notices: Arc<dyn Notices>,
    ) -> io::Result<Arc<Self>> {
        let (read, write) = stream.split()?;
        let closer = write.closer()?;
        for descriptor in [read.as_raw_fd(), write.as_raw_fd(), closer.as_raw_fd()] {
            fork::register(descriptor);
        }
        let connection = Arc::new(Self {
            out: Mutex::new(Outgoing {
                phase: Phase::Open,
                last: 0,
                acked: 0,
                tail: Vec::with_capacity(64 << 10),
                sealed: VecDeque::new(),
                unsent: 0,
                bytes: 0,
                writing: false,
                writer_sleeps: false,
                waiting_for_space: 0,
                closing: false,
                ack_sent: 0,
                spare: Vec::new(),
            }),
            work: Condvar::new(),
            space: Condvar::new(),
            closer: Mutex::new(Some(closer)),
            socket: Mutex::new(Some(write)),
            calls: Mutex::new(HashMap::new()),
            reader: Mutex::new(Receiver::Nobody(Reading::new(read))),
            reader_wanted: Condvar::new(),
            led: AtomicU64::new(0),
            hungry: AtomicBool::new(false),
            newest: AtomicU64::new(0),
            bulk: Bulk::default(),
            reach: Reach::of(welcome),
            received: AtomicU64::new(0),
            ticket: Mutex::new(ticket),
            session_id: welcome.session_id.clone(),
            returns_within: Duration::from_secs(welcome.return_seconds),
            notices,
            resumed: AtomicU64::new(0),
        });
        let writer = Arc::downgrade(&connection);
        std::thread::Builder::new().name("sluice-write".into()).spawn(move || write_loop(&writer))?;
        let reader = Arc::clone(&connection);
        std::thread::Builder::new().name("sluice-read".into()).spawn(move || reader.keep_reading())?;
        Ok(connection)
    }

    /// The session's id, as the broker knows it.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Where and with which key the session was opened.
    pub fn ticket(&self) -> Ticket {
        lock(&self.ticket).clone()
    }

    /// A new lease: later resumptions carry its token.
    pub fn set_token(&self, token: String) {
        lock(&self.ticket).token = token;
    }

    /// Sends and does not wait, except for room in the window.
    pub fn post<'a, R: Request<'a>>(&self, request: &R) -> CudaResult {
        self.post_numbered(request).map(drop)
    }

    /// The same; answers the frame's number.
    pub fn post_numbered<'a, R: Request<'a>>(&self, request: &R) -> CudaResult<u64> {
        let mut out = self.room(lock(&self.out));
        let bytes = self.append(&mut out, R::OPCODE, |bytes| request.put(bytes))?;
        let number = out.last;
        self.wake_writer(&mut out);
        drop(out);
        trace::posted(R::OPCODE, bytes);
        Ok(number)
    }

    /// Sends and waits for the answer.
    pub fn call<'a, R: CallRequest<'a>>(self: &Arc<Self>, request: &R) -> CudaResult<R::Reply> {
        let answer = self.begin(request)?.wait()?;
        let (_, body) = decode_reply(&answer).map_err(broken)?;
        let mut reader = Reader::new(body?);
        R::Reply::take(&mut reader).map_err(broken)
    }

    /// Sends; the answer is waited for later.
    pub fn begin<'a, R: CallRequest<'a>>(self: &Arc<Self>, request: &R) -> CudaResult<Pending> {
        let mut traced = trace::calling(R::OPCODE);
        let waiter = Arc::<Waiter>::default();
        let mut out = self.room(lock(&self.out));
        // The reply may come before append returns to us: the waiter has to be there first.
        lock(&self.calls).insert(out.last + 1, Arc::clone(&waiter));
        match self.append(&mut out, R::OPCODE, |bytes| request.put(bytes)) {
            Ok(bytes) => traced.iter_mut().for_each(|traced| traced.carries(bytes)),
            Err(error) => {
                lock(&self.calls).remove(&(out.last + 1));
                return Err(error);
            }
        }
        if !out.writing && matches!(out.phase, Phase::Open) {
            drop(self.write_batch(out));
        }
        Ok(Pending { connection: Arc::clone(self), waiter, traced })
    }

    /// Sends a question whose answer is looked for later, with [`Pending::peek`]; like [`Connection::post`] it leaves the
    /// writing to the writer thread.
    pub fn ask<'a, R: CallRequest<'a>>(self: &Arc<Self>, request: &R) -> CudaResult<Pending> {
        let waiter = Arc::<Waiter>::default();
        self.enqueue(request, &waiter, 0)?;
        Ok(Pending { connection: Arc::clone(self), waiter, traced: None })
    }

    /// Sends a call that nobody waits for, with so many bytes on lanes; `then` gets the answer, unless this fails. It gets
    /// it when somebody reads: a caller that waits for something later, or before long the reading thread
    /// ([`Connection::want_reader`]: at once).
    pub(crate) fn call_then<'a, R: CallRequest<'a>>(&self, request: &R, carries: usize, then: Then) -> CudaResult {
        let waiter = Arc::new(Waiter { then: Mutex::new(Some(then)), ..Waiter::default() });
        self.enqueue(request, &waiter, carries)
    }

    fn enqueue<'a, R: CallRequest<'a>>(&self, request: &R, waiter: &Arc<Waiter>, carries: usize) -> CudaResult {
        let mut out = self.room(lock(&self.out));
        lock(&self.calls).insert(out.last + 1, Arc::clone(waiter));
        match self.append(&mut out, R::OPCODE, |bytes| request.put(bytes)) {
            Ok(bytes) => trace::posted(R::OPCODE, bytes + carries),
            Err(error) => {
                lock(&self.calls).remove(&(out.last + 1));
                return Err(error);
            }
        }
        self.wake_writer(&mut out);
        Ok(())
    }

    /// The number of the last frame that was sent.
    pub fn newest(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    /// Takes what gpud has sent by now, unless another thread reads anyway.
    pub fn read_available(&self) {
        let Some(mut reading) = self.take_reading() else { return };
        let mut broken = false;
        while !broken
            && (reading.frames.has_frame()
                || reading.frames.source().holds_bytes()
                || readable_within(reading.descriptor, 0))
        {
            broken = self.read_frame(&mut reading).is_err();
        }
        self.leave_reading(reading, broken);
    }

    /// Says goodbye and closes; what was posted before is executed. Waits for its acknowledgement only shortly.
    pub fn close(&self) {
        let mut out = lock(&self.out);
        if matches!(out.phase, Phase::Open) && self.append(&mut out, Goodbye::OPCODE, |_| ()).is_ok() {
            let last = out.last;
            self.wake_writer(&mut out);
            out.closing = true;
            let until = Instant::now() + Duration::from_millis(300);
            self.want_reader();
            out.waiting_for_space += 1;
            while out.acked < last && matches!(out.phase, Phase::Open) {
                let Some(left) = until.checked_duration_since(Instant::now()) else { break };
                out = self.space.wait_timeout(out, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            out.waiting_for_space -= 1;
        }
        drop(out);
        self.die(CudaError::new(cuda::ERROR_DEVICE_UNAVAILABLE, "the session was closed"));
    }

    /// Ends the session here: every waiting and later call fails with `error`.
    pub fn die(&self, error: CudaError) {
        {
            let mut out = lock(&self.out);
            if !matches!(out.phase, Phase::Dead(_)) {
                out.phase = Phase::Dead(error.clone());
            }
            out.sealed.clear();
            out.tail.clear();
            out.unsent = 0;
            self.work.notify_all();
            self.space.notify_all();
        }
        self.shut();
        self.bulk.lanes.close();
        self.reader_wanted.notify_one();
        // Not under the lock: an answer may have something done with it.
        let waiting = std::mem::take(&mut *lock(&self.calls));
        if !waiting.is_empty() {
            self.reach.outlive_worker();
        }
        waiting.into_values().for_each(|waiter| waiter.set(Err(error.clone())));
        self.bulk.end_all();
    }

    fn shut(&self) {
        if let Some(closer) = &*lock(&self.closer) {
            closer.close();
        }
    }

    /// Waits until the window has room.
    fn room<'g>(&self, mut out: MutexGuard<'g, Outgoing>) -> MutexGuard<'g, Outgoing> {
        while !matches!(out.phase, Phase::Dead(_)) && (out.bytes > WINDOW_BYTES || out.last - out.acked > WINDOW_FRAMES)
        {
            self.wake_writer(&mut out);
            self.want_reader();
            out.waiting_for_space += 1;
            out = self.space.wait(out).unwrap_or_else(PoisonError::into_inner);
            out.waiting_for_space -= 1;
        }
        out
    }

    /// Appends a frame; answers the bytes of its payload.
    fn append(&self, out: &mut Outgoing, code: u16, body: impl FnOnce(&mut Vec<u8>)) -> CudaResult<usize> {
        if let Phase::Dead(error) = &out.phase {
            return Err(error.clone());
        }
        let received = self.received.load(Ordering::Acquire);
        let seq = if code == opcode::ACK || code == opcode::PONG { 0 } else { out.last + 1 };
        if seq > 0 {
            out.last = seq;
            self.newest.store(seq, Ordering::Relaxed);
        }
        out.ack_sent = received;
        let header = Header { opcode: code, thread: thread_number(), ack: received as u32, seq, ..Header::default() };
        let before = out.tail.len();
        put_frame(&mut out.tail, header, body);
        let added = out.tail.len() - before;
        out.bytes += added;
        Ok(added - HEADER_BYTES)
    }

    fn wake_writer(&self, out: &mut Outgoing) {
        if out.writer_sleeps && !out.writing {
            out.writer_sleeps = false;
            self.work.notify_one();
        }
    }

    /// Writes what is there now, once; what came meanwhile is left to the writer thread.
    fn write_batch<'g>(&'g self, mut out: MutexGuard<'g, Outgoing>) -> MutexGuard<'g, Outgoing> {
        if !out.tail.is_empty() {
            let next = out.spare.pop().unwrap_or_else(|| Vec::with_capacity(64 << 10));
            let bytes = Arc::new(std::mem::replace(&mut out.tail, next));
            let last = out.last;
            out.sealed.push_back(Segment { bytes, last });
            out.unsent += 1;
        }
        let from = out.sealed.len() - out.unsent;
        let batch: Vec<Arc<Vec<u8>>> = out.sealed.range(from..).map(|segment| Arc::clone(&segment.bytes)).collect();
        out.unsent = 0;
        out.writing = true;
        drop(out);
        let mut failed = false;
        if let Some(socket) = &mut *lock(&self.socket) {
            for bytes in &batch {
                failed = failed || socket.write_all(bytes).is_err();
            }
            failed = failed || socket.flush().is_err();
        }
        drop(batch);
        let mut out = lock(&self.out);
        out.writing = false;
        if failed {
            // The reading thread sees the end of the connection and takes it up again.
            if matches!(out.phase, Phase::Open) {
                out.phase = Phase::Broken;
            }
            self.shut();
        }
        if out.waiting_for_space > 0 || failed {
            self.space.notify_all();
        }
        if out.unsent > 0 || !out.tail.is_empty() {
            self.wake_writer(&mut out);
        }
        out
    }

    fn acknowledged(&self, ack: u32) {
        let mut out = lock(&self.out);
        let acked = widen_ack(out.acked, ack).min(out.last);
        if acked == out.acked {
            return;
        }
        out.acked = acked;
        while out.sealed.len() > out.unsent && out.sealed.front().is_some_and(|segment| segment.last <= acked) {
            if let Some(segment) = out.sealed.pop_front() {
                out.bytes -= segment.bytes.len();
                if let Ok(mut bytes) = Arc::try_unwrap(segment.bytes)
                    && bytes.capacity() <= 1 << 20
                    && out.spare.len() < 4
                {
                    bytes.clear();
                    out.spare.push(bytes);
                }
            }
        }
        if out.waiting_for_space > 0 {
            self.space.notify_all();
        }
    }

    /// Why nothing works any more.
    pub(crate) fn death(&self) -> CudaError {
        match &lock(&self.out).phase {
            Phase::Dead(error) => error.clone(),
            _ => CudaError::code(cuda::ERROR_UNKNOWN),
        }
    }

    /// Waits for an answer without a body.
    pub(crate) fn answered(&self, pending: Pending) -> CudaResult {
        without_body(pending.wait())
    }

    /// Work that nobody waited for has failed: the program hears of it at its next call.
    pub(crate) fn failed_late(&self, error: CudaError) {
        self.notices.failed_late(error);
    }

    /// Has the reading thread read now, for what comes is for nobody who reads.
    pub(crate) fn want_reader(&self) {
        self.hungry.store(true, Ordering::Release);
        self.reader_wanted.notify_one();
    }

    /// The receiving side, if nobody has it.
    fn take_reading(&self) -> Option<Box<Reading>> {
        let mut reader = lock(&self.reader);
        match std::mem::replace(&mut *reader, Receiver::Somebody) {
            Receiver::Nobody(reading) => Some(reading),
            other => {
                *reader = other;
                None
            }
        }
    }

    /// Gives the receiving side back, and has a thread that sleeps for an answer read next.
    fn leave_reading(&self, reading: Box<Reading>, broken: bool) {
        *lock(&self.reader) = if broken { Receiver::Broken(reading) } else { Receiver::Nobody(reading) };
        if broken {
            self.reader_wanted.notify_one();
            return;
        }
        for waiter in lock(&self.calls).values() {
            let mut state = lock(&waiter.state);
            if state.sleeps && state.answer.is_none() {
                state.asked = true;
                waiter.ready.notify_one();
                return;
            }
        }
    }

    /// Reads and takes one frame; answers whether it was a reply that a caller waits for.
    fn read_frame(&self, reading: &mut Reading) -> Result<bool, ()> {
        let ready = reading.frames.has_frame() || reading.frames.source().holds_bytes();
        if !ready && !reading.spin.until(|| readable_within(reading.descriptor, 0)) {
            let began = Instant::now();
            while !readable_within(reading.descriptor, LOOK_EVERY) {
                if is_silent(reading.descriptor) {
                    return Err(());
                }
            }
            reading.spin.slept(began.elapsed());
        }
        let Ok(Some(frame)) = reading.frames.next() else { return Err(()) };
        reading.unacknowledged += frame.payload.len();
        let waited_for = self.take(frame)?;
        reading.unacknowledged = self.acknowledge(reading.unacknowledged);
        Ok(waited_for)
    }

    /// The reading thread. Callers that wait read for themselves, so that an answer wakes nobody; this thread reads
    /// when no caller has done so for a while, and brings a broken connection back.
    fn keep_reading(self: Arc<Self>) {
        let mut led = self.led.load(Ordering::Relaxed);
        loop {
            let mut reader = lock(&self.reader);
            let over = matches!(lock(&self.out).phase, Phase::Dead(_));
            let now = self.led.load(Ordering::Relaxed);
            let mine = now == led || over || self.hungry.swap(false, Ordering::AcqRel);
            let (mut reading, broken) = match std::mem::replace(&mut *reader, Receiver::Somebody) {
                Receiver::Broken(reading) => (reading, true),
                Receiver::Nobody(reading) if mine => (reading, over),
                other => {
                    let pause = if matches!(other, Receiver::Somebody) { LED_PAUSE * 4 } else { LED_PAUSE };
                    *reader = other;
                    led = now;
                    drop(self.reader_wanted.wait_timeout(reader, pause).unwrap_or_else(PoisonError::into_inner));
                    continue;
                }
            };
            drop(reader);
            let outcome = if broken { Err(()) } else { self.read_until_reply(&mut reading) };
            if outcome.is_err() {
                fork::unregister(reading.descriptor);
                drop(reading);
                match self.resume() {
                    Some(next) => reading = Reading::new(next),
                    None => return,
                }
            }
            // Who has an answer now is likely to call again, and reads then for itself.
            led = self.led.load(Ordering::Relaxed).wrapping_sub(1);
            self.leave_reading(reading, false);
        }
    }

    fn read_until_reply(&self, reading: &mut Reading) -> Result<(), ()> {
        while !self.read_frame(reading)? {}
        Ok(())
    }

    /// Reads until this answer is there.
    fn lead(&self, mut reading: Box<Reading>, own: &Waiter) {
        self.led.fetch_add(1, Ordering::Relaxed);
        let mut broken = false;
        while !broken && lock(&own.state).answer.is_none() {
            broken = self.read_frame(&mut reading).is_err();
        }
        self.leave_reading(reading, broken);
    }

    /// Acknowledges on its own account when much came and nothing went; returns the bytes still unacknowledged.
    fn acknowledge(&self, bytes: usize) -> usize {
        let received = self.received.load(Ordering::Acquire);
        let mut out = lock(&self.out);
        let frames = received - out.ack_sent;
        if frames == 0 {
            return 0;
        }
        if frames < ACK_FRAMES && bytes < ACK_BYTES {
            return bytes;
        }
        if self.append(&mut out, opcode::ACK, |_| ()).is_ok() {
            self.wake_writer(&mut out);
        }
        0
    }

    /// Takes a frame; answers whether it was a reply that a caller waits for.
    fn take(&self, frame: Frame) -> Result<bool, ()> {
        self.acknowledged(frame.header.ack);
        if frame.header.seq > 0 {
            let received = self.received.load(Ordering::Acquire);
            if frame.header.seq <= received {
                return Ok(false);
            }
            if frame.header.seq != received + 1 {
                return Err(());
            }
        }
        let mut reader = Reader::new(&frame.payload);
        match frame.header.opcode {
            opcode::REPLY => {
                let (call, _) = decode_reply(&frame.payload).map_err(|_| ())?;
                let waiter = lock(&self.calls).remove(&call);
                self.received.store(frame.header.seq, Ordering::Release);
                let Some(waiter) = waiter else { return Ok(true) };
                let waited_for = lock(&waiter.then).is_none();
                waiter.set(Ok(frame.payload));
                return Ok(waited_for);
            }
            opcode::ASYNC_ERROR => self.notices.async_error(AsyncError::take(&mut reader).map_err(|_| ())?),
            opcode::LEASE_ENDED => {
                let ended = LeaseEnded::take(&mut reader).map_err(|_| ())?;
                let parked = ended.parked;
                let text = ended.reason.clone();
                self.notices.lease_ended(ended);
                if !parked {
                    self.die(CudaError::new(cuda::ERROR_DEVICE_UNAVAILABLE, text));
                }
            }
            opcode::PRINTED => self.notices.printed(&Printed::take(&mut reader).map_err(|_| ())?.text),
            opcode::CREDIT_RECALL => {
                let recall = CreditRecall::take(&mut reader).map_err(|_| ())?;
                let bytes = self.notices.credit_recall(recall.bytes);
                let request = sluice_protocol::messages::CreditReturn { bytes };
                let mut out = lock(&self.out);
                if self
                    .append(&mut out, <sluice_protocol::messages::CreditReturn as Request>::OPCODE, |bytes| {
                        request.put(bytes);
                    })
                    .is_ok()
                {
                    self.wake_writer(&mut out);
                }
            }
            opcode::PING => {
                let mut out = lock(&self.out);
                if self.append(&mut out, opcode::PONG, |bytes| bytes.extend_from_slice(&frame.payload)).is_ok() {
                    self.wake_writer(&mut out);
                }
            }
            opcode::BULK_GO => {
                let transfer = u64::take(&mut reader).map_err(|_| ())?;
                self.bulk.lanes.go(transfer);
            }
            other => self.notices.notice(other, &frame.payload).map_err(|_| ())?,
        }
        if frame.header.seq > 0 {
            self.received.store(frame.header.seq, Ordering::Release);
        }
        Ok(false)
    }

    /// Takes the session up again on a new connection; None when it is over.
    fn resume(&self) -> Option<ReadHalf> {
        {
            let mut out = lock(&self.out);
            if out.closing {
                out.phase = Phase::Dead(CudaError::new(cuda::ERROR_DEVICE_UNAVAILABLE, "the session was closed"));
                self.space.notify_all();
            }
            if matches!(out.phase, Phase::Dead(_)) {
                self.forget_socket();
                return None;
            }
            out.phase = Phase::Broken;
        }
        self.shut();
        let lost = Instant::now();
        let mut pause = Duration::from_millis(10);
        loop {
            if matches!(lock(&self.out).phase, Phase::Dead(_)) {
                self.forget_socket();
                return None;
            }
            let ticket = self.ticket();
            let received = self.received.load(Ordering::Acquire);
            let resume = Resume { session_id: self.session_id.clone(), received };
            match dial::open(&ticket, Vec::new(), Some(resume), None) {
                Ok((stream, welcome)) => match self.take_up(stream, welcome.executed) {
                    Ok(read) => return Some(read),
                    Err(error) => self.give_up(lost, &error.to_string())?,
                },
                Err(error) if error.is_final() => {
                    self.lose(lost, &error.to_string());
                    return None;
                }
                Err(error) => self.give_up(lost, &error.to_string())?,
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// None when the connection has been away for too long.
    fn give_up(&self, lost: Instant, text: &str) -> Option<()> {
        if lost.elapsed() < self.returns_within {
            return Some(());
        }
        self.lose(lost, text);
        None
    }

    fn lose(&self, lost: Instant, text: &str) {
        let why = match lost.elapsed().as_secs() {
            0 => text.to_owned(),
            seconds => format!("cut for {seconds} s; {text}"),
        };
        let text = format!("The connection to your GPU was lost ({why}). Run %gpu attach 0.5 to borrow again.");
        self.forget_socket();
        self.notices.lost(&text);
        self.die(CudaError::new(cuda::ERROR_DEVICE_UNAVAILABLE, text));
    }

    fn forget_socket(&self) {
        if let Some(socket) = lock(&self.socket).take() {
            fork::unregister(socket.as_raw_fd());
        }
        if let Some(closer) = lock(&self.closer).take() {
            fork::unregister(closer.as_raw_fd());
        }
    }

    fn take_up(&self, stream: Stream, executed: u64) -> io::Result<ReadHalf> {
        let (read, write) = stream.split()?;
        let closer = write.closer()?;
        let mut out = lock(&self.out);
        // A writer that still holds an old batch must not put it on the new connection.
        out.waiting_for_space += 1;
        while out.writing {
            out = self.space.wait(out).unwrap_or_else(PoisonError::into_inner);
        }
        out.waiting_for_space -= 1;
        self.forget_socket();
        for descriptor in [read.as_raw_fd(), write.as_raw_fd(), closer.as_raw_fd()] {
            fork::register(descriptor);
        }
        *lock(&self.socket) = Some(write);
        *lock(&self.closer) = Some(closer);
        out.unsent = 0;
        drop(out);
        self.acknowledged(executed as u32);
        let mut out = lock(&self.out);
        out.unsent = out.sealed.len();
        if matches!(out.phase, Phase::Broken) {
            out.phase = Phase::Open;
        }
        self.resumed.fetch_add(1, Ordering::Relaxed);
        self.work.notify_all();
        self.space.notify_all();
        Ok(read)
    }
}

fn write_loop(connection: &Weak<Connection>) {
    let mut spin = Spin::default();
    loop {
        let Some(connection) = connection.upgrade() else { return };
        let mut out = lock(&connection.out);
        loop {
            match out.phase {
                Phase::Dead(_) => return,
                Phase::Open if !out.writing && (out.unsent > 0 || !out.tail.is_empty()) => break,
                _ => {
                    out.writer_sleeps = true;
                    let began = Instant::now();
                    out = connection.work.wait(out).unwrap_or_else(PoisonError::into_inner);
                    spin.slept(began.elapsed());
                    out.writer_sleeps = false;
                }
            }
        }
        drop(connection.write_batch(out));
        // Programs post in runs: the next frame often comes before this thread could fall asleep.
        let newest = connection.newest.load(Ordering::Relaxed);
        spin.until(|| connection.newest.load(Ordering::Relaxed) != newest);
    }
}

impl Reading {
    fn new(half: ReadHalf) -> Box<Self> {
        let descriptor = half.as_raw_fd();
        Box::new(Self { frames: FrameReader::new(half), descriptor, unacknowledged: 0, spin: Spin::default() })
    }
}

impl Waiter {
    fn set(&self, answer: CudaResult<Vec<u8>>) {
        let then = lock(&self.then).take();
        if let Some(then) = then {
            return then(answer);
        }
        let mut state = lock(&self.state);
        state.answer = Some(answer);
        if state.sleeps {
            self.ready.notify_one();
        }
    }
}

impl Pending {
    /// So many bytes travel with it on lanes.
    pub(crate) fn carrying(mut self, bytes: usize) -> Self {
        self.traced.iter_mut().for_each(|traced| traced.carries(bytes));
        self
    }

    /// The answer, if it is here; it is taken.
    pub fn peek(&self) -> Option<CudaResult<Vec<u8>>> {
        lock(&self.waiter.state).answer.take()
    }

    /// The payload of the reply frame.
    pub fn wait(self) -> CudaResult<Vec<u8>> {
        let answer = self.answer();
        if let Some(mut traced) = self.traced {
            traced.carries(answer.as_ref().map_or(0, Vec::len));
            traced.answered();
        }
        answer
    }

    fn answer(&self) -> CudaResult<Vec<u8>> {
        let mut state = lock(&self.waiter.state);
        loop {
            if let Some(answer) = state.answer.take() {
                return answer;
            }
            // Said before looking for the receiving side: who leaves it looks for sleepers afterwards.
            state.sleeps = true;
            drop(state);
            if let Some(reading) = self.connection.take_reading() {
                lock(&self.waiter.state).sleeps = false;
                self.connection.lead(reading, &self.waiter);
                state = lock(&self.waiter.state);
                continue;
            }
            state = lock(&self.waiter.state);
            while state.answer.is_none() && !state.asked {
                state = self.waiter.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.asked = false;
        }
    }
}

/// An answer without a body.
pub(crate) fn without_body(answer: CudaResult<Vec<u8>>) -> CudaResult {
    let answer = answer?;
    let (_, body) = decode_reply(&answer).map_err(broken)?;
    body.map(drop).map_err(CudaError::from)
}

/// An answer that cannot be read.
pub fn broken(error: impl std::fmt::Display) -> CudaError {
    CudaError::new(cuda::ERROR_UNKNOWN, format!("the GPU server's answer cannot be read: {error}"))
}
