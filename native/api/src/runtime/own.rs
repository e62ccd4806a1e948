//! Runtime functions that are written by hand in `client/src/runtime`.
//!
//! A parameter `default_stream` is not the program's: it is 0, or in the function's twin 2 (the thread's own stream).

use super::{Answer, Libraries, RuntimeFunction, Twin};
use crate::function::{Direction, Parameter, Way};

macro_rules! own {
    (@returns) => { None };
    (@returns $t:ty) => { Some(stringify!($t)) };
    (@direction input) => { Direction::In };
    (@direction output) => { Direction::Out };
    (@direction optional) => { Direction::OptionalOut };
    (@direction both) => { Direction::InOut };
    ($($way:ident $libraries:ident $twin:ident $symbol:ident($($p:ident: $d:ident $t:ty),* $(,)?) $(-> $r:ty)?;)*) => {
        &[$(RuntimeFunction {
            symbol: stringify!($symbol),
            libraries: Libraries::$libraries,
            twin: Twin::$twin,
            answer: Answer::Own {
                way: Way::$way,
                parameters: &[$(Parameter {
                    name: stringify!($p),
                    kind: stringify!($t),
                    direction: own!(@direction $d),
                }),*],
                returns: own!(@returns $($r)?),
            },
        }),*]
    };
}

#[rustfmt::skip]
pub(super) const OWN: &[RuntimeFunction] = own! {
    // Versions, errors, look-up of driver functions
    Local Only12 None cudaRuntimeGetVersion(version: output *mut i32);
    Local Only13 None cudaRuntimeGetVersion(version: output *mut i32);
    Local Both None cudaDriverGetVersion(version: output *mut i32);
    Local Both None cudaGetLastError() -> u32;
    Local Both None cudaPeekAtLastError() -> u32;
    Local Both None cudaGetErrorName(error: input u32) -> *const c_char;
    Local Both None cudaGetErrorString(error: input u32) -> *const c_char;
    Local Only12 Ptsz cudaGetDriverEntryPoint
        (default_stream: input usize, symbol: input *const c_char, function: output *mut *mut c_void, flags: input u64,
         status: optional *mut i32);
    Local Only13 Ptsz cudaGetDriverEntryPoint
        (default_stream: input usize, symbol: input *const c_char, function: output *mut *mut c_void, flags: input u64,
         status: optional *mut i32);
    Local Both Ptsz cudaGetDriverEntryPointByVersion
        (default_stream: input usize, symbol: input *const c_char, function: output *mut *mut c_void,
         version: input u32, flags: input u64, status: optional *mut i32);
    Local Both None cudaProfilerStart();
    Local Both None cudaProfilerStop();
    // Devices
    Local Both None cudaGetDeviceCount(count: output *mut i32);
    Local Both None cudaGetDevice(device: output *mut i32);
    Local Both None cudaSetDevice(device: input i32);
    Local Both None cudaInitDevice(device: input i32, device_flags: input u32, flags: input u32);
    Local Both None cudaSetValidDevices(devices: input *const i32, count: input i32);
    Local Both None cudaChooseDevice(device: output *mut i32, properties: input *const c_void);
    Local Both None cudaSetDeviceFlags(flags: input u32);
    Local Both None cudaGetDeviceFlags(flags: output *mut u32);
    Local Only12 None cudaGetDeviceProperties(properties: output *mut u8, device: input i32);
    Local Only12 None cudaGetDeviceProperties_v2(properties: output *mut u8, device: input i32);
    Local Only13 None cudaGetDeviceProperties(properties: output *mut u8, device: input i32);
    Call Both None cudaDeviceEnablePeerAccess(peer: input i32, flags: input u32);
    Local Both None cudaDeviceDisablePeerAccess(peer: input i32);
    Call Both None cudaDeviceReset();
    Call Only12 None cudaThreadExit();
    // Memory
    Posted Both None cudaMalloc(address: output *mut u64, bytes: input usize);
    Posted Both Ptsz cudaMallocAsync(address: output *mut u64, bytes: input usize, stream: input usize);
    Posted Both Ptsz cudaMallocFromPoolAsync
        (address: output *mut u64, bytes: input usize, pool: input usize, stream: input usize);
    Posted Both None cudaMallocPitch
        (address: output *mut u64, pitch: output *mut usize, width: input usize, height: input usize);
    Posted Both None cudaMalloc3D(pitched: output *mut PitchedPtr, extent: input Extent);
    Posted Both Ptsz cudaFreeAsync(address: input u64, stream: input usize);
    Local Both None cudaMallocHost(memory: output *mut *mut c_void, bytes: input usize);
    Local Both None cudaHostAlloc(memory: output *mut *mut c_void, bytes: input usize, flags: input u32);
    Local Both None cudaFreeHost(memory: input *mut c_void);
    Local Only12 None cudaPointerGetAttributes(attributes: output *mut u8, address: input u64);
    Local Only13 None cudaPointerGetAttributes(attributes: output *mut u8, address: input u64);
    // Copies and fills
    Call Both Ptds cudaMemcpy
        (default_stream: input usize, target: input u64, source: input u64, bytes: input usize, kind: input u32);
    Call Both Ptsz cudaMemcpyAsync
        (target: input u64, source: input u64, bytes: input usize, kind: input u32, stream: input usize);
    Call Both None cudaMemcpyPeer
        (target: input u64, target_device: input i32, source: input u64, source_device: input i32, bytes: input usize);
    Call Both None cudaMemcpyPeerAsync
        (target: input u64, target_device: input i32, source: input u64, source_device: input i32, bytes: input usize,
         stream: input usize);
    Call Both Ptds cudaMemcpy2D
        (default_stream: input usize, target: input u64, target_pitch: input usize, source: input u64,
         source_pitch: input usize, width: input usize, height: input usize, kind: input u32);
    Call Both Ptsz cudaMemcpy2DAsync
        (target: input u64, target_pitch: input usize, source: input u64, source_pitch: input usize,
         width: input usize, height: input usize, kind: input u32, stream: input usize);
    Call Both Ptds cudaMemcpy3D(default_stream: input usize, copy: input *const Copy3D);
    Call Both Ptsz cudaMemcpy3DAsync(copy: input *const Copy3D, stream: input usize);
    Call Both Ptds cudaMemcpy3DPeer(default_stream: input usize, copy: input *const Copy3DPeer);
    Call Both Ptsz cudaMemcpy3DPeerAsync(copy: input *const Copy3DPeer, stream: input usize);
    Call Only12 Ptsz cudaMemcpyBatchAsync
        (targets: input *const u64, sources: input *const u64, bytes: input *const usize, count: input usize,
         attributes: input *const c_void, indices: input *const usize, attribute_count: input usize,
         failed: output *mut usize, stream: input usize);
    Call Only13 Ptsz cudaMemcpyBatchAsync
        (targets: input *const u64, sources: input *const u64, bytes: input *const usize, count: input usize,
         attributes: input *const c_void, indices: input *const usize, attribute_count: input usize,
         stream: input usize);
    Call Only13 Ptsz cudaMemcpyWithAttributesAsync
        (target: input u64, source: input u64, bytes: input usize, attributes: input *const c_void,
         stream: input usize);
    Posted Both Ptds cudaMemset(default_stream: input usize, address: input u64, value: input i32, bytes: input usize);
    Posted Both Ptsz cudaMemsetAsync(address: input u64, value: input i32, bytes: input usize, stream: input usize);
    Posted Both Ptds cudaMemset2D
        (default_stream: input usize, address: input u64, pitch: input usize, value: input i32, width: input usize,
         height: input usize);
    Posted Both Ptsz cudaMemset2DAsync
        (address: input u64, pitch: input usize, value: input i32, width: input usize, height: input usize,
         stream: input usize);
    Posted Both Ptds cudaMemset3D
        (default_stream: input usize, pitched: input PitchedPtr, value: input i32, extent: input Extent);
    Posted Both Ptsz cudaMemset3DAsync
        (pitched: input PitchedPtr, value: input i32, extent: input Extent, stream: input usize);
    // Variables of the program
    Call Both None cudaGetSymbolAddress(address: output *mut u64, symbol: input usize);
    Call Both None cudaGetSymbolSize(bytes: output *mut usize, symbol: input usize);
    Call Both Ptds cudaMemcpyToSymbol
        (default_stream: input usize, symbol: input usize, source: input u64, bytes: input usize, offset: input usize,
         kind: input u32);
    Call Both Ptsz cudaMemcpyToSymbolAsync
        (symbol: input usize, source: input u64, bytes: input usize, offset: input usize, kind: input u32,
         stream: input usize);
    Call Both Ptds cudaMemcpyFromSymbol
        (default_stream: input usize, target: input u64, symbol: input usize, bytes: input usize, offset: input usize,
         kind: input u32);
    Call Both Ptsz cudaMemcpyFromSymbolAsync
        (target: input u64, symbol: input usize, bytes: input usize, offset: input usize, kind: input u32,
         stream: input usize);
    // What nvcc's stubs call
    Local Both None __cudaRegisterFatBinary(wrapper: input *const c_void) -> *mut *mut c_void;
    Local Both None __cudaRegisterFatBinaryEnd(binary: input *mut *mut c_void) -> ();
    Local Both None __cudaUnregisterFatBinary(binary: input *mut *mut c_void) -> ();
    Local Both None __cudaInitModule(binary: input *mut *mut c_void) -> c_char;
    Local Both None __cudaRegisterFunction
        (binary: input *mut *mut c_void, host: input usize, device: input *const c_char, name: input *const c_char,
         thread_limit: input i32, thread: input *const c_void, block: input *const c_void,
         block_size: input *const c_void, grid_size: input *const c_void, warp_size: input *const i32) -> ();
    Local Both None __cudaRegisterVar
        (binary: input *mut *mut c_void, host: input usize, device: input *const c_char, name: input *const c_char,
         external: input i32, bytes: input usize, constant: input i32, global: input i32) -> ();
    Local Both None __cudaRegisterManagedVar
        (binary: input *mut *mut c_void, host: input usize, device: input *const c_char, name: input *const c_char,
         external: input i32, bytes: input usize, constant: input i32, global: input i32) -> ();
    Local Both None __cudaRegisterHostVar() -> ();
    Local Both None __cudaRegisterUnifiedTable() -> ();
    Local Both None __cudaPushCallConfiguration
        (grid: input Dim3, block: input Dim3, shared_bytes: input usize, stream: input usize) -> u32;
    Local Both None __cudaPopCallConfiguration
        (grid: output *mut Dim3, block: output *mut Dim3, shared_bytes: output *mut usize, stream: output *mut usize);
    Local Both None __cudaGetKernel(kernel: output *mut usize, host: input usize);
    Posted Both Ptsz __cudaLaunchKernel
        (kernel: input usize, grid: input Dim3, block: input Dim3, arguments: input *const *const c_void,
         shared_bytes: input usize, stream: input usize);
    // Launches and functions
    Posted Both Ptsz cudaLaunchKernel
        (function: input usize, grid: input Dim3, block: input Dim3, arguments: input *const *const c_void,
         shared_bytes: input usize, stream: input usize);
    Posted Both Ptsz cudaLaunchKernelExC
        (default_stream: input usize, config: input *const LaunchConfig, function: input usize,
         arguments: input *const *const c_void);
    Posted Both Ptsz cudaLaunchCooperativeKernel
        (function: input usize, grid: input Dim3, block: input Dim3, arguments: input *const *const c_void,
         shared_bytes: input usize, stream: input usize);
    Local Both None cudaGetKernel(kernel: output *mut usize, function: input usize);
    Local Both None cudaGetFuncBySymbol(out: output *mut usize, function: input usize);
    Local Both None cudaFuncGetAttributes(attributes: output *mut FunctionAttributes, function: input usize);
    Posted Both None cudaFuncSetAttribute(function: input usize, attribute: input u32, value: input i32);
    Posted Both None cudaKernelSetAttributeForDevice
        (kernel: input usize, attribute: input u32, value: input i32, device: input i32);
    Local Both None cudaFuncSetCacheConfig(function: input usize, config: input u32);
    Local Both None cudaFuncSetSharedMemConfig(function: input usize, config: input u32);
    Local Both None cudaFuncGetName(name: output *mut *const c_char, function: input usize);
    Local Both None cudaFuncGetParamInfo
        (function: input usize, index: input usize, offset: output *mut usize, bytes: optional *mut usize);
    Local Only13 None cudaFuncGetParamCount(function: input usize, count: output *mut usize);
    Local Both None cudaOccupancyMaxActiveBlocksPerMultiprocessor
        (blocks: output *mut i32, function: input usize, block: input i32, shared_bytes: input usize);
    Local Both None cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        (blocks: output *mut i32, function: input usize, block: input i32, shared_bytes: input usize,
         flags: input u32);
    Local Both None cudaOccupancyAvailableDynamicSMemPerBlock
        (bytes: output *mut usize, function: input usize, blocks: input i32, block: input i32);
    Local Both None cudaOccupancyMaxActiveClusters
        (clusters: output *mut i32, function: input usize, config: input *const LaunchConfig);
    Local Both None cudaOccupancyMaxPotentialClusterSize
        (size: output *mut i32, function: input usize, config: input *const LaunchConfig);
    // Streams and events
    Posted Both None cudaStreamCreate(stream: output *mut usize);
    Posted Both None cudaEventCreate(event: output *mut usize);
    // Nodes of graphs whose descriptions differ from the driver's
    Local Both None cudaGraphAddKernelNode
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: input *const GraphKernel);
    Local Both None cudaGraphKernelNodeGetParams(node: input usize, parameters: output *mut GraphKernel);
    Local Both None cudaGraphKernelNodeSetParams(node: input usize, parameters: input *const GraphKernel);
    Local Both None cudaGraphExecKernelNodeSetParams
        (executable: input usize, node: input usize, parameters: input *const GraphKernel);
    Local Both None cudaGraphAddMemcpyNode
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         copy: input *const Copy3D);
    Local Both None cudaGraphMemcpyNodeGetParams(node: input usize, copy: output *mut Copy3D);
    Local Both None cudaGraphMemcpyNodeSetParams(node: input usize, copy: input *const Copy3D);
    Local Both None cudaGraphExecMemcpyNodeSetParams
        (executable: input usize, node: input usize, copy: input *const Copy3D);
    Local Both None cudaGraphAddMemcpyNode1D
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         target: input u64, source: input u64, bytes: input usize, kind: input u32);
    Local Both None cudaGraphMemcpyNodeSetParams1D
        (node: input usize, target: input u64, source: input u64, bytes: input usize, kind: input u32);
    Local Both None cudaGraphExecMemcpyNodeSetParams1D
        (executable: input usize, node: input usize, target: input u64, source: input u64, bytes: input usize,
         kind: input u32);
    Local Both None cudaGraphAddMemcpyNodeFromSymbol
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         target: input u64, symbol: input usize, bytes: input usize, offset: input usize, kind: input u32);
    Local Both None cudaGraphMemcpyNodeSetParamsFromSymbol
        (node: input usize, target: input u64, symbol: input usize, bytes: input usize, offset: input usize,
         kind: input u32);
    Local Both None cudaGraphExecMemcpyNodeSetParamsFromSymbol
        (executable: input usize, node: input usize, target: input u64, symbol: input usize, bytes: input usize,
         offset: input usize, kind: input u32);
    Local Both None cudaGraphAddMemcpyNodeToSymbol
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         symbol: input usize, source: input u64, bytes: input usize, offset: input usize, kind: input u32);
    Local Both None cudaGraphMemcpyNodeSetParamsToSymbol
        (node: input usize, symbol: input usize, source: input u64, bytes: input usize, offset: input usize,
         kind: input u32);
    Local Both None cudaGraphExecMemcpyNodeSetParamsToSymbol
        (executable: input usize, node: input usize, symbol: input usize, source: input u64, bytes: input usize,
         offset: input usize, kind: input u32);
    Local Both None cudaGraphAddMemsetNode
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: input *const c_void);
    Local Both None cudaGraphExecMemsetNodeSetParams
        (executable: input usize, node: input usize, parameters: input *const c_void);
    Local Only12 None cudaGraphAddNode
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: both *mut GraphNode);
    Local Only12 None cudaGraphAddNode_v2
        (node: output *mut usize, graph: input usize, after: input *const usize, data: input *const c_void,
         count: input usize, parameters: both *mut GraphNode);
    Local Only13 None cudaGraphAddNode
        (node: output *mut usize, graph: input usize, after: input *const usize, data: input *const c_void,
         count: input usize, parameters: both *mut GraphNode);
    Local Only13 None cudaGraphNodeGetParams(node: input usize, parameters: output *mut GraphNode);
    Local Both None cudaGraphNodeSetParams(node: input usize, parameters: input *mut GraphNode);
    Local Both None cudaGraphExecNodeSetParams
        (executable: input usize, node: input usize, parameters: input *mut GraphNode);
    // Texture descriptions are plain data
    Local Both None cudaCreateChannelDesc
        (x: input i32, y: input i32, z: input i32, w: input i32, format: input u32) -> ChannelFormat;
};
