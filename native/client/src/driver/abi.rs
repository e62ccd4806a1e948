//! C structures of the CUDA Driver API, as programs lay them out (source: the API's reference).

pub use super::launch::LaunchConfig;
use std::ffi::c_void;

/// `CUDA_MEMCPY2D`; memory kinds: 1 host, 2 device, 3 array, 4 unified.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy2D {
    pub source_x: usize,
    pub source_y: usize,
    pub source_kind: u32,
    pub source_host: *const c_void,
    pub source_device: u64,
    pub source_array: usize,
    pub source_pitch: usize,
    pub target_x: usize,
    pub target_y: usize,
    pub target_kind: u32,
    pub target_host: *mut c_void,
    pub target_device: u64,
    pub target_array: usize,
    pub target_pitch: usize,
    /// Bytes of a row.
    pub width: usize,
    pub height: usize,
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER`, which names contexts where this has reserved words.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy3D {
    pub source_x: usize,
    pub source_y: usize,
    pub source_z: usize,
    pub source_level: usize,
    pub source_kind: u32,
    pub source_host: *const c_void,
    pub source_device: u64,
    pub source_array: usize,
    pub source_context: usize,
    pub source_pitch: usize,
    pub source_height: usize,
    pub target_x: usize,
    pub target_y: usize,
    pub target_z: usize,
    pub target_level: usize,
    pub target_kind: u32,
    pub target_host: *mut c_void,
    pub target_device: u64,
    pub target_array: usize,
    pub target_context: usize,
    pub target_pitch: usize,
    pub target_height: usize,
    /// Bytes of a row.
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// 1 = device.
    pub kind: u32,
    pub id: i32,
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub location: Location,
    /// 0 none, 1 read, 3 read and write.
    pub flags: u32,
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocationProperties {
    /// 1 = pinned.
    pub kind: u32,
    pub handle_types: u32,
    pub location: Location,
    pub windows: *mut c_void,
    pub flags: [u8; 8],
}

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolProperties {
    /// 1 = pinned.
    pub kind: u32,
    pub handle_types: u32,
    pub location: Location,
    pub windows: *mut c_void,
    /// 0 = no limit.
    pub most_bytes: usize,
    pub usage: u16,
    pub reserved: [u8; 54],
}

/// `CUdevprop`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    pub threads_per_block: i32,
    pub block: [i32; 3],
    pub grid: [i32; 3],
    pub shared_bytes: i32,
    pub constant_bytes: i32,
    pub warp: i32,
    pub pitch: i32,
    pub registers: i32,
    pub clock_khz: i32,
    pub texture_alignment: i32,
}
