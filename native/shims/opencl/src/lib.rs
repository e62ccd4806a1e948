//! `libsluice_opencl.so`: a driver for OpenCL's loader (`cl_khr_icd`) that has no platform and says so. OpenCL does not
//! reach the borrowed GPU, and "no platforms" alone tells nobody what to do. A driver stands beside the others that a
//! person has installed (PoCL), and the loader stays the person's own: a `libOpenCL.so.1` of ours would hide both.
#![allow(non_snake_case)]

use std::ffi::{CStr, c_char, c_void};

/// `CL_PLATFORM_NOT_FOUND_KHR`.
const PLATFORM_NOT_FOUND: i32 = -1001;
/// `CL_INVALID_PLATFORM`.
const INVALID_PLATFORM: i32 = -32;

unsafe extern "C" {
    fn sluice_opencl_asked();
}

/// Where the loader asks for the platforms: none, and the person is told once.
///
/// # Safety
/// As `clGetPlatformIDs`: `count` is null or an output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clIcdGetPlatformIDsKHR(_entries: u32, _platforms: *mut *mut c_void, count: *mut u32) -> i32 {
    if !count.is_null() {
        // SAFETY: not null, and the caller's output.
        unsafe { count.write(0) };
    }
    // SAFETY: takes nothing.
    unsafe { sluice_opencl_asked() };
    PLATFORM_NOT_FOUND
}

/// Loaders leave out a driver without this function. There is no platform that it could be asked about.
///
/// # Safety
/// Nothing is read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetPlatformInfo(
    _platform: *mut c_void,
    _name: u32,
    _size: usize,
    _value: *mut c_void,
    _written: *mut usize,
) -> i32 {
    INVALID_PLATFORM
}

/// How a loader finds the two functions above.
///
/// # Safety
/// `name` is null or ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetExtensionFunctionAddress(name: *const c_char) -> *const c_void {
    if name.is_null() {
        return std::ptr::null();
    }
    // SAFETY: not null, and the caller answers for the NUL.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"clIcdGetPlatformIDsKHR" => clIcdGetPlatformIDsKHR as *const c_void,
        b"clGetPlatformInfo" => clGetPlatformInfo as *const c_void,
        _ => std::ptr::null(),
    }
}
