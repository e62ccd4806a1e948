//! Admits connections. Each has a limited time to prove that it is a lease's, and a limited number may be without that proof
//! at once. When there are more, one gives way: the oldest of the peer that has the most. A client proves itself in
//! milliseconds, and a peer that opens connections without end closes only its own. Without root, all workspaces of a
//! host are one peer.

use crate::supervisor::Supervisor;
use sluice_backend::log;
use sluice_transport::stream::Closer;
use sluice_transport::{Listener, Peer};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections without proof that may be open at once.
const UNPROVED: usize = 128;
/// A connection that has not proved anything by then is closed.
pub const HELLO_TIME: Duration = Duration::from_secs(10);

/// Serves the listener for ever.
pub fn serve(supervisor: &Arc<Supervisor>, listener: &Listener) -> ! {
    let unproved = Arc::new(Mutex::new(Unproved::default()));
    for number in 0u64.. {
        let incoming = match listener.accept() {
            Ok(incoming) => incoming,
            Err(error) => {
                log!("gpud: cannot accept a connection: {error}");
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        let Ok(closer) = incoming.closer() else { continue };
        let gives_way = lock(&unproved).add(number, incoming.peer(), closer);
        if let Some(closer) = gives_way {
            closer.close();
        }
        let (supervisor, open) = (Arc::clone(supervisor), Arc::clone(&unproved));
        let started = std::thread::Builder::new().name("hello".to_owned()).spawn(move || {
            let proved = || lock(&open).remove(number);
            let outcome = incoming.open(HELLO_TIME).and_then(|stream| supervisor.greet(stream, proved));
            lock(&open).remove(number);
            if let Err(error) = outcome {
                supervisor.refusals.note(&error);
            }
        });
        if started.is_err() {
            lock(&unproved).remove(number);
        }
    }
    unreachable!("numbers do not end");
}

/// Connections that have not proved anything, the oldest first, each with its number and peer.
struct Unproved<T>(VecDeque<(u64, Peer, T)>);

impl<T> Default for Unproved<T> {
    fn default() -> Unproved<T> {
        Unproved(VecDeque::new())
    }
}

impl<T> Unproved<T> {
    /// Adds a connection; answers the one that gives way to it, if there are too many.
    fn add(&mut self, number: u64, peer: Peer, connection: T) -> Option<T> {
        self.0.push_back((number, peer, connection));
        if self.0.len() <= UNPROVED {
            return None;
        }
        let mut counts = HashMap::<Peer, usize>::new();
        self.0.iter().for_each(|(_, peer, _)| *counts.entry(*peer).or_default() += 1);
        let most = counts.values().max().copied();
        let oldest = self.0.iter().position(|(_, peer, _)| counts.get(peer).copied() == most);
        oldest.and_then(|place| self.0.remove(place)).map(|(_, _, connection)| connection)
    }

    /// A connection has proved its lease, or is over.
    fn remove(&mut self, number: u64) {
        self.0.retain(|(other, _, _)| *other != number);
    }
}

fn lock(unproved: &Mutex<Unproved<Closer>>) -> MutexGuard<'_, Unproved<Closer>> {
    unproved.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_from_one_peer_closes_its_own_connections_the_oldest_first() {
        let mut unproved = Unproved::default();
        let (stranger, other) = (Peer::User(1), Peer::User(2));
        assert_eq!(unproved.add(0, other, 0), None);
        for number in 1..UNPROVED as u64 {
            assert_eq!(unproved.add(number, stranger, number), None);
        }
        for number in UNPROVED as u64..1000 {
            assert_eq!(unproved.add(number, stranger, number), Some(number - UNPROVED as u64 + 1));
        }
        // Another one of the other peer has room as well.
        assert_eq!(unproved.add(1000, other, 1000), Some(1000 - UNPROVED as u64 + 1));
        unproved.remove(0);
        assert_eq!(unproved.add(1001, other, 1001), None, "a place that is given up is free");
    }

    #[test]
    fn of_peers_with_as_many_connections_the_oldest_one_gives_way() {
        let mut unproved = Unproved::default();
        for number in 0..UNPROVED as u64 {
            assert_eq!(unproved.add(number, Peer::User(number as u32), number), None);
        }
        assert_eq!(unproved.add(1000, Peer::User(1000), 1000), Some(0));
        assert_eq!(unproved.add(1001, Peer::User(5), 1001), Some(5), "the user has two");
    }
}
