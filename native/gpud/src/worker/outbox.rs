//! The worker's outgoing side: numbers frames, keeps them until the client has them, and writes from any thread.

use sluice_protocol::frame::{Header, put_frame, widen_ack};
use sluice_protocol::{ReplySink, opcode};
use sluice_transport::WriteHalf;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the module.
#[derive(Default)]
pub struct Outbox {
    state: Mutex<State>,
    /// Last numbered frame of the client that has been taken over.
    received: AtomicU64,
    /// Last number that a header has told the client to be taken over.
    told: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Default)]
struct State {
    connection: Option<WriteHalf>,
    last: u64,
    /// The last frame that the client has confirmed.
    confirmed: u64,
    /// Frames that the client may not have yet.
    kept: VecDeque<(u64, Vec<u8>)>,
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

    /// Forgets what the client confirms in a header.
    pub fn confirm(&self, ack: u32) {
        let mut state = self.lock();
        state.confirmed = widen_ack(state.confirmed, ack);
        while state.kept.front().is_some_and(|(seq, _)| *seq <= state.confirmed) {
            state.kept.pop_front();
        }
    }

    /// Starts to write to a connection: first the handshake's answer, then what the client has not received.
    pub fn connect(&self, connection: WriteHalf, greeting: (u16, Vec<u8>), client_has: u64) {
        let mut state = self.lock();
        state.connection = Some(connection);
        let mut frame = Vec::new();
        let header = Header { opcode: greeting.0, ..Header::default() };
        put_frame(&mut frame, header, |out| out.extend_from_slice(&greeting.1));
        self.write(&mut state, &frame);
        state.kept.retain(|(seq, _)| *seq > client_has);
        let again: Vec<Vec<u8>> = state.kept.iter().map(|(_, frame)| frame.clone()).collect();
        for frame in again {
            self.write(&mut state, &frame);
        }
    }

    /// The connection is gone; frames are kept for the next one.
    pub fn disconnect(&self) {
        self.lock().connection = None;
    }

    /// Sends a numbered frame.
    pub fn send(&self, opcode: u16, thread: u32, payload: &[u8]) {
        let mut state = self.lock();
        state.last += 1;
        let seq = state.last;
        let mut frame = Vec::with_capacity(payload.len() + sluice_protocol::HEADER_BYTES);
        put_frame(&mut frame, self.header(opcode, thread, seq), |out| out.extend_from_slice(payload));
        self.write(&mut state, &frame);
        state.kept.push_back((seq, frame));
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
    fn a_frame_is_taken_over_once_and_a_gap_is_seen() {
        let outbox = Outbox::default();
        assert_eq!(outbox.take_over(1), Some(true));
        assert_eq!(outbox.take_over(1), Some(false));
        assert_eq!(outbox.take_over(3), None);
        assert_eq!(outbox.received(), 1);
    }
}
