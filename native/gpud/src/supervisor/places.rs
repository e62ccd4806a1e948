//! Places for client processes: how many a lease may have at once.
//!
//! A device's places are shared out like the device itself, so that no lease can take another one's: what the broker
//! grants together is at most the whole device.

use crate::ledger::SLOTS;
use crate::supervisor::hello::Refusal;
use crate::supervisor::leases::kill;
use crate::supervisor::pool::{Pool, WorkerId};
use crate::token::Claims;
use sluice_protocol::handshake::RefusedCode;

/// Places of one device, where gpud may open files enough.
const MOST_ON_A_DEVICE: usize = 512;
/// Minimum places of a lease.
const LEAST_OF_A_LEASE: usize = 4;
/// Processes of one workspace that may lie parked here: as many as one lease can have.
const MOST_PARKED: usize = SLOTS;
/// Thousandths of a device.
const WHOLE: u64 = 1000;

/// Places of each device.
#[derive(Clone, Copy, Debug)]
pub struct Places(usize);

impl Default for Places {
    fn default() -> Places {
        Places(MOST_ON_A_DEVICE)
    }
}

impl Places {
    /// Places of each device, where the workers of all devices together may open `files` files.
    pub fn of(devices: usize, files: usize) -> Places {
        Places((files / devices.max(1)).clamp(LEAST_OF_A_LEASE, MOST_ON_A_DEVICE))
    }

    /// Places of a lease: its part of the device's places, by the larger of compute share and memory.
    fn of_lease(self, milli: u32, memory_bytes: u64, device_bytes: u64) -> usize {
        let memory = u128::from(memory_bytes) * u128::from(WHOLE) / u128::from(device_bytes.max(1));
        let part = u128::from(milli).max(memory).min(WHOLE.into()) as usize;
        (self.0 * part / WHOLE as usize).clamp(LEAST_OF_A_LEASE, SLOTS)
    }
}

impl Pool {
    /// Whether a lease has a place for one more process; `replaced` gives up its own place. In a full lease, the process
    /// with the client that has been away longest ends, once that client counts as gone.
    pub fn check_places(&self, claims: &Claims, replaced: Option<WorkerId>) -> Result<(), Refusal> {
        let lease = &claims.lease;
        let device = self.devices.iter().find(|device| device.uuid == lease.device_uuid);
        let device_bytes = device.map_or(lease.memory_bytes, |device| device.memory_bytes);
        let places = self.places.of_lease(lease.milli, lease.memory_bytes, device_bytes);
        let workers = self.workers.iter().filter(|(id, worker)| {
            let seats = [Some(&worker.seat), worker.next_seat.as_ref()];
            Some(**id) != replaced && seats.into_iter().flatten().any(|seat| seat.lease_id == lease.id)
        });
        let taken = workers.clone().count();
        if taken < places {
            return Ok(());
        }
        let gone = workers.filter(|(_, worker)| worker.is_gone()).min_by_key(|(_, worker)| worker.away);
        match gone.map(|(id, _)| *id) {
            Some(id) if taken == places => {
                kill(self, id);
                Ok(())
            }
            _ => {
                let text = format!(
                    "your lease has {taken} client processes already, which is all that its share of the GPU server \
                     allows; end one of them, or attach with a larger share"
                );
                Err((RefusedCode::Unavailable, text))
            }
        }
    }

    /// How many more processes of a workspace may be parked.
    pub fn places_to_park(&self, workspace: &str) -> usize {
        let parked = self.workers.values().filter(|worker| worker.parked && worker.workspace == workspace);
        MOST_PARKED.saturating_sub(parked.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::GONE_TIME;
    use crate::passing::Channel;
    use crate::supervisor::pool::{Seat, Worker};
    use std::process::Command;
    use std::sync::Arc;
    use std::time::Instant;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_lease_has_places_by_the_larger_of_compute_and_memory() {
        let places = Places::default();
        assert_eq!(places.of_lease(50, 0, 80 * GIB), 25);
        assert_eq!(places.of_lease(50, 16 * GIB, 80 * GIB), 102);
        assert_eq!(places.of_lease(1, GIB / 8, 80 * GIB), LEAST_OF_A_LEASE);
        assert_eq!(places.of_lease(1000, 80 * GIB, 80 * GIB), SLOTS);
        assert_eq!(places.of_lease(u32::MAX, u64::MAX, 1), SLOTS);
    }

    #[test]
    fn leases_that_fill_a_device_fit_into_its_places() {
        for leases in 1..=20u32 {
            let all =
                leases as usize * Places::default().of_lease(1000 / leases, 80 * GIB / u64::from(leases), 80 * GIB);
            assert!(all <= MOST_ON_A_DEVICE, "{leases} leases have {all} places");
        }
    }

    fn claims(lease: &str) -> Claims {
        let claims = serde_json::json!({
            "iss": "", "aud": "", "sub": "ws-1", "jti": "", "iat": 0, "exp": 0, "sid": "", "cnf": {"ed25519": ""},
            "lease": {"id": lease, "epoch": 1, "deviceUuid": "GPU-1", "milli": 1, "memoryBytes": 0, "gpuType": "soft",
                      "expiresAt": 0},
        });
        serde_json::from_value(claims).expect("claims")
    }

    fn add(pool: &mut Pool, lease: &str, pid: u32) -> WorkerId {
        let (channel, _far) = Channel::pair().expect("a pair");
        let seat = Seat { lease_id: lease.to_owned(), session_id: String::new(), slot: 0 };
        let id = pool.new_worker_id();
        pool.workers.insert(id, Worker::new(Arc::new(channel), pid, &claims(lease), [0; 32], seat));
        id
    }

    #[test]
    fn a_process_whose_client_is_gone_gives_its_place_up() {
        let mut child = Command::new("sleep").arg("100").spawn().expect("a process");
        let mut pool = Pool::default();
        let ids: Vec<WorkerId> = (0..LEAST_OF_A_LEASE).map(|_| add(&mut pool, "lea-1", child.id())).collect();
        assert!(pool.check_places(&claims("lea-2"), None).is_ok(), "another lease has its own");
        assert!(pool.check_places(&claims("lea-1"), Some(ids[0])).is_ok(), "the client begins anew");
        let (code, text) = pool.check_places(&claims("lea-1"), None).expect_err("full");
        assert!(code == RefusedCode::Unavailable && text.contains("4 client processes"), "{text}");
        let away = |time| Instant::now().checked_sub(time);
        pool.workers.get_mut(&ids[1]).expect("there").away = away(GONE_TIME / 2);
        assert!(pool.check_places(&claims("lea-1"), None).is_err(), "its client may come back");
        pool.workers.get_mut(&ids[1]).expect("there").away = away(GONE_TIME);
        assert!(pool.check_places(&claims("lea-1"), None).is_ok());
        assert!(!child.wait().expect("ended").success());
    }

    #[test]
    fn a_workspace_parks_no_more_processes_than_a_lease_has() {
        let mut pool = Pool::default();
        let ids: Vec<WorkerId> = (0..MOST_PARKED).map(|lease| add(&mut pool, &format!("lea-{lease}"), 0)).collect();
        assert_eq!(pool.places_to_park("ws-1"), MOST_PARKED, "none is parked");
        ids.iter().for_each(|id| pool.workers.get_mut(id).expect("there").parked = true);
        assert_eq!((pool.places_to_park("ws-1"), pool.places_to_park("ws-2")), (0, MOST_PARKED));
    }

    #[test]
    fn few_files_leave_few_places() {
        assert_eq!(Places::of(8, 256).of_lease(500, 0, GIB), 16);
        assert_eq!(Places::of(0, 0).of_lease(500, 0, GIB), LEAST_OF_A_LEASE);
    }
}
