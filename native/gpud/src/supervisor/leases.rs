//! What happens to leases and workers after they began.

use crate::control::messages::{EndMode, GpudMessage};
use crate::orders::{LeasePart, Order, Report};
use crate::passing::Channel;
use crate::supervisor::Supervisor;
use crate::supervisor::metering::Beyond;
use crate::supervisor::pool::{LeaseState, Pool, Seat, Worker, WorkerId};
use crate::token::{self, from_base64url};
use sluice_backend::log;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A worker that has not carried out the end of its lease by then is killed.
const END_TIME: Duration = Duration::from_secs(8);
/// Memory takes this long on its way to the host, at least: bytes.
const PARKED_A_SECOND: u64 = 1 << 30;

/// Seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64)
}

impl Supervisor {
    /// A worker said something.
    pub(super) fn heard(self: &Arc<Self>, id: WorkerId, report: Report, descriptors: Vec<OwnedFd>) {
        match report {
            Report::Opened => {
                let mut pool = self.pool();
                if let Some(worker) = pool.workers.get_mut(&id) {
                    worker.connected = true;
                    // What was read while the driver began is not what a process takes.
                    worker.beyond = Beyond::default();
                    let (lease_id, session_id) = (worker.seat.lease_id.clone(), worker.seat.session_id.clone());
                    drop(pool);
                    self.tell_broker(GpudMessage::SessionOpened { lease_id, session_id });
                }
            }
            Report::Refused { text } => {
                self.refusals.note(&io::Error::new(io::ErrorKind::PermissionDenied, text));
            }
            Report::Lost | Report::Returned => {
                if let Some(worker) = self.pool().workers.get_mut(&id) {
                    worker.connected = report == Report::Returned;
                    worker.away = (!worker.connected).then(Instant::now);
                }
            }
            Report::Closed { clean } => {
                if let Some(worker) = self.pool().workers.get_mut(&id) {
                    worker.connected = false;
                    worker.clean = clean;
                }
            }
            Report::Ended { parked_bytes } => {
                let mut pool = self.pool();
                if let Some(worker) = pool.workers.get_mut(&id) {
                    worker.parked = true;
                    let lease_id = worker.seat.lease_id.clone();
                    self.end_carried_out(&mut pool, &lease_id, id, parked_bytes);
                }
            }
            Report::Rebind { call, token } => self.rebind(id, call, &token),
            Report::Link { call, nonce } => self.link(id, call, &nonce),
            Report::Resumed { taken } => self.resumed(id, taken),
            Report::Wanted { bytes } => self.recalls.add(id, bytes),
            Report::Image { hash } => {
                let kept = descriptors.into_iter().next().map(|memory| self.images.keep(&hash, memory));
                if let Some(Err(error)) = kept {
                    log!("gpud: an image of a module is not kept: {error}");
                }
            }
            Report::FindImage { hash, proof } => {
                let asks = self.pool().workers.get(&id).map(|worker| (Arc::clone(&worker.channel), worker.nonce));
                let Some((channel, nonce)) = asks else { return };
                let found = self.images.find(&hash, &nonce, &proof);
                let memory: Vec<_> = found.iter().map(|image| image.descriptor()).collect();
                let _ = channel.order(&Order::Image, &memory);
            }
            Report::Running { running } => {
                if let Some(worker) = self.pool().workers.get_mut(&id) {
                    worker.running = running;
                }
            }
        }
    }

    /// A client links the device of one of its sessions with that of another: their workers get a line to each other, once.
    ///
    /// A nonce alone links nothing: both tokens must be of one workspace, and the leases of both must hold. The devices of
    /// a lease have ids of their own in tokens, and nothing in a token joins them but the workspace that holds the lease.
    fn link(&self, id: WorkerId, call: u64, nonce: &str) {
        let (mut pool, nonce) = (self.pool(), from_base64url(nonce));
        let holds =
            |seat: &Seat| pool.leases.get(&seat.lease_id).is_some_and(|lease| lease.state == LeaseState::Active);
        // A client may ask as soon as it has its next lease, before this worker's report of that is heard.
        let linkable =
            |worker: &Worker| worker.next_seat.as_ref().is_some_and(holds) || !worker.parked && holds(&worker.seat);
        let may_ask = pool.workers.get(&id).is_some_and(linkable);
        let other = pool.workers.iter().find(|(_, other)| nonce.as_deref() == Some(&other.nonce));
        let other = other.filter(|(_, other)| may_ask && linkable(other));
        let other = other
            .map(|(id, other)| (*id, Arc::clone(&other.channel), other.device_uuid.clone(), other.workspace.clone()));
        let Some(worker) = pool.workers.get_mut(&id) else { return };
        let linked = other.and_then(|(other, channel, device_uuid, workspace)| {
            let is_own = workspace == worker.workspace;
            let allowed = self.config.peer_memory && is_own && device_uuid != worker.device_uuid;
            let (near, far) = Channel::pair().ok().filter(|_| allowed && worker.linked.insert(other))?;
            channel.order(&Order::Lend, &[far.as_fd()]).ok()?;
            Some(near)
        });
        // A worker that cannot be told is about to end.
        let _ = match linked {
            Some(near) => worker.channel.order(&Order::Linked { call }, &[near.as_fd()]),
            None => worker.channel.order(&Order::NotLinked { call }, &[]),
        };
    }

    /// A worker process is gone, for whatever reason.
    pub(super) fn worker_gone(&self, id: WorkerId) {
        let mut pool = self.pool();
        let Some(worker) = pool.workers.remove(&id) else { return };
        self.end_carried_out(&mut pool, &worker.seat.lease_id, id, 0);
        pool.give_seat_up(&worker.seat);
        if let Some(seat) = &worker.next_seat {
            pool.give_seat_up(seat);
        }
        drop(pool);
        let (lease_id, session_id) = (worker.seat.lease_id, worker.seat.session_id);
        self.tell_broker(GpudMessage::SessionClosed { lease_id, session_id, clean: worker.clean });
    }

    /// Ends a lease: its workers park or end, then the broker hears of it.
    pub fn end_lease(self: &Arc<Self>, lease_id: &str, mode: EndMode, reason: &str) {
        let mut pool = self.pool();
        pool.remember_end(lease_id, reason);
        let active = pool.active_workers(lease_id);
        let mut room = self.config.park_limit.saturating_sub(pool.parked_bytes());
        let ledger = match pool.leases.get_mut(lease_id) {
            Some(lease) if lease.state == LeaseState::Active => {
                lease.state = LeaseState::Ending { waiting: active.iter().copied().collect(), parked_bytes: 0 };
                Arc::clone(&lease.ledger)
            }
            Some(lease) if lease.state == LeaseState::Ended => {
                let totals = lease.totals();
                let (parked_bytes, gpu_time_us) = (totals.parked, totals.gpu_time_ns / 1000);
                drop(pool);
                let lease_id = lease_id.to_owned();
                return self.tell_broker(GpudMessage::LeaseEnded { lease_id, parked_bytes, gpu_time_us });
            }
            Some(_) => return,
            None => {
                drop(pool);
                let lease_id = lease_id.to_owned();
                return self.tell_broker(GpudMessage::LeaseEnded { lease_id, parked_bytes: 0, gpu_time_us: 0 });
            }
        };
        let workspace = active.first().and_then(|id| pool.workers.get(id)).map(|worker| worker.workspace.clone());
        let places = workspace.map_or(0, |workspace| pool.places_to_park(&workspace));
        for (number, id) in active.iter().enumerate() {
            let Some(worker) = pool.workers.get(id) else { continue };
            let mode = if number < places { mode } else { EndMode::Kill };
            // What frames on their way still allocate may be parked as well.
            let order = Order::EndLease { mode, reason: reason.to_owned(), park_limit: room };
            room = room.saturating_sub(ledger.slot(worker.seat.slot).memory);
            let _ = worker.channel.order(&order, &[]);
        }
        self.settle_end(&mut pool, lease_id);
        drop(pool);
        if !active.is_empty() {
            self.kill_later(active.into_iter().collect(), lease_id.to_owned());
        }
    }

    fn kill_later(self: &Arc<Self>, workers: HashSet<WorkerId>, lease_id: String) {
        let supervisor = Arc::clone(self);
        let started = std::thread::Builder::new().name("end-lease".to_owned()).spawn(move || {
            let held = supervisor.pool().leases.get(&lease_id).map_or(0, |lease| lease.totals().memory);
            let deadline = Instant::now() + END_TIME + Duration::from_secs(held / PARKED_A_SECOND);
            while Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(100));
                let pool = supervisor.pool();
                let ending = pool.leases.get(&lease_id).map(|lease| &lease.state);
                if !matches!(ending, Some(LeaseState::Ending { .. })) {
                    return;
                }
            }
            let pool = supervisor.pool();
            if let Some(LeaseState::Ending { waiting, .. }) = pool.leases.get(&lease_id).map(|lease| &lease.state) {
                waiting.intersection(&workers).for_each(|id| kill(&pool, *id));
            }
        });
        if let Err(error) = started {
            log!("gpud: cannot watch the end of lease: {error}");
        }
    }

    fn end_carried_out(&self, pool: &mut Pool, lease_id: &str, id: WorkerId, bytes: u64) {
        if let Some(lease) = pool.leases.get_mut(lease_id)
            && let LeaseState::Ending { waiting, parked_bytes } = &mut lease.state
            && waiting.remove(&id)
        {
            *parked_bytes += bytes;
            self.settle_end(pool, lease_id);
        }
    }

    /// Tells the broker when the last worker has carried out the end.
    fn settle_end(&self, pool: &mut Pool, lease_id: &str) {
        let Some(lease) = pool.leases.get_mut(lease_id) else { return };
        let LeaseState::Ending { waiting, parked_bytes } = &lease.state else { return };
        if !waiting.is_empty() {
            return;
        }
        let parked_bytes = *parked_bytes;
        let gpu_time_us = lease.totals().gpu_time_ns / 1000;
        lease.state = LeaseState::Ended;
        self.tell_broker(GpudMessage::LeaseEnded { lease_id: lease_id.to_owned(), parked_bytes, gpu_time_us });
        if !pool.workers.values().any(|worker| worker.seat.lease_id == lease_id) {
            pool.leases.remove(lease_id);
        }
    }

    /// Parked memory of a lease is not wanted any more: its workers end.
    pub fn drop_parked(&self, lease_id: &str) {
        let pool = self.pool();
        let parked = pool.workers.iter().filter(|(_, w)| w.parked && w.seat.lease_id == lease_id);
        parked.for_each(|(id, _)| kill(&pool, *id));
    }

    /// The broker's word at the opening of the channel: these leases hold.  Every other one ends that it was told of in
    /// the hello, or that is of an earlier epoch; one that began since then may be newer than its word.
    pub fn reconcile(
        self: &Arc<Self>,
        epoch: u64,
        keys: &BTreeMap<String, String>,
        held: Vec<String>,
        told: &HashSet<String>,
    ) {
        let held: HashSet<String> = held.into_iter().collect();
        let mut pool = self.pool();
        pool.epoch = Some(epoch);
        pool.keys = self.config.trusted_keys.clone();
        pool.has_newest_keys = true;
        for (kid, key) in keys {
            if let Some(key) = token::from_base64url(key) {
                pool.keys.insert(kid.clone(), key);
            }
        }
        let stale = pool.leases.iter().filter(|(id, lease)| {
            let old = told.contains(*id) || lease.epoch < epoch;
            lease.state == LeaseState::Active && old && !held.contains(*id)
        });
        let stale: Vec<String> = stale.map(|(id, _)| id.clone()).collect();
        pool.held = held;
        drop(pool);
        for lease_id in stale {
            log!("gpud: lease {lease_id} ends: the broker does not list it among the leases of this server");
            let reason = "Your GPU was given back while the GPU server was out of reach.";
            self.end_lease(&lease_id, EndMode::Kill, reason);
        }
    }

    /// Ends every worker; answers when they are gone or the time is over.
    pub fn stop(self: &Arc<Self>, reason: &str, time: Duration) {
        let leases: Vec<String> = {
            let mut pool = self.pool();
            pool.stopping = true;
            let parked = pool.workers.iter().filter(|(_, worker)| worker.parked);
            parked.for_each(|(id, _)| kill(&pool, *id));
            pool.leases.keys().cloned().collect()
        };
        leases.iter().for_each(|lease_id| self.end_lease(lease_id, EndMode::Kill, reason));
        let deadline = Instant::now() + time;
        while Instant::now() < deadline && !self.pool().workers.is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let pool = self.pool();
        pool.workers.keys().for_each(|id| kill(&pool, *id));
    }

    fn rebind(self: &Arc<Self>, id: WorkerId, call: u64, text: &str) {
        let mut pool = self.pool();
        let Some(worker) = pool.workers.get(&id) else { return };
        let (channel, key, device) = (Arc::clone(&worker.channel), worker.key.clone(), worker.device_uuid.clone());
        let workspace = worker.workspace.clone();
        let busy = worker.next_seat.is_some() || !worker.parked;
        let audience = format!("gpud:{}", self.server_id());
        let seat = token::verify(text, &pool.keys, &audience, now(), false)
            .map_err(|error| error.to_string())
            .and_then(|claims| {
                if claims.cnf.ed25519 != key || claims.sub != workspace {
                    return Err("the session token belongs to another client".to_owned());
                }
                if claims.lease.device_uuid != device {
                    return Err("what is parked lies on another device".to_owned());
                }
                if busy {
                    return Err("the session already has a lease".to_owned());
                }
                self.check_lease(&pool, &claims)?;
                pool.check_places(&claims, Some(id)).map_err(|(_, text)| text)?;
                let memory_bytes = claims.lease.memory_bytes;
                let (seat, lease) = pool.take_seat(&claims.lease, &claims.sid, memory_bytes)?;
                // What driver and libraries hold for it is there already; it must not keep parked memory from its place.
                lease.ledger.set_beyond(seat.slot, 0);
                let ledger = Arc::clone(&lease.ledger);
                Ok((seat, ledger, memory_bytes))
            });
        match seat {
            Err(text) => {
                let _ = channel.order(&Order::NotRebound { call, text }, &[]);
            }
            Ok((seat, ledger, memory_bytes)) => {
                let lease = LeasePart {
                    lease_id: seat.lease_id.clone(),
                    session_id: seat.session_id.clone(),
                    slot: seat.slot,
                    memory_bytes,
                };
                if let Some(worker) = pool.workers.get_mut(&id) {
                    worker.next_seat = Some(seat);
                }
                let _ = channel.order(&Order::Rebound { call, lease }, &[ledger.descriptor()]);
            }
        }
    }

    fn resumed(&self, id: WorkerId, taken: bool) {
        let mut pool = self.pool();
        let Some(worker) = pool.workers.get_mut(&id) else { return };
        let Some(next) = worker.next_seat.take() else { return };
        if !taken {
            return pool.give_seat_up(&next);
        }
        let (lease_id, session_id) = (next.lease_id.clone(), next.session_id.clone());
        let old = std::mem::replace(&mut worker.seat, next);
        worker.earlier = Some(old.session_id.clone());
        worker.parked = false;
        worker.beyond = Beyond::default();
        pool.give_seat_up(&old);
        drop(pool);
        self.tell_broker(GpudMessage::SessionOpened { lease_id, session_id });
    }

    /// Ends a worker whose client is gone; answers whether it was.
    pub(super) fn end_absent(&self, id: WorkerId) -> bool {
        let pool = self.pool();
        let is_gone = |worker: &Worker| {
            pool.leases.get(&worker.seat.lease_id).is_some_and(|lease| lease.ledger.is_gone(worker.seat.slot))
        };
        let ends = pool.workers.get(&id).is_some_and(is_gone);
        if ends {
            log!("gpud: a session whose client is away ends: another of its lease needs the memory");
            kill(&pool, id);
        }
        ends
    }
}

/// Kills a worker's process; its attendant cleans up.
pub(super) fn kill(pool: &Pool, id: WorkerId) {
    if let Some(worker) = pool.workers.get(&id) {
        // SAFETY: the process is our child and not yet reaped while it is in the table.
        unsafe { libc::kill(worker.pid as libc::pid_t, libc::SIGKILL) };
    }
}
