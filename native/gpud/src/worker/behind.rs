//! Frames that are executed behind the thread that reads them.
//!
//! A driver may make whoever loads a module, or launches more than it queues, wait for work that is under way. That work
//! may wait for the client: for a host function to return, or for a copy that the client takes. The client says so by a
//! frame behind the one that is being executed. So while the device may wait for the client, frames are read by one
//! thread and executed, in their order, by another; what the device waits for is taken where it is read. So they are
//! while the client has much to acknowledge ([`super::outbox`]): its acknowledgements lie behind what it has sent before.

use crate::worker::bulk::Bulk;
use crate::worker::host::Host;
use crate::worker::host_memory::{HostMemory, OWN_BYTES};
use sluice_protocol::messages::{BulkTaken, HostReturned, HostSupplied, Request};
use sluice_protocol::{DecodeError, Failure, Frame, Reader, Wire};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of frames that are kept; who sends more is read no further until some have been executed.
const MOST_BYTES: usize = 256 << 20;
/// What a frame counts besides its payload.
const FRAME_BYTES: usize = 64;

/// Executes one frame; the error ends the connection.
type Execute = Box<dyn Fn(&Frame) -> io::Result<()> + Send>;

/// See the module.
pub struct Behind {
    host: Arc<Host>,
    bulk: Arc<Bulk>,
    /// Frames that are kept count there.
    memory: Arc<HostMemory>,
    state: Mutex<State>,
    changed: Condvar,
    /// Frames that are kept or being executed.
    pending: AtomicU64,
    /// Frames and their bytes that were taken where they were read, until they are counted.
    taken: [AtomicU64; 2],
}

#[derive(Default)]
struct State {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Executes, once there has been something to execute.
    executor: bool,
    broken: Option<io::Error>,
}

impl Behind {
    /// Of a session with these.
    pub fn new(host: Arc<Host>, bulk: Arc<Bulk>, memory: Arc<HostMemory>) -> Arc<Behind> {
        let (state, changed, pending, taken) = Default::default();
        Arc::new(Behind { host, bulk, memory, state, changed, pending, taken })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next frame must not be executed by the thread that reads.
    pub fn is_needed(&self) -> bool {
        self.host.is_owed() || self.bulk.is_owed() || self.pending.load(Ordering::Acquire) > 0
    }

    /// Takes a frame for which the device may be waiting; None: it is none of those.
    pub fn take(&self, frame: &Frame, bytes: u64) -> Option<Result<Result<(), Failure>, DecodeError>> {
        let mut reader = Reader::new(&frame.payload);
        let taken = match frame.header.opcode {
            HostReturned::OPCODE => HostReturned::take(&mut reader).map(|returned| self.host.returned(returned.ticket)),
            HostSupplied::OPCODE => {
                HostSupplied::take(&mut reader).map(|part| self.host.supplied(part.ticket, part.offset, part.data))
            }
            BulkTaken::OPCODE => BulkTaken::take(&mut reader).map(|taken| {
                self.bulk.taken(taken.transfer);
                Ok(())
            }),
            _ => return None,
        };
        self.taken[0].fetch_add(1, Ordering::Relaxed);
        self.taken[1].fetch_add(bytes, Ordering::Relaxed);
        Some(taken)
    }

    /// Frames taken by [`Behind::take`] that have not been counted, and their bytes.
    pub fn uncounted(&self) -> [u64; 2] {
        [0, 1].map(|which| self.taken[which].swap(0, Ordering::Relaxed))
    }

    /// Has a frame executed when those before it have been, by `execute` the first time and ever after.
    pub fn push(self: &Arc<Self>, frame: Frame, execute: impl FnOnce() -> Execute) -> io::Result<()> {
        let mut state = self.lock();
        while self.fills(&state) && state.broken.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(error) = state.broken.take() {
            return Err(error);
        }
        let bytes = frame.payload.len() + FRAME_BYTES;
        state.bytes += bytes;
        self.memory.take(bytes as u64);
        state.frames.push_back(frame);
        self.pending.fetch_add(1, Ordering::Relaxed);
        if !std::mem::replace(&mut state.executor, true) {
            let (behind, execute) = (Arc::clone(self), execute());
            std::thread::Builder::new().name("frames".to_owned()).spawn(move || behind.run(&execute))?;
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Whether nothing more is read before a frame has been executed.
    pub fn is_full(&self) -> bool {
        self.fills(&self.lock())
    }

    fn fills(&self, state: &State) -> bool {
        state.bytes > MOST_BYTES || (state.bytes as u64 > OWN_BYTES && self.memory.is_exceeded())
    }

    /// Subtracts bytes of frames that are no longer kept.
    fn leave(&self, state: &mut State, bytes: usize) {
        state.bytes -= bytes;
        self.memory.release(bytes as u64);
    }

    /// Waits until all have been executed, or for so long.
    pub fn settle(&self, within: Duration) {
        let busy = |_: &mut State| self.pending.load(Ordering::Acquire) > 0;
        drop(self.changed.wait_timeout_while(self.lock(), within, busy).unwrap_or_else(PoisonError::into_inner));
    }

    fn run(&self, execute: &Execute) {
        loop {
            let frame = {
                let waits = |state: &mut State| state.frames.is_empty();
                let mut state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
                let Some(frame) = state.frames.pop_front() else { continue };
                self.leave(&mut state, frame.payload.len() + FRAME_BYTES);
                frame
            };
            let outcome = execute(&frame);
            let mut state = self.lock();
            self.pending.fetch_sub(1, Ordering::Release);
            if let Err(error) = outcome {
                // Nothing behind a frame that breaks the protocol is executed.
                self.pending.fetch_sub(state.frames.len() as u64, Ordering::Release);
                state.frames.clear();
                let bytes = state.bytes;
                self.leave(&mut state, bytes);
                state.broken = Some(error);
            }
            drop(state);
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::outbox::Outbox;
    use sluice_backend::graph::HostSide;
    use sluice_protocol::frame::Header;
    use std::sync::mpsc::channel;

    fn frame(opcode: u16, seq: u64, body: impl FnOnce(&mut Vec<u8>)) -> Frame {
        let mut payload = Vec::new();
        body(&mut payload);
        Frame { header: Header { opcode, seq, ..Header::default() }, payload }
    }

    #[test]
    fn what_a_frame_waits_for_is_taken_behind_it() {
        let host = Arc::new(Host::new(Arc::new(Outbox::default())));
        let behind = Behind::new(Arc::clone(&host), Arc::default(), Arc::default());
        assert!(!behind.is_needed());
        host.owe();
        assert!(behind.is_needed());
        let (returned, returns) = channel();
        host.call(7, Box::new(move || returned.send(()).expect("is waited for")));
        let (told, tells) = channel();
        let execute = move || -> Execute {
            Box::new(move |frame: &Frame| {
                // Like a driver that loads a module only when the stream's host function has returned.
                if frame.header.seq == 1 {
                    returns.recv_timeout(Duration::from_secs(10)).expect("the function returns");
                }
                told.send(frame.header.seq).expect("is listened to");
                Ok(())
            })
        };
        behind.push(frame(0x100, 1, |_| ()), execute).expect("is kept");
        behind.push(frame(0x100, 2, |_| ()), || unreachable!("there is one already")).expect("is kept");
        assert!(behind.take(&frame(0x100, 3, |_| ()), 40).is_none());
        let answer = frame(HostReturned::OPCODE, 3, |out| HostReturned { ticket: 1 }.put(out));
        assert!(matches!(behind.take(&answer, 40), Some(Ok(Ok(())))));
        assert_eq!([tells.recv(), tells.recv()], [Ok(1), Ok(2)]);
        behind.settle(Duration::from_secs(10));
        assert!(!behind.is_needed());
        assert_eq!((behind.uncounted(), behind.uncounted()), ([1, 40], [0, 0]));
    }

    #[test]
    fn nothing_behind_a_broken_frame_is_executed() {
        let behind = Behind::new(Arc::new(Host::new(Arc::new(Outbox::default()))), Arc::default(), Arc::default());
        let broken = || -> Execute { Box::new(|_: &Frame| Err(io::Error::from(io::ErrorKind::InvalidData))) };
        behind.push(frame(0x100, 1, |_| ()), broken).expect("is kept");
        behind.settle(Duration::from_secs(10));
        let error = behind.push(frame(0x100, 2, |_| ()), || unreachable!("there is one already"));
        assert_eq!(error.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
    }
}
