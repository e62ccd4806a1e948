//! Bulk copies: straight between the program's memory and the lanes of the session. A copy is waited for, or, from and to
//! page-locked memory, goes on while the program does; so do short copies to such memory, which travel as answers.

use crate::connection::{Connection, broken, without_body};
use crate::dial::{self, DialError, Lane};
use crate::error::CudaResult;
use crate::fork;
use sluice_protocol::frame::BULK_AHEAD_BYTES;
use sluice_protocol::handshake::Resume;
use sluice_protocol::messages::{BulkIn, BulkOut, BulkTaken, CallRequest, CopyFromDevice};
use sluice_protocol::reply::decode_reply;
use sluice_protocol::{Reader, Wire};
use sluice_transport::lanes::{Source, Target, Watch};
use sluice_transport::{Lanes, Stream};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// Copies to the device from this length on travel on lanes, and return when they have landed. Shorter ones are
/// posted: what they cost in copying is less than a round trip.
pub const BULK_IN_BYTES: usize = 4 << 20;
/// As [`BULK_IN_BYTES`] for copies to the host, which wait anyway.
pub const BULK_OUT_BYTES: usize = 1 << 20;
/// Frames of one such copy in the stream of calls: [`BulkOut`] and [`BulkTaken`].
pub const BULK_OUT_FRAMES: u64 = 2;
/// Most lanes: more only pays on links of 100 Gbit/s.
const MOST_LANES: usize = 4;

/// How many lanes a session opens.
pub fn lane_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST_LANES)
}

/// The lanes of a session; they are opened for its first bulk copy.
pub struct Bulk {
    pub lanes: Arc<Lanes>,
    next: AtomicU64,
    usable: OnceLock<bool>,
    /// A socket that looked like one of this host's brought no memory.
    unshared: AtomicBool,
    under_way: Arc<UnderWay>,
}

/// Copies that nobody waits for, by transfer.
#[derive(Default)]
struct UnderWay {
    copies: Mutex<HashMap<u64, Unawaited>>,
    ended: Condvar,
}

/// One of them, and the program's memory that it uses.
struct Unawaited {
    start: usize,
    bytes: usize,
    way: Way,
}

/// How its data travel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// To the device, on lanes.
    In,
    /// To the host, on lanes.
    Out,
    /// Until the answer to a call, which has them if they are for the host and not in its memory already.
    Answer,
}

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Unawaited>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, transfer: u64, start: usize, bytes: usize, way: Way) {
        self.lock().insert(transfer, Unawaited { start, bytes, way });
    }

    /// The program's memory is its own again.
    fn end(&self, transfer: u64) {
        self.lock().remove(&transfer);
        self.ended.notify_all();
    }
}

impl Default for Bulk {
    /// For a new session, without lanes yet.
    fn default() -> Self {
        let watch = Watch { opened: fork::register, closing: fork::unregister };
        Self {
            lanes: Arc::new(Lanes::watched(watch)),
            next: AtomicU64::new(0),
            usable: OnceLock::new(),
            unshared: AtomicBool::new(false),
            under_way: Arc::default(),
        }
    }
}

impl Bulk {
    fn transfer(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Ends a copy that nobody waits for, when no lane touches the program's memory any more.
    fn end(&self, transfer: u64, way: Way) {
        let under_way = Arc::clone(&self.under_way);
        let then = Box::new(move || under_way.end(transfer));
        match way {
            Way::In => self.lanes.end_sending(transfer, then),
            Way::Out => self.lanes.end_receiving(transfer, then),
            Way::Answer => then(),
        }
    }

    /// The session is over: nothing will come any more.
    pub(crate) fn end_all(&self) {
        let left: Vec<(u64, Way)> =
            self.under_way.lock().iter().map(|(transfer, copy)| (*transfer, copy.way)).collect();
        // An answer ends its copy itself, also the error that stands for it: it may just be put into the memory.
        let left = left.into_iter().filter(|(_, way)| *way != Way::Answer);
        left.for_each(|(transfer, way)| self.end(transfer, way));
    }
}

struct Given(*const u8);

// SAFETY: only read, until the transfer's end, which its owner waits for or has noted.
unsafe impl Send for Given {}
// SAFETY: as above.
unsafe impl Sync for Given {}

impl Source for Given {
    fn piece(&self, offset: u64, length: usize, write: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        // SAFETY: a piece lies inside the transfer, which is as long as the program's memory.
        write(unsafe { std::slice::from_raw_parts(self.0.add(offset as usize), length) })
    }
}

struct Wanted(*mut u8);

// SAFETY: lanes write to different pieces, until the transfer's end, which its owner waits for or has noted.
unsafe impl Send for Wanted {}
// SAFETY: as above.
unsafe impl Sync for Wanted {}

impl Target for Wanted {
    fn piece(&self, offset: u64, length: usize, read: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<()> {
        // SAFETY: as in `Given`; a piece is given to one lane at a time.
        read(unsafe { std::slice::from_raw_parts_mut(self.0.add(offset as usize), length) })
    }
}

/// Tells the other end, which may not listen any more.
fn told(sender: Sender<()>) -> Box<dyn FnOnce() + Send> {
    Box::new(move || {
        let _ = sender.send(());
    })
}

impl Connection {
    /// Copies to the device; returns when the data lie there, in stream order. None: no lane can be opened.
    ///
    /// # Safety
    /// `source` has `bytes` bytes that nobody changes until this returns.
    pub unsafe fn copy_in(
        self: &Arc<Self>,
        address: u64,
        stream: u64,
        source: *const u8,
        bytes: usize,
    ) -> Option<CudaResult> {
        let bulk = self.opened()?;
        let transfer = bulk.transfer();
        let length = bytes as u64;
        bulk.lanes.send(transfer, length, Arc::new(Given(source)), BULK_AHEAD_BYTES);
        let pending = self.begin(&BulkIn { transfer, address, stream, bytes: length });
        let outcome = pending.and_then(|pending| self.answered(pending.carrying(bytes)));
        let (free, freed) = channel();
        bulk.lanes.end_sending(transfer, told(free));
        // No lane reads the program's memory any more.
        let _ = freed.recv();
        Some(outcome)
    }

    /// Copies to the host; returns when the data are here. None: no lane can be opened.
    ///
    /// # Safety
    /// `target` has room for `bytes` bytes, which nobody else uses until this returns.
    pub unsafe fn copy_out(
        self: &Arc<Self>,
        address: u64,
        stream: u64,
        target: *mut u8,
        bytes: usize,
    ) -> Option<CudaResult> {
        let bulk = self.opened()?;
        let transfer = bulk.transfer();
        let length = bytes as u64;
        let (done, here) = channel();
        let fresh = bulk.lanes.receive(transfer, length, Arc::new(Wanted(target)), told(done));
        debug_assert!(fresh, "numbers are not used twice");
        let pending = self.begin(&BulkOut { transfer, address, stream, bytes: length });
        let outcome = pending
            .and_then(|pending| self.answered(pending.carrying(bytes)))
            .and_then(|()| here.recv().map_err(|_| self.death()));
        // A session that is lost needs no confirmation.
        let _ = self.post(&BulkTaken { transfer });
        let (free, freed) = channel();
        bulk.lanes.end_receiving(transfer, told(free));
        // No lane writes to the program's memory any more.
        let _ = freed.recv();
        Some(outcome)
    }

    /// Begins a copy to the device. What comes later in the stream waits for it, at gpud. None: no lane
    /// can be opened.
    ///
    /// # Safety
    /// `source` has `bytes` bytes, which nobody changes before the stream has come past the copy, and which are there
    /// until [`Connection::finish_copies_of`] has returned for them.
    pub unsafe fn start_copy_in(
        self: &Arc<Self>,
        address: u64,
        stream: u64,
        source: *const u8,
        bytes: usize,
    ) -> Option<CudaResult> {
        let bulk = self.opened()?;
        let (transfer, length) = (bulk.transfer(), bytes as u64);
        bulk.under_way.begin(transfer, source as usize, bytes, Way::In);
        // Nothing ahead of its turn: gpud would have to keep it, of every copy that waits, and a lane must never be held
        // up by a piece of a copy that gpud has not heard of yet.
        bulk.lanes.send(transfer, length, Arc::new(Given(source)), 0);
        let connection = Arc::downgrade(self);
        let landed = move |answer| over(&connection, transfer, Way::In, without_body(answer));
        let begun = self.call_then(&BulkIn { transfer, address, stream, bytes: length }, bytes, Box::new(landed));
        self.want_reader();
        if begun.is_err() {
            bulk.end(transfer, Way::In);
        }
        Some(begun)
    }

    /// Begins a copy to the host. The stream goes on when the data are there. None: as [`Connection::start_copy_in`].
    ///
    /// # Safety
    /// `target` has room for `bytes` bytes, which nobody uses before the stream has come past the copy, and which are
    /// there until [`Connection::finish_copies_of`] has returned for them.
    pub unsafe fn start_copy_out(
        self: &Arc<Self>,
        address: u64,
        stream: u64,
        target: *mut u8,
        bytes: usize,
    ) -> Option<CudaResult> {
        let bulk = self.opened()?;
        let (transfer, length) = (bulk.transfer(), bytes as u64);
        bulk.under_way.begin(transfer, target as usize, bytes, Way::Out);
        let (here, connection) = (Arc::downgrade(self), Arc::downgrade(self));
        let done = Box::new(move || over(&here, transfer, Way::Out, Ok(())));
        let fresh = bulk.lanes.receive(transfer, length, Arc::new(Wanted(target)), done);
        debug_assert!(fresh, "numbers are not used twice");
        let answered = move |answer| {
            // Else the data are on their way.
            let Err(error) = without_body(answer) else { return };
            // This is where answers are read: what may wait for room in the window goes elsewhere.
            let end = move || over(&connection, transfer, Way::Out, Err(error));
            let _ = std::thread::Builder::new().name("sluice-copy".into()).spawn(end);
        };
        let begun = self.call_then(&BulkOut { transfer, address, stream, bytes: length }, bytes, Box::new(answered));
        self.want_reader();
        if begun.is_err() {
            bulk.end(transfer, Way::Out);
        }
        Some(begun)
    }

    /// Begins a copy to the host that is short enough for one answer; what comes later in the stream is heard of after it.
    /// `take` gets the data, of `length` bytes, and puts them into the program's memory, `memory`: where it begins and how
    /// long it is.
    pub fn start_read(
        self: &Arc<Self>,
        address: u64,
        stream: u64,
        length: usize,
        memory: (usize, usize),
        take: impl FnOnce(&[u8]) + Send + 'static,
    ) -> CudaResult {
        let put = move |answer: CudaResult<Vec<u8>>| data_of(&answer?, length).map(take);
        self.start_answered(&CopyFromDevice { address, stream, bytes: length as u64 }, memory, 0, put)
    }

    /// Begins a copy that is over with the answer to a request, which goes with so many bytes beside it. `then` looks at the
    /// answer before the program's memory, where it begins and how long it is, is its own again.
    pub fn start_answered<'a, R: CallRequest<'a>>(
        self: &Arc<Self>,
        request: &R,
        memory: (usize, usize),
        carries: usize,
        then: impl FnOnce(CudaResult<Vec<u8>>) -> CudaResult + Send + 'static,
    ) -> CudaResult {
        let (bulk, connection) = (&self.bulk, Arc::downgrade(self));
        let transfer = bulk.transfer();
        bulk.under_way.begin(transfer, memory.0, memory.1, Way::Answer);
        let answered = move |answer| over(&connection, transfer, Way::Answer, then(answer));
        let begun = self.call_then(request, carries, Box::new(answered));
        if begun.is_err() {
            bulk.end(transfer, Way::Answer);
        }
        begun
    }

    /// Waits until no copy that goes on by itself uses memory of this range.
    pub fn finish_copies_of(&self, start: usize, bytes: usize) {
        self.finish(|_, copy| copy.start < start + bytes && start < copy.start + copy.bytes);
    }

    /// Waits until every copy has ended that was begun by now and goes on by itself.
    pub fn finish_copies(&self) {
        let last = self.bulk.next.load(Ordering::Relaxed);
        self.finish(|transfer, _| transfer <= last);
    }

    /// Waits until none of the copies that are `meant` goes on; a copy is known by its number.
    fn finish(&self, meant: impl Fn(u64, &Unawaited) -> bool) {
        let under_way = &self.bulk.under_way;
        let mut copies = under_way.lock();
        if copies.is_empty() {
            return;
        }
        self.want_reader();
        while copies.iter().any(|(number, copy)| meant(*number, copy)) {
            copies = under_way.ended.wait(copies).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// With its lanes open, or None when they cannot be opened.
    fn opened(self: &Arc<Self>) -> Option<&Bulk> {
        let bulk = &self.bulk;
        bulk.usable.get_or_init(|| self.open_lanes(&bulk.lanes)).then_some(bulk)
    }

    fn open_lanes(self: &Arc<Self>, lanes: &Arc<Lanes>) -> bool {
        // The first one is waited for: without it, copies go another way.
        let Ok(first) = self.dial_lane(0) else { return false };
        let mut first = Some(first);
        (0..lane_count()).all(|index| {
            let (connection, lanes, stream) = (Arc::downgrade(self), Arc::clone(lanes), first.take());
            let keep = move || keep(&connection, &lanes, index, stream);
            std::thread::Builder::new().name(format!("lane-in-{index}")).spawn(keep).is_ok() || index > 0
        })
    }

    fn dial_lane(&self, index: usize) -> Result<Stream, DialError> {
        let resume = Resume { session_id: self.session_id().to_owned(), received: 0 };
        let dial = |shared| {
            let lane = Lane { index: index as u16, shared };
            dial::open(&self.ticket(), Vec::new(), Some(resume.clone()), Some(lane)).map(|(stream, _)| stream)
        };
        match dial(!self.bulk.unshared.load(Ordering::Relaxed)) {
            Err(DialError::Memory(_)) => {
                self.bulk.unshared.store(true, Ordering::Relaxed);
                dial(false)
            }
            outcome => outcome,
        }
    }
}

/// The data of an answer to [`CopyFromDevice`], of this length.
pub fn data_of(answer: &[u8], length: usize) -> CudaResult<&[u8]> {
    let (_, body) = decode_reply(answer).map_err(broken)?;
    let data = <&[u8]>::take(&mut Reader::new(body?)).map_err(broken)?;
    if data.len() == length { Ok(data) } else { Err(broken("a copy of another length")) }
}

/// A copy that nobody waits for is over, or has failed.
fn over(connection: &Weak<Connection>, transfer: u64, way: Way, outcome: CudaResult) {
    let Some(connection) = connection.upgrade() else { return };
    let bulk = &connection.bulk;
    if let Err(error) = outcome {
        connection.failed_late(error);
    }
    if way == Way::Out {
        // A session that is lost needs no confirmation.
        let _ = connection.post(&BulkTaken { transfer });
    }
    bulk.end(transfer, way);
}

/// Keeps one lane open as long as its session lives.
fn keep(connection: &Weak<Connection>, lanes: &Arc<Lanes>, index: usize, mut stream: Option<Stream>) {
    let mut pause = Duration::from_millis(10);
    while !lanes.is_closed() {
        let opened = match stream.take() {
            Some(stream) => Ok(stream),
            None => match connection.upgrade() {
                Some(connection) => connection.dial_lane(index),
                None => return,
            },
        };
        if let Ok(stream) = opened {
            pause = Duration::from_millis(10);
            if let Ok(read) = lanes.attach(index, stream) {
                // It ends when the connection breaks, and is then taken up again.
                let _ = read();
            }
        }
        if !lanes.is_closed() {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}
