//! What gpud asks of this process in stream order: host functions, and the program's memory for copies of graphs.

pub mod rows;
mod threads;

use crate::connection::Connection;
use crate::process;
use rows::Rows;
use sluice_protocol::control::{EventPassed, HostData, HostReached, HostWanted};
use sluice_protocol::frame::CHUNK_BYTES;
use sluice_protocol::messages::{HostReturned, HostSupplied};
use sluice_protocol::{DecodeError, Reader, Wire, opcode};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use threads::Threads;

/// CUhostFn
pub type Function = unsafe extern "C" fn(*mut c_void);
/// CUstreamCallback
pub type Callback = unsafe extern "C" fn(usize, u32, *mut c_void);

/// A function of the program, or one of this library.
#[derive(Clone)]
pub enum Call {
    /// Not called after an error.
    Function {
        function: Function,
        data: usize,
    },
    /// Called with the error, if there is one.
    Callback {
        callback: Callback,
        stream: usize,
        data: usize,
    },
    Own(Arc<dyn Fn() + Send + Sync>),
}

impl Call {
    /// # Safety
    /// The program's own function and argument.
    unsafe fn run(self, status: u32) {
        // SAFETY: as the caller's.
        unsafe {
            match self {
                Self::Function { function, data } if status == 0 => function(data as *mut c_void),
                Self::Function { .. } => {}
                Self::Own(function) => function(),
                Self::Callback { callback, stream, data } => callback(stream, status, data as *mut c_void),
            }
        }
    }
}

struct Registered {
    call: Call,
    /// Forgotten when it has run; else it belongs to a graph, and stays for the life of the session.
    once: bool,
}

/// One session's side of host work.
#[derive(Default)]
pub struct HostSide {
    connection: OnceLock<Weak<Connection>>,
    functions: Mutex<HashMap<u64, Registered>>,
    copies: Mutex<HashMap<u64, Rows>>,
    next: AtomicU64,
    threads: Threads,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HostSide {
    /// Where answers go.
    pub fn connect(&self, connection: &Arc<Connection>) {
        let _ = self.connection.set(Arc::downgrade(connection));
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Keeps a function under a number that gpud is given; `once` forgets it when it has run.
    pub fn add_function(&self, call: Call, once: bool) -> u64 {
        let number = self.number();
        lock(&self.functions).insert(number, Registered { call, once });
        number
    }

    /// Runs a job on a thread of its own.
    pub fn run(&self, job: Box<dyn FnOnce() + Send>) {
        self.threads.run(job);
    }

    /// The function was not given to gpud after all.
    pub fn remove_function(&self, number: u64) {
        lock(&self.functions).remove(&number);
    }

    /// Keeps a copy's place under a number that gpud is given.
    pub fn add_copy(&self, rows: Rows) -> u64 {
        let number = self.number();
        lock(&self.copies).insert(number, rows);
        number
    }

    /// Nothing will run in the streams any more: callbacks are told, functions are not called.
    pub fn fail(&self, status: u32) {
        let ended: Vec<Call> = {
            let mut functions = lock(&self.functions);
            let waiting: Vec<u64> = functions.iter().filter(|(_, f)| f.once).map(|(number, _)| *number).collect();
            waiting.iter().filter_map(|number| functions.remove(number)).map(|function| function.call).collect()
        };
        for call in ended {
            // SAFETY: the program's function, called once.
            self.threads.run(Box::new(move || unsafe { call.run(status) }));
        }
    }

    /// Takes a notice. Called on the reading thread: nothing here waits.
    pub fn notice(&self, code: u16, payload: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(payload);
        match code {
            opcode::HOST_REACHED => self.reached(HostReached::take(&mut reader)?),
            opcode::HOST_WANTED => self.wanted(HostWanted::take(&mut reader)?),
            opcode::HOST_DATA => {
                let part = HostData::take(&mut reader)?;
                let rows = lock(&self.copies).get(&part.copy).copied();
                if let Some(rows) = rows {
                    // SAFETY: the program gave this memory for the copy of a graph that it has launched.
                    unsafe { rows.scatter(part.offset as usize, part.data) };
                }
            }
            opcode::EVENT_PASSED => {
                let passed = EventPassed::take(&mut reader)?;
                if let Ok(event) = process::get().objects.events.get(passed.event as usize) {
                    event.passed(passed.recording);
                }
            }
            // Newer servers may tell more than this client knows.
            _ => {}
        }
        Ok(())
    }

    fn reached(&self, reached: HostReached) {
        let call = {
            let mut functions = lock(&self.functions);
            match functions.get(&reached.function).map(|found| (found.call.clone(), found.once)) {
                Some((call, true)) => {
                    functions.remove(&reached.function);
                    Some(call)
                }
                Some((call, false)) => Some(call),
                None => None,
            }
        };
        let connection = self.connection.get().cloned();
        self.threads.run(Box::new(move || {
            if let Some(call) = call {
                // SAFETY: the program's function, in its turn of the stream.
                unsafe { call.run(0) };
            }
            if let Some(connection) = connection.and_then(|connection| connection.upgrade()) {
                // A connection that is lost by now has no stream that waits.
                let _ = connection.post(&HostReturned { ticket: reached.ticket });
            }
        }));
    }

    fn wanted(&self, wanted: HostWanted) {
        let rows = lock(&self.copies).get(&wanted.copy).copied();
        let (Some(rows), Some(connection)) = (rows, self.connection.get().cloned()) else { return };
        self.threads.run(Box::new(move || {
            let Some(connection) = connection.upgrade() else { return };
            for offset in (0..rows.bytes()).step_by(CHUNK_BYTES) {
                // SAFETY: the program gave this memory for the copy of a graph that it has launched.
                let data = unsafe { rows.gather(offset, CHUNK_BYTES) };
                let part = HostSupplied { ticket: wanted.ticket, offset: offset as u64, data: &data };
                if connection.post(&part).is_err() {
                    return;
                }
            }
        }));
    }
}
