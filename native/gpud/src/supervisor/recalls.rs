//! Growths that wait for memory of their lease.
//!
//! One thread follows all of them, with one entry for each session: what a client asks again while its session waits
//! joins that entry. So any number of requests costs the supervisor one thread, and no more entries than workers.

use crate::ledger::{GONE_TIME, Ledger};
use crate::orders::Order;
use crate::passing::Channel;
use crate::supervisor::Supervisor;
use crate::supervisor::pool::WorkerId;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a growth waits for siblings' idle credit, and for the end of those whose clients are gone.
const RECALL_TIME: Duration = Duration::from_secs(1);
/// How often the thread looks whether a growth fits.
const LOOK_TIME: Duration = Duration::from_millis(2);

/// See the module.
#[derive(Default)]
pub struct Recalls {
    waiting: Mutex<Waiting>,
    added: Condvar,
}

type Waiting = BTreeMap<WorkerId, Growth>;

/// A session's growth.
struct Growth {
    bytes: u64,
    /// Nothing before its siblings have been asked.
    asked: Option<Asked>,
}

/// A growth for which memory is on its way.
struct Asked {
    channel: Arc<Channel>,
    ledger: Arc<Ledger>,
    deadline: Instant,
    /// Siblings whose clients are away, with their slots; the largest first, so that few end.
    away: Vec<(WorkerId, usize)>,
    /// Slots of those that end for this growth. What they have used counts until their workers have ended.
    ending: Vec<usize>,
}

impl Asked {
    /// The next sibling to end: none when what has been ended suffices for `bytes`, or no other client is gone.
    ///
    /// The smallest that suffices alone; else the largest, once every client that is away counts as gone.
    fn next_gone(&mut self, bytes: u64) -> Option<(WorkerId, usize)> {
        // Read before the sum that holds it: a worker that ends meanwhile must not count as missing.
        let freed: u64 = self.ending.iter().map(|slot| self.ledger.slot(*slot).used()).sum();
        let missing = self.ledger.used().saturating_add(bytes).saturating_sub(self.ledger.limit());
        if freed >= missing {
            return None;
        }
        let is_gone = |(_, slot): &(WorkerId, usize)| self.ledger.is_gone(*slot);
        let suffices = |(_, slot): &(WorkerId, usize)| self.ledger.slot(*slot).used() >= missing - freed;
        let mut place = self.away.iter().rposition(|sibling| is_gone(sibling) && suffices(sibling));
        if place.is_none()
            && self.away.iter().all(|(_, slot)| self.ledger.is_gone(*slot) || !self.ledger.is_away(*slot))
        {
            place = self.away.iter().position(is_gone);
        }
        Some(self.away.remove(place?))
    }
}

impl Recalls {
    /// A growth of this worker waits.
    pub fn add(&self, id: WorkerId, bytes: u64) {
        join(&mut self.lock(), id, Growth { bytes, asked: None });
        self.added.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all growths, once there is one.
    fn take(&self) -> Waiting {
        let none = |waiting: &mut Waiting| waiting.is_empty();
        let mut waiting = self.added.wait_while(self.lock(), none).unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut waiting)
    }

    /// Puts back growths that go on waiting.
    fn put_back(&self, left: Waiting) {
        let mut waiting = self.lock();
        left.into_iter().for_each(|(id, growth)| join(&mut waiting, id, growth));
    }
}

/// Adds a growth to that of the same session, if there is one: the larger counts, and the deadline stays.
fn join(waiting: &mut Waiting, id: WorkerId, growth: Growth) {
    match waiting.get_mut(&id) {
        Some(before) => {
            before.bytes = before.bytes.max(growth.bytes);
            before.asked = before.asked.take().or(growth.asked);
        }
        None => drop(waiting.insert(id, growth)),
    }
}

impl Supervisor {
    /// Follows growths for ever: the body of the thread.
    pub(super) fn follow_recalls(&self) -> ! {
        loop {
            let mut waiting = self.recalls.take();
            waiting.retain(|id, growth| self.goes_on_waiting(*id, growth));
            if !waiting.is_empty() {
                self.recalls.put_back(waiting);
                std::thread::sleep(LOOK_TIME);
            }
        }
    }

    /// Looks at one growth; false: its worker has been told to try again, or is gone.
    fn goes_on_waiting(&self, id: WorkerId, growth: &mut Growth) -> bool {
        let Some(asked) = &mut growth.asked else {
            growth.asked = self.ask_siblings(id, growth.bytes);
            return growth.asked.is_some();
        };
        while let Some((other, slot)) = asked.next_gone(growth.bytes) {
            if self.end_absent(other) {
                asked.ending.push(slot);
            }
        }
        let fits = asked.ledger.used().saturating_add(growth.bytes) <= asked.ledger.limit();
        if !fits && Instant::now() < asked.deadline {
            return true;
        }
        let _ = asked.channel.order(&Order::Freed, &[]);
        false
    }

    /// Asks a worker's siblings for idle credit, and notes those whose clients stay away. The clients of a lease are on one
    /// host: where one is served, the others could be too. A client that does not come back in time has ended without a
    /// goodbye. Elsewhere gpud waits for such clients. `None`: there is nothing to wait for.
    fn ask_siblings(&self, id: WorkerId, bytes: u64) -> Option<Asked> {
        let pool = self.pool();
        let worker = pool.workers.get(&id)?;
        let (channel, seat) = (Arc::clone(&worker.channel), &worker.seat);
        let ledger = Arc::clone(&pool.leases.get(&seat.lease_id)?.ledger);
        // More than is wanted is missing where driver and libraries have passed the limit.
        let missing = bytes.max(ledger.used().saturating_add(bytes).saturating_sub(ledger.limit()));
        let (mut asked, mut away, mut deadline) = (false, Vec::new(), Instant::now());
        for (other, sibling) in &pool.workers {
            let totals = ledger.slot(sibling.seat.slot);
            if *other == id || sibling.seat.lease_id != seat.lease_id || sibling.parked {
                continue;
            }
            if let Some(since) = sibling.away {
                away.push((totals.used(), (*other, sibling.seat.slot)));
                deadline = deadline.max(since + GONE_TIME);
            } else if totals.charged > totals.memory {
                asked |= sibling.channel.order(&Order::Recall { bytes: missing }, &[]).is_ok();
            }
        }
        if !asked && away.is_empty() {
            let _ = channel.order(&Order::Freed, &[]);
            return None;
        }
        away.sort_by_key(|(used, _)| Reverse(*used));
        let away = away.into_iter().map(|(_, sibling)| sibling).collect();
        Some(Asked { channel, ledger, deadline: deadline + RECALL_TIME, away, ending: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Away;

    #[test]
    fn a_session_has_one_entry_however_often_it_asks() {
        let recalls = Recalls::default();
        for bytes in [5, 9, 7] {
            recalls.add(WorkerId(1), bytes);
        }
        recalls.add(WorkerId(2), 1);
        let waiting = recalls.take();
        assert_eq!(waiting.values().map(|growth| growth.bytes).collect::<Vec<_>>(), [9, 1]);
        recalls.add(WorkerId(1), 11);
        recalls.put_back(waiting);
        assert_eq!(recalls.take().values().map(|growth| growth.bytes).collect::<Vec<_>>(), [11, 1]);
    }

    /// A growth in a lease of 1,000 bytes, with siblings in slots from 1 on that are away and have used so much.
    fn asked(used: &[(u64, u64)]) -> Asked {
        let ledger = Arc::new(Ledger::create(1_000).expect("memfd"));
        for (slot, (charged, beyond)) in (1..).zip(used) {
            assert!(ledger.charge(slot, *charged));
            ledger.set_beyond(slot, *beyond);
            ledger.set_away(slot, Away::Silent);
            ledger.expire(slot);
        }
        let away = (1..=used.len()).map(|slot| (WorkerId(slot as u64), slot)).collect();
        let (channel, _far) = Channel::pair().expect("a pair");
        Asked { channel: Arc::new(channel), ledger, deadline: Instant::now(), away, ending: Vec::new() }
    }

    /// The slots that end for a growth.
    fn ended(asked: &mut Asked, bytes: u64) -> Vec<usize> {
        while let Some((_, slot)) = asked.next_gone(bytes) {
            asked.ending.push(slot);
        }
        asked.ending.clone()
    }

    #[test]
    fn no_more_sessions_end_than_a_growth_needs() {
        assert_eq!(ended(&mut asked(&[(600, 0), (300, 0)]), 100), [0; 0], "it fits");
        assert_eq!(ended(&mut asked(&[(600, 0), (300, 0)]), 500), [1]);
        assert_eq!(ended(&mut asked(&[(600, 0), (300, 0)]), 200), [2], "the smallest that suffices");
        assert_eq!(ended(&mut asked(&[(600, 0), (300, 0)]), 800), [1, 2]);
        assert_eq!(ended(&mut asked(&[(20, 400), (20, 400)]), 500).len(), 1, "what libraries take counts");
    }

    #[test]
    fn a_small_session_waits_for_a_large_one_that_is_not_gone_yet() {
        let mut asked = asked(&[(600, 0), (300, 0)]);
        asked.ledger.set_away(1, Away::Silent);
        assert_eq!(ended(&mut asked, 500), [0; 0]);
        asked.ledger.expire(1);
        assert_eq!(ended(&mut asked, 500), [1]);
    }

    #[test]
    fn a_client_that_is_back_keeps_its_session() {
        let mut asked = asked(&[(600, 0), (300, 0)]);
        asked.ledger.set_present(1);
        assert_eq!(ended(&mut asked, 300), [2]);
        assert_eq!(ended(&mut asked, 900), [2], "although more is missing");
    }

    #[test]
    fn what_has_ended_counts_as_free_before_and_after_its_worker_is_gone() {
        let mut asked = asked(&[(600, 0), (300, 0)]);
        assert_eq!(ended(&mut asked, 500), [1]);
        asked.ledger.clear(1);
        assert_eq!(ended(&mut asked, 500), [1]);
    }
}
