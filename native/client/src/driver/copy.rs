//! Copies and fills.

use super::across::{self, Turn};
use super::graph::layout::Fill as FillNode;
use super::memory::{check_range, check_reachable, is_pinned, shared_piece};
use super::{capture, context, current, put_optional, stream};
use crate::bulk::{BULK_IN_BYTES, BULK_OUT_BYTES, BULK_OUT_FRAMES, data_of};
use crate::connection::{Pending, without_body};
use crate::device::Device;
use crate::error::{CudaResult, INVALID_VALUE};
use crate::host::rows::Rows;
use crate::pinned::PINNED_BYTES;
use crate::process::Process;
use crate::session::Session;
use sluice_protocol::frame::CHUNK_BYTES;
use sluice_protocol::messages::{
    CallRequest, CopyFromDevice, CopyOnDevice, CopyToDevice, Fill, PinnedIn, PinnedOut, StreamSynchronize,
};
use std::collections::VecDeque;
use std::ffi::c_void;

/// Chunks of one device-to-host copy that are under way at a time.
const LANES: usize = 4;

/// When a copy's call returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Return {
    /// When the program's memory is its own again.
    Copied,
    /// At once, where that memory is page-locked: the program leaves it alone until the stream has come past the copy.
    /// (A short copy to the device is sent before its call returns.)
    Issued,
}

/// Copies between the device and page-locked memory of the program that the GPU server has mapped; None: it has not.
/// `request` gets the memory's place there.
fn straight<'a, R: CallRequest<'a>>(
    session: &Session,
    memory: (usize, usize),
    when: Return,
    request: impl FnOnce(u64) -> R,
) -> Option<CudaResult> {
    let (address, bytes) = memory;
    let connection = &session.connection;
    let request = request(connection.reached(shared_piece(address, bytes)?, address)?);
    Some(match when {
        Return::Issued => connection.start_answered(&request, memory, bytes, without_body),
        Return::Copied => connection.begin(&request).and_then(|pending| connection.answered(pending.carrying(bytes))),
    })
}

/// Host to device: the data are taken before this returns, so the program may overwrite them.
pub(super) unsafe fn to_device(
    device: Device,
    target: u64,
    source: *const c_void,
    bytes: usize,
    on: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { put_on_device(device, target, source, bytes, on, Return::Copied) }
}

pub(super) unsafe fn put_on_device(
    device: Device,
    target: u64,
    source: *const c_void,
    bytes: usize,
    on: usize,
    when: Return,
) -> CudaResult {
    if bytes == 0 {
        return Ok(());
    }
    if source.is_null() {
        return Err(INVALID_VALUE);
    }
    if let Some(turn) = Turn::of(device, on, target)? {
        // SAFETY: as the caller's.
        return turn.take(|device, on| unsafe { put_on_device(device, target, source, bytes, on, when) });
    }
    if capture::copy(device, on, (true, target), (false, source as u64), bytes)? {
        return Ok(());
    }
    let session = device.session()?;
    check_range(device.process, &session, target, bytes as u64)?;
    let stream = stream::at_server(device, &session, on)?;
    let request = |offset| PinnedIn { address: target, stream, offset, bytes: bytes as u64 };
    // A short copy whose call returns when its data are taken need not wait for the device.
    if bytes >= if when == Return::Issued { PINNED_BYTES } else { BULK_IN_BYTES }
        && let Some(outcome) = straight(&session, (source as usize, bytes), when, request)
    {
        return outcome;
    }
    if bytes >= BULK_IN_BYTES
        && when == Return::Issued
        && is_pinned(source as usize, bytes)
        // SAFETY: the caller's memory, `bytes` long, which is not given back before the copy has ended.
        && let Some(outcome) = unsafe { session.connection.start_copy_in(target, stream, source.cast(), bytes) }
    {
        return outcome;
    }
    if bytes >= BULK_IN_BYTES
        // SAFETY: the caller's memory, `bytes` long, until this returns.
        && let Some(outcome) = unsafe { session.connection.copy_in(target, stream, source.cast(), bytes) }
    {
        return outcome;
    }
    // SAFETY: the caller's memory, `bytes` long.
    let data = unsafe { std::slice::from_raw_parts(source.cast::<u8>(), bytes) };
    for (index, chunk) in data.chunks(CHUNK_BYTES).enumerate() {
        let address = target + (index * CHUNK_BYTES) as u64;
        session.connection.post(&CopyToDevice { address, stream, data: chunk })?;
    }
    Ok(())
}

/// Device to host: the data are there when this returns.
pub(super) unsafe fn from_device(
    device: Device,
    target: *mut c_void,
    source: u64,
    bytes: usize,
    on: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { get_from_device(device, target, source, bytes, on, Return::Copied) }
}

/// As [`from_device`], returning when `when` says.
pub(super) unsafe fn get_from_device(
    device: Device,
    target: *mut c_void,
    source: u64,
    bytes: usize,
    on: usize,
    when: Return,
) -> CudaResult {
    if bytes == 0 {
        return Ok(());
    }
    if target.is_null() {
        return Err(INVALID_VALUE);
    }
    if let Some(turn) = Turn::of(device, on, source)? {
        // SAFETY: as the caller's.
        return turn.take(|device, on| unsafe { get_from_device(device, target, source, bytes, on, when) });
    }
    if capture::copy(device, on, (false, target as u64), (true, source), bytes)? {
        return Ok(());
    }
    let session = device.session()?;
    check_range(device.process, &session, source, bytes as u64)?;
    let stream = stream::at_server(device, &session, on)?;
    // What comes before the copy in its stream is done when the data are here.
    let before = session.connection.newest();
    let copied = |frames: u64| {
        session.progress.stream_done(stream, before);
        session.progress.stream_idle(stream, before + frames, session.connection.newest());
    };
    let request = |offset| PinnedOut { address: source, stream, offset, bytes: bytes as u64 };
    if bytes >= PINNED_BYTES
        && let Some(outcome) = straight(&session, (target as usize, bytes), when, request)
    {
        outcome?;
        if when == Return::Issued {
            return Ok(());
        }
        copied(1);
        return session.check_sticky();
    }
    if when == Return::Issued && is_pinned(target as usize, bytes) {
        if bytes < BULK_OUT_BYTES {
            let rows = Rows { address: target as usize, pitch: bytes, slice: bytes, extent: [bytes, 1, 1] };
            // SAFETY: the caller's memory, room for `bytes`, which is not given back before the copy has ended.
            let take = move |data: &[u8]| unsafe { rows.scatter(0, data) };
            return session.connection.start_read(source, stream, bytes, (target as usize, bytes), take);
        }
        // SAFETY: as above.
        if let Some(outcome) = unsafe { session.connection.start_copy_out(source, stream, target.cast(), bytes) } {
            return outcome;
        }
    }
    if bytes >= BULK_OUT_BYTES
        // SAFETY: the caller's memory, room for `bytes`, until this returns.
        && let Some(outcome) = unsafe { session.connection.copy_out(source, stream, target.cast(), bytes) }
    {
        outcome?;
        copied(BULK_OUT_FRAMES);
        return session.check_sticky();
    }
    let mut under_way: VecDeque<(usize, usize, Pending)> = VecDeque::new();
    let mut next = 0;
    while next < bytes || !under_way.is_empty() {
        if next < bytes && under_way.len() < LANES {
            let length = (bytes - next).min(CHUNK_BYTES);
            let request = CopyFromDevice { address: source + next as u64, stream, bytes: length as u64 };
            under_way.push_back((next, length, session.connection.begin(&request)?));
            next += length;
            continue;
        }
        let Some((offset, length, pending)) = under_way.pop_front() else { break };
        let answer = pending.wait()?;
        let data = data_of(&answer, length)?;
        // SAFETY: the caller's memory has room for `bytes`; offset + length lies inside.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), target.cast::<u8>().add(offset), length) };
    }
    copied(bytes.div_ceil(CHUNK_BYTES) as u64);
    // What was posted before may have failed, and the data with it.
    session.check_sticky()
}

pub(super) fn on_device(device: Device, target: u64, source: u64, bytes: usize, on: usize) -> CudaResult {
    if bytes == 0 {
        return Ok(());
    }
    if let Some(pair) = across::apart(device, target, source) {
        return match across::direct(device, on, pair, (target, source))? {
            Some(direct) => direct.run(|home, on| issue_on_device(home, target, source, bytes, on)),
            None => across::copy(device, on, pair, target, source, bytes),
        };
    }
    if let Some(turn) = Turn::of(device, on, target)? {
        return turn.take(|device, on| on_device(device, target, source, bytes, on));
    }
    issue_on_device(device, target, source, bytes, on)
}

/// In a stream of a device that reaches both.
fn issue_on_device(device: Device, target: u64, source: u64, bytes: usize, on: usize) -> CudaResult {
    if capture::copy(device, on, (true, target), (true, source), bytes)? {
        return Ok(());
    }
    let session = device.session()?;
    check_reachable(device.process, &session, target, bytes as u64)?;
    check_reachable(device.process, &session, source, bytes as u64)?;
    let stream = stream::at_server(device, &session, on)?;
    session.connection.post(&CopyOnDevice { target, source, bytes: bytes as u64, stream })
}

fn fill(device: Device, address: u64, pattern: u32, width: u8, count: usize, on: usize) -> CudaResult {
    if count == 0 {
        return Ok(());
    }
    let bytes = (count as u64).checked_mul(u64::from(width)).ok_or(INVALID_VALUE)?;
    if !address.is_multiple_of(u64::from(width)) {
        return Err(INVALID_VALUE);
    }
    let element = u32::from(width);
    if let Some(turn) = Turn::of(device, on, address)? {
        return turn.take(|device, on| fill(device, address, pattern, width, count, on));
    }
    if capture::fill(device, on, FillNode { address, pitch: 0, value: pattern, element, width: count, height: 1 })? {
        return Ok(());
    }
    let session = device.session()?;
    check_range(device.process, &session, address, bytes)?;
    let stream = stream::at_server(device, &session, on)?;
    session.connection.post(&Fill { address, pattern, width, count: count as u64, stream })
}

pub unsafe fn cuMemcpyHtoD_v2(target: u64, source: *const c_void, bytes: usize) -> CudaResult {
    let device = current()?;
    let sides = (names_device(device.process, target, bytes), false);
    // SAFETY: as the caller's.
    unsafe { between(device, sides, target, source as u64, bytes, 0, Return::Copied)? };
    across::arrived(device)
}

pub unsafe fn cuMemcpyHtoDAsync_v2(target: u64, source: *const c_void, bytes: usize, stream: usize) -> CudaResult {
    let device = current()?;
    let sides = (names_device(device.process, target, bytes), false);
    // SAFETY: as the caller's.
    unsafe { between(device, sides, target, source as u64, bytes, stream, Return::Issued) }
}

pub unsafe fn cuMemcpyDtoH_v2(target: *mut c_void, source: u64, bytes: usize) -> CudaResult {
    let device = current()?;
    let sides = (false, names_device(device.process, source, bytes));
    // SAFETY: as the caller's.
    unsafe { between(device, sides, target as u64, source, bytes, 0, Return::Copied) }
}

pub unsafe fn cuMemcpyDtoHAsync_v2(target: *mut c_void, source: u64, bytes: usize, stream: usize) -> CudaResult {
    let device = current()?;
    let sides = (false, names_device(device.process, source, bytes));
    // SAFETY: as the caller's.
    unsafe { between(device, sides, target as u64, source, bytes, stream, Return::Issued) }
}

pub unsafe fn cuMemcpyDtoD_v2(target: u64, source: u64, bytes: usize) -> CudaResult {
    let device = current()?;
    let sides = device_sides(device, target, source, bytes);
    // SAFETY: as the caller's.
    unsafe { between(device, sides, target, source, bytes, 0, Return::Copied)? };
    if sides == (true, false) { across::arrived(device) } else { Ok(()) }
}

pub unsafe fn cuMemcpyDtoDAsync_v2(target: u64, source: u64, bytes: usize, stream: usize) -> CudaResult {
    let device = current()?;
    let sides = device_sides(device, target, source, bytes);
    // SAFETY: as the caller's.
    unsafe { between(device, sides, target, source, bytes, stream, Return::Issued) }
}

/// Unified addressing: which side an address is on follows from its range.
pub(crate) fn is_device(process: &'static Process, address: u64) -> bool {
    process.device_at(address).is_some() || process.ended_range(address).is_some()
}

/// Whether what a program passes as a device address is one. Page-locked memory has a device address as well: its own.
pub(crate) fn names_device(process: &'static Process, address: u64, bytes: usize) -> bool {
    is_device(process, address) || !is_pinned(address as usize, bytes)
}

/// [`names_device`] of a target and a source.
fn device_sides(device: Device, target: u64, source: u64, bytes: usize) -> (bool, bool) {
    (names_device(device.process, target, bytes), names_device(device.process, source, bytes))
}

pub unsafe fn cuMemcpyAsync(target: u64, source: u64, bytes: usize, stream: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy(target, source, bytes, stream, Return::Issued) }
}

unsafe fn copy(target: u64, source: u64, bytes: usize, stream: usize, when: Return) -> CudaResult {
    let device = current()?;
    let sides = (is_device(device.process, target), is_device(device.process, source));
    // SAFETY: as the caller's.
    unsafe { between(device, sides, target, source, bytes, stream, when) }
}

/// A copy by the sides that its target and its source are on: true is the device.
unsafe fn between(
    device: Device,
    sides: (bool, bool),
    target: u64,
    source: u64,
    bytes: usize,
    stream: usize,
    when: Return,
) -> CudaResult {
    if bytes == 0 {
        return Ok(());
    }
    match sides {
        (true, true) => on_device(device, target, source, bytes, stream),
        // SAFETY: an address outside all device ranges is the caller's host memory.
        (true, false) => unsafe { put_on_device(device, target, source as *const c_void, bytes, stream, when) },
        // SAFETY: as above.
        (false, true) => unsafe { get_from_device(device, target as *mut c_void, source, bytes, stream, when) },
        (false, false) => {
            let home = stream::home(device, stream)?;
            if capture::copy(home, stream, (false, target), (false, source), bytes)? {
                return Ok(());
            }
            if let Some(session) = home.session_now() {
                let stream = stream::at_server(home, &session, stream)?;
                session.connection.call(&StreamSynchronize { stream })?;
            }
            // SAFETY: both are the caller's host memory; the regions may overlap.
            unsafe { std::ptr::copy(source as *const u8, target as *mut u8, bytes) };
            Ok(())
        }
    }
}

/// The contexts are those of the addresses' devices, which the addresses name themselves.
pub unsafe fn cuMemcpyPeerAsync(
    target: u64,
    target_context: usize,
    source: u64,
    source_context: usize,
    bytes: usize,
    stream: usize,
) -> CudaResult {
    let device = current()?;
    context::find(device.process, target_context)?;
    context::find(device.process, source_context)?;
    let sides = device_sides(device, target, source, bytes);
    // SAFETY: as the caller's.
    unsafe { between(device, sides, target, source, bytes, stream, Return::Issued) }
}

pub unsafe fn cuMemcpyPeer(
    target: u64,
    target_context: usize,
    source: u64,
    source_context: usize,
    bytes: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuMemcpyPeerAsync(target, target_context, source, source_context, bytes, 0)? };
    let device = current()?;
    match device_sides(device, target, source, bytes) {
        (true, true) => Ok(()),
        _ => stream::synchronize(device, stream::LEGACY),
    }
}

/// The attributes are hints on when a source may be read; here it is read before the call returns.
pub unsafe fn cuMemcpyWithAttributesAsync(
    target: u64,
    source: u64,
    bytes: usize,
    _attributes: *const c_void,
    stream: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy(target, source, bytes, stream, Return::Copied) }
}

/// Attributes as in [`cuMemcpyWithAttributesAsync`].
pub unsafe fn cuMemcpyBatchAsync(
    targets: *const u64,
    sources: *const u64,
    sizes: *const usize,
    count: usize,
    _attributes: *const c_void,
    _first: *const usize,
    _kinds: usize,
    failed: *mut usize,
    stream: usize,
) -> CudaResult {
    current()?;
    // SAFETY: the caller's output.
    unsafe { put_optional(failed, usize::MAX) };
    // CUDA takes a stream of the program's own, or a thread's default stream by its name.
    if targets.is_null() || sources.is_null() || sizes.is_null() || count == 0 || stream < 2 {
        return Err(INVALID_VALUE);
    }
    for index in 0..count {
        // SAFETY: the caller's lists are `count` long.
        let copied = unsafe {
            let (target, source) = (targets.add(index).read(), sources.add(index).read());
            copy(target, source, sizes.add(index).read(), stream, Return::Copied)
        };
        if copied.is_err() {
            // SAFETY: the caller's output.
            unsafe { put_optional(failed, index) };
        }
        copied?;
    }
    Ok(())
}

pub unsafe fn cuMemcpyBatchAsync_v2(
    targets: *const u64,
    sources: *const u64,
    sizes: *const usize,
    count: usize,
    attributes: *const c_void,
    first: *const usize,
    kinds: usize,
    stream: usize,
) -> CudaResult {
    let failed = std::ptr::null_mut();
    // SAFETY: as the caller's.
    unsafe { cuMemcpyBatchAsync(targets, sources, sizes, count, attributes, first, kinds, failed, stream) }
}

pub unsafe fn cuMemcpy(target: u64, source: u64, bytes: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { copy(target, source, bytes, 0, Return::Copied)? };
    across::arrived(current()?)
}

pub unsafe fn cuMemsetD8_v2(address: u64, value: u8, count: usize) -> CudaResult {
    fill(current()?, address, u32::from(value), 1, count, 0)
}

pub unsafe fn cuMemsetD16_v2(address: u64, value: u16, count: usize) -> CudaResult {
    fill(current()?, address, u32::from(value), 2, count, 0)
}

pub unsafe fn cuMemsetD32_v2(address: u64, value: u32, count: usize) -> CudaResult {
    fill(current()?, address, value, 4, count, 0)
}

pub unsafe fn cuMemsetD8Async(address: u64, value: u8, count: usize, stream: usize) -> CudaResult {
    fill(current()?, address, u32::from(value), 1, count, stream)
}

pub unsafe fn cuMemsetD16Async(address: u64, value: u16, count: usize, stream: usize) -> CudaResult {
    fill(current()?, address, u32::from(value), 2, count, stream)
}

pub unsafe fn cuMemsetD32Async(address: u64, value: u32, count: usize, stream: usize) -> CudaResult {
    fill(current()?, address, value, 4, count, stream)
}
