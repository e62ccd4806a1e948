//! The program's own virtual memory management: addresses come from the session's range, physical memory is charged
//! to the lease as allocations are. Each of these functions waits for gpud where it changes anything there.

use super::abi::{Access, AllocationProperties, Location};
use super::pool::{check_handle_types, check_location};
use super::{context, current, put, ready};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::objects::{is_handle, new_handle};
use crate::process::Process;
use crate::session::{Session, Unusable};
use sluice_protocol::cuda;
use sluice_protocol::messages::{PhysicalAccess, PhysicalMap, PhysicalUnmap};
use std::ffi::c_void;
use std::sync::Arc;

/// Sizes and addresses are multiples of this: what NVIDIA's devices map at least.
const GRANULARITY: u64 = 2 << 20;
/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
const FILE_DESCRIPTOR: u32 = 1;
/// CU_MEM_ACCESS_FLAGS_PROT_*
const NONE: u32 = 0;
const READ: u32 = 1;
const READ_WRITE: u32 = 3;

fn whole(bytes: u64) -> CudaResult {
    if bytes > 0 && bytes.is_multiple_of(GRANULARITY) { Ok(()) } else { Err(INVALID_VALUE) }
}

/// The device that the properties name.
fn check_properties(properties: &AllocationProperties) -> CudaResult<Device> {
    if properties.kind != 1 {
        return Err(INVALID_VALUE);
    }
    // PyTorch's expandable segments ask for memory that could be passed on, and seldom pass it on: exporting is refused.
    check_handle_types(properties.handle_types & !FILE_DESCRIPTOR)?;
    check_location(properties.location.kind, properties.location.id)
}

fn properties(device: Device) -> AllocationProperties {
    AllocationProperties {
        kind: 1,
        handle_types: 0,
        location: Location { kind: 1, id: device.ordinal as i32 },
        windows: std::ptr::null_mut(),
        flags: [0; 8],
    }
}

/// The session to which an address belongs; None when its lease has ended, and the memory with it.
fn session_of(process: &'static Process, address: u64) -> CudaResult<Option<(Device, Arc<Session>)>> {
    if process.ended_range(address).is_some() {
        return Ok(None);
    }
    let device = process.device_at(address).ok_or(INVALID_VALUE)?;
    match device.any_session().map(|session| session.usable()) {
        Some(Err(Unusable::Lost(_))) | None => Ok(None),
        Some(_) => device.session().map(|session| Some((device, session))),
    }
}

/// The device that has the program's physical memory of this handle, and its session.
fn holder_of(process: &'static Process, handle: u64) -> Option<(Device, Arc<Session>)> {
    let mut sessions = process.devices().filter_map(|device| Some((device, device.any_session()?)));
    sessions.find(|(_, session)| session.mappings().bytes(handle).is_some())
}

pub unsafe fn cuMemGetAllocationGranularity(
    bytes: *mut usize,
    properties: *const AllocationProperties,
    option: u32,
) -> CudaResult {
    ready()?;
    // SAFETY: the caller's properties.
    let properties = unsafe { properties.as_ref() }.ok_or(INVALID_VALUE)?;
    if properties.kind != 1 || option > 1 {
        return Err(INVALID_VALUE);
    }
    check_location(properties.location.kind, properties.location.id)?;
    // SAFETY: the caller's output.
    unsafe { put(bytes, GRANULARITY as usize) }
}

pub unsafe fn cuMemAddressReserve(
    address: *mut u64,
    bytes: usize,
    alignment: usize,
    wish: u64,
    flags: u64,
) -> CudaResult {
    let device = super::here()?;
    whole(bytes as u64)?;
    if address.is_null() || flags != 0 || !(alignment == 0 || alignment.is_power_of_two()) {
        return Err(INVALID_VALUE);
    }
    let alignment = (alignment as u64).max(GRANULARITY);
    let found = device.session()?.reserve(bytes as u64, alignment, wish);
    // SAFETY: the caller's output.
    unsafe { put(address, found.ok_or(CudaError::code(cuda::ERROR_OUT_OF_MEMORY))?) }
}

pub unsafe fn cuMemAddressFree(address: u64, bytes: usize) -> CudaResult {
    let Some((_, session)) = session_of(ready()?, address)? else { return Ok(()) };
    if session.mappings().any(address, bytes as u64) || !session.unreserve(address, bytes as u64) {
        return Err(INVALID_VALUE);
    }
    Ok(())
}

pub unsafe fn cuMemCreate(
    handle: *mut u64,
    bytes: usize,
    properties: *const AllocationProperties,
    flags: u64,
) -> CudaResult {
    ready()?;
    // SAFETY: the caller's properties.
    let wanted = unsafe { properties.as_ref() }.ok_or(INVALID_VALUE)?;
    let device = check_properties(wanted)?;
    whole(bytes as u64)?;
    if handle.is_null() || flags != 0 {
        return Err(INVALID_VALUE);
    }
    let made = new_handle();
    device.session()?.create_physical(made, bytes as u64)?;
    // SAFETY: the caller's output.
    unsafe { put(handle, made) }
}

/// A handle of an ended lease is gone already: giving it back succeeds.
pub unsafe fn cuMemRelease(handle: u64) -> CudaResult {
    let process = ready()?;
    match holder_of(process, handle) {
        Some((_, session)) if session.mappings().release(handle) => session.release_unused(),
        _ if process.has_ended() && is_handle(handle) => Ok(()),
        _ => Err(INVALID_VALUE),
    }
}

pub unsafe fn cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, flags: u64) -> CudaResult {
    let process = ready()?;
    whole(bytes as u64)?;
    let (device, _) = holder_of(process, handle).ok_or(INVALID_VALUE)?;
    if process.device_at(address).is_some_and(|owner| owner != device) {
        return Err(CudaError::new(
            cuda::ERROR_NOT_SUPPORTED,
            "memory is mapped at addresses of its own device: make that device current and reserve them there",
        ));
    }
    let session = device.session()?;
    let mut mappings = session.mappings();
    let most = mappings.bytes(handle).ok_or(INVALID_VALUE)?;
    // CUDA maps memory from its beginning, and all of it.
    if (bytes as u64) < most {
        return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, "memory is mapped as a whole: no part of it is"));
    }
    if offset != 0
        || flags != 0
        || bytes as u64 > most
        || !address.is_multiple_of(GRANULARITY)
        || !session.is_reserved(address, bytes as u64)
        || mappings.any(address, bytes as u64)
    {
        return Err(process.stale(address).unwrap_or(INVALID_VALUE));
    }
    session.connection.call(&PhysicalMap { address, bytes: bytes as u64, handle })?;
    mappings.map(address, bytes as u64, handle);
    Ok(())
}

pub unsafe fn cuMemUnmap(address: u64, bytes: usize) -> CudaResult {
    let Some((device, session)) = session_of(ready()?, address)? else { return Ok(()) };
    let whole = session.mappings().exactly(address, bytes as u64).ok_or(INVALID_VALUE)?;
    context::synchronize(device)?;
    session.connection.call(&PhysicalUnmap { address, bytes: bytes as u64 })?;
    session.mappings().unmap(&whole);
    session.release_unused()
}

pub unsafe fn cuMemSetAccess(address: u64, bytes: usize, access: *const Access, count: usize) -> CudaResult {
    let process = ready()?;
    if access.is_null() || count == 0 {
        return Err(INVALID_VALUE);
    }
    let device = match process.device_at(address) {
        Some(device) => device,
        None => return Err(process.stale(address).unwrap_or(INVALID_VALUE)),
    };
    let mut accessible = false;
    for index in 0..count {
        // SAFETY: the caller's list is `count` long.
        let wanted = unsafe { access.add(index).read() };
        if check_location(wanted.location.kind, wanted.location.id)? != device {
            // Kernels of other devices do not reach it.
            if wanted.flags == NONE {
                continue;
            }
            return Err(CudaError::code(cuda::ERROR_PEER_ACCESS_UNSUPPORTED));
        }
        match wanted.flags {
            NONE => accessible = false,
            READ_WRITE => accessible = true,
            READ => {
                return Err(CudaError::new(
                    cuda::ERROR_NOT_SUPPORTED,
                    "mappings that can only be read are not served; ask for reading and writing",
                ));
            }
            _ => return Err(INVALID_VALUE),
        }
    }
    let session = device.session()?;
    let whole = session.mappings().exactly(address, bytes as u64);
    let whole = whole.ok_or_else(|| process.stale(address).unwrap_or(INVALID_VALUE))?;
    if !accessible {
        context::synchronize(device)?;
    }
    let request = PhysicalAccess { address, bytes: bytes as u64, accessible: u8::from(accessible) };
    session.connection.call(&request)?;
    session.mappings().set_accessible(&whole, accessible);
    Ok(())
}

pub unsafe fn cuMemGetAccess(flags: *mut u64, location: *const Location, address: u64) -> CudaResult {
    let process = ready()?;
    // SAFETY: the caller's location.
    let location = unsafe { location.as_ref() }.ok_or(INVALID_VALUE)?;
    let asked = check_location(location.kind, location.id)?;
    let device = process.device_at(address).ok_or(INVALID_VALUE)?;
    let found = device.any_session().and_then(|session| session.mappings().at(address)).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's output.
    unsafe { put(flags, u64::from(if found.accessible && asked == device { READ_WRITE } else { NONE })) }
}

pub unsafe fn cuMemGetAllocationPropertiesFromHandle(out: *mut AllocationProperties, handle: u64) -> CudaResult {
    let (device, _) = holder_of(ready()?, handle).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's output.
    unsafe { put(out, properties(device)) }
}

pub unsafe fn cuMemRetainAllocationHandle(handle: *mut u64, address: *const c_void) -> CudaResult {
    let device = current()?.process.device_at(address as u64);
    let session = device.and_then(Device::any_session).ok_or(INVALID_VALUE)?;
    let mut mappings = session.mappings();
    let found = mappings.at(address as u64).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's output.
    unsafe { put(handle, found.handle)? };
    mappings.retain(found.handle);
    Ok(())
}
