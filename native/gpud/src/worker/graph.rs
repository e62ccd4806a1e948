//! Graphs as they come over the wire, for the device.

use sluice_backend as backend;
use sluice_backend::graph::{Edge, Extent, MemoryOperation, Node, NodeWork, Planes, RecordingId};
use sluice_backend::{EventId, FunctionRef, LaunchConfig, ModuleId};
use sluice_protocol::graph::{self as wire, GraphChange, GraphNode, GraphWork};

fn planes(planes: wire::Planes) -> Planes {
    Planes { address: planes.address, pitch: planes.pitch, slice: planes.slice }
}

fn extent([width, height, depth]: wire::Extent) -> Extent {
    Extent { width, height, depth }
}

/// Launch attributes.
pub fn attributes(list: Vec<wire::LaunchAttribute>) -> Vec<backend::LaunchAttribute> {
    list.into_iter().map(|attribute| backend::LaunchAttribute { id: attribute.id, value: attribute.value }).collect()
}

/// Operations on words.
pub fn operations(list: Vec<wire::MemoryOperation>) -> Vec<MemoryOperation> {
    let operations = list.into_iter().map(|operation| MemoryOperation {
        kind: operation.kind,
        flags: operation.flags,
        address: operation.address,
        value: operation.value,
    });
    operations.collect()
}

/// A node's work.
pub fn work(work: GraphWork) -> NodeWork {
    match work {
        GraphWork::Empty => NodeWork::Empty,
        GraphWork::Kernel { module, function, grid, block, shared_bytes, attributes: list, parameters } => {
            let function = FunctionRef { module: ModuleId(module), index: function };
            let attributes = attributes(list);
            let config = LaunchConfig { grid, block, shared_bytes, cooperative: false, params: parameters, attributes };
            NodeWork::Kernel { function, config }
        }
        GraphWork::Copy { target, source, extent: size } => {
            NodeWork::Copy { target: planes(target), source: planes(source), extent: extent(size) }
        }
        GraphWork::CopyIn { target, extent: size, copy } => {
            NodeWork::CopyIn { target: planes(target), extent: extent(size), copy }
        }
        GraphWork::CopyOut { source, extent: size, copy } => {
            NodeWork::CopyOut { source: planes(source), extent: extent(size), copy }
        }
        GraphWork::Fill { address, pitch, value, element, width, height } => {
            NodeWork::Fill(backend::Fill { dst: address, pitch, value, element, width, height })
        }
        GraphWork::Host { function } => NodeWork::Host { function },
        GraphWork::RecordEvent { event } => NodeWork::RecordEvent(EventId(event)),
        GraphWork::WaitEvent { event } => NodeWork::WaitEvent(EventId(event)),
        GraphWork::Memory { operations: list } => NodeWork::Memory(operations(list)),
        GraphWork::Library { recording } => NodeWork::Library(RecordingId(recording)),
    }
}

/// Bytes that a node counts on the host, besides its lists.
const NODE_BYTES: usize = 512;

/// Bytes that work counts on the host.
pub fn work_bytes(work: &NodeWork) -> u64 {
    let list = match work {
        NodeWork::Kernel { config, .. } => config.params.len() + size_of_val(config.attributes.as_slice()),
        NodeWork::Memory(operations) => size_of_val(operations.as_slice()),
        _ => 0,
    };
    (NODE_BYTES + list) as u64
}

/// Bytes that each node counts on the host: its work, and its edges.
pub fn nodes_bytes(nodes: &[Node]) -> Vec<[u64; 2]> {
    nodes.iter().map(|node| [work_bytes(&node.work), size_of_val(node.after.as_slice()) as u64]).collect()
}

/// All nodes.
pub fn nodes(list: Vec<GraphNode>) -> Vec<Node> {
    let nodes = list.into_iter().map(|node| Node {
        after: node.after.iter().map(|edge| Edge { from: edge.from, data: edge.data }).collect(),
        enabled: node.enabled,
        work: work(node.work),
    });
    nodes.collect()
}

/// Changes.
pub fn changes(list: Vec<GraphChange>) -> Vec<(u32, bool, NodeWork)> {
    list.into_iter().map(|change| (change.node, change.enabled, work(change.work))).collect()
}
