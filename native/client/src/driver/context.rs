//! Contexts: the primary one, the program's own, and each thread's stack of them.

use super::device::check;
use super::stream::LEGACY;
use super::{current, ending, put, put_optional, ready};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_CONTEXT, INVALID_VALUE};
use crate::objects::{Context, HEAP_LIMIT, LIMITS, PRINT_LIMIT, STACK_LIMIT, new_handle};
use crate::process::Process;
use sluice_protocol::messages::ContextSynchronize;
use sluice_protocol::{MOST_PRINTED_BYTES, cuda};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

/// A context on a thread's stack, with the ordinal of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    pub context: u64,
    pub device: usize,
}

/// CUDA_ERROR_CONTEXT_IS_DESTROYED
const DESTROYED: CudaError = CudaError::code(cuda::ERROR_CONTEXT_IS_DESTROYED);

/// Counts the contexts that have ended: a thread has to look whether its own is one of them when this has changed.
static ENDS: AtomicU64 = AtomicU64::new(0);

/// A thread's contexts. The first lie in place, so that the storage has nothing to drop and serves the thread's last
/// calls too: objects that end with it, or with the program, give back their memory and streams then.
struct Stack {
    first: [Current; 8],
    rest: ManuallyDrop<Vec<Current>>,
    length: usize,
}

impl Stack {
    const EMPTY: Stack =
        Stack { first: [Current { context: 0, device: 0 }; 8], rest: ManuallyDrop::new(Vec::new()), length: 0 };

    fn last(&self) -> Option<Current> {
        let index = self.length.checked_sub(1)?;
        self.rest.last().copied().or_else(|| self.first.get(index).copied())
    }

    fn push(&mut self, current: Current) {
        match self.first.get_mut(self.length) {
            Some(place) => *place = current,
            None => self.rest.push(current),
        }
        self.length += 1;
    }

    fn pop(&mut self) -> Option<Current> {
        let last = self.last()?;
        self.length -= 1;
        if self.rest.pop().is_some() && self.rest.is_empty() {
            // Nobody else frees it.
            *self.rest = Vec::new();
        }
        Some(last)
    }
}

thread_local! {
    static STACK: RefCell<Stack> = const { RefCell::new(Stack::EMPTY) };
    /// The context that this thread has last found alive, and the count of ends then.
    static FOUND: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// The context on top of the calling thread's stack, which may have ended.
#[inline]
pub(crate) fn top() -> Option<Current> {
    STACK.with_borrow(Stack::last).filter(|top| top.context != 0)
}

/// The calling thread's current context. CUDA_ERROR_CONTEXT_IS_DESTROYED when another thread has destroyed it, or when it
/// is a primary one that nobody retains.
#[inline]
pub(crate) fn current_context() -> CudaResult<Current> {
    let top = top().ok_or(INVALID_CONTEXT)?;
    let ends = ENDS.load(Ordering::Acquire);
    if FOUND.get() != (top.context, ends) {
        if !is_alive(ready()?, top) {
            return Err(DESTROYED);
        }
        FOUND.set((top.context, ends));
    }
    Ok(top)
}

#[cold]
fn is_alive(process: &'static Process, current: Current) -> bool {
    let found = process.objects.contexts.get(current.context as usize);
    found.is_ok_and(|context| !context.primary || is_retained(process.device(current.device)))
}

/// Whether somebody retains the device's primary context.
fn is_retained(device: Device) -> bool {
    device.state.primary_retained.load(Ordering::Acquire) > 0
}

/// Whether libraries that make a context current where there is none, as the runtime does, have to: there is none, or it
/// is a primary one that has ended. CUDA_ERROR_CONTEXT_IS_DESTROYED when it is one of the program's own.
pub(crate) fn is_missing() -> CudaResult<bool> {
    match current_context() {
        Ok(_) => Ok(false),
        Err(error) => {
            let own = |top: Current| ready()?.objects.contexts.get(top.context as usize);
            if top().is_none_or(|top| own(top).is_ok()) { Ok(true) } else { Err(error) }
        }
    }
}

pub(crate) fn primary(device: Device) -> u64 {
    let mut handle = device.state.primary.lock().unwrap_or_else(PoisonError::into_inner);
    if *handle == 0 {
        *handle = new_handle();
        device.process.objects.contexts.put(*handle, Context::new(device.ordinal, 0, true));
    }
    *handle
}

pub unsafe fn cuDevicePrimaryCtxRetain(context: *mut usize, device: i32) -> CudaResult {
    let device = check(device)?;
    // SAFETY: the caller's output.
    unsafe { put(context, primary(device) as usize)? };
    device.state.primary_retained.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

pub unsafe fn cuDevicePrimaryCtxRelease(device: i32) -> CudaResult {
    let device = check(device)?;
    let retained = &device.state.primary_retained;
    let released = retained.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
    match released {
        Ok(1) => {
            ENDS.fetch_add(1, Ordering::AcqRel);
            end_primary(device)
        }
        Ok(_) => Ok(()),
        Err(_) => Err(INVALID_CONTEXT),
    }
}

pub unsafe fn cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) -> CudaResult {
    check(device)?.state.primary_flags.store(flags, Ordering::Release);
    Ok(())
}

pub unsafe fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) -> CudaResult {
    let device = check(device)?;
    let state = device.state;
    // SAFETY: the caller's outputs.
    unsafe {
        put(flags, state.primary_flags.load(Ordering::Acquire))?;
        put(active, i32::from(is_retained(device)))
    }
}

/// Whether a context of the program's own is on a device.
fn has_own(device: Device) -> bool {
    device.process.objects.contexts.all().iter().any(|(_, other)| !other.primary && other.device == device.ordinal)
}

/// The end of the primary context; its handle stays, and names it again when it is retained again.
fn end_primary(device: Device) -> CudaResult {
    let context = primary(device);
    if let Ok(context) = device.process.objects.contexts.get(context as usize) {
        *context.limits.lock().unwrap_or_else(PoisonError::into_inner) = LIMITS;
    }
    super::peer::forget(device.process, context);
    ending::end(device, context, !has_own(device))
}

pub unsafe fn cuDevicePrimaryCtxReset(device: i32) -> CudaResult {
    let device = check(device)?;
    // With its last release it has ended already.
    if is_retained(device) { end_primary(device) } else { Ok(()) }
}

pub unsafe fn cuCtxCreate_v2(context: *mut usize, flags: u32, device: i32) -> CudaResult {
    let device = check(device)?;
    let handle = new_handle();
    // SAFETY: the caller's output.
    unsafe { put(context, handle as usize)? };
    device.process.objects.contexts.put(handle, Context::new(device.ordinal, flags, false));
    STACK.with(|stack| stack.borrow_mut().push(Current { context: handle, device: device.ordinal }));
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
    /// CUctxCreateParams
    #[repr(C)]
    struct Parameters {
        affinities: usize,
        affinity_count: i32,
        graphics: usize,
    }
    // SAFETY: null, or the caller's structure.
    let parameters = unsafe { parameters.cast::<Parameters>().as_ref() };
    // One without anything in it asks for nothing.
    if parameters.is_some_and(|asked| (asked.affinities, asked.affinity_count, asked.graphics) != (0, 0, 0)) {
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
    super::peer::forget(process, context as u64);
    process.objects.contexts.remove(context).map_err(|_| INVALID_CONTEXT)?;
    ENDS.fetch_add(1, Ordering::AcqRel);
    STACK.with(|stack| {
        let mut stack = stack.borrow_mut();
        if stack.last().is_some_and(|top| top.context == context as u64) {
            stack.pop();
        }
    });
    let device = process.device(found.device);
    ending::end(device, context as u64, !is_retained(device) && !has_own(device))
}

/// The context of a handle.
pub(crate) fn find(process: &Process, context: usize) -> CudaResult<Arc<Context>> {
    process.objects.contexts.get(context).map_err(|_| INVALID_CONTEXT)
}

/// The device of a context; 0 is the current one.
pub(crate) fn device_of(context: usize) -> CudaResult<Device> {
    if context == 0 {
        return current();
    }
    let process = ready()?;
    find(process, context).map(|found| process.device(found.device))
}

/// A context for a thread's stack.
fn for_stack(context: usize) -> CudaResult<Current> {
    find(ready()?, context).map(|found| Current { context: context as u64, device: found.device })
}

pub unsafe fn cuCtxPushCurrent_v2(context: usize) -> CudaResult {
    let pushed = for_stack(context)?;
    STACK.with(|stack| stack.borrow_mut().push(pushed));
    Ok(())
}

pub unsafe fn cuCtxPopCurrent_v2(context: *mut usize) -> CudaResult {
    ready()?;
    let top = STACK.with(|stack| stack.borrow_mut().pop()).ok_or(INVALID_CONTEXT)?;
    // SAFETY: the caller's output.
    unsafe { put_optional(context, top.context as usize) };
    Ok(())
}

pub unsafe fn cuCtxSetCurrent(context: usize) -> CudaResult {
    ready()?;
    let chosen = if context == 0 { None } else { Some(for_stack(context)?) };
    STACK.with(|stack| {
        let mut stack = stack.borrow_mut();
        stack.pop();
        if let Some(chosen) = chosen {
            stack.push(chosen);
        }
    });
    Ok(())
}

pub unsafe fn cuCtxGetCurrent(context: *mut usize) -> CudaResult {
    ready()?;
    // SAFETY: the caller's output.
    unsafe { put(context, top().map_or(0, |current| current.context as usize)) }
}

pub unsafe fn cuCtxGetDevice(device: *mut i32) -> CudaResult {
    let found = current()?;
    // SAFETY: the caller's output.
    unsafe { put(device, found.ordinal as i32) }
}

pub unsafe fn cuCtxGetDevice_v2(device: *mut i32, context: usize) -> CudaResult {
    let found = device_of(context)?;
    // SAFETY: the caller's output.
    unsafe { put(device, found.ordinal as i32) }
}

pub unsafe fn cuCtxGetFlags(flags: *mut u32) -> CudaResult {
    let device = current()?;
    let context = own_context()?;
    let value = if context.primary {
        device.state.primary_flags.load(Ordering::Acquire)
    } else {
        context.flags.load(Ordering::Acquire)
    };
    // SAFETY: the caller's output.
    unsafe { put(flags, value) }
}

pub unsafe fn cuCtxGetId(context: usize, id: *mut u64) -> CudaResult {
    let process = ready()?;
    let handle = if context == 0 { current_context()?.context } else { context as u64 };
    find(process, handle as usize)?;
    // SAFETY: the caller's output.
    unsafe { put(id, handle) }
}

pub unsafe fn cuCtxGetApiVersion(context: usize, version: *mut u32) -> CudaResult {
    let process = ready()?;
    if context != 0 {
        find(process, context)?;
    }
    // SAFETY: the caller's output.
    unsafe { put(version, 3020) }
}

/// Waits for everything. Without a lease nothing can be under way, unless one was lost with work in it.
pub unsafe fn cuCtxSynchronize() -> CudaResult {
    let device = current()?;
    synchronize(device)?;
    super::pool::synchronized(device);
    Ok(())
}

pub(crate) fn synchronize(device: Device) -> CudaResult {
    device.check_lost()?;
    if device.any_session().is_none() {
        return Ok(());
    }
    super::capture::refuse_any(device.process)?;
    let session = device.session()?;
    let before = session.connection.newest();
    if session.progress.are_all_idle(before) {
        return session.check_sticky();
    }
    session.connection.call(&ContextSynchronize)?;
    session.progress.all_done(before);
    session.progress.all_idle(before + 1, session.connection.newest());
    session.check_sticky()
}

pub unsafe fn cuCtxSynchronize_v2(context: usize) -> CudaResult {
    let device = device_of(context)?;
    synchronize(device)?;
    super::pool::synchronized(device);
    Ok(())
}

pub unsafe fn cuCtxSetFlags(flags: u32) -> CudaResult {
    let device = current()?;
    let context = own_context()?;
    let set = if context.primary { &device.state.primary_flags } else { &context.flags };
    set.store(flags, Ordering::Release);
    Ok(())
}

/// All contexts of a device share one at gpud: the event waits for all work of the process there so far.
pub unsafe fn cuCtxRecordEvent(context: usize, event: usize) -> CudaResult {
    let process = ready()?;
    let home = Current { context: context as u64, device: find(process, context)?.device };
    synchronize(process.device(home.device))?;
    super::event::record(home, process.objects.events.get(event)?, LEGACY, false)
}

/// Work of the context that is issued from now on comes after the event, as this call returns after it.
pub unsafe fn cuCtxWaitEvent(context: usize, event: usize) -> CudaResult {
    find(ready()?, context)?;
    // SAFETY: no pointers.
    unsafe { super::cuEventSynchronize(event) }
}

/// A hint for the L2 cache, which no result depends on.
pub unsafe fn cuCtxResetPersistingL2Cache() -> CudaResult {
    current().map(|_| ())
}

/// The calling thread's current context.
fn own_context() -> CudaResult<Arc<Context>> {
    ready()?.objects.contexts.get(current_context()?.context as usize)
}

/// What CUDA gives a fresh context, or what the program has set.
pub unsafe fn cuCtxGetLimit(value: *mut usize, limit: u32) -> CudaResult {
    let context = own_context()?;
    let limits = context.limits.lock().unwrap_or_else(PoisonError::into_inner);
    let found = limits.get(limit as usize).copied().ok_or(CudaError::code(cuda::ERROR_UNSUPPORTED_LIMIT))?;
    let device = current()?;
    let of_device = match limit as usize {
        PRINT_LIMIT => device.state.printed.load(Ordering::Acquire),
        HEAP_LIMIT => device.session_now().map_or(0, |session| session.heap()),
        _ => 0,
    };
    let found = if of_device > 0 { of_device as usize } else { found };
    // SAFETY: the caller's output.
    unsafe { put(value, found) }
}

/// Limits are wishes for the sizes of device-side stack, heap and queues. Those of heap, stack and `printf`'s buffer hold
/// for all contexts of a device; when a module has been loaded whose kernels allocate, it is too late for another heap.
pub unsafe fn cuCtxSetLimit(limit: u32, value: usize) -> CudaResult {
    let context = own_context()?;
    let mut value = value;
    if limit as usize == PRINT_LIMIT {
        let device = current()?;
        value = value.clamp(1, MOST_PRINTED_BYTES as usize);
        device.state.printed.store(value as u64, Ordering::Release);
        if let Some(session) = device.session_now() {
            session.limit_printed(value as u64);
        }
    }
    if limit as usize == HEAP_LIMIT {
        let device = current()?;
        if device.session_now().is_some_and(|session| session.heap() > 0 && session.heap() != value as u64) {
            return Err(INVALID_VALUE);
        }
        device.state.heap.store(value.max(1) as u64, Ordering::Release);
    }
    if limit as usize == STACK_LIMIT {
        let device = current()?;
        if let Some(session) = device.session_now() {
            session.limit_stack(value as u64)?;
        }
        device.state.stack.store(value.max(1) as u64, Ordering::Release);
    }
    let mut limits = context.limits.lock().unwrap_or_else(PoisonError::into_inner);
    *limits.get_mut(limit as usize).ok_or(CudaError::code(cuda::ERROR_UNSUPPORTED_LIMIT))? = value;
    Ok(())
}

pub unsafe fn cuCtxGetCacheConfig(config: *mut u32) -> CudaResult {
    current()?;
    // SAFETY: the caller's output.
    unsafe { put(config, 0) }
}

pub unsafe fn cuCtxSetCacheConfig(config: u32) -> CudaResult {
    current()?;
    if config <= 3 { Ok(()) } else { Err(INVALID_VALUE) }
}

pub unsafe fn cuCtxGetSharedMemConfig(config: *mut u32) -> CudaResult {
    current()?;
    // SAFETY: the caller's output.
    unsafe { put(config, 1) }
}

pub unsafe fn cuCtxSetSharedMemConfig(config: u32) -> CudaResult {
    current()?;
    if config <= 2 { Ok(()) } else { Err(INVALID_VALUE) }
}

pub unsafe fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) -> CudaResult {
    current()?;
    // SAFETY: the caller's outputs.
    unsafe {
        put_optional(least, 0);
        put_optional(greatest, -5);
    }
    Ok(())
}
