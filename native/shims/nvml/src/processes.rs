//! Processes that use the lease.

use crate::client::{device, number};
use crate::device::check;
use crate::guard;
use crate::output::put;
use crate::status::{Answer, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NvmlReturn};
use serde_json::Value;

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProcessV1 {
    pid: u32,
    used_bytes: u64,
}

/// `nvmlProcessInfo_v2_t`, and `nvmlProcessInfo_t` since.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process {
    pid: u32,
    used_bytes: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// What stands for "no MIG instance".
const NO_INSTANCE: u32 = u32::MAX;

impl From<Process> for ProcessV1 {
    fn from(process: Process) -> Self {
        Self { pid: process.pid, used_bytes: process.used_bytes }
    }
}

fn running(handle: usize) -> Result<Vec<Process>, NvmlReturn> {
    let view = device(handle)?;
    let list = view.get("processes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Ok(list
        .iter()
        .map(|entry| Process {
            pid: number(entry, "/pid") as u32,
            used_bytes: number(entry, "/usedBytes"),
            gpu_instance: NO_INSTANCE,
            compute_instance: NO_INSTANCE,
        })
        .collect())
}

/// Nothing draws pictures, and no other server shares the device among processes.
fn none(handle: usize) -> Result<Vec<Process>, NvmlReturn> {
    check(handle).map(|()| Vec::new())
}

/// Fills the caller's array of `count` entries, or says how many there would be.
///
/// # Safety
/// `count` is null or points to a number; `infos` is null or has room for so many.
unsafe fn list<T: From<Process>>(count: *mut u32, infos: *mut T, found: Vec<Process>) -> Answer {
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null.
    let room = unsafe { count.read_unaligned() };
    // SAFETY: as above.
    unsafe { put(count, found.len() as u32)? };
    if found.is_empty() {
        return Ok(());
    }
    if infos.is_null() || (room as usize) < found.len() {
        return Err(INSUFFICIENT_SIZE);
    }
    for (index, process) in found.into_iter().enumerate() {
        // SAFETY: the index lies below the caller's count.
        unsafe { put(infos.add(index), process.into())? };
    }
    Ok(())
}

macro_rules! lists {
    ($($name:ident $entry:ty = $found:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As NVML's: `infos` has room for the entries that `count` names.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(handle: usize, count: *mut u32, infos: *mut $entry) -> NvmlReturn {
            // SAFETY: as the caller's.
            guard(|| unsafe { list(count, infos, $found(handle)?) })
        }
    )*};
}

lists! {
    nvmlDeviceGetComputeRunningProcesses ProcessV1 = running;
    nvmlDeviceGetComputeRunningProcesses_v2 Process = running;
    nvmlDeviceGetComputeRunningProcesses_v3 Process = running;
    nvmlDeviceGetGraphicsRunningProcesses ProcessV1 = none;
    nvmlDeviceGetGraphicsRunningProcesses_v2 Process = none;
    nvmlDeviceGetGraphicsRunningProcesses_v3 Process = none;
    nvmlDeviceGetMPSComputeRunningProcesses ProcessV1 = none;
    nvmlDeviceGetMPSComputeRunningProcesses_v2 Process = none;
    nvmlDeviceGetMPSComputeRunningProcesses_v3 Process = none;
}
