//! `libnvidia-ml.so.1`: NVML as a program sees it that has borrowed a GPU. Its devices are the lease's: its memory, its
//! compute and its processes there. Without a lease one device is there as its type's recorded profile describes it,
//! with the memory of the default amount. Loading the library does nothing, and no function of it starts CUDA.
//!
//! The functions follow NVIDIA's NVML API reference; those that ask about the card itself (power, temperature, clocks
//! of the moment, ECC, NVLink) answer NVML_ERROR_NOT_SUPPORTED.
#![allow(non_snake_case)]

mod client;
mod device;
mod generated;
mod library;
mod memory;
mod output;
mod processes;
mod status;
mod system;

use status::{Answer, NvmlReturn};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a function's body after `nvmlInit`; no panic crosses the border to C.
fn guard(body: impl FnOnce() -> Answer) -> NvmlReturn {
    if !library::initialised() {
        return status::UNINITIALIZED;
    }
    unguarded(body)
}

/// The same before `nvmlInit`.
fn unguarded(body: impl FnOnce() -> Answer) -> NvmlReturn {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => status::SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => status::UNKNOWN,
    }
}

/// A function that is not served.
fn refused() -> NvmlReturn {
    guard(|| Err(status::NOT_SUPPORTED))
}
