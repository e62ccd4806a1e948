//! A graph on the wire: its nodes in an order in which each comes after those it depends on.

use crate::wire::{DecodeError, Reader, Wire};

/// One edge: the node it comes from, by place, and CUDA's `CUgraphEdgeData` (ports, type, five reserved bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphEdge {
    pub from: u32,
    pub data: [u8; 8],
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// Each `from` is smaller than the node's own place.
    pub after: Vec<GraphEdge>,
    /// A node that is not enabled does nothing; what depends on it still waits for its turn.
    pub enabled: bool,
    pub work: GraphWork,
}

/// A node of an instantiated graph gets other parameters, or is switched on or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphChange {
    pub node: u32,
    pub enabled: bool,
    pub work: GraphWork,
}

/// Rows of bytes in planes: where one side of a copy lies in device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planes {
    pub address: u64,
    /// Bytes from row to row.
    pub pitch: u64,
    /// Bytes from plane to plane.
    pub slice: u64,
}

/// Bytes a row, rows a plane, planes.
pub type Extent = [u64; 3];

/// A launch attribute: `CUlaunchAttributeID` and the 64 bytes of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchAttribute {
    pub id: u32,
    pub value: [u8; 64],
}

/// One operation of `cuStreamBatchMemOp`: `kind` as `CUstreamBatchMemOpType` (1 wait 32, 2 write 32, 4 wait 64,
/// 5 write 64, 6 barrier), flags as CUDA's for that kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryOperation {
    pub kind: u32,
    pub flags: u32,
    pub address: u64,
    pub value: u64,
}

/// What a node does. `copy` and `function` are numbers under which the client keeps its side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GraphWork {
    #[default]
    Empty,
    Kernel {
        module: u64,
        function: u32,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        attributes: Vec<LaunchAttribute>,
        parameters: Vec<u8>,
    },
    /// Inside the device.
    Copy {
        target: Planes,
        source: Planes,
        extent: Extent,
    },
    /// From the client's memory as it is when the node's turn comes: gpud asks with `HostWanted`.
    CopyIn {
        target: Planes,
        extent: Extent,
        copy: u64,
    },
    /// To the client's memory, by `HostData`.
    CopyOut {
        source: Planes,
        extent: Extent,
        copy: u64,
    },
    Fill {
        address: u64,
        pitch: u64,
        value: u32,
        element: u32,
        width: u64,
        height: u64,
    },
    /// A function of the client: as `HostFunction`.
    Host {
        function: u64,
    },
    RecordEvent {
        event: u64,
    },
    WaitEvent {
        event: u64,
    },
    Memory {
        operations: Vec<MemoryOperation>,
    },
    /// A call to a library, kept under this number by `LibraryRecord`.
    Library {
        recording: u64,
    },
}

impl<'a> Wire<'a> for GraphEdge {
    fn put(&self, out: &mut Vec<u8>) {
        self.from.put(out);
        self.data.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { from: Wire::take(reader)?, data: Wire::take(reader)? })
    }
}

impl<'a> Wire<'a> for GraphNode {
    fn put(&self, out: &mut Vec<u8>) {
        self.after.put(out);
        u8::from(self.enabled).put(out);
        self.work.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { after: Wire::take(reader)?, enabled: u8::take(reader)? != 0, work: Wire::take(reader)? })
    }
}

impl<'a> Wire<'a> for GraphChange {
    fn put(&self, out: &mut Vec<u8>) {
        self.node.put(out);
        u8::from(self.enabled).put(out);
        self.work.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { node: Wire::take(reader)?, enabled: u8::take(reader)? != 0, work: Wire::take(reader)? })
    }
}

impl<'a> Wire<'a> for Planes {
    fn put(&self, out: &mut Vec<u8>) {
        self.address.put(out);
        self.pitch.put(out);
        self.slice.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { address: Wire::take(reader)?, pitch: Wire::take(reader)?, slice: Wire::take(reader)? })
    }
}

impl<'a> Wire<'a> for [u64; 3] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(out));
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok([u64::take(reader)?, u64::take(reader)?, u64::take(reader)?])
    }
}

impl<'a> Wire<'a> for LaunchAttribute {
    fn put(&self, out: &mut Vec<u8>) {
        self.id.put(out);
        self.value.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { id: Wire::take(reader)?, value: Wire::take(reader)? })
    }
}

impl<'a> Wire<'a> for MemoryOperation {
    fn put(&self, out: &mut Vec<u8>) {
        self.kind.put(out);
        self.flags.put(out);
        self.address.put(out);
        self.value.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            kind: Wire::take(reader)?,
            flags: Wire::take(reader)?,
            address: Wire::take(reader)?,
            value: Wire::take(reader)?,
        })
    }
}

impl<'a> Wire<'a> for GraphWork {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Empty => 0u8.put(out),
            Self::Kernel { module, function, grid, block, shared_bytes, attributes, parameters } => {
                1u8.put(out);
                module.put(out);
                function.put(out);
                grid.put(out);
                block.put(out);
                shared_bytes.put(out);
                attributes.put(out);
                parameters.as_slice().put(out);
            }
            Self::Copy { target, source, extent } => {
                2u8.put(out);
                target.put(out);
                source.put(out);
                extent.put(out);
            }
            Self::CopyIn { target, extent, copy } => {
                3u8.put(out);
                target.put(out);
                extent.put(out);
                copy.put(out);
            }
            Self::CopyOut { source, extent, copy } => {
                4u8.put(out);
                source.put(out);
                extent.put(out);
                copy.put(out);
            }
            Self::Fill { address, pitch, value, element, width, height } => {
                5u8.put(out);
                address.put(out);
                pitch.put(out);
                value.put(out);
                element.put(out);
                width.put(out);
                height.put(out);
            }
            Self::Host { function } => {
                6u8.put(out);
                function.put(out);
            }
            Self::RecordEvent { event } => {
                7u8.put(out);
                event.put(out);
            }
            Self::WaitEvent { event } => {
                8u8.put(out);
                event.put(out);
            }
            Self::Memory { operations } => {
                9u8.put(out);
                operations.put(out);
            }
            Self::Library { recording } => {
                10u8.put(out);
                recording.put(out);
            }
        }
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match u8::take(reader)? {
            0 => Self::Empty,
            1 => Self::Kernel {
                module: Wire::take(reader)?,
                function: Wire::take(reader)?,
                grid: Wire::take(reader)?,
                block: Wire::take(reader)?,
                shared_bytes: Wire::take(reader)?,
                attributes: Wire::take(reader)?,
                parameters: <&[u8]>::take(reader)?.to_vec(),
            },
            2 => Self::Copy { target: Wire::take(reader)?, source: Wire::take(reader)?, extent: Wire::take(reader)? },
            3 => Self::CopyIn { target: Wire::take(reader)?, extent: Wire::take(reader)?, copy: Wire::take(reader)? },
            4 => Self::CopyOut { source: Wire::take(reader)?, extent: Wire::take(reader)?, copy: Wire::take(reader)? },
            5 => Self::Fill {
                address: Wire::take(reader)?,
                pitch: Wire::take(reader)?,
                value: Wire::take(reader)?,
                element: Wire::take(reader)?,
                width: Wire::take(reader)?,
                height: Wire::take(reader)?,
            },
            6 => Self::Host { function: Wire::take(reader)? },
            7 => Self::RecordEvent { event: Wire::take(reader)? },
            8 => Self::WaitEvent { event: Wire::take(reader)? },
            9 => Self::Memory { operations: Wire::take(reader)? },
            10 => Self::Library { recording: Wire::take(reader)? },
            other => return Err(DecodeError::Tag(other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_kind() -> Vec<GraphWork> {
        let planes = Planes { address: 1, pitch: 2, slice: 3 };
        let extent = [4, 5, 6];
        vec![
            GraphWork::Empty,
            GraphWork::Kernel {
                module: 7,
                function: 8,
                grid: [1, 2, 3],
                block: [4, 5, 6],
                shared_bytes: 9,
                attributes: vec![LaunchAttribute { id: 2, value: [1; 64] }],
                parameters: vec![1, 2, 3],
            },
            GraphWork::Copy { target: planes, source: planes, extent },
            GraphWork::CopyIn { target: planes, extent, copy: 10 },
            GraphWork::CopyOut { source: planes, extent, copy: 11 },
            GraphWork::Fill { address: 1, pitch: 2, value: 3, element: 4, width: 5, height: 6 },
            GraphWork::Host { function: 12 },
            GraphWork::RecordEvent { event: 13 },
            GraphWork::WaitEvent { event: 14 },
            GraphWork::Memory { operations: vec![MemoryOperation { kind: 1, flags: 2, address: 3, value: 4 }] },
            GraphWork::Library { recording: 15 },
        ]
    }

    #[test]
    fn every_kind_of_node_comes_back_as_it_was() {
        let after = vec![GraphEdge { from: 3, data: [1, 0, 1, 0, 0, 0, 0, 0] }];
        let nodes = every_kind().into_iter().map(|work| GraphNode { after: after.clone(), enabled: true, work });
        let nodes: Vec<GraphNode> = nodes.collect();
        let mut bytes = Vec::new();
        nodes.put(&mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!(Vec::<GraphNode>::take(&mut reader), Ok(nodes));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn a_kind_that_is_not_known_is_an_error_and_so_is_a_short_one() {
        assert_eq!(GraphWork::take(&mut Reader::new(&[77])), Err(DecodeError::Tag(77)));
        for work in every_kind().into_iter().skip(1) {
            let mut bytes = Vec::new();
            work.put(&mut bytes);
            bytes.pop();
            assert!(GraphWork::take(&mut Reader::new(&bytes)).is_err());
        }
    }
}
