//! The driver API as a table of function pointers, filled from libcuda.so.1 at run time.
//! Prototypes: CUDA Driver API reference (`cuda.h` 12.x).

use crate::error::{CudaError, CudaResult, code};
use crate::types::Fill;
use sluice_protocol::tensor_map::TENSOR_MAP_BYTES;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// `CUresult`.
pub type Status = c_int;
/// `CUdevice`.
pub type DeviceNumber = c_int;
/// `CUcontext`, `CUstream`, `CUevent`, `CUmodule`, `CUfunction`.
pub type Handle = *mut c_void;
/// `CUdeviceptr`.
pub type Pointer = u64;

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocationProperties {
    /// 1 = pinned device memory.
    pub kind: c_int,
    pub handle_types: c_int,
    pub location: Location,
    pub windows: *mut c_void,
    pub flags: [u8; 8],
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    /// 1 = device.
    pub kind: c_int,
    pub id: c_int,
}

/// `CUmemAccessDesc`.
#[repr(C)]
pub struct Access {
    pub location: Location,
    /// 3 = read and write.
    pub flags: c_int,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
pub struct Copy2DDescription {
    pub src_x: usize,
    pub src_y: usize,
    /// 2 = device.
    pub src_kind: c_uint,
    pub src_host: *const c_void,
    pub src_device: Pointer,
    pub src_array: Handle,
    pub src_pitch: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_kind: c_uint,
    pub dst_host: *mut c_void,
    pub dst_device: Pointer,
    pub dst_array: Handle,
    pub dst_pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
pub struct Copy3DDescription {
    pub src_x: usize,
    pub src_y: usize,
    pub src_z: usize,
    pub src_lod: usize,
    /// 1 = host, 2 = device.
    pub src_kind: c_uint,
    pub src_host: Handle,
    pub src_device: Pointer,
    pub src_array: Handle,
    pub src_reserved: Handle,
    pub src_pitch: usize,
    pub src_height: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_z: usize,
    pub dst_lod: usize,
    pub dst_kind: c_uint,
    pub dst_host: Handle,
    pub dst_device: Pointer,
    pub dst_array: Handle,
    pub dst_reserved: Handle,
    pub dst_pitch: usize,
    pub dst_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `CUlaunchAttributeValue`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct AttributeValue(pub [u8; 64]);

/// `CUlaunchAttribute`.
#[repr(C)]
pub struct Attribute {
    pub id: c_uint,
    pub padding: c_uint,
    pub value: AttributeValue,
}

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchDescription {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub stream: Handle,
    pub attributes: *const Attribute,
    pub count: c_uint,
}

/// `CUDA_KERNEL_NODE_PARAMS` (version 2).
#[repr(C)]
pub struct KernelNode {
    pub function: Handle,
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub parameters: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kernel: Handle,
    pub context: Handle,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
pub struct FillNode {
    pub address: Pointer,
    pub pitch: usize,
    pub value: c_uint,
    pub element: c_uint,
    pub width: usize,
    pub height: usize,
}

impl From<&Fill> for FillNode {
    fn from(fill: &Fill) -> FillNode {
        FillNode {
            address: fill.dst,
            pitch: fill.pitch as usize,
            value: fill.value,
            element: fill.element,
            width: fill.width as usize,
            height: fill.height as usize,
        }
    }
}

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
pub struct HostNode {
    pub function: unsafe extern "C" fn(*mut c_void),
    pub data: *mut c_void,
}

/// `CUstreamBatchMemOpParams`: 48 bytes.
#[repr(C)]
pub struct MemoryWords {
    pub kind: c_uint,
    pub padding: c_uint,
    pub address: Pointer,
    pub value: u64,
    pub flags: c_uint,
    pub padding_2: c_uint,
    pub alias: Pointer,
    pub rest: [u64; 1],
}

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`.
#[repr(C)]
pub struct MemoryNode {
    pub context: Handle,
    pub count: c_uint,
    pub words: *mut MemoryWords,
    pub flags: c_uint,
}

/// `CUtensorMap`.
#[repr(C, align(64))]
pub struct EncodedTensorMap(pub [u8; TENSOR_MAP_BYTES]);

/// `CUuuid`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Uuid(pub [u8; 16]);

macro_rules! driver {
    ($($name:ident = $symbol:literal ( $($argument:ty),* );)*) => {
        /// The functions that gpud uses.
        pub struct Driver {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> Status,)*
        }

        impl Driver {
            fn from_library(library: *mut c_void) -> CudaResult<Driver> {
                Ok(Driver {
                    $($name: {
                        // SAFETY: `library` is an open library, the symbol a C string.
                        let found = unsafe { libc::dlsym(library, concat!($symbol, "\0").as_ptr().cast()) };
                        if found.is_null() {
                            let text = concat!("the installed NVIDIA driver is too old: it has no ", $symbol);
                            return Err(CudaError::new(code::NOT_SUPPORTED, text));
                        }
                        // SAFETY: the driver exports this symbol with this prototype (cuda.h).
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> Status>(found)
                        }
                    },)*
                })
            }

            /// Every function does nothing and succeeds.
            #[cfg(test)]
            pub fn idle() -> Driver {
                Driver {
                    $($name: {
                        unsafe extern "C" fn nothing($(_: $argument),*) -> Status {
                            0
                        }
                        nothing
                    },)*
                }
            }
        }
    };
}

driver! {
    init = "cuInit" (c_uint);
    driver_version = "cuDriverGetVersion" (*mut c_int);
    error_string = "cuGetErrorString" (Status, *mut *const c_char);
    device_count = "cuDeviceGetCount" (*mut c_int);
    device_get = "cuDeviceGet" (*mut DeviceNumber, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, DeviceNumber);
    device_uuid = "cuDeviceGetUuid_v2" (*mut Uuid, DeviceNumber);
    device_memory = "cuDeviceTotalMem_v2" (*mut usize, DeviceNumber);
    device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, DeviceNumber);
    device_peer = "cuDeviceCanAccessPeer" (*mut c_int, DeviceNumber, DeviceNumber);
    context_retain = "cuDevicePrimaryCtxRetain" (*mut Handle, DeviceNumber);
    context_set = "cuCtxSetCurrent" (Handle);
    context_synchronize = "cuCtxSynchronize" ();
    context_set_limit = "cuCtxSetLimit" (c_uint, usize);
    address_reserve = "cuMemAddressReserve" (*mut Pointer, usize, usize, Pointer, u64);
    address_free = "cuMemAddressFree" (Pointer, usize);
    granularity = "cuMemGetAllocationGranularity" (*mut usize, *const AllocationProperties, c_int);
    memory_create = "cuMemCreate" (*mut u64, usize, *const AllocationProperties, u64);
    memory_release = "cuMemRelease" (u64);
    memory_export = "cuMemExportToShareableHandle" (*mut c_void, u64, c_int, u64);
    memory_import = "cuMemImportFromShareableHandle" (*mut u64, *mut c_void, c_int);
    memory_map = "cuMemMap" (Pointer, usize, usize, u64, u64);
    memory_unmap = "cuMemUnmap" (Pointer, usize);
    memory_access = "cuMemSetAccess" (Pointer, usize, *const Access, usize);
    host_alloc = "cuMemAllocHost_v2" (*mut *mut c_void, usize);
    host_free = "cuMemFreeHost" (*mut c_void);
    host_register = "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
    host_unregister = "cuMemHostUnregister" (*mut c_void);
    copy_in = "cuMemcpyHtoDAsync_v2" (Pointer, *const c_void, usize, Handle);
    copy_out = "cuMemcpyDtoHAsync_v2" (*mut c_void, Pointer, usize, Handle);
    copy_in_now = "cuMemcpyHtoD_v2" (Pointer, *const c_void, usize);
    copy_out_now = "cuMemcpyDtoH_v2" (*mut c_void, Pointer, usize);
    copy_device = "cuMemcpyDtoDAsync_v2" (Pointer, Pointer, usize, Handle);
    copy_2d = "cuMemcpy2DAsync_v2" (*const Copy2DDescription, Handle);
    fill_8 = "cuMemsetD2D8Async" (Pointer, usize, u8, usize, usize, Handle);
    fill_16 = "cuMemsetD2D16Async" (Pointer, usize, u16, usize, usize, Handle);
    fill_32 = "cuMemsetD2D32Async" (Pointer, usize, c_uint, usize, usize, Handle);
    module_load = "cuModuleLoadDataEx" (*mut Handle, *const c_void, c_uint, *const c_uint, *mut *mut c_void);
    module_unload = "cuModuleUnload" (Handle);
    module_function_count = "cuModuleGetFunctionCount" (*mut c_uint, Handle);
    module_functions = "cuModuleEnumerateFunctions" (*mut Handle, c_uint, Handle);
    module_function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    module_global = "cuModuleGetGlobal_v2" (*mut Pointer, *mut usize, Handle, *const c_char);
    function_name = "cuFuncGetName" (*mut *const c_char, Handle);
    function_load = "cuFuncLoad" (Handle);
    function_parameter = "cuFuncGetParamInfo" (Handle, usize, *mut usize, *mut usize);
    function_attribute = "cuFuncGetAttribute" (*mut c_int, c_int, Handle);
    function_set_attribute = "cuFuncSetAttribute" (Handle, c_int, c_int);
    launch = "cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
    launch_cooperative = "cuLaunchCooperativeKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void
    );
    stream_create = "cuStreamCreateWithPriority" (*mut Handle, c_uint, c_int);
    stream_destroy = "cuStreamDestroy_v2" (Handle);
    stream_query = "cuStreamQuery" (Handle);
    stream_wait = "cuStreamWaitEvent" (Handle, Handle, c_uint);
    stream_begin_capture = "cuStreamBeginCapture_v2" (Handle, c_uint);
    stream_end_capture = "cuStreamEndCapture" (Handle, *mut Handle);
    event_create = "cuEventCreate" (*mut Handle, c_uint);
    event_destroy = "cuEventDestroy_v2" (Handle);
    event_record = "cuEventRecord" (Handle, Handle);
    event_query = "cuEventQuery" (Handle);
    event_synchronize = "cuEventSynchronize" (Handle);
    event_elapsed = "cuEventElapsedTime" (*mut f32, Handle, Handle);
    launch_with = "cuLaunchKernelEx" (*const LaunchDescription, Handle, *mut *mut c_void, *mut *mut c_void);
    launch_host = "cuLaunchHostFunc" (Handle, unsafe extern "C" fn(*mut c_void), *mut c_void);
    stream_set_attribute = "cuStreamSetAttribute" (Handle, c_uint, *const AttributeValue);
    stream_memory = "cuStreamBatchMemOp_v2" (Handle, c_uint, *mut MemoryWords, c_uint);
    occupancy_blocks = "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" (
        *mut c_int, Handle, c_int, usize, c_uint
    );
    occupancy_shared = "cuOccupancyAvailableDynamicSMemPerBlock" (*mut usize, Handle, c_int, c_int);
    occupancy_clusters = "cuOccupancyMaxActiveClusters" (*mut c_int, Handle, *const LaunchDescription);
    occupancy_cluster_size = "cuOccupancyMaxPotentialClusterSize" (*mut c_int, Handle, *const LaunchDescription);
    tensor_map_tiled = "cuTensorMapEncodeTiled" (
        *mut EncodedTensorMap, c_uint, c_uint, Pointer, *const u64, *const u64, *const c_uint, *const c_uint, c_uint,
        c_uint, c_uint, c_uint
    );
    tensor_map_columns = "cuTensorMapEncodeIm2col" (
        *mut EncodedTensorMap, c_uint, c_uint, Pointer, *const u64, *const u64, *const c_int, *const c_int, c_uint,
        c_uint, *const c_uint, c_uint, c_uint, c_uint, c_uint
    );
    tensor_map_move = "cuTensorMapReplaceAddress" (*mut EncodedTensorMap, Pointer);
    graph_create = "cuGraphCreate" (*mut Handle, c_uint);
    graph_destroy = "cuGraphDestroy" (Handle);
    graph_add_empty = "cuGraphAddEmptyNode" (*mut Handle, Handle, *const Handle, usize);
    graph_add_kernel = "cuGraphAddKernelNode_v2" (*mut Handle, Handle, *const Handle, usize, *const KernelNode);
    graph_kernel_attribute = "cuGraphKernelNodeSetAttribute" (Handle, c_uint, *const AttributeValue);
    graph_add_copy = "cuGraphAddMemcpyNode" (
        *mut Handle, Handle, *const Handle, usize, *const Copy3DDescription, Handle
    );
    graph_add_fill = "cuGraphAddMemsetNode" (*mut Handle, Handle, *const Handle, usize, *const FillNode, Handle);
    graph_add_host = "cuGraphAddHostNode" (*mut Handle, Handle, *const Handle, usize, *const HostNode);
    graph_add_record = "cuGraphAddEventRecordNode" (*mut Handle, Handle, *const Handle, usize, Handle);
    graph_add_wait = "cuGraphAddEventWaitNode" (*mut Handle, Handle, *const Handle, usize, Handle);
    graph_add_child = "cuGraphAddChildGraphNode" (*mut Handle, Handle, *const Handle, usize, Handle);
    graph_add_memory = "cuGraphAddBatchMemOpNode" (*mut Handle, Handle, *const Handle, usize, *const MemoryNode);
    graph_instantiate = "cuGraphInstantiateWithFlags" (*mut Handle, Handle, u64);
    graph_launch = "cuGraphLaunch" (Handle, Handle);
    graph_upload = "cuGraphUpload" (Handle, Handle);
    graph_exec_destroy = "cuGraphExecDestroy" (Handle);
    graph_set_kernel = "cuGraphExecKernelNodeSetParams_v2" (Handle, Handle, *const KernelNode);
    graph_set_copy = "cuGraphExecMemcpyNodeSetParams" (Handle, Handle, *const Copy3DDescription, Handle);
    graph_set_fill = "cuGraphExecMemsetNodeSetParams" (Handle, Handle, *const FillNode, Handle);
    graph_set_host = "cuGraphExecHostNodeSetParams" (Handle, Handle, *const HostNode);
    graph_set_record = "cuGraphExecEventRecordNodeSetEvent" (Handle, Handle, Handle);
    graph_set_wait = "cuGraphExecEventWaitNodeSetEvent" (Handle, Handle, Handle);
    graph_set_child = "cuGraphExecChildGraphNodeSetParams" (Handle, Handle, Handle);
    graph_set_memory = "cuGraphExecBatchMemOpNodeSetParams" (Handle, Handle, *const MemoryNode);
    graph_set_enabled = "cuGraphNodeSetEnabled" (Handle, Handle, c_uint);
}

impl Driver {
    /// The driver library of this name or path, loaded and initialised once in a process.
    pub fn open(library: &str) -> CudaResult<&'static Driver> {
        static DRIVER: OnceLock<CudaResult<Driver>> = OnceLock::new();
        let name = CString::new(library);
        let name = name.map_err(|_| CudaError::new(code::INVALID_VALUE, "the driver's path holds a zero byte"))?;
        DRIVER.get_or_init(|| load(&name)).as_ref().map_err(Clone::clone)
    }

    /// A call's outcome with the driver's own words.
    pub fn check(&self, status: Status) -> CudaResult<()> {
        if status == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: the driver writes a pointer to a constant string, or leaves it null.
        let known = unsafe { (self.error_string)(status, &mut text) } == 0 && !text.is_null();
        // SAFETY: a NUL-terminated string that lives as long as the driver.
        let text = if known { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() } else { String::new() };
        Err(CudaError::new(status as u32, text))
    }
}

fn load(name: &CStr) -> CudaResult<Driver> {
    // SAFETY: a C string and valid flags; the library is never closed, so that its functions stay.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: dlerror gives null or a string that holds until the next dl call of this thread.
        let reason = unsafe { libc::dlerror() };
        let reason =
            // SAFETY: checked for null.
            if reason.is_null() { String::new() } else { unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned() };
        return Err(CudaError::new(code::NO_DEVICE, format!("this host has no NVIDIA driver: {reason}")));
    }
    let driver = Driver::from_library(library)?;
    // SAFETY: cuInit takes 0.
    driver.check(unsafe { (driver.init)(0) })?;
    Ok(driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_have_the_sizes_of_cuda_h() {
        assert_eq!(size_of::<Copy3DDescription>(), 200);
        assert_eq!((size_of::<Attribute>(), size_of::<LaunchDescription>()), (72, 56));
        assert_eq!((size_of::<KernelNode>(), size_of::<FillNode>()), (72, 40));
        assert_eq!((size_of::<MemoryWords>(), size_of::<MemoryNode>()), (48, 32));
    }

    #[test]
    fn a_host_without_a_driver_is_told_so() {
        let error = load(c"libcuda-that-nobody-has.so.1").err().expect("no such library");
        assert_eq!(error.code, code::NO_DEVICE);
        assert!(error.text.contains("no NVIDIA driver"), "{error}");
    }

    #[test]
    fn a_library_that_is_no_driver_is_told_apart() {
        let error = load(c"libc.so.6").err().expect("not a driver");
        assert_eq!(error.code, code::NOT_SUPPORTED);
        assert!(error.text.contains("cuInit"), "{error}");
    }
}
