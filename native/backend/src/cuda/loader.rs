//! The driver API as a table of function pointers, filled from libcuda.so.1 at run time.
//! Prototypes: CUDA Driver API reference (`cuda.h` 12.x).

use crate::error::{CudaError, CudaResult, code};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
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
    context_retain = "cuDevicePrimaryCtxRetain" (*mut Handle, DeviceNumber);
    context_set = "cuCtxSetCurrent" (Handle);
    context_synchronize = "cuCtxSynchronize" ();
    address_reserve = "cuMemAddressReserve" (*mut Pointer, usize, usize, Pointer, u64);
    address_free = "cuMemAddressFree" (Pointer, usize);
    granularity = "cuMemGetAllocationGranularity" (*mut usize, *const AllocationProperties, c_int);
    memory_create = "cuMemCreate" (*mut u64, usize, *const AllocationProperties, u64);
    memory_release = "cuMemRelease" (u64);
    memory_map = "cuMemMap" (Pointer, usize, usize, u64, u64);
    memory_unmap = "cuMemUnmap" (Pointer, usize);
    memory_access = "cuMemSetAccess" (Pointer, usize, *const Access, usize);
    host_alloc = "cuMemAllocHost_v2" (*mut *mut c_void, usize);
    host_free = "cuMemFreeHost" (*mut c_void);
    copy_in = "cuMemcpyHtoDAsync_v2" (Pointer, *const c_void, usize, Handle);
    copy_out = "cuMemcpyDtoHAsync_v2" (*mut c_void, Pointer, usize, Handle);
    copy_in_now = "cuMemcpyHtoD_v2" (Pointer, *const c_void, usize);
    copy_out_now = "cuMemcpyDtoH_v2" (*mut c_void, Pointer, usize);
    copy_device = "cuMemcpyDtoDAsync_v2" (Pointer, Pointer, usize, Handle);
    copy_2d = "cuMemcpy2DAsync_v2" (*const Copy2DDescription, Handle);
    fill_8 = "cuMemsetD2D8Async" (Pointer, usize, u8, usize, usize, Handle);
    fill_16 = "cuMemsetD2D16Async" (Pointer, usize, u16, usize, usize, Handle);
    fill_32 = "cuMemsetD2D32Async" (Pointer, usize, c_uint, usize, usize, Handle);
    module_load = "cuModuleLoadData" (*mut Handle, *const c_void);
    module_unload = "cuModuleUnload" (Handle);
    module_function_count = "cuModuleGetFunctionCount" (*mut c_uint, Handle);
    module_functions = "cuModuleEnumerateFunctions" (*mut Handle, c_uint, Handle);
    module_global = "cuModuleGetGlobal_v2" (*mut Pointer, *mut usize, Handle, *const c_char);
    function_name = "cuFuncGetName" (*mut *const c_char, Handle);
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
    event_create = "cuEventCreate" (*mut Handle, c_uint);
    event_destroy = "cuEventDestroy_v2" (Handle);
    event_record = "cuEventRecord" (Handle, Handle);
    event_query = "cuEventQuery" (Handle);
    event_synchronize = "cuEventSynchronize" (Handle);
    event_elapsed = "cuEventElapsedTime" (*mut f32, Handle, Handle);
}

impl Driver {
    /// The driver of this host, loaded and initialised once.
    pub fn get() -> CudaResult<&'static Driver> {
        static DRIVER: OnceLock<CudaResult<Driver>> = OnceLock::new();
        DRIVER.get_or_init(|| load(c"libcuda.so.1")).as_ref().map_err(Clone::clone)
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
