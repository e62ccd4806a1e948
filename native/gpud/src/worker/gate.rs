//! The worker's way through its lease's door.

use crate::arbiter::bell::Bell;
use crate::ledger::Ledger;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the worker sits: its lease's account and its slot there.
type Seat = (Arc<Ledger>, usize);

/// See the module.
pub struct Gate {
    seat: Mutex<Seat>,
    bell: Bell,
}

impl Gate {
    /// For a worker of this lease.
    pub fn new(ledger: Arc<Ledger>, slot: usize, bell: Bell) -> Gate {
        Gate { seat: Mutex::new((ledger, slot)), bell }
    }

    /// From now on the worker works for another lease; nothing of it runs or waits.
    pub fn sit(&self, ledger: Arc<Ledger>, slot: usize) {
        *self.seat.lock().unwrap_or_else(PoisonError::into_inner) = (ledger, slot);
    }

    fn seat(&self) -> Seat {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl sluice_backend::Gate for Gate {
    fn enter(&self) -> bool {
        let (ledger, slot) = self.seat();
        ledger.enter(slot, &self.bell)
    }

    fn leave(&self) {
        let (ledger, slot) = self.seat();
        ledger.leave(slot, &self.bell);
    }

    fn charge(&self, bytes: u64) -> bool {
        let (ledger, slot) = self.seat();
        ledger.charge(slot, bytes)
    }

    fn discharge(&self, bytes: u64) {
        let (ledger, slot) = self.seat();
        ledger.release(slot, bytes);
    }
}
