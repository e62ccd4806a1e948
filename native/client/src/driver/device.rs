//! Devices: one, as its type's recorded profile describes it.

use super::abi::Properties;
use super::{put, ready, text};
use crate::error::{CudaResult, INVALID_DEVICE, INVALID_VALUE};
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

/// The properties of CUDA 2; newer ones are attributes.
pub unsafe fn cuDeviceGetProperties(properties: *mut Properties, device: i32) -> CudaResult {
    let profile = check(device)?.profile();
    let of = |number| profile.attribute(number).unwrap_or(0);
    let found = Properties {
        threads_per_block: of(1),
        block: [of(2), of(3), of(4)],
        grid: [of(5), of(6), of(7)],
        shared_bytes: of(8),
        constant_bytes: of(9),
        warp: of(10),
        pitch: of(11),
        registers: of(12),
        clock_khz: of(13),
        texture_alignment: of(14),
    };
    // SAFETY: the caller's output.
    unsafe { put(properties, found) }
}

pub unsafe fn cuDeviceGetP2PAtomicCapabilities(
    _capabilities: *mut u32,
    _operations: *const u32,
    _count: u32,
    source: i32,
    target: i32,
) -> CudaResult {
    check(source)?;
    check(target)?;
    // One device has no peer.
    Err(INVALID_DEVICE)
}
