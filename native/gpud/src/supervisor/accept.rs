//! Admits connections: a bounded number at a time, each with a limited time to say who it is. When there are more,
//! the one that has said nothing for longest gives way: whoever means it is through in milliseconds.

use crate::supervisor::Supervisor;
use sluice_backend::log;
use sluice_transport::Listener;
use sluice_transport::stream::Closer;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections that may be between accept and welcome at once.
const HANDSHAKES: usize = 128;
/// A connection that has not said who it is by then is closed.
pub const HELLO_TIME: Duration = Duration::from_secs(10);

/// Serves the listener for ever.
pub fn serve(supervisor: &Arc<Supervisor>, listener: &Listener) -> ! {
    let open = Arc::new(Mutex::new(VecDeque::new()));
    for number in 0u64.. {
        let incoming = match listener.accept() {
            Ok(incoming) => incoming,
            Err(error) => {
                log!("gpud: cannot accept a connection: {error}");
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        let Ok(closer) = incoming.closer() else { continue };
        let oldest = {
            let mut open = lock(&open);
            open.push_back((number, closer));
            if open.len() > HANDSHAKES { open.pop_front() } else { None }
        };
        if let Some((_, oldest)) = oldest {
            oldest.close();
        }
        let (supervisor, waiting) = (Arc::clone(supervisor), Arc::clone(&open));
        let started = std::thread::Builder::new().name("hello".to_owned()).spawn(move || {
            let outcome = incoming.open(HELLO_TIME).and_then(|stream| supervisor.greet(stream));
            lock(&waiting).retain(|(other, _)| *other != number);
            if let Err(error) = outcome {
                supervisor.refusals.note(&error);
            }
        });
        if started.is_err() {
            lock(&open).retain(|(other, _)| *other != number);
        }
    }
    unreachable!("numbers do not end");
}

/// Connections that have not said who they are, the oldest first.
type Waiting = VecDeque<(u64, Closer)>;

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
