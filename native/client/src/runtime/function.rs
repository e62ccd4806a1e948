//! What is known of kernels, and occupancy. A function is the address of a kernel's stub, a kernel's handle, or a
//! driver handle.

use super::code::INVALID_DEVICE_FUNCTION;
use super::context::{check_device, context};
use super::register;
use super::types::{FunctionAttributes, LaunchConfig};
use crate::driver::{self, put};
use crate::error::{CudaError, CudaResult, INVALID_HANDLE, INVALID_VALUE};
use std::ffi::c_char;

/// Does something with the driver's handle of a function.
#[inline]
pub(crate) fn with_function<T>(function: usize, work: impl Fn(usize) -> CudaResult<T>) -> CudaResult<T> {
    let process = context()?.process;
    let Some(kernel) = register::kernel(function) else {
        let known = process.objects.functions.get(function).is_ok();
        return if known { work(function) } else { Err(CudaError::code(INVALID_DEVICE_FUNCTION)) };
    };
    let found = kernel.function()?;
    match work(found) {
        // After a reset of the device it is there again under another handle.
        Err(error) if error == INVALID_HANDLE && process.objects.functions.get(found).is_err() => {
            kernel.forget();
            work(kernel.function()?)
        }
        other => other,
    }
}

/// What nvcc's stubs keep for good: it must not depend on a lease.
pub unsafe fn __cudaGetKernel(kernel: *mut usize, host: usize) -> CudaResult {
    let found = register::kernel(host).ok_or(CudaError::code(INVALID_DEVICE_FUNCTION))?;
    // SAFETY: the caller's output.
    unsafe { put(kernel, found.handle) }
}

/// A handle that driver functions take, too.
pub unsafe fn cudaGetKernel(kernel: *mut usize, function: usize) -> CudaResult {
    let found = with_function(function, Ok)?;
    // SAFETY: the caller's output.
    unsafe { put(kernel, found) }
}

pub unsafe fn cudaGetFuncBySymbol(out: *mut usize, function: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cudaGetKernel(out, function) }
}

pub unsafe fn cudaFuncGetAttributes(attributes: *mut FunctionAttributes, function: usize) -> CudaResult {
    let found = with_function(function, |handle| {
        let get = |attribute: u32| {
            let mut value = 0;
            // SAFETY: a live local.
            unsafe { driver::cuFuncGetAttribute(&raw mut value, attribute, handle) }.map(|()| value)
        };
        // Those of later versions are 0 where the driver does not know them.
        let late = |attribute: u32| get(attribute).unwrap_or(0);
        Ok(FunctionAttributes {
            max_threads: get(0)?,
            shared_bytes: get(1)? as usize,
            constant_bytes: get(2)? as usize,
            local_bytes: get(3)? as usize,
            registers: get(4)?,
            ptx_version: get(5)?,
            binary_version: get(6)?,
            cache_mode_ca: late(7),
            max_dynamic_shared_bytes: late(8),
            shared_carveout: late(9),
            cluster_must_be_set: late(10),
            cluster_width: late(11),
            cluster_height: late(12),
            cluster_depth: late(13),
            large_clusters_allowed: late(14),
            cluster_scheduling: late(15),
            reserved: [0; 16],
        })
    })?;
    // SAFETY: the caller's output.
    unsafe { put(attributes, found) }
}

/// cudaFuncAttribute and CUfunction_attribute count alike.
pub unsafe fn cudaFuncSetAttribute(function: usize, attribute: u32, value: i32) -> CudaResult {
    // SAFETY: no pointers go in.
    with_function(function, |handle| unsafe { driver::cuFuncSetAttribute(handle, attribute, value) })
}

pub unsafe fn cudaKernelSetAttributeForDevice(kernel: usize, attribute: u32, value: i32, device: i32) -> CudaResult {
    check_device(device)?;
    // SAFETY: no pointers go in.
    with_function(kernel, |handle| unsafe { driver::cuKernelSetAttribute(attribute, value, handle, device) })
}

pub unsafe fn cudaFuncSetCacheConfig(function: usize, config: u32) -> CudaResult {
    // SAFETY: no pointers go in.
    with_function(function, |handle| unsafe { driver::cuFuncSetCacheConfig(handle, config) })
}

pub unsafe fn cudaFuncSetSharedMemConfig(function: usize, config: u32) -> CudaResult {
    // SAFETY: no pointers go in.
    with_function(function, |handle| unsafe { driver::cuFuncSetSharedMemConfig(handle, config) })
}

pub unsafe fn cudaFuncGetName(name: *mut *const c_char, function: usize) -> CudaResult {
    // SAFETY: as the caller's.
    with_function(function, |handle| unsafe { driver::cuFuncGetName(name, handle) })
}

pub unsafe fn cudaFuncGetParamInfo(function: usize, index: usize, offset: *mut usize, bytes: *mut usize) -> CudaResult {
    // SAFETY: as the caller's.
    with_function(function, |handle| unsafe { driver::cuFuncGetParamInfo(handle, index, offset, bytes) })
}

pub unsafe fn cudaFuncGetParamCount(function: usize, count: *mut usize) -> CudaResult {
    let found = with_function(function, |handle| {
        let device = driver::current()?;
        let function = device.process.objects.functions.get(handle)?;
        driver::function::info(device, &function).map(|info| info.parameters.len())
    })?;
    // SAFETY: the caller's output.
    unsafe { put(count, found) }
}

pub unsafe fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut i32,
    function: usize,
    block: i32,
    shared_bytes: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block, shared_bytes, 0) }
}

pub unsafe fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks: *mut i32,
    function: usize,
    block: i32,
    shared_bytes: usize,
    flags: u32,
) -> CudaResult {
    // SAFETY: as the caller's.
    with_function(function, |handle| unsafe {
        driver::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, block, shared_bytes, flags)
    })
}

pub unsafe fn cudaOccupancyAvailableDynamicSMemPerBlock(
    bytes: *mut usize,
    function: usize,
    blocks: i32,
    block: i32,
) -> CudaResult {
    // SAFETY: as the caller's.
    with_function(function, |handle| unsafe {
        driver::cuOccupancyAvailableDynamicSMemPerBlock(bytes, handle, blocks, block)
    })
}

// Driver functions that take structures, by their entries for C.
unsafe extern "C" {
    fn sluice_cuOccupancyMaxActiveClusters(
        clusters: *mut i32,
        function: usize,
        config: *const super::types::DriverLaunchConfig,
    ) -> u32;
    fn sluice_cuOccupancyMaxPotentialClusterSize(
        size: *mut i32,
        function: usize,
        config: *const super::types::DriverLaunchConfig,
    ) -> u32;
}

fn result(code: u32) -> CudaResult {
    if code == 0 { Ok(()) } else { Err(CudaError::code(code)) }
}

pub unsafe fn cudaOccupancyMaxActiveClusters(
    clusters: *mut i32,
    function: usize,
    config: *const LaunchConfig,
) -> CudaResult {
    // SAFETY: the caller's configuration.
    let config = unsafe { config.as_ref() }.ok_or(INVALID_VALUE)?.of_driver(0)?;
    // SAFETY: as the caller's; the configuration is a live local.
    with_function(function, |handle| {
        result(unsafe { sluice_cuOccupancyMaxActiveClusters(clusters, handle, &raw const config) })
    })
}

pub unsafe fn cudaOccupancyMaxPotentialClusterSize(
    size: *mut i32,
    function: usize,
    config: *const LaunchConfig,
) -> CudaResult {
    // SAFETY: the caller's configuration.
    let config = unsafe { config.as_ref() }.ok_or(INVALID_VALUE)?.of_driver(0)?;
    // SAFETY: as the caller's; the configuration is a live local.
    with_function(function, |handle| {
        result(unsafe { sluice_cuOccupancyMaxPotentialClusterSize(size, handle, &raw const config) })
    })
}

/// Plain data: how a texel is made up.
pub unsafe fn cudaCreateChannelDesc(x: i32, y: i32, z: i32, w: i32, format: u32) -> super::types::ChannelFormat {
    super::types::ChannelFormat { x, y, z, w, format }
}
