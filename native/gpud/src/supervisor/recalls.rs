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
    /// Siblings that are to end: of those whose clients are gone, no more than `bytes` need.
    fn take_gone(&mut self, bytes: u64) -> Vec<WorkerId> {
        let missing = self.ledger.used().saturating_add(bytes).saturating_sub(self.ledger.limit());
        let charged = |slot: usize| self.ledger.slot(slot).charged;
        let mut freed: u64 = self.ending.iter().map(|slot| charged(*slot)).sum();
        let mut taken = Vec::new();
        for (id, slot) in self.away.extract_if(.., |(_, slot)| {
            let is_needed = freed < missing && self.ledger.is_gone(*slot);
            freed += if is_needed { charged(*slot) } else { 0 };
            is_needed
        }) {
            self.ending.push(slot);
            taken.push(id);
        }
        taken
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
        for other in asked.take_gone(growth.bytes) {
            self.end_absent(other);
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
                away.push((totals.charged, (*other, sibling.seat.slot)));
                deadline = deadline.max(since + GONE_TIME);
            } else if totals.charged > totals.memory {
                asked |= sibling.channel.order(&Order::Recall { bytes: missing }, &[]).is_ok();
            }
        }
        if !asked && away.is_empty() {
            let _ = channel.order(&Order::Freed, &[]);
            return None;
        }
        away.sort_by_key(|(charged, _)| Reverse(*charged));
        let away = away.into_iter().map(|(_, sibling)| sibling).collect();
        Some(Asked { channel, ledger, deadline: deadline + RECALL_TIME, away, ending: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
