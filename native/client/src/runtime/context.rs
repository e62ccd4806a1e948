//! Initialisation at the first call that needs it, and the device of each thread.

use crate::device::Device;
use crate::driver;
use crate::error::{CudaResult, INVALID_DEVICE};
use crate::fork;
use crate::process::Process;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// What `cudaSetDevice` chose on this thread.
    static DEVICE: Cell<i32> = const { Cell::new(0) };
}

/// The process, with CUDA initialised.
#[inline]
pub(crate) fn initialised() -> CudaResult<&'static Process> {
    if let Ok(process) = driver::ready() {
        return Ok(process);
    }
    // SAFETY: no pointers go in.
    unsafe { driver::cuInit(0)? };
    driver::ready()
}

/// The device of the thread's current context: the program's own, else the primary one of the thread's device.
#[inline]
pub(crate) fn context() -> CudaResult<Device> {
    initialised()?;
    if driver::context::is_missing()? {
        make_current(DEVICE.get())?;
    }
    driver::current()
}

/// Primary contexts that this process holds, by device and the count of forks at the time.
static HELD: Mutex<Option<HashMap<(u32, i32), usize>>> = Mutex::new(None);

/// The primary context of a device, held from the first question on.
pub(crate) fn primary(device: i32) -> CudaResult<usize> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let held = held.get_or_insert_default();
    if let Some(context) = held.get(&(fork::count(), device)) {
        return Ok(*context);
    }
    let mut context = 0;
    // SAFETY: a live local.
    unsafe { driver::cuDevicePrimaryCtxRetain(&raw mut context, device)? };
    held.insert((fork::count(), device), context);
    Ok(context)
}

/// Lets a primary context go. True when it was held.
pub(crate) fn release_primary(device: i32) -> bool {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.get_or_insert_default().remove(&(fork::count(), device)).is_some()
}

fn make_current(device: i32) -> CudaResult {
    // SAFETY: a context that lives as long as the process holds it.
    unsafe { driver::cuCtxSetCurrent(primary(device)?) }
}

/// The thread's device: that of its current context, else the one it chose.
pub(crate) fn current_device() -> i32 {
    let mut device = 0;
    // SAFETY: a live local.
    match unsafe { driver::cuCtxGetDevice(&raw mut device) } {
        Ok(()) => device,
        Err(_) => DEVICE.get(),
    }
}

/// Devices that the program sees.
pub(crate) fn device_count() -> CudaResult<i32> {
    initialised()?;
    let mut count = 0;
    // SAFETY: a live local.
    unsafe { driver::cuDeviceGetCount(&raw mut count)? };
    Ok(count)
}

/// Fails when there is no such device.
pub(crate) fn check_device(device: i32) -> CudaResult {
    if (0..device_count()?).contains(&device) { Ok(()) } else { Err(INVALID_DEVICE) }
}

/// Chooses the thread's device and makes its primary context current.
pub(crate) fn choose_device(device: i32) -> CudaResult {
    check_device(device)?;
    make_current(device)?;
    DEVICE.set(device);
    Ok(())
}
