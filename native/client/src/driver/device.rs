//! Devices: one, as its type's recorded profile describes it.

use super::{put, ready, text};
use crate::error::{CudaResult, INVALID_DEVICE, INVALID_VALUE, NOT_SUPPORTED};
use crate::objects::{Pool, new_handle};
use crate::process::Process;
use std::ffi::{CString, c_char};

pub(crate) fn check(device: i32) -> CudaResult<&'static Process> {
    let process = ready()?;
    if device == 0 { Ok(process) } else { Err(INVALID_DEVICE) }
}

pub unsafe fn cuDeviceGetCount(count: *mut i32) -> CudaResult {
    ready()?;
    // SAFETY: the caller's output.
    unsafe { put(count, 1) }
}

pub unsafe fn cuDeviceGet(device: *mut i32, ordinal: i32) -> CudaResult {
    check(ordinal)?;
    // SAFETY: the caller's output.
    unsafe { put(device, ordinal) }
}

unsafe fn put_text(target: *mut c_char, length: i32, text: &str) -> CudaResult {
    let room = usize::try_from(length).ok().filter(|room| *room > 0 && !target.is_null()).ok_or(INVALID_VALUE)?;
    let text = CString::new(text).map_err(|_| INVALID_VALUE)?;
    let bytes = text.as_bytes();
    let count = bytes.len().min(room - 1);
    // SAFETY: the caller's buffer has room for `length` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), target, count);
        target.add(count).write(0);
    }
    Ok(())
}

pub unsafe fn cuDeviceGetName(name: *mut c_char, length: i32, device: i32) -> CudaResult {
    let process = check(device)?;
    // SAFETY: the caller's buffer.
    unsafe { put_text(name, length, &process.profile().device.name) }
}

/// Frameworks keep the first answer: it names the type, not the device that is borrowed at the moment.
pub(crate) fn uuid(process: &Process) -> [u8; 16] {
    let digest = ring::digest::digest(&ring::digest::SHA256, process.profile().gpu_type.as_bytes());
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&digest.as_ref()[..16]);
    uuid
}

pub unsafe fn cuDeviceGetUuid(out: *mut [u8; 16], device: i32) -> CudaResult {
    let process = check(device)?;
    // SAFETY: the caller's output.
    unsafe { put(out, uuid(process)) }
}

pub unsafe fn cuDeviceTotalMem_v2(bytes: *mut usize, device: i32) -> CudaResult {
    let process = check(device)?;
    // SAFETY: the caller's output.
    unsafe { put(bytes, process.profile().device.total_memory_bytes as usize) }
}

pub unsafe fn cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) -> CudaResult {
    let process = check(device)?;
    let found = process.profile().attribute(attribute).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's output.
    unsafe { put(value, found) }
}

pub unsafe fn cuDeviceComputeCapability(major: *mut i32, minor: *mut i32, device: i32) -> CudaResult {
    let profile = check(device)?.profile();
    // SAFETY: the caller's outputs.
    unsafe {
        put(major, profile.device.compute_capability_major)?;
        put(minor, profile.device.compute_capability_minor)
    }
}

/// Where the device sits in its server is not told.
pub(crate) const BUS_ID: &str = "0000:00:00.0";

pub unsafe fn cuDeviceGetPCIBusId(id: *mut c_char, length: i32, device: i32) -> CudaResult {
    check(device)?;
    // SAFETY: the caller's buffer.
    unsafe { put_text(id, length, BUS_ID) }
}

pub unsafe fn cuDeviceGetByPCIBusId(device: *mut i32, id: *const c_char) -> CudaResult {
    ready()?;
    // SAFETY: the caller's string.
    let id = unsafe { text(id)? };
    if !BUS_ID.ends_with(id.trim_start_matches("0000:")) {
        return Err(INVALID_DEVICE);
    }
    // SAFETY: the caller's output.
    unsafe { put(device, 0) }
}

pub unsafe fn cuDeviceCanAccessPeer(possible: *mut i32, device: i32, peer: i32) -> CudaResult {
    check(device)?;
    check(peer)?;
    // SAFETY: the caller's output.
    unsafe { put(possible, 0) }
}

pub unsafe fn cuDeviceGetP2PAttribute(_value: *mut i32, _attribute: i32, source: i32, target: i32) -> CudaResult {
    check(source)?;
    check(target)?;
    // One device has no peer.
    Err(INVALID_DEVICE)
}

pub(crate) fn default_pool(process: &Process) -> u64 {
    *process.default_pool.get_or_init(|| {
        let handle = new_handle();
        process.objects.pools.put(handle, Pool::default());
        handle
    })
}

pub unsafe fn cuDeviceGetDefaultMemPool(pool: *mut usize, device: i32) -> CudaResult {
    let process = check(device)?;
    // SAFETY: the caller's output.
    unsafe { put(pool, default_pool(process) as usize) }
}

pub unsafe fn cuDeviceGetMemPool(pool: *mut usize, device: i32) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuDeviceGetDefaultMemPool(pool, device) }
}

pub unsafe fn cuDeviceSetMemPool(device: i32, pool: usize) -> CudaResult {
    let process = check(device)?;
    if pool as u64 == default_pool(process) { Ok(()) } else { Err(NOT_SUPPORTED) }
}
