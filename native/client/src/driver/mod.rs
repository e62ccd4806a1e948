//! The CUDA Driver API, function by function, in files named after their objects. Each function here has the C
//! function's parameters; [`crate::generated`] wraps it for C.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments, missing_docs)]

pub mod abi;
mod across;
pub mod capture;
pub mod context;
pub mod copy;
pub mod device;
mod ending;
pub mod event;
pub mod function;
pub mod graph;
pub mod guard;
pub mod host_function;
pub mod init;
pub mod jit;
pub mod launch;
pub mod link;
pub mod link_input;
pub mod memory;
pub mod module;
pub mod occupancy;
pub(crate) mod peer;
pub mod pointer;
pub mod pool;
pub mod pool_state;
mod ptx_link;
pub mod rectangle;
pub mod stream;
pub mod tensor_map;
pub mod vmm;

pub use capture::*;
pub use context::*;
pub use copy::*;
pub use device::*;
pub use event::*;
pub use function::*;
pub use graph::dot::*;
pub use graph::exec::*;
pub use graph::generic::*;
pub use graph::memory::*;
pub use graph::nodes::*;
pub use graph::structure::*;
pub use graph::update::*;
pub use graph::user_object::*;
pub use host_function::*;
pub use init::*;
pub use launch::*;
pub use link::*;
pub use memory::*;
pub use module::*;
pub use occupancy::*;
pub use peer::*;
pub use pointer::*;
pub use pool::*;
pub use rectangle::*;
pub use stream::*;
pub use tensor_map::*;
pub use vmm::*;

use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::fork;
use crate::process::{self, Process};
use sluice_protocol::cuda;
use std::sync::atomic::Ordering;

/// Why nothing is handed to another process, as the declarations of functions have it that do only that.
const BETWEEN_PROCESSES: &str = "passing memory and events of a remote GPU between processes comes later";

/// Why memory that host and device share is refused, and what takes its place; as in the declarations of functions.
const HOST_MEMORY: &str = "kernels on a remote GPU cannot reach host memory; allocate device memory and copy";

/// The process, after `cuInit`.
#[inline]
pub(crate) fn ready() -> CudaResult<&'static Process> {
    if fork::is_child() {
        return Err(forked());
    }
    let process = process::get();
    if process.initialised.load(Ordering::Acquire) {
        Ok(process)
    } else {
        Err(CudaError::code(cuda::ERROR_NOT_INITIALIZED))
    }
}

#[cold]
pub(crate) fn forked() -> CudaError {
    CudaError::new(
        cuda::ERROR_NOT_INITIALIZED,
        "CUDA cannot be used in a process forked from one that has used it; start it with \"spawn\" instead of fork",
    )
}

/// The device of the context that is current on this thread.
#[inline]
pub(crate) fn current() -> CudaResult<Device> {
    let process = ready()?;
    context::current_context().map(|current| process.device(current.device))
}

/// As [`current`]; without a context the first device.
pub(crate) fn here() -> CudaResult<Device> {
    let process = ready()?;
    Ok(process.device(context::top().map_or(0, |current| current.device)))
}

/// Writes an output.
///
/// # Safety
/// `target` is null or points to room for a `T`.
#[inline]
pub(crate) unsafe fn put<T>(target: *mut T, value: T) -> CudaResult {
    if target.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and the caller answers for the room.
    unsafe { target.write_unaligned(value) };
    Ok(())
}

/// Writes an output that the caller may leave out (`optional` in `native/api`).
///
/// # Safety
/// As for [`put`].
#[inline]
pub(crate) unsafe fn put_optional<T>(target: *mut T, value: T) {
    // SAFETY: the caller answers for the room; NULL asks for nothing.
    let _ = unsafe { put(target, value) };
}

/// Reads a C string.
///
/// # Safety
/// `text` is null or points to text that ends with NUL.
pub(crate) unsafe fn text<'a>(text: *const std::ffi::c_char) -> CudaResult<&'a str> {
    if text.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and the caller answers for the NUL.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_str().map_err(|_| INVALID_VALUE)
}
