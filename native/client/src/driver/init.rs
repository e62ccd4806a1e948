//! Initialisation, versions, error texts and the look-up of functions.

use super::guard::Entry;
use super::{forked, put, put_optional, ready, text};
use crate::error::{CudaError, CudaResult, INVALID_VALUE, NOT_FOUND};
use crate::generated::entries;
use crate::{fork, message, process, static_runtime};
use sluice_protocol::cuda;
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

pub unsafe fn cuInit(flags: u32) -> CudaResult {
    if fork::is_child() {
        return Err(forked());
    }
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let process = process::get();
    // Programs and libraries say it again and again; what is borrowed has told how many parts it has.
    if !process.initialised.load(Ordering::Acquire) || process.attached() == 0 {
        process.owner.learn_parts(process);
    }
    if process.count() == 0 {
        return Err(CudaError::code(cuda::ERROR_NO_DEVICE));
    }
    fork::cuda_used();
    process.initialised.store(true, Ordering::Release);
    Ok(())
}

pub unsafe fn cuDriverGetVersion(version: *mut i32) -> CudaResult {
    // SAFETY: the caller's output.
    unsafe { put(version, process::get().profile().device.driver_version) }
}

pub unsafe fn cuGetErrorName(error: u32, out: *mut *const c_char) -> CudaResult {
    // SAFETY: the caller's output.
    unsafe { put(out, cuda::name(error).map_or(std::ptr::null(), |name| message::interned(name).as_ptr()))? };
    if cuda::name(error).is_some() { Ok(()) } else { Err(INVALID_VALUE) }
}

pub unsafe fn cuGetErrorString(error: u32, out: *mut *const c_char) -> CudaResult {
    let described = message::of_code(error).or_else(|| cuda::description(error).map(message::interned));
    // SAFETY: the caller's output.
    unsafe { put(out, described.map_or(std::ptr::null(), |text| text.as_ptr()))? };
    if described.is_some() { Ok(()) } else { Err(INVALID_VALUE) }
}

/// CU_GET_PROC_ADDRESS_LEGACY_STREAM
const LEGACY_STREAM: u64 = 1;
/// CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
const PER_THREAD_DEFAULT_STREAM: u64 = 2;

/// The newest variant that a caller of this version knows; of a function without a per-thread variant the only one.
fn find(name: &str, version: u32, per_thread: bool) -> Option<usize> {
    static BY_NAME: OnceLock<HashMap<&'static str, Vec<Entry>>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let mut by_name: HashMap<&'static str, Vec<Entry>> = HashMap::new();
        for entry in entries() {
            by_name.entry(entry.name).or_default().push(entry);
        }
        by_name
    });
    let known = by_name.get(name)?.iter().filter(|entry| entry.since <= version && (per_thread || !entry.per_thread));
    known.max_by_key(|entry| (entry.since, entry.per_thread)).map(|entry| entry.address)
}

pub unsafe fn cuGetProcAddress(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: i32,
    flags: u64,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuGetProcAddress_v2(symbol, function, version, flags, std::ptr::null_mut()) }
}

pub unsafe fn cuGetProcAddress_v2(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: i32,
    flags: u64,
    status: *mut i32,
) -> CudaResult {
    // SAFETY: the caller's string.
    let name = unsafe { text(symbol)? };
    if !matches!(flags, 0 | LEGACY_STREAM | PER_THREAD_DEFAULT_STREAM) {
        return Err(INVALID_VALUE);
    }
    let per_thread = flags == PER_THREAD_DEFAULT_STREAM;
    let found = find(name, u32::try_from(version).unwrap_or(0), per_thread);
    // CU_GET_PROC_ADDRESS_SUCCESS, _SYMBOL_NOT_FOUND, _VERSION_NOT_SUFFICIENT
    let state = match found {
        Some(_) => 0,
        None if find(name, u32::MAX, per_thread).is_some() => 2,
        None => 1,
    };
    // SAFETY: the caller's outputs.
    unsafe {
        put_optional(status, state);
        put(function, found.map_or(std::ptr::null_mut(), |address| address as *mut c_void))?;
    }
    if found.is_some() { Ok(()) } else { Err(NOT_FOUND) }
}

pub unsafe fn cuGetExportTable(table: *mut *const c_void, _id: *const c_void) -> CudaResult {
    // SAFETY: the caller's output.
    unsafe { put_optional(table, std::ptr::null()) };
    static_runtime::asked_for_table();
    Err(CudaError::new(
        cuda::ERROR_NOT_SUPPORTED,
        "a program with NVIDIA's own CUDA runtime inside cannot use a borrowed GPU: it asks the driver for private \
         tables that only the real one has. Use a build that loads libcudart dynamically, or the driver API",
    ))
}

pub unsafe fn cuProfilerStart() -> CudaResult {
    ready().map(|_| ())
}

pub unsafe fn cuProfilerStop() -> CudaResult {
    ready().map(|_| ())
}
