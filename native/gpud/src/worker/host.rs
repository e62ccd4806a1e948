//! What device work asks of the client's process: its functions, and its memory for the copies of graphs.

use crate::worker::host_memory::Charge;
use crate::worker::outbox::Outbox;
use sluice_backend::graph::HostSide;
use sluice_protocol::control::{HostData, HostReached, HostWanted};
use sluice_protocol::frame::CHUNK_BYTES;
use sluice_protocol::wire::Wire;
use sluice_protocol::{Failure, cuda, opcode};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Longest copy out of the client's memory by one node of a graph.
const MOST_BYTES: u64 = 64 << 30;
/// Up to this length, copies run on any thread; see [`sluice_backend::timeline`].
const SHORT_BYTES: usize = 1 << 20;

/// What goes on when the client has answered.
enum Waiting {
    Function(Box<dyn FnOnce() + Send>),
    Data { data: Vec<u8>, bytes: u64, charge: Charge, then: Box<dyn FnOnce(Vec<u8>) + Send> },
}

#[derive(Default)]
struct State {
    next: u64,
    waiting: HashMap<u64, Waiting>,
}

/// See the module.
pub struct Host {
    outbox: Arc<Outbox>,
    state: Mutex<State>,
    /// Functions that are in a stream and have not returned.
    owed: AtomicU64,
    /// A graph asks for the client, whenever it is launched.
    asked_by_graphs: AtomicBool,
}

fn unknown() -> Failure {
    Failure::new(cuda::ERROR_INVALID_VALUE, "nothing waits under this ticket")
}

impl Host {
    /// Speaks through this outbox.
    pub fn new(outbox: Arc<Outbox>) -> Host {
        Host { outbox, state: Mutex::default(), owed: AtomicU64::new(0), asked_by_graphs: AtomicBool::new(false) }
    }

    /// A function of the client is put into a stream.
    pub fn owe(&self) {
        self.owed.fetch_add(1, Ordering::Relaxed);
    }

    /// It could not be put there, or has returned.
    pub fn forgive(&self) {
        let _ = self.owed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |owed| owed.checked_sub(1));
    }

    /// There is a graph with such work, whose launches are not followed.
    pub fn owe_always(&self) {
        self.asked_by_graphs.store(true, Ordering::Relaxed);
    }

    /// Whether the device may wait for the client, now or when what is queued comes to it.
    pub fn is_owed(&self) -> bool {
        self.asked_by_graphs.load(Ordering::Relaxed) || self.owed.load(Ordering::Relaxed) > 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, waiting: Waiting) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        let ticket = state.next;
        state.waiting.insert(ticket, waiting);
        ticket
    }

    fn tell<'a>(&self, opcode: u16, notice: &impl Wire<'a>) {
        let mut payload = Vec::new();
        notice.put(&mut payload);
        self.outbox.send(opcode, 0, &payload);
    }

    /// Whether nothing waits for the client.
    pub fn is_idle(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// A function of the client has returned.
    pub fn returned(&self, ticket: u64) -> Result<(), Failure> {
        let mut state = self.lock();
        if !matches!(state.waiting.get(&ticket), Some(Waiting::Function(_))) {
            return Err(unknown());
        }
        let waiting = state.waiting.remove(&ticket);
        drop(state);
        self.forgive();
        if let Some(Waiting::Function(go_on)) = waiting {
            go_on();
        }
        Ok(())
    }

    /// Data that were asked for, front to end.
    pub fn supplied(&self, ticket: u64, offset: u64, part: &[u8]) -> Result<(), Failure> {
        let mut state = self.lock();
        let Some(Waiting::Data { data, bytes, charge, .. }) = state.waiting.get_mut(&ticket) else {
            return Err(unknown());
        };
        if offset != data.len() as u64 || part.len() as u64 > *bytes - offset {
            return Err(Failure::new(cuda::ERROR_INVALID_VALUE, "these data were not asked for"));
        }
        charge.grow(part.len() as u64)?;
        data.extend_from_slice(part);
        if (data.len() as u64) < *bytes {
            return Ok(());
        }
        let waiting = state.waiting.remove(&ticket);
        drop(state);
        if let Some(Waiting::Data { data, then, charge, .. }) = waiting {
            then(data);
            drop(charge);
        }
        Ok(())
    }
}

impl HostSide for Host {
    fn call(&self, function: u64, go_on: Box<dyn FnOnce() + Send>) {
        let ticket = self.wait(Waiting::Function(go_on));
        self.tell(opcode::HOST_REACHED, &HostReached { ticket, function });
    }

    fn fetch(&self, copy: u64, bytes: u64, then: Box<dyn FnOnce(Vec<u8>) + Send>) {
        if bytes == 0 || bytes > MOST_BYTES {
            return then(Vec::new());
        }
        let charge = self.outbox.memory.nothing();
        let ticket = self.wait(Waiting::Data { data: Vec::new(), bytes, charge, then });
        self.tell(opcode::HOST_WANTED, &HostWanted { ticket, copy });
    }

    fn deliver(&self, copy: u64, data: Vec<u8>) {
        for (index, part) in data.chunks(CHUNK_BYTES).enumerate() {
            // Short data may be delivered by the thread that reads acknowledgements.
            let _due = (data.len() > SHORT_BYTES).then(|| self.outbox.expect_with_room(part.len() as u64));
            let offset = (index * CHUNK_BYTES) as u64;
            self.tell(opcode::HOST_DATA, &HostData { copy, offset, data: part });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{HOST_BYTES, Ledger};
    use std::sync::mpsc::channel;

    #[test]
    fn data_come_front_to_end_and_nothing_more() {
        let host = Host::new(Arc::default());
        let (sender, got) = channel();
        host.fetch(5, 6, Box::new(move |data| sender.send(data).expect("heard")));
        assert!(host.supplied(1, 3, &[4, 5, 6]).is_err(), "not the front");
        assert!(host.supplied(1, 0, &[0; 7]).is_err(), "too much");
        assert_eq!(host.supplied(1, 0, &[1, 2, 3]), Ok(()));
        assert!(got.try_recv().is_err());
        assert_eq!(host.supplied(1, 3, &[4, 5, 6]), Ok(()));
        assert_eq!(got.try_recv(), Ok(vec![1, 2, 3, 4, 5, 6]));
        assert!(host.supplied(1, 0, &[1]).is_err() && host.returned(1).is_err());
    }

    #[test]
    fn data_that_the_lease_has_no_room_for_are_refused() {
        let outbox = Arc::<Outbox>::default();
        let ledger = Arc::new(Ledger::create(0).expect("memfd"));
        outbox.memory.sit(Arc::clone(&ledger), 0);
        let host = Host::new(Arc::clone(&outbox));
        host.fetch(5, MOST_BYTES, Box::new(|_| ()));
        outbox.memory.charge(HOST_BYTES - CHUNK_BYTES as u64).expect("fits");
        let part = vec![0; CHUNK_BYTES / 2];
        assert_eq!(host.supplied(1, 0, &part), Ok(()));
        let refused =
            host.supplied(1, part.len() as u64, &part).expect_err("no room beside the frame that asks for it");
        assert_eq!(refused.code, cuda::ERROR_OUT_OF_MEMORY);
        drop(host);
        outbox.memory.charge(part.len() as u64).expect("given back");
    }

    #[test]
    fn a_ticket_is_of_its_kind_and_used_once() {
        let host = Host::new(Arc::default());
        let (sender, got) = channel();
        host.call(9, Box::new(move || sender.send(()).expect("heard")));
        assert!(host.supplied(1, 0, &[1]).is_err());
        assert_eq!(host.returned(1), Ok(()));
        assert_eq!(got.try_recv(), Ok(()));
        assert!(host.returned(1).is_err());
    }
}
