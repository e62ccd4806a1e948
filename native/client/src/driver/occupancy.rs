//! Occupancy, computed from the function's and the device's attributes as NVIDIA's occupancy calculator does.

use super::function::info;
use super::{put, ready};
use crate::error::{CudaResult, INVALID_VALUE};
use crate::objects::attribute_of;
use crate::process::Process;
use sluice_protocol::FunctionInfo;

/// Device limits that matter here.
struct Limits {
    warp: u64,
    threads_per_block: u64,
    threads: u64,
    registers: u64,
    shared: u64,
    blocks: u64,
    multiprocessors: u64,
}

fn limits(process: &Process) -> Limits {
    let attribute = |number: i32, otherwise: u64| {
        let value = process.profile().attribute(number).unwrap_or(0);
        if value > 0 { value as u64 } else { otherwise }
    };
    Limits {
        warp: attribute(10, 32),
        threads_per_block: attribute(1, 1024),
        threads: attribute(39, 1024),
        registers: attribute(82, 65536),
        shared: attribute(81, 65536),
        blocks: attribute(106, 16),
        multiprocessors: attribute(16, 1),
    }
}

/// Blocks of `threads` threads that fit on one multiprocessor.
fn blocks(limits: &Limits, info: &FunctionInfo, threads: u64, dynamic_shared: u64) -> u64 {
    let attribute = |number| attribute_of(info, number).unwrap_or(0).max(0) as u64;
    let most = match attribute(0) {
        0 => limits.threads_per_block,
        most => most,
    };
    if threads == 0 || threads > most {
        return 0;
    }
    let warps = threads.div_ceil(limits.warp);
    let mut fit = limits.blocks.min(limits.threads / (warps * limits.warp));
    let registers = attribute(4);
    if registers > 0 {
        // Registers are handed out to warps in units of 256.
        let of_warp = (registers * limits.warp).next_multiple_of(256);
        fit = fit.min((limits.registers / of_warp) / warps);
    }
    let shared = attribute(1) + dynamic_shared;
    if shared > 0 {
        fit = fit.min(limits.shared / shared.next_multiple_of(256));
    }
    fit
}

pub unsafe fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    out: *mut i32,
    function: usize,
    block: i32,
    shared_bytes: usize,
) -> CudaResult {
    let process = ready()?;
    let function = process.objects.functions.get(function)?;
    let threads = u64::try_from(block).ok().filter(|threads| *threads > 0).ok_or(INVALID_VALUE)?;
    let fit = blocks(&limits(process), &info(process, &function)?, threads, shared_bytes as u64);
    // SAFETY: the caller's output.
    unsafe { put(out, fit as i32) }
}

pub unsafe fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    out: *mut i32,
    function: usize,
    block: i32,
    shared_bytes: usize,
    _flags: u32,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuOccupancyMaxActiveBlocksPerMultiprocessor(out, function, block, shared_bytes) }
}

pub unsafe fn cuOccupancyMaxPotentialBlockSize(
    grid: *mut i32,
    block: *mut i32,
    function: usize,
    shared_of_block: Option<unsafe extern "C" fn(i32) -> usize>,
    shared_bytes: usize,
    limit: i32,
) -> CudaResult {
    let process = ready()?;
    let function = process.objects.functions.get(function)?;
    let info = info(process, &function)?;
    let limits = limits(process);
    let most = match u64::try_from(limit) {
        Ok(limit) if limit > 0 => limits.threads_per_block.min(limit),
        _ => limits.threads_per_block,
    };
    let mut best = (0, 0, 0);
    let mut threads = most.next_multiple_of(limits.warp);
    while threads > 0 {
        let size = threads.min(most);
        let shared = match shared_of_block {
            // SAFETY: the caller's function, for a block size that CUDA would ask for too.
            Some(shared_of_block) => unsafe { shared_of_block(size as i32) },
            None => shared_bytes,
        };
        let fit = blocks(&limits, &info, size, shared as u64);
        if fit * size > best.0 {
            best = (fit * size, size, fit);
        }
        threads -= limits.warp;
    }
    // SAFETY: the caller's outputs.
    unsafe {
        put(grid, (best.2 * limits.multiprocessors) as i32)?;
        put(block, best.1 as i32)
    }
}

pub unsafe fn cuOccupancyMaxPotentialBlockSizeWithFlags(
    grid: *mut i32,
    block: *mut i32,
    function: usize,
    shared_of_block: Option<unsafe extern "C" fn(i32) -> usize>,
    shared_bytes: usize,
    limit: i32,
    _flags: u32,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuOccupancyMaxPotentialBlockSize(grid, block, function, shared_of_block, shared_bytes, limit) }
}

pub unsafe fn cuOccupancyAvailableDynamicSMemPerBlock(
    bytes: *mut usize,
    function: usize,
    count: i32,
    _block: i32,
) -> CudaResult {
    let process = ready()?;
    let function = process.objects.functions.get(function)?;
    let count = u64::try_from(count).ok().filter(|count| *count > 0).ok_or(INVALID_VALUE)?;
    let own = attribute_of(&info(process, &function)?, 1).unwrap_or(0).max(0) as u64;
    let of_block = limits(process).shared / count;
    // SAFETY: the caller's output.
    unsafe { put(bytes, of_block.saturating_sub(own) as usize) }
}
