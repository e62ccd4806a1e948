//! Functions and kernels: what is known of them.

use super::device::check;
use super::{module, put, put_optional, ready};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::message;
use crate::objects::{Function, attribute_of};
use sluice_protocol::{FunctionInfo, cuda};
use std::ffi::c_char;

/// From gpud when there is a lease, else what the image itself says.
pub(crate) fn info(device: Device, function: &Function) -> CudaResult<FunctionInfo> {
    let device = module::device_of(device, &function.module);
    if let Some(session) = device.session_now() {
        return Ok(function.resolve(&session)?.info.clone());
    }
    match function.known() {
        Some(info) => Ok(info),
        // A binary image: gpud must look at it.
        None => Ok(function.resolve(&*device.session()?)?.info.clone()),
    }
}

pub unsafe fn cuFuncGetAttribute(value: *mut i32, attribute: u32, function: usize) -> CudaResult {
    let device = super::here()?;
    let function = device.process.objects.functions.get(function)?;
    let found = match attribute_of(&info(device, &function)?, attribute) {
        Some(found) => found,
        // Clusters: not set. Others up to the last known one: 0.
        None if attribute < 16 => 0,
        None => return Err(INVALID_VALUE),
    };
    // SAFETY: the caller's output.
    unsafe { put(value, found) }
}

pub unsafe fn cuKernelGetAttribute(value: *mut i32, attribute: u32, kernel: usize, device: i32) -> CudaResult {
    check(device)?;
    // SAFETY: as the caller's.
    unsafe { cuFuncGetAttribute(value, attribute, kernel) }
}

pub unsafe fn cuFuncSetAttribute(function: usize, attribute: u32, value: i32) -> CudaResult {
    let device = super::here()?;
    let function = device.process.objects.functions.get(function)?;
    if attribute == 8 {
        let most = device.process.profile().attribute(97).unwrap_or(48 << 10);
        if value < 0 || value > most {
            return Err(INVALID_VALUE);
        }
    }
    // CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, …_HEIGHT, …_DEPTH; CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
    if matches!(attribute, 11..=13) && value > 1 && device.process.profile().attribute(120) != Some(1) {
        let text = format!("{} has no thread block clusters", device.process.profile().device.name);
        return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, text));
    }
    device.process.objects.occupancy.forget();
    let device = module::device_of(device, &function.module);
    function.set_attribute(device.session_now().as_deref(), attribute, value)
}

pub unsafe fn cuKernelSetAttribute(attribute: u32, value: i32, kernel: usize, device: i32) -> CudaResult {
    check(device)?;
    // SAFETY: as the caller's.
    unsafe { cuFuncSetAttribute(kernel, attribute, value) }
}

fn exists(function: usize) -> CudaResult {
    ready()?.objects.functions.get(function).map(|_| ())
}

pub unsafe fn cuFuncSetCacheConfig(function: usize, config: u32) -> CudaResult {
    exists(function)?;
    if config <= 3 { Ok(()) } else { Err(INVALID_VALUE) }
}

pub unsafe fn cuKernelSetCacheConfig(kernel: usize, config: u32, device: i32) -> CudaResult {
    check(device)?;
    // SAFETY: as the caller's.
    unsafe { cuFuncSetCacheConfig(kernel, config) }
}

pub unsafe fn cuFuncSetSharedMemConfig(function: usize, config: u32) -> CudaResult {
    exists(function)?;
    if config <= 2 { Ok(()) } else { Err(INVALID_VALUE) }
}

pub unsafe fn cuFuncGetModule(module: *mut usize, function: usize) -> CudaResult {
    let function = ready()?.objects.functions.get(function)?;
    // SAFETY: the caller's output.
    unsafe { put(module, function.module.handle as usize) }
}

pub unsafe fn cuKernelGetFunction(function: *mut usize, kernel: usize) -> CudaResult {
    exists(kernel)?;
    // SAFETY: the caller's output.
    unsafe { put(function, kernel) }
}

pub unsafe fn cuFuncGetName(name: *mut *const c_char, function: usize) -> CudaResult {
    let function = ready()?.objects.functions.get(function)?;
    // SAFETY: the caller's output.
    unsafe { put(name, message::interned(&function.name).as_ptr()) }
}

pub unsafe fn cuFuncGetParamInfo(function: usize, index: usize, offset: *mut usize, bytes: *mut usize) -> CudaResult {
    let device = super::here()?;
    let function = device.process.objects.functions.get(function)?;
    let info = info(device, &function)?;
    let parameter = info.parameters.get(index).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's outputs.
    unsafe {
        put(offset, parameter.offset as usize)?;
        put_optional(bytes, parameter.bytes as usize);
    }
    Ok(())
}

/// CU_FUNCTION_LOADING_STATE_LOADED: a module comes whole.
pub unsafe fn cuFuncIsLoaded(state: *mut u32, function: usize) -> CudaResult {
    exists(function)?;
    // SAFETY: the caller's output.
    unsafe { put(state, 1) }
}

pub unsafe fn cuFuncLoad(function: usize) -> CudaResult {
    exists(function)
}

pub unsafe fn cuFuncGetParamCount(function: usize, count: *mut usize) -> CudaResult {
    let device = super::here()?;
    let function = device.process.objects.functions.get(function)?;
    // SAFETY: the caller's output.
    unsafe { put(count, info(device, &function)?.parameters.len()) }
}
