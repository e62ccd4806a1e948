//! Devices.

use super::context::{check_device, choose_device, context, current_device, device_count, primary, release_primary};
use crate::driver::{self, put};
use crate::error::{CudaError, CudaResult, INVALID_DEVICE, INVALID_VALUE};
use crate::process;
use sluice_protocol::cuda;
use std::ffi::c_void;

pub unsafe fn cudaGetDeviceCount(count: *mut i32) -> CudaResult {
    let found = device_count();
    // SAFETY: the caller's output; without a device it reads 0.
    unsafe { put(count, found.as_ref().copied().unwrap_or(0))? };
    match found {
        Ok(0) => Err(CudaError::code(cuda::ERROR_NO_DEVICE)),
        other => other.map(|_| ()),
    }
}

pub unsafe fn cudaGetDevice(device: *mut i32) -> CudaResult {
    device_count()?;
    // SAFETY: the caller's output.
    unsafe { put(device, current_device()) }
}

pub unsafe fn cudaSetDevice(device: i32) -> CudaResult {
    choose_device(device)
}

/// cudaInitDeviceFlagsAreValid
const FLAGS_ARE_VALID: u32 = 1;

pub unsafe fn cudaInitDevice(device: i32, device_flags: u32, flags: u32) -> CudaResult {
    check_device(device)?;
    if flags & FLAGS_ARE_VALID != 0 {
        // SAFETY: no pointers go in.
        unsafe { driver::cuDevicePrimaryCtxSetFlags(device, device_flags)? };
    }
    primary(device).map(|_| ())
}

/// With one device in view there is nothing to put in order.
pub unsafe fn cudaSetValidDevices(devices: *const i32, count: i32) -> CudaResult {
    let count = usize::try_from(count).map_err(|_| INVALID_VALUE)?;
    if devices.is_null() && count > 0 {
        return Err(INVALID_VALUE);
    }
    for index in 0..count {
        // SAFETY: the caller's list, `count` long.
        check_device(unsafe { devices.add(index).read() })?;
    }
    Ok(())
}

/// The first device: all devices of a process are of one type.
pub unsafe fn cudaChooseDevice(device: *mut i32, properties: *const c_void) -> CudaResult {
    if properties.is_null() {
        return Err(INVALID_VALUE);
    }
    check_device(0)?;
    // SAFETY: the caller's output.
    unsafe { put(device, 0) }
}

pub unsafe fn cudaSetDeviceFlags(flags: u32) -> CudaResult {
    device_count()?;
    // SAFETY: no pointers go in.
    unsafe { driver::cuDevicePrimaryCtxSetFlags(current_device(), flags) }
}

pub unsafe fn cudaGetDeviceFlags(flags: *mut u32) -> CudaResult {
    device_count()?;
    let (mut found, mut active) = (0, 0);
    // SAFETY: live locals, and the caller's output.
    unsafe {
        driver::cuDevicePrimaryCtxGetState(current_device(), &raw mut found, &raw mut active)?;
        put(flags, found)
    }
}

pub unsafe fn cudaDeviceEnablePeerAccess(peer: i32, flags: u32) -> CudaResult {
    context()?;
    check_device(peer)?;
    if peer == current_device() {
        return Err(INVALID_DEVICE);
    }
    // SAFETY: a primary context that this process holds.
    unsafe { driver::cuCtxEnablePeerAccess(primary(peer)?, flags) }
}

pub unsafe fn cudaDeviceDisablePeerAccess(peer: i32) -> CudaResult {
    context()?;
    check_device(peer)?;
    if peer == current_device() {
        return Err(INVALID_DEVICE);
    }
    // SAFETY: a primary context that this process holds.
    unsafe { driver::cuCtxDisablePeerAccess(primary(peer)?) }
}

/// Ends everything that the program made on the thread's device.
pub unsafe fn cudaDeviceReset() -> CudaResult {
    device_count()?;
    let device = current_device();
    // SAFETY: no pointers go in; the context that is let go is made anew by the next call that needs one.
    unsafe {
        if release_primary(device) {
            driver::cuDevicePrimaryCtxRelease(device)?;
        }
        driver::cuDevicePrimaryCtxReset(device)?;
        driver::cuCtxSetCurrent(0)
    }
}

pub unsafe fn cudaThreadExit() -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cudaDeviceReset() }
}

/// CUDART_VERSION of the headers that the library answers for.
pub(crate) const VERSION_12: i32 = 12090;
/// As [`VERSION_12`].
pub(crate) const VERSION_13: i32 = 13050;

pub unsafe fn cudaRuntimeGetVersion_12(version: *mut i32) -> CudaResult {
    // SAFETY: the caller's output.
    unsafe { put(version, VERSION_12) }
}

pub unsafe fn cudaRuntimeGetVersion_13(version: *mut i32) -> CudaResult {
    // SAFETY: the caller's output.
    unsafe { put(version, VERSION_13) }
}

pub unsafe fn cudaDriverGetVersion(version: *mut i32) -> CudaResult {
    // SAFETY: the caller's output.
    unsafe { put(version, process::get().profile().device.driver_version) }
}

pub unsafe fn cudaProfilerStart() -> CudaResult {
    // SAFETY: no pointers go in.
    unsafe { driver::cuProfilerStart() }
}

pub unsafe fn cudaProfilerStop() -> CudaResult {
    // SAFETY: no pointers go in.
    unsafe { driver::cuProfilerStop() }
}
