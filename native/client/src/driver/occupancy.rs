//! Occupancy. For the software GPU, and before a GPU is attached, it is computed from the function's and the device's
//! attributes as NVIDIA's occupancy calculator does. A real driver is asked, once for each question.

use super::function::info;
use super::launch::{self, LaunchConfig, is_software};
use super::{module, put};
use crate::answers::Answers;
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::objects::{Function, attribute_of};
use crate::process::Process;
use crate::session::Session;
use sluice_protocol::graph::LaunchAttribute;
use sluice_protocol::messages::{OccupancyBlocks, OccupancyClusters, OccupancyShared};
use sluice_protocol::{FunctionInfo, cuda};
use std::sync::Arc;

/// What a driver has answered.
pub type OccupancyCache = Answers<OccupancyQuestion, u64>;

/// A question to a driver, about a function in one generation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum OccupancyQuestion {
    Blocks { generation: u64, function: u64, threads: u32, shared: u64, flags: u32 },
    Shared { generation: u64, function: u64, blocks: u32, threads: u32 },
    Clusters { generation: u64, function: u64, sizes: [u32; 7], attributes: Vec<(u32, [u8; 64])>, potential: bool },
}

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

/// A function, and the device that knows about it.
fn find(function: usize) -> CudaResult<(Device, Arc<Function>)> {
    let here = super::here()?;
    let function = here.process.objects.functions.get(function)?;
    Ok((module::device_of(here, &function.module), function))
}

/// Multiprocessors of the device.
pub fn multiprocessors(process: &Process) -> u64 {
    limits(process).multiprocessors
}

/// Blocks that are resident on one multiprocessor.
pub fn resident_blocks(
    device: Device,
    session: Option<&Session>,
    function: &Function,
    threads: u32,
    shared: u64,
    flags: u32,
) -> CudaResult<u64> {
    let Some(session) = session.filter(|_| !is_software(device.process)) else {
        return Ok(blocks(&limits(device.process), &info(device, function)?, u64::from(threads), shared));
    };
    let generation = session.generation;
    let question = OccupancyQuestion::Blocks { generation, function: function.handle, threads, shared, flags };
    device.process.objects.occupancy.answer(question, |_| {
        let (module, function) = (function.module.handle, function.resolve(session)?.index);
        let ask = OccupancyBlocks { module, function, block: threads, shared_bytes: shared, flags };
        session.connection.call(&ask).map(|answer| u64::from(answer.blocks))
    })
}

pub unsafe fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    out: *mut i32,
    function: usize,
    block: i32,
    shared_bytes: usize,
    flags: u32,
) -> CudaResult {
    let (device, function) = find(function)?;
    let threads = u32::try_from(block).ok().filter(|threads| *threads > 0 && flags <= 1).ok_or(INVALID_VALUE)?;
    let session = device.session_now();
    let fit = resident_blocks(device, session.as_deref(), &function, threads, shared_bytes as u64, flags)?;
    // SAFETY: the caller's output.
    unsafe { put(out, fit as i32) }
}

pub unsafe fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    out: *mut i32,
    function: usize,
    block: i32,
    shared_bytes: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, block, shared_bytes, 0) }
}

pub unsafe fn cuOccupancyMaxPotentialBlockSizeWithFlags(
    grid: *mut i32,
    block: *mut i32,
    function: usize,
    shared_of_block: Option<unsafe extern "C" fn(i32) -> usize>,
    shared_bytes: usize,
    limit: i32,
    flags: u32,
) -> CudaResult {
    let (device, function) = find(function)?;
    let session = device.session_now();
    let limits = limits(device.process);
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
        let fit = resident_blocks(device, session.as_deref(), &function, size as u32, shared as u64, flags)?;
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

pub unsafe fn cuOccupancyMaxPotentialBlockSize(
    grid: *mut i32,
    block: *mut i32,
    function: usize,
    shared_of_block: Option<unsafe extern "C" fn(i32) -> usize>,
    shared_bytes: usize,
    limit: i32,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of_block, shared_bytes, limit, 0) }
}

pub unsafe fn cuOccupancyAvailableDynamicSMemPerBlock(
    bytes: *mut usize,
    function: usize,
    count: i32,
    block: i32,
) -> CudaResult {
    let (device, function) = find(function)?;
    let count = u32::try_from(count).ok().filter(|count| *count > 0).ok_or(INVALID_VALUE)?;
    let found = match device.session_now().filter(|_| !is_software(device.process)) {
        None => {
            let own = attribute_of(&info(device, &function)?, 1).unwrap_or(0).max(0) as u64;
            (limits(device.process).shared / u64::from(count)).saturating_sub(own)
        }
        Some(session) => {
            let (generation, threads) = (session.generation, u32::try_from(block).map_err(|_| INVALID_VALUE)?);
            let question = OccupancyQuestion::Shared { generation, function: function.handle, blocks: count, threads };
            device.process.objects.occupancy.answer(question, |_| {
                let (module, function) = (function.module.handle, function.resolve(&session)?.index);
                let ask = OccupancyShared { module, function, blocks: count, block: threads };
                session.connection.call(&ask).map(|answer| answer.bytes)
            })?
        }
    };
    // SAFETY: the caller's output.
    unsafe { put(bytes, found as usize) }
}

unsafe fn clusters(out: *mut i32, function: usize, config: *const LaunchConfig, potential: bool) -> CudaResult {
    let (device, function) = find(function)?;
    // SAFETY: null, or the caller's configuration.
    let config = unsafe { config.as_ref() }.ok_or(INVALID_VALUE)?;
    // CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
    if device.process.profile().attribute(120) != Some(1) {
        let text = format!("{} has no thread block clusters", device.process.profile().device.name);
        return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, text));
    }
    // SAFETY: the caller's attribute list.
    let attributes = unsafe { launch::attributes(device.process, config)? }.list;
    let session = device.session()?;
    let ([gx, gy, gz], [bx, by, bz], shared_bytes) = (config.grid, config.block, config.shared_bytes);
    let question = OccupancyQuestion::Clusters {
        generation: session.generation,
        function: function.handle,
        sizes: [gx, gy, gz, bx, by, bz, shared_bytes],
        attributes: attributes.iter().map(|attribute: &LaunchAttribute| (attribute.id, attribute.value)).collect(),
        potential,
    };
    let count = device.process.objects.occupancy.answer(question, |_| {
        let ask = OccupancyClusters {
            module: function.module.handle,
            function: function.resolve(&session)?.index,
            grid: config.grid,
            block: config.block,
            shared_bytes,
            attributes,
            potential: u8::from(potential),
        };
        session.connection.call(&ask).map(|answer| u64::from(answer.count))
    })?;
    // SAFETY: the caller's output.
    unsafe { put(out, count as i32) }
}

pub unsafe fn cuOccupancyMaxActiveClusters(
    count: *mut i32,
    function: usize,
    config: *const LaunchConfig,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { clusters(count, function, config, false) }
}

pub unsafe fn cuOccupancyMaxPotentialClusterSize(
    size: *mut i32,
    function: usize,
    config: *const LaunchConfig,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { clusters(size, function, config, true) }
}
