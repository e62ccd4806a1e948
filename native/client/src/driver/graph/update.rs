//! Changing executable graphs: node by node, or by another graph of the same shape. What changes is sent with the next
//! launch.

use super::exec::{Executable, State};
use super::flat::{Flat, Layout};
use super::layout::{HOST, KernelV1, KernelV2, UNIFIED, UpdateResult};
use super::nodes::{child, copy, fill, host, keep_attributes, kernel, memory};
use super::{Graph, Work};
use crate::driver::{current, put, ready};
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::process::Process;
use sluice_protocol::cuda;
use sluice_protocol::graph::GraphEdge;
use std::ffi::c_void;

/// CUgraphExecUpdateResult
const SUCCESS: u32 = 0;
const TOPOLOGY_CHANGED: u32 = 2;
const NODE_TYPE_CHANGED: u32 = 3;
const PARAMETERS_CHANGED: u32 = 5;
const NOT_SUPPORTED: u32 = 6;

/// Whether one node's work may take the place of another's, and why not.
fn compatible(old: &Work, new: &Work) -> Result<(), u32> {
    match (old, new) {
        (old, new) if old.kind() != new.kind() => Err(NODE_TYPE_CHANGED),
        (Work::Library(old), Work::Library(new)) if old.symbol != new.symbol => Err(TOPOLOGY_CHANGED),
        // Which side of the bus a copy's ends are on stays.
        (Work::Copy(old), Work::Copy(new)) => {
            let host = |kind: u32| kind == HOST;
            let same = |old: u32, new: u32| old == UNIFIED || new == UNIFIED || host(old) == host(new);
            let sides = same(old.source.kind, new.source.kind) && same(old.target.kind, new.target.kind);
            if sides { Ok(()) } else { Err(PARAMETERS_CHANGED) }
        }
        (Work::Alloc(old), Work::Alloc(new)) if old.address != new.address => Err(NOT_SUPPORTED),
        (Work::Free(old), Work::Free(new)) if old != new => Err(NOT_SUPPORTED),
        _ => Ok(()),
    }
}

/// Gives one node of an executable graph other work.
fn set(process: &Process, executable: usize, node: usize, work: impl FnOnce(&Work) -> Work) -> CudaResult {
    let executable = Executable::find(process, executable)?;
    let mut state = executable.state();
    let place = *state.layout.places.get(&(node as u64)).ok_or(INVALID_VALUE)?;
    let flat = state.layout.flats.get(place as usize).ok_or(INVALID_VALUE)?;
    let (enabled, work) = (flat.enabled, work(&flat.work));
    compatible(&flat.work, &work).map_err(|_| INVALID_VALUE)?;
    state.change(place, enabled, work);
    Ok(())
}

pub unsafe fn cuGraphExecKernelNodeSetParams(executable: usize, node: usize, parameters: *const c_void) -> CudaResult {
    let device = current()?;
    // SAFETY: the caller's parameters.
    let made = unsafe { kernel(device, parameters.cast::<KernelV1>().as_ref().ok_or(INVALID_VALUE)?, 0)? };
    set(device.process, executable, node, |old| keep_attributes(old, made))
}

pub unsafe fn cuGraphExecKernelNodeSetParams_v2(
    executable: usize,
    node: usize,
    parameters: *const c_void,
) -> CudaResult {
    let device = current()?;
    // SAFETY: the caller's parameters.
    let made = unsafe {
        let parameters = parameters.cast::<KernelV2>().as_ref().ok_or(INVALID_VALUE)?;
        kernel(device, &parameters.first, parameters.kernel)?
    };
    set(device.process, executable, node, |old| keep_attributes(old, made))
}

pub unsafe fn cuGraphExecMemcpyNodeSetParams(
    executable: usize,
    node: usize,
    parameters: *const c_void,
    _context: usize,
) -> CudaResult {
    let process = current()?.process;
    // SAFETY: the caller's parameters.
    let made = unsafe { copy(parameters)? };
    set(process, executable, node, |_| made)
}

pub unsafe fn cuGraphExecMemsetNodeSetParams(
    executable: usize,
    node: usize,
    parameters: *const c_void,
    _context: usize,
) -> CudaResult {
    let process = current()?.process;
    // SAFETY: the caller's parameters.
    let made = unsafe { fill(parameters)? };
    set(process, executable, node, |_| made)
}

pub unsafe fn cuGraphExecHostNodeSetParams(executable: usize, node: usize, parameters: *const c_void) -> CudaResult {
    let process = current()?.process;
    // SAFETY: the caller's parameters.
    let made = unsafe { host(parameters)? };
    set(process, executable, node, |_| made)
}

pub unsafe fn cuGraphExecBatchMemOpNodeSetParams(
    executable: usize,
    node: usize,
    parameters: *const c_void,
) -> CudaResult {
    let process = current()?.process;
    // SAFETY: the caller's parameters.
    let made = unsafe { memory(parameters)? };
    set(process, executable, node, |_| made)
}

pub unsafe fn cuGraphExecEventRecordNodeSetEvent(executable: usize, node: usize, event: usize) -> CudaResult {
    let process = current()?.process;
    let made = Work::RecordEvent(process.objects.events.get(event)?);
    set(process, executable, node, |_| made)
}

pub unsafe fn cuGraphExecEventWaitNodeSetEvent(executable: usize, node: usize, event: usize) -> CudaResult {
    let process = current()?.process;
    let made = Work::WaitEvent(process.objects.events.get(event)?);
    set(process, executable, node, |_| made)
}

pub unsafe fn cuGraphExecChildGraphNodeSetParams(executable: usize, node: usize, graph: usize) -> CudaResult {
    let process = current()?.process;
    set_child(process, executable, node, &*Graph::find(process, graph)?)
}

/// Gives the nodes of a child graph the parameters of another graph of the same shape.
pub(super) fn set_child(process: &Process, executable: usize, node: usize, graph: &Graph) -> CudaResult {
    let new = Layout::of(graph)?;
    let executable = Executable::find(process, executable)?;
    let mut state = executable.state();
    let (start, end) = *state.layout.children.get(&(node as u64)).ok_or(INVALID_VALUE)?;
    let old = state.layout.flats.get(start as usize..end as usize).unwrap_or_default();
    if old.len() != new.flats.len() {
        return Err(CudaError::code(cuda::ERROR_GRAPH_EXEC_UPDATE_FAILURE));
    }
    for (old, new) in old.iter().zip(&new.flats) {
        let inner = old.after.iter().filter(|edge| edge.from >= start);
        let inner = inner.map(|edge| GraphEdge { from: edge.from - start, ..*edge });
        if !inner.eq(new.after.iter().copied()) || compatible(&old.work, &new.work).is_err() {
            return Err(CudaError::code(cuda::ERROR_GRAPH_EXEC_UPDATE_FAILURE));
        }
    }
    for (place, flat) in (start..end).zip(new.flats) {
        take_over(&mut state, place, flat);
    }
    Ok(())
}

fn take_over(state: &mut State, place: u32, new: Flat) {
    let enabled = state.layout.flats.get(place as usize).is_none_or(|old| old.enabled);
    state.change(place, enabled, new.work);
}

/// Why a graph cannot take the place of another: the result, the old node and the new one.
fn difference(old: &Layout, new: &Layout) -> Option<(u32, u64, u64)> {
    for (old, new) in old.flats.iter().zip(&new.flats) {
        if let Err(result) = compatible(&old.work, &new.work) {
            return Some((result, new.node, 0));
        }
        if old.after != new.after {
            return Some((TOPOLOGY_CHANGED, new.node, 0));
        }
    }
    (old.flats.len() != new.flats.len()).then_some((TOPOLOGY_CHANGED, 0, 0))
}

fn update(process: &Process, executable: usize, graph: usize) -> CudaResult<Result<(), (u32, u64, u64)>> {
    let executable = Executable::find(process, executable)?;
    let new = Layout::of(&*Graph::find(process, graph)?)?;
    let mut state = executable.state();
    if let Some(difference) = difference(&state.layout, &new) {
        return Ok(Err(difference));
    }
    for (place, flat) in (0..).zip(new.flats) {
        take_over(&mut state, place, flat);
    }
    Ok(Ok(()))
}

pub unsafe fn cuGraphExecUpdate_v2(executable: usize, graph: usize, result: *mut c_void) -> CudaResult {
    let process = current()?.process;
    if result.is_null() {
        return Err(INVALID_VALUE);
    }
    let outcome = update(process, executable, graph)?;
    let (code, node, from) = outcome.err().unwrap_or((SUCCESS, 0, 0));
    let found = UpdateResult { result: code, error_node: node as usize, error_from: from as usize };
    // SAFETY: the caller's CUgraphExecUpdateResultInfo.
    unsafe { put(result.cast(), found)? };
    if code == SUCCESS { Ok(()) } else { Err(CudaError::code(cuda::ERROR_GRAPH_EXEC_UPDATE_FAILURE)) }
}

pub unsafe fn cuGraphExecUpdate(
    executable: usize,
    graph: usize,
    error_node: *mut usize,
    result: *mut u32,
) -> CudaResult {
    let outcome = update(current()?.process, executable, graph)?;
    let (code, node, _) = outcome.err().unwrap_or((SUCCESS, 0, 0));
    // SAFETY: the caller's outputs.
    unsafe {
        put(error_node, node as usize)?;
        put(result, code)?;
    }
    if code == SUCCESS { Ok(()) } else { Err(CudaError::code(cuda::ERROR_GRAPH_EXEC_UPDATE_FAILURE)) }
}

/// Kernels, copies and fills can be switched off.
fn switch(process: &Process, executable: usize, node: usize, to: Option<bool>) -> CudaResult<bool> {
    let executable = Executable::find(process, executable)?;
    let mut state = executable.state();
    let place = *state.layout.places.get(&(node as u64)).ok_or(INVALID_VALUE)?;
    let flat = state.layout.flats.get(place as usize).ok_or(INVALID_VALUE)?.clone();
    if !matches!(flat.work, Work::Kernel(_) | Work::Copy(_) | Work::Fill(_)) {
        return Err(INVALID_VALUE);
    }
    if let Some(enabled) = to {
        state.change(place, enabled, flat.work);
    }
    Ok(flat.enabled)
}

pub unsafe fn cuGraphNodeSetEnabled(executable: usize, node: usize, enabled: u32) -> CudaResult {
    switch(ready()?, executable, node, Some(enabled != 0)).map(|_| ())
}

pub unsafe fn cuGraphNodeGetEnabled(executable: usize, node: usize, enabled: *mut u32) -> CudaResult {
    let found = switch(ready()?, executable, node, None)?;
    // SAFETY: the caller's output.
    unsafe { put(enabled, u32::from(found)) }
}

/// As the functions for each kind, for a work that is ready.
pub(super) fn set_work(process: &Process, executable: usize, node: usize, work: Work) -> CudaResult {
    set(process, executable, node, |old| match work {
        Work::Kernel(kernel) => keep_attributes(old, kernel),
        work => work,
    })
}

/// A child node's new graph, by handle.
pub(super) fn set_child_by_handle(process: &Process, executable: usize, node: usize, graph: usize) -> CudaResult {
    let Work::Child(copy) = child(process, graph)? else { return Err(INVALID_VALUE) };
    let outcome = set_child(process, executable, node, &copy);
    copy.forget(process);
    outcome
}
