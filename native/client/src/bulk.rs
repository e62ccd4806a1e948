//! Bulk copies: straight between the program's memory and the lanes of the session.

use crate::connection::Connection;
use crate::dial::{self, DialError};
use crate::error::CudaResult;
use crate::fork;
use sluice_protocol::frame::BULK_AHEAD_BYTES;
use sluice_protocol::handshake::Resume;
use sluice_protocol::messages::{BulkIn, BulkOut, BulkTaken};
use sluice_transport::lanes::{Source, Target, Watch};
use sluice_transport::{Lanes, Stream};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
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
}

impl Default for Bulk {
    fn default() -> Self {
        let watch = Watch { opened: fork::register, closing: fork::unregister };
        Self { lanes: Arc::new(Lanes::watched(watch)), next: AtomicU64::new(0), usable: OnceLock::new() }
    }
}

struct Given(*const u8);

// SAFETY: only read, while its owner waits for the transfer's end.
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

// SAFETY: lanes write to different pieces, while its owner waits for the transfer's end.
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
    /// Copies to the device; returns when the data lie there, in stream order. None: the session has no lanes.
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
        let bulk = self.bulk()?;
        let transfer = bulk.next.fetch_add(1, Ordering::Relaxed) + 1;
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

    /// Copies to the host; returns when the data are here. None: the session has no lanes.
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
        let bulk = self.bulk()?;
        let transfer = bulk.next.fetch_add(1, Ordering::Relaxed) + 1;
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

    /// The session's lanes, opened; None when gpud offers none or they cannot be opened.
    fn bulk(self: &Arc<Self>) -> Option<&Bulk> {
        let bulk = self.lanes.as_ref()?;
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
        dial::open(&self.ticket(), Vec::new(), Some(resume), Some(index as u16)).map(|(stream, _)| stream)
    }
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
