//! Bulk data over several connections of one session.
//!
//! A *transfer* is a run of bytes with a number; its sender cuts it into pieces. Each lane takes the next piece when
//! it has written one, and a receiver reads each piece straight to where it belongs. When a lane breaks, the pieces
//! that it had written go into the queue again, unless their transfer has ended; a piece that comes twice is thrown
//! away. Nothing is buffered here: what is in flight is what the sockets hold.
//!
//! A piece travels as a frame: header, `transfer u64 | offset u64`, data. Every piece but a transfer's last is
//! [`PIECE_BYTES`] long.

use crate::stream::{Closer, ReadHalf, Stream, WriteHalf};
use sluice_protocol::frame::{HEADER_BYTES, Header};
use sluice_protocol::opcode;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Length of a piece.
pub const PIECE_BYTES: usize = 1 << 20;
/// Most lanes of a session.
pub const MOST_LANES: usize = 16;
/// Header, transfer and offset.
const PREFIX_BYTES: usize = HEADER_BYTES + 16;
/// Ended transfers that are remembered, for pieces that come once more.
const REMEMBERED: usize = 1024;

/// What is sent. Called from lanes' threads, several at a time, and again for a piece that has to go once more.
pub trait Source: Send + Sync {
    /// Hands the bytes from `offset` on, `length` of them, to `write`.
    fn piece(&self, offset: u64, length: usize, write: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
}

/// Where it goes. Called from lanes' threads, several at a time, for each piece until one call has succeeded.
pub trait Target: Send + Sync {
    /// Has `read` fill the bytes from `offset` on, `length` of them.
    fn piece(&self, offset: u64, length: usize, read: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<()>;
}

type Then = Box<dyn FnOnce() + Send>;

#[derive(Clone, Copy)]
struct Piece {
    transfer: u64,
    offset: u64,
    length: usize,
}

struct Sending {
    source: Arc<dyn Source>,
    /// Pieces from here on wait for [`Lanes::go`].
    held_from: u64,
    bytes: u64,
    /// Lanes that write from it now.
    busy: usize,
    /// It has ended: what to do when no lane is busy any more.
    then: Option<Then>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    Missing,
    /// A lane reads it.
    Claimed,
    Here,
}

struct Receiving {
    target: Arc<dyn Target>,
    bytes: u64,
    pieces: Vec<Arrival>,
    missing: usize,
    busy: usize,
    /// What to do when everything is here.
    done: Option<Then>,
    then: Option<Then>,
}

#[derive(Default)]
struct Lane {
    /// Counts connections.
    epoch: u64,
    closer: Option<Closer>,
    /// Written on the present connection, and perhaps not received.
    sent: Vec<Piece>,
}

/// Told of descriptors: a forked child has to close them.
#[derive(Clone, Copy)]
pub struct Watch {
    pub opened: fn(RawFd),
    /// Before it is closed.
    pub closing: fn(RawFd),
}

impl Default for Watch {
    fn default() -> Self {
        Self { opened: |_| (), closing: |_| () }
    }
}

#[derive(Default)]
struct State {
    queue: VecDeque<Piece>,
    sending: HashMap<u64, Sending>,
    receiving: HashMap<u64, Receiving>,
    ended: VecDeque<u64>,
    lanes: HashMap<usize, Lane>,
    closed: bool,
}

/// See the module.
#[derive(Default)]
pub struct Lanes {
    state: Mutex<State>,
    /// Something was queued, announced, released or ended.
    changed: Condvar,
    watch: Watch,
}

/// What to do with a piece that comes.
enum Claim {
    Take(Arc<dyn Target>),
    Discard,
}

fn broken(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn pieces_between(transfer: u64, from: u64, to: u64, bytes: u64) -> impl Iterator<Item = Piece> {
    let length = move |offset: u64| (bytes - offset).min(PIECE_BYTES as u64) as usize;
    (from..to).step_by(PIECE_BYTES).map(move |offset| Piece { transfer, offset, length: length(offset) })
}

impl Lanes {
    /// Lanes whose descriptors are told to `watch`.
    pub fn watched(watch: Watch) -> Self {
        Self { watch, ..Self::default() }
    }

    fn forget(&self, closer: Closer) {
        closer.close();
        (self.watch.closing)(closer.as_raw_fd());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a transfer that is not being sent: the first `ahead` bytes at once, the rest after [`Lanes::go`].
    pub fn send(&self, transfer: u64, bytes: u64, source: Arc<dyn Source>, ahead: u64) {
        let held_from = ahead.next_multiple_of(PIECE_BYTES as u64).min(bytes);
        let mut state = self.lock();
        state.sending.insert(transfer, Sending { source, held_from, bytes, busy: 0, then: None });
        state.queue.extend(pieces_between(transfer, 0, held_from, bytes));
        drop(state);
        self.changed.notify_all();
    }

    /// The receiver is ready for all of a transfer.
    pub fn go(&self, transfer: u64) {
        let mut state = self.lock();
        if let Some(sending) = state.sending.get_mut(&transfer) {
            let (from, bytes) = (sending.held_from, sending.bytes);
            sending.held_from = bytes;
            state.queue.extend(pieces_between(transfer, from, bytes, bytes));
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Ends a transfer that is sent; `then` is called when no lane reads from its source any more.
    pub fn end_sending(&self, transfer: u64, then: Then) {
        let mut state = self.lock();
        match state.sending.get_mut(&transfer) {
            Some(sending) if sending.busy > 0 => {
                sending.then = Some(then);
                return;
            }
            _ => {
                state.sending.remove(&transfer);
            }
        }
        state.queue.retain(|piece| piece.transfer != transfer);
        drop(state);
        then();
    }

    /// Receives a transfer; `done` is called when every byte is there. False: this transfer is known already.
    #[must_use]
    pub fn receive(&self, transfer: u64, bytes: u64, target: Arc<dyn Target>, done: Then) -> bool {
        let count = bytes.div_ceil(PIECE_BYTES as u64) as usize;
        let pieces = vec![Arrival::Missing; count];
        let receiving = Receiving { target, bytes, pieces, missing: count, busy: 0, done: Some(done), then: None };
        let mut state = self.lock();
        if state.receiving.contains_key(&transfer) || state.ended.contains(&transfer) {
            return false;
        }
        state.receiving.insert(transfer, receiving);
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Ends a transfer that is received; pieces that still come are thrown away. `then` is called when no lane writes
    /// to its target any more.
    pub fn end_receiving(&self, transfer: u64, then: Then) {
        let mut state = self.lock();
        if state.ended.len() == REMEMBERED {
            state.ended.pop_front();
        }
        state.ended.push_back(transfer);
        if let Some(receiving) = state.receiving.get_mut(&transfer)
            && receiving.busy > 0
        {
            receiving.then = Some(then);
            return;
        }
        state.receiving.remove(&transfer);
        drop(state);
        self.changed.notify_all();
        then();
    }

    /// Ends every lane for good.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        for lane in state.lanes.values_mut() {
            if let Some(closer) = lane.closer.take() {
                self.forget(closer);
            }
        }
        // Whoever waits for what will not come any more is told by the end of its callback.
        let never: Vec<Option<Then>> = state.receiving.values_mut().map(|receiving| receiving.done.take()).collect();
        drop(state);
        drop(never);
        self.changed.notify_all();
    }

    /// Whether [`Lanes::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// A lane is connected (again): starts its writing thread and answers what its reading thread has to run. What the
    /// lane's last connection had written goes into the queue again.
    pub fn attach(
        self: &Arc<Self>,
        index: usize,
        stream: Stream,
    ) -> io::Result<impl FnOnce() -> io::Result<()> + use<>> {
        let (read, write) = stream.split()?;
        let closer = write.closer()?;
        let mut state = self.lock();
        if state.closed || index >= MOST_LANES {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        for descriptor in [read.as_raw_fd(), write.as_raw_fd(), closer.as_raw_fd()] {
            (self.watch.opened)(descriptor);
        }
        let lane = state.lanes.entry(index).or_default();
        lane.epoch += 1;
        let epoch = lane.epoch;
        if let Some(old) = lane.closer.replace(closer) {
            self.forget(old);
        }
        let again = std::mem::take(&mut lane.sent);
        for piece in
            again.into_iter().rev().filter(|piece| state.sending.contains_key(&piece.transfer)).collect::<Vec<_>>()
        {
            state.queue.push_front(piece);
        }
        drop(state);
        self.changed.notify_all();
        let writer = Arc::clone(self);
        std::thread::Builder::new().name(format!("lane-out-{index}")).spawn(move || {
            let mut write = write;
            writer.write_pieces(index, epoch, &mut write);
            (writer.watch.closing)(write.as_raw_fd());
        })?;
        let reader = Arc::clone(self);
        Ok(move || {
            let mut read = read;
            let outcome = reader.read_pieces(&mut read);
            (reader.watch.closing)(read.as_raw_fd());
            drop(read);
            reader.lost(index, epoch);
            outcome
        })
    }

    /// A lane's connection is broken: both of its threads end.
    fn lost(&self, index: usize, epoch: u64) {
        let mut state = self.lock();
        if let Some(lane) = state.lanes.get_mut(&index)
            && lane.epoch == epoch
            && let Some(closer) = lane.closer.take()
        {
            self.forget(closer);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn write_pieces(&self, index: usize, epoch: u64, connection: &mut WriteHalf) {
        while let Some((piece, source)) = self.next_piece(index, epoch) {
            let header = Header { len: (16 + piece.length) as u32, opcode: opcode::LANE_DATA, ..Header::default() };
            let mut prefix = [0; PREFIX_BYTES];
            prefix[..HEADER_BYTES].copy_from_slice(&header.encode());
            prefix[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&piece.transfer.to_le_bytes());
            prefix[HEADER_BYTES + 8..].copy_from_slice(&piece.offset.to_le_bytes());
            let sent = connection
                .write_all(&prefix)
                .and_then(|()| source.piece(piece.offset, piece.length, &mut |bytes| connection.write_all(bytes)))
                .and_then(|()| connection.flush());
            drop(source);
            self.written(piece.transfer);
            if sent.is_err() {
                return self.lost(index, epoch);
            }
        }
    }

    fn next_piece(&self, index: usize, epoch: u64) -> Option<(Piece, Arc<dyn Source>)> {
        let mut state = self.lock();
        loop {
            let here = state.lanes.get(&index).is_some_and(|lane| lane.epoch == epoch && lane.closer.is_some());
            if state.closed || !here {
                return None;
            }
            if let Some(piece) = state.queue.pop_front() {
                let State { sending, lanes, .. } = &mut *state;
                if let (Some(from), Some(lane)) = (sending.get_mut(&piece.transfer), lanes.get_mut(&index))
                    && from.then.is_none()
                {
                    from.busy += 1;
                    let source = Arc::clone(&from.source);
                    if lane.sent.len() >= 256 {
                        lane.sent.retain(|sent| sending.contains_key(&sent.transfer));
                    }
                    lane.sent.push(piece);
                    return Some((piece, source));
                }
                continue;
            }
            state = self.wait(state);
        }
    }

    fn written(&self, transfer: u64) {
        let mut state = self.lock();
        let Some(sending) = state.sending.get_mut(&transfer) else { return };
        sending.busy -= 1;
        if sending.busy == 0
            && let Some(then) = sending.then.take()
        {
            state.sending.remove(&transfer);
            state.queue.retain(|piece| piece.transfer != transfer);
            drop(state);
            then();
        }
    }

    fn read_pieces(&self, connection: &mut ReadHalf) -> io::Result<()> {
        let mut scratch = Vec::new();
        loop {
            let mut prefix = [0; PREFIX_BYTES];
            connection.read_exact(&mut prefix)?;
            let (header, place) = prefix.split_at(HEADER_BYTES);
            let header = header.first_chunk().ok_or_else(|| broken("a short header"))?;
            let header = Header::decode(header, 16 + PIECE_BYTES).map_err(|error| broken(&error.to_string()))?;
            if header.opcode != opcode::LANE_DATA || header.len < 16 {
                return Err(broken("not a piece"));
            }
            let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let piece =
                Piece { transfer: number(place), offset: number(&place[8..]), length: header.len as usize - 16 };
            match self.claim(piece)? {
                Claim::Take(target) => {
                    let outcome = target.piece(piece.offset, piece.length, &mut |bytes| connection.read_exact(bytes));
                    drop(target);
                    self.arrived(piece, outcome.is_ok());
                    outcome?;
                }
                Claim::Discard => {
                    scratch.resize(piece.length, 0);
                    connection.read_exact(&mut scratch)?;
                }
            }
        }
    }

    fn claim(&self, piece: Piece) -> io::Result<Claim> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if state.ended.contains(&piece.transfer) {
                return Ok(Claim::Discard);
            }
            // One that nobody has announced is waited for: its announcement is on the way by another connection.
            if let Some(receiving) = state.receiving.get_mut(&piece.transfer) {
                let whole = piece.offset.is_multiple_of(PIECE_BYTES as u64) && piece.offset < receiving.bytes;
                if !whole || (receiving.bytes - piece.offset).min(PIECE_BYTES as u64) != piece.length as u64 {
                    return Err(broken("a piece that is not of its transfer"));
                }
                let arrival = &mut receiving.pieces[piece.offset as usize / PIECE_BYTES];
                match *arrival {
                    Arrival::Missing => {
                        *arrival = Arrival::Claimed;
                        receiving.busy += 1;
                        return Ok(Claim::Take(Arc::clone(&receiving.target)));
                    }
                    Arrival::Here => return Ok(Claim::Discard),
                    // The lane that reads it may be about to break.
                    Arrival::Claimed => {}
                }
            }
            state = self.wait(state);
        }
    }

    fn arrived(&self, piece: Piece, whole: bool) {
        let mut state = self.lock();
        let Some(receiving) = state.receiving.get_mut(&piece.transfer) else { return };
        receiving.busy -= 1;
        receiving.pieces[piece.offset as usize / PIECE_BYTES] = if whole { Arrival::Here } else { Arrival::Missing };
        receiving.missing -= usize::from(whole);
        let done = if receiving.missing == 0 { receiving.done.take() } else { None };
        let then = if receiving.busy == 0 { receiving.then.take() } else { None };
        if then.is_some() {
            state.receiving.remove(&piece.transfer);
        }
        drop(state);
        if !whole || then.is_some() {
            self.changed.notify_all();
        }
        done.into_iter().chain(then).for_each(|call| call());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(20);

    struct Bytes(Vec<u8>);

    impl Source for Bytes {
        fn piece(&self, offset: u64, length: usize, write: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
            write(&self.0[offset as usize..offset as usize + length])
        }
    }

    struct Room(Mutex<Vec<u8>>);

    impl Target for Room {
        fn piece(
            &self,
            offset: u64,
            length: usize,
            read: &mut dyn FnMut(&mut [u8]) -> io::Result<()>,
        ) -> io::Result<()> {
            let mut piece = vec![0; length];
            read(&mut piece)?;
            self.0.lock().expect("room")[offset as usize..offset as usize + length].copy_from_slice(&piece);
            Ok(())
        }
    }

    fn told(sender: Sender<()>) -> Then {
        Box::new(move || sender.send(()).expect("somebody listens"))
    }

    fn pattern(bytes: usize, seed: usize) -> Vec<u8> {
        (0..bytes).map(|index| (index * 31 + index / 4093 + seed) as u8).collect()
    }

    /// Connects lane `index` of both, and runs their reading threads.
    fn connect(left: &Arc<Lanes>, right: &Arc<Lanes>, index: usize) {
        let (near, far) = UnixStream::pair().expect("pair");
        for (lanes, end) in [(left, near), (right, far)] {
            let run = lanes.attach(index, Stream::Unix(end)).expect("attached");
            std::thread::spawn(run);
        }
    }

    #[test]
    fn a_transfer_survives_lanes_that_break_in_the_middle_of_pieces() {
        let (left, right): (Arc<Lanes>, Arc<Lanes>) = Default::default();
        let bytes = 40 * PIECE_BYTES + 12_345;
        let sent = pattern(bytes, 7);
        let room = Arc::new(Room(Mutex::new(vec![0; bytes])));
        let (done, here) = channel();
        // Sent before anybody expects it, and only in part.
        left.send(5, bytes as u64, Arc::new(Bytes(sent.clone())), 3 * PIECE_BYTES as u64);
        connect(&left, &right, 0);
        connect(&left, &right, 1);
        assert!(right.receive(5, bytes as u64, Arc::clone(&room) as Arc<dyn Target>, told(done)));
        assert!(here.recv_timeout(Duration::from_millis(100)).is_err(), "the rest was held back");
        left.go(5);
        for round in 0..6 {
            std::thread::sleep(Duration::from_millis(2));
            connect(&left, &right, round % 2);
        }
        here.recv_timeout(LONG).expect("everything came");
        assert!(*room.0.lock().expect("room") == sent, "bytes changed on the way");
        let (free, freed) = channel();
        left.end_sending(5, told(free));
        freed.recv_timeout(LONG).expect("nobody reads the source");
    }

    #[test]
    fn what_has_ended_is_not_written_to_any_more() {
        let (left, right): (Arc<Lanes>, Arc<Lanes>) = Default::default();
        let room = Arc::new(Room(Mutex::new(vec![0; PIECE_BYTES])));
        let room_there = Arc::clone(&room) as Arc<dyn Target>;
        assert!(right.receive(1, PIECE_BYTES as u64, Arc::clone(&room_there), Box::new(|| ())));
        assert!(!right.receive(1, PIECE_BYTES as u64, room_there, Box::new(|| ())), "known already");
        right.end_receiving(1, Box::new(|| ()));
        connect(&left, &right, 0);
        left.send(1, PIECE_BYTES as u64, Arc::new(Bytes(pattern(PIECE_BYTES, 1))), u64::MAX >> 1);
        // The next one on the same lane comes through, so the first was read and thrown away.
        let next = Arc::new(Room(Mutex::new(vec![0; 100])));
        let (done, here) = channel();
        assert!(right.receive(2, 100, Arc::clone(&next) as Arc<dyn Target>, told(done)));
        left.send(2, 100, Arc::new(Bytes(pattern(100, 2))), 100);
        here.recv_timeout(LONG).expect("came");
        assert_eq!(*next.0.lock().expect("room"), pattern(100, 2));
        assert!(room.0.lock().expect("room").iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_piece_that_does_not_fit_its_transfer_breaks_the_lane() {
        for (offset, length) in [(1u64, 10usize), (0, 9), (PIECE_BYTES as u64, 10), (u64::MAX, 10)] {
            let lanes: Arc<Lanes> = Arc::default();
            let room = Arc::new(Room(Mutex::new(vec![0; 10])));
            assert!(lanes.receive(1, 10, room, Box::new(|| ())));
            let (mut near, far) = UnixStream::pair().expect("pair");
            let run = lanes.attach(0, Stream::Unix(far)).expect("attached");
            let reading = std::thread::spawn(run);
            let header = Header { len: 16 + length as u32, opcode: opcode::LANE_DATA, ..Header::default() };
            let mut bytes = header.encode().to_vec();
            bytes.extend(1u64.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
            bytes.resize(bytes.len() + length, 0);
            near.write_all(&bytes).expect("sent");
            assert!(reading.join().expect("no panic").is_err());
        }
    }
}
