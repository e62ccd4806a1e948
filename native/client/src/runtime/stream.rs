//! Streams and events, as far as they are not the driver's by another name.

use super::context::context;
use crate::driver;
use crate::error::CudaResult;

pub unsafe fn cudaStreamCreate(stream: *mut usize) -> CudaResult {
    context()?;
    // SAFETY: as the caller's.
    unsafe { driver::cuStreamCreate(stream, 0) }
}

pub unsafe fn cudaEventCreate(event: *mut usize) -> CudaResult {
    context()?;
    // SAFETY: as the caller's.
    unsafe { driver::cuEventCreate(event, 0) }
}
