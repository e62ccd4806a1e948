//! How busy real cards' multiprocessors are, and for which lease; and how much memory driver and libraries take of it.
//!
//! The management library is asked by a process of its own, so that the supervisor holds no device.  Of multiprocessors
//! it tells of a card as a whole; since one lease's work is on the device at a time while several want it, what a card did is split by the
//! GPU time that each lease had meanwhile.
//!
//! Of memory it tells what each process has.  What a worker has beyond the memory behind its allocations is what driver
//! and libraries took for contexts, code and work spaces: it counts against the lease.  Reading and account are not of one
//! moment, so that the middle one of three differences counts.

use super::Supervisor;
use super::leases::kill;
use super::pool::{Pool, Seat, Worker, WorkerId};
use crate::control::messages::SmActivity;
use crate::token::LeaseClaims;
use serde::{Deserialize, Serialize};
use sluice_backend::cuda::{Meter, Reading, Source, Weights};
use sluice_backend::log;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// How often cards are asked about memory.
const WEIGH_TIME: Duration = Duration::from_millis(100);
/// And after how many of those times about their multiprocessors.  Workers write their GPU time down more often.
const WEIGHS_A_READING: u32 = 5;
/// Until the meter is started again after it has ended.
const RETRY_TIME: Duration = Duration::from_secs(60);
/// Activity may be seen so much before the GPU time that it belongs to; more is somebody else's.
const LEAD: Duration = Duration::from_secs(1);

/// A line of the meter.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Active(Active),
    Memory(Held),
}

/// What a device did since the line before.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Active {
    uuid: String,
    /// Nanoseconds; nothing when the device did not say.
    active_ns: Option<u64>,
    estimated: bool,
}

/// What memory the processes of a device have.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Held {
    uuid: String,
    /// The system's number of each, and bytes.
    processes: Vec<(u32, u64)>,
}

/// What a device did that no lease had GPU time for yet, nanoseconds: workers are behind by a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pending {
    active: u64,
    estimated: u64,
}

/// What a worker had beyond what lies behind its allocations, at the last three readings.
#[derive(Clone, Debug, Default)]
pub struct Beyond {
    seen: VecDeque<u64>,
}

impl Beyond {
    /// One more; answers the middle one, once there are three.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        self.seen.push_back(bytes);
        if self.seen.len() > 3 {
            self.seen.pop_front();
        }
        let mut sorted: Vec<u64> = self.seen.iter().copied().collect();
        sorted.sort_unstable();
        (sorted.len() == 3).then(|| sorted[1])
    }
}

/// What a device's multiprocessors did for one lease, nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    device: String,
    /// The lease's GPU time when the device was asked last.
    seen: u64,
    /// Of its GPU time, that for which activity is known.
    known: u64,
    active: u64,
    estimated: u64,
}

impl Activity {
    /// Of a lease that begins on this device.
    pub fn on(device: &str) -> Activity {
        Activity { device: device.to_owned(), ..Activity::default() }
    }

    /// As it is reported; nothing while nothing is known.
    pub fn report(&self) -> Option<SmActivity> {
        let active_us = self.active.min(self.known) / 1000;
        let estimated_us = (self.estimated / 1000).min(active_us);
        (self.known > 0).then_some(SmActivity { active_us, known_us: self.known / 1000, estimated_us })
    }

    /// Takes a part of what the device did while the lease had so much GPU time.
    fn take(&mut self, gpu_time: u64, share: f64, pending: Pending) {
        let part = |all: u64| (all as f64 * share) as u64;
        self.known += gpu_time;
        self.active = (self.active + part(pending.active)).min(self.known + LEAD.as_nanos() as u64);
        self.estimated += part(pending.estimated);
    }
}

impl Pool {
    /// Splits what a device did among the leases that had GPU time on it meanwhile.  Without a reading, what they had
    /// stays unknown.
    fn metered(&mut self, line: &Active) {
        let Pool { leases, pending, .. } = self;
        let mut had: Vec<_> = leases
            .values_mut()
            .filter(|lease| lease.activity.device == line.uuid)
            .map(|lease| {
                let now = lease.totals().gpu_time_ns;
                let before = std::mem::replace(&mut lease.activity.seen, now);
                (now.saturating_sub(before), &mut lease.activity)
            })
            .collect();
        let pending = pending.entry(line.uuid.clone()).or_default();
        let Some(active) = line.active_ns else {
            *pending = Pending::default();
            return;
        };
        let read = Pending { active, estimated: if line.estimated { active } else { 0 } };
        let all: u64 = had.iter().map(|(gpu_time, _)| gpu_time).sum();
        if all == 0 {
            // Whoever it was for has written its time down when the device is asked next, or never will.
            *pending = read;
            return;
        }
        let whole = Pending { active: pending.active + read.active, estimated: pending.estimated + read.estimated };
        *pending = Pending::default();
        for (gpu_time, activity) in &mut had {
            activity.take(*gpu_time, *gpu_time as f64 / all as f64, whole);
        }
    }

    /// Whether a lease with this limit has the memory free that driver and libraries take for another process at its
    /// beginning, as far as that is known; or a sentence that says how much it is.
    ///
    /// Idle credit counts as free, as it is asked back when it is wanted; so does what the process has that this one
    /// replaces. Sessions whose clients are gone end if their memory is needed.
    pub fn has_room(&self, claims: &LeaseClaims, limit: u64, replaced: Option<&Seat>) -> Result<(), String> {
        let lease = self.leases.get(&claims.id);
        let gone = replaced
            .filter(|seat| seat.lease_id == claims.id)
            .map_or(0, |seat| lease.map_or(0, |lease| lease.ledger.slot(seat.slot).taken()));
        let used = lease.map_or(0, |lease| lease.ledger.totals().taken().saturating_sub(gone));
        let (free, needed) = (limit.saturating_sub(used), self.beginning(&claims.device_uuid));
        if needed <= free {
            return Ok(());
        }
        let is_away = |worker: &Worker| lease.is_some_and(|lease| lease.ledger.is_gone(worker.seat.slot));
        let is_gone = |worker: &Worker| worker.seat.lease_id == claims.id && (worker.is_gone() || is_away(worker));
        let bytes = |worker: &Worker| lease.map_or(0, |lease| lease.ledger.slot(worker.seat.slot).taken());
        let mut gone: Vec<_> = self.workers.iter().filter(|(_, worker)| is_gone(worker)).collect();
        gone.sort_by_key(|(_, worker)| Reverse(bytes(worker)));
        let mut left = used;
        let suffices = |left: u64| needed <= limit.saturating_sub(left);
        let ending = gone.iter().take_while(|(_, worker)| {
            let is_needed = !suffices(left);
            left = left.saturating_sub(if is_needed { bytes(worker) } else { 0 });
            is_needed
        });
        let ending: Vec<WorkerId> = ending.map(|(id, _)| **id).collect();
        if suffices(left) {
            ending.into_iter().for_each(|id| kill(self, id));
            return Ok(());
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        Err(format!(
            "a process takes {} MiB of this GPU's memory before it allocates any, and the lease has {} MiB of its {} free; \
             end another process or attach with more memory",
            mib(needed),
            free >> 20,
            mib(limit)
        ))
    }

    /// What driver and libraries take for a process that begins on this device; nothing while that is not known.
    pub fn beginning(&self, device: &str) -> u64 {
        self.beginnings.get(device).copied().unwrap_or(0)
    }

    /// Charges leases with what driver and libraries have taken for their workers.
    fn weighed(&mut self, line: &Held) {
        let bytes: HashMap<u32, u64> = line.processes.iter().copied().collect();
        for worker in self.workers.values_mut().filter(|worker| worker.device_uuid == line.uuid) {
            let Some(lease) = self.leases.get(&worker.seat.lease_id) else { continue };
            let Some(bytes) = bytes.get(&worker.pid) else { continue };
            let (slot, backing) = (lease.ledger.slot(worker.seat.slot), lease.ledger.backing(worker.seat.slot));
            // Memory that goes into the host or comes back is on its way; one account or the other is behind.
            if worker.parked || worker.next_seat.is_some() || *bytes < backing {
                continue;
            }
            // Of a piece of the device that is taken for an allocation, the rest is taken too.
            let beyond = bytes - backing + backing.saturating_sub(slot.charged);
            let begins = worker.beyond.seen.len() < 3;
            let Some(beyond) = worker.beyond.take(beyond) else { continue };
            lease.ledger.set_beyond(worker.seat.slot, beyond);
            if begins && beyond > 0 {
                let least = self.beginnings.entry(line.uuid.clone()).or_insert(beyond);
                *least = beyond.min(*least);
            }
        }
    }
}

/// Keeps asking the host's cards, where workers cannot tell.
pub fn start(supervisor: &Arc<Supervisor>) -> io::Result<()> {
    if supervisor.pool().workers_tell {
        return Ok(());
    }
    let supervisor = Arc::clone(supervisor);
    std::thread::Builder::new().name("metering".to_owned()).spawn(move || {
        loop {
            if let Err(error) = follow(&supervisor) {
                log!("gpud: how busy multiprocessors are is not known ({error}); tried again in a minute");
            }
            std::thread::sleep(RETRY_TIME);
        }
    })?;
    Ok(())
}

/// Follows one meter to its end.
fn follow(supervisor: &Supervisor) -> io::Result<()> {
    let uuids: Vec<String> = supervisor.pool().devices.iter().map(|device| device.uuid.clone()).collect();
    let mut meter = Command::new("/proc/self/exe")
        .args(["meter", &supervisor.config.nvml])
        .args(&uuids)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let followed = meter.stdout.take().map(|output| {
        BufReader::new(output).lines().try_for_each(|line| {
            match serde_json::from_str(&line?)? {
                Line::Active(line) => supervisor.pool().metered(&line),
                Line::Memory(line) => supervisor.pool().weighed(&line),
            }
            io::Result::Ok(())
        })
    });
    // What leases get from here on is not known until another meter has begun.
    let none = |uuid: String| Active { uuid, active_ns: None, estimated: false };
    uuids.into_iter().for_each(|uuid| supervisor.pool().metered(&none(uuid)));
    let _ = meter.kill();
    let ended = meter.wait_with_output()?;
    followed.transpose()?;
    let reason = String::from_utf8_lossy(&ended.stderr);
    Err(io::Error::other(reason.trim().trim_start_matches("gpud: ").to_owned()))
}

/// Prints what the devices do, line by line, until nobody reads it: the body of `gpud meter`.
pub fn tell(library: &str, uuids: &[String]) -> io::Result<()> {
    let mut meter = Meter::open(library, uuids)?;
    let mut output = io::stdout().lock();
    // Leases that had GPU time before are looked at from now on.
    for uuid in uuids {
        print(&mut output, &active(Reading { uuid: uuid.clone(), active: None }))?;
    }
    loop {
        for _ in 0..WEIGHS_A_READING {
            std::thread::sleep(WEIGH_TIME);
            for Weights { uuid, processes } in meter.weigh() {
                print(&mut output, &Line::Memory(Held { uuid, processes }))?;
            }
        }
        for reading in meter.read() {
            print(&mut output, &active(reading))?;
        }
    }
}

fn active(reading: Reading) -> Line {
    Line::Active(Active {
        uuid: reading.uuid,
        active_ns: reading.active.map(|(active, _)| active.as_nanos() as u64),
        estimated: reading.active.is_some_and(|(_, source)| source == Source::Estimated),
    })
}

fn print(output: &mut impl Write, line: &Line) -> io::Result<()> {
    writeln!(output, "{}", serde_json::to_string(line)?)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbiter::Arbiter;
    use crate::ledger::GONE_TIME;
    use crate::token::{Claims, Confirmation, Keys};
    use std::collections::HashMap;
    use std::time::Instant;

    const SECOND: u64 = 1_000_000_000;

    /// A pool with two leases on one card.
    fn pool() -> Pool {
        let arbiters = HashMap::from([("GPU-1".to_owned(), Arbiter::start(true).expect("thread"))]);
        let mut pool = Pool::new(Vec::new(), arbiters, Keys::new(), false);
        for id in ["a", "b"] {
            pool.take_seat(&claims(id), id, 1 << 40).expect("a seat");
        }
        pool
    }

    fn session() -> Claims {
        let text = String::new;
        let cnf = Confirmation { ed25519: text() };
        let (iss, aud, sub, jti, sid, lease) = (text(), text(), text(), text(), text(), claims("a"));
        Claims { iss, aud, sub, jti, iat: 0, exp: 0, sid, cnf, lease }
    }

    fn claims(id: &str) -> LeaseClaims {
        LeaseClaims {
            id: id.to_owned(),
            device_uuid: "GPU-1".to_owned(),
            milli: 500,
            ceiling_milli: None,
            memory_bytes: 1,
            epoch: 1,
            gpu_type: "h200".to_owned(),
            expires_at: 0,
        }
    }

    fn worked(pool: &Pool, lease: &str, nanoseconds: u64) {
        pool.leases[lease].ledger.set_gpu_time(0, nanoseconds);
    }

    fn read(pool: &mut Pool, active_ns: Option<u64>, estimated: bool) {
        pool.metered(&Active { uuid: "GPU-1".to_owned(), active_ns, estimated });
    }

    fn known(pool: &Pool, lease: &str) -> Option<(u64, u64, u64)> {
        let sm = pool.leases[lease].activity.report()?;
        Some((sm.active_us, sm.known_us, sm.estimated_us))
    }

    #[test]
    fn what_a_card_did_is_split_by_the_gpu_time_that_leases_had_meanwhile() {
        let mut pool = pool();
        read(&mut pool, None, false);
        worked(&pool, "a", 3 * SECOND);
        worked(&pool, "b", SECOND);
        read(&mut pool, Some(2 * SECOND), false);
        assert_eq!(
            (known(&pool, "a"), known(&pool, "b")),
            (Some((1_500_000, 3_000_000, 0)), Some((500_000, 1_000_000, 0)))
        );
        worked(&pool, "b", 2 * SECOND);
        read(&mut pool, Some(SECOND / 2), true);
        assert_eq!(known(&pool, "a"), Some((1_500_000, 3_000_000, 0)), "it had none");
        assert_eq!(known(&pool, "b"), Some((1_000_000, 2_000_000, 500_000)));
    }

    #[test]
    fn what_was_not_read_is_unknown_and_not_nothing() {
        let mut pool = pool();
        worked(&pool, "a", SECOND);
        assert_eq!(known(&pool, "a"), None);
        // A meter begins: what was before it stays unknown.
        read(&mut pool, None, false);
        worked(&pool, "a", 3 * SECOND);
        read(&mut pool, Some(SECOND), false);
        assert_eq!(known(&pool, "a"), Some((1_000_000, 2_000_000, 0)));
        worked(&pool, "a", 5 * SECOND);
        read(&mut pool, None, false);
        worked(&pool, "a", 6 * SECOND);
        read(&mut pool, Some(0), false);
        assert_eq!(known(&pool, "a"), Some((1_000_000, 3_000_000, 0)));
    }

    /// A worker of the lease, with this number of the system's.
    fn work_for(pool: &mut Pool, lease: &str, pid: u32) {
        let (channel, _far) = crate::passing::Channel::pair().expect("a pair");
        let seat = Seat { lease_id: lease.to_owned(), session_id: lease.to_owned(), slot: 0 };
        let id = pool.new_worker_id();
        pool.workers.insert(id, Worker::new(Arc::new(channel), pid, &session(), [0; 32], seat));
    }

    fn weigh(pool: &mut Pool, processes: &[(u32, u64)]) {
        pool.weighed(&Held { uuid: "GPU-1".to_owned(), processes: processes.to_vec() });
    }

    #[test]
    fn what_a_process_has_beyond_its_allocations_is_charged_and_kept_ready_for_the_next() {
        const MIB: u64 = 1 << 20;
        let mut pool = pool();
        work_for(&mut pool, "a", 11);
        let ledger = Arc::clone(&pool.leases["a"].ledger);
        let beyond = || ledger.totals().beyond;
        assert!(ledger.charge(0, 100 * MIB), "its allocations");
        ledger.set_backing(0, 100 * MIB);
        for _ in 0..2 {
            weigh(&mut pool, &[(11, 600 * MIB), (99, 7 * MIB)]);
            assert_eq!(beyond(), 0, "three readings tell");
        }
        weigh(&mut pool, &[(11, 600 * MIB)]);
        assert_eq!(beyond(), 500 * MIB);
        // Memory was read before the account, or after it.
        weigh(&mut pool, &[(11, 9_000 * MIB)]);
        assert_eq!(beyond(), 500 * MIB);
        weigh(&mut pool, &[(11, 620 * MIB)]);
        weigh(&mut pool, &[(11, 620 * MIB)]);
        assert_eq!(beyond(), 520 * MIB, "a library has begun");
        weigh(&mut pool, &[]);
        assert_eq!(beyond(), 520 * MIB, "not told is not nothing");
        ledger.set_backing(0, 700 * MIB);
        for _ in 0..3 {
            weigh(&mut pool, &[(11, 620 * MIB)]);
        }
        assert_eq!(beyond(), 520 * MIB, "one of the two is behind");
        ledger.set_backing(0, 100 * MIB);

        let another = LeaseClaims { id: "a".to_owned(), ..claims("a") };
        assert!(pool.has_room(&another, 1_020 * MIB, None).is_ok());
        let refused = pool.has_room(&another, 1_000 * MIB, None).expect_err("too little");
        assert!(refused.contains("500 MiB") && refused.contains("480 MiB"), "{refused}");
        let replaced = Seat { lease_id: "a".to_owned(), session_id: "a".to_owned(), slot: 0 };
        assert!(pool.has_room(&another, 1_000 * MIB, Some(&replaced)).is_ok(), "the client begins anew");
        // A stand-in of the worker's process, which is to end.
        let mut child = Command::new("sleep").arg("100").spawn().expect("a process");
        let worker = pool.workers.values_mut().next().expect("there");
        (worker.pid, worker.away) = (child.id(), Instant::now().checked_sub(GONE_TIME / 2));
        assert!(pool.has_room(&another, 1_000 * MIB, None).is_err(), "its client may come back");
        pool.workers.values_mut().for_each(|worker| worker.away = Instant::now().checked_sub(GONE_TIME));
        assert!(pool.has_room(&another, 200 * MIB, None).is_err() && child.try_wait().expect("asked").is_none());
        assert!(pool.has_room(&another, 1_000 * MIB, None).is_ok(), "its client is gone");
        assert!(!child.wait().expect("ended").success());
        let (seat, lease) = pool.take_seat(&another, "second", 1 << 40).expect("a seat");
        assert_eq!(lease.ledger.slot(seat.slot).beyond, 500 * MIB, "until it is measured");
    }

    #[test]
    fn activity_that_is_seen_before_its_gpu_time_is_kept_for_it_once() {
        let mut pool = pool();
        read(&mut pool, None, false);
        read(&mut pool, Some(SECOND / 4), false);
        worked(&pool, "a", SECOND / 2);
        read(&mut pool, Some(0), false);
        assert_eq!(known(&pool, "a"), Some((250_000, 500_000, 0)));
        // Nobody's here: another program of the host has the card.
        for _ in 0..10 {
            read(&mut pool, Some(SECOND / 2), false);
        }
        worked(&pool, "b", SECOND / 2);
        read(&mut pool, Some(SECOND / 4), false);
        assert_eq!(known(&pool, "b"), Some((500_000, 500_000, 0)), "never more than it had");
        assert_eq!(known(&pool, "a"), Some((250_000, 500_000, 0)));
    }
}
