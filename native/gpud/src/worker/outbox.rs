//! The worker's outgoing side: numbers frames, keeps them until the client has them, and writes from any thread.
//!
//! Kept frames are host memory that no lease pays for, so they are bounded. A client that reads its answers never comes near
//! the bound, however many it asks for:
//!
//! - Further copies to the host are not executed while [`WINDOW_BYTES`] of answers are due or unacknowledged
//!   ([`Outbox::has_room`]). They wait on a thread of their own, so the acknowledgements behind them are read meanwhile.
//! - A client acknowledges what it has read after 64 frames or 1 MiB, and with each frame that it sends. One that does not
//!   read holds up the writing here: then only the socket's buffers fill.
//!
//! A well-behaved client thus has the window and one answer of 4 MiB. A session beyond [`MOST_BYTES`], sixteen times as
//! much, acknowledges nothing, and ends. So does one beyond [`OWN_BYTES`] whose lease has taken all of the host's memory
//! that it may.

use crate::worker::host_memory::{HostMemory, OWN_BYTES};
use sluice_protocol::control::AsyncError;
use sluice_protocol::frame::{Header, put_frame, widen_ack};
use sluice_protocol::wire::Wire;
use sluice_protocol::{Failure, ReplySink, cuda, opcode};
use sluice_transport::WriteHalf;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of answers that may be due or unacknowledged before further copies to the host wait.
pub const WINDOW_BYTES: u64 = 16 << 20;
/// Bytes of unacknowledged frames above which the session ends.
const MOST_BYTES: u64 = 256 << 20;
/// Memory of a kept frame besides its bytes.
const FRAME_BYTES: u64 = 64;
/// How long a copy to the host waits for room while nothing is acknowledged: its acknowledgements may lie where they
/// are not read before it.
const ROOM_TIME: Duration = Duration::from_secs(1);
/// Interval at which a thread that waits for room checks whether to hurry.
const LOOK_TIME: Duration = Duration::from_millis(10);

/// See the module.
#[derive(Default)]
pub struct Outbox {
    state: Mutex<State>,
    /// Room may have come.
    acknowledged: Condvar,
    /// Last numbered frame of the client that has been taken over.
    received: AtomicU64,
    /// Last number that a header has told the client to be taken over.
    told: AtomicU64,
    bytes: AtomicU64,
    /// Bytes of the frames that are kept.
    kept_bytes: AtomicU64,
    /// Bytes of answers that are being made.
    due_bytes: AtomicU64,
    /// The session's part of the host's memory: what is kept counts there.
    pub memory: Arc<HostMemory>,
    /// Ends the session; called once.
    end_session: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct State {
    connection: Option<WriteHalf>,
    last: u64,
    /// The last frame that the client has confirmed.
    confirmed: u64,
    /// Frames that the client may not have yet.
    kept: VecDeque<(u64, Vec<u8>)>,
    /// Too much was kept: nothing is, and nothing is sent.
    overflowed: bool,
}

/// An answer that is being made, with its bytes.
pub struct Due {
    outbox: Arc<Outbox>,
    bytes: u64,
}

impl Drop for Due {
    fn drop(&mut self) {
        self.outbox.due_bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.outbox.acknowledged.notify_all();
    }
}

/// The size of a kept frame in the account.
fn cost(frame: &[u8]) -> u64 {
    frame.len() as u64 + FRAME_BYTES
}

/// Tells the client why its session ends.
fn unacknowledged(bytes: u64) -> Failure {
    let mib = bytes >> 20;
    let text = format!("the session ended: its client left {mib} MiB of answers unacknowledged");
    Failure::new(cuda::ERROR_LAUNCH_FAILED, text)
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Last numbered frame of the client that has been taken over.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Takes over the client's next frame; `false` when it was here before.  `None`: a frame is missing.
    pub fn take_over(&self, seq: u64) -> Option<bool> {
        let last = self.received.load(Ordering::Acquire);
        if seq == last + 1 {
            self.received.store(seq, Ordering::Release);
            return Some(true);
        }
        (seq <= last).then_some(false)
    }

    /// Frames taken over that the client has not heard of.
    pub fn unconfirmed(&self) -> u64 {
        self.received().saturating_sub(self.told.load(Ordering::Relaxed))
    }

    /// Bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What ends the session when its client acknowledges nothing; the first one named counts.
    pub fn end_session_by(&self, end_session: Box<dyn Fn() + Send + Sync>) {
        let _ = self.end_session.set(end_session);
    }

    /// Forgets what the client confirms in a header.
    pub fn confirm(&self, ack: u32) {
        let mut state = self.lock();
        state.confirmed = widen_ack(state.confirmed, ack);
        let confirmed = state.confirmed;
        self.forget(&mut state, confirmed);
    }

    /// Forgets frames up to this number.
    fn forget(&self, state: &mut State, number: u64) {
        let mut bytes = 0;
        while state.kept.front().is_some_and(|(seq, _)| *seq <= number) {
            bytes += state.kept.pop_front().map_or(0, |(_, frame)| cost(&frame));
        }
        if bytes > 0 {
            self.kept_bytes.fetch_sub(bytes, Ordering::AcqRel);
            self.memory.release(bytes);
            self.acknowledged.notify_all();
        }
    }

    /// Counts an answer of `bytes` as due until the returned value is dropped.
    pub fn expect(self: &Arc<Self>, bytes: u64) -> Due {
        self.due_bytes.fetch_add(bytes, Ordering::AcqRel);
        Due { outbox: Arc::clone(self), bytes }
    }

    /// Whether a copy to the host may be executed; see the module.
    pub fn has_room(&self) -> bool {
        let kept = self.kept_bytes.load(Ordering::Acquire);
        kept.saturating_add(self.due_bytes.load(Ordering::Acquire)) <= WINDOW_BYTES
    }

    /// Waits for room while acknowledgements come, unless it is to `hurry`.
    pub fn wait_for_room(&self, hurry: impl Fn() -> bool) {
        drop(self.room(hurry));
    }

    /// As [`Outbox::expect`], once there is room, so that of many that wait one goes on at a time.
    pub fn expect_with_room(self: &Arc<Self>, bytes: u64) -> Due {
        let state = self.room(|| false);
        let due = self.expect(bytes);
        drop(state);
        due
    }

    fn room(&self, hurry: impl Fn() -> bool) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let (mut confirmed, mut deadline) = (state.confirmed, Instant::now() + ROOM_TIME);
        while !self.has_room() && !state.overflowed && !hurry() && Instant::now() < deadline {
            state = self.acknowledged.wait_timeout(state, LOOK_TIME).unwrap_or_else(PoisonError::into_inner).0;
            if state.confirmed != confirmed {
                (confirmed, deadline) = (state.confirmed, Instant::now() + ROOM_TIME);
            }
        }
        state
    }

    /// Starts to write to a connection: first the handshake's answer, then what the client has not received.
    pub fn connect(&self, connection: WriteHalf, greeting: (u16, Vec<u8>), client_has: u64) {
        let mut state = self.lock();
        state.connection = Some(connection);
        let mut frame = Vec::new();
        let header = Header { opcode: greeting.0, ..Header::default() };
        put_frame(&mut frame, header, |out| out.extend_from_slice(&greeting.1));
        self.write(&mut state, &frame);
        self.forget(&mut state, client_has);
        let kept = std::mem::take(&mut state.kept);
        kept.iter().for_each(|(_, frame)| self.write(&mut state, frame));
        state.kept = kept;
    }

    /// The connection is gone; frames are kept for the next one.
    pub fn disconnect(&self) {
        self.lock().connection = None;
    }

    /// Sends a numbered frame.
    pub fn send(&self, opcode: u16, thread: u32, payload: &[u8]) {
        let mut state = self.lock();
        if state.overflowed {
            return;
        }
        let (seq, frame) = self.number(&mut state, opcode, thread, payload);
        self.write(&mut state, &frame);
        let kept = self.kept_bytes.fetch_add(cost(&frame), Ordering::AcqRel) + cost(&frame);
        self.memory.take(cost(&frame));
        state.kept.push_back((seq, frame));
        if kept > MOST_BYTES || (kept > OWN_BYTES && self.memory.is_exceeded()) {
            self.overflow(&mut state);
        }
    }

    /// The next numbered frame.
    fn number(&self, state: &mut State, opcode: u16, thread: u32, payload: &[u8]) -> (u64, Vec<u8>) {
        state.last += 1;
        let mut frame = Vec::with_capacity(payload.len() + sluice_protocol::HEADER_BYTES);
        put_frame(&mut frame, self.header(opcode, thread, state.last), |out| out.extend_from_slice(payload));
        (state.last, frame)
    }

    /// Gives up what is kept, and ends the session.
    fn overflow(&self, state: &mut State) {
        state.overflowed = true;
        state.kept = VecDeque::new();
        let kept = self.kept_bytes.swap(0, Ordering::AcqRel);
        self.memory.release(kept);
        self.acknowledged.notify_all();
        // Before the last words: the client may not read them.
        if let Some(end_session) = self.end_session.get() {
            end_session();
        }
        let payload = async_error(0, &unacknowledged(kept));
        let (_, frame) = self.number(state, opcode::ASYNC_ERROR, 0, &payload);
        self.write(state, &frame);
    }

    /// Sends an unnumbered frame; it is lost with its connection.
    pub fn send_unnumbered(&self, opcode: u16, payload: &[u8]) {
        let mut frame = Vec::new();
        put_frame(&mut frame, self.header(opcode, 0, 0), |out| out.extend_from_slice(payload));
        self.write(&mut self.lock(), &frame);
    }

    fn header(&self, opcode: u16, thread: u32, seq: u64) -> Header {
        let received = self.received();
        self.told.store(received, Ordering::Relaxed);
        Header { opcode, thread, seq, ack: received as u32, ..Header::default() }
    }

    fn write(&self, state: &mut State, frame: &[u8]) {
        if let Some(connection) = &mut state.connection {
            self.bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
            // A broken connection shows itself to the reading side as well, which waits for the client's return.
            if connection.write_all(frame).is_err() {
                state.connection = None;
            }
        }
    }
}

/// The payload of an [`AsyncError`].
pub fn async_error(seq: u64, failure: &Failure) -> Vec<u8> {
    let mut payload = Vec::new();
    let sticky = cuda::is_sticky(failure.code);
    AsyncError { seq, code: failure.code, sticky, text: failure.text.clone() }.put(&mut payload);
    payload
}

impl ReplySink for Outbox {
    fn send_reply(&self, thread: u32, payload: Vec<u8>) {
        self.send(opcode::REPLY, thread, &payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn frames(stream: &mut UnixStream, count: usize) -> Vec<Header> {
        (0..count)
            .map(|_| {
                let mut bytes = [0; sluice_protocol::HEADER_BYTES];
                stream.read_exact(&mut bytes).expect("header");
                let header = Header::decode(&bytes, 1 << 20).expect("header");
                stream.read_exact(&mut vec![0; header.len as usize]).expect("payload");
                header
            })
            .collect()
    }

    #[test]
    fn a_client_that_comes_back_gets_what_it_missed_and_nothing_twice() {
        let outbox = Outbox::default();
        let (near, mut far) = UnixStream::pair().expect("pair");
        outbox.connect(WriteHalf::Unix(near), (opcode::WELCOME, vec![]), 0);
        (0..3).for_each(|_| outbox.send(opcode::REPLY, 1, b"x"));
        assert_eq!(frames(&mut far, 4).iter().map(|header| header.seq).collect::<Vec<_>>(), [0, 1, 2, 3]);
        outbox.confirm(1);
        outbox.disconnect();
        outbox.send(opcode::REPLY, 1, b"y");
        let (near, mut far) = UnixStream::pair().expect("pair");
        outbox.connect(WriteHalf::Unix(near), (opcode::WELCOME, vec![]), 2);
        assert_eq!(frames(&mut far, 3).iter().map(|header| header.seq).collect::<Vec<_>>(), [0, 3, 4]);
    }

    #[test]
    fn answers_that_are_due_and_unacknowledged_leave_no_room() {
        let outbox = Arc::new(Outbox::default());
        outbox.send(opcode::REPLY, 1, &vec![0; WINDOW_BYTES as usize / 2]);
        let due = outbox.expect(WINDOW_BYTES / 4);
        assert!(outbox.has_room());
        let more = outbox.expect(WINDOW_BYTES / 2);
        assert!(!outbox.has_room());
        let began = Instant::now();
        outbox.wait_for_room(|| true);
        assert!(began.elapsed() < ROOM_TIME);
        let waiting = Arc::clone(&outbox);
        let waits = std::thread::spawn(move || waiting.wait_for_room(|| false));
        outbox.confirm(1);
        waits.join().expect("room came");
        assert!(outbox.has_room());
        drop((due, more));
        assert_eq!(outbox.due_bytes.load(Ordering::Relaxed) + outbox.kept_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn too_many_unacknowledged_bytes_end_the_session_once_and_are_given_up() {
        let outbox = Outbox::default();
        let ends = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&ends);
        outbox.end_session_by(Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        }));
        let answer = vec![0; 32 << 20];
        for sent in 1..=10 {
            outbox.send(opcode::REPLY, 1, &answer);
            assert_eq!(ends.load(Ordering::Relaxed), u64::from(sent >= 8), "after {sent}");
        }
        assert!(outbox.lock().kept.is_empty());
    }

    #[test]
    fn a_frame_is_taken_over_once_and_a_gap_is_seen() {
        let outbox = Outbox::default();
        assert_eq!(outbox.take_over(1), Some(true));
        assert_eq!(outbox.take_over(1), Some(false));
        assert_eq!(outbox.take_over(3), None);
        assert_eq!(outbox.received(), 1);
    }
}
