//! The libraries that run beside the driver. A shim hands a call over as slots; the declaration in `sluice-api` says
//! what they are, and how the call travels.
//!
//! Objects (handles, plans) have a number of this process and are made again for a new generation. Descriptions are
//! values: they travel when they are first used, equal ones only once. Drafts are objects that travel so. A call whose choices (operations, types) have
//! been accepted before is posted; its first one waits, so that the library's own refusals stay synchronous.

mod call;
mod draft;
mod encode;
mod entry;
mod group;
mod local;
mod object;
mod recording;
mod release;
mod remote;
mod text;
mod value;

pub use object::Objects;
pub use recording::Recording;
pub use remote::Remote;

use crate::error::CudaError;
use crate::message;
use crate::trace;
use sluice_api::libraries::{self, Function, Library, Shim, Status, Way};
use sluice_protocol::cuda;
use sluice_protocol::library::MOST_ARGUMENTS;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A library under one of its names.
#[derive(Clone, Copy)]
pub struct Loaded {
    pub library: &'static Library,
    /// Number and SONAME, as they travel.
    pub id: u32,
}

impl Loaded {
    fn find(id: u32) -> Option<Self> {
        Some(Self { library: libraries::library((id >> 16) as u16)?, id })
    }

    fn status(self) -> Status {
        self.library.source.status
    }

    /// The name under which the program knows it.
    pub fn shim(self) -> &'static Shim {
        self.library.shim(self.id)
    }
}

/// Why a call failed: the library's own status, and a sentence where it does not say enough.
pub(crate) struct Refusal {
    pub status: u32,
    pub text: Option<String>,
}

impl Refusal {
    pub const fn status(status: u32) -> Self {
        Self { status, text: None }
    }

    pub fn new(status: u32, text: impl Into<String>) -> Self {
        Self { status, text: Some(text.into()) }
    }

    /// A driver's error in the library's words.
    pub fn from_cuda(status: Status, error: CudaError) -> Self {
        let word = match error.code {
            cuda::ERROR_DEVICE_UNAVAILABLE | cuda::ERROR_NOT_INITIALIZED | cuda::ERROR_NO_DEVICE => {
                status.not_initialized
            }
            cuda::ERROR_OUT_OF_MEMORY => status.alloc_failed,
            cuda::ERROR_INVALID_VALUE | cuda::ERROR_INVALID_HANDLE => status.invalid_value,
            cuda::ERROR_NOT_SUPPORTED => status.not_supported,
            _ => status.execution_failed,
        };
        // Without a lease the sentence has been told.
        let text = error.text.filter(|_| error.code != cuda::ERROR_DEVICE_UNAVAILABLE);
        Self { status: word, text }
    }
}

thread_local! {
    /// Why this thread's last refused call was refused, as far as it was said.
    static LAST_REASON: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps a reason for the functions that ask for the last one.
fn keep_reason(text: &str) {
    // In the end of a thread nobody asks any more.
    let _ = LAST_REASON.try_with(|reason| text.clone_into(&mut reason.borrow_mut()));
}

pub(crate) type Outcome<T = usize> = Result<T, Refusal>;

/// As a shim's function, with the arguments in slots: floating-point numbers as their bits.
///
/// # Safety
/// The slots are what the function's declaration says.
pub unsafe fn call_with_slots(library: u32, function: u32, slots: &[usize]) -> usize {
    call_declared(library, function, |_, room| room[..slots.len()].copy_from_slice(slots))
}

/// Calls function `function` of the list of library `library` with the arguments that `gather` puts into slots, one
/// each; answers what the function returns.
fn call_declared(
    library: u32,
    function: u32,
    gather: impl FnOnce(&'static Function, &mut [usize; MOST_ARGUMENTS]),
) -> usize {
    let Some(loaded) = Loaded::find(library) else { return usize::MAX };
    let Some(declared) = loaded.library.functions.get(function as usize) else { return usize::MAX };
    let _traced = trace::enter(&declared.symbol);
    let body = || {
        let mut slots = [0; MOST_ARGUMENTS];
        gather(declared, &mut slots);
        // SAFETY: the slots are the arguments of this function.
        unsafe { answer(loaded, declared, &slots[..declared.parameters.len()]) }
    };
    let refusal = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value,
        Ok(Err(refusal)) => refusal,
        Err(_) => {
            let text = format!("{} failed inside Sluice's client", declared.symbol);
            Refusal::new(loaded.status().execution_failed, text)
        }
    };
    if let Some(text) = refusal.text {
        keep_reason(&text);
        message::tell(message::Kind::Program, &format!("{}: {text}", declared.symbol));
    }
    refusal.status as usize
}

unsafe fn answer(loaded: Loaded, function: &'static Function, slots: &[usize]) -> Outcome {
    match function.way {
        Way::Refused => refused(loaded, function),
        // SAFETY: as the caller's.
        Way::Local => unsafe { local::answer(loaded, function, slots) },
        // SAFETY: as the caller's.
        _ if loaded.library.source.name == "nccl" && function.way != Way::End => unsafe {
            group::answer(loaded, function, slots)
        },
        // SAFETY: as the caller's.
        _ => unsafe { call::answer(loaded, function, slots) },
    }
}

/// The answer of a function that is declared and not served.
fn refused(loaded: Loaded, function: &Function) -> Outcome {
    let status = loaded.status().not_supported;
    match function.refusal {
        Some(answer) => Ok(answer as usize),
        // Frameworks probe what observes and shares GPUs at every start; that is no news for a person.
        None if loaded.library.source.probed => Err(Refusal::status(status)),
        None => Err(Refusal::new(status, format!("not supported: {}", function.note))),
    }
}
