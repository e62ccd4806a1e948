//! Device memory and page-locked host memory. Unlike the driver's, these functions take a size of 0: the answer is a
//! null pointer.

use super::context::context;
use super::types::{Extent, PitchedPtr};
use crate::driver::{self, put};
use crate::error::{CudaResult, INVALID_VALUE};
use std::ffi::c_void;

/// cudaMallocPitch promises rows for any element.
const ELEMENT: u32 = 4;

pub unsafe fn cudaMalloc(address: *mut u64, bytes: usize) -> CudaResult {
    context()?;
    // SAFETY: as the caller's.
    unsafe { if bytes == 0 { put(address, 0) } else { driver::cuMemAlloc_v2(address, bytes) } }
}

pub unsafe fn cudaMallocAsync(address: *mut u64, bytes: usize, stream: usize) -> CudaResult {
    context()?;
    // SAFETY: as the caller's.
    unsafe { if bytes == 0 { put(address, 0) } else { driver::cuMemAllocAsync(address, bytes, stream) } }
}

pub unsafe fn cudaMallocFromPoolAsync(address: *mut u64, bytes: usize, pool: usize, stream: usize) -> CudaResult {
    context()?;
    // SAFETY: as the caller's.
    unsafe { if bytes == 0 { put(address, 0) } else { driver::cuMemAllocFromPoolAsync(address, bytes, pool, stream) } }
}

pub unsafe fn cudaFreeAsync(address: u64, stream: usize) -> CudaResult {
    context()?;
    // SAFETY: as the caller's.
    unsafe { if address == 0 { Ok(()) } else { driver::cuMemFreeAsync(address, stream) } }
}

pub unsafe fn cudaMallocPitch(address: *mut u64, pitch: *mut usize, width: usize, height: usize) -> CudaResult {
    context()?;
    // SAFETY: the caller's outputs.
    unsafe {
        if width == 0 || height == 0 {
            put(pitch, 0)?;
            return put(address, 0);
        }
        driver::cuMemAllocPitch_v2(address, pitch, width, height, ELEMENT)
    }
}

pub unsafe fn cudaMalloc3D(pitched: *mut PitchedPtr, extent: Extent) -> CudaResult {
    let (mut address, mut pitch) = (0, 0);
    let rows = extent.height.checked_mul(extent.depth).ok_or(INVALID_VALUE)?;
    // SAFETY: live locals, and the caller's output.
    unsafe {
        cudaMallocPitch(&raw mut address, &raw mut pitch, extent.width, rows)?;
        put(pitched, PitchedPtr { address, pitch, width: extent.width, height: extent.height })
    }
}

pub unsafe fn cudaHostAlloc(memory: *mut *mut c_void, bytes: usize, flags: u32) -> CudaResult {
    context()?;
    // SAFETY: as the caller's.
    unsafe { if bytes == 0 { put(memory, std::ptr::null_mut()) } else { driver::cuMemHostAlloc(memory, bytes, flags) } }
}

pub unsafe fn cudaMallocHost(memory: *mut *mut c_void, bytes: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cudaHostAlloc(memory, bytes, 0) }
}

pub unsafe fn cudaFreeHost(memory: *mut c_void) -> CudaResult {
    context()?;
    // SAFETY: as the caller's.
    unsafe { if memory.is_null() { Ok(()) } else { driver::cuMemFreeHost(memory) } }
}
