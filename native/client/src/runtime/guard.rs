//! The border to C.

use super::error;
use crate::driver::guard::{self as driver, Refusal};
use crate::error::CudaResult;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// As the driver's: no panic crosses the border, and a failure's sentence is kept. A failure is also the thread's last
/// error.
#[inline]
pub fn guard(symbol: &'static str, body: impl FnOnce() -> CudaResult) -> u32 {
    let code = driver::guard(symbol, body);
    if code != 0 {
        error::record(code);
    }
    code
}

/// For functions that return something else than an error: zeros when they fail.
pub fn plain<T: Copy>(_symbol: &'static str, body: impl FnOnce() -> T) -> T {
    // SAFETY: T is plain data of C: a number, a pointer, numbers in a structure, or nothing.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| unsafe { std::mem::zeroed() })
}

/// A function that is not served. A runtime's functions need no start of the driver.
#[cold]
pub fn refused(symbol: &'static str, reason: &'static str, is_told: bool) -> u32 {
    if is_told && let Err(error) = super::context::initialised() {
        return guard(symbol, || Err(error));
    }
    let code = driver::refused(symbol, reason, if is_told { Refusal::Told } else { Refusal::Always });
    error::record(code);
    code
}
