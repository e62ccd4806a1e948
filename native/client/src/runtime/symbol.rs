//! Variables that the program declared with `__device__` or `__constant__`.

use super::copy::{copy_async, copy_now};
use super::register::variable;
use crate::driver::put;
use crate::error::{CudaResult, INVALID_VALUE};

pub unsafe fn cudaGetSymbolAddress(address: *mut u64, symbol: usize) -> CudaResult {
    // SAFETY: the caller's output.
    unsafe { put(address, variable(symbol)?.address()?.0) }
}

pub unsafe fn cudaGetSymbolSize(bytes: *mut usize, symbol: usize) -> CudaResult {
    // SAFETY: the caller's output.
    unsafe { put(bytes, variable(symbol)?.bytes) }
}

/// The place of `bytes` bytes inside a variable.
pub(crate) fn place(symbol: usize, bytes: usize, offset: usize) -> CudaResult<u64> {
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
    unsafe { copy_now(place(symbol, bytes, offset)?, source, bytes, kind, default_stream) }
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
    unsafe { copy_async(place(symbol, bytes, offset)?, source, bytes, kind, stream) }
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
    unsafe { copy_now(target, place(symbol, bytes, offset)?, bytes, kind, default_stream) }
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
    unsafe { copy_async(target, place(symbol, bytes, offset)?, bytes, kind, stream) }
}
