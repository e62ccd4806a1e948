//! Streams.

use super::context::current_context;
use super::{current, put, ready};
use crate::error::{CudaResult, INVALID_VALUE, NOT_READY};
use crate::fork;
use crate::objects::{Stream, new_handle};
use crate::process::{self, Process};
use crate::session::Session;
use sluice_protocol::messages::{StreamDestroy, StreamQuery, StreamSynchronize, StreamWaitEvent};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::Arc;

/// CU_STREAM_LEGACY
const LEGACY: usize = 1;
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
        let process = process::get();
        for (_, handle) in self.0.drain(..) {
            if let Ok(removed) = process.objects.streams.remove(handle as usize)
                && let Some(session) = process.session_now().filter(|session| removed.is_in(session))
            {
                let _ = session.connection.post(&StreamDestroy { stream: handle });
            }
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
fn own(process: &Process) -> CudaResult<Arc<Stream>> {
    let context = current_context()?;
    let known = OWN.with_borrow(|own| own.0.iter().find(|(of, _)| *of == context).map(|(_, handle)| *handle));
    if let Some(found) = known.and_then(|handle| process.objects.streams.get(handle as usize).ok()) {
        return Ok(found);
    }
    let handle = new_handle();
    OWN.with_borrow_mut(|own| {
        own.0.retain(|(of, _)| *of != context);
        own.0.push((context, handle));
    });
    Ok(process.objects.streams.put(handle, Stream::new(handle, context, 0, 0)))
}

/// The stream's object; None is the legacy default stream.
fn object(process: &Process, stream: usize) -> CudaResult<Option<Arc<Stream>>> {
    match stream {
        0 if !ZERO_IS_OWN.get() => Ok(None),
        LEGACY => Ok(None),
        0 | PER_THREAD => own(process).map(Some),
        _ => process.objects.streams.get(stream).map(Some),
    }
}

/// Fails when the handle names no stream.
pub(crate) fn check(process: &Process, stream: usize) -> CudaResult {
    object(process, stream).map(|_| ())
}

/// The stream's handle at gpud, made there when this generation has none.
#[inline]
pub(crate) fn at_server(process: &Process, session: &Session, stream: usize) -> CudaResult<u64> {
    if stream == 0 && !ZERO_IS_OWN.get() {
        return Ok(0);
    }
    match object(process, stream)? {
        None => Ok(0),
        Some(stream) => stream.ensure(session).map(|()| stream.handle),
    }
}

pub unsafe fn cuStreamCreateWithPriority(stream: *mut usize, flags: u32, priority: i32) -> CudaResult {
    let process = current()?;
    if flags > 1 {
        return Err(INVALID_VALUE);
    }
    let handle = new_handle();
    // SAFETY: the caller's output.
    unsafe { put(stream, handle as usize)? };
    let made = Stream::new(handle, current_context()?, flags, priority.clamp(-5, 0));
    let made = process.objects.streams.put(handle, made);
    if let Some(session) = process.session_now() {
        made.ensure(&session)?;
    }
    Ok(())
}

pub unsafe fn cuStreamCreate(stream: *mut usize, flags: u32) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuStreamCreateWithPriority(stream, flags, 0) }
}

pub unsafe fn cuStreamDestroy_v2(stream: usize) -> CudaResult {
    let process = ready()?;
    let removed = process.objects.streams.remove(stream)?;
    if let Some(session) = process.session_now()
        && removed.is_in(&session)
    {
        session.connection.post(&StreamDestroy { stream: removed.handle })?;
    }
    Ok(())
}

pub unsafe fn cuStreamSynchronize(stream: usize) -> CudaResult {
    let process = current()?;
    check(process, stream)?;
    if process.any_session().is_none() && process.last_loss().is_none() {
        return Ok(());
    }
    let session = process.session()?;
    let stream = at_server(process, &session, stream)?;
    session.connection.call(&StreamSynchronize { stream }).map(|_| ())
}

pub unsafe fn cuStreamQuery(stream: usize) -> CudaResult {
    let process = current()?;
    check(process, stream)?;
    let Some(session) = process.session_now() else { return Ok(()) };
    let stream = at_server(process, &session, stream)?;
    if session.connection.call(&StreamQuery { stream })?.ready != 0 { Ok(()) } else { Err(NOT_READY) }
}

pub unsafe fn cuStreamWaitEvent(stream: usize, event: usize, _flags: u32) -> CudaResult {
    let process = current()?;
    check(process, stream)?;
    let event = process.objects.events.get(event)?;
    // An event that was not recorded in this generation is complete.
    let Some(session) = process.session_now().filter(|session| event.is_in(session)) else { return Ok(()) };
    let stream = at_server(process, &session, stream)?;
    session.connection.post(&StreamWaitEvent { stream, event: event.handle })
}

pub unsafe fn cuStreamGetFlags(stream: usize, flags: *mut u32) -> CudaResult {
    let found = object(current()?, stream)?;
    // SAFETY: the caller's output.
    unsafe { put(flags, found.map_or(0, |stream| stream.flags)) }
}

pub unsafe fn cuStreamGetPriority(stream: usize, priority: *mut i32) -> CudaResult {
    let found = object(current()?, stream)?;
    // SAFETY: the caller's output.
    unsafe { put(priority, found.map_or(0, |stream| stream.priority)) }
}

pub unsafe fn cuStreamGetId(stream: usize, id: *mut u64) -> CudaResult {
    let found = object(current()?, stream)?;
    // SAFETY: the caller's output.
    unsafe { put(id, found.map_or(LEGACY as u64, |stream| stream.handle)) }
}

pub unsafe fn cuStreamGetCtx(stream: usize, context: *mut usize) -> CudaResult {
    let found = object(current()?, stream)?;
    let handle = match found {
        Some(stream) => stream.context,
        None => current_context()?,
    };
    // SAFETY: the caller's output.
    unsafe { put(context, handle as usize) }
}

pub unsafe fn cuStreamGetCtx_v2(stream: usize, context: *mut usize, green: *mut usize) -> CudaResult {
    // SAFETY: the caller's outputs.
    unsafe {
        cuStreamGetCtx(stream, context)?;
        if green.is_null() { Ok(()) } else { put(green, 0) }
    }
}

pub unsafe fn cuStreamGetDevice(stream: usize, device: *mut i32) -> CudaResult {
    check(current()?, stream)?;
    // SAFETY: the caller's output.
    unsafe { put(device, 0) }
}

/// Capture is not served, so no stream ever captures.
pub unsafe fn cuStreamIsCapturing(stream: usize, status: *mut u32) -> CudaResult {
    check(current()?, stream)?;
    // SAFETY: the caller's output.
    unsafe { put(status, 0) }
}

pub unsafe fn cuStreamGetCaptureInfo_v2(
    stream: usize,
    status: *mut u32,
    _id: *mut u64,
    _graph: *mut usize,
    _dependencies: *mut *const usize,
    count: *mut usize,
) -> CudaResult {
    check(current()?, stream)?;
    // SAFETY: the caller's outputs.
    unsafe {
        if !count.is_null() {
            put(count, 0)?;
        }
        put(status, 0)
    }
}

pub unsafe fn cuStreamGetCaptureInfo_v3(
    stream: usize,
    status: *mut u32,
    id: *mut u64,
    graph: *mut usize,
    dependencies: *mut *const usize,
    _edges: *mut *const c_void,
    count: *mut usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count) }
}

pub unsafe fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) -> CudaResult {
    thread_local! {
        static MODE: Cell<u32> = const { Cell::new(0) };
    }
    ready()?;
    if mode.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, the caller's.
    let wanted = unsafe { mode.read() };
    if wanted > 2 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: as above.
    unsafe { put(mode, MODE.replace(wanted)) }
}
