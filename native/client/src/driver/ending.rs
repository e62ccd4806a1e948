//! The end of a context, and of what belongs to it: memory, modules, streams, events, linkers and page-locked memory.
//! Memory of pools and graphs, mapped memory and libraries belong to no context and stay.

use super::{event, memory, module, peer, stream};
use crate::device::Device;
use crate::error::CudaResult;
use crate::objects::{LIMITS, PRINT_LIMIT, STACK_LIMIT};
use sluice_protocol::messages::{ContextSynchronize, ModuleUnload};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Ends what belongs to a context. With the last context of the device ends what gpud keeps for all of them.
pub(super) fn end(device: Device, context: u64, last: bool) -> CudaResult {
    let objects = &device.process.objects;
    for (handle, stream) in objects.streams.all() {
        if stream.context == context {
            // Somebody else may have ended it just now; a lost connection fails the next call, with the reason.
            let _ = stream::destroy(device.process, handle as usize);
        }
    }
    for (handle, event) in objects.events.all() {
        if event.context == context {
            let _ = event::destroy(device.process, handle as usize);
        }
    }
    for (handle, module) in objects.modules.all() {
        if module.context == context {
            let _ = module::unload(device.process, handle as usize);
        }
    }
    for (handle, link) in objects.links.all() {
        if link.lock().unwrap_or_else(PoisonError::into_inner).context == context {
            let _ = objects.links.remove(handle as usize);
        }
    }
    memory::end_pinned(device.process, context);
    if let Some(session) = device.any_session() {
        peer::settle(device.process, &session);
        session.free_of(context);
    }
    if last {
        begin_anew(device)?;
    }
    match device.session_now() {
        Some(session) => session.connection.call(&ContextSynchronize).map(|_| ()),
        None => Ok(()),
    }
}

/// All contexts of a device share one at gpud: what each would have of its own there (limits, the heap of `malloc` in
/// kernels, libraries' variables) is fresh again when none is left.
fn begin_anew(device: Device) -> CudaResult {
    let (objects, session) = (&device.process.objects, device.session_now());
    device.state.heap.store(0, Ordering::Release);
    let printed = device.state.printed.swap(0, Ordering::AcqRel);
    let stack = device.state.stack.swap(0, Ordering::AcqRel);
    for (_, function) in objects.functions.all() {
        if function.module.device.is_none() {
            function.forget(device.ordinal);
        }
    }
    let Some(session) = session else { return Ok(()) };
    if printed != 0 {
        session.limit_printed(LIMITS[PRINT_LIMIT] as u64);
    }
    if stack != 0 {
        session.limit_stack(LIMITS[STACK_LIMIT] as u64)?;
    }
    for (handle, library) in objects.modules.all() {
        // A library is there again when it is used.
        if library.device.is_none() && library.is_in(&session) {
            library.unloaded(&session);
            session.connection.post(&ModuleUnload { module: handle })?;
        }
    }
    session.reset()
}
