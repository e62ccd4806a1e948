//! What an address is.

use super::memory::{allocation, pinned_at};
use super::pool::pool_at;
use super::{put, ready};
use crate::error::{CudaResult, INVALID_VALUE, NOT_SUPPORTED};
use crate::process::Process;
use std::ffi::c_void;
use std::sync::PoisonError;

unsafe fn attribute(process: &'static Process, value: *mut c_void, attribute: u32, address: u64) -> CudaResult {
    let found = allocation(process, address);
    let host = pinned_at(address as usize);
    let (device, start, bytes) = match (found, host) {
        (Some(found), _) => found,
        // Page-locked memory is of every device.
        (None, Some((start, piece))) => (super::here()?, start as u64, piece.bytes as u64),
        (None, None) => return Err(process.stale(address).unwrap_or(INVALID_VALUE)),
    };
    let is_device = found.is_some();
    // SAFETY: the caller's output has the type that CUDA names for the attribute.
    unsafe {
        match attribute {
            // The context, and the kind of memory: 2 device, 1 host.
            1 => put(value.cast(), *device.state.primary.lock().unwrap_or_else(PoisonError::into_inner)),
            2 => put(value.cast(), if is_device { 2u32 } else { 1 }),
            3 if is_device => put(value.cast(), address),
            4 if !is_device => put(value.cast(), address),
            3 | 4 => Err(INVALID_VALUE),
            // Tokens for drivers of other devices of the GPU's machine.
            5 => Err(NOT_SUPPORTED),
            6 => put(value.cast(), 1i32),
            // Ids of the buffer and of the physical memory: addresses are never used twice.
            7 | 20 => put(value.cast(), start),
            // Managed, passed between processes, reached by other devices, decompressed: none of it is.
            8 | 10 | 15 | 21 => put(value.cast(), 0u8),
            9 => put(value.cast(), device.ordinal as i32),
            11 | 19 => put(value.cast(), start),
            12 | 18 => put(value.cast(), bytes as usize),
            13 => put(value.cast(), 1u8),
            14 => put(value.cast(), 0u64),
            // Read and write.
            16 => put(value.cast(), if is_device { 3u32 } else { 0 }),
            17 => put(value.cast(), pool_at(process, start)),
            // In no part of the device alone.
            22 => put(value.cast(), -1i32),
            _ => Err(INVALID_VALUE),
        }
    }
}

pub unsafe fn cuPointerGetAttribute(value: *mut c_void, number: u32, address: u64) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { attribute(ready()?, value, number, address) }
}

/// Unlike the single question, an address that is unknown gets zeros.
pub unsafe fn cuPointerGetAttributes(
    count: u32,
    attributes: *const u32,
    values: *const *mut c_void,
    address: u64,
) -> CudaResult {
    let process = ready()?;
    if attributes.is_null() || values.is_null() {
        return Err(INVALID_VALUE);
    }
    for index in 0..count as usize {
        // SAFETY: both lists are `count` long; outputs have the types that CUDA names.
        unsafe {
            let (number, value) = (attributes.add(index).read(), values.add(index).read());
            if attribute(process, value, number, address).is_err() {
                match number {
                    2 | 6 => put(value.cast(), 0u32)?,
                    9 => put(value.cast(), -2i32)?,
                    22 => put(value.cast(), -1i32)?,
                    8 | 10 | 13 | 15 | 21 => put(value.cast(), 0u8)?,
                    16 => put(value.cast(), 0u32)?,
                    _ => put(value.cast(), 0u64)?,
                }
            }
        }
    }
    Ok(())
}

/// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS is the only one that can be set, and copies here are always so ordered.
pub unsafe fn cuPointerSetAttribute(_value: *const c_void, number: u32, _address: u64) -> CudaResult {
    ready()?;
    if number == 6 { Ok(()) } else { Err(INVALID_VALUE) }
}
