//! A device of this process, as a CUDA call works on it: its session, its primary context and its pools.

use crate::error::{CudaError, CudaResult};
use crate::message;
use crate::objects::{HEAP_LIMIT, LIMITS};
use crate::process::Process;
use crate::session::{Session, Unusable};
use sluice_protocol::cuda;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// Devices that a process can have: one lease's.
pub const MOST_DEVICES: usize = 16;

/// One device of the process, by its ordinal.
#[derive(Clone, Copy)]
pub struct Device {
    pub process: &'static Process,
    pub ordinal: usize,
    pub state: &'static State,
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.state, other.state)
    }
}

/// What belongs to a device, whether or not there is a lease on it.
#[derive(Default)]
pub struct State {
    link: RwLock<Option<Arc<Session>>>,
    last_loss: Mutex<Option<String>>,
    /// [`Device::check_lost`] has told of it.
    loss_told: AtomicBool,
    /// Primary context: handle (0 until first retained), retain count and flags.
    pub primary: Mutex<u64>,
    pub primary_retained: AtomicU32,
    pub primary_flags: AtomicU32,
    pub default_pool: OnceLock<u64>,
    /// The pool of cuMemAllocAsync; 0 = the default one.
    pub pool: AtomicU64,
    /// Whether memory of a pool was freed since the last synchronization.
    pub freed_to_pools: AtomicBool,
    /// Attributes of the default stream.
    pub legacy_attributes: Mutex<BTreeMap<u32, [u8; 64]>>,
    /// Bytes of the heap for `malloc` in kernels that the program has asked for; 0: it has not.
    pub heap: AtomicU64,
    /// Bytes of the buffer of `printf` in kernels that the program has asked for; 0: it has not.
    pub printed: AtomicU64,
    /// Bytes of stack for each thread of a kernel that the program has asked for; 0: it has not.
    pub stack: AtomicU64,
    /// The stream of copies from and to other devices.
    pub copies: OnceLock<usize>,
    /// Where this process has parked memory of this device: the id of the pool's GPU.
    pub parked_on: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Device {
    /// The GPU of the lease that this device is, as the lease counts them.
    pub fn part(self) -> usize {
        self.process.profile().part(self.ordinal)
    }

    /// The session for real work, or CUDA_ERROR_DEVICE_UNAVAILABLE with its sentence. A child process asks the lease's
    /// owner first.
    #[inline]
    pub fn session(self) -> CudaResult<Arc<Session>> {
        let found = self.state.link.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut loss = None;
        if let Some(session) = found {
            match session.usable() {
                Ok(()) => return session.check_sticky().map(|()| session),
                Err(Unusable::Parked) => loss = session.loss(),
                Err(Unusable::Lost(_)) => self.forget_lost(&session),
            }
        }
        match self.process.owner.borrow(self, &|| true) {
            Ok(session) => Ok(session),
            Err(refused) => {
                let known = refused.or(loss).or_else(|| lock(&self.state.last_loss).clone());
                let text = self.no_gpu(known);
                message::tell(message::Kind::Lease, &text);
                Err(CudaError::new(cuda::ERROR_DEVICE_UNAVAILABLE, text))
            }
        }
    }

    /// How large the heap for `malloc` in kernels is to be, bytes.
    pub fn heap_limit(self) -> u64 {
        match self.state.heap.load(Ordering::Acquire) {
            0 => LIMITS[HEAP_LIMIT] as u64,
            bytes => bytes,
        }
    }

    /// The session if there is one that can be used; asks nobody.
    pub fn session_now(self) -> Option<Arc<Session>> {
        self.any_session().filter(|session| session.usable().is_ok())
    }

    /// The session if there is one or one can be had; whoever has none goes on without.
    pub fn session_if_any(self) -> Option<Arc<Session>> {
        self.session_now().or_else(|| self.process.owner.borrow(self, &|| true).ok())
    }

    /// The session in whatever state.
    pub fn any_session(self) -> Option<Arc<Session>> {
        self.state.link.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why there is none, and what to do.
    fn no_gpu(self, loss: Option<String>) -> String {
        match loss {
            Some(loss) if loss.contains("%gpu attach") => {
                format!("{} Nothing in the notebook was lost.", loss.trim_end())
            }
            Some(loss) => format!(
                "{} Run %gpu attach 0.5 to borrow again, then this cell; nothing in the notebook was lost.",
                loss.trim_end()
            ),
            None => match self.process.attached() {
                0 => message::NO_GPU.to_owned(),
                held => format!(
                    "this is device {} and the lease has {held} of {} GPUs. Run %gpu detach, then %gpu attach {}.",
                    self.ordinal,
                    self.process.count(),
                    self.process.count(),
                ),
            },
        }
    }

    /// A new generation begins with this session.
    pub fn bind(self, session: Arc<Session>) {
        match self.state.printed.load(Ordering::Acquire) {
            0 => {}
            bytes => session.limit_printed(bytes),
        }
        match self.state.stack.load(Ordering::Acquire) {
            0 => {}
            // Where it does not fit into this lease, kernels have what its driver gives them.
            bytes => drop(session.limit_stack(bytes)),
        }
        let old = self.state.link.write().unwrap_or_else(PoisonError::into_inner).replace(session);
        if let Some(old) = old {
            self.end(&old);
        }
        *lock(&self.state.last_loss) = None;
        message::reset();
    }

    /// The words with which the last lease ended, until the next attach.
    pub fn last_loss(self) -> Option<String> {
        if let Some(session) = self.any_session()
            && let Err(Unusable::Lost(_)) = session.usable()
        {
            self.forget_lost(&session);
        }
        lock(&self.state.last_loss).clone()
    }

    /// Whether work may have been lost with a GPU: until the next attach whoever asks what has become of its work gets the
    /// error, and is given no other GPU for it. A person is told once: JAX asks again and again.
    pub fn check_lost(self) -> CudaResult {
        let Some(loss) = self.last_loss() else { return Ok(()) };
        let text = self.no_gpu(Some(loss));
        if !self.state.loss_told.swap(true, Ordering::AcqRel) {
            message::tell(message::Kind::Lease, &text);
        }
        Err(CudaError::new(cuda::ERROR_DEVICE_UNAVAILABLE, text))
    }

    fn forget_lost(self, session: &Arc<Session>) {
        let mut link = self.state.link.write().unwrap_or_else(PoisonError::into_inner);
        if link.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            *link = None;
            drop(link);
            self.end(session);
            *lock(&self.state.last_loss) = session.loss();
            self.state.loss_told.store(false, Ordering::Release);
        }
    }

    /// Ends a session for good.
    pub fn unbind(self) -> Option<Arc<Session>> {
        let old = self.state.link.write().unwrap_or_else(PoisonError::into_inner).take()?;
        self.end(&old);
        Some(old)
    }

    /// Keeps the books of a session that has ended.
    fn end(self, session: &Session) {
        self.process.end(session);
        self.process.objects.end_pools(self.ordinal, session.range());
    }
}
