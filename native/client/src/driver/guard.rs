//! The border to C.

use crate::error::{CudaError, CudaResult};
use crate::message;
use crate::output;
use crate::trace;
use sluice_protocol::cuda;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One function that `cuGetProcAddress` finds.
pub struct Entry {
    pub name: &'static str,
    pub since: u32,
    /// Takes stream 0 for the calling thread's own default stream.
    pub per_thread: bool,
    pub address: usize,
}

/// Failures whose code alone tells nobody what to change: images that do not fit, and faults of kernels.
const ABOUT_PROGRAM: [u32; 9] = [200, 209, 218, 700, 702, 710, 716, 717, 719];

/// Runs a function's body: no panic crosses the border, and a failure's sentence is kept for `cuGetErrorString`.
#[inline]
pub fn guard(symbol: &'static str, body: impl FnOnce() -> CudaResult) -> u32 {
    let _traced = trace::enter(symbol);
    let outcome = catch_unwind(AssertUnwindSafe(body));
    output::flush();
    match outcome {
        Ok(Ok(())) => cuda::SUCCESS,
        Ok(Err(error)) => {
            if let Some(text) = error.text {
                if ABOUT_PROGRAM.contains(&error.code) {
                    message::tell(message::Kind::Program, &text);
                }
                message::remember(error.code, text);
            }
            error.code
        }
        Err(_) => {
            message::remember(cuda::ERROR_UNKNOWN, format!("{symbol} failed inside Sluice's client"));
            cuda::ERROR_UNKNOWN
        }
    }
}

/// When a function that is not served says so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Before `cuInit` as well.
    Always,
    /// Not before `cuInit`, which every function of the driver has to come after.
    Initialised,
    /// As [`Refusal::Initialised`], and the person is told.
    Told,
}

/// A function that is not served.
#[cold]
pub fn refused(symbol: &'static str, reason: &'static str, refusal: Refusal) -> u32 {
    guard(symbol, || {
        if refusal != Refusal::Always {
            super::ready()?;
        }
        let text = format!("{symbol} is not supported: {reason}");
        if refusal == Refusal::Told {
            message::tell(message::Kind::Program, &text);
        }
        Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, text))
    })
}
