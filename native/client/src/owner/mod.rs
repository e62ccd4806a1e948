//! The lease of this process: borrowed from the broker (a kernel, `sluice run`), or from the process that owns it.

pub mod broker;
pub mod lease;
pub mod socket;
pub mod view;

use crate::device::Device;
use crate::process::Process;
use crate::session::Session;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the answer that the workspace has no lease of its own is believed.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What is known of the lease and its owner.
#[derive(Default)]
pub struct Owner {
    state: Mutex<State>,
    /// One question to the parent at a time; when the broker was last asked for a lease of the whole workspace.
    asking: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct State {
    /// `leaseOwner` of the broker's contract, set by `init`.
    owner: Option<Value>,
    socket: Option<String>,
    /// `leaseView` of the lease that this process holds.
    lease: Option<Value>,
}

impl Owner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process owns its lease (else it borrows its parent's).
    pub fn is_owner(&self) -> bool {
        self.state().owner.is_some()
    }

    /// A child process learns how many GPUs its owner's lease has: programs count devices before they use any.
    pub fn learn_parts(&self, process: &Process) {
        if self.is_owner() {
            return;
        }
        if let Some(path) = std::env::var_os("SLUICE_OWNER_SOCKET")
            && let Ok(answer) = socket::ask(&path, &json!({ "op": "lease" }))
        {
            process.grows_to(lease::parts_of(&answer["lease"]).len());
        }
    }

    /// A child process of a kernel or of `sluice run` asks the owner for a session on its lease; a notebook without a
    /// lease of its own takes the workspace's. None when there is none.
    pub fn borrow_from_parent(&self, device: Device) -> Option<Arc<Session>> {
        let path = std::env::var_os("SLUICE_OWNER_SOCKET").filter(|_| !self.is_owner());
        let mut asked = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = device.session_now() {
            return Some(session);
        }
        let Some(path) = path else {
            // Not at each of a program's failing calls.
            if !self.is_owner() || asked.is_some_and(|when| when.elapsed() < ASK_AGAIN) {
                return None;
            }
            *asked = Some(Instant::now());
            drop(asked);
            return lease::from_workspace(device).ok();
        };
        lease::from_parent(device, &path).ok()
    }
}
