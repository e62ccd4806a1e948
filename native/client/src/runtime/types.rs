//! Plain data of the Runtime API, laid out as `vector_types.h` and `driver_types.h` say.

use std::ffi::c_void;

/// dim3
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

/// cudaExtent: width in bytes (no arrays here), height and depth in rows and slices.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// cudaPos
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

/// cudaPitchedPtr
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PitchedPtr {
    pub address: u64,
    pub pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// cudaMemcpy3DParms
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Copy3D {
    pub source_array: usize,
    pub source_position: Position,
    pub source: PitchedPtr,
    pub target_array: usize,
    pub target_position: Position,
    pub target: PitchedPtr,
    pub extent: Extent,
    pub kind: u32,
}

/// cudaMemcpy3DPeerParms
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Copy3DPeer {
    pub source_array: usize,
    pub source_position: Position,
    pub source: PitchedPtr,
    pub source_device: i32,
    pub target_array: usize,
    pub target_position: Position,
    pub target: PitchedPtr,
    pub target_device: i32,
    pub extent: Extent,
}

/// cudaLaunchConfig_t
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: usize,
    pub stream: usize,
    pub attributes: *const c_void,
    pub count: u32,
}

/// cudaKernelNodeParams; the second version goes on after it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GraphKernel {
    /// A stub, a kernel or a driver's function.
    pub function: usize,
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: u32,
    pub arguments: *const *const c_void,
    pub extra: *const *const c_void,
}

/// cudaMemcpyNodeParams
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct GraphCopy {
    pub flags: i32,
    pub reserved: i32,
    pub context: usize,
    pub copy: Copy3D,
}

/// cudaGraphNodeParams: the kind, and 29 words that are read as it says.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GraphNode {
    pub kind: u32,
    pub reserved: [i32; 3],
    pub body: [u64; 29],
    pub end: u64,
}

/// cudaFuncAttributes
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FunctionAttributes {
    pub shared_bytes: usize,
    pub constant_bytes: usize,
    pub local_bytes: usize,
    pub max_threads: i32,
    pub registers: i32,
    pub ptx_version: i32,
    pub binary_version: i32,
    pub cache_mode_ca: i32,
    pub max_dynamic_shared_bytes: i32,
    pub shared_carveout: i32,
    pub cluster_must_be_set: i32,
    pub cluster_width: i32,
    pub cluster_height: i32,
    pub cluster_depth: i32,
    pub cluster_scheduling: i32,
    pub large_clusters_allowed: i32,
    pub reserved: [i32; 16],
}

/// cudaChannelFormatDesc
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelFormat {
    pub x: i32,
    pub y: i32,
    pub z: i32,
    pub w: i32,
    pub format: u32,
}

/// CUDA_MEMCPY2D
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DriverCopy2D {
    pub source_x: usize,
    pub source_y: usize,
    pub source_type: u32,
    pub source_host: u64,
    pub source_device: u64,
    pub source_array: usize,
    pub source_pitch: usize,
    pub target_x: usize,
    pub target_y: usize,
    pub target_type: u32,
    pub target_host: u64,
    pub target_device: u64,
    pub target_array: usize,
    pub target_pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// CUDA_MEMCPY3D
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DriverCopy3D {
    pub source_x: usize,
    pub source_y: usize,
    pub source_z: usize,
    pub source_lod: usize,
    pub source_type: u32,
    pub source_host: u64,
    pub source_device: u64,
    pub source_array: usize,
    pub reserved0: usize,
    pub source_pitch: usize,
    pub source_height: usize,
    pub target_x: usize,
    pub target_y: usize,
    pub target_z: usize,
    pub target_lod: usize,
    pub target_type: u32,
    pub target_host: u64,
    pub target_device: u64,
    pub target_array: usize,
    pub reserved1: usize,
    pub target_pitch: usize,
    pub target_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// CUlaunchConfig
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DriverLaunchConfig {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: u32,
    pub stream: usize,
    pub attributes: *const c_void,
    pub count: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn layouts_are_those_of_the_headers() {
        assert_eq!(size_of::<Copy3D>(), 160);
        assert_eq!((offset_of!(Copy3D, target_position), offset_of!(Copy3D, kind)), (72, 152));
        assert_eq!(size_of::<Copy3DPeer>(), 168);
        assert_eq!(size_of::<LaunchConfig>(), 56);
        assert_eq!(size_of::<DriverLaunchConfig>(), 56);
        assert_eq!(size_of::<FunctionAttributes>(), 144);
        assert_eq!(offset_of!(FunctionAttributes, max_dynamic_shared_bytes), 44);
        assert_eq!(offset_of!(FunctionAttributes, cluster_width), 56);
        assert_eq!((size_of::<GraphKernel>(), offset_of!(GraphKernel, arguments)), (56, 40));
        assert_eq!((size_of::<GraphCopy>(), offset_of!(GraphCopy, copy)), (176, 16));
        assert_eq!((size_of::<GraphNode>(), offset_of!(GraphNode, body)), (256, 16));
        assert_eq!(size_of::<DriverCopy2D>(), 128);
        assert_eq!(size_of::<DriverCopy3D>(), 200);
    }
}
