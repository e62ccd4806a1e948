//! Copies. Which side an address is on follows from its range; the kind is what the program believes.

use super::code::{INVALID_MEMCPY_DIRECTION, INVALID_PITCH_VALUE};
use super::context::{check_device, context};
use super::types::{Copy3D, Copy3DPeer, DriverCopy2D, DriverCopy3D, Position};
use crate::device::Device;
use crate::driver;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use sluice_protocol::cuda;
use std::ffi::c_void;

// Driver functions that take structures, by their entries for C.
unsafe extern "C" {
    fn sluice_cuMemcpy2DUnaligned_v2(copy: *const DriverCopy2D) -> u32;
    fn sluice_cuMemcpy2DAsync_v2(copy: *const DriverCopy2D, stream: usize) -> u32;
    fn sluice_cuMemcpy3D_v2(copy: *const DriverCopy3D) -> u32;
    fn sluice_cuMemcpy3DAsync_v2(copy: *const DriverCopy3D, stream: usize) -> u32;
}

/// cudaMemcpyKind
pub(crate) mod kind {
    pub const HOST_TO_HOST: u32 = 0;
    pub const HOST_TO_DEVICE: u32 = 1;
    pub const DEVICE_TO_HOST: u32 = 2;
    pub const DEVICE_TO_DEVICE: u32 = 3;
    pub const DEFAULT: u32 = 4;
}

/// Result of a driver entry; its sentence is kept already.
fn result(code: u32) -> CudaResult {
    if code == cuda::SUCCESS { Ok(()) } else { Err(CudaError::code(code)) }
}

/// Whether target and source lie on the device.
fn sides(device: Device, target: u64, source: u64, bytes: usize, kind: u32) -> CudaResult<(bool, bool)> {
    let found = |address| driver::copy::is_device(device.process, address);
    // An address that the kind calls the device's may be page-locked memory of the host.
    let said = |address| driver::copy::names_device(device.process, address, bytes);
    match kind {
        kind::HOST_TO_HOST | kind::DEFAULT => Ok((found(target), found(source))),
        kind::HOST_TO_DEVICE => Ok((said(target), found(source))),
        kind::DEVICE_TO_HOST => Ok((found(target), said(source))),
        kind::DEVICE_TO_DEVICE => Ok((said(target), said(source))),
        _ => Err(CudaError::code(INVALID_MEMCPY_DIRECTION)),
    }
}

/// A copy that the caller need not wait for.
pub(crate) unsafe fn copy_async(target: u64, source: u64, bytes: usize, kind: u32, stream: usize) -> CudaResult {
    let sides = sides(context()?, target, source, bytes, kind)?;
    // SAFETY: as the caller's; an address outside all device ranges is the caller's host memory.
    unsafe {
        match sides {
            (true, true) => driver::cuMemcpyDtoDAsync_v2(target, source, bytes, stream),
            (true, false) => driver::cuMemcpyHtoDAsync_v2(target, source as *const c_void, bytes, stream),
            (false, true) => driver::cuMemcpyDtoHAsync_v2(target as *mut c_void, source, bytes, stream),
            (false, false) => {
                driver::cuStreamSynchronize(stream)?;
                copy_on_host(target, source, bytes)
            }
        }
    }
}

/// A copy that is done, as far as the host can tell, when this returns.
pub(crate) unsafe fn copy_now(target: u64, source: u64, bytes: usize, kind: u32, stream: usize) -> CudaResult {
    let sides = sides(context()?, target, source, bytes, kind)?;
    // SAFETY: as above.
    unsafe {
        match sides {
            (false, false) => copy_on_host(target, source, bytes),
            _ if stream != 0 => {
                copy_async(target, source, bytes, kind, stream)?;
                if sides.0 { Ok(()) } else { driver::cuStreamSynchronize(stream) }
            }
            (true, true) => driver::cuMemcpyDtoD_v2(target, source, bytes),
            (true, false) => driver::cuMemcpyHtoD_v2(target, source as *const c_void, bytes),
            (false, true) => driver::cuMemcpyDtoH_v2(target as *mut c_void, source, bytes),
        }
    }
}

unsafe fn copy_on_host(target: u64, source: u64, bytes: usize) -> CudaResult {
    if bytes > 0 && (target == 0 || source == 0) {
        return Err(INVALID_VALUE);
    }
    // SAFETY: both are the caller's host memory; the regions may overlap.
    unsafe { std::ptr::copy(source as *const u8, target as *mut u8, bytes) };
    Ok(())
}

pub unsafe fn cudaMemcpy(default_stream: usize, target: u64, source: u64, bytes: usize, kind: u32) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_now(target, source, bytes, kind, default_stream) }
}

pub unsafe fn cudaMemcpyAsync(target: u64, source: u64, bytes: usize, kind: u32, stream: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_async(target, source, bytes, kind, stream) }
}

fn check_peers(target_device: i32, source_device: i32) -> CudaResult {
    check_device(target_device)?;
    check_device(source_device)
}

pub unsafe fn cudaMemcpyPeer(
    target: u64,
    target_device: i32,
    source: u64,
    source_device: i32,
    bytes: usize,
) -> CudaResult {
    check_peers(target_device, source_device)?;
    // SAFETY: as the caller's.
    unsafe { copy_now(target, source, bytes, kind::DEVICE_TO_DEVICE, 0) }
}

pub unsafe fn cudaMemcpyPeerAsync(
    target: u64,
    target_device: i32,
    source: u64,
    source_device: i32,
    bytes: usize,
    stream: usize,
) -> CudaResult {
    check_peers(target_device, source_device)?;
    // SAFETY: as the caller's.
    unsafe { copy_async(target, source, bytes, kind::DEVICE_TO_DEVICE, stream) }
}

/// CUmemorytype
pub(crate) fn memory_type(device: bool) -> u32 {
    if device { 2 } else { 1 }
}

/// A copy of rows that is done, or in stream order (`wait` false).
unsafe fn rows(
    target: (u64, usize),
    source: (u64, usize),
    size: (usize, usize),
    kind: u32,
    stream: usize,
    wait: bool,
) -> CudaResult {
    let device = context()?;
    let (width, height) = size;
    let sides = sides(device, target.0, source.0, 1, kind)?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    if width > target.1 || width > source.1 {
        return Err(CudaError::code(INVALID_PITCH_VALUE));
    }
    if target.1 == width && source.1 == width {
        let bytes = width.checked_mul(height).ok_or(INVALID_VALUE)?;
        // SAFETY: as the caller's: rows without gaps are one piece.
        return unsafe {
            if wait {
                copy_now(target.0, source.0, bytes, kind, stream)
            } else {
                copy_async(target.0, source.0, bytes, kind, stream)
            }
        };
    }
    let copy = DriverCopy2D {
        source_type: memory_type(sides.1),
        source_host: source.0,
        source_device: source.0,
        source_pitch: source.1,
        target_type: memory_type(sides.0),
        target_host: target.0,
        target_device: target.0,
        target_pitch: target.1,
        width,
        height,
        ..DriverCopy2D::default()
    };
    // SAFETY: a live local; the memory is the caller's.
    unsafe {
        if wait && stream == 0 {
            return result(sluice_cuMemcpy2DUnaligned_v2(&raw const copy));
        }
        result(sluice_cuMemcpy2DAsync_v2(&raw const copy, stream))?;
        if wait && !sides.0 { driver::cuStreamSynchronize(stream) } else { Ok(()) }
    }
}

pub unsafe fn cudaMemcpy2D(
    default_stream: usize,
    target: u64,
    target_pitch: usize,
    source: u64,
    source_pitch: usize,
    width: usize,
    height: usize,
    kind: u32,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { rows((target, target_pitch), (source, source_pitch), (width, height), kind, default_stream, true) }
}

pub unsafe fn cudaMemcpy2DAsync(
    target: u64,
    target_pitch: usize,
    source: u64,
    source_pitch: usize,
    width: usize,
    height: usize,
    kind: u32,
    stream: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { rows((target, target_pitch), (source, source_pitch), (width, height), kind, stream, false) }
}

/// A copy of slices as the driver takes it, which says whether the sides lie on the device; None when nothing is copied.
pub(crate) fn of_driver(copy: &Copy3D) -> CudaResult<Option<DriverCopy3D>> {
    let device = context()?;
    if copy.source_array != 0 || copy.target_array != 0 {
        return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, "CUDA arrays are not served yet"));
    }
    let (source, target, extent) = (&copy.source, &copy.target, &copy.extent);
    if extent.width == 0 || extent.height == 0 || extent.depth == 0 {
        return Ok(None);
    }
    if extent.width > source.pitch || extent.width > target.pitch {
        return Err(CudaError::code(INVALID_PITCH_VALUE));
    }
    let sides = sides(device, target.address, source.address, 1, copy.kind)?;
    let Position { x: source_x, y: source_y, z: source_z } = copy.source_position;
    let Position { x: target_x, y: target_y, z: target_z } = copy.target_position;
    Ok(Some(DriverCopy3D {
        source_x,
        source_y,
        source_z,
        source_type: memory_type(sides.1),
        source_host: source.address,
        source_device: source.address,
        source_pitch: source.pitch,
        source_height: source.height.max(extent.height),
        target_x,
        target_y,
        target_z,
        target_type: memory_type(sides.0),
        target_host: target.address,
        target_device: target.address,
        target_pitch: target.pitch,
        target_height: target.height.max(extent.height),
        width: extent.width,
        height: extent.height,
        depth: extent.depth,
        ..DriverCopy3D::default()
    }))
}

/// A copy of slices that is done, or in stream order (`wait` false).
unsafe fn slices(copy: &Copy3D, stream: usize, wait: bool) -> CudaResult {
    let Some(copy) = of_driver(copy)? else { return Ok(()) };
    // SAFETY: a live local; the memory is the caller's.
    unsafe {
        if wait && stream == 0 {
            return result(sluice_cuMemcpy3D_v2(&raw const copy));
        }
        result(sluice_cuMemcpy3DAsync_v2(&raw const copy, stream))?;
        if wait && copy.target_type == memory_type(false) { driver::cuStreamSynchronize(stream) } else { Ok(()) }
    }
}

pub unsafe fn cudaMemcpy3D(default_stream: usize, copy: *const Copy3D) -> CudaResult {
    // SAFETY: the caller's structure and memory.
    unsafe { slices(copy.as_ref().ok_or(INVALID_VALUE)?, default_stream, true) }
}

pub unsafe fn cudaMemcpy3DAsync(copy: *const Copy3D, stream: usize) -> CudaResult {
    // SAFETY: the caller's structure and memory.
    unsafe { slices(copy.as_ref().ok_or(INVALID_VALUE)?, stream, false) }
}

/// Both devices are in one address space.
unsafe fn between_peers(copy: *const Copy3DPeer) -> CudaResult<Copy3D> {
    // SAFETY: the caller's structure.
    let copy = unsafe { copy.as_ref() }.ok_or(INVALID_VALUE)?;
    check_peers(copy.target_device, copy.source_device)?;
    Ok(Copy3D {
        source_array: copy.source_array,
        source_position: copy.source_position,
        source: copy.source,
        target_array: copy.target_array,
        target_position: copy.target_position,
        target: copy.target,
        extent: copy.extent,
        kind: kind::DEVICE_TO_DEVICE,
    })
}

pub unsafe fn cudaMemcpy3DPeer(default_stream: usize, copy: *const Copy3DPeer) -> CudaResult {
    // SAFETY: the caller's structure and memory.
    unsafe { slices(&between_peers(copy)?, default_stream, true) }
}

pub unsafe fn cudaMemcpy3DPeerAsync(copy: *const Copy3DPeer, stream: usize) -> CudaResult {
    // SAFETY: the caller's structure and memory.
    unsafe { slices(&between_peers(copy)?, stream, false) }
}

/// Copies one after the other; attributes are hints about when sources are read.
unsafe fn batch(
    targets: *const u64,
    sources: *const u64,
    bytes: *const usize,
    count: usize,
    failed: &mut usize,
    stream: usize,
) -> CudaResult {
    if count > 0 && (targets.is_null() || sources.is_null() || bytes.is_null()) {
        return Err(INVALID_VALUE);
    }
    for index in 0..count {
        *failed = index;
        // SAFETY: the caller's lists, `count` long.
        unsafe {
            let (target, source) = (targets.add(index).read(), sources.add(index).read());
            copy_async(target, source, bytes.add(index).read(), kind::DEFAULT, stream)?;
        }
    }
    Ok(())
}

pub unsafe fn cudaMemcpyBatchAsync_12(
    targets: *const u64,
    sources: *const u64,
    bytes: *const usize,
    count: usize,
    _attributes: *const c_void,
    _indices: *const usize,
    _attribute_count: usize,
    failed: *mut usize,
    stream: usize,
) -> CudaResult {
    // Not about one copy: SIZE_MAX.
    let mut at = usize::MAX;
    // SAFETY: the caller's lists and output.
    unsafe {
        let result = batch(targets, sources, bytes, count, &mut at, stream);
        if result.is_err() {
            driver::put_optional(failed, at);
        }
        result
    }
}

pub unsafe fn cudaMemcpyBatchAsync_13(
    targets: *const u64,
    sources: *const u64,
    bytes: *const usize,
    count: usize,
    _attributes: *const c_void,
    _indices: *const usize,
    _attribute_count: usize,
    stream: usize,
) -> CudaResult {
    // SAFETY: the caller's lists.
    unsafe { batch(targets, sources, bytes, count, &mut 0, stream) }
}

pub unsafe fn cudaMemcpyWithAttributesAsync(
    target: u64,
    source: u64,
    bytes: usize,
    _attributes: *const c_void,
    stream: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_async(target, source, bytes, kind::DEFAULT, stream) }
}
