//! The lease of this process: borrowed from the broker (a kernel, `sluice run`), or from the process that owns it.

pub mod broker;
mod interrupt;
pub mod lease;
pub mod socket;
pub mod view;

use crate::device::Device;
use crate::message::interned;
use crate::process::Process;
use crate::session::Session;
use serde_json::{Value, json};
use sluice_transport::variables;
use std::cell::Cell;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// How long the answer that the workspace has no lease of its own is believed.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How long that one was refused, or waited for in vain; not when the wait was stopped, as that cell may run again.
const WAIT_AGAIN: Duration = Duration::from_secs(30);

/// How long a program waits for what it is told to be shown.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// Whether whoever asked for a GPU still waits for it.
pub type StillWaits<'a> = &'a dyn Fn() -> bool;

/// Is told what a first use does: the lease (empty while it is waited for) and a sentence for a person.
pub type Hook = extern "C" fn(*const c_char, *const c_char);

thread_local! {
    /// This thread is coming to a session.
    static BORROWING: Cell<bool> = const { Cell::new(false) };
}

/// What is known of the lease and its owner.
#[derive(Default)]
pub struct Owner {
    state: Mutex<State>,
    /// One question at a time; when the broker may be asked for a lease of the workspace again.
    asking: Mutex<Option<Instant>>,
    hook: Mutex<Option<Hook>>,
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
        if let Some(path) = socket::of_owner()
            && let Ok(answer) = socket::ask(&path, &json!({ "op": "lease" }))
        {
            process.grows_to(lease::parts_of(&answer["lease"]).len());
        }
    }

    /// A session on a lease that is not this process's own: a child of a kernel or of `sluice run` asks the owner; who
    /// owns its leases takes the workspace's, or one that its GPU policy attaches now. Else the sentence that says why,
    /// where there is more to say than that there is none.
    pub fn borrow(&self, device: Device, still_waits: StillWaits) -> Result<Arc<Session>, Option<String>> {
        // What attaches works on the device, too.
        if BORROWING.get() {
            return Err(None);
        }
        let mut ask_again = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = device.session_now() {
            return Ok(session);
        }
        if let Some(path) = socket::of_owner().filter(|_| !self.is_owner()) {
            return lease::from_parent(device, &path).map_err(|failure| refusal(&failure));
        }
        if variables::var("SLUICE_BROKER_URL").is_none() || ask_again.is_some_and(|when| Instant::now() < when) {
            return Err(None);
        }
        // Whoever waited for this turn may have gone meanwhile.
        if !still_waits() {
            return Err(None);
        }
        BORROWING.set(true);
        let result = lease::from_workspace(device, still_waits);
        BORROWING.set(false);
        // Not at each of a program's failing calls, and who has waited in vain does not wait again at the next one. What
        // somebody asked who has gone says nothing to the next.
        let pause = |failure: &Value| if failure["code"] == "refused" { WAIT_AGAIN } else { ASK_AGAIN };
        let failure = result.as_ref().err().filter(|_| still_waits());
        *ask_again = failure.map(|failure| Instant::now() + pause(failure));
        result.map_err(|failure| refusal(&failure))
    }

    /// Tells a person what happens by itself: `lease` is empty while one is waited for.
    fn say(&self, lease: &str, text: &str) {
        crate::journal::note(text);
        let hook = *self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(hook) = hook else {
            eprintln!("sluice: {text}");
            return;
        };
        let (lease, text) = (interned(lease), interned(text));
        let (told, heard) = mpsc::channel();
        // On a thread of its own: somebody may hold the interpreter's lock and wait for us, and an interrupt that Python
        // handles inside of a callback is lost.
        let tell = move || {
            hook(lease.as_ptr(), text.as_ptr());
            let _ = told.send(());
        };
        if std::thread::Builder::new().name("sluice-tell".into()).spawn(tell).is_ok() {
            let _ = heard.recv_timeout(TOLD_WITHIN);
        }
    }

    /// From now on `say` goes there.
    pub fn set_hook(&self, hook: Option<Hook>) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = hook;
    }
}

/// The sentence of a request that was refused, waited in vain or was stopped.
fn refusal(failure: &Value) -> Option<String> {
    let says_why = matches!(failure.get("code").and_then(Value::as_str), Some("refused" | "stopped"));
    failure.get("message").and_then(Value::as_str).filter(|_| says_why).map(str::to_owned)
}
