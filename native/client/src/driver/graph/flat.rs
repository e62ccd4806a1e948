//! A graph without nesting: what an executable graph is made of.

use super::{Graph, State, Work, order};
use crate::error::CudaResult;
use sluice_protocol::graph::GraphEdge;
use std::collections::HashMap;

/// One node; a child graph has become its nodes between two empty ones.
#[derive(Clone)]
pub struct Flat {
    /// The node's handle; 0 for the entry to a child graph.
    pub node: u64,
    pub after: Vec<GraphEdge>,
    pub enabled: bool,
    pub work: Work,
}

/// A graph laid out, each node after those that it depends on.
#[derive(Clone, Default)]
pub struct Layout {
    pub flats: Vec<Flat>,
    /// Where each node is.
    pub places: HashMap<u64, u32>,
    /// First place and end of the nodes of each child graph.
    pub children: HashMap<u64, (u32, u32)>,
}

impl Layout {
    /// Lays a graph out; fails when it has a cycle.
    pub fn of(graph: &Graph) -> CudaResult<Self> {
        let mut layout = Self::default();
        layout.add(&graph.state(), None)?;
        Ok(layout)
    }

    fn push(&mut self, node: u64, after: Vec<GraphEdge>, work: Work) -> u32 {
        self.flats.push(Flat { node, after, enabled: true, work });
        self.flats.len() as u32 - 1
    }

    fn add(&mut self, state: &State, entry: Option<u32>) -> CudaResult<()> {
        for handle in order(&state.nodes)? {
            let Some(node) = state.nodes.get(&handle) else { continue };
            let edges = node.after.iter().filter_map(|(from, data)| Some((*self.places.get(from)?, *data)));
            let mut after: Vec<GraphEdge> = edges.map(|(from, data)| GraphEdge { from, data }).collect();
            if after.is_empty() {
                after.extend(entry.map(|from| GraphEdge { from, data: [0; 8] }));
            }
            let place = match &node.work {
                Work::Child(child) => {
                    let entry = self.push(0, after, Work::Empty);
                    self.add(&child.state(), Some(entry))?;
                    let end = self.flats.len() as u32;
                    self.children.insert(handle, (entry + 1, end));
                    let ends = self.ends(entry, end);
                    self.push(handle, ends, Work::Empty)
                }
                work => self.push(handle, after, work.clone()),
            };
            self.places.insert(handle, place);
        }
        Ok(())
    }

    /// Edges from the nodes in `from..to` that no other of them waits for.
    fn ends(&self, from: u32, to: u32) -> Vec<GraphEdge> {
        let inside = self.flats.get(from as usize..to as usize).unwrap_or_default();
        let waited: std::collections::HashSet<u32> =
            inside.iter().flat_map(|flat| flat.after.iter().map(|edge| edge.from)).collect();
        (from..to).filter(|place| !waited.contains(place)).map(|from| GraphEdge { from, data: [0; 8] }).collect()
    }
}
