//! Events.

use super::context::current_context;
use super::{current, put, ready, stream};
use crate::error::{CudaError, CudaResult, INVALID_HANDLE, INVALID_VALUE, NOT_READY};
use crate::objects::{Event, new_handle};
use sluice_protocol::cuda;
use sluice_protocol::messages::{EventDestroy, EventElapsed, EventQuery, EventRecord, EventSynchronize};
use std::sync::atomic::Ordering;

/// CU_EVENT_DISABLE_TIMING
const NO_TIMING: u32 = 2;
/// CU_EVENT_INTERPROCESS
const INTERPROCESS: u32 = 4;

pub unsafe fn cuEventCreate(event: *mut usize, flags: u32) -> CudaResult {
    let process = current()?;
    if flags > 7 {
        return Err(INVALID_VALUE);
    }
    if flags & INTERPROCESS != 0 {
        return Err(CudaError::new(
            cuda::ERROR_NOT_SUPPORTED,
            "events of a remote GPU cannot be passed between processes yet",
        ));
    }
    let handle = new_handle();
    // SAFETY: the caller's output.
    unsafe { put(event, handle as usize)? };
    process.objects.events.put(handle, Event::new(handle, current_context()?, flags));
    Ok(())
}

pub unsafe fn cuEventDestroy_v2(event: usize) -> CudaResult {
    let process = ready()?;
    let removed = process.objects.events.remove(event)?;
    if let Some(session) = process.session_now()
        && removed.is_in(&session)
    {
        session.connection.post(&EventDestroy { event: removed.handle })?;
    }
    Ok(())
}

pub unsafe fn cuEventRecord(event: usize, on: usize) -> CudaResult {
    let process = current()?;
    let event = process.objects.events.get(event)?;
    let session = process.session()?;
    let stream = stream::at_server(process, &session, on)?;
    event.ensure(&session)?;
    session.connection.post(&EventRecord { event: event.handle, stream })?;
    event.recorded.store(session.generation, Ordering::Release);
    Ok(())
}

pub unsafe fn cuEventRecordWithFlags(event: usize, stream: usize, flags: u32) -> CudaResult {
    // CU_EVENT_RECORD_EXTERNAL has a meaning in captures alone.
    if flags > 1 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: as the caller's.
    unsafe { cuEventRecord(event, stream) }
}

pub unsafe fn cuEventSynchronize(event: usize) -> CudaResult {
    let process = current()?;
    let event = process.objects.events.get(event)?;
    let recorded = event.recorded.load(Ordering::Acquire);
    if recorded == 0 {
        return Ok(());
    }
    let session = process.session()?;
    if recorded != session.generation {
        return Ok(());
    }
    session.connection.call(&EventSynchronize { event: event.handle }).map(|_| ())
}

pub unsafe fn cuEventQuery(event: usize) -> CudaResult {
    let process = current()?;
    let event = process.objects.events.get(event)?;
    let recorded = event.recorded.load(Ordering::Acquire);
    let Some(session) = process.session_now().filter(|session| session.generation == recorded) else {
        return Ok(());
    };
    if session.connection.call(&EventQuery { event: event.handle })?.ready != 0 { Ok(()) } else { Err(NOT_READY) }
}

pub unsafe fn cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) -> CudaResult {
    let process = current()?;
    let (start, end) = (process.objects.events.get(start)?, process.objects.events.get(end)?);
    if (start.flags | end.flags) & NO_TIMING != 0 {
        return Err(INVALID_HANDLE);
    }
    let (first, last) = (start.recorded.load(Ordering::Acquire), end.recorded.load(Ordering::Acquire));
    if first == 0 || last == 0 {
        return Err(INVALID_HANDLE);
    }
    let session = process.session()?;
    if first != session.generation || last != session.generation {
        return Err(CudaError::new(cuda::ERROR_INVALID_HANDLE, "these events were recorded on a GPU that is gone"));
    }
    let answer = session.connection.call(&EventElapsed { start: start.handle, end: end.handle })?;
    // SAFETY: the caller's output.
    unsafe { put(milliseconds, answer.milliseconds) }
}
