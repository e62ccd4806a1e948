//! Devices of a lease that are on one server: their workers reach each other's memory.
//!
//! A context's access is the program's word; the way is opened once for each pair of sessions, and copies take it without
//! a word ([`super::across::direct`]).

use super::context::{current_context, find};
use super::{device, put, ready};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_CONTEXT, INVALID_DEVICE, INVALID_VALUE};
use crate::objects::Context;
use crate::process::Process;
use crate::session::Session;
use sluice_protocol::cuda;
use sluice_protocol::messages::ContextSynchronize;
use std::sync::{Arc, PoisonError};

/// CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED; those from 1 to 5 are performance rank, this, atomics, arrays and some atomics.
const ACCESS_SUPPORTED: i32 = 2;

/// Whether work on one device can name memory of another. A child process asks the lease's owner for both: programs ask
/// once, before they use either.
fn is_possible(from: Device, to: Device) -> bool {
    let sessions = || from.session_if_any().zip(to.session_if_any());
    from != to && sessions().is_some_and(|(from, to)| from.can_reach(&to))
}

pub unsafe fn cuDeviceCanAccessPeer(possible: *mut i32, from: i32, to: i32) -> CudaResult {
    let (from, to) = (device::check(from)?, device::check(to)?);
    // SAFETY: the caller's output.
    unsafe { put(possible, i32::from(is_possible(from, to))) }
}

pub unsafe fn cuDeviceGetP2PAttribute(value: *mut i32, attribute: i32, from: i32, to: i32) -> CudaResult {
    let (from, to) = (device::check(from)?, device::check(to)?);
    if from == to {
        return Err(INVALID_DEVICE);
    }
    if !(1..=5).contains(&attribute) {
        return Err(INVALID_VALUE);
    }
    let has = attribute == ACCESS_SUPPORTED && is_possible(from, to);
    // SAFETY: the caller's output.
    unsafe { put(value, i32::from(has)) }
}

/// The current context and another one, which is not the same.
fn pair(other: usize) -> CudaResult<(Arc<Context>, Arc<Context>)> {
    let process = ready()?;
    let own = current_context()?;
    let peer = find(process, other)?;
    if other as u64 == own.context { Err(INVALID_CONTEXT) } else { Ok((find(process, own.context as usize)?, peer)) }
}

pub unsafe fn cuCtxEnablePeerAccess(other: usize, flags: u32) -> CudaResult {
    let (own, peer) = pair(other)?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let process = ready()?;
    let (from, to) = (process.device(own.device), process.device(peer.device));
    if from == to || !from.session()?.reach(&*to.session()?) {
        return Err(CudaError::code(cuda::ERROR_PEER_ACCESS_UNSUPPORTED));
    }
    if own.peers().insert(other as u64) {
        Ok(())
    } else {
        Err(CudaError::code(cuda::ERROR_PEER_ACCESS_ALREADY_ENABLED))
    }
}

/// The way stays open: copies take it.
pub unsafe fn cuCtxDisablePeerAccess(other: usize) -> CudaResult {
    let (own, _) = pair(other)?;
    if own.peers().remove(&(other as u64)) { Ok(()) } else { Err(CudaError::code(cuda::ERROR_PEER_ACCESS_NOT_ENABLED)) }
}

/// A context ends, and with it its access to others and theirs to it.
pub(super) fn forget(process: &Process, ended: u64) {
    for (handle, context) in process.objects.contexts.all() {
        let mut peers = context.peers();
        peers.remove(&ended);
        if handle == ended {
            peers.clear();
        }
    }
}

/// A device has a new session: the ways that the program has asked for are opened anew. Where one cannot be, the
/// program's work there fails as on memory that is gone.
pub(crate) fn restore(device: Device) {
    let (process, objects) = (device.process, &device.process.objects);
    let mut ways = Vec::new();
    for (_, own) in objects.contexts.all() {
        let peers = own.peers();
        let peers = peers.iter().filter_map(|peer| objects.contexts.get(*peer as usize).ok());
        ways.extend(peers.map(|peer| (own.device, peer.device)));
    }
    for (_, pool) in objects.pools.all() {
        let state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        ways.extend(state.peers.iter().map(|from| (*from, pool.device)));
    }
    for (from, to) in ways.into_iter().filter(|(from, to)| [*from, *to].contains(&device.ordinal)) {
        if let Some((from, to)) = process.device(from).session_now().zip(process.device(to).session_now()) {
            from.reach(&to);
        }
    }
}

/// Memory of this session is about to be freed: waits for what other devices do that reach it, as a driver does.
pub(super) fn settle(process: &'static Process, owner: &Session) {
    if owner.is_lent() {
        for session in process.devices().filter_map(Device::session_now).filter(|session| session.reaches(owner)) {
            // An error of that device's work is told where the program asks for it.
            let waited = session.connection.call(&ContextSynchronize);
            waited.err().into_iter().for_each(|error| session.keep_error(error));
        }
    }
}
