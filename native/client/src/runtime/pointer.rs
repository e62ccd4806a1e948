//! What an address is.

use super::context::{context, current_device};
use crate::driver;
use crate::error::{CudaResult, INVALID_VALUE};
use std::ffi::c_void;

/// cudaMemoryType: Unregistered 0, Host 1, Device 2, Managed 3.
struct Found {
    kind: u32,
    device: i32,
    device_address: u64,
    host_address: u64,
}

/// cudaInvalidDeviceId
const NO_DEVICE: i32 = -2;

fn find(address: u64) -> CudaResult<Found> {
    context()?;
    let (mut kind, mut device) = (0u32, 0i32);
    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    // SAFETY: live locals of the types that CUDA names.
    let found = unsafe {
        driver::cuPointerGetAttribute((&raw mut kind).cast::<c_void>(), 2, address)
            .and_then(|()| driver::cuPointerGetAttribute((&raw mut device).cast::<c_void>(), 9, address))
    };
    match found {
        Ok(()) if kind == 2 => Ok(Found { kind, device, device_address: address, host_address: 0 }),
        // Kernels cannot reach page-locked memory: it has no address on the device.
        Ok(()) => Ok(Found { kind: 1, device: current_device(), device_address: 0, host_address: address }),
        // An address of a lease that ended has more to say than that it is not known.
        Err(error) if error.text.is_some() => Err(error),
        Err(_) => Ok(Found { kind: 0, device: NO_DEVICE, device_address: 0, host_address: address }),
    }
}

/// Writes cudaPointerAttributes, `bytes` long.
unsafe fn put_attributes(attributes: *mut u8, bytes: usize, address: u64) -> CudaResult {
    if attributes.is_null() {
        return Err(INVALID_VALUE);
    }
    let found = find(address)?;
    let mut data = vec![0u8; bytes];
    data[0..4].copy_from_slice(&found.kind.to_ne_bytes());
    data[4..8].copy_from_slice(&found.device.to_ne_bytes());
    data[8..16].copy_from_slice(&found.device_address.to_ne_bytes());
    data[16..24].copy_from_slice(&found.host_address.to_ne_bytes());
    // SAFETY: the caller's structure, `bytes` long.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), attributes, bytes) };
    Ok(())
}

pub unsafe fn cudaPointerGetAttributes_12(attributes: *mut u8, address: u64) -> CudaResult {
    // SAFETY: the caller's structure, which ends here in CUDA 12.
    unsafe { put_attributes(attributes, 24, address) }
}

pub unsafe fn cudaPointerGetAttributes_13(attributes: *mut u8, address: u64) -> CudaResult {
    // SAFETY: the caller's structure, with CUDA 13's reserved end.
    unsafe { put_attributes(attributes, 88, address) }
}
