//! Memory and use of the lease, not the card.

use crate::client::{device, number};
use crate::device::check;
use crate::guard;
use crate::output::put;
use crate::status::{ARGUMENT_VERSION_MISMATCH, INVALID_ARGUMENT, NvmlReturn};

/// `nvmlMemory_t`, bytes.
#[repr(C)]
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`, bytes; the version is the caller's.
#[repr(C)]
pub struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// Size of the struct and version 2, as NVML writes it.
const MEMORY_V2: u32 = size_of::<MemoryV2>() as u32 | 2 << 24;

/// `nvmlUtilization_t`, percent.
#[repr(C)]
pub struct Utilization {
    gpu: u32,
    memory: u32,
}

fn measured(handle: usize) -> Result<Memory, NvmlReturn> {
    let view = device(handle)?;
    let (total, used) = (number(&view, "/memory/totalBytes"), number(&view, "/memory/usedBytes"));
    Ok(Memory { total, free: total.saturating_sub(used), used })
}

/// `nvmlDeviceGetMemoryInfo`.
///
/// # Safety
/// As NVML's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(handle: usize, memory: *mut Memory) -> NvmlReturn {
    guard(|| {
        // SAFETY: the caller's output.
        unsafe { put(memory, measured(handle)?) }
    })
}

/// `nvmlDeviceGetMemoryInfo_v2`: nothing is reserved of a lease's memory.
///
/// # Safety
/// As NVML's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(handle: usize, memory: *mut MemoryV2) -> NvmlReturn {
    guard(|| {
        check(handle)?;
        if memory.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not null; the caller has set the version.
        let version = unsafe { (&raw const (*memory).version).read_unaligned() };
        if version != MEMORY_V2 {
            return Err(ARGUMENT_VERSION_MISMATCH);
        }
        let Memory { total, free, used } = measured(handle)?;
        // SAFETY: the caller's output, of the version checked.
        unsafe { put(memory, MemoryV2 { version, total, reserved: 0, free, used }) }
    })
}

/// `nvmlDeviceGetUtilizationRates`: compute is the used part of the lease's own part in the last minute. How busy the
/// memory's bus is cannot be told for one lease: it is given as 0.
///
/// # Safety
/// As NVML's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(handle: usize, utilization: *mut Utilization) -> NvmlReturn {
    guard(|| {
        let gpu = number(&*device(handle)?, "/computePercent").min(100) as u32;
        // SAFETY: the caller's output.
        unsafe { put(utilization, Utilization { gpu, memory: 0 }) }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_of_the_memory_struct_is_nvmls() {
        assert_eq!(super::MEMORY_V2, 0x0200_0028);
    }
}
