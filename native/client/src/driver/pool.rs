//! Memory pools, emulated inside the session's arena: every pool draws on it, and freed memory is there for all.

use super::device::default_pool;
use super::{put, ready};
use crate::error::{CudaResult, INVALID_HANDLE, INVALID_VALUE};
use crate::objects::{Pool, new_handle};
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
const RELEASE_THRESHOLD: u32 = 4;

pub unsafe fn cuMemPoolCreate(pool: *mut usize, properties: *const c_void) -> CudaResult {
    let process = ready()?;
    if properties.is_null() {
        return Err(INVALID_VALUE);
    }
    let handle = new_handle();
    // SAFETY: the caller's output.
    unsafe { put(pool, handle as usize)? };
    process.objects.pools.put(handle, Pool { own: true, ..Pool::default() });
    Ok(())
}

pub unsafe fn cuMemPoolDestroy(pool: usize) -> CudaResult {
    let process = ready()?;
    if pool as u64 == default_pool(process) || !process.objects.pools.get(pool)?.own {
        return Err(INVALID_HANDLE);
    }
    process.objects.pools.remove(pool).map(|_| ())
}

pub unsafe fn cuMemPoolTrimTo(pool: usize, _keep: usize) -> CudaResult {
    ready()?.objects.pools.get(pool).map(|_| ())
}

pub unsafe fn cuMemPoolGetAttribute(pool: usize, attribute: u32, value: *mut c_void) -> CudaResult {
    let process = ready()?;
    let pool = process.objects.pools.get(pool)?;
    let used = process.session_now().map_or(0, |session| session.used_bytes());
    // SAFETY: the caller's output has the type that CUDA names: int for 1 to 3, 64 bits for the others.
    unsafe {
        match attribute {
            1..=3 => put(value.cast(), 1i32),
            RELEASE_THRESHOLD => put(value.cast(), pool.release_threshold.load(Ordering::Acquire)),
            5..=8 => put(value.cast(), used),
            _ => Err(INVALID_VALUE),
        }
    }
}

pub unsafe fn cuMemPoolSetAttribute(pool: usize, attribute: u32, value: *const c_void) -> CudaResult {
    let pool = ready()?.objects.pools.get(pool)?;
    if value.is_null() {
        return Err(INVALID_VALUE);
    }
    match attribute {
        // SAFETY: the caller's 64-bit value.
        RELEASE_THRESHOLD => pool.release_threshold.store(unsafe { value.cast::<u64>().read() }, Ordering::Release),
        1..=3 | 6 | 8 => {}
        _ => return Err(INVALID_VALUE),
    }
    Ok(())
}
