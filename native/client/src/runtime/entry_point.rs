//! Look-up of driver functions for programs that know the runtime alone.

use super::device::{VERSION_12, VERSION_13};
use crate::driver;
use crate::error::CudaResult;
use std::ffi::{c_char, c_void};

/// CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
const PER_THREAD_DEFAULT_STREAM: u64 = 2;

unsafe fn find(
    default_stream: usize,
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: i32,
    flags: u64,
    status: *mut i32,
) -> CudaResult {
    let flags = if flags == 0 && default_stream != 0 { PER_THREAD_DEFAULT_STREAM } else { flags };
    let mut found = -1;
    // SAFETY: as the caller's.
    let result = unsafe { driver::cuGetProcAddress_v2(symbol, function, version, flags, &raw mut found) };
    if found < 0 {
        return result;
    }
    // A name that is not known is an answer here, not an error.
    // SAFETY: the caller's output.
    unsafe { driver::put_optional(status, found) };
    Ok(())
}

pub unsafe fn cudaGetDriverEntryPoint_12(
    default_stream: usize,
    symbol: *const c_char,
    function: *mut *mut c_void,
    flags: u64,
    status: *mut i32,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { find(default_stream, symbol, function, VERSION_12, flags, status) }
}

pub unsafe fn cudaGetDriverEntryPoint_13(
    default_stream: usize,
    symbol: *const c_char,
    function: *mut *mut c_void,
    flags: u64,
    status: *mut i32,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { find(default_stream, symbol, function, VERSION_13, flags, status) }
}

pub unsafe fn cudaGetDriverEntryPointByVersion(
    default_stream: usize,
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: u32,
    flags: u64,
    status: *mut i32,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { find(default_stream, symbol, function, version as i32, flags, status) }
}
