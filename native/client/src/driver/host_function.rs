//! Functions of the program in stream order: gpud tells when a stream has come to one, it runs here on a thread of its
//! own, and the stream goes on when it has returned.

use super::{capture, current, stream};
use crate::device::Device;
use crate::error::{CudaResult, INVALID_VALUE};
use crate::host::{Call, Callback, Function};
use sluice_protocol::messages::HostFunction;
use std::ffi::c_void;

fn queue(device: Device, on: usize, call: Call) -> CudaResult {
    let device = stream::home(device, on)?;
    let session = device.session()?;
    let stream = stream::at_server(device, &session, on)?;
    let function = session.shared.host.add_function(call, true);
    session
        .connection
        .post(&HostFunction { stream, function })
        .inspect_err(|_| session.shared.host.remove_function(function))
}

pub unsafe fn cuLaunchHostFunc(on: usize, function: Option<Function>, data: *mut c_void) -> CudaResult {
    let device = current()?;
    let function = function.ok_or(INVALID_VALUE)?;
    if capture::host_function(device, on, function, data as usize)? {
        return Ok(());
    }
    queue(device, on, Call::Function { function, data: data as usize })
}

/// `mode` says how the driver's thread waits for the stream (CU_HOST_TASK_*); here no thread waits.
pub unsafe fn cuLaunchHostFunc_v2(on: usize, function: Option<Function>, data: *mut c_void, mode: u32) -> CudaResult {
    if mode > 1 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: as the caller's.
    unsafe { cuLaunchHostFunc(on, function, data) }
}

/// Callbacks cannot be captured (CUDA: use cuLaunchHostFunc).
pub unsafe fn cuStreamAddCallback(on: usize, callback: Option<Callback>, data: *mut c_void, flags: u32) -> CudaResult {
    let device = current()?;
    let callback = callback.filter(|_| flags == 0).ok_or(INVALID_VALUE)?;
    capture::refuse(device, on)?;
    queue(device, on, Call::Callback { callback, stream: on, data: data as usize })
}
