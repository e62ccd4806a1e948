//! Stream-ordered allocation and memory pools, emulated inside the session's arena: every pool draws on it, and each
//! keeps an account of its own.
//!
//! Order: gpud gives memory back when all work that was issued before the free has run, and work issued after an
//! allocation of that memory comes after it. That is stricter than the order of one stream.

use super::abi::{Access, Location, PoolProperties};
use super::device::check;
use super::memory::free;
use super::{BETWEEN_PROCESSES, HOST_MEMORY, capture, current, put, ready, stream};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_HANDLE, INVALID_VALUE};
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

pub(crate) fn default_pool(device: Device) -> u64 {
    *device.state.default_pool.get_or_init(|| {
        let handle = new_handle();
        device.process.objects.pools.put(handle, Pool { device: device.ordinal, ..Pool::default() });
        handle
    })
}

fn pool_of_device(device: Device) -> u64 {
    match device.state.pool.load(Ordering::Acquire) {
        0 => default_pool(device),
        pool => pool,
    }
}

/// The device that a place names; pools and mappings are on devices alone.
pub(super) fn check_location(kind: u32, id: i32) -> CudaResult<Device> {
    match kind {
        1 => check(id),
        2..=4 => Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, HOST_MEMORY)),
        _ => Err(INVALID_VALUE),
    }
}

/// Handles that other processes could open.
pub(super) fn check_handle_types(types: u32) -> CudaResult {
    if types == 0 {
        return Ok(());
    }
    Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, BETWEEN_PROCESSES))
}

/// # Safety
/// The location is null or the caller's.
unsafe fn place(location: *const Location, kind: u32) -> CudaResult<Device> {
    // SAFETY: as the caller's.
    let location = unsafe { location.as_ref() }.ok_or(INVALID_VALUE)?;
    let device = check_location(location.kind, location.id)?;
    check_allocation_type(kind)?;
    Ok(device)
}

/// A pool's memory is the device's (CU_MEM_ALLOCATION_TYPE_PINNED): managed memory (2) is refused.
fn check_allocation_type(kind: u32) -> CudaResult {
    match kind {
        1 => Ok(()),
        2 => Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, HOST_MEMORY)),
        _ => Err(INVALID_VALUE),
    }
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

/// The pool of a device's allocations is one of its own.
fn set_pool(device: Device, pool: usize) -> CudaResult {
    if device.process.objects.pools.get(pool)?.device != device.ordinal {
        return Err(INVALID_VALUE);
    }
    device.state.pool.store(pool as u64, Ordering::Release);
    Ok(())
}

pub unsafe fn cuDeviceSetMemPool(device: i32, pool: usize) -> CudaResult {
    set_pool(check(device)?, pool)
}

pub unsafe fn cuMemGetDefaultMemPool(pool: *mut usize, location: *const Location, kind: u32) -> CudaResult {
    ready()?;
    // SAFETY: as the caller's.
    unsafe { put(pool, default_pool(place(location, kind)?) as usize) }
}

pub unsafe fn cuMemGetMemPool(pool: *mut usize, location: *const Location, kind: u32) -> CudaResult {
    ready()?;
    // SAFETY: as the caller's.
    unsafe { put(pool, pool_of_device(place(location, kind)?) as usize) }
}

pub unsafe fn cuMemSetMemPool(location: *const Location, kind: u32, pool: usize) -> CudaResult {
    ready()?;
    // SAFETY: as the caller's.
    set_pool(unsafe { place(location, kind)? }, pool)
}

pub unsafe fn cuMemPoolCreate(pool: *mut usize, properties: *const PoolProperties) -> CudaResult {
    let process = ready()?;
    // SAFETY: the caller's properties.
    let wanted = unsafe { properties.as_ref() }.ok_or(INVALID_VALUE)?;
    check_allocation_type(wanted.kind)?;
    let device = check_location(wanted.location.kind, wanted.location.id)?.ordinal;
    check_handle_types(wanted.handle_types)?;
    let handle = new_handle();
    // SAFETY: the caller's output.
    unsafe { put(pool, handle as usize)? };
    let most_bytes = wanted.most_bytes as u64;
    process.objects.pools.put(handle, Pool { device, own: true, most_bytes, ..Pool::default() });
    Ok(())
}

/// What the pool still holds is given back when it is freed; the default pool cannot be destroyed.
pub unsafe fn cuMemPoolDestroy(pool: usize) -> CudaResult {
    let process = ready()?;
    let found = process.objects.pools.get(pool)?;
    if !found.own {
        return Err(INVALID_HANDLE);
    }
    let current = &process.device(found.device).state.pool;
    let _ = current.compare_exchange(pool as u64, 0, Ordering::AcqRel, Ordering::Acquire);
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
            10 | 11 => put(value.cast(), 0i32),
            14 => put(value.cast(), pool.device as i32),
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
    let pool = ready()?.objects.pools.get(pool)?;
    // SAFETY: the caller's location and output.
    unsafe {
        let device = place(location, 1)?;
        let state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        put(flags, if device.ordinal == pool.device || state.peers.contains(&device.ordinal) { 3 } else { 0 })
    }
}

/// The device of a pool always reaches it, and others that can reach its memory do when they are given access.
pub unsafe fn cuMemPoolSetAccess(pool: usize, access: *const Access, count: usize) -> CudaResult {
    let process = ready()?;
    let pool = process.objects.pools.get(pool)?;
    if access.is_null() && count > 0 {
        return Err(INVALID_VALUE);
    }
    for index in 0..count {
        // SAFETY: the caller's list is `count` long.
        let wanted = unsafe { access.add(index).read() };
        let from = check_location(wanted.location.kind, wanted.location.id)?;
        let home = process.device(pool.device);
        let state = || pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        match wanted.flags {
            3 if from == home => {}
            0 if from != home => drop(state().peers.remove(&from.ordinal)),
            3 if from.session()?.reach(&*home.session()?) => drop(state().peers.insert(from.ordinal)),
            3 => return Err(CudaError::code(cuda::ERROR_PEER_ACCESS_UNSUPPORTED)),
            _ => return Err(INVALID_VALUE),
        }
    }
    Ok(())
}

fn alloc(device: Device, handle: u64, pool: &Arc<Pool>, bytes: usize) -> CudaResult<u64> {
    let size = bytes as u64;
    let session = device.session()?;
    let state = || pool.state.lock().unwrap_or_else(PoisonError::into_inner);
    if pool.most_bytes > 0 && state().used.saturating_add(size) > pool.most_bytes {
        return Err(CudaError::code(cuda::ERROR_OUT_OF_MEMORY));
    }
    let address = session.alloc(size, 0)?;
    let mut from_pools = device.process.objects.from_pools.lock().unwrap_or_else(PoisonError::into_inner);
    // A session that has ended meanwhile has its accounts closed already.
    if device.any_session().is_some_and(|current| Arc::ptr_eq(&current, &session)) {
        let most_bytes = if pool.most_bytes > 0 { pool.most_bytes } else { u64::MAX };
        state().take(size, most_bytes.min(session.memory_bytes()));
        from_pools.insert(address, (handle, size));
    }
    Ok(address)
}

/// Frees memory by `free`, and counts that in the pool that the memory came from. The entry goes first: as soon as
/// memory is free, another thread can have it.
pub(super) fn count_free(process: &'static Process, address: u64, free: impl FnOnce() -> CudaResult) -> CudaResult {
    let from_pools = || process.objects.from_pools.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = from_pools().remove(&address);
    let outcome = free();
    if let Some((handle, bytes)) = entry {
        if outcome.is_err() {
            from_pools().insert(address, (handle, bytes));
        } else if let Ok(pool) = process.objects.pools.get(handle as usize) {
            pool.state.lock().unwrap_or_else(PoisonError::into_inner).give(bytes);
            process.device(pool.device).state.freed_to_pools.store(true, Ordering::Release);
        }
    }
    outcome
}

/// The pool that an allocation came from.
pub(super) fn pool_at(process: &Process, start: u64) -> u64 {
    let from_pools = process.objects.from_pools.lock().unwrap_or_else(PoisonError::into_inner);
    from_pools.get(&start).map_or(0, |(pool, _)| *pool)
}

/// The program has synchronized a stream, an event or a context: the device's pools give back what is above their
/// release thresholds.
pub(super) fn synchronized(device: Device) {
    let freed = &device.state.freed_to_pools;
    if freed.load(Ordering::Acquire) && freed.swap(false, Ordering::AcqRel) {
        for (_, pool) in device.process.objects.pools.all().iter().filter(|(_, pool)| pool.device == device.ordinal) {
            pool.state.lock().unwrap_or_else(PoisonError::into_inner).settle();
        }
    }
}

/// Bytes of a device that its pools hold without use.
pub(super) fn spare_bytes(device: Device) -> u64 {
    let pools = device.process.objects.pools.all();
    let own = pools.iter().filter(|(_, pool)| pool.device == device.ordinal);
    own.map(|(_, pool)| pool.state.lock().unwrap_or_else(PoisonError::into_inner).spare()).sum()
}

pub unsafe fn cuMemAllocFromPoolAsync(address: *mut u64, bytes: usize, pool: usize, on: usize) -> CudaResult {
    let device = current()?;
    if address.is_null() || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let found = device.process.objects.pools.get(pool)?;
    stream::check(device, on)?;
    // A capture makes it a node.
    let made = match capture::alloc(device, on, bytes)? {
        Some(made) => made,
        None => alloc(device.process.device(found.device), pool as u64, &found, bytes)?,
    };
    // SAFETY: the caller's output.
    unsafe { put(address, made) }
}

pub unsafe fn cuMemAllocAsync(address: *mut u64, bytes: usize, on: usize) -> CudaResult {
    let pool = pool_of_device(stream::home(current()?, on)?);
    // SAFETY: as the caller's.
    unsafe { cuMemAllocFromPoolAsync(address, bytes, pool as usize, on) }
}

pub unsafe fn cuMemFreeAsync(address: u64, on: usize) -> CudaResult {
    let device = stream::home(super::here()?, on)?;
    if capture::free(device, on, address)? {
        return Ok(());
    }
    // Freeing waits for all work at gpud, not here.
    if address == 0 { Ok(()) } else { free(device.process, address) }
}
