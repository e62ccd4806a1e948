//! Fills. Rows with gaps are filled one by one: each is posted, none is waited for.

use super::code::INVALID_PITCH_VALUE;
use super::context::context;
use super::types::{Extent, PitchedPtr};
use crate::driver;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};

/// Rows of `width` bytes, `pitch` apart.
unsafe fn rows(address: u64, pitch: usize, value: i32, width: usize, height: usize, stream: usize) -> CudaResult {
    context()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    if height > 1 && width > pitch {
        return Err(CudaError::code(INVALID_PITCH_VALUE));
    }
    let (bytes, count) = if pitch == width || height == 1 { (width * height, 1) } else { (width, height) };
    for row in 0..count {
        let start = address.checked_add((row * pitch) as u64).ok_or(INVALID_VALUE)?;
        // SAFETY: as the caller's; the driver checks the range.
        unsafe { driver::cuMemsetD8Async(start, value as u8, bytes, stream)? };
    }
    Ok(())
}

unsafe fn slices(pitched: &PitchedPtr, value: i32, extent: &Extent, stream: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe {
        if extent.height == pitched.height {
            return rows(pitched.address, pitched.pitch, value, extent.width, extent.height * extent.depth, stream);
        }
        for slice in 0..extent.depth {
            let start = pitched.address + (slice * pitched.pitch * pitched.height) as u64;
            rows(start, pitched.pitch, value, extent.width, extent.height, stream)?;
        }
    }
    Ok(())
}

pub unsafe fn cudaMemset(default_stream: usize, address: u64, value: i32, bytes: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { rows(address, bytes, value, bytes, 1, default_stream) }
}

pub unsafe fn cudaMemsetAsync(address: u64, value: i32, bytes: usize, stream: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { rows(address, bytes, value, bytes, 1, stream) }
}

pub unsafe fn cudaMemset2D(
    default_stream: usize,
    address: u64,
    pitch: usize,
    value: i32,
    width: usize,
    height: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { rows(address, pitch, value, width, height, default_stream) }
}

pub unsafe fn cudaMemset2DAsync(
    address: u64,
    pitch: usize,
    value: i32,
    width: usize,
    height: usize,
    stream: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { rows(address, pitch, value, width, height, stream) }
}

pub unsafe fn cudaMemset3D(default_stream: usize, pitched: PitchedPtr, value: i32, extent: Extent) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { slices(&pitched, value, &extent, default_stream) }
}

pub unsafe fn cudaMemset3DAsync(pitched: PitchedPtr, value: i32, extent: Extent, stream: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { slices(&pitched, value, &extent, stream) }
}
