//! Stream-ordered allocation and memory pools, emulated inside the session's arena: every pool draws on it, and each
//! keeps an account of its own.
//!
//! Order: gpud gives memory back when all work that was issued before the free has run, and work issued after an
//! allocation of that memory comes after it. That is stricter than the order of one stream.

use super::abi::{Access, Location, PoolProperties};
use super::device::check;
use super::memory::{allocate, free};
use super::{capture, current, put, ready, stream};
use crate::error::{CudaError, CudaResult, INVALID_DEVICE, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED};
use crate::objects::{Pool, new_handle};
use crate::process::Process;
use sluice_protocol::cuda;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// CU_MEMPOOL_ATTR_*
const REUSE: std::ops::RangeInclusive<u32> = 1..=3;
const RELEASE_THRESHOLD: u32 = 4;
const RESERVED: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED: u32 = 7;
const USED_HIGH: u32 = 8;

pub(crate) fn default_pool(process: &Process) -> u64 {
    *process.default_pool.get_or_init(|| {
        let handle = new_handle();
        process.objects.pools.put(handle, Pool::default());
        handle
    })
}

fn pool_of_device(process: &Process) -> u64 {
    match process.pool.load(Ordering::Acquire) {
        0 => default_pool(process),
        pool => pool,
    }
}

/// The lease's device is the only place where pools and mappings are.
pub(super) fn check_location(kind: u32, id: i32) -> CudaResult {
    match kind {
        1 if id == 0 => Ok(()),
        1 => Err(INVALID_DEVICE),
        2..=4 => Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, "kernels on a remote GPU cannot reach host memory")),
        _ => Err(INVALID_VALUE),
    }
}

/// Handles that other processes could open.
pub(super) fn check_handle_types(types: u32) -> CudaResult {
    if types == 0 {
        return Ok(());
    }
    Err(CudaError::new(
        cuda::ERROR_NOT_SUPPORTED,
        "memory and events of a remote GPU cannot be passed between processes yet",
    ))
}

/// # Safety
/// The location is null or the caller's.
unsafe fn place(location: *const Location, kind: u32) -> CudaResult {
    // SAFETY: as the caller's.
    let location = unsafe { location.as_ref() }.ok_or(INVALID_VALUE)?;
    check_location(location.kind, location.id)?;
    // CU_MEM_ALLOCATION_TYPE_PINNED
    if kind == 1 { Ok(()) } else { Err(NOT_SUPPORTED) }
}

pub unsafe fn cuDeviceGetDefaultMemPool(pool: *mut usize, device: i32) -> CudaResult {
    let process = check(device)?;
    // SAFETY: the caller's output.
    unsafe { put(pool, default_pool(process) as usize) }
}

pub unsafe fn cuDeviceGetMemPool(pool: *mut usize, device: i32) -> CudaResult {
    let process = check(device)?;
    // SAFETY: the caller's output.
    unsafe { put(pool, pool_of_device(process) as usize) }
}

pub unsafe fn cuDeviceSetMemPool(device: i32, pool: usize) -> CudaResult {
    let process = check(device)?;
    process.objects.pools.get(pool)?;
    process.pool.store(pool as u64, Ordering::Release);
    Ok(())
}

pub unsafe fn cuMemGetDefaultMemPool(pool: *mut usize, location: *const Location, kind: u32) -> CudaResult {
    ready()?;
    // SAFETY: as the caller's.
    unsafe {
        place(location, kind)?;
        cuDeviceGetDefaultMemPool(pool, 0)
    }
}

pub unsafe fn cuMemGetMemPool(pool: *mut usize, location: *const Location, kind: u32) -> CudaResult {
    ready()?;
    // SAFETY: as the caller's.
    unsafe {
        place(location, kind)?;
        cuDeviceGetMemPool(pool, 0)
    }
}

pub unsafe fn cuMemSetMemPool(location: *const Location, kind: u32, pool: usize) -> CudaResult {
    ready()?;
    // SAFETY: as the caller's.
    unsafe {
        place(location, kind)?;
        cuDeviceSetMemPool(0, pool)
    }
}

pub unsafe fn cuMemPoolCreate(pool: *mut usize, properties: *const PoolProperties) -> CudaResult {
    let process = ready()?;
    // SAFETY: the caller's properties.
    let wanted = unsafe { properties.as_ref() }.ok_or(INVALID_VALUE)?;
    if wanted.kind != 1 {
        return Err(INVALID_VALUE);
    }
    check_location(wanted.location.kind, wanted.location.id)?;
    check_handle_types(wanted.handle_types)?;
    let handle = new_handle();
    // SAFETY: the caller's output.
    unsafe { put(pool, handle as usize)? };
    process.objects.pools.put(handle, Pool { own: true, most_bytes: wanted.most_bytes as u64, ..Pool::default() });
    Ok(())
}

/// What the pool still holds is given back when it is freed; the default pool cannot be destroyed.
pub unsafe fn cuMemPoolDestroy(pool: usize) -> CudaResult {
    let process = ready()?;
    if !process.objects.pools.get(pool)?.own {
        return Err(INVALID_HANDLE);
    }
    let _ = process.pool.compare_exchange(pool as u64, 0, Ordering::AcqRel, Ordering::Acquire);
    process.objects.pools.remove(pool).map(|_| ())
}

pub unsafe fn cuMemPoolTrimTo(pool: usize, keep: usize) -> CudaResult {
    let pool = ready()?.objects.pools.get(pool)?;
    pool.state.lock().unwrap_or_else(PoisonError::into_inner).trim(keep as u64);
    Ok(())
}

pub unsafe fn cuMemPoolGetAttribute(pool: usize, attribute: u32, value: *mut c_void) -> CudaResult {
    let pool = ready()?.objects.pools.get(pool)?;
    let state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller's output has the type that CUDA names: 64 bits for amounts of memory, else int.
    unsafe {
        match attribute {
            1..=3 => put(value.cast(), state.reuse[attribute as usize - 1]),
            RELEASE_THRESHOLD => put(value.cast(), state.release_threshold),
            RESERVED => put(value.cast(), state.reserved),
            RESERVED_HIGH => put(value.cast(), state.reserved_high),
            USED => put(value.cast(), state.used),
            USED_HIGH => put(value.cast(), state.used_high),
            // Allocation type, exportable handles, location's id and type.
            9 | 12 => put(value.cast(), 1i32),
            10 | 11 | 14 => put(value.cast(), 0i32),
            13 => put(value.cast(), pool.most_bytes),
            _ => Err(INVALID_VALUE),
        }
    }
}

pub unsafe fn cuMemPoolSetAttribute(pool: usize, attribute: u32, value: *const c_void) -> CudaResult {
    let pool = ready()?.objects.pools.get(pool)?;
    if value.is_null() {
        return Err(INVALID_VALUE);
    }
    let mut state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
    if REUSE.contains(&attribute) {
        // SAFETY: the caller's int.
        state.reuse[attribute as usize - 1] = unsafe { value.cast::<i32>().read() };
        return Ok(());
    }
    if !matches!(attribute, RELEASE_THRESHOLD | RESERVED_HIGH | USED_HIGH) {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's 64-bit value.
    let wanted = unsafe { value.cast::<u64>().read_unaligned() };
    match attribute {
        RELEASE_THRESHOLD => state.release_threshold = wanted,
        // High-water marks can only be set back.
        _ if wanted != 0 => return Err(INVALID_VALUE),
        RESERVED_HIGH => state.reserved_high = state.reserved,
        _ => state.used_high = state.used,
    }
    Ok(())
}

pub unsafe fn cuMemPoolGetAccess(flags: *mut u32, pool: usize, location: *const Location) -> CudaResult {
    ready()?.objects.pools.get(pool)?;
    // SAFETY: the caller's location and output.
    unsafe {
        place(location, 1)?;
        put(flags, 3)
    }
}

/// The device of a pool always reaches it.
pub unsafe fn cuMemPoolSetAccess(pool: usize, access: *const Access, count: usize) -> CudaResult {
    ready()?.objects.pools.get(pool)?;
    if access.is_null() && count > 0 {
        return Err(INVALID_VALUE);
    }
    for index in 0..count {
        // SAFETY: the caller's list is `count` long.
        let wanted = unsafe { access.add(index).read() };
        check_location(wanted.location.kind, wanted.location.id)?;
        if wanted.flags != 3 {
            return Err(INVALID_VALUE);
        }
    }
    Ok(())
}

fn alloc(process: &Process, handle: u64, pool: &Arc<Pool>, bytes: usize) -> CudaResult<u64> {
    let size = bytes as u64;
    {
        let state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.most_bytes > 0 && state.used.saturating_add(size) > pool.most_bytes {
            return Err(CudaError::code(cuda::ERROR_OUT_OF_MEMORY));
        }
    }
    let mut address = 0;
    // SAFETY: a live local.
    unsafe { allocate(process, &raw mut address, bytes)? };
    pool.state.lock().unwrap_or_else(PoisonError::into_inner).take(size);
    process.objects.from_pools.lock().unwrap_or_else(PoisonError::into_inner).insert(address, (handle, size));
    Ok(address)
}

/// An allocation has ended: its pool hears of it.
pub(super) fn freed(process: &Process, address: u64) {
    let found = process.objects.from_pools.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
    if let Some((pool, bytes)) = found
        && let Ok(pool) = process.objects.pools.get(pool as usize)
    {
        pool.state.lock().unwrap_or_else(PoisonError::into_inner).give(bytes);
    }
}

/// The pool that an allocation came from.
pub(super) fn pool_at(process: &Process, start: u64) -> u64 {
    let from_pools = process.objects.from_pools.lock().unwrap_or_else(PoisonError::into_inner);
    from_pools.get(&start).map_or(0, |(pool, _)| *pool)
}

pub unsafe fn cuMemAllocFromPoolAsync(address: *mut u64, bytes: usize, pool: usize, on: usize) -> CudaResult {
    let process = current()?;
    if address.is_null() || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let found = process.objects.pools.get(pool)?;
    stream::check(process, on)?;
    // A capture makes it a node.
    let made = match capture::alloc(process, on, bytes)? {
        Some(made) => made,
        None => alloc(process, pool as u64, &found, bytes)?,
    };
    // SAFETY: the caller's output.
    unsafe { put(address, made) }
}

pub unsafe fn cuMemAllocAsync(address: *mut u64, bytes: usize, on: usize) -> CudaResult {
    let pool = pool_of_device(current()?);
    // SAFETY: as the caller's.
    unsafe { cuMemAllocFromPoolAsync(address, bytes, pool as usize, on) }
}

pub unsafe fn cuMemFreeAsync(address: u64, on: usize) -> CudaResult {
    let process = ready()?;
    stream::check(process, on)?;
    if capture::free(process, on, address)? {
        return Ok(());
    }
    // Freeing waits for all work at gpud, not here.
    if address == 0 { Ok(()) } else { free(process, address) }
}

#[cfg(test)]
mod tests {
    use crate::objects::PoolState;

    #[test]
    fn a_pool_keeps_what_its_threshold_says() {
        let mut state = PoolState { release_threshold: 100, ..PoolState::default() };
        state.take(300);
        state.give(300);
        assert_eq!((state.used, state.used_high, state.reserved, state.reserved_high), (0, 300, 100, 300));
        state.take(50);
        state.trim(0);
        assert_eq!((state.used, state.reserved), (50, 50));
    }
}
