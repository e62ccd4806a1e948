//! Device memory and page-locked host memory.

use super::context::current_context;
use super::{capture, current, peer, pool, put, put_optional};
use crate::arena::Lookup;
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::pinned::{self, Piece};
use crate::process::Process;
use sluice_protocol::cuda;
use sluice_protocol::messages::MemInfo;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub unsafe fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> CudaResult {
    let device = current()?;
    // A child device asks its lease's owner first: what it sees here decides what it allocates.
    let (free_bytes, total_bytes) = match device.session_if_any() {
        Some(session) => {
            let answer = session.connection.call(&MemInfo)?;
            (answer.free.saturating_sub(pool::spare_bytes(device)), answer.total)
        }
        None => {
            // The default amount, half of a device.
            let half = device.process.profile().device.total_memory_bytes / 2;
            (half, half)
        }
    };
    // SAFETY: the caller's outputs.
    unsafe {
        put_optional(free, free_bytes as usize);
        put_optional(total, total_bytes as usize);
    }
    Ok(())
}

pub unsafe fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> CudaResult {
    let device = current()?;
    capture::unsafe_call(device.process)?;
    // SAFETY: as the caller's.
    unsafe { allocate(device, current_context()?.context, address, bytes) }
}

/// Memory of a context, or of none (0).
///
/// # Safety
/// `address` is null or the caller's output.
pub(super) unsafe fn allocate(device: Device, context: u64, address: *mut u64, bytes: usize) -> CudaResult {
    if bytes == 0 || address.is_null() {
        return Err(INVALID_VALUE);
    }
    let found = device.session()?.alloc(bytes as u64, context)?;
    // SAFETY: the caller's output.
    unsafe { put(address, found) }
}

pub unsafe fn cuMemAllocPitch_v2(
    address: *mut u64,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: u32,
) -> CudaResult {
    super::ready()?;
    if !matches!(element, 4 | 8 | 16) || pitch.is_null() {
        return Err(INVALID_VALUE);
    }
    let row = width.checked_next_multiple_of(512).ok_or(INVALID_VALUE)?;
    let bytes = row.checked_mul(height).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's outputs.
    unsafe {
        cuMemAlloc_v2(address, bytes)?;
        put(pitch, row)
    }
}

pub unsafe fn cuMemFree_v2(address: u64) -> CudaResult {
    let process = super::ready()?;
    if address == 0 {
        return Ok(());
    }
    capture::unsafe_call(process)?;
    // A driver waits for what runs on the device, and programs may know by it that the bytes are in their memory.
    if let Some(session) = process.device_at(address).and_then(Device::any_session) {
        session.connection.finish_copies();
        peer::settle(process, &session);
    }
    free(process, address)
}

/// Ends an allocation, of a graph or not; memory of an ended lease is gone already.
pub(super) fn free(process: &'static Process, address: u64) -> CudaResult {
    if let Some(outcome) = process.objects.graphs.memory.free(address) {
        return outcome;
    }
    // Memory of an ended lease is gone already: freeing it succeeds and does nothing.
    let gone = || process.ended_range(address).map(|_| ());
    let Some((device, session)) = process.device_at(address).and_then(|device| Some((device, device.any_session()?)))
    else {
        return gone().ok_or(INVALID_VALUE);
    };
    match pool::count_free(process, address, || session.free(address)) {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = device.last_loss();
            gone().ok_or(error)
        }
    }
}

pub unsafe fn cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut usize, address: u64) -> CudaResult {
    let (_, start, size) = allocation(current()?.process, address).ok_or(CudaError::code(cuda::ERROR_NOT_FOUND))?;
    // SAFETY: the caller's outputs.
    unsafe {
        put_optional(base, start);
        put_optional(bytes, size as usize);
    }
    Ok(())
}

/// The allocation at an address: its device, start and size.
pub(super) fn allocation(process: &'static Process, address: u64) -> Option<(Device, u64, u64)> {
    let device = process.device_at(address)?;
    match device.any_session()?.lookup(address, 0) {
        Lookup::Live { start, bytes } => Some((device, start, bytes)),
        _ => None,
    }
}

/// Checks that device memory is there, whole.
pub(crate) fn check_range(
    process: &Process,
    session: &crate::session::Session,
    address: u64,
    bytes: u64,
) -> CudaResult {
    match session.lookup(address, bytes) {
        Lookup::Live { .. } => Ok(()),
        Lookup::Unmapped => Err(INVALID_VALUE),
        Lookup::Foreign => Err(process.stale(address).unwrap_or(INVALID_VALUE)),
    }
}

/// The same of memory that work of this session's device may name: its own, or what it reaches of another device.
pub(super) fn check_reachable(
    process: &'static Process,
    session: &crate::session::Session,
    address: u64,
    bytes: u64,
) -> CudaResult {
    if process.count() > 1
        && let Some(owner) = process.device_at(address).and_then(Device::any_session)
        && owner.generation != session.generation
        && owner.lends(address, bytes)
        && session.reach(&owner)
    {
        return Ok(());
    }
    check_range(process, session, address, bytes)
}

/// One piece of page-locked memory.
#[derive(Clone, Copy)]
pub(crate) struct Pinned {
    pub bytes: usize,
    pub flags: u32,
    context: u64,
    kind: Kind,
}

/// Whose it is.
#[derive(Clone, Copy)]
enum Kind {
    /// The program's own, registered.
    Registered,
    /// Allocated here.
    Allocated,
    /// Allocated here, where a GPU server on this host can map it.
    Shared(Piece),
}

impl Pinned {
    /// Gives the memory back, unless it is the program's own.
    ///
    /// # Safety
    /// It begins at `start`, is off the list, and nobody uses it any more.
    unsafe fn give_back(self, start: usize) {
        // SAFETY: as the caller's.
        unsafe {
            match self.kind {
                Kind::Registered => {}
                // It came from posix_memalign in cuMemHostAlloc.
                Kind::Allocated => libc::free(start as *mut c_void),
                Kind::Shared(piece) => pinned::give_back(piece),
            }
        }
    }
}

/// Page-locked memory promises here that asynchronous copies do not wait for it. It is ordinary memory, or a place that a
/// GPU server on this host can map ([`pinned::take`]).
pub(crate) fn pinned() -> MutexGuard<'static, BTreeMap<usize, Pinned>> {
    static PINNED: Mutex<BTreeMap<usize, Pinned>> = Mutex::new(BTreeMap::new());
    PINNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The piece that holds an address.
pub(crate) fn pinned_at(address: usize) -> Option<(usize, Pinned)> {
    let pinned = pinned();
    let (start, piece) = pinned.range(..=address).next_back()?;
    (address < start + piece.bytes).then_some((*start, *piece))
}

pub unsafe fn cuMemHostAlloc(memory: *mut *mut c_void, bytes: usize, flags: u32) -> CudaResult {
    current()?;
    let context = current_context()?.context;
    if bytes == 0 || memory.is_null() || flags > 7 {
        return Err(INVALID_VALUE);
    }
    let (address, kind) = match pinned::take(bytes) {
        Some(piece) => (piece.start as *mut c_void, Kind::Shared(piece)),
        None => {
            let mut address = std::ptr::null_mut();
            // SAFETY: a plain allocation; it is given back by cuMemFreeHost alone.
            if unsafe { libc::posix_memalign(&raw mut address, 4096, bytes) } != 0 {
                return Err(CudaError::code(cuda::ERROR_OUT_OF_MEMORY));
            }
            (address, Kind::Allocated)
        }
    };
    pinned().insert(address as usize, Pinned { bytes, flags, context, kind });
    // SAFETY: the caller's output.
    unsafe { put(memory, address) }
}

pub unsafe fn cuMemAllocHost_v2(memory: *mut *mut c_void, bytes: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuMemHostAlloc(memory, bytes, 0) }
}

/// Whether all of a range is page-locked.
pub(crate) fn is_pinned(address: usize, bytes: usize) -> bool {
    pinned_at(address).is_some_and(|(start, piece)| bytes <= start + piece.bytes - address)
}

/// Whether any byte of a range is page-locked.
fn is_partly_pinned(address: usize, bytes: usize) -> bool {
    let pinned = pinned();
    let last = address.saturating_add(bytes - 1);
    // The pieces are apart: the last one that begins in or before the range reaches furthest.
    pinned.range(..=last).next_back().is_some_and(|(start, piece)| address < start + piece.bytes)
}

/// The memory of all of a range, if a GPU server on this host can map it.
pub(super) fn shared_piece(address: usize, bytes: usize) -> Option<Piece> {
    let (start, pinned) = pinned_at(address)?;
    match pinned.kind {
        Kind::Shared(piece) if bytes <= start + pinned.bytes - address => Some(piece),
        _ => None,
    }
}

/// Waits for the copies that still use a piece of page-locked memory, and has nobody keep it mapped.
fn finish_copies(process: &'static Process, start: usize) {
    let Some((_, pinned)) = pinned_at(start) else { return };
    for session in process.devices().filter_map(Device::any_session) {
        session.connection.finish_copies_of(start, pinned.bytes);
        if let Kind::Shared(piece) = pinned.kind {
            session.connection.forget_piece(piece);
        }
    }
}

/// Page-locked memory ends with its context.
pub(super) fn end_pinned(process: &'static Process, context: u64) {
    let of_context = |pinned: &BTreeMap<usize, Pinned>| -> Vec<usize> {
        pinned.iter().filter(|(_, piece)| piece.context == context).map(|(start, _)| *start).collect()
    };
    let starts = of_context(&pinned());
    for start in starts {
        finish_copies(process, start);
        let ended = pinned().remove(&start);
        if let Some(ended) = ended {
            // SAFETY: just taken off the list; its copies are finished, and the program's use ends with the context.
            unsafe { ended.give_back(start) };
        }
    }
}

pub unsafe fn cuMemFreeHost(memory: *mut c_void) -> CudaResult {
    let process = super::ready()?;
    if memory.is_null() {
        return Ok(());
    }
    finish_copies(process, memory as usize);
    let mut pinned = pinned();
    match pinned.get(&(memory as usize)).map(|pinned| pinned.kind) {
        None | Some(Kind::Registered) => Err(INVALID_VALUE),
        Some(_) => {
            if let Some(ended) = pinned.remove(&(memory as usize)) {
                // SAFETY: just taken off the list; its copies are finished, and the program is done with it.
                unsafe { ended.give_back(memory as usize) };
            }
            Ok(())
        }
    }
}

/// Whether the program has memory everywhere in a range.
fn is_mapped(start: usize, bytes: usize) -> bool {
    // SAFETY: has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let first = start - start % page;
    let Some(end) = start.checked_add(bytes) else { return false };
    // SAFETY: with this flag the call only looks whether all pages are mapped (Linux); it reads and writes none.
    unsafe { libc::msync(first as *mut c_void, end - first, libc::MS_ASYNC) == 0 }
}

pub unsafe fn cuMemHostRegister_v2(memory: *mut c_void, bytes: usize, flags: u32) -> CudaResult {
    current()?;
    let context = current_context()?.context;
    if memory.is_null() || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    // CU_MEMHOSTREGISTER_DEVICEMAP is accepted, as CUDA does for a device that cannot map: asking for the device's
    // pointer fails. CU_MEMHOSTREGISTER_IOMEMORY:
    if flags & 4 != 0 {
        return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, "a remote GPU cannot reach this machine's devices"));
    }
    if flags > 15 {
        return Err(INVALID_VALUE);
    }
    if is_partly_pinned(memory as usize, bytes) {
        return Err(CudaError::code(cuda::ERROR_HOST_MEMORY_ALREADY_REGISTERED));
    }
    if !is_mapped(memory as usize, bytes) {
        return Err(INVALID_VALUE);
    }
    pinned().insert(memory as usize, Pinned { bytes, flags, context, kind: Kind::Registered });
    Ok(())
}

pub unsafe fn cuMemHostUnregister(memory: *mut c_void) -> CudaResult {
    let process = super::ready()?;
    if memory.is_null() {
        return Err(INVALID_VALUE);
    }
    finish_copies(process, memory as usize);
    let mut pinned = pinned();
    match pinned.get(&(memory as usize)) {
        Some(piece) if matches!(piece.kind, Kind::Registered) => {
            pinned.remove(&(memory as usize));
            Ok(())
        }
        _ => Err(CudaError::code(cuda::ERROR_HOST_MEMORY_NOT_REGISTERED)),
    }
}

pub unsafe fn cuMemHostGetFlags(flags: *mut u32, memory: *mut c_void) -> CudaResult {
    current()?;
    let (_, piece) = pinned_at(memory as usize).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's output.
    unsafe { put(flags, piece.flags) }
}
