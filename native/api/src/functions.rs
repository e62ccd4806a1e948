//! The public CUDA functions that the shims export, and how each travels.
//!
//! A function stands here once for each ABI variant. Functions that are not here do not exist for programs:
//! `cuGetProcAddress` answers NOT_FOUND, as an older driver would.

/// How a function is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In the client, from what it already knows.
    Local,
    /// Sent and not waited for.
    Posted,
    /// Waits for gpud.
    Call,
    /// Exists, and returns CUDA_ERROR_NOT_SUPPORTED for this reason.
    Refused(&'static str),
}

/// One exported function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The exported symbol, e.g. `cuMemAlloc_v2`.
    pub symbol: &'static str,
    /// The name that `cuGetProcAddress` is asked for, e.g. `cuMemAlloc`.
    pub name: &'static str,
    /// First CUDA version that knows this variant, e.g. 3020.
    pub since: u32,
    pub way: Way,
    /// Empty for refused functions, whose arguments are never read.
    pub parameters: &'static [Parameter],
}

/// One parameter of an exported function.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// Rust type of the C parameter: numbers as they are, handles `usize`, device addresses `u64`.
    pub kind: &'static str,
    pub direction: Direction,
}

/// Which way a parameter's data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
    InOut,
}

macro_rules! direction {
    (input) => {
        Direction::In
    };
    (output) => {
        Direction::Out
    };
    (both) => {
        Direction::InOut
    };
}

macro_rules! functions {
    ($($way:ident $symbol:ident = $name:literal $since:literal ($($p:ident: $d:ident $t:ty),* $(,)?);)*) => {
        &[$(Function {
            symbol: stringify!($symbol),
            name: $name,
            since: $since,
            way: Way::$way,
            parameters: &[$(Parameter { name: stringify!($p), kind: stringify!($t), direction: direction!($d) }),*],
        }),*]
    };
}

macro_rules! refused {
    ($($reason:literal { $($symbol:ident = $name:literal $since:literal,)* })*) => {
        &[$($(Function {
            symbol: stringify!($symbol),
            name: $name,
            since: $since,
            way: Way::Refused($reason),
            parameters: &[],
        },)*)*]
    };
}

/// Functions with an implementation.
#[rustfmt::skip]
const SERVED: &[Function] = functions! {
    // Initialisation, versions, errors
    Local cuInit = "cuInit" 2000 (flags: input u32);
    Local cuDriverGetVersion = "cuDriverGetVersion" 2020 (version: output *mut i32);
    Local cuGetErrorName = "cuGetErrorName" 6000 (error: input u32, text: output *mut *const c_char);
    Local cuGetErrorString = "cuGetErrorString" 6000 (error: input u32, text: output *mut *const c_char);
    Local cuGetProcAddress = "cuGetProcAddress" 11030
        (symbol: input *const c_char, function: output *mut *mut c_void, version: input i32, flags: input u64);
    Local cuGetProcAddress_v2 = "cuGetProcAddress" 12000
        (symbol: input *const c_char, function: output *mut *mut c_void, version: input i32, flags: input u64,
         status: output *mut i32);
    Local cuGetExportTable = "cuGetExportTable" 3000 (table: output *mut *const c_void, id: input *const c_void);
    // Devices
    Local cuDeviceGet = "cuDeviceGet" 2000 (device: output *mut i32, ordinal: input i32);
    Local cuDeviceGetCount = "cuDeviceGetCount" 2000 (count: output *mut i32);
    Local cuDeviceGetName = "cuDeviceGetName" 2000 (name: output *mut c_char, length: input i32, device: input i32);
    Local cuDeviceGetUuid = "cuDeviceGetUuid" 9020 (uuid: output *mut [u8; 16], device: input i32);
    Local cuDeviceGetUuid_v2 = "cuDeviceGetUuid" 11040 (uuid: output *mut [u8; 16], device: input i32);
    Local cuDeviceTotalMem_v2 = "cuDeviceTotalMem" 3020 (bytes: output *mut usize, device: input i32);
    Local cuDeviceGetAttribute = "cuDeviceGetAttribute" 2000
        (value: output *mut i32, attribute: input i32, device: input i32);
    Local cuDeviceComputeCapability = "cuDeviceComputeCapability" 2000
        (major: output *mut i32, minor: output *mut i32, device: input i32);
    Local cuDeviceGetPCIBusId = "cuDeviceGetPCIBusId" 4010 (id: output *mut c_char, length: input i32, device: input i32);
    Local cuDeviceGetByPCIBusId = "cuDeviceGetByPCIBusId" 4010 (device: output *mut i32, id: input *const c_char);
    Local cuDeviceCanAccessPeer = "cuDeviceCanAccessPeer" 4000
        (possible: output *mut i32, device: input i32, peer: input i32);
    Local cuDeviceGetP2PAttribute = "cuDeviceGetP2PAttribute" 8000
        (value: output *mut i32, attribute: input i32, source: input i32, target: input i32);
    Local cuDeviceGetDefaultMemPool = "cuDeviceGetDefaultMemPool" 11020 (pool: output *mut usize, device: input i32);
    Local cuDeviceGetMemPool = "cuDeviceGetMemPool" 11020 (pool: output *mut usize, device: input i32);
    Local cuDeviceSetMemPool = "cuDeviceSetMemPool" 11020 (device: input i32, pool: input usize);
    // Contexts
    Local cuDevicePrimaryCtxRetain = "cuDevicePrimaryCtxRetain" 7000 (context: output *mut usize, device: input i32);
    Local cuDevicePrimaryCtxRelease = "cuDevicePrimaryCtxRelease" 7000 (device: input i32);
    Local cuDevicePrimaryCtxRelease_v2 = "cuDevicePrimaryCtxRelease" 11000 (device: input i32);
    Local cuDevicePrimaryCtxSetFlags = "cuDevicePrimaryCtxSetFlags" 7000 (device: input i32, flags: input u32);
    Local cuDevicePrimaryCtxSetFlags_v2 = "cuDevicePrimaryCtxSetFlags" 11000 (device: input i32, flags: input u32);
    Local cuDevicePrimaryCtxGetState = "cuDevicePrimaryCtxGetState" 7000
        (device: input i32, flags: output *mut u32, active: output *mut i32);
    Call cuDevicePrimaryCtxReset = "cuDevicePrimaryCtxReset" 7000 (device: input i32);
    Call cuDevicePrimaryCtxReset_v2 = "cuDevicePrimaryCtxReset" 11000 (device: input i32);
    Local cuCtxCreate_v2 = "cuCtxCreate" 3020 (context: output *mut usize, flags: input u32, device: input i32);
    Local cuCtxCreate_v3 = "cuCtxCreate" 11040
        (context: output *mut usize, affinity: input *const c_void, count: input i32, flags: input u32,
         device: input i32);
    Local cuCtxCreate_v4 = "cuCtxCreate" 12050
        (context: output *mut usize, parameters: input *const c_void, flags: input u32, device: input i32);
    Call cuCtxDestroy_v2 = "cuCtxDestroy" 4000 (context: input usize);
    Local cuCtxPushCurrent_v2 = "cuCtxPushCurrent" 4000 (context: input usize);
    Local cuCtxPopCurrent_v2 = "cuCtxPopCurrent" 4000 (context: output *mut usize);
    Local cuCtxSetCurrent = "cuCtxSetCurrent" 4000 (context: input usize);
    Local cuCtxGetCurrent = "cuCtxGetCurrent" 4000 (context: output *mut usize);
    Local cuCtxGetDevice = "cuCtxGetDevice" 2000 (device: output *mut i32);
    Local cuCtxGetDevice_v2 = "cuCtxGetDevice" 13000 (device: output *mut i32, context: input usize);
    Local cuCtxGetFlags = "cuCtxGetFlags" 7000 (flags: output *mut u32);
    Local cuCtxGetId = "cuCtxGetId" 12000 (context: input usize, id: output *mut u64);
    Local cuCtxGetApiVersion = "cuCtxGetApiVersion" 3020 (context: input usize, version: output *mut u32);
    Call cuCtxSynchronize = "cuCtxSynchronize" 2000 ();
    Call cuCtxSynchronize_v2 = "cuCtxSynchronize" 13000 (context: input usize);
    Local cuCtxGetLimit = "cuCtxGetLimit" 3010 (value: output *mut usize, limit: input u32);
    Local cuCtxSetLimit = "cuCtxSetLimit" 3010 (limit: input u32, value: input usize);
    Local cuCtxGetCacheConfig = "cuCtxGetCacheConfig" 3020 (config: output *mut u32);
    Local cuCtxSetCacheConfig = "cuCtxSetCacheConfig" 3020 (config: input u32);
    Local cuCtxGetSharedMemConfig = "cuCtxGetSharedMemConfig" 4020 (config: output *mut u32);
    Local cuCtxSetSharedMemConfig = "cuCtxSetSharedMemConfig" 4020 (config: input u32);
    Local cuCtxGetStreamPriorityRange = "cuCtxGetStreamPriorityRange" 5050
        (least: output *mut i32, greatest: output *mut i32);
    Local cuCtxEnablePeerAccess = "cuCtxEnablePeerAccess" 4000 (peer: input usize, flags: input u32);
    Local cuCtxDisablePeerAccess = "cuCtxDisablePeerAccess" 4000 (peer: input usize);
    // Memory
    Call cuMemGetInfo_v2 = "cuMemGetInfo" 3020 (free: output *mut usize, total: output *mut usize);
    Posted cuMemAlloc_v2 = "cuMemAlloc" 3020 (address: output *mut u64, bytes: input usize);
    Posted cuMemAllocPitch_v2 = "cuMemAllocPitch" 3020
        (address: output *mut u64, pitch: output *mut usize, width: input usize, height: input usize,
         element: input u32);
    Posted cuMemFree_v2 = "cuMemFree" 3020 (address: input u64);
    Local cuMemGetAddressRange_v2 = "cuMemGetAddressRange" 3020
        (base: output *mut u64, bytes: output *mut usize, address: input u64);
    Posted cuMemAllocAsync = "cuMemAllocAsync" 11020 (address: output *mut u64, bytes: input usize, stream: input usize);
    Posted cuMemAllocFromPoolAsync = "cuMemAllocFromPoolAsync" 11020
        (address: output *mut u64, bytes: input usize, pool: input usize, stream: input usize);
    Posted cuMemFreeAsync = "cuMemFreeAsync" 11020 (address: input u64, stream: input usize);
    Local cuMemPoolCreate = "cuMemPoolCreate" 11020 (pool: output *mut usize, properties: input *const c_void);
    Local cuMemPoolDestroy = "cuMemPoolDestroy" 11020 (pool: input usize);
    Local cuMemPoolTrimTo = "cuMemPoolTrimTo" 11020 (pool: input usize, keep: input usize);
    Local cuMemPoolGetAttribute = "cuMemPoolGetAttribute" 11020
        (pool: input usize, attribute: input u32, value: output *mut c_void);
    Local cuMemPoolSetAttribute = "cuMemPoolSetAttribute" 11020
        (pool: input usize, attribute: input u32, value: input *const c_void);
    Local cuMemAllocHost_v2 = "cuMemAllocHost" 3020 (memory: output *mut *mut c_void, bytes: input usize);
    Local cuMemHostAlloc = "cuMemHostAlloc" 2020
        (memory: output *mut *mut c_void, bytes: input usize, flags: input u32);
    Local cuMemFreeHost = "cuMemFreeHost" 2000 (memory: input *mut c_void);
    Local cuMemHostRegister_v2 = "cuMemHostRegister" 6050
        (memory: input *mut c_void, bytes: input usize, flags: input u32);
    Local cuMemHostUnregister = "cuMemHostUnregister" 4000 (memory: input *mut c_void);
    Local cuMemHostGetFlags = "cuMemHostGetFlags" 2030 (flags: output *mut u32, memory: input *mut c_void);
    Posted cuMemcpyHtoD_v2 = "cuMemcpyHtoD" 3020 (target: input u64, source: input *const c_void, bytes: input usize);
    Posted cuMemcpyHtoDAsync_v2 = "cuMemcpyHtoDAsync" 3020
        (target: input u64, source: input *const c_void, bytes: input usize, stream: input usize);
    Call cuMemcpyDtoH_v2 = "cuMemcpyDtoH" 3020 (target: output *mut c_void, source: input u64, bytes: input usize);
    Call cuMemcpyDtoHAsync_v2 = "cuMemcpyDtoHAsync" 3020
        (target: output *mut c_void, source: input u64, bytes: input usize, stream: input usize);
    Posted cuMemcpyDtoD_v2 = "cuMemcpyDtoD" 3020 (target: input u64, source: input u64, bytes: input usize);
    Posted cuMemcpyDtoDAsync_v2 = "cuMemcpyDtoDAsync" 3020
        (target: input u64, source: input u64, bytes: input usize, stream: input usize);
    Call cuMemcpy = "cuMemcpy" 4000 (target: input u64, source: input u64, bytes: input usize);
    Call cuMemcpyAsync = "cuMemcpyAsync" 4000
        (target: input u64, source: input u64, bytes: input usize, stream: input usize);
    Posted cuMemsetD8_v2 = "cuMemsetD8" 3020 (address: input u64, value: input u8, count: input usize);
    Posted cuMemsetD16_v2 = "cuMemsetD16" 3020 (address: input u64, value: input u16, count: input usize);
    Posted cuMemsetD32_v2 = "cuMemsetD32" 3020 (address: input u64, value: input u32, count: input usize);
    Posted cuMemsetD8Async = "cuMemsetD8Async" 3020
        (address: input u64, value: input u8, count: input usize, stream: input usize);
    Posted cuMemsetD16Async = "cuMemsetD16Async" 3020
        (address: input u64, value: input u16, count: input usize, stream: input usize);
    Posted cuMemsetD32Async = "cuMemsetD32Async" 3020
        (address: input u64, value: input u32, count: input usize, stream: input usize);
    Local cuPointerGetAttribute = "cuPointerGetAttribute" 4000
        (value: output *mut c_void, attribute: input u32, address: input u64);
    Local cuPointerGetAttributes = "cuPointerGetAttributes" 7000
        (count: input u32, attributes: input *const u32, values: output *const *mut c_void, address: input u64);
    Local cuPointerSetAttribute = "cuPointerSetAttribute" 6000
        (value: input *const c_void, attribute: input u32, address: input u64);
    // Modules, libraries, functions
    Call cuModuleLoad = "cuModuleLoad" 2000 (module: output *mut usize, path: input *const c_char);
    Call cuModuleLoadData = "cuModuleLoadData" 2000 (module: output *mut usize, image: input *const c_void);
    Call cuModuleLoadDataEx = "cuModuleLoadDataEx" 2010
        (module: output *mut usize, image: input *const c_void, count: input u32, options: input *const u32,
         values: both *mut *mut c_void);
    Call cuModuleLoadFatBinary = "cuModuleLoadFatBinary" 2000 (module: output *mut usize, image: input *const c_void);
    Posted cuModuleUnload = "cuModuleUnload" 2000 (module: input usize);
    Local cuModuleGetLoadingMode = "cuModuleGetLoadingMode" 11070 (mode: output *mut u32);
    Local cuModuleGetFunction = "cuModuleGetFunction" 2000
        (function: output *mut usize, module: input usize, name: input *const c_char);
    Local cuModuleGetFunctionCount = "cuModuleGetFunctionCount" 12040 (count: output *mut u32, module: input usize);
    Local cuModuleEnumerateFunctions = "cuModuleEnumerateFunctions" 12040
        (functions: output *mut usize, count: input u32, module: input usize);
    Local cuModuleGetGlobal_v2 = "cuModuleGetGlobal" 3020
        (address: output *mut u64, bytes: output *mut usize, module: input usize, name: input *const c_char);
    Call cuLibraryLoadData = "cuLibraryLoadData" 12000
        (library: output *mut usize, image: input *const c_void, jit_options: input *const u32,
         jit_values: both *mut *mut c_void, jit_count: input u32, options: input *const u32,
         values: input *const *mut c_void, count: input u32);
    Call cuLibraryLoadFromFile = "cuLibraryLoadFromFile" 12000
        (library: output *mut usize, path: input *const c_char, jit_options: input *const u32,
         jit_values: both *mut *mut c_void, jit_count: input u32, options: input *const u32,
         values: input *const *mut c_void, count: input u32);
    Posted cuLibraryUnload = "cuLibraryUnload" 12000 (library: input usize);
    Local cuLibraryGetKernel = "cuLibraryGetKernel" 12000
        (kernel: output *mut usize, library: input usize, name: input *const c_char);
    Local cuLibraryGetKernelCount = "cuLibraryGetKernelCount" 12040 (count: output *mut u32, library: input usize);
    Local cuLibraryEnumerateKernels = "cuLibraryEnumerateKernels" 12040
        (kernels: output *mut usize, count: input u32, library: input usize);
    Local cuLibraryGetModule = "cuLibraryGetModule" 12000 (module: output *mut usize, library: input usize);
    Local cuLibraryGetGlobal = "cuLibraryGetGlobal" 12000
        (address: output *mut u64, bytes: output *mut usize, library: input usize, name: input *const c_char);
    Local cuKernelGetFunction = "cuKernelGetFunction" 12000 (function: output *mut usize, kernel: input usize);
    Local cuKernelGetLibrary = "cuKernelGetLibrary" 12050 (library: output *mut usize, kernel: input usize);
    Local cuKernelGetName = "cuKernelGetName" 12030 (name: output *mut *const c_char, kernel: input usize);
    Local cuKernelGetParamInfo = "cuKernelGetParamInfo" 12040
        (kernel: input usize, index: input usize, offset: output *mut usize, bytes: output *mut usize);
    Local cuKernelGetAttribute = "cuKernelGetAttribute" 12000
        (value: output *mut i32, attribute: input u32, kernel: input usize, device: input i32);
    Posted cuKernelSetAttribute = "cuKernelSetAttribute" 12000
        (attribute: input u32, value: input i32, kernel: input usize, device: input i32);
    Local cuKernelSetCacheConfig = "cuKernelSetCacheConfig" 12000
        (kernel: input usize, config: input u32, device: input i32);
    Local cuFuncGetModule = "cuFuncGetModule" 11000 (module: output *mut usize, function: input usize);
    Local cuFuncGetName = "cuFuncGetName" 12030 (name: output *mut *const c_char, function: input usize);
    Local cuFuncGetParamInfo = "cuFuncGetParamInfo" 12040
        (function: input usize, index: input usize, offset: output *mut usize, bytes: output *mut usize);
    Local cuFuncIsLoaded = "cuFuncIsLoaded" 12040 (state: output *mut u32, function: input usize);
    Local cuFuncLoad = "cuFuncLoad" 12040 (function: input usize);
    Local cuFuncGetAttribute = "cuFuncGetAttribute" 2020
        (value: output *mut i32, attribute: input u32, function: input usize);
    Posted cuFuncSetAttribute = "cuFuncSetAttribute" 9000
        (function: input usize, attribute: input u32, value: input i32);
    Local cuFuncSetCacheConfig = "cuFuncSetCacheConfig" 3000 (function: input usize, config: input u32);
    Local cuFuncSetSharedMemConfig = "cuFuncSetSharedMemConfig" 4020 (function: input usize, config: input u32);
    Local cuLinkCreate_v2 = "cuLinkCreate" 6050
        (count: input u32, options: input *const u32, values: both *mut *mut c_void, state: output *mut usize);
    Local cuLinkAddData_v2 = "cuLinkAddData" 6050
        (state: input usize, kind: input u32, data: input *const c_void, bytes: input usize, name: input *const c_char,
         count: input u32, options: input *const u32, values: input *const *mut c_void);
    Local cuLinkAddFile_v2 = "cuLinkAddFile" 6050
        (state: input usize, kind: input u32, path: input *const c_char, count: input u32, options: input *const u32,
         values: input *const *mut c_void);
    Local cuLinkComplete = "cuLinkComplete" 5050
        (state: input usize, image: output *mut *mut c_void, bytes: output *mut usize);
    Local cuLinkDestroy = "cuLinkDestroy" 5050 (state: input usize);
    // Launches
    Posted cuLaunchKernel = "cuLaunchKernel" 4000
        (function: input usize, grid_x: input u32, grid_y: input u32, grid_z: input u32, block_x: input u32,
         block_y: input u32, block_z: input u32, shared_bytes: input u32, stream: input usize,
         parameters: input *const *const c_void, extra: input *const *const c_void);
    Posted cuLaunchKernelEx = "cuLaunchKernelEx" 11060
        (config: input *const LaunchConfig, function: input usize, parameters: input *const *const c_void,
         extra: input *const *const c_void);
    Posted cuLaunchCooperativeKernel = "cuLaunchCooperativeKernel" 9000
        (function: input usize, grid_x: input u32, grid_y: input u32, grid_z: input u32, block_x: input u32,
         block_y: input u32, block_z: input u32, shared_bytes: input u32, stream: input usize,
         parameters: input *const *const c_void);
    Call cuLaunchHostFunc = "cuLaunchHostFunc" 10000
        (stream: input usize, function: input Option<unsafe extern "C" fn(*mut c_void)>, data: input *mut c_void);
    Call cuStreamAddCallback = "cuStreamAddCallback" 5000
        (stream: input usize, function: input Option<unsafe extern "C" fn(usize, u32, *mut c_void)>,
         data: input *mut c_void, flags: input u32);
    Local cuOccupancyMaxActiveBlocksPerMultiprocessor = "cuOccupancyMaxActiveBlocksPerMultiprocessor" 6050
        (blocks: output *mut i32, function: input usize, block: input i32, shared_bytes: input usize);
    Local cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" 7000
        (blocks: output *mut i32, function: input usize, block: input i32, shared_bytes: input usize, flags: input u32);
    Local cuOccupancyMaxPotentialBlockSize = "cuOccupancyMaxPotentialBlockSize" 6050
        (grid: output *mut i32, block: output *mut i32, function: input usize,
         shared_of_block: input Option<unsafe extern "C" fn(i32) -> usize>, shared_bytes: input usize,
         limit: input i32);
    Local cuOccupancyMaxPotentialBlockSizeWithFlags = "cuOccupancyMaxPotentialBlockSizeWithFlags" 7000
        (grid: output *mut i32, block: output *mut i32, function: input usize,
         shared_of_block: input Option<unsafe extern "C" fn(i32) -> usize>, shared_bytes: input usize,
         limit: input i32, flags: input u32);
    Local cuOccupancyAvailableDynamicSMemPerBlock = "cuOccupancyAvailableDynamicSMemPerBlock" 10020
        (bytes: output *mut usize, function: input usize, blocks: input i32, block: input i32);
    // Streams and events
    Posted cuStreamCreate = "cuStreamCreate" 2000 (stream: output *mut usize, flags: input u32);
    Posted cuStreamCreateWithPriority = "cuStreamCreateWithPriority" 5050
        (stream: output *mut usize, flags: input u32, priority: input i32);
    Posted cuStreamDestroy_v2 = "cuStreamDestroy" 4000 (stream: input usize);
    Call cuStreamSynchronize = "cuStreamSynchronize" 2000 (stream: input usize);
    Call cuStreamQuery = "cuStreamQuery" 2000 (stream: input usize);
    Posted cuStreamWaitEvent = "cuStreamWaitEvent" 3020 (stream: input usize, event: input usize, flags: input u32);
    Local cuStreamGetFlags = "cuStreamGetFlags" 5050 (stream: input usize, flags: output *mut u32);
    Local cuStreamGetPriority = "cuStreamGetPriority" 5050 (stream: input usize, priority: output *mut i32);
    Local cuStreamGetId = "cuStreamGetId" 12000 (stream: input usize, id: output *mut u64);
    Local cuStreamGetCtx = "cuStreamGetCtx" 9020 (stream: input usize, context: output *mut usize);
    Local cuStreamGetCtx_v2 = "cuStreamGetCtx" 12050
        (stream: input usize, context: output *mut usize, green: output *mut usize);
    Local cuStreamGetDevice = "cuStreamGetDevice" 12080 (stream: input usize, device: output *mut i32);
    Local cuStreamIsCapturing = "cuStreamIsCapturing" 10000 (stream: input usize, status: output *mut u32);
    Local cuStreamGetCaptureInfo_v2 = "cuStreamGetCaptureInfo" 11030
        (stream: input usize, status: output *mut u32, id: output *mut u64, graph: output *mut usize,
         dependencies: output *mut *const usize, count: output *mut usize);
    Local cuStreamGetCaptureInfo_v3 = "cuStreamGetCaptureInfo" 12030
        (stream: input usize, status: output *mut u32, id: output *mut u64, graph: output *mut usize,
         dependencies: output *mut *const usize, edges: output *mut *const c_void, count: output *mut usize);
    Local cuThreadExchangeStreamCaptureMode = "cuThreadExchangeStreamCaptureMode" 10010 (mode: both *mut u32);
    Posted cuEventCreate = "cuEventCreate" 2000 (event: output *mut usize, flags: input u32);
    Posted cuEventDestroy_v2 = "cuEventDestroy" 4000 (event: input usize);
    Posted cuEventRecord = "cuEventRecord" 2000 (event: input usize, stream: input usize);
    Posted cuEventRecordWithFlags = "cuEventRecordWithFlags" 11010
        (event: input usize, stream: input usize, flags: input u32);
    Call cuEventSynchronize = "cuEventSynchronize" 2000 (event: input usize);
    Call cuEventQuery = "cuEventQuery" 2000 (event: input usize);
    Call cuEventElapsedTime = "cuEventElapsedTime" 2000
        (milliseconds: output *mut f32, start: input usize, end: input usize);
    Call cuEventElapsedTime_v2 = "cuEventElapsedTime" 12080
        (milliseconds: output *mut f32, start: input usize, end: input usize);
    // Profilers have nothing to control here
    Local cuProfilerStart = "cuProfilerStart" 4000 ();
    Local cuProfilerStop = "cuProfilerStop" 4000 ();
};

/// Functions that exist so that programs link and get an answer they can act on.
#[rustfmt::skip]
const REFUSED: &[Function] = refused! {
    "kernels on a remote GPU cannot reach host memory" {
        cuMemHostGetDevicePointer_v2 = "cuMemHostGetDevicePointer" 3020,
        cuMemAllocManaged = "cuMemAllocManaged" 6000,
        cuMemPrefetchAsync = "cuMemPrefetchAsync" 8000,
        cuMemAdvise = "cuMemAdvise" 8000,
        cuStreamAttachMemAsync = "cuStreamAttachMemAsync" 6000,
        cuMemRangeGetAttribute = "cuMemRangeGetAttribute" 8000,
    }
    "memory handles of a remote GPU cannot be passed between processes yet" {
        cuIpcGetMemHandle = "cuIpcGetMemHandle" 4010,
        cuIpcOpenMemHandle_v2 = "cuIpcOpenMemHandle" 11000,
        cuIpcCloseMemHandle = "cuIpcCloseMemHandle" 4010,
        cuIpcGetEventHandle = "cuIpcGetEventHandle" 4010,
        cuIpcOpenEventHandle = "cuIpcOpenEventHandle" 4010,
        cuMemPoolExportToShareableHandle = "cuMemPoolExportToShareableHandle" 11020,
        cuMemPoolImportFromShareableHandle = "cuMemPoolImportFromShareableHandle" 11020,
    }
    "the program's own virtual memory management is not served yet" {
        cuMemAddressReserve = "cuMemAddressReserve" 10020,
        cuMemAddressFree = "cuMemAddressFree" 10020,
        cuMemCreate = "cuMemCreate" 10020,
        cuMemRelease = "cuMemRelease" 10020,
        cuMemMap = "cuMemMap" 10020,
        cuMemUnmap = "cuMemUnmap" 10020,
        cuMemSetAccess = "cuMemSetAccess" 10020,
        cuMemGetAllocationGranularity = "cuMemGetAllocationGranularity" 10020,
    }
    "graph capture is not served yet" {
        cuStreamBeginCapture_v2 = "cuStreamBeginCapture" 10010,
        cuStreamEndCapture = "cuStreamEndCapture" 10000,
        cuGraphCreate = "cuGraphCreate" 10000,
        cuGraphDestroy = "cuGraphDestroy" 10000,
        cuGraphInstantiateWithFlags = "cuGraphInstantiateWithFlags" 11040,
        cuGraphLaunch = "cuGraphLaunch" 10000,
        cuGraphExecDestroy = "cuGraphExecDestroy" 10000,
    }
    "textures, surfaces and CUDA arrays are not served yet" {
        cuArrayCreate_v2 = "cuArrayCreate" 3020,
        cuArray3DCreate_v2 = "cuArray3DCreate" 3020,
        cuArrayDestroy = "cuArrayDestroy" 2000,
        cuTexObjectCreate = "cuTexObjectCreate" 5000,
        cuTexObjectDestroy = "cuTexObjectDestroy" 5000,
        cuSurfObjectCreate = "cuSurfObjectCreate" 5000,
        cuSurfObjectDestroy = "cuSurfObjectDestroy" 5000,
        cuModuleGetTexRef = "cuModuleGetTexRef" 2000,
        cuModuleGetSurfRef = "cuModuleGetSurfRef" 3000,
    }
    "copies of rectangles and between devices are not served yet" {
        cuMemcpy2D_v2 = "cuMemcpy2D" 3020,
        cuMemcpy2DUnaligned_v2 = "cuMemcpy2DUnaligned" 3020,
        cuMemcpy2DAsync_v2 = "cuMemcpy2DAsync" 3020,
        cuMemcpy3D_v2 = "cuMemcpy3D" 3020,
        cuMemcpy3DAsync_v2 = "cuMemcpy3DAsync" 3020,
        cuMemcpyPeer = "cuMemcpyPeer" 4000,
        cuMemcpyPeerAsync = "cuMemcpyPeerAsync" 4000,
        cuMemsetD2D8_v2 = "cuMemsetD2D8" 3020,
        cuMemsetD2D16_v2 = "cuMemsetD2D16" 3020,
        cuMemsetD2D32_v2 = "cuMemsetD2D32" 3020,
    }
    "thread block clusters are not served yet" {
        cuOccupancyMaxActiveClusters = "cuOccupancyMaxActiveClusters" 11070,
        cuOccupancyMaxPotentialClusterSize = "cuOccupancyMaxPotentialClusterSize" 11070,
    }
};

/// Every exported function of the driver library.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    SERVED.iter().chain(REFUSED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn symbols_are_unique_and_so_are_names_at_a_version() {
        let symbols: BTreeSet<&str> = functions().map(|f| f.symbol).collect();
        let names: BTreeSet<(&str, u32)> = functions().map(|f| (f.name, f.since)).collect();
        assert_eq!(symbols.len(), functions().count());
        assert_eq!(names.len(), functions().count());
    }

    #[test]
    fn all_that_numba_cuda_calls_is_served() {
        let called = [
            "cuInit",
            "cuCtxGetCurrent",
            "cuDeviceGetCount",
            "cuDriverGetVersion",
            "cuDeviceGetAttribute",
            "cuDeviceGetName",
            "cuDeviceGetUuid_v2",
            "cuDevicePrimaryCtxRetain",
            "cuCtxSetCurrent",
            "cuCtxPopCurrent_v2",
            "cuCtxPushCurrent_v2",
            "cuMemGetInfo_v2",
            "cuMemAlloc_v2",
            "cuCtxGetDevice",
            "cuMemcpyHtoD_v2",
            "cuLinkCreate_v2",
            "cuLinkAddData_v2",
            "cuLinkComplete",
            "cuLinkDestroy",
            "cuLibraryLoadData",
            "cuLibraryGetKernel",
            "cuKernelGetAttribute",
            "cuLaunchKernelEx",
            "cuCtxSynchronize",
            "cuMemcpyDtoH_v2",
            "cuDevicePrimaryCtxRelease_v2",
        ];
        for symbol in called {
            let function = functions().find(|f| f.symbol == symbol);
            assert!(function.is_some_and(|f| !matches!(f.way, Way::Refused(_))), "{symbol}");
        }
    }
}
