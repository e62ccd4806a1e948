//! The one state of this process. It is made at the first use and made anew in a forked child.

use crate::error::{CudaError, CudaResult};
use crate::fork;
use crate::message;
use crate::objects::Objects;
use crate::owner::Owner;
use crate::profile::Profile;
use crate::session::{Session, Unusable};
use sluice_protocol::cuda;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// See the module's documentation.
pub struct Process {
    /// [`fork::count`] when it was made.
    forks: u32,
    pub initialised: AtomicBool,
    profile: OnceLock<Profile>,
    pub objects: Objects,
    pub owner: Owner,
    link: RwLock<Option<Arc<Session>>>,
    /// One attach or detach at a time.
    pub changing: Mutex<()>,
    generations: AtomicU64,
    /// Address ranges of ended generations, with the words of their end.
    ended: Mutex<Vec<(u64, u64, String)>>,
    last_loss: Mutex<Option<String>>,
    /// Primary context: handle (0 until first retained), retain count and flags.
    pub primary: Mutex<u64>,
    pub primary_retained: AtomicU32,
    pub primary_flags: AtomicU32,
    pub default_pool: OnceLock<u64>,
    /// The pool of cuMemAllocAsync; 0 = the default one.
    pub pool: AtomicU64,
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
        link: RwLock::new(None),
        changing: Mutex::new(()),
        generations: AtomicU64::new(0),
        ended: Mutex::new(Vec::new()),
        last_loss: Mutex::new(None),
        primary: Mutex::new(0),
        primary_retained: AtomicU32::new(0),
        primary_flags: AtomicU32::new(0),
        default_pool: OnceLock::new(),
        pool: AtomicU64::new(0),
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

    /// The session for real work, or CUDA_ERROR_DEVICE_UNAVAILABLE with its sentence. A child process asks the lease's
    /// owner first.
    pub fn session(&self) -> CudaResult<Arc<Session>> {
        let found = self.link.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(session) = found {
            match session.usable() {
                Ok(()) => return session.check_sticky().map(|()| session),
                Err(Unusable::Parked) => return Err(self.no_gpu(session.loss())),
                Err(Unusable::Lost(_)) => self.forget_lost(&session),
            }
        }
        if let Some(session) = self.owner.borrow_from_parent(self) {
            return Ok(session);
        }
        let loss = self.last_loss.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Err(self.no_gpu(loss))
    }

    /// The session if there is one that can be used; asks nobody.
    pub fn session_now(&self) -> Option<Arc<Session>> {
        let found = self.link.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        found.usable().is_ok().then_some(found)
    }

    /// The session in whatever state.
    pub fn any_session(&self) -> Option<Arc<Session>> {
        self.link.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn no_gpu(&self, loss: Option<String>) -> CudaError {
        let text = match loss {
            Some(loss) if loss.contains("%gpu attach") => {
                format!("{} Nothing in the notebook was lost.", loss.trim_end())
            }
            Some(loss) => format!(
                "{} Run %gpu attach 0.5 to borrow again, then this cell; nothing in the notebook was lost.",
                loss.trim_end()
            ),
            None => message::NO_GPU.to_owned(),
        };
        message::tell(message::Kind::Lease, &text);
        CudaError::new(cuda::ERROR_DEVICE_UNAVAILABLE, text)
    }

    /// The number of the next generation.
    pub fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A new generation begins with this session.
    pub fn bind(&self, session: Arc<Session>) {
        let old = self.link.write().unwrap_or_else(PoisonError::into_inner).replace(session);
        if let Some(old) = old {
            self.end(&old);
        }
        *self.last_loss.lock().unwrap_or_else(PoisonError::into_inner) = None;
        message::reset();
    }

    /// The words with which the last lease ended, until the next attach.
    pub fn last_loss(&self) -> Option<String> {
        if let Some(session) = self.any_session()
            && let Err(Unusable::Lost(_)) = session.usable()
        {
            self.forget_lost(&session);
        }
        self.last_loss.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn forget_lost(&self, session: &Arc<Session>) {
        let mut link = self.link.write().unwrap_or_else(PoisonError::into_inner);
        if link.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            *link = None;
            drop(link);
            self.end(session);
            *self.last_loss.lock().unwrap_or_else(PoisonError::into_inner) = session.loss();
        }
    }

    /// Ends a session for good.
    pub fn unbind(&self) -> Option<Arc<Session>> {
        let old = self.link.write().unwrap_or_else(PoisonError::into_inner).take()?;
        self.end(&old);
        Some(old)
    }

    fn end(&self, session: &Session) {
        let (base, bytes) = session.range();
        let words = session.loss().unwrap_or_else(|| "Your GPU was given back.".into());
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push((base, bytes, words));
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
