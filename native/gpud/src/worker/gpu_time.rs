//! A session's GPU time in its lease's account.
//!
//! It is written without the session: a thread that writes to a slow client may hold that for long.

use crate::ledger::Ledger;
use crate::worker::lock;
use sluice_backend::Device;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// See the module.
pub struct GpuTime {
    device: Arc<dyn Device>,
    seat: Mutex<Seat>,
}

/// Where time is written, and what the device had measured when that lease began.
struct Seat {
    ledger: Arc<Ledger>,
    slot: usize,
    kernels_before: Duration,
    sm_active_before: Duration,
}

impl GpuTime {
    /// Of a new device, whose time belongs to this lease from the beginning.
    pub fn new(device: Arc<dyn Device>, ledger: Arc<Ledger>, slot: usize) -> GpuTime {
        let seat = Seat { ledger, slot, kernels_before: Duration::ZERO, sm_active_before: Duration::ZERO };
        GpuTime { device, seat: Mutex::new(seat) }
    }

    /// From now on time belongs to another lease.
    pub fn sit(&self, ledger: Arc<Ledger>, slot: usize) {
        let kernels_before = self.device.gpu_time();
        let sm_active_before = self.device.sm_active().unwrap_or_default();
        *lock(&self.seat) = Seat { ledger, slot, kernels_before, sm_active_before };
    }

    /// Writes what was measured into the account.
    pub fn settle(&self) {
        let seat = lock(&self.seat);
        let nanoseconds = |now: Duration, before| now.saturating_sub(before).as_nanos() as u64;
        seat.ledger.set_gpu_time(seat.slot, nanoseconds(self.device.gpu_time(), seat.kernels_before));
        if let Some(active) = self.device.sm_active() {
            seat.ledger.set_sm_active(seat.slot, nanoseconds(active, seat.sm_active_before));
        }
    }
}
