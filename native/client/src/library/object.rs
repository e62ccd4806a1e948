//! Objects of the libraries in this process: handles, plans, generators, and drafts (descriptors that are written here
//! and travel with their first use).

use super::encode::Encoded;
use super::remote;
use super::value::Contents;
use super::{Loaded, Outcome, Refusal};
use crate::arena::Lookup;
use crate::device::Device;
use crate::driver::stream;
use crate::objects::{Table, new_handle};
use crate::process;
use crate::session::Session;
use sluice_api::libraries::{Function, Way};
use sluice_protocol::Wire;
use sluice_protocol::library::{Argument, HOST_BYTES};
use sluice_protocol::messages::LibraryPost;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

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

/// A number in host memory behind an address that a call passes on.
#[derive(Clone, Copy)]
pub(super) struct HostNumber {
    pub address: u64,
    /// Where its contents lie in the encoded arguments.
    pub place: usize,
}

impl HostNumber {
    /// What lies there now. How long the number is, only its reader knows: no number reaches into the next page, which
    /// may not be readable.
    ///
    /// # Safety
    /// The caller's memory.
    pub unsafe fn contents(self) -> [u8; HOST_BYTES] {
        let mut contents = [0; HOST_BYTES];
        let length = HOST_BYTES.min(4096 - self.address as usize % 4096);
        // SAFETY: a page is readable as a whole or not at all.
        unsafe { std::ptr::copy_nonoverlapping(self.address as *const u8, contents.as_mut_ptr(), length) };
        contents
    }
}

/// A call that belongs to an object's state.
#[derive(Clone)]
pub(super) struct Remembered {
    pub function: u32,
    /// Tells calls of one function apart: the attribute that is written.
    pub key: u64,
    pub arguments: Vec<u8>,
    /// Hash of what it says, but for where anything lies.
    pub says: u64,
    /// The value that was set, for the function that asks for it.
    pub value: usize,
    /// Device memory it names; when that is gone, the call is not repeated.
    pub addresses: Vec<u64>,
    /// A stream it names.
    pub stream: Option<usize>,
    /// Other objects that it names.
    pub references: Vec<Arc<Object>>,
    pub hosts: Vec<HostNumber>,
    pub fill: Option<Arc<Fill>>,
}

impl Remembered {
    pub fn new(function: &Function, value: usize, encoded: &mut Encoded) -> Self {
        Self {
            function: function.number,
            key: encoded.attribute,
            arguments: std::mem::take(&mut encoded.arguments),
            says: encoded.says,
            value,
            addresses: std::mem::take(&mut encoded.addresses),
            stream: encoded.named_stream,
            references: std::mem::take(&mut encoded.references),
            hosts: std::mem::take(&mut encoded.hosts),
            fill: None,
        }
    }

    /// Takes the host's numbers as they are now; says whether one has changed.
    fn refresh(&mut self) -> bool {
        let mut changed = false;
        for host in &self.hosts {
            // SAFETY: memory that the program named for as long as it uses the object.
            let now = unsafe { host.contents() };
            if let Some(known) = self.arguments.get_mut(host.place..host.place + HOST_BYTES)
                && known != now
            {
                known.copy_from_slice(&now);
                changed = true;
            }
        }
        changed
    }
}

/// Hash of all that has been said of an object, in whatever order. What names nothing but places and streams says nothing.
fn said(make: &Remembered, sets: &[Remembered]) -> u64 {
    let nothing = DefaultHasher::new().finish();
    let sets = sets.iter().filter(|set| set.says != nothing).map(|set| {
        let mut said = DefaultHasher::new();
        (set.function, set.key, set.says).hash(&mut said);
        said.finish()
    });
    sets.fold(make.says, u64::wrapping_add)
}

/// What a question put into drafts of the program's: they all belong to the same call.
pub(super) struct Fill {
    targets: Vec<(Weak<Object>, u64)>,
    /// Generations in which it has been asked.
    asked: Mutex<Vec<u64>>,
}

impl Fill {
    /// Asked just now at the server of this session.
    pub fn new(targets: &[Arc<Object>], session: &Session) -> Arc<Self> {
        let targets = targets.iter().map(|target| (Arc::downgrade(target), target.number)).collect();
        Arc::new(Self { targets, asked: Mutex::new(vec![session.generation]) })
    }
}

/// See the module.
pub(super) struct Object {
    pub loaded: Loaded,
    pub number: u64,
    /// Travels with its first use, and what the server has against it is told then.
    pub draft: bool,
    make: Remembered,
    said: AtomicU64,
    state: Mutex<State>,
    /// Ordinal of the device on which it was made.
    pub device: usize,
    /// The stream in which it works, as the server and as the program names it.
    pub stream: AtomicU64,
    pub named_stream: AtomicUsize,
    /// 1 where its scalars lie in device memory.
    pub pointer_mode: AtomicU32,
    /// The data type that was written into it last.
    pub data_type: AtomicU32,
    /// The second of the dimensions that were written into it last; 0 where there is none.
    pub second_dimension: AtomicU32,
    /// Where its number lies, in a library whose objects lie in place; else 0.
    pub place: usize,
    /// The call that ends it, when the program has ended it.
    ended: OnceLock<(u32, Vec<u8>)>,
}

#[derive(Default)]
struct State {
    /// Generations in which it exists at the server, or is being made by the thread that holds the session's lock.
    made: Vec<u64>,
    /// Those in which everything has been said of it.
    complete: Vec<u64>,
    sets: Vec<Remembered>,
}

impl Object {
    /// Just made at the server of this session, or a draft of which nobody has heard.
    pub fn new(loaded: Loaded, number: u64, make: Remembered, draft: bool, session: &Session) -> Self {
        let made = if draft { Vec::new() } else { vec![session.generation] };
        Self {
            loaded,
            number,
            draft,
            said: AtomicU64::new(said(&make, &[])),
            make,
            state: Mutex::new(State { complete: made.clone(), made, sets: Vec::new() }),
            device: session.device,
            stream: AtomicU64::new(0),
            named_stream: AtomicUsize::new(0),
            pointer_mode: AtomicU32::new(0),
            data_type: AtomicU32::new(0),
            second_dimension: AtomicU32::new(0),
            place: 0,
            ended: OnceLock::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it exists at the server of this session.
    pub fn is_in(&self, session: &Session) -> bool {
        self.lock().made.contains(&session.generation)
    }

    /// What the function set last.
    pub fn value_of(&self, function: u32) -> Option<usize> {
        self.lock().sets.iter().find(|set| set.function == function).map(|set| set.value)
    }

    /// What the function was called with last, encoded.
    pub fn said_by(&self, function: u32) -> Option<Vec<u8>> {
        self.lock().sets.iter().find(|set| set.function == function).map(|set| set.arguments.clone())
    }

    /// The slot of the first choice with which it was made.
    pub fn made_as(&self) -> usize {
        self.make.value
    }

    /// Notes a call that changed the object.
    pub fn remember(&self, set: Remembered) {
        let mut state = self.lock();
        // What is said last counts, also against other functions.
        state.sets.retain(|known| known.function != set.function || known.key != set.key);
        state.sets.push(set);
        self.said.store(said(&self.make, &state.sets), Ordering::Release);
    }

    /// Hash of all that has been said of it.
    pub fn said(&self) -> u64 {
        self.said.load(Ordering::Acquire)
    }

    /// Makes it, with all that was set, at a server that does not have it. What is no draft is of use on its own device
    /// alone.
    pub fn ensure(self: &Arc<Self>, device: Device, session: &Session) -> Outcome<()> {
        {
            let mut state = self.lock();
            // All of them: each takes what it finds.
            let changed = state.sets.iter_mut().fold(false, |changed, set| set.refresh() | changed);
            if changed && let Some(at) = state.made.iter().position(|made| *made == session.generation) {
                state.made.swap_remove(at);
                state.complete.retain(|complete| *complete != session.generation);
                drop(state);
                self.end_in(session);
            } else if state.complete.contains(&session.generation) {
                return Ok(());
            }
        }
        let _one = session.libraries.making();
        self.make_in(device, session)
    }

    /// As [`Object::ensure`], by the one thread that makes objects in this session.
    fn make_in(self: &Arc<Self>, device: Device, session: &Session) -> Outcome<()> {
        if self.device != session.device && !self.draft {
            let text =
                format!("this handle was made on device {}, and the current device is {}", self.device, session.device);
            return Err(Refusal::new(self.loaded.status().invalid_value, text));
        }
        let sets = {
            let mut state = self.lock();
            if state.made.contains(&session.generation) {
                return Ok(());
            }
            let made_by = self.loaded.library.numbered(self.make.function);
            if made_by.is_some_and(|make| make.way == Way::Join) {
                let text = "this communicator ended with the GPU that it was made on: initialise it again";
                return Err(Refusal::new(self.loaded.status().invalid_value, text));
            }
            state.made.push(session.generation);
            state.sets.clone()
        };
        let outcome = self.say(device, session, &sets);
        let mut state = self.lock();
        match outcome {
            Ok(()) => state.complete.push(session.generation),
            Err(_) => state.made.retain(|made| *made != session.generation),
        }
        outcome
    }

    fn say(&self, device: Device, session: &Session, sets: &[Remembered]) -> Outcome<()> {
        for other in &self.make.references {
            other.make_in(device, session)?;
        }
        self.repeat(session, &self.make)?;
        let live = |address: &u64| matches!(session.lookup(*address, 0), Lookup::Live { .. });
        for set in sets.iter().filter(|set| set.addresses.iter().all(live)) {
            for other in &set.references {
                other.make_in(device, session)?;
            }
            if let Some(number) = set.stream {
                stream::at_server(device, session, number)
                    .map_err(|error| Refusal::from_cuda(self.loaded.status(), error))?;
            }
            match &set.fill {
                Some(fill) => self.fill(device, session, set, fill)?,
                None => self.repeat(session, set)?,
            }
        }
        Ok(())
    }

    /// Asks again what filled this object and others. Those that the program has ended are made for the moment.
    fn fill(&self, device: Device, session: &Session, set: &Remembered, fill: &Fill) -> Outcome<()> {
        {
            let mut asked = fill.asked.lock().unwrap_or_else(PoisonError::into_inner);
            if asked.contains(&session.generation) {
                return Ok(());
            }
            asked.push(session.generation);
        }
        let mut moments = Vec::new();
        for (target, number) in &fill.targets {
            match target.upgrade() {
                Some(target) => target.make_in(device, session)?,
                None => {
                    let moment = self.like(*number);
                    post(session, self.loaded, self.make.function, 0, &moment)?;
                    moments.push(*number);
                }
            }
        }
        self.repeat(session, set)?;
        let end = self.loaded.library.numbered(self.make.function);
        let end = end.and_then(|make| self.loaded.library.end_of(make, Way::End));
        for number in moments {
            let mut arguments = Vec::new();
            Argument::End(number).put(&mut arguments);
            post(session, self.loaded, end.map_or(0, |end| end.number), 0, &arguments)?;
        }
        Ok(())
    }

    /// The arguments that make an object like this one under another number.
    fn like(&self, number: u64) -> Vec<u8> {
        let mut arguments = Vec::new();
        for argument in sluice_protocol::library::take_arguments(&self.make.arguments).unwrap_or_default() {
            if matches!(argument, Argument::New(_)) { Argument::New(number) } else { argument }.put(&mut arguments);
        }
        arguments
    }

    fn repeat(&self, session: &Session, call: &Remembered) -> Outcome<()> {
        if self.draft {
            return post(session, self.loaded, call.function, 0, &call.arguments);
        }
        let answer = remote::call(session, self.loaded, call.function, 0, &call.arguments)?;
        if answer.status == 0 { Ok(()) } else { Err(Refusal::new(answer.status, answer.text)) }
    }

    /// The program has ended it. The server hears so when nothing that the program has names it any more.
    pub fn end(&self, function: u32, arguments: Vec<u8>) {
        let _ = self.ended.set((function, arguments));
    }

    /// The program has made another object where this one lay. The library has not always a function for that, so the
    /// server forgets it.
    pub fn forget(&self) {
        let mut arguments = Vec::new();
        Argument::End(self.number).put(&mut arguments);
        self.end(self.make.function, arguments);
    }

    /// It is to be made anew in this session.
    pub fn unmake(&self, session: &Session) {
        let mut state = self.lock();
        state.complete.retain(|complete| *complete != session.generation);
        if let Some(at) = state.made.iter().position(|made| *made == session.generation) {
            state.made.swap_remove(at);
            drop(state);
            self.end_in(session);
        }
    }

    fn end_in(&self, session: &Session) {
        let make = self.loaded.library.numbered(self.make.function);
        let Some(end) = make.and_then(|make| self.loaded.library.end_of(make, Way::End)) else { return };
        let mut arguments = Vec::new();
        Argument::End(self.number).put(&mut arguments);
        // A connection that is lost by now ends the object as well.
        let _ = post(session, self.loaded, end.number, 0, &arguments);
    }
}

/// Sends a call for whose answer nobody waits.
pub(super) fn post(session: &Session, loaded: Loaded, function: u32, stream: u64, arguments: &[u8]) -> Outcome<()> {
    let post = LibraryPost { library: loaded.id, function, stream, arguments };
    session.connection.post(&post).map_err(|error| Refusal::from_cuda(loaded.status(), error))
}

impl Drop for Object {
    fn drop(&mut self) {
        let Some((function, arguments)) = self.ended.get() else { return };
        let made = std::mem::take(&mut self.state.get_mut().unwrap_or_else(PoisonError::into_inner).made);
        let stream = self.stream.load(Ordering::Relaxed);
        for session in process::get().devices().filter_map(Device::session_now) {
            if made.contains(&session.generation) {
                // A connection that is lost by now ends the object as well.
                let _ = post(&session, self.loaded, *function, stream, arguments);
            }
        }
    }
}
