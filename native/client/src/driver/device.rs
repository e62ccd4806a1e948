//! Devices: as many as the lease has, each as the recorded profile of their one type describes it.

use super::abi::Properties;
use super::{put, ready, text};
use crate::device::Device;
use crate::error::{CudaResult, INVALID_DEVICE, INVALID_VALUE};
use crate::profile::bus_id;
use std::ffi::{CString, c_char};

/// The device with this ordinal.
pub(crate) fn check(ordinal: i32) -> CudaResult<Device> {
    let process = ready()?;
    let ordinal = usize::try_from(ordinal).map_err(|_| INVALID_DEVICE)?;
    if ordinal < process.count() { Ok(process.device(ordinal)) } else { Err(INVALID_DEVICE) }
}

pub unsafe fn cuDeviceGetCount(count: *mut i32) -> CudaResult {
    let process = ready()?;
    // SAFETY: the caller's output.
    unsafe { put(count, process.count() as i32) }
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
    let process = check(device)?.process;
    // SAFETY: the caller's buffer.
    unsafe { put_text(name, length, &process.profile().device.name) }
}

pub unsafe fn cuDeviceGetUuid(out: *mut [u8; 16], device: i32) -> CudaResult {
    let device = check(device)?;
    // SAFETY: the caller's output.
    unsafe { put(out, device.process.profile().uuid(device.part())) }
}

pub unsafe fn cuDeviceTotalMem_v2(bytes: *mut usize, device: i32) -> CudaResult {
    let process = check(device)?.process;
    // SAFETY: the caller's output.
    unsafe { put(bytes, process.profile().device.total_memory_bytes as usize) }
}

pub unsafe fn cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) -> CudaResult {
    let process = check(device)?.process;
    let found = process.profile().attribute(attribute).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's output.
    unsafe { put(value, found) }
}

pub unsafe fn cuDeviceComputeCapability(major: *mut i32, minor: *mut i32, device: i32) -> CudaResult {
    let profile = check(device)?.process.profile();
    // SAFETY: the caller's outputs.
    unsafe {
        put(major, profile.device.compute_capability_major)?;
        put(minor, profile.device.compute_capability_minor)
    }
}

pub unsafe fn cuDeviceGetPCIBusId(id: *mut c_char, length: i32, device: i32) -> CudaResult {
    let device = check(device)?;
    // SAFETY: the caller's buffer.
    unsafe { put_text(id, length, &bus_id(device.part())) }
}

pub unsafe fn cuDeviceGetByPCIBusId(device: *mut i32, id: *const c_char) -> CudaResult {
    let process = ready()?;
    // SAFETY: the caller's string.
    let id = unsafe { text(id)? };
    let is_it = |device: &Device| bus_id(device.part()).ends_with(id.trim_start_matches("0000:"));
    let found = process.devices().find(is_it).ok_or(INVALID_DEVICE)?;
    // SAFETY: the caller's output.
    unsafe { put(device, found.ordinal as i32) }
}

/// The properties of CUDA 2; newer ones are attributes.
pub unsafe fn cuDeviceGetProperties(properties: *mut Properties, device: i32) -> CudaResult {
    let profile = check(device)?.process.profile();
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
    capabilities: *mut u32,
    operations: *const u32,
    count: u32,
    source: i32,
    target: i32,
) -> CudaResult {
    if check(source)? == check(target)? {
        return Err(INVALID_DEVICE);
    }
    if operations.is_null() || count == 0 {
        return Err(INVALID_VALUE);
    }
    for index in 0..count as usize {
        // SAFETY: the caller's list, `count` long.
        unsafe { put(capabilities.add(index), 0)? };
    }
    Ok(())
}
