//! Graphs as a whole: making and ending them, and questions about their nodes and edges.

use super::nodes::edges_with;
use super::{Edge, EdgeData, FULL, Graph, State, Work};
use crate::driver::{capture, current, put, ready};
use crate::error::{CudaResult, INVALID_VALUE};
use std::ffi::c_void;

pub unsafe fn cuGraphCreate(graph: *mut usize, flags: u32) -> CudaResult {
    let process = ready()?;
    if flags != 0 || graph.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's output.
    unsafe { put(graph, Graph::new(process).handle as usize) }
}

pub unsafe fn cuGraphDestroy(graph: usize) -> CudaResult {
    let process = ready()?;
    let found = Graph::find(process, graph)?;
    // A child graph belongs to its node.
    if found.state().owner.is_some() {
        return Err(INVALID_VALUE);
    }
    found.forget(process);
    Ok(())
}

pub unsafe fn cuGraphClone(clone: *mut usize, graph: usize) -> CudaResult {
    let process = ready()?;
    let found = Graph::find(process, graph)?;
    if clone.is_null() {
        return Err(INVALID_VALUE);
    }
    if found.has_memory() {
        return Err(super::refused("a graph with memory nodes cannot be cloned"));
    }
    let copy = found.copy(process)?;
    // SAFETY: the caller's output.
    unsafe { put(clone, copy.handle as usize) }
}

pub unsafe fn cuGraphNodeFindInClone(node: *mut usize, original: usize, clone: usize) -> CudaResult {
    let found = Graph::find(ready()?, clone)?;
    let state = found.state();
    let copy = state.nodes.iter().find(|(_, node)| node.origin == original as u64).map(|(handle, _)| *handle);
    // SAFETY: the caller's output.
    unsafe { put(node, copy.ok_or(INVALID_VALUE)? as usize) }
}

pub unsafe fn cuGraphGetId(graph: usize, id: *mut u32) -> CudaResult {
    let found = Graph::find(ready()?, graph)?;
    // SAFETY: the caller's output.
    unsafe { put(id, found.id) }
}

pub unsafe fn cuGraphNodeGetType(node: usize, kind: *mut u32) -> CudaResult {
    let work = super::nodes::work_of(ready()?, node)?;
    // SAFETY: the caller's output.
    unsafe { put(kind, work.kind()) }
}

pub unsafe fn cuGraphNodeGetContainingGraph(node: usize, graph: *mut usize) -> CudaResult {
    let found = Graph::of_node(ready()?, node)?;
    // SAFETY: the caller's output.
    unsafe { put(graph, found.handle as usize) }
}

pub unsafe fn cuGraphNodeGetLocalId(node: usize, id: *mut u32) -> CudaResult {
    let graph = Graph::of_node(ready()?, node)?;
    let found = graph.state().nodes.get(&(node as u64)).map(|node| node.local_id).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's output.
    unsafe { put(id, found) }
}

pub unsafe fn cuGraphNodeGetToolsId(node: usize, id: *mut u64) -> CudaResult {
    Graph::of_node(ready()?, node)?;
    // SAFETY: the caller's output.
    unsafe { put(id, node as u64) }
}

/// Hands out a list: without room only its length; with more room than needed the rest is zeroed.
unsafe fn give(list: &[u64], out: *mut usize, count: *mut usize) -> CudaResult {
    // SAFETY: null, or the caller's number.
    let count = unsafe { count.as_mut() }.ok_or(INVALID_VALUE)?;
    if !out.is_null() {
        for index in 0..*count {
            // SAFETY: the caller's list has room for `count`.
            unsafe { out.add(index).write(list.get(index).map_or(0, |handle| *handle as usize)) };
        }
        *count = (*count).min(list.len());
    } else {
        *count = list.len();
    }
    Ok(())
}

/// As [`give`], for edge data.
unsafe fn give_data(list: &[EdgeData], out: *mut c_void, room: usize) {
    if !out.is_null() {
        for index in 0..room {
            let data = list.get(index).copied().unwrap_or(FULL);
            // SAFETY: the caller's list has room for `room`.
            unsafe { out.cast::<EdgeData>().add(index).write_unaligned(data) };
        }
    }
}

pub unsafe fn cuGraphGetNodes(graph: usize, nodes: *mut usize, count: *mut usize) -> CudaResult {
    let found = Graph::find(ready()?, graph)?;
    let list: Vec<u64> = found.state().nodes.keys().copied().collect();
    // SAFETY: the caller's outputs.
    unsafe { give(&list, nodes, count) }
}

pub unsafe fn cuGraphGetRootNodes(graph: usize, nodes: *mut usize, count: *mut usize) -> CudaResult {
    let found = Graph::find(ready()?, graph)?;
    let state = found.state();
    let list = state.nodes.iter().filter(|(_, node)| node.after.is_empty()).map(|(handle, _)| *handle);
    let list: Vec<u64> = list.collect();
    // SAFETY: the caller's outputs.
    unsafe { give(&list, nodes, count) }
}

fn all_edges(state: &State) -> Vec<(u64, u64, EdgeData)> {
    let edges = state.nodes.iter().flat_map(|(to, node)| node.after.iter().map(|(from, data)| (*from, *to, *data)));
    edges.collect()
}

pub unsafe fn cuGraphGetEdges_v2(
    graph: usize,
    from: *mut usize,
    to: *mut usize,
    data: *mut c_void,
    count: *mut usize,
) -> CudaResult {
    let found = Graph::find(ready()?, graph)?;
    let edges = all_edges(&found.state());
    if from.is_null() != to.is_null() {
        return Err(INVALID_VALUE);
    }
    let froms: Vec<u64> = edges.iter().map(|edge| edge.0).collect();
    let tos: Vec<u64> = edges.iter().map(|edge| edge.1).collect();
    let datas: Vec<EdgeData> = edges.iter().map(|edge| edge.2).collect();
    // SAFETY: the caller's outputs; both lists have room for `count`.
    unsafe {
        let mut room = *count.as_ref().ok_or(INVALID_VALUE)?;
        if !from.is_null() {
            give_data(&datas, data, room);
            give(&froms, from, &raw mut room)?;
        }
        give(&tos, to, count)
    }
}

pub unsafe fn cuGraphGetEdges(graph: usize, from: *mut usize, to: *mut usize, count: *mut usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuGraphGetEdges_v2(graph, from, to, std::ptr::null_mut(), count) }
}

unsafe fn give_edges(edges: &[Edge], nodes: *mut usize, data: *mut c_void, count: *mut usize) -> CudaResult {
    let list: Vec<u64> = edges.iter().map(|edge| edge.0).collect();
    let datas: Vec<EdgeData> = edges.iter().map(|edge| edge.1).collect();
    // SAFETY: the caller's outputs.
    unsafe {
        if !nodes.is_null() {
            give_data(&datas, data, *count.as_ref().ok_or(INVALID_VALUE)?);
        }
        give(&list, nodes, count)
    }
}

pub unsafe fn cuGraphNodeGetDependencies_v2(
    node: usize,
    nodes: *mut usize,
    data: *mut c_void,
    count: *mut usize,
) -> CudaResult {
    let graph = Graph::of_node(ready()?, node)?;
    let edges = graph.state().nodes.get(&(node as u64)).map(|node| node.after.clone()).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's outputs.
    unsafe { give_edges(&edges, nodes, data, count) }
}

pub unsafe fn cuGraphNodeGetDependencies(node: usize, nodes: *mut usize, count: *mut usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuGraphNodeGetDependencies_v2(node, nodes, std::ptr::null_mut(), count) }
}

pub unsafe fn cuGraphNodeGetDependentNodes_v2(
    node: usize,
    nodes: *mut usize,
    data: *mut c_void,
    count: *mut usize,
) -> CudaResult {
    let graph = Graph::of_node(ready()?, node)?;
    let edges = all_edges(&graph.state());
    let edges = edges.iter().filter(|(from, ..)| *from == node as u64).map(|(_, to, data)| (*to, *data));
    let edges: Vec<Edge> = edges.collect();
    // SAFETY: the caller's outputs.
    unsafe { give_edges(&edges, nodes, data, count) }
}

pub unsafe fn cuGraphNodeGetDependentNodes(node: usize, nodes: *mut usize, count: *mut usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuGraphNodeGetDependentNodes_v2(node, nodes, std::ptr::null_mut(), count) }
}

pub unsafe fn cuGraphAddDependencies_v2(
    graph: usize,
    from: *const usize,
    to: *const usize,
    data: *const c_void,
    count: usize,
) -> CudaResult {
    let found = Graph::find(ready()?, graph)?;
    // SAFETY: the caller's lists.
    let (from, to) = unsafe { (edges_with(from, data, count)?, edges_with(to, std::ptr::null(), count)?) };
    let mut state = found.state();
    let known = |state: &State, handle| state.nodes.contains_key(&handle);
    for ((from, _), (to, _)) in from.iter().zip(&to) {
        let there = state.nodes.get(to).is_some_and(|node| node.after.iter().any(|(other, _)| other == from));
        if from == to || there || !known(&state, *from) || !known(&state, *to) {
            return Err(INVALID_VALUE);
        }
    }
    for (edge, (to, _)) in from.into_iter().zip(to) {
        if let Some(node) = state.nodes.get_mut(&to) {
            node.after.push(edge);
        }
    }
    Ok(())
}

pub unsafe fn cuGraphAddDependencies(graph: usize, from: *const usize, to: *const usize, count: usize) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuGraphAddDependencies_v2(graph, from, to, std::ptr::null(), count) }
}

pub unsafe fn cuGraphRemoveDependencies_v2(
    graph: usize,
    from: *const usize,
    to: *const usize,
    data: *const c_void,
    count: usize,
) -> CudaResult {
    let found = Graph::find(ready()?, graph)?;
    // SAFETY: the caller's lists.
    let (from, to) = unsafe { (edges_with(from, data, count)?, edges_with(to, std::ptr::null(), count)?) };
    let mut state = found.state();
    for (edge, (to, _)) in from.iter().zip(&to) {
        if !state.nodes.get(to).is_some_and(|node| node.after.contains(edge)) {
            return Err(INVALID_VALUE);
        }
    }
    for (edge, (to, _)) in from.into_iter().zip(to) {
        if let Some(node) = state.nodes.get_mut(&to) {
            node.after.retain(|other| *other != edge);
        }
    }
    Ok(())
}

pub unsafe fn cuGraphRemoveDependencies(
    graph: usize,
    from: *const usize,
    to: *const usize,
    count: usize,
) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { cuGraphRemoveDependencies_v2(graph, from, to, std::ptr::null(), count) }
}

pub unsafe fn cuGraphDestroyNode(node: usize) -> CudaResult {
    let process = current()?.process;
    let graph = Graph::of_node(process, node)?;
    let mut state = graph.state();
    let found = state.nodes.get(&(node as u64)).ok_or(INVALID_VALUE)?;
    if matches!(found.work, Work::Alloc(_) | Work::Free(_)) {
        return Err(super::refused("memory nodes cannot be taken out of a graph"));
    }
    let gone = state.nodes.remove(&(node as u64));
    for other in state.nodes.values_mut() {
        other.after.retain(|(from, _)| *from != node as u64);
    }
    drop(state);
    let _ = process.objects.graphs.nodes.remove(node);
    capture::forget_node(process, node as u64);
    if let Some(Work::Child(child)) = gone.map(|node| node.work) {
        child.forget(process);
    }
    Ok(())
}
