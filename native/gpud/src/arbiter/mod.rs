//! The arbiter: makes the compute share of leases on one device hold.
//!
//! One thread of the supervisor for each device decides whose turn it is ([`turns`]) and opens and closes the leases'
//! doors ([`door`]) in the memory of their accounts.  Workers bring their work through the door and ring the
//! [`bell`] when somebody has to look.

pub mod bell;
pub mod door;
pub mod turns;

use crate::ledger::Ledger;
use bell::Bell;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use turns::{Demand, Key, Turns};

/// How often what was delivered is written into the accounts of leases that compete.
const STATE_TIME: Duration = Duration::from_millis(100);

/// What of the device a lease has.
#[derive(Clone, Copy)]
struct Part {
    milli: u32,
    ceiling_milli: Option<u32>,
}

struct Member {
    part: Part,
    ledger: Weak<Ledger>,
}

#[derive(Default)]
struct Members {
    next: Key,
    members: BTreeMap<Key, Member>,
}

/// See the module.
pub struct Arbiter {
    members: Mutex<Members>,
    bell: Bell,
}

impl Arbiter {
    /// An arbiter of one device.  One that does not `decide` leaves every door open: for measuring what it does.
    pub fn start(decides: bool) -> io::Result<Arc<Arbiter>> {
        let arbiter = Arc::new(Arbiter { members: Mutex::default(), bell: Bell::new()? });
        let own = Arc::clone(&arbiter);
        std::thread::Builder::new().name("arbiter".to_owned()).spawn(move || own.serve(decides))?;
        Ok(arbiter)
    }

    /// Adds a lease with its share in thousandths, and with what it never gets more than, if that is less than all; it
    /// leaves when its account goes.
    pub fn add(&self, ledger: &Arc<Ledger>, milli: u32, ceiling_milli: Option<u32>) {
        let part = Part { milli, ceiling_milli: ceiling_milli.filter(|milli| *milli < 1000) };
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let key = members.next;
        members.next += 1;
        members.members.insert(key, Member { part, ledger: Arc::downgrade(ledger) });
        drop(members);
        self.bell.ring();
    }

    /// What workers ring.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    fn serve(&self, decides: bool) -> ! {
        let mut turns = Turns::default();
        let mut stated = Duration::ZERO;
        loop {
            let leases = self.leases();
            let now = door::clock();
            let again = if !decides {
                leases.values().for_each(|(_, ledger)| ledger.door().set(true, false));
                None
            } else {
                let demands = leases.iter().map(|(key, (part, ledger))| (*key, demand(*part, ledger, now)));
                let verdict = turns.decide(now, &demands.collect());
                for (key, (part, ledger)) in &leases {
                    let counts = verdict.contended || part.ceiling_milli.is_some();
                    ledger.door().set(verdict.open == Some(*key), counts);
                }
                verdict.again
            };
            if now.saturating_sub(stated) >= STATE_TIME || again.is_none() {
                stated = now;
                for (key, (_, ledger)) in &leases {
                    let account = turns.account(*key);
                    ledger.door().set_delivery(account.delivered, account.promised);
                }
            }
            drop(leases);
            if again != Some(Duration::ZERO) {
                self.bell.wait(again);
            }
        }
    }

    /// The leases that are there, kept from going while they are looked at.
    fn leases(&self) -> BTreeMap<Key, (Part, Arc<Ledger>)> {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let mut there = BTreeMap::new();
        members.members.retain(|key, member| match member.ledger.upgrade() {
            Some(ledger) => {
                there.insert(*key, (member.part, ledger));
                true
            }
            None => false,
        });
        there
    }
}

fn demand(part: Part, ledger: &Ledger, now: Duration) -> Demand {
    let door::Use { running, waiting, left } = ledger.on_device();
    let Part { milli, ceiling_milli } = part;
    Demand { milli, ceiling_milli, running, waiting, idle: now.saturating_sub(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    /// Works for a lease until told to stop; answers how often.
    fn work(ledger: &Ledger, bell: &Bell, inside: &AtomicU32, together: &AtomicBool, stop: &AtomicBool) -> u32 {
        let mut done = 0;
        while !stop.load(Ordering::SeqCst) {
            ledger.enter(0, bell);
            if inside.fetch_add(1, Ordering::SeqCst) > 0 {
                together.store(true, Ordering::SeqCst);
            }
            std::thread::sleep(Duration::from_micros(500));
            inside.fetch_sub(1, Ordering::SeqCst);
            ledger.leave(0, bell);
            done += 1;
        }
        done
    }

    fn compete(decides: bool, shares: [u32; 2]) -> ([u32; 2], bool, (Duration, Duration)) {
        let arbiter = Arbiter::start(decides).expect("thread");
        let ledgers = shares.map(|milli| {
            let ledger = Arc::new(Ledger::create(1).expect("memfd"));
            arbiter.add(&ledger, milli, None);
            ledger
        });
        let (inside, together, stop) = (AtomicU32::new(0), AtomicBool::new(false), AtomicBool::new(false));
        let done = std::thread::scope(|scope| {
            let threads = ledgers.each_ref().map(|ledger| {
                let (bell, inside, together, stop) = (arbiter.bell(), &inside, &together, &stop);
                scope.spawn(move || work(ledger, bell, inside, together, stop))
            });
            std::thread::sleep(Duration::from_millis(1500));
            stop.store(true, Ordering::SeqCst);
            threads.map(|thread| thread.join().expect("works"))
        });
        (done, together.load(Ordering::SeqCst), ledgers[0].door().delivery())
    }

    #[test]
    fn two_leases_take_turns_by_their_shares() {
        let ([small, large], together, (delivered, promised)) = compete(true, [200, 800]);
        assert!(!together, "one lease's work is on the device at a time");
        assert!(small > 0 && large > 2 * small, "{small} and {large}");
        assert!(delivered > Duration::ZERO && promised > Duration::ZERO);
    }

    /// The part of the time in which work of a lease was on the device that always has some, from several workers.
    fn busy_part(ledger: &Ledger, bell: &Bell, workers: usize) -> f64 {
        let (inside, stop) = (Mutex::new((0, Duration::ZERO, Duration::ZERO)), AtomicBool::new(false));
        let work = |slot: usize| {
            while !stop.load(Ordering::SeqCst) {
                ledger.enter(slot, bell);
                let mut state = inside.lock().expect("lock");
                if state.0 == 0 {
                    state.1 = door::clock();
                }
                state.0 += 1;
                drop(state);
                std::thread::sleep(Duration::from_micros(500));
                let mut state = inside.lock().expect("lock");
                state.0 -= 1;
                if state.0 == 0 {
                    let since = state.1;
                    state.2 += door::clock() - since;
                }
                drop(state);
                ledger.leave(slot, bell);
            }
        };
        let begin = door::clock();
        std::thread::scope(|scope| {
            let work = &work;
            (0..workers).for_each(|slot| drop(scope.spawn(move || work(slot))));
            std::thread::sleep(Duration::from_millis(2000));
            stop.store(true, Ordering::SeqCst);
        });
        let used = inside.lock().expect("lock").2;
        used.div_duration_f64(door::clock() - begin)
    }

    #[test]
    fn a_lease_that_is_alone_gets_its_ceiling() {
        let arbiter = Arbiter::start(true).expect("thread");
        for workers in [1, 3] {
            let ledger = Arc::new(Ledger::create(1).expect("memfd"));
            arbiter.add(&ledger, 300, Some(400));
            let part = busy_part(&ledger, arbiter.bell(), workers);
            println!("{workers} workers: {part:.3} of the time");
            assert!((0.32..0.44).contains(&part), "{workers} workers: {part:.3} of the time");
            assert_eq!(ledger.door().delivery(), Default::default(), "nobody else waits");
        }
    }

    #[test]
    fn a_worker_that_died_on_the_device_does_not_keep_a_ceiling_from_ending_its_rest() {
        let arbiter = Arbiter::start(true).expect("thread");
        let ledger = Arc::new(Ledger::create(1).expect("memfd"));
        arbiter.add(&ledger, 500, Some(500));
        ledger.enter(0, arbiter.bell());
        std::thread::sleep(Duration::from_millis(80));
        ledger.clear(0);
        ledger.enter(1, arbiter.bell());
        ledger.leave(1, arbiter.bell());
    }

    #[test]
    fn without_decisions_they_work_at_the_same_time() {
        let ([small, large], together, _) = compete(false, [200, 800]);
        assert!(together && small > 0 && large > 0);
    }

    #[test]
    fn a_worker_that_died_on_the_device_does_not_keep_it() {
        let arbiter = Arbiter::start(true).expect("thread");
        let [dead, alive] = [1, 1].map(|milli| {
            let ledger = Arc::new(Ledger::create(1).expect("memfd"));
            arbiter.add(&ledger, milli * 500, None);
            ledger
        });
        dead.enter(0, arbiter.bell());
        dead.clear(0);
        alive.enter(0, arbiter.bell());
        alive.leave(0, arbiter.bell());
    }
}
