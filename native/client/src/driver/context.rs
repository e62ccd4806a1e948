//! Contexts: the primary one, the program's own, and each thread's stack of them.

use super::device::check;
use super::{put, ready};
use crate::error::{CudaError, CudaResult, INVALID_CONTEXT, INVALID_VALUE};
use crate::objects::{Context, new_handle};
use crate::process::Process;
use sluice_protocol::cuda;
use sluice_protocol::messages::{ContextSynchronize, EventDestroy, ModuleUnload, StreamDestroy};
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

thread_local! {
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread's current context.
#[inline]
pub(crate) fn current_context() -> CudaResult<u64> {
    STACK
        .with(|stack| stack.borrow().last().copied())
        .filter(|top| *top != 0)
        .map_or(Err(INVALID_CONTEXT), |top| Ok(top as u64))
}

fn primary(process: &Process) -> u64 {
    let mut handle = process.primary.lock().unwrap_or_else(PoisonError::into_inner);
    if *handle == 0 {
        *handle = new_handle();
        process.objects.contexts.put(*handle, Context::new(0, true));
    }
    *handle
}

pub unsafe fn cuDevicePrimaryCtxRetain(context: *mut usize, device: i32) -> CudaResult {
    let process = check(device)?;
    // SAFETY: the caller's output.
    unsafe { put(context, primary(process) as usize)? };
    process.primary_retained.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

pub unsafe fn cuDevicePrimaryCtxRelease(device: i32) -> CudaResult {
    let process = check(device)?;
    let released =
        process.primary_retained.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
    if released.is_ok() { Ok(()) } else { Err(INVALID_CONTEXT) }
}

pub unsafe fn cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) -> CudaResult {
    check(device)?.primary_flags.store(flags, Ordering::Release);
    Ok(())
}

pub unsafe fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) -> CudaResult {
    let process = check(device)?;
    // SAFETY: the caller's outputs.
    unsafe {
        put(flags, process.primary_flags.load(Ordering::Acquire))?;
        put(active, i32::from(process.primary_retained.load(Ordering::Acquire) > 0))
    }
}

/// Ends the streams and events of a context.
fn destroy_objects(process: &Process, context: u64) {
    let session = process.session_now();
    for (handle, stream) in process.objects.streams.all() {
        if stream.context == context
            && process.objects.streams.remove(handle as usize).is_ok()
            && let Some(session) = session.as_ref().filter(|session| stream.is_in(session))
        {
            let _ = session.connection.post(&StreamDestroy { stream: handle });
        }
    }
    for (handle, event) in process.objects.events.all() {
        if event.context == context
            && process.objects.events.remove(handle as usize).is_ok()
            && let Some(session) = session.as_ref().filter(|session| event.is_in(session))
        {
            let _ = session.connection.post(&EventDestroy { event: handle });
        }
    }
}

pub unsafe fn cuDevicePrimaryCtxReset(device: i32) -> CudaResult {
    let process = check(device)?;
    let context = primary(process);
    destroy_objects(process, context);
    for (handle, _) in process.objects.functions.all() {
        let _ = process.objects.functions.remove(handle as usize);
    }
    let session = process.session_now();
    for (handle, module) in process.objects.modules.all() {
        let _ = process.objects.modules.remove(handle as usize);
        if let Some(session) = session.as_ref().filter(|session| module.is_in(session)) {
            session.connection.post(&ModuleUnload { module: handle })?;
        }
    }
    if let Some(session) = session {
        session.free_all()?;
        session.connection.call(&ContextSynchronize)?;
    }
    Ok(())
}

pub unsafe fn cuCtxCreate_v2(context: *mut usize, flags: u32, device: i32) -> CudaResult {
    let process = check(device)?;
    let handle = new_handle();
    // SAFETY: the caller's output.
    unsafe { put(context, handle as usize)? };
    process.objects.contexts.put(handle, Context::new(flags, false));
    STACK.with(|stack| stack.borrow_mut().push(handle as usize));
    Ok(())
}

pub unsafe fn cuCtxCreate_v3(
    context: *mut usize,
    _affinity: *const c_void,
    count: i32,
    flags: u32,
    device: i32,
) -> CudaResult {
    if count != 0 {
        return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, "execution affinity is not served"));
    }
    // SAFETY: as the caller's.
    unsafe { cuCtxCreate_v2(context, flags, device) }
}

pub unsafe fn cuCtxCreate_v4(context: *mut usize, parameters: *const c_void, flags: u32, device: i32) -> CudaResult {
    if !parameters.is_null() {
        return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, "context creation parameters are not served"));
    }
    // SAFETY: as the caller's.
    unsafe { cuCtxCreate_v2(context, flags, device) }
}

pub unsafe fn cuCtxDestroy_v2(context: usize) -> CudaResult {
    let process = ready()?;
    let found = process.objects.contexts.get(context).map_err(|_| INVALID_CONTEXT)?;
    if found.primary {
        return Err(INVALID_CONTEXT);
    }
    destroy_objects(process, context as u64);
    process.objects.contexts.remove(context)?;
    STACK.with(|stack| {
        let mut stack = stack.borrow_mut();
        if stack.last() == Some(&context) {
            stack.pop();
        }
    });
    Ok(())
}

pub(crate) fn exists(process: &Process, context: usize) -> CudaResult {
    process.objects.contexts.get(context).map(|_| ()).map_err(|_| INVALID_CONTEXT)
}

pub unsafe fn cuCtxPushCurrent_v2(context: usize) -> CudaResult {
    exists(ready()?, context)?;
    STACK.with(|stack| stack.borrow_mut().push(context));
    Ok(())
}

pub unsafe fn cuCtxPopCurrent_v2(context: *mut usize) -> CudaResult {
    ready()?;
    let top = STACK.with(|stack| stack.borrow_mut().pop()).ok_or(INVALID_CONTEXT)?;
    if context.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's output.
    unsafe { put(context, top) }
}

pub unsafe fn cuCtxSetCurrent(context: usize) -> CudaResult {
    let process = ready()?;
    if context != 0 {
        exists(process, context)?;
    }
    STACK.with(|stack| {
        let mut stack = stack.borrow_mut();
        stack.pop();
        if context != 0 {
            stack.push(context);
        }
    });
    Ok(())
}

pub unsafe fn cuCtxGetCurrent(context: *mut usize) -> CudaResult {
    ready()?;
    // SAFETY: the caller's output.
    unsafe { put(context, STACK.with(|stack| stack.borrow().last().copied()).unwrap_or(0)) }
}

pub unsafe fn cuCtxGetDevice(device: *mut i32) -> CudaResult {
    ready()?;
    current_context()?;
    // SAFETY: the caller's output.
    unsafe { put(device, 0) }
}

pub unsafe fn cuCtxGetDevice_v2(device: *mut i32, context: usize) -> CudaResult {
    let process = ready()?;
    if context == 0 {
        current_context()?;
    } else {
        exists(process, context)?;
    }
    // SAFETY: the caller's output.
    unsafe { put(device, 0) }
}

pub unsafe fn cuCtxGetFlags(flags: *mut u32) -> CudaResult {
    let process = ready()?;
    let context = process.objects.contexts.get(current_context()? as usize)?;
    let value = if context.primary {
        process.primary_flags.load(Ordering::Acquire)
    } else {
        context.flags.load(Ordering::Acquire)
    };
    // SAFETY: the caller's output.
    unsafe { put(flags, value) }
}

pub unsafe fn cuCtxGetId(context: usize, id: *mut u64) -> CudaResult {
    let process = ready()?;
    let handle = if context == 0 { current_context()? } else { context as u64 };
    exists(process, handle as usize)?;
    // SAFETY: the caller's output.
    unsafe { put(id, handle) }
}

pub unsafe fn cuCtxGetApiVersion(context: usize, version: *mut u32) -> CudaResult {
    let process = ready()?;
    if context != 0 {
        exists(process, context)?;
    }
    // SAFETY: the caller's output.
    unsafe { put(version, 3020) }
}

/// Waits for everything. Without a lease nothing can be under way, unless one was lost with work in it.
pub unsafe fn cuCtxSynchronize() -> CudaResult {
    let process = super::current()?;
    synchronize(process)
}

pub(crate) fn synchronize(process: &Process) -> CudaResult {
    if process.any_session().is_none() && process.last_loss().is_none() {
        return Ok(());
    }
    super::capture::refuse_any(process)?;
    let session = process.session()?;
    let (mark, before) = (session.progress.now(), session.connection.newest());
    if session.progress.are_all_idle(before) {
        return session.check_sticky();
    }
    session.connection.call(&ContextSynchronize)?;
    session.progress.all_done(mark);
    session.progress.all_idle(before + 1, session.connection.newest());
    Ok(())
}

pub unsafe fn cuCtxSynchronize_v2(context: usize) -> CudaResult {
    let process = ready()?;
    if context == 0 {
        current_context()?;
    } else {
        exists(process, context)?;
    }
    synchronize(process)
}

pub unsafe fn cuCtxSetFlags(flags: u32) -> CudaResult {
    let process = ready()?;
    let context = process.objects.contexts.get(current_context()? as usize)?;
    let set = if context.primary { &process.primary_flags } else { &context.flags };
    set.store(flags, Ordering::Release);
    Ok(())
}

/// All contexts share one at gpud: the event waits for all work of the process so far.
pub unsafe fn cuCtxRecordEvent(context: usize, event: usize) -> CudaResult {
    let process = ready()?;
    exists(process, context)?;
    synchronize(process)?;
    // SAFETY: no pointers.
    unsafe { super::cuEventRecord(event, 0) }
}

/// Work of the context that is issued from now on comes after the event, as this call returns after it.
pub unsafe fn cuCtxWaitEvent(context: usize, event: usize) -> CudaResult {
    exists(ready()?, context)?;
    // SAFETY: no pointers.
    unsafe { super::cuEventSynchronize(event) }
}

/// A hint for the L2 cache, which no result depends on.
pub unsafe fn cuCtxResetPersistingL2Cache() -> CudaResult {
    super::current().map(|_| ())
}

fn limits(process: &Process) -> CudaResult<std::sync::Arc<Context>> {
    process.objects.contexts.get(current_context()? as usize)
}

/// What CUDA gives a fresh context, or what the program has set.
pub unsafe fn cuCtxGetLimit(value: *mut usize, limit: u32) -> CudaResult {
    let context = limits(ready()?)?;
    let limits = context.limits.lock().unwrap_or_else(PoisonError::into_inner);
    let found = limits.get(limit as usize).copied().ok_or(CudaError::code(cuda::ERROR_UNSUPPORTED_LIMIT))?;
    // SAFETY: the caller's output.
    unsafe { put(value, found) }
}

/// Limits are wishes for the sizes of device-side stack, heap and queues.
pub unsafe fn cuCtxSetLimit(limit: u32, value: usize) -> CudaResult {
    let context = limits(ready()?)?;
    let mut limits = context.limits.lock().unwrap_or_else(PoisonError::into_inner);
    *limits.get_mut(limit as usize).ok_or(CudaError::code(cuda::ERROR_UNSUPPORTED_LIMIT))? = value;
    Ok(())
}

pub unsafe fn cuCtxGetCacheConfig(config: *mut u32) -> CudaResult {
    super::current()?;
    // SAFETY: the caller's output.
    unsafe { put(config, 0) }
}

pub unsafe fn cuCtxSetCacheConfig(config: u32) -> CudaResult {
    super::current()?;
    if config <= 3 { Ok(()) } else { Err(INVALID_VALUE) }
}

pub unsafe fn cuCtxGetSharedMemConfig(config: *mut u32) -> CudaResult {
    super::current()?;
    // SAFETY: the caller's output.
    unsafe { put(config, 1) }
}

pub unsafe fn cuCtxSetSharedMemConfig(config: u32) -> CudaResult {
    super::current()?;
    if config <= 2 { Ok(()) } else { Err(INVALID_VALUE) }
}

pub unsafe fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) -> CudaResult {
    super::current()?;
    if !least.is_null() {
        // SAFETY: the caller's output.
        unsafe { put(least, 0)? };
    }
    if !greatest.is_null() {
        // SAFETY: the caller's output.
        unsafe { put(greatest, -5)? };
    }
    Ok(())
}

/// A lease's process has one device, and a device is no peer of its own.
fn peer(peer: usize) -> CudaResult {
    let process = ready()?;
    let own = current_context()?;
    exists(process, peer)?;
    if peer as u64 == own { Err(INVALID_CONTEXT) } else { Ok(()) }
}

pub unsafe fn cuCtxEnablePeerAccess(other: usize, flags: u32) -> CudaResult {
    peer(other)?;
    Err(if flags == 0 { CudaError::code(cuda::ERROR_PEER_ACCESS_UNSUPPORTED) } else { INVALID_VALUE })
}

pub unsafe fn cuCtxDisablePeerAccess(other: usize) -> CudaResult {
    peer(other)?;
    Err(CudaError::code(cuda::ERROR_PEER_ACCESS_NOT_ENABLED))
}
