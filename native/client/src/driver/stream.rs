//! Streams.

use super::context::{Current, current_context};
use super::graph::{Work, lower, nodes};
use super::{across, capture, current, put, put_optional, ready};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_VALUE, NOT_READY};
use crate::fork;
use crate::objects::{Stream, new_handle};
use crate::process::{self, Process};
use crate::session::Session;
use sluice_protocol::cuda;
use sluice_protocol::graph::MemoryOperation;
use sluice_protocol::messages::{
    StreamDestroy, StreamMemory, StreamQuery, StreamSetAttribute, StreamSynchronize, StreamWaitEvent,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, PoisonError};

/// CU_STREAM_LEGACY
pub(super) const LEGACY: usize = 1;
/// CU_STREAM_PER_THREAD
const PER_THREAD: usize = 2;

thread_local! {
    /// Stream 0 is this thread's own: a `_ptsz` or `_ptds` variant is running.
    static ZERO_IS_OWN: Cell<bool> = const { Cell::new(false) };
    static OWN: RefCell<OwnStreams> = const { RefCell::new(OwnStreams(Vec::new())) };
}

/// A thread's default streams: (context, stream).
struct OwnStreams(Vec<(u64, u64)>);

impl Drop for OwnStreams {
    /// The thread ends, and its streams with it; what they hold still runs.
    fn drop(&mut self) {
        if self.0.is_empty() || fork::is_child() {
            return;
        }
        for (_, handle) in self.0.drain(..) {
            // It may have ended with its context.
            let _ = destroy(process::get(), handle as usize);
        }
    }
}

/// Runs a function with stream 0 as the calling thread's own default stream.
pub(crate) fn per_thread(body: impl FnOnce() -> CudaResult) -> CudaResult {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ZERO_IS_OWN.set(self.0);
        }
    }
    let _restore = Restore(ZERO_IS_OWN.replace(true));
    body()
}

/// The calling thread's default stream in its current context, made at first use. It is a blocking stream: it and the
/// legacy default stream wait for each other.
fn own(device: Device) -> CudaResult<Arc<Stream>> {
    let current = current_context()?;
    let context = current.context;
    let find = |own: &RefCell<OwnStreams>| own.borrow().0.iter().find(|(of, _)| *of == context).copied();
    // In the end of a thread its streams are over; there is no stream any more that would end with it.
    let known = OWN.try_with(find).map_err(|_| CudaError::code(cuda::ERROR_DEINITIALIZED))?.map(|(_, handle)| handle);
    if let Some(found) = known.and_then(|handle| device.process.objects.streams.get(handle as usize).ok()) {
        return Ok(found);
    }
    let handle = new_handle();
    OWN.with_borrow_mut(|own| {
        own.0.retain(|(of, _)| *of != context);
        own.0.push((context, handle));
    });
    Ok(device.process.objects.streams.put(handle, Stream::new(handle, current, 0, 0)))
}

/// The stream's object; None is the legacy default stream.
fn object(device: Device, stream: usize) -> CudaResult<Option<Arc<Stream>>> {
    match stream {
        0 if !ZERO_IS_OWN.get() => Ok(None),
        LEGACY => Ok(None),
        0 | PER_THREAD => own(device).map(Some),
        _ => device.process.objects.streams.get(stream).map(Some),
    }
}

/// The stream's device; the default stream is the current one's.
pub(crate) fn home(device: Device, stream: usize) -> CudaResult<Device> {
    Ok(object(device, stream)?.map_or(device, |stream| device.process.device(stream.device)))
}

/// The stream's context; the default stream is the current one's.
pub(crate) fn context(current: Current, stream: usize) -> CudaResult<Current> {
    let found = object(ready()?.device(current.device), stream)?;
    Ok(found.map_or(current, |stream| Current { context: stream.context, device: stream.device }))
}

/// The stream's handle; the default stream has 0.
pub(crate) fn handle(device: Device, stream: usize) -> CudaResult<u64> {
    object(device, stream).map(|stream| stream.map_or(0, |stream| stream.handle))
}

/// Whether the stream waits for the default stream.
pub(crate) fn is_blocking(device: Device, stream: usize) -> CudaResult<bool> {
    object(device, stream).map(|stream| stream.is_none_or(|stream| stream.flags & 1 == 0))
}

/// Fails when the handle names no stream.
pub(crate) fn check(device: Device, stream: usize) -> CudaResult {
    object(device, stream).map(|_| ())
}

/// The stream's handle at gpud, made there when this generation has none.
#[inline]
pub(crate) fn at_server(device: Device, session: &Session, stream: usize) -> CudaResult<u64> {
    at_server_of(device, session, stream, |_| Ok(()))
}

/// As [`at_server`], of a stream whose context may be used; None is the current one, which the default stream is in.
#[inline]
pub(crate) fn at_server_of(
    device: Device,
    session: &Session,
    stream: usize,
    check: impl FnOnce(Option<u64>) -> CudaResult,
) -> CudaResult<u64> {
    if stream == 0 && !ZERO_IS_OWN.get() {
        return check(None).map(|()| 0);
    }
    match object(device, stream)? {
        None => check(None).map(|()| 0),
        Some(stream) => {
            check(Some(stream.context))?;
            stream.ensure(session).map(|()| stream.handle)
        }
    }
}

pub unsafe fn cuStreamCreateWithPriority(stream: *mut usize, flags: u32, priority: i32) -> CudaResult {
    let device = current()?;
    if flags > 1 {
        return Err(INVALID_VALUE);
    }
    let handle = new_handle();
    // SAFETY: the caller's output.
    unsafe { put(stream, handle as usize)? };
    let made = Stream::new(handle, current_context()?, flags, priority.clamp(-5, 0));
    let made = device.process.objects.streams.put(handle, made);
    if let Some(session) = device.session_now() {
        made.ensure(&session)?;
    }
    Ok(())
}

pub unsafe fn cuStreamCreate(stream: *mut usize, flags: u32) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuStreamCreateWithPriority(stream, flags, 0) }
}

pub unsafe fn cuStreamDestroy_v2(stream: usize) -> CudaResult {
    destroy(ready()?, stream)
}

/// What the stream holds still runs.
pub(super) fn destroy(process: &'static Process, stream: usize) -> CudaResult {
    let removed = process.objects.streams.remove(stream)?;
    process.objects.captures.forget_stream(process, removed.handle);
    if let Some(session) = process.device(removed.device).session_now()
        && removed.is_in(&session)
    {
        session.connection.post(&StreamDestroy { stream: removed.handle })?;
    }
    Ok(())
}

pub unsafe fn cuStreamSynchronize(stream: usize) -> CudaResult {
    let device = home(current()?, stream)?;
    capture::refuse(device, stream)?;
    synchronize(device, stream)?;
    super::pool::synchronized(device);
    Ok(())
}

/// Waits for what a stream of this device holds.
pub(super) fn synchronize(device: Device, stream: usize) -> CudaResult {
    device.check_lost()?;
    if device.any_session().is_none() {
        return Ok(());
    }
    let session = device.session()?;
    let stream = at_server(device, &session, stream)?;
    let before = session.connection.newest();
    if session.progress.is_idle(stream, before) {
        return session.check_sticky();
    }
    session.connection.call(&StreamSynchronize { stream })?;
    session.progress.stream_done(stream, before);
    session.progress.stream_idle(stream, before + 1, session.connection.newest());
    session.check_sticky()
}

pub unsafe fn cuStreamQuery(stream: usize) -> CudaResult {
    let device = home(current()?, stream)?;
    capture::refuse(device, stream)?;
    let Some(session) = device.session_now() else { return device.check_lost() };
    let stream = at_server(device, &session, stream)?;
    if session.progress.is_idle(stream, session.connection.newest()) {
        return session.check_sticky();
    }
    if session.connection.call(&StreamQuery { stream })?.ready != 0 { Ok(()) } else { Err(NOT_READY) }
}

/// CU_EVENT_WAIT_EXTERNAL: a node of the graph that is captured.
const WAIT_EXTERNAL: u32 = 1;

pub unsafe fn cuStreamWaitEvent(stream: usize, event: usize, flags: u32) -> CudaResult {
    let device = home(current()?, stream)?;
    let event = device.process.objects.events.get(event)?;
    if flags > WAIT_EXTERNAL {
        return Err(INVALID_VALUE);
    }
    if event.device != device.ordinal {
        return across::wait_event(device, stream, &event);
    }
    if capture::wait_event(device, stream, &event, flags == WAIT_EXTERNAL)? {
        return Ok(());
    }
    // An event that was not recorded in this generation is complete.
    let Some(session) = device.session_now().filter(|session| event.is_in(session)) else { return Ok(()) };
    let stream = at_server(device, &session, stream)?;
    session.connection.post(&StreamWaitEvent { stream, event: event.handle })
}

pub unsafe fn cuStreamGetFlags(stream: usize, flags: *mut u32) -> CudaResult {
    let found = object(current()?, stream)?;
    // SAFETY: the caller's output.
    unsafe { put(flags, found.map_or(0, |stream| stream.flags)) }
}

pub unsafe fn cuStreamGetPriority(stream: usize, priority: *mut i32) -> CudaResult {
    let device = current()?;
    let found = object(device, stream)?;
    let set = attributes(device, found.as_deref()).get(&PRIORITY).copied();
    let value = set.unwrap_or_else(|| initial(PRIORITY, found.map_or(0, |stream| stream.priority)));
    // SAFETY: the caller's output.
    unsafe { put(priority, i32::from_le_bytes([value[0], value[1], value[2], value[3]])) }
}

pub unsafe fn cuStreamGetId(stream: usize, id: *mut u64) -> CudaResult {
    let found = object(current()?, stream)?;
    // SAFETY: the caller's output.
    unsafe { put(id, found.map_or(LEGACY as u64, |stream| stream.handle)) }
}

pub unsafe fn cuStreamGetCtx(stream: usize, context: *mut usize) -> CudaResult {
    current()?;
    let found = self::context(current_context()?, stream)?;
    // SAFETY: the caller's output.
    unsafe { put(context, found.context as usize) }
}

pub unsafe fn cuStreamGetCtx_v2(stream: usize, context: *mut usize, green: *mut usize) -> CudaResult {
    // SAFETY: the caller's outputs.
    unsafe {
        cuStreamGetCtx(stream, context)?;
        put_optional(green, 0);
    }
    Ok(())
}

pub unsafe fn cuStreamGetDevice(stream: usize, device: *mut i32) -> CudaResult {
    let found = home(current()?, stream)?;
    // SAFETY: the caller's output.
    unsafe { put(device, found.ordinal as i32) }
}

/// CUstreamAttrID: access policy window, synchronisation policy, priority, memory domain map and domain, NVLink hint.
const ATTRIBUTES: [u32; 6] = [1, 3, 8, 9, 10, 16];
const PRIORITY: u32 = 8;

/// An attribute that was not set.
fn initial(id: u32, priority: i32) -> [u8; 64] {
    let mut value = [0; 64];
    match id {
        // None of its own: the context's. NVIDIA's driver 580 says it by -1.
        3 => value[..4].fill(0xff),
        PRIORITY => value[..4].copy_from_slice(&priority.to_le_bytes()),
        // The remote domain is 1.
        9 => value[1] = 1,
        _ => {}
    }
    value
}

fn attributes(device: Device, found: Option<&Stream>) -> BTreeMap<u32, [u8; 64]> {
    let attributes = found.map_or(&device.state.legacy_attributes, |stream| &stream.attributes);
    attributes.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn set_attributes(device: Device, stream: usize, set: BTreeMap<u32, [u8; 64]>) -> CudaResult {
    let device = home(device, stream)?;
    let found = object(device, stream)?;
    let attributes = found.as_deref().map_or(&device.state.legacy_attributes, |stream| &stream.attributes);
    attributes.lock().unwrap_or_else(PoisonError::into_inner).extend(set.iter().map(|(id, value)| (*id, *value)));
    if let Some(session) = device.session_now() {
        let stream = at_server(device, &session, stream)?;
        for (attribute, value) in &set {
            session.connection.post(&StreamSetAttribute { stream, attribute: *attribute, value })?;
        }
    }
    Ok(())
}

pub unsafe fn cuStreamSetAttribute(stream: usize, attribute: u32, value: *const c_void) -> CudaResult {
    let device = current()?;
    // SAFETY: null, or the caller's CUstreamAttrValue of 64 bytes.
    let value = unsafe { value.cast::<[u8; 64]>().as_ref() }.filter(|_| ATTRIBUTES.contains(&attribute));
    set_attributes(device, stream, BTreeMap::from([(attribute, *value.ok_or(INVALID_VALUE)?)]))
}

pub unsafe fn cuStreamGetAttribute(stream: usize, attribute: u32, value: *mut c_void) -> CudaResult {
    let device = current()?;
    let found = object(device, stream)?;
    if !ATTRIBUTES.contains(&attribute) {
        return Err(INVALID_VALUE);
    }
    let set = attributes(device, found.as_deref()).get(&attribute).copied();
    let value_now = set.unwrap_or_else(|| initial(attribute, found.map_or(0, |stream| stream.priority)));
    // SAFETY: the caller's output.
    unsafe { put(value.cast(), value_now) }
}

pub unsafe fn cuStreamCopyAttributes(target: usize, source: usize) -> CudaResult {
    let device = current()?;
    let set = attributes(device, object(device, source)?.as_deref());
    set_attributes(device, target, set)
}

// Waits for and writes of words in device memory

fn memory(device: Device, on: usize, operations: Vec<MemoryOperation>) -> CudaResult {
    let device = home(device, on)?;
    let session = device.session()?;
    lower::check_operations(device.process, &session, &operations)?;
    if capture::memory_operations(device, on, || Ok(Work::Memory(operations.clone())))? {
        return Ok(());
    }
    let stream = at_server(device, &session, on)?;
    session.connection.post(&StreamMemory { stream, operations })
}

/// `kind` as CUstreamBatchMemOpType.
fn word(stream: usize, kind: u32, address: u64, value: u64, flags: u32, most: u32) -> CudaResult {
    let device = current()?;
    if flags > most {
        return Err(INVALID_VALUE);
    }
    memory(device, stream, vec![MemoryOperation { kind, flags, address, value }])
}

/// CU_STREAM_WAIT_VALUE_*: GEQ, EQ, AND, NOR. Writes of other devices need no flush here.
const WAIT_FLAGS: u32 = 3;
/// CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
const WRITE_FLAGS: u32 = 1;

pub unsafe fn cuStreamWaitValue32_v2(stream: usize, address: u64, value: u32, flags: u32) -> CudaResult {
    word(stream, 1, address, u64::from(value), flags, WAIT_FLAGS)
}

pub unsafe fn cuStreamWriteValue32_v2(stream: usize, address: u64, value: u32, flags: u32) -> CudaResult {
    word(stream, 2, address, u64::from(value), flags, WRITE_FLAGS)
}

pub unsafe fn cuStreamWaitValue64_v2(stream: usize, address: u64, value: u64, flags: u32) -> CudaResult {
    word(stream, 4, address, value, flags, WAIT_FLAGS)
}

pub unsafe fn cuStreamWriteValue64_v2(stream: usize, address: u64, value: u64, flags: u32) -> CudaResult {
    word(stream, 5, address, value, flags, WRITE_FLAGS)
}

pub unsafe fn cuStreamBatchMemOp_v2(stream: usize, count: u32, operations: *const c_void, flags: u32) -> CudaResult {
    let device = current()?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's list, `count` long.
    memory(device, stream, unsafe { nodes::operations(operations.cast(), count)? })
}
