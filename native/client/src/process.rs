//! The one state of this process. It is made at the first use and made anew in a forked child.

use crate::device::{Device, MOST_DEVICES, State};
use crate::error::CudaError;
use crate::fork;
use crate::message;
use crate::objects::Objects;
use crate::owner::Owner;
use crate::profile::Profile;
use crate::session::{GIVEN_BACK, Session};
use sluice_protocol::cuda;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// See the module's documentation.
pub struct Process {
    /// [`fork::count`] when it was made.
    forks: u32,
    pub initialised: AtomicBool,
    profile: OnceLock<Profile>,
    pub objects: Objects,
    pub owner: Owner,
    devices: [State; MOST_DEVICES],
    /// GPUs of the largest lease so far; a process that has seen a device goes on seeing it.
    parts: AtomicUsize,
    /// One attach or detach at a time.
    pub changing: Mutex<()>,
    generations: AtomicU64,
    /// Address ranges of ended generations, with the words of their end, and whether there are any.
    ended: Mutex<Vec<(u64, u64, String)>>,
    any_ended: AtomicBool,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// The state of this process.
#[inline]
pub fn get() -> &'static Process {
    let found = PROCESS.load(Ordering::Acquire);
    // SAFETY: a non-null pointer comes from Box::leak below and is never freed.
    if let Some(process) = unsafe { found.as_ref() }
        && process.forks == fork::count()
    {
        return process;
    }
    make(found)
}

#[cold]
fn make(found: *mut Process) -> &'static Process {
    let fresh = Box::into_raw(Box::new(Process {
        forks: fork::count(),
        initialised: AtomicBool::new(false),
        profile: OnceLock::new(),
        objects: Objects::default(),
        owner: Owner::default(),
        devices: Default::default(),
        parts: AtomicUsize::new(1),
        changing: Mutex::new(()),
        generations: AtomicU64::new(0),
        ended: Mutex::new(Vec::new()),
        any_ended: AtomicBool::new(false),
    }));
    match PROCESS.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: fresh was just leaked and is never freed.
        Ok(_) => unsafe { &*fresh },
        Err(other) => {
            // SAFETY: fresh was not published.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: other was published by another thread and is never freed.
            unsafe { &*other }
        }
    }
}

impl Process {
    /// The recorded profile of this process's GPU type.
    pub fn profile(&self) -> &Profile {
        self.profile.get_or_init(Profile::load)
    }

    /// The device with this ordinal, whether or not the program sees so many.
    ///
    /// # Panics
    /// When it is [`MOST_DEVICES`] or more.
    #[inline]
    pub fn device(&'static self, ordinal: usize) -> Device {
        Device { process: self, ordinal, state: &self.devices[ordinal] }
    }

    /// Devices that the program sees.
    pub fn count(&self) -> usize {
        self.profile().seen_of(self.parts.load(Ordering::Acquire))
    }

    /// Every device that the program sees.
    pub fn devices(&'static self) -> impl Iterator<Item = Device> {
        (0..self.count()).map(|ordinal| self.device(ordinal))
    }

    /// A lease has so many GPUs.
    pub fn grows_to(&self, parts: usize) {
        self.parts.fetch_max(parts.min(MOST_DEVICES), Ordering::AcqRel);
    }

    /// Devices with a session that can be used.
    pub fn attached(&'static self) -> usize {
        self.devices().filter(|device| device.session_now().is_some()).count()
    }

    /// The device in whose range an address lies, in whatever state its session is.
    pub fn device_at(&'static self, address: u64) -> Option<Device> {
        self.devices().find(|device| device.any_session().is_some_and(|session| session.owns(address)))
    }

    /// The number of the next generation.
    pub fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A generation has ended.
    pub fn end(&self, session: &Session) {
        let (base, bytes) = session.range();
        let words = session.loss().unwrap_or_else(|| GIVEN_BACK.into());
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push((base, bytes, words));
        self.any_ended.store(true, Ordering::Release);
    }

    /// How many generations have ended in the life of the process: with each the memory of a device went.
    pub fn ended(&self) -> usize {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether any generation has ended: only then can an address be of one.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.any_ended.load(Ordering::Acquire)
    }

    /// The words of the end of the generation to which an address belonged.
    pub fn ended_range(&self, address: u64) -> Option<String> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended
            .iter()
            .find(|(base, bytes, _)| address >= *base && address < base + bytes)
            .map(|(_, _, words)| words.clone())
    }

    /// The error for the use of memory that an ended lease had.
    pub fn stale(&self, address: u64) -> Option<CudaError> {
        let words = self.ended_range(address)?;
        // What to do is another thing here than for the next call.
        let words = words.split(" Run %gpu attach").next().unwrap_or_default();
        let text = format!("{words} This array lay on that GPU and is gone with it: make it again on the new one.");
        message::tell(message::Kind::Lease, &text);
        Some(CudaError::new(cuda::ERROR_INVALID_VALUE, text))
    }
}
