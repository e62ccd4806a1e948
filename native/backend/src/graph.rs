//! Graphs of work, as a device executes them.

use crate::timeline::{Job, Step, StepWork};
use crate::types::{EventId, Fill, FunctionRef, LaunchConfig};
use std::sync::Arc;

/// An executable graph's handle, chosen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphId(pub u64);

/// A recorded call to a library, numbered by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordingId(pub u64);

/// One edge: the node it comes from, by place, and CUDA's `CUgraphEdgeData`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: u32,
    pub data: [u8; 8],
}

/// One node of an executable graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// Each edge comes from an earlier place.
    pub after: Vec<Edge>,
    /// A node that is not enabled does nothing in its turn.
    pub enabled: bool,
    pub work: NodeWork,
}

/// Rows of bytes in planes: one side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    pub address: u64,
    /// Bytes from row to row.
    pub pitch: u64,
    /// Bytes from plane to plane.
    pub slice: u64,
}

/// Bytes a row, rows a plane, planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub width: u64,
    pub height: u64,
    pub depth: u64,
}

impl Extent {
    /// Bytes in all; None when that overflows.
    pub fn bytes(&self) -> Option<u64> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }

    /// Whether the rows and planes of a side lie one behind the other, below the end of all addresses.
    pub fn lies_in(self, side: Planes) -> bool {
        if self.bytes() == Some(0) {
            return true;
        }
        let plane = (self.height - 1).checked_mul(side.pitch).and_then(|last| last.checked_add(self.width));
        let whole = plane.and_then(|plane| (self.depth - 1).checked_mul(side.slice)?.checked_add(plane));
        (self.height == 1 || side.pitch >= self.width)
            && (self.depth == 1 || plane.is_some_and(|plane| side.slice >= plane))
            && whole.is_some_and(|whole| side.address.checked_add(whole).is_some())
    }

    /// Where each row begins on a side, and where in rows laid end to end; no rows of no bytes.
    pub fn rows(mut self, side: Planes) -> impl Iterator<Item = (u64, u64)> {
        if self.width == 0 {
            self.depth = 0;
        }
        let places = (0..self.depth).flat_map(move |plane| (0..self.height).map(move |row| (plane, row)));
        places.map(move |(plane, row)| {
            let address = side.address.wrapping_add(plane.wrapping_mul(side.slice)).wrapping_add(row * side.pitch);
            (address, (plane * self.height + row) * self.width)
        })
    }
}

/// One operation of `cuStreamBatchMemOp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOperation {
    /// `CUstreamBatchMemOpType`: 1 wait 32, 2 write 32, 4 wait 64, 5 write 64, 6 barrier.
    pub kind: u32,
    /// As CUDA's for the kind.
    pub flags: u32,
    pub address: u64,
    pub value: u64,
}

/// What a node does.
#[derive(Clone, Debug)]
pub enum NodeWork {
    Empty,
    Kernel {
        function: FunctionRef,
        config: LaunchConfig,
    },
    Copy {
        target: Planes,
        source: Planes,
        extent: Extent,
    },
    /// Asks the [`HostSide`] for the bytes when its turn comes.
    CopyIn {
        target: Planes,
        extent: Extent,
        copy: u64,
    },
    /// Hands the bytes to the [`HostSide`].
    CopyOut {
        source: Planes,
        extent: Extent,
        copy: u64,
    },
    Fill(Fill),
    /// Calls the [`HostSide`].
    Host {
        function: u64,
    },
    RecordEvent(EventId),
    WaitEvent(EventId),
    Memory(Vec<MemoryOperation>),
    /// A call that was recorded: see [`crate::Device::record_library`].
    Library(RecordingId),
}

impl NodeWork {
    /// Whether the device waits for the program when it comes to this.
    pub fn asks_the_host(&self) -> bool {
        matches!(self, NodeWork::CopyIn { .. } | NodeWork::Host { .. })
    }
}

/// The program's side of a graph.  None of these waits.
pub trait HostSide: Send + Sync {
    /// Runs a function of the program, and `go_on` when it has returned.
    fn call(&self, function: u64, go_on: Box<dyn FnOnce() + Send>);
    /// Fetches a copy's bytes.
    fn fetch(&self, copy: u64, bytes: u64, then: Box<dyn FnOnce(Vec<u8>) + Send>);
    /// Hands a copy's bytes over.
    fn deliver(&self, copy: u64, data: Vec<u8>);
}

/// An executable graph of a device that runs it node by node.
pub struct Executable {
    pub nodes: Vec<Node>,
    pub host: Arc<dyn HostSide>,
}

impl Executable {
    /// The graph as steps of a timeline; `step` makes what the device does for one node's work.
    pub fn steps<E>(&self, mut step: impl FnMut(&NodeWork) -> Result<StepWork, E>) -> Result<Vec<Step>, E> {
        let steps = self.nodes.iter().map(|node| {
            let work = match &node.work {
                _ if !node.enabled => StepWork::Marker,
                NodeWork::Empty => StepWork::Marker,
                NodeWork::RecordEvent(event) => StepWork::Record(*event),
                NodeWork::WaitEvent(event) => StepWork::Wait(*event),
                NodeWork::Host { function } => {
                    let (host, function) = (Arc::clone(&self.host), *function);
                    StepWork::Later(Box::new(move |done| host.call(function, Box::new(move || done(Ok(()))))))
                }
                work => step(work)?,
            };
            Ok(Step { after: node.after.iter().map(|edge| edge.from as usize).collect(), work })
        });
        steps.collect()
    }
}

/// A step that takes microseconds or longer, by what it touches.
pub fn sized(light: bool, job: Job) -> StepWork {
    if light { StepWork::Light(job) } else { StepWork::Heavy(job) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_by_pitch_and_slice_and_end_to_end_on_the_host() {
        let extent = Extent { width: 4, height: 2, depth: 2 };
        let rows: Vec<_> = extent.rows(Planes { address: 100, pitch: 10, slice: 50 }).collect();
        assert_eq!(rows, [(100, 0), (110, 4), (150, 8), (160, 12)]);
        assert_eq!(extent.bytes(), Some(16));
        let most = 1 << 63;
        for nothing in [[0, most, most], [most, 0, 2], [2, most, 0]] {
            let [width, height, depth] = nothing;
            let nothing = Extent { width, height, depth };
            assert_eq!(nothing.rows(Planes { address: 0, pitch: 0, slice: 0 }).count(), 0);
            assert!(nothing.bytes().is_none_or(|bytes| bytes == 0));
        }
        assert_eq!(Extent { width: u64::MAX, height: 2, depth: 1 }.bytes(), None);
    }
}
