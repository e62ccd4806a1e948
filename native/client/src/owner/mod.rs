//! The lease of this process: borrowed from the broker (a kernel, `sluice run`), or from the process that owns it.

pub mod broker;
pub mod lease;
pub mod socket;

use crate::process::Process;
use crate::session::Session;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is known of the lease and its owner.
#[derive(Default)]
pub struct Owner {
    state: Mutex<State>,
    /// One question to the parent at a time.
    asking: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// `leaseOwner` of the broker's contract, set by `init`.
    owner: Option<Value>,
    socket: Option<String>,
    /// `leaseView` of the lease that this process holds.
    lease: Option<Value>,
    /// Device on which this process has parked memory.
    parked_on: Option<String>,
}

impl Owner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process owns its lease (else it borrows its parent's).
    pub fn is_owner(&self) -> bool {
        self.state().owner.is_some()
    }

    /// A child process of a kernel or of `sluice run`: asks the owner for a session on its lease. None when there is
    /// no owner, or it has no lease.
    pub fn borrow_from_parent(&self, process: &Process) -> Option<Arc<Session>> {
        if self.is_owner() {
            return None;
        }
        let path = std::env::var_os("SLUICE_OWNER_SOCKET")?;
        let _one = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = process.session_now() {
            return Some(session);
        }
        lease::from_parent(process, &path).ok()
    }
}
