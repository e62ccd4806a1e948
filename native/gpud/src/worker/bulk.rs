//! Bulk copies: their data travel on lanes, between the sockets and the device's own memory.

use crate::worker::host_memory::{Charge, HostMemory};
use crate::worker::outbox::Outbox;
use sluice_backend::{CudaError, CudaResult, Device, Done, StreamId, Way, Window, code};
use sluice_protocol::frame::BULK_AHEAD_BYTES;
use sluice_protocol::messages::{BulkIn, BulkOut};
use sluice_protocol::{Wire, opcode};
use sluice_transport::Lanes;
use sluice_transport::lanes::{PIECE_BYTES, Source, Target};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The lanes of a session, and its copies to the host that the client has not confirmed.
#[derive(Default)]
pub struct Bulk {
    pub lanes: Arc<Lanes>,
    leaving: Arc<Mutex<Departures>>,
    /// How many of these there are; for who must not wait for the lock.
    owed: AtomicUsize,
}

/// By transfer; the window when it is open.
type Departures = HashMap<u64, Option<Arc<dyn Window>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bulk {
    /// Receives a copy to the device; `done` is called when all of it lies there.
    pub fn land(&self, device: &dyn Device, outbox: &Arc<Outbox>, request: &BulkIn, done: Done<()>) -> CudaResult<()> {
        let (transfer, bytes) = (request.transfer, request.bytes);
        let landing = Arc::new(Landing::new(Arc::clone(&outbox.memory)));
        let complete = Arc::clone(&landing);
        let target = Arc::clone(&landing) as Arc<dyn Target>;
        if !self.lanes.receive(transfer, bytes, target, Box::new(move || complete.one_less())) {
            return Err(known_already());
        }
        let outbox = Arc::clone(outbox);
        let opened = Box::new(move |window| {
            let mut payload = Vec::new();
            transfer.put(&mut payload);
            outbox.send(opcode::BULK_GO, 0, &payload);
            landing.open(window);
        });
        let lanes = Arc::clone(&self.lanes);
        let ended = Box::new(move |outcome| {
            lanes.end_receiving(transfer, Box::new(move || done(outcome)));
        });
        let stream = StreamId::from_wire(request.stream);
        let queued = device.open_window(stream, Way::In, request.address, bytes, opened, ended);
        if queued.is_err() {
            self.lanes.end_receiving(transfer, Box::new(|| ()));
        }
        queued
    }

    /// Sends a copy to the host when its turn has come, after `done`.
    pub fn leave(&self, device: &dyn Device, request: &BulkOut, done: Done<()>) -> CudaResult<()> {
        let (transfer, bytes) = (request.transfer, request.bytes);
        if lock(&self.leaving).contains_key(&transfer) {
            return Err(known_already());
        }
        lock(&self.leaving).insert(transfer, None);
        self.owed.fetch_add(1, Ordering::Relaxed);
        let (lanes, leaving) = (Arc::clone(&self.lanes), Arc::clone(&self.leaving));
        let opened = Box::new(move |window: Arc<dyn Window>| {
            let open = |place: &mut Option<_>| place.replace(Arc::clone(&window)).is_none();
            let wanted = lock(&leaving).get_mut(&transfer).is_some_and(open);
            if !wanted {
                // The client has lost interest. Not under the lock: closing begins what comes next in the stream.
                return window.close();
            }
            lanes.send(transfer, bytes, Arc::new(Leaving(window)), bytes);
        });
        let stream = StreamId::from_wire(request.stream);
        let queued = device.open_window(stream, Way::Out, request.address, bytes, opened, done);
        if queued.is_err() {
            self.remove(transfer);
        }
        queued
    }

    fn remove(&self, transfer: u64) -> Option<Option<Arc<dyn Window>>> {
        let removed = lock(&self.leaving).remove(&transfer);
        self.owed.fetch_sub(usize::from(removed.is_some()), Ordering::Relaxed);
        removed
    }

    /// Whether the device may wait until the client has taken a copy.
    pub fn is_owed(&self) -> bool {
        self.owed.load(Ordering::Relaxed) > 0
    }

    /// Whether no copy to the host waits for the client's word that it has everything.
    pub fn is_idle(&self) -> bool {
        lock(&self.leaving).values().all(Option::is_none)
    }

    /// The client has all of a copy to the host, or does not want it: its memory may change.
    pub fn taken(&self, transfer: u64) {
        if let Some(Some(window)) = self.remove(transfer) {
            self.lanes.end_sending(transfer, Box::new(move || window.close()));
        }
    }
}

fn known_already() -> CudaError {
    CudaError::new(code::INVALID_VALUE, "a copy of this number is under way")
}

struct Leaving(Arc<dyn Window>);

impl Source for Leaving {
    fn piece(&self, offset: u64, length: usize, write: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.0.get(offset, length, write)
    }
}

/// A copy to the device. What comes before its turn in the stream is kept here, as much as a client may send ahead.
struct Landing {
    memory: Arc<HostMemory>,
    place: Mutex<Place>,
    /// 2, less one when the window was filled with what was kept, less one when everything has come.
    open_ends: AtomicU8,
}

/// A piece that is kept, where it belongs, and what it counts.
struct Kept {
    offset: u64,
    data: Vec<u8>,
    _charge: Charge,
}

enum Place {
    Kept(Vec<Kept>),
    Open(Arc<dyn Window>),
}

impl Landing {
    fn new(memory: Arc<HostMemory>) -> Landing {
        Landing { memory, place: Mutex::new(Place::Kept(Vec::new())), open_ends: AtomicU8::new(2) }
    }

    fn window(&self) -> Option<Arc<dyn Window>> {
        match &*lock(&self.place) {
            Place::Open(window) => Some(Arc::clone(window)),
            Place::Kept(_) => None,
        }
    }

    fn open(&self, window: Arc<dyn Window>) {
        let before = std::mem::replace(&mut *lock(&self.place), Place::Open(Arc::clone(&window)));
        if let Place::Kept(kept) = before {
            for Kept { offset, data, .. } in kept {
                // Inside the copy, as the lane has checked: it cannot fail.
                let _ = window.put(offset, data.len(), &mut |room| {
                    room.copy_from_slice(&data);
                    Ok(())
                });
            }
        }
        self.one_less();
    }

    fn one_less(&self) {
        if self.open_ends.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(window) = self.window()
        {
            window.close();
        }
    }
}

impl Target for Landing {
    fn piece(&self, offset: u64, length: usize, read: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<()> {
        if let Some(window) = self.window() {
            return window.put(offset, length, read);
        }
        // The lane ends, and its client sends the piece again, until there is room.
        let charge = self.memory.hold(length as u64).map_err(|failure| io::Error::other(failure.text))?;
        let mut data = vec![0; length];
        read(&mut data)?;
        let mut place = lock(&self.place);
        match &mut *place {
            Place::Kept(kept) if kept.len() * PIECE_BYTES >= BULK_AHEAD_BYTES as usize => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "more was sent ahead than may be"))
            }
            Place::Kept(kept) => {
                kept.push(Kept { offset, data, _charge: charge });
                Ok(())
            }
            Place::Open(window) => {
                let window = Arc::clone(window);
                drop(place);
                window.put(offset, length, &mut |room| {
                    room.copy_from_slice(&data);
                    Ok(())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{HOST_BYTES, Ledger};

    #[test]
    fn pieces_before_their_turn_are_the_leases_and_refused_where_it_has_no_room() {
        let memory = Arc::<HostMemory>::default();
        memory.sit(Arc::new(Ledger::create(0).expect("memfd")), 0);
        memory.charge(HOST_BYTES - 3 * PIECE_BYTES as u64).expect("fits");
        let landing = Landing::new(Arc::clone(&memory));
        let piece = |offset: u64| landing.piece(offset, PIECE_BYTES, &mut |_| Ok(()));
        assert!((0..3).all(|number| piece(number * PIECE_BYTES as u64).is_ok()));
        assert!(piece(3 * PIECE_BYTES as u64).is_err(), "no room");
        drop(landing);
        memory.charge(3 * PIECE_BYTES as u64).expect("given back");
    }
}
