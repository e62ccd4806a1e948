//! Objects of the libraries in this process: handles, plans, generators.

use super::remote::{self};
use super::value::Contents;
use super::{Loaded, Outcome, Refusal};
use crate::arena::Lookup;
use crate::device::Device;
use crate::driver::stream;
use crate::objects::{Table, new_handle};
use crate::session::Session;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All of them.
#[derive(Default)]
pub struct Objects {
    pub(super) objects: Table<Object>,
    pub(super) values: Table<Mutex<Contents>>,
}

/// A number for a new object; some libraries' handles are C ints.
pub(super) fn new_number(small: bool) -> u64 {
    static SMALL: AtomicU32 = AtomicU32::new(1);
    if small { u64::from(SMALL.fetch_add(1, Ordering::Relaxed)) } else { new_handle() }
}

/// A call that belongs to an object's state.
#[derive(Clone)]
pub(super) struct Remembered {
    pub function: u32,
    pub arguments: Vec<u8>,
    /// The value that was set, for the function that asks for it.
    pub value: usize,
    /// Device memory it names; when that is gone, the call is not repeated.
    pub addresses: Vec<u64>,
    /// A stream it names.
    pub stream: Option<usize>,
}

/// See the module.
pub(super) struct Object {
    pub loaded: Loaded,
    make: Remembered,
    state: Mutex<State>,
    /// Ordinal of the device on which it was made.
    pub device: usize,
    /// The server's stream in which it works, and 1 where its scalars lie in device memory.
    pub stream: AtomicU64,
    pub pointer_mode: AtomicU32,
}

struct State {
    /// Generation in which it exists at the server.
    made: u64,
    sets: Vec<Remembered>,
}

impl Object {
    /// Just made at the server of this session.
    pub fn new(loaded: Loaded, make: Remembered, session: &Session) -> Self {
        Self {
            loaded,
            make,
            state: Mutex::new(State { made: session.generation, sets: Vec::new() }),
            device: session.device,
            stream: AtomicU64::new(0),
            pointer_mode: AtomicU32::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it exists at the server of this session.
    pub fn is_in(&self, session: &Session) -> bool {
        self.lock().made == session.generation
    }

    /// What the function set last.
    pub fn value_of(&self, function: u32) -> Option<usize> {
        self.lock().sets.iter().find(|set| set.function == function).map(|set| set.value)
    }

    /// Notes a call that changed the object.
    pub fn remember(&self, set: Remembered) {
        let mut state = self.lock();
        match state.sets.iter_mut().find(|known| known.function == set.function) {
            Some(known) => *known = set,
            None => state.sets.push(set),
        }
    }

    /// Makes it, with all that was set, at a server that does not have it. It is of use on its own device alone.
    pub fn ensure(&self, device: Device, session: &Session) -> Outcome<()> {
        if self.device != session.device {
            let text =
                format!("this handle was made on device {}, and the current device is {}", self.device, session.device);
            return Err(Refusal::new(self.loaded.status().invalid_value, text));
        }
        let mut state = self.lock();
        if state.made == session.generation {
            return Ok(());
        }
        let repeat = |call: &Remembered| -> Outcome<()> {
            let answer = remote::call(session, self.loaded, call.function, 0, &call.arguments)?;
            if answer.status == 0 { Ok(()) } else { Err(Refusal::new(answer.status, answer.text)) }
        };
        repeat(&self.make)?;
        for set in &state.sets {
            let live = |address: &u64| matches!(session.lookup(*address, 0), Lookup::Live { .. });
            if set.addresses.iter().all(live) {
                if let Some(number) = set.stream {
                    stream::at_server(device, session, number)
                        .map_err(|error| Refusal::from_cuda(self.loaded.status(), error))?;
                }
                repeat(set)?;
            }
        }
        state.made = session.generation;
        Ok(())
    }
}
