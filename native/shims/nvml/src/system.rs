//! Versions and names of the system.

use crate::client::{FIRST, device, number, text};
use crate::output::{put, put_text};
use crate::status::{INVALID_ARGUMENT, NOT_FOUND, NvmlReturn};
use crate::{guard, unguarded};
use std::ffi::c_char;

/// `nvmlSystemGetDriverVersion`.
///
/// # Safety
/// As NVML's: `version` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: u32) -> NvmlReturn {
    guard(|| {
        let view = device(FIRST)?;
        // SAFETY: the caller's buffer.
        unsafe { put_text(version, length, text(&view, "/device/driver")) }
    })
}

/// `nvmlSystemGetNVMLVersion`: the CUDA major version, then the driver's.
///
/// # Safety
/// As NVML's: `version` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: u32) -> NvmlReturn {
    unguarded(|| {
        let view = device(FIRST)?;
        let major = number(&view, "/device/cudaVersion") / 1000;
        // SAFETY: the caller's buffer.
        unsafe { put_text(version, length, &format!("{major}.{}", text(&view, "/device/driver"))) }
    })
}

/// `nvmlSystemGetCudaDriverVersion`: as `cuDriverGetVersion`.
///
/// # Safety
/// As NVML's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion(version: *mut i32) -> NvmlReturn {
    // SAFETY: the caller's output.
    unguarded(|| unsafe { put(version, number(&*device(FIRST)?, "/device/cudaVersion") as i32) })
}

/// `nvmlSystemGetCudaDriverVersion_v2`.
///
/// # Safety
/// As NVML's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut i32) -> NvmlReturn {
    // SAFETY: as the caller's.
    unsafe { nvmlSystemGetCudaDriverVersion(version) }
}

/// `nvmlSystemGetProcessName`: cut to its room, as NVML does.
///
/// # Safety
/// As NVML's: `name` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetProcessName(pid: u32, name: *mut c_char, length: u32) -> NvmlReturn {
    guard(|| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).map_err(|_| NOT_FOUND)?;
        let program = words.split(|byte| *byte == 0).next().unwrap_or(&[]);
        let program = String::from_utf8_lossy(program);
        let room = (length as usize).checked_sub(1).ok_or(INVALID_ARGUMENT)?;
        let cut: String = program
            .chars()
            .scan(0, |used, c| {
                *used += c.len_utf8();
                (*used <= room).then_some(c)
            })
            .collect();
        // SAFETY: the caller's buffer.
        unsafe { put_text(name, length, &cut) }
    })
}

/// `nvmlUnitGetCount`: S-class systems, none.
///
/// # Safety
/// As NVML's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlUnitGetCount(count: *mut u32) -> NvmlReturn {
    // SAFETY: the caller's output.
    guard(|| unsafe { put(count, 0) })
}
