//! The C structures of graphs (CUDA Driver API, `cuda.h`).

use std::ffi::c_void;

/// CUDA_MEMCPY3D
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy3D {
    pub source: Side,
    pub target: Side,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// One side of a [`Copy3D`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Side {
    pub x: usize,
    pub y: usize,
    pub z: usize,
    pub lod: usize,
    /// CUmemorytype: 1 host, 2 device, 3 array, 4 unified
    pub kind: u32,
    pub host: usize,
    pub device: u64,
    pub array: usize,
    pub reserved: usize,
    pub pitch: usize,
    pub height: usize,
}

/// CU_MEMORYTYPE_HOST
pub const HOST: u32 = 1;
/// CU_MEMORYTYPE_DEVICE
pub const DEVICE: u32 = 2;
/// CU_MEMORYTYPE_ARRAY
pub const ARRAY: u32 = 3;
/// CU_MEMORYTYPE_UNIFIED
pub const UNIFIED: u32 = 4;

impl Side {
    /// Bytes that lie one behind the other.
    pub fn linear(kind: u32, address: u64, bytes: usize) -> Self {
        let host = if kind == HOST { address as usize } else { 0 };
        let device = if kind == HOST { 0 } else { address };
        Self { x: 0, y: 0, z: 0, lod: 0, kind, host, device, array: 0, reserved: 0, pitch: bytes, height: 1 }
    }

    /// The address of the first byte.
    pub fn address(&self) -> u64 {
        let start = if self.kind == HOST { self.host as u64 } else { self.device };
        let row = self.z.wrapping_mul(self.height).wrapping_add(self.y);
        start.wrapping_add(row.wrapping_mul(self.pitch) as u64).wrapping_add(self.x as u64)
    }

    /// Bytes from plane to plane.
    pub fn slice(&self) -> usize {
        self.pitch.wrapping_mul(self.height)
    }
}

impl Copy3D {
    /// A plain copy.
    pub fn linear(target: Side, source: Side, bytes: usize) -> Self {
        Self { source, target, width: bytes, height: 1, depth: 1 }
    }
}

/// CUDA_MEMSET_NODE_PARAMS
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    pub address: u64,
    pub pitch: usize,
    pub value: u32,
    pub element: u32,
    pub width: usize,
    pub height: usize,
}

/// CUDA_KERNEL_NODE_PARAMS, version 1: the later versions go on after it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelV1 {
    pub function: usize,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub parameters: *const *const c_void,
    pub extra: *const *const c_void,
}

/// CUDA_KERNEL_NODE_PARAMS, versions 2 and 3
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelV2 {
    pub first: KernelV1,
    pub kernel: usize,
    pub context: usize,
}

/// CUDA_HOST_NODE_PARAMS
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostNode {
    pub function: Option<crate::host::Function>,
    pub data: *mut c_void,
}

/// CUDA_MEM_ALLOC_NODE_PARAMS
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocNode {
    /// CUmemPoolProps
    pub pool: [u64; 11],
    pub access: *const c_void,
    pub access_count: usize,
    pub bytes: usize,
    pub address: u64,
}

/// CUDA_BATCH_MEM_OP_NODE_PARAMS
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryNode {
    pub context: usize,
    pub count: u32,
    pub operations: *const MemoryWords,
    pub flags: u32,
}

/// CUstreamBatchMemOpParams
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryWords {
    pub kind: u32,
    /// A barrier has its flags here.
    pub second: u32,
    pub address: u64,
    pub value: u64,
    pub flags: u32,
    pub padding: u32,
    pub alias: u64,
    pub rest: u64,
}

/// CUDA_GRAPH_INSTANTIATE_PARAMS
#[repr(C)]
pub struct Instantiate {
    pub flags: u64,
    pub upload: usize,
    pub error_node: usize,
    pub result: u32,
}

/// CUgraphExecUpdateResultInfo
#[repr(C)]
pub struct UpdateResult {
    pub result: u32,
    pub error_node: usize,
    pub error_from: usize,
}

/// CUgraphNodeParams: the type, and 29 words that are read as it says.
#[repr(C)]
pub struct NodeParams {
    pub kind: u32,
    pub reserved: [u32; 3],
    pub body: [u64; 29],
    pub end: u64,
}

/// CUDA_MEMCPY_NODE_PARAMS
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CopyNode {
    pub flags: u32,
    pub reserved: u32,
    pub context: usize,
    pub copy: Copy3D,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_cuda_h() {
        assert_eq!((size_of::<Copy3D>(), size_of::<Fill>(), size_of::<HostNode>()), (200, 40, 16));
        assert_eq!((size_of::<KernelV1>(), size_of::<KernelV2>()), (56, 72));
        assert_eq!((size_of::<AllocNode>(), size_of::<MemoryNode>(), size_of::<MemoryWords>()), (120, 32, 48));
        assert_eq!((size_of::<Instantiate>(), size_of::<UpdateResult>()), (32, 24));
        assert_eq!((size_of::<NodeParams>(), size_of::<CopyNode>()), (256, 216));
    }

    #[test]
    fn a_side_begins_where_its_offsets_say() {
        let side = Side { x: 3, y: 2, z: 1, pitch: 100, height: 10, ..Side::linear(DEVICE, 0x1000, 0) };
        assert_eq!((side.address(), side.slice()), (0x1000 + 1203, 1000));
    }
}
