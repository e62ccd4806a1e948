//! What the supervisor knows: leases, workers, keys.  Plain data; the other files of this folder act on it.

use crate::arbiter::Arbiter;
use crate::control::messages::{DeviceReport, LeaseUsage, RunningKernel, SmActivity};
use crate::ledger::{GONE_TIME, Ledger, SLOTS, Totals};
use crate::passing::Channel;
use crate::supervisor::metering::{Activity, Beyond, Pending};
use crate::supervisor::places::Places;
use crate::token::{Claims, Keys, LeaseClaims};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Ended leases whose reason is remembered for clients that come back.
const ENDED: usize = 4096;

/// A worker's number in this supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u64);

/// One lease with workers here.
pub struct Lease {
    pub ledger: Arc<Ledger>,
    /// Of its device.
    pub arbiter: Arc<Arbiter>,
    /// In which the broker granted it.
    pub epoch: u64,
    slots: [bool; SLOTS],
    /// What workers that are gone have used.
    pub retired: Totals,
    /// What its device's multiprocessors did for it, where workers cannot tell.
    pub activity: Activity,
    pub state: LeaseState,
}

/// Where a lease stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    Active,
    /// These workers have not carried out the end yet.
    Ending {
        waiting: HashSet<WorkerId>,
        parked_bytes: u64,
    },
    /// Ended; what is left is parked.
    Ended,
}

/// A place in a lease: its account and the worker's slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    pub lease_id: String,
    pub session_id: String,
    pub slot: usize,
}

/// One worker process.
pub struct Worker {
    pub channel: Arc<Channel>,
    pub pid: u32,
    /// The workspace that the client belongs to, by its session token.
    pub workspace: String,
    /// The client's ephemeral key.
    pub key: String,
    /// Of the session; with it the client shows what it holds.
    pub nonce: [u8; 32],
    pub device_uuid: String,
    pub seat: Seat,
    pub connected: bool,
    /// Since when its client, which was here, is away.
    pub away: Option<Instant>,
    pub parked: bool,
    /// A new lease that the worker is about to take up.
    pub next_seat: Option<Seat>,
    pub clean: bool,
    /// What driver and libraries have taken for it.
    pub beyond: Beyond,
    /// The kernel that it runs, if that runs long.
    pub running: Option<RunningKernel>,
    /// Workers whose memory it has asked for.
    pub linked: HashSet<WorkerId>,
    /// The session's name under its lease before, by which its client still calls it if it has not heard of the new one.
    pub earlier: Option<String>,
}

/// See the module.
#[derive(Default)]
pub struct Pool {
    pub keys: Keys,
    /// Whether `keys` are the broker's, told over the channel that is open now.
    pub has_newest_keys: bool,
    pub epoch: Option<u64>,
    /// Leases that the broker said to hold when the channel was last opened.
    pub held: HashSet<String>,
    pub devices: Vec<DeviceReport>,
    pub places: Places,
    /// By the device's UUID.
    pub arbiters: HashMap<String, Arc<Arbiter>>,
    /// Whether workers tell for how long multiprocessors held their warps; else the devices are asked.
    pub workers_tell: bool,
    /// By the device's UUID: activity that belongs to no lease yet.
    pub pending: HashMap<String, Pending>,
    /// By the device's UUID: the least that driver and libraries were seen to take for a process.
    pub beginnings: HashMap<String, u64>,
    pub leases: BTreeMap<String, Lease>,
    pub workers: HashMap<WorkerId, Worker>,
    ended: VecDeque<(String, String)>,
    next_worker: u64,
    pub stopping: bool,
}

impl Lease {
    /// What the lease has used since it began.
    pub fn totals(&self) -> Totals {
        self.ledger.totals().plus(self.retired)
    }

    /// Empties a slot; what it used stays counted, what it held is free.
    pub fn vacate(&mut self, slot: usize) {
        let gone = self.ledger.clear(slot);
        let used = Totals { charged: 0, memory: 0, beyond: 0, parked: 0, ..gone };
        self.retired = self.retired.plus(used);
        if let Some(taken) = self.slots.get_mut(slot) {
            *taken = false;
        }
    }
}

impl Worker {
    /// A process that has just been made, for a session with these claims.
    pub fn new(channel: Arc<Channel>, pid: u32, claims: &Claims, nonce: [u8; 32], seat: Seat) -> Worker {
        Worker {
            channel,
            pid,
            workspace: claims.sub.clone(),
            key: claims.cnf.ed25519.clone(),
            nonce,
            device_uuid: claims.lease.device_uuid.clone(),
            seat,
            connected: false,
            away: None,
            parked: false,
            next_seat: None,
            clean: false,
            beyond: Beyond::default(),
            running: None,
            linked: HashSet::new(),
            earlier: None,
        }
    }

    /// Whether its client counts as gone, however its connection was lost ([`GONE_TIME`]): the session ends when a new process
    /// of the lease needs its place or its memory.
    pub fn is_gone(&self) -> bool {
        self.away.is_some_and(|since| since.elapsed() >= GONE_TIME)
    }
}

impl Pool {
    /// A pool of these devices without any lease; `workers_tell` of their multiprocessors' activity.
    pub fn new(
        devices: Vec<DeviceReport>,
        arbiters: HashMap<String, Arc<Arbiter>>,
        keys: Keys,
        workers_tell: bool,
    ) -> Pool {
        Pool { devices, arbiters, keys, workers_tell, ..Pool::default() }
    }

    /// Why a lease is over, if it was ended here.
    pub fn end_reason(&self, lease_id: &str) -> Option<&str> {
        self.ended.iter().rev().find(|(id, _)| id == lease_id).map(|(_, reason)| reason.as_str())
    }

    /// Remembers that a lease is over.
    pub fn remember_end(&mut self, lease_id: &str, reason: &str) {
        if self.ended.len() == ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((lease_id.to_owned(), reason.to_owned()));
    }

    /// Takes a slot in a lease; makes the lease's account when this is its first worker here.
    pub fn take_seat(&mut self, claims: &LeaseClaims, session_id: &str, limit: u64) -> Result<(Seat, &Lease), String> {
        let lease_id = claims.id.as_str();
        if !self.leases.contains_key(lease_id) {
            let arbiter =
                self.arbiters.get(&claims.device_uuid).ok_or("the lease's device is not on this GPU server")?;
            let ledger = Ledger::create(limit).map_err(|error| format!("no account for the lease: {error}"))?;
            let ledger = Arc::new(ledger);
            arbiter.add(&ledger, claims.milli, claims.ceiling_milli);
            let lease = Lease {
                ledger,
                arbiter: Arc::clone(arbiter),
                epoch: claims.epoch,
                slots: [false; SLOTS],
                retired: Totals::default(),
                activity: Activity::on(&claims.device_uuid),
                state: LeaseState::Active,
            };
            self.leases.insert(lease_id.to_owned(), lease);
        }
        let beginning = self.beginning(&claims.device_uuid);
        let lease = self.leases.get_mut(lease_id).ok_or("the lease is gone")?;
        let slot = lease.slots.iter().position(|taken| !taken);
        let slot = slot.ok_or_else(|| format!("the lease has {SLOTS} client processes already"))?;
        lease.slots[slot] = true;
        lease.ledger.set_beyond(slot, beginning);
        let seat = Seat { lease_id: lease_id.to_owned(), session_id: session_id.to_owned(), slot };
        Ok((seat, lease))
    }

    /// Gives a seat up; an ended lease without workers is forgotten.
    pub fn give_seat_up(&mut self, seat: &Seat) {
        if let Some(lease) = self.leases.get_mut(&seat.lease_id) {
            lease.vacate(seat.slot);
            if lease.state == LeaseState::Ended && !lease.slots.contains(&true) {
                self.leases.remove(&seat.lease_id);
            }
        }
    }

    /// A number for a new worker.
    pub fn new_worker_id(&mut self) -> WorkerId {
        self.next_worker += 1;
        WorkerId(self.next_worker)
    }

    /// The worker of a session.
    pub fn worker_of_session(&self, session_id: &str, resumes: bool) -> Option<(WorkerId, &Worker)> {
        let is_called = |worker: &Worker| {
            worker.seat.session_id == session_id || resumes && worker.earlier.as_deref() == Some(session_id)
        };
        self.workers.iter().find(|(_, worker)| is_called(worker)).map(|(id, worker)| (*id, worker))
    }

    /// Workers that use a lease (not those that only keep its parked memory).
    pub fn active_workers(&self, lease_id: &str) -> Vec<WorkerId> {
        let uses = |worker: &&(&WorkerId, &Worker)| worker.1.seat.lease_id == lease_id && !worker.1.parked;
        self.workers.iter().collect::<Vec<_>>().iter().filter(uses).map(|(id, _)| **id).collect()
    }

    /// Bytes parked in this host's memory.
    pub fn parked_bytes(&self) -> u64 {
        self.leases.values().map(|lease| lease.totals().parked).sum()
    }

    /// What every lease here has used.
    pub fn usage(&self) -> Vec<LeaseUsage> {
        self.leases.iter().map(|(id, lease)| self.lease_usage(id, lease)).collect()
    }

    fn lease_usage(&self, id: &str, lease: &Lease) -> LeaseUsage {
        let totals = lease.totals();
        let workers = self.workers.values().filter(|w| w.seat.lease_id == id);
        let sessions = workers.clone().filter(|w| w.connected && !w.parked).count();
        // Of several processes the one whose kernel has run longest: the same one from report to report while it runs.
        let running = workers.filter_map(|w| w.running.as_ref()).max_by_key(|kernel| kernel.seconds).cloned();
        let (delivered, promised) = lease.ledger.door().delivery();
        LeaseUsage {
            lease_id: id.to_owned(),
            sessions: sessions as u64,
            memory_bytes: totals.taken(),
            parked_bytes: totals.parked,
            gpu_time_us: totals.gpu_time_ns / 1000,
            sm_activity: if self.workers_tell { Some(told(&totals)) } else { lease.activity.report() },
            delivered_us: delivered.as_micros() as u64,
            promised_us: promised.as_micros() as u64,
            calls: totals.calls,
            bytes_in: totals.bytes_in,
            bytes_out: totals.bytes_out,
            running,
        }
    }
}

/// What workers tell covers all of their GPU time.
fn told(totals: &Totals) -> SmActivity {
    let known_us = totals.gpu_time_ns / 1000;
    // A library's call is active while it runs, and counts as GPU time when it has ended.
    SmActivity { active_us: (totals.sm_active_ns / 1000).min(known_us), known_us, estimated_us: 0 }
}
