//! Events.

use super::context::{Current, current_context};
use super::{BETWEEN_PROCESSES, capture, current, put, ready, stream};
use crate::connection::broken;
use crate::error::{CudaError, CudaResult, INVALID_HANDLE, INVALID_VALUE, NOT_READY};
use crate::objects::{Event, Recording, new_handle};
use crate::process::Process;
use sluice_protocol::messages::{
    EventDestroy, EventElapsed, EventRecord, EventSynchronize, EventWatch, EventWatchReply,
};
use sluice_protocol::reply::decode_reply;
use sluice_protocol::{Reader, Wire, cuda};
use std::sync::Arc;

/// CU_EVENT_DISABLE_TIMING
const NO_TIMING: u32 = 2;
/// CU_EVENT_INTERPROCESS
const INTERPROCESS: u32 = 4;

pub unsafe fn cuEventCreate(event: *mut usize, flags: u32) -> CudaResult {
    let device = current()?;
    if flags > 7 {
        return Err(INVALID_VALUE);
    }
    if flags & INTERPROCESS != 0 {
        return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, BETWEEN_PROCESSES));
    }
    let handle = new_handle();
    // SAFETY: the caller's output.
    unsafe { put(event, handle as usize)? };
    device.process.objects.events.put(handle, Event::new(handle, current_context()?, flags));
    Ok(())
}

pub unsafe fn cuEventDestroy_v2(event: usize) -> CudaResult {
    destroy(ready()?, event)
}

pub(super) fn destroy(process: &'static Process, event: usize) -> CudaResult {
    let removed = process.objects.events.remove(event)?;
    process.objects.captures.forget_event(removed.handle);
    if let Some(session) = process.device(removed.device).session_now()
        && removed.is_in(&session)
    {
        session.connection.post(&EventDestroy { event: removed.handle })?;
    }
    Ok(())
}

/// CU_EVENT_RECORD_EXTERNAL: a node of the graph that is captured.
const RECORD_EXTERNAL: u32 = 1;

/// Records an event of the stream's context; the default stream is `current`'s. `external` is a node where the stream
/// captures.
pub(crate) fn record(current: Current, event: Arc<Event>, on: usize, external: bool) -> CudaResult {
    let home = stream::context(current, on)?;
    if event.context != home.context {
        return Err(INVALID_HANDLE);
    }
    let device = ready()?.device(home.device);
    if capture::record_event(device, on, &event, external)? {
        return Ok(());
    }
    let session = device.session()?;
    let stream = stream::at_server(device, &session, on)?;
    event.ensure(&session)?;
    let mut recording = event.recording();
    let number = recording.number + 1;
    *recording = Recording { generation: session.generation, number, stream, mark: u64::MAX, ..Recording::default() };
    recording.mark = session.connection.post_numbered(&EventRecord { event: event.handle, stream })?;
    // Events without timing are those by which programs learn that memory can be used again.
    if event.was_queried() || (event.flags & NO_TIMING != 0 && session.queries_events()) {
        recording.asked =
            Some(Arc::new(session.connection.ask(&EventWatch { event: event.handle, recording: number })?));
    }
    Ok(())
}

pub unsafe fn cuEventRecord(event: usize, on: usize) -> CudaResult {
    let device = current()?;
    record(current_context()?, device.process.objects.events.get(event)?, on, false)
}

pub unsafe fn cuEventRecordWithFlags(event: usize, on: usize, flags: u32) -> CudaResult {
    if flags > RECORD_EXTERNAL {
        return Err(INVALID_VALUE);
    }
    let device = current()?;
    record(current_context()?, device.process.objects.events.get(event)?, on, flags == RECORD_EXTERNAL)
}

pub unsafe fn cuEventSynchronize(event: usize) -> CudaResult {
    let device = current()?;
    let event = device.process.objects.events.get(event)?;
    let device = device.process.device(event.device);
    capture::refuse_captured(device.process, &event)?;
    let (generation, number, stream, mark) = {
        let recording = event.recording();
        (recording.generation, recording.number, recording.stream, recording.mark)
    };
    if generation == 0 {
        return Ok(());
    }
    device.check_lost()?;
    let session = device.session()?;
    if generation == session.generation && !event.is_passed(&mut event.recording(), &session.progress) {
        session.connection.call(&EventSynchronize { event: event.handle })?;
        event.passed(number);
        session.progress.stream_done(stream, mark);
        session.check_sticky()?;
    }
    super::pool::synchronized(device);
    Ok(())
}

/// The first question about an event goes to gpud, which tells on its own account when the event is passed: further
/// questions are answered here. Later records of the event carry the question with them.
pub unsafe fn cuEventQuery(event: usize) -> CudaResult {
    let device = current()?;
    let event = device.process.objects.events.get(event)?;
    let device = device.process.device(event.device);
    capture::refuse_captured(device.process, &event)?;
    capture::unsafe_call(device.process)?;
    let Some(session) = device.session_now() else {
        let recording = event.recording();
        return if recording.generation == 0 || recording.passed { Ok(()) } else { device.check_lost() };
    };
    session.check_sticky()?;
    let number = {
        let mut recording = event.recording();
        if recording.generation != session.generation || event.is_passed(&mut recording, &session.progress) {
            return Ok(());
        }
        event.queried();
        session.events_are_queried();
        if recording.watched || recording.asked.is_some() {
            session.connection.read_available();
            session.check_sticky()?;
            if let Some(answer) = recording.asked.as_ref().and_then(|asked| asked.peek()) {
                recording.asked = None;
                recording.watched = true;
                if is_ready(&answer?)? {
                    event.passed(recording.number);
                }
            }
            let passed = event.is_passed(&mut recording, &session.progress);
            return if passed { Ok(()) } else { Err(NOT_READY) };
        }
        recording.watched = true;
        recording.number
    };
    let answer = session.connection.call(&EventWatch { event: event.handle, recording: number });
    match answer {
        Ok(answer) if answer.ready != 0 => {
            event.passed(number);
            Ok(())
        }
        Ok(_) => Err(NOT_READY),
        Err(error) => {
            event.recording().watched = false;
            Err(error)
        }
    }
}

/// What an answer to `EventWatch` says.
fn is_ready(answer: &[u8]) -> CudaResult<bool> {
    let (_, body) = decode_reply(answer).map_err(broken)?;
    Ok(EventWatchReply::take(&mut Reader::new(body?)).map_err(broken)?.ready != 0)
}

pub unsafe fn cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) -> CudaResult {
    let device = current()?;
    let (start, end) = (device.process.objects.events.get(start)?, device.process.objects.events.get(end)?);
    capture::refuse_captured(device.process, &start)?;
    capture::refuse_captured(device.process, &end)?;
    if (start.flags | end.flags) & NO_TIMING != 0 {
        return Err(INVALID_HANDLE);
    }
    // One after the other: both may be the same event.
    let [first, last] = [&start, &end].map(|event| event.recording().generation);
    if first == 0 || last == 0 {
        return Err(INVALID_HANDLE);
    }
    if start.device != end.device {
        return Err(INVALID_HANDLE);
    }
    let session = device.process.device(start.device).session()?;
    if first != session.generation || last != session.generation {
        return Err(CudaError::new(cuda::ERROR_INVALID_HANDLE, "these events were recorded on a GPU that is gone"));
    }
    let answer = session.connection.call(&EventElapsed { start: start.handle, end: end.handle })?;
    // SAFETY: the caller's output.
    unsafe { put(milliseconds, answer.milliseconds) }
}
