//! Variables that the program declared with `__device__` or `__constant__`.

use super::code::INVALID_MEMCPY_DIRECTION;
use super::copy::{copy_async, copy_now, kind};
use super::register::variable;
use crate::driver::put;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};

pub unsafe fn cudaGetSymbolAddress(address: *mut u64, symbol: usize) -> CudaResult {
    // SAFETY: the caller's output.
    unsafe { put(address, variable(symbol)?.address()?.0) }
}

pub unsafe fn cudaGetSymbolSize(bytes: *mut usize, symbol: usize) -> CudaResult {
    // SAFETY: the caller's output.
    unsafe { put(bytes, variable(symbol)?.bytes) }
}

/// Where a copy of this kind reads a variable, which lies on the device.
pub(crate) fn source_place(symbol: usize, bytes: usize, offset: usize, kind: u32) -> CudaResult<u64> {
    if kind == kind::HOST_TO_DEVICE || kind == kind::HOST_TO_HOST {
        return Err(CudaError::code(INVALID_MEMCPY_DIRECTION));
    }
    place(symbol, bytes, offset)
}

/// Where a copy of this kind writes a variable, which lies on the device.
pub(crate) fn target_place(symbol: usize, bytes: usize, offset: usize, kind: u32) -> CudaResult<u64> {
    if kind == kind::DEVICE_TO_HOST || kind == kind::HOST_TO_HOST {
        return Err(CudaError::code(INVALID_MEMCPY_DIRECTION));
    }
    place(symbol, bytes, offset)
}

/// The place of `bytes` bytes inside a variable.
fn place(symbol: usize, bytes: usize, offset: usize) -> CudaResult<u64> {
    let (address, size) = variable(symbol)?.address()?;
    let end = offset.checked_add(bytes).ok_or(INVALID_VALUE)?;
    if end > size { Err(INVALID_VALUE) } else { Ok(address + offset as u64) }
}

pub unsafe fn cudaMemcpyToSymbol(
    default_stream: usize,
    symbol: usize,
    source: u64,
    bytes: usize,
    offset: usize,
    kind: u32,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_now(target_place(symbol, bytes, offset, kind)?, source, bytes, kind, default_stream) }
}

pub unsafe fn cudaMemcpyToSymbolAsync(
    symbol: usize,
    source: u64,
    bytes: usize,
    offset: usize,
    kind: u32,
    stream: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_async(target_place(symbol, bytes, offset, kind)?, source, bytes, kind, stream) }
}

pub unsafe fn cudaMemcpyFromSymbol(
    default_stream: usize,
    target: u64,
    symbol: usize,
    bytes: usize,
    offset: usize,
    kind: u32,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_now(target, source_place(symbol, bytes, offset, kind)?, bytes, kind, default_stream) }
}

pub unsafe fn cudaMemcpyFromSymbolAsync(
    target: u64,
    symbol: usize,
    bytes: usize,
    offset: usize,
    kind: u32,
    stream: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_async(target, source_place(symbol, bytes, offset, kind)?, bytes, kind, stream) }
}
