//! Launches. Everything that CUDA tells synchronously is checked here, then the launch is posted.

use super::context::current_context;
use super::{current, ready, stream};
use crate::error::{CudaError, CudaResult, INVALID_HANDLE, INVALID_VALUE};
use crate::objects::Resolved;
use crate::process::Process;
use sluice_protocol::cuda;
use sluice_protocol::messages::{Launch, StreamSynchronize};
use std::cell::RefCell;
use std::ffi::c_void;

/// CUlaunchConfig
#[repr(C)]
pub struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: usize,
    attributes: *const Attribute,
    count: u32,
}

/// CUlaunchAttribute
#[repr(C)]
pub struct Attribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

const COOPERATIVE: u32 = 1;

/// What a launch is made of.
struct Work {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    flags: u32,
    stream: usize,
}

unsafe fn flags_of(config: &LaunchConfig) -> CudaResult<u32> {
    let mut flags = 0;
    if config.attributes.is_null() {
        return Ok(flags);
    }
    // SAFETY: the caller's list, `count` long.
    let attributes = unsafe { std::slice::from_raw_parts(config.attributes, config.count as usize) };
    for attribute in attributes {
        match attribute.id {
            2 if attribute.value[0] != 0 => flags |= COOPERATIVE,
            4 if attribute.value[..3].iter().any(|size| *size > 1) => {
                return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, "thread block clusters are not served yet"));
            }
            // Hints, and requests that plain stream order fulfils.
            0..=6 | 8..=10 | 14 => {}
            other => {
                return Err(CudaError::new(
                    cuda::ERROR_NOT_SUPPORTED,
                    format!("launch attribute {other} is not served yet"),
                ));
            }
        }
    }
    Ok(flags)
}

fn check(process: &Process, function: &Resolved, work: &Work) -> CudaResult {
    let [x, y, z] = work.block;
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    if threads == 0 || work.grid.contains(&0) {
        return Err(INVALID_VALUE);
    }
    let profile = process.profile();
    let limits = [2, 3, 4, 5, 6, 7].map(|number| profile.attribute(number).unwrap_or(i32::MAX).max(1) as u32);
    let sizes = [x, y, z, work.grid[0], work.grid[1], work.grid[2]];
    if sizes.iter().zip(limits).any(|(size, limit)| *size > limit) {
        return Err(INVALID_VALUE);
    }
    if threads > u64::from(function.max_threads) {
        let most = profile.attribute(1).unwrap_or(1024) as u64;
        return Err(if threads > most { INVALID_VALUE } else { CudaError::code(cuda::ERROR_LAUNCH_OUT_OF_RESOURCES) });
    }
    if work.shared_bytes > function.max_dynamic_shared {
        return Err(INVALID_VALUE);
    }
    Ok(())
}

/// Fills the parameter buffer from the list of pointers, or from `extra`.
unsafe fn gather(
    function: &Resolved,
    parameters: *const *const c_void,
    extra: *const *const c_void,
    buffer: &mut Vec<u8>,
) -> CudaResult {
    buffer.clear();
    buffer.resize(function.parameter_bytes, 0);
    if !parameters.is_null() {
        for (index, parameter) in function.info.parameters.iter().enumerate() {
            let (start, bytes) = (parameter.offset as usize, parameter.bytes as usize);
            // SAFETY: the caller's list has an entry for each parameter, which points to its value.
            unsafe {
                let value = parameters.add(index).read();
                if value.is_null() {
                    return Err(INVALID_VALUE);
                }
                std::ptr::copy_nonoverlapping(value.cast::<u8>(), buffer.as_mut_ptr().add(start), bytes);
            }
        }
        return Ok(());
    }
    if extra.is_null() {
        return if function.parameter_bytes == 0 { Ok(()) } else { Err(INVALID_VALUE) };
    }
    let (mut data, mut bytes) = (std::ptr::null::<u8>(), 0usize);
    for index in (0..).step_by(2) {
        // SAFETY: the list ends with CU_LAUNCH_PARAM_END (0); every other key has a value.
        let (key, value) = unsafe {
            let key = extra.add(index).read() as usize;
            if key == 0 {
                break;
            }
            (key, extra.add(index + 1).read())
        };
        match key {
            1 => data = value.cast(),
            // SAFETY: CU_LAUNCH_PARAM_BUFFER_SIZE points to a size.
            2 => bytes = unsafe { value.cast::<usize>().read() },
            _ => return Err(INVALID_VALUE),
        }
    }
    if data.is_null() || bytes < function.parameter_bytes {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's buffer is at least as long as the parameters.
    unsafe { std::ptr::copy_nonoverlapping(data, buffer.as_mut_ptr(), function.parameter_bytes) };
    Ok(())
}

/// A pointer into memory of an ended lease would fault on the device; this says why instead.
fn check_pointers(process: &Process, function: &Resolved, buffer: &[u8]) -> CudaResult {
    for parameter in function.info.parameters.iter().filter(|parameter| parameter.bytes == 8) {
        let start = parameter.offset as usize;
        let mut value = [0; 8];
        value.copy_from_slice(&buffer[start..start + 8]);
        if let Some(error) = process.stale(u64::from_le_bytes(value)) {
            return Err(error);
        }
    }
    Ok(())
}

unsafe fn launch(
    function: usize,
    work: &Work,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> CudaResult {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let process = current()?;
    let function = process.objects.functions.get(function).map_err(|_| INVALID_HANDLE)?;
    let session = process.session()?;
    let resolved = function.resolve(&session)?;
    check(process, &resolved, work)?;
    let stream = stream::at_server(process, &session, work.stream)?;
    BUFFER.with(|buffer| {
        let mut buffer = buffer.try_borrow_mut().map_err(|_| CudaError::code(cuda::ERROR_UNKNOWN))?;
        // SAFETY: the caller's parameter list.
        unsafe { gather(&resolved, parameters, extra, &mut buffer)? };
        if session.generation > 1 {
            check_pointers(process, &resolved, &buffer)?;
        }
        session.connection.post(&Launch {
            module: function.module.handle,
            function: resolved.index,
            grid: work.grid,
            block: work.block,
            shared_bytes: work.shared_bytes,
            flags: work.flags,
            stream,
            parameters: &buffer,
        })
    })?;
    if blocking() {
        session.connection.call(&StreamSynchronize { stream })?;
    }
    Ok(())
}

/// `CUDA_LAUNCH_BLOCKING=1`
fn blocking() -> bool {
    static BLOCKING: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *BLOCKING.get_or_init(|| std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|value| value == "1"))
}

pub unsafe fn cuLaunchKernel(
    function: usize,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_bytes: u32,
    stream: usize,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> CudaResult {
    let work =
        Work { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared_bytes, flags: 0, stream };
    // SAFETY: as the caller's.
    unsafe { launch(function, &work, parameters, extra) }
}

pub unsafe fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    function: usize,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> CudaResult {
    // SAFETY: the caller's configuration.
    let config = unsafe { config.as_ref() }.ok_or(INVALID_VALUE)?;
    let work = Work {
        grid: config.grid,
        block: config.block,
        shared_bytes: config.shared_bytes,
        // SAFETY: the caller's attribute list.
        flags: unsafe { flags_of(config)? },
        stream: config.stream,
    };
    // SAFETY: as the caller's.
    unsafe { launch(function, &work, parameters, extra) }
}

pub unsafe fn cuLaunchCooperativeKernel(
    function: usize,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_bytes: u32,
    stream: usize,
    parameters: *const *const c_void,
) -> CudaResult {
    let work = Work {
        grid: [grid_x, grid_y, grid_z],
        block: [block_x, block_y, block_z],
        shared_bytes,
        flags: COOPERATIVE,
        stream,
    };
    // SAFETY: as the caller's.
    unsafe { launch(function, &work, parameters, std::ptr::null()) }
}

/// Host functions run here, after the stream's work so far and before any later work: this call waits for both.
pub unsafe fn cuLaunchHostFunc(
    on: usize,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> CudaResult {
    let process = current()?;
    let function = function.ok_or(INVALID_VALUE)?;
    let session = process.session()?;
    let stream = stream::at_server(process, &session, on)?;
    session.connection.call(&StreamSynchronize { stream })?;
    // SAFETY: the caller's function with its own argument.
    unsafe { function(data) };
    Ok(())
}

pub unsafe fn cuStreamAddCallback(
    on: usize,
    function: Option<unsafe extern "C" fn(usize, u32, *mut c_void)>,
    data: *mut c_void,
    flags: u32,
) -> CudaResult {
    let process = ready()?;
    current_context()?;
    let function = function.filter(|_| flags == 0).ok_or(INVALID_VALUE)?;
    let session = process.session()?;
    let stream = stream::at_server(process, &session, on)?;
    let status = match session.connection.call(&StreamSynchronize { stream }) {
        Ok(_) => cuda::SUCCESS,
        Err(error) => error.code,
    };
    // SAFETY: the caller's function with its own argument.
    unsafe { function(on, status, data) };
    Ok(())
}
