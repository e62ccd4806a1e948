//! Copies of rectangles and boxes, and fills of rectangles.
//!
//! Every shape becomes rows: `layers` of `height` rows of `width` bytes on either side. Rows that follow each other
//! without gaps are copied as one.

use super::abi::{Copy2D, Copy3D};
use super::across::{self, Turn};
use super::copy::{Return, from_device, get_from_device, is_device, names_device, on_device, put_on_device};
use super::graph::layout;
use super::memory::{check_range, check_reachable, is_pinned};
use super::{capture, context, current, stream};
use crate::bulk::BULK_OUT_BYTES;
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::process::Process;
use sluice_protocol::cuda;
use sluice_protocol::frame::CHUNK_BYTES;
use sluice_protocol::messages::{CopyRowsOnDevice, CopyRowsToDevice, FillRows, StreamSynchronize};
use std::ffi::c_void;

/// CU_MEMORYTYPE_*
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;
/// A span of rows with gaps is fetched whole up to so many times its contents.
const SPARSE: usize = 4;

/// One side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side {
    device: bool,
    /// Address of the first byte that is copied.
    start: u64,
    /// Bytes from row to row and from layer to layer.
    pitch: u64,
    layer: u64,
}

/// Extent in bytes, rows and layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    width: u64,
    height: u64,
    layers: u64,
}

/// As a program describes one side.
struct Described {
    kind: u32,
    host: u64,
    device: u64,
    x: usize,
    y: usize,
    z: usize,
    pitch: usize,
    /// Rows of a layer.
    rows: usize,
}

impl Described {
    fn side(&self, process: &'static Process, extent: Extent) -> CudaResult<Side> {
        let (device, base) = match self.kind {
            HOST => (false, self.host),
            DEVICE => (true, self.device),
            UNIFIED => (is_device(process, self.device), self.device),
            3 => {
                return Err(CudaError::new(
                    cuda::ERROR_NOT_SUPPORTED,
                    "CUDA arrays, textures and surfaces are not served; use linear memory",
                ));
            }
            _ => return Err(INVALID_VALUE),
        };
        let many_rows = extent.height > 1 || extent.layers > 1;
        let pitch = if self.pitch == 0 { (self.x as u64).saturating_add(extent.width) } else { self.pitch as u64 };
        let rows = if self.rows == 0 { (self.y as u64).saturating_add(extent.height) } else { self.rows as u64 };
        // A row, and a layer's rows, lie inside their pitch.
        if base == 0
            || many_rows && (self.x as u64).checked_add(extent.width).is_none_or(|end| end > pitch)
            || extent.layers > 1 && (self.y as u64).checked_add(extent.height).is_none_or(|end| end > rows)
        {
            return Err(INVALID_VALUE);
        }
        let layer = pitch.checked_mul(rows).ok_or(INVALID_VALUE)?;
        let start = (self.z as u64)
            .checked_mul(layer)
            .and_then(|z| z.checked_add((self.y as u64).checked_mul(pitch)?))
            .and_then(|zy| zy.checked_add(self.x as u64)?.checked_add(base))
            .ok_or(INVALID_VALUE)?;
        // Page-locked memory may be named as the device's.
        Ok(Side { device: device && names_device(process, start, 1), start, pitch, layer })
    }
}

impl Side {
    /// Bytes from the first to behind the last.
    fn span(&self, extent: Extent) -> CudaResult<u64> {
        let rows = (extent.height - 1).checked_mul(self.pitch);
        let layers = (extent.layers - 1).checked_mul(self.layer);
        rows.zip(layers)
            .and_then(|(rows, layers)| rows.checked_add(layers)?.checked_add(extent.width))
            .ok_or(INVALID_VALUE)
    }

    /// Where a row begins.
    fn row(&self, layer: u64, row: u64) -> u64 {
        self.start + layer * self.layer + row * self.pitch
    }
}

/// Layers whose rows go on from layer to layer become one; rows without gaps become one row.
fn joined(target: Side, source: Side, extent: Extent) -> Extent {
    let mut extent = extent;
    let follows = |side: Side| side.layer == side.pitch * extent.height;
    if extent.layers > 1 && follows(target) && follows(source) {
        extent = Extent { height: extent.height * extent.layers, layers: 1, ..extent };
    }
    if extent.layers == 1 && target.pitch == extent.width && source.pitch == extent.width {
        extent = Extent { width: extent.width * extent.height, height: 1, layers: 1 };
    }
    extent
}

/// # Safety
/// Host sides are the caller's memory, as large as the copy says.
unsafe fn copy(device: Device, target: Side, source: Side, extent: Extent, on: usize, when: Return) -> CudaResult {
    if extent.width == 0 || extent.height == 0 || extent.layers == 0 {
        return Ok(());
    }
    let extent = joined(target, source, extent);
    let (target_span, source_span) = (target.span(extent)?, source.span(extent)?);
    if extent.height == 1 && extent.layers == 1 {
        let bytes = extent.width as usize;
        // SAFETY: as the caller's.
        return unsafe {
            match (target.device, source.device) {
                (true, true) => on_device(device, target.start, source.start, bytes, on),
                (true, false) => put_on_device(device, target.start, source.start as *const c_void, bytes, on, when),
                (false, true) => get_from_device(device, target.start as *mut c_void, source.start, bytes, on, when),
                (false, false) => on_host(device, target, source, extent, on),
            }
        };
    }
    if !target.device && !source.device {
        // SAFETY: as the caller's.
        return unsafe { on_host(device, target, source, extent, on) };
    }
    let start = |side: Side| side.device.then_some(side.start);
    if let (Some(to), Some(from)) = (start(target), start(source))
        && let Some(pair) = across::apart(device, to, from)
    {
        return match across::direct(device, on, pair, (to, from))? {
            Some(direct) => direct.run(|home, on| issue_on_device(home, target, source, extent, on)),
            // SAFETY: as the caller's.
            None => unsafe { through_host(device, on, pair, target, source, extent) },
        };
    }
    if let Some(address) = start(target).or(start(source))
        && let Some(turn) = Turn::of(device, on, address)?
    {
        // SAFETY: as the caller's.
        return turn.take(|device, on| unsafe { copy(device, target, source, extent, on, when) });
    }
    if target.device && source.device {
        return issue_on_device(device, target, source, extent, on);
    }
    if captured(device, target, source, extent, on)? {
        return Ok(());
    }
    let session = device.session()?;
    for (side, span) in [(target, target_span), (source, source_span)] {
        if side.device {
            check_range(device.process, &session, side.start, span)?;
        }
    }
    (0..extent.layers).try_for_each(|layer| {
        // SAFETY: as the caller's.
        unsafe {
            if target.device {
                layer_to_device(device, target, source, extent, layer, on)
            } else {
                layer_from_device(device, target, source, extent, layer, on, when)
            }
        }
    })
}

/// Whole rows to a frame; a row that is longer than a frame travels alone, in pieces.
///
/// # Safety
/// As [`copy`].
unsafe fn layer_to_device(
    device: Device,
    target: Side,
    source: Side,
    extent: Extent,
    layer: u64,
    on: usize,
) -> CudaResult {
    let session = device.session()?;
    let stream = stream::at_server(device, &session, on)?;
    let rows = (CHUNK_BYTES as u64 / extent.width).max(1);
    let mut packed = Vec::new();
    for first in (0..extent.height).step_by(rows as usize) {
        let count = rows.min(extent.height - first);
        packed.clear();
        for row in first..first + count {
            let from = source.row(layer, row) as *const u8;
            // SAFETY: the caller's memory, a row long.
            packed.extend_from_slice(unsafe { std::slice::from_raw_parts(from, extent.width as usize) });
        }
        let address = target.row(layer, first);
        if extent.width as usize > CHUNK_BYTES {
            // SAFETY: the buffer just filled.
            unsafe { put_on_device(device, address, packed.as_ptr().cast(), packed.len(), on, Return::Copied)? };
            continue;
        }
        let (pitch, width) = (target.pitch, extent.width);
        session.connection.post(&CopyRowsToDevice { address, pitch, width, stream, data: &packed })?;
    }
    Ok(())
}

/// Makes the copy a node when its stream captures.
fn captured(device: Device, target: Side, source: Side, extent: Extent, on: usize) -> CudaResult<bool> {
    let side = |side: Side| layout::Side {
        pitch: side.pitch as usize,
        height: (side.layer / side.pitch.max(1)) as usize,
        ..layout::Side::linear(if side.device { DEVICE } else { HOST }, side.start, 0)
    };
    let [width, height, depth] = [extent.width, extent.height, extent.layers].map(|length| length as usize);
    let made = || Ok(layout::Copy3D { source: side(source), target: side(target), width, height, depth });
    capture::copy_3d(device, on, made)
}

/// In a stream of a device that reaches both.
fn issue_on_device(device: Device, target: Side, source: Side, extent: Extent, on: usize) -> CudaResult {
    if captured(device, target, source, extent, on)? {
        return Ok(());
    }
    let session = device.session()?;
    for side in [target, source] {
        check_reachable(device.process, &session, side.start, side.span(extent)?)?;
    }
    let stream = stream::at_server(device, &session, on)?;
    (0..extent.layers).try_for_each(|layer| {
        session.connection.post(&CopyRowsOnDevice {
            target: target.row(layer, 0),
            target_pitch: target.pitch,
            source: source.row(layer, 0),
            source_pitch: source.pitch,
            width: extent.width,
            height: extent.height,
            stream,
        })
    })
}

/// # Safety
/// As [`copy`].
unsafe fn layer_from_device(
    device: Device,
    target: Side,
    source: Side,
    extent: Extent,
    layer: u64,
    on: usize,
    when: Return,
) -> CudaResult {
    let (width, height) = (extent.width as usize, extent.height as usize);
    let span = Side { layer: 0, ..source }.span(Extent { layers: 1, ..extent })? as usize;
    if span > SPARSE * width * height {
        for row in 0..extent.height {
            let to = target.row(layer, row) as *mut c_void;
            // SAFETY: the caller's memory has room for this row.
            unsafe { from_device(device, to, source.row(layer, row), width, on)? };
        }
        return Ok(());
    }
    let room = Side { layer: 0, ..target }.span(Extent { layers: 1, ..extent })? as usize;
    let memory = (target.row(layer, 0) as usize, room);
    let [to_pitch, from_pitch] = [target.pitch, source.pitch].map(|pitch| pitch as usize);
    let put_rows = move |fetched: &[u8]| {
        for row in 0..height {
            let from = &fetched[row * from_pitch..][..width];
            // SAFETY: the caller's memory has room for this row, until the copy has ended.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), (memory.0 + row * to_pitch) as *mut u8, width) };
        }
    };
    if when == Return::Issued && span < BULK_OUT_BYTES && is_pinned(memory.0, room) {
        let session = device.session()?;
        let stream = stream::at_server(device, &session, on)?;
        return session.connection.start_read(source.row(layer, 0), stream, span, memory, put_rows);
    }
    let mut fetched = vec![0u8; span];
    // SAFETY: the buffer is as long as the span.
    unsafe { from_device(device, fetched.as_mut_ptr().cast(), source.row(layer, 0), span, on)? };
    put_rows(&fetched);
    Ok(())
}

/// From one device to another, packed in this process in between.
///
/// # Safety
/// As [`copy`].
unsafe fn through_host(
    device: Device,
    on: usize,
    pair: (Device, Device),
    target: Side,
    source: Side,
    extent: Extent,
) -> CudaResult {
    let (to, from) = pair;
    across::settle_pair(device, on, pair)?;
    let layer = extent.width.checked_mul(extent.height).ok_or(INVALID_VALUE)?;
    let bytes = layer.checked_mul(extent.layers).ok_or(INVALID_VALUE)?;
    let mut packed = vec![0u8; bytes as usize];
    let middle = Side { device: false, start: packed.as_mut_ptr() as u64, pitch: extent.width, layer };
    // SAFETY: the buffer holds the whole extent, without gaps.
    unsafe {
        copy(from, middle, source, extent, across::copies(from), Return::Copied)?;
        copy(to, target, middle, extent, across::copies(to), Return::Copied)?;
    }
    stream::synchronize(to, across::copies(to))
}

/// Between two places in host memory, after the stream's work so far.
///
/// # Safety
/// As [`copy`].
unsafe fn on_host(device: Device, target: Side, source: Side, extent: Extent, on: usize) -> CudaResult {
    let device = stream::home(device, on)?;
    if captured(device, target, source, extent, on)? {
        return Ok(());
    }
    if let Some(session) = device.session_now() {
        let stream = stream::at_server(device, &session, on)?;
        session.connection.call(&StreamSynchronize { stream })?;
    }
    for layer in 0..extent.layers {
        for row in 0..extent.height {
            let (to, from) = (target.row(layer, row) as *mut u8, source.row(layer, row) as *const u8);
            // SAFETY: the caller's memory on both sides; the regions may overlap.
            unsafe { std::ptr::copy(from, to, extent.width as usize) };
        }
    }
    Ok(())
}

pub unsafe fn cuMemcpy2DAsync_v2(rectangle: *const Copy2D, on: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_2d(rectangle, on, Return::Issued) }
}

unsafe fn copy_2d(rectangle: *const Copy2D, on: usize, when: Return) -> CudaResult {
    let device = current()?;
    // SAFETY: the caller's description.
    let described = unsafe { rectangle.as_ref() }.ok_or(INVALID_VALUE)?;
    let extent = Extent { width: described.width as u64, height: described.height as u64, layers: 1 };
    let source = Described {
        kind: described.source_kind,
        host: described.source_host as u64,
        device: described.source_device,
        x: described.source_x,
        y: described.source_y,
        z: 0,
        pitch: described.source_pitch,
        rows: 0,
    };
    let target = Described {
        kind: described.target_kind,
        host: described.target_host as u64,
        device: described.target_device,
        x: described.target_x,
        y: described.target_y,
        z: 0,
        pitch: described.target_pitch,
        rows: 0,
    };
    // SAFETY: as the caller's.
    unsafe {
        copy(device, target.side(device.process, extent)?, source.side(device.process, extent)?, extent, on, when)
    }
}

pub unsafe fn cuMemcpy2D_v2(rectangle: *const Copy2D) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_2d(rectangle, 0, Return::Copied)? };
    across::arrived(current()?)
}

pub unsafe fn cuMemcpy3DAsync_v2(cuboid: *const Copy3D, on: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_3d(cuboid, on, Return::Issued) }
}

unsafe fn copy_3d(cuboid: *const Copy3D, on: usize, when: Return) -> CudaResult {
    let device = current()?;
    // SAFETY: the caller's description.
    let described = unsafe { cuboid.as_ref() }.ok_or(INVALID_VALUE)?;
    let extent =
        Extent { width: described.width as u64, height: described.height as u64, layers: described.depth as u64 };
    let source = Described {
        kind: described.source_kind,
        host: described.source_host as u64,
        device: described.source_device,
        x: described.source_x,
        y: described.source_y,
        z: described.source_z,
        pitch: described.source_pitch,
        rows: described.source_height,
    };
    let target = Described {
        kind: described.target_kind,
        host: described.target_host as u64,
        device: described.target_device,
        x: described.target_x,
        y: described.target_y,
        z: described.target_z,
        pitch: described.target_pitch,
        rows: described.target_height,
    };
    // SAFETY: as the caller's.
    unsafe {
        copy(device, target.side(device.process, extent)?, source.side(device.process, extent)?, extent, on, when)
    }
}

pub unsafe fn cuMemcpy3D_v2(cuboid: *const Copy3D) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy_3d(cuboid, 0, Return::Copied)? };
    across::arrived(current()?)
}

/// The contexts are those of the addresses' devices, which the addresses name themselves.
pub unsafe fn cuMemcpy3DPeerAsync(cuboid: *const Copy3D, on: usize) -> CudaResult {
    let process = current()?.process;
    // SAFETY: the caller's description.
    let described = unsafe { cuboid.as_ref() }.ok_or(INVALID_VALUE)?;
    context::find(process, described.source_context)?;
    context::find(process, described.target_context)?;
    // SAFETY: as the caller's.
    unsafe { cuMemcpy3DAsync_v2(cuboid, on) }
}

pub unsafe fn cuMemcpy3DPeer(cuboid: *const Copy3D) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuMemcpy3DPeerAsync(cuboid, 0) }
}

/// `width` elements of `element` bytes to a row.
fn fill(address: u64, pitch: usize, pattern: u32, element: u8, width: usize, height: usize, on: usize) -> CudaResult {
    let device = current()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    let (pitch, height) = (pitch as u64, height as u64);
    let row = (width as u64).checked_mul(u64::from(element)).ok_or(INVALID_VALUE)?;
    let aligned = address.is_multiple_of(u64::from(element)) && pitch.is_multiple_of(u64::from(element));
    if height > 1 && (pitch < row || !aligned) || !address.is_multiple_of(u64::from(element)) {
        return Err(INVALID_VALUE);
    }
    let span = Side { device: true, start: address, pitch, layer: 0 };
    let span = span.span(Extent { width: row, height, layers: 1 })?;
    let node = || layout::Fill {
        address,
        pitch: pitch as usize,
        value: pattern,
        element: u32::from(element),
        width,
        height: height as usize,
    };
    let post = |device: Device, on: usize| {
        if capture::fill(device, on, node())? {
            return Ok(());
        }
        let session = device.session()?;
        check_range(device.process, &session, address, span)?;
        let stream = stream::at_server(device, &session, on)?;
        session.connection.post(&FillRows { address, pitch, pattern, element, width: width as u64, height, stream })
    };
    match Turn::of(device, on, address)? {
        Some(turn) => turn.take(post),
        None => post(device, on),
    }
}

pub unsafe fn cuMemsetD2D8_v2(address: u64, pitch: usize, value: u8, width: usize, height: usize) -> CudaResult {
    fill(address, pitch, u32::from(value), 1, width, height, 0)
}

pub unsafe fn cuMemsetD2D16_v2(address: u64, pitch: usize, value: u16, width: usize, height: usize) -> CudaResult {
    fill(address, pitch, u32::from(value), 2, width, height, 0)
}

pub unsafe fn cuMemsetD2D32_v2(address: u64, pitch: usize, value: u32, width: usize, height: usize) -> CudaResult {
    fill(address, pitch, value, 4, width, height, 0)
}

pub unsafe fn cuMemsetD2D8Async(
    address: u64,
    pitch: usize,
    value: u8,
    width: usize,
    height: usize,
    stream: usize,
) -> CudaResult {
    fill(address, pitch, u32::from(value), 1, width, height, stream)
}

pub unsafe fn cuMemsetD2D16Async(
    address: u64,
    pitch: usize,
    value: u16,
    width: usize,
    height: usize,
    stream: usize,
) -> CudaResult {
    fill(address, pitch, u32::from(value), 2, width, height, stream)
}

pub unsafe fn cuMemsetD2D32Async(
    address: u64,
    pitch: usize,
    value: u32,
    width: usize,
    height: usize,
    stream: usize,
) -> CudaResult {
    fill(address, pitch, value, 4, width, height, stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(pitch: u64, layer: u64) -> Side {
        Side { device: true, start: 4096, pitch, layer }
    }

    #[test]
    fn rows_without_gaps_become_one() {
        let extent = Extent { width: 100, height: 7, layers: 3 };
        let whole = Extent { width: 2100, height: 1, layers: 1 };
        assert_eq!(joined(side(100, 700), side(100, 700), extent), whole);
        let rows = Extent { width: 100, height: 21, layers: 1 };
        assert_eq!(joined(side(128, 896), side(100, 700), extent), rows);
        assert_eq!(joined(side(128, 1024), side(100, 700), extent), extent);
    }

    #[test]
    fn a_span_ends_with_the_last_rows_last_byte() {
        let extent = Extent { width: 100, height: 7, layers: 3 };
        assert_eq!(side(128, 1024).span(extent), Ok(2 * 1024 + 6 * 128 + 100));
        assert!(side(u64::MAX, 1).span(extent).is_err());
    }
}
