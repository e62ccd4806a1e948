//! Launches.

use super::code::{INVALID_CONFIGURATION, MISSING_CONFIGURATION};
use super::function::with_function;
use super::per_thread;
use super::types::{Dim3, DriverLaunchConfig, LaunchConfig};
use crate::driver::{self, put};
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::process;
use std::cell::RefCell;
use std::ffi::c_void;

/// What `<<<…>>>` says.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: usize,
}

/// cudaErrorCudartUnloading
const UNLOADING: u32 = 4;

thread_local! {
    /// Pushed by `<<<…>>>`, popped by the kernel's stub.
    static PUSHED: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

pub unsafe fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared_bytes: usize, stream: usize) -> u32 {
    let configuration = Configuration { grid, block, shared_bytes, stream };
    // In the end of a thread no kernel begins: `<<<…>>>` leaves the stub out.
    PUSHED.try_with(|pushed| pushed.borrow_mut().push(configuration)).map_or(UNLOADING, |()| 0)
}

pub unsafe fn __cudaPopCallConfiguration(
    grid: *mut Dim3,
    block: *mut Dim3,
    shared_bytes: *mut usize,
    stream: *mut usize,
) -> CudaResult {
    let last = PUSHED
        .try_with(|pushed| pushed.borrow_mut().pop())
        .ok()
        .flatten()
        .ok_or(CudaError::code(MISSING_CONFIGURATION))?;
    // SAFETY: the stub's outputs.
    unsafe {
        put(grid, last.grid)?;
        put(block, last.block)?;
        put(shared_bytes, last.shared_bytes)?;
        put(stream, last.stream)
    }
}

/// The runtime has an error of its own for sizes that no kernel could have.
fn explain(error: CudaError, grid: Dim3, block: Dim3) -> CudaError {
    let profile = process::get().profile();
    let limit = |attribute: i32| profile.attribute(attribute).unwrap_or(i32::MAX) as u32;
    let sizes = [block.x, block.y, block.z, grid.x, grid.y, grid.z];
    let threads = u64::from(block.x) * u64::from(block.y) * u64::from(block.z);
    let impossible =
        (2..).zip(sizes).any(|(attribute, size)| size == 0 || size > limit(attribute)) || threads > u64::from(limit(1));
    if error == INVALID_VALUE && impossible { CudaError::code(INVALID_CONFIGURATION) } else { error }
}

pub unsafe fn cudaLaunchKernel(
    function: usize,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    shared_bytes: usize,
    stream: usize,
) -> CudaResult {
    let shared = u32::try_from(shared_bytes).map_err(|_| INVALID_VALUE)?;
    // SAFETY: the caller's arguments, one for each parameter.
    with_function(function, |handle| unsafe {
        let none = std::ptr::null();
        let (x, y, z) = (block.x, block.y, block.z);
        driver::cuLaunchKernel(handle, grid.x, grid.y, grid.z, x, y, z, shared, stream, arguments, none)
    })
    .map_err(|error| explain(error, grid, block))
}

pub unsafe fn __cudaLaunchKernel(
    kernel: usize,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    shared_bytes: usize,
    stream: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream) }
}

pub unsafe fn cudaLaunchCooperativeKernel(
    function: usize,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    shared_bytes: usize,
    stream: usize,
) -> CudaResult {
    let shared = u32::try_from(shared_bytes).map_err(|_| INVALID_VALUE)?;
    // SAFETY: the caller's arguments, one for each parameter.
    with_function(function, |handle| unsafe {
        let (x, y, z) = (block.x, block.y, block.z);
        driver::cuLaunchCooperativeKernel(handle, grid.x, grid.y, grid.z, x, y, z, shared, stream, arguments)
    })
    .map_err(|error| explain(error, grid, block))
}

impl LaunchConfig {
    /// As the driver takes it; launch attributes are the same in both.
    pub(crate) fn of_driver(&self, default_stream: usize) -> CudaResult<DriverLaunchConfig> {
        Ok(DriverLaunchConfig {
            grid: self.grid,
            block: self.block,
            shared_bytes: u32::try_from(self.shared_bytes).map_err(|_| INVALID_VALUE)?,
            stream: if default_stream == 0 { self.stream } else { per_thread(self.stream) },
            attributes: self.attributes,
            count: self.count,
        })
    }
}

pub unsafe fn cudaLaunchKernelExC(
    default_stream: usize,
    config: *const LaunchConfig,
    function: usize,
    arguments: *const *const c_void,
) -> CudaResult {
    // SAFETY: the caller's configuration.
    let config = unsafe { config.as_ref() }.ok_or(INVALID_VALUE)?;
    let of_driver = config.of_driver(default_stream)?;
    // SAFETY: the caller's arguments and attributes; the configuration is a live local.
    with_function(function, |handle| unsafe {
        driver::cuLaunchKernelEx((&raw const of_driver).cast(), handle, arguments, std::ptr::null())
    })
    .map_err(|error| explain(error, config.grid, config.block))
}
