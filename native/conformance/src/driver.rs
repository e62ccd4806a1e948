//! A table of driver functions, loaded from a given `libcuda.so.1`.

use std::ffi::{CString, c_char, c_void};
use std::path::Path;

macro_rules! table {
    ($($name:ident($($argument:ty),*);)*) => {
        /// The functions that the programs use.
        #[allow(non_snake_case, missing_docs)]
        pub struct Driver {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> u32,)*
        }

        impl Driver {
            /// Loads a driver library.
            pub fn load(path: &Path) -> Result<Self, String> {
                let library = open(path)?;
                Ok(Self {
                    $($name: {
                        let found = symbol(library, stringify!($name))?;
                        // SAFETY: the CUDA Driver API gives the function this signature.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> u32>(found) }
                    },)*
                })
            }
        }
    };
}

table! {
    cuInit(u32);
    cuDeviceGet(*mut i32, i32);
    cuDevicePrimaryCtxRetain(*mut usize, i32);
    cuCtxSetCurrent(usize);
    cuCtxSynchronize();
    cuMemAlloc_v2(*mut u64, usize);
    cuMemFree_v2(u64);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemcpyHtoD_v2(u64, *const c_void, usize);
    cuMemcpyDtoH_v2(*mut c_void, u64, usize);
    cuMemcpyDtoD_v2(u64, u64, usize);
    cuMemsetD32_v2(u64, u32, usize);
    cuMemsetD8Async(u64, u8, usize, usize);
    cuModuleLoadData(*mut usize, *const c_void);
    cuModuleUnload(usize);
    cuModuleGetFunction(*mut usize, usize, *const c_char);
    cuFuncGetAttribute(*mut i32, u32, usize);
    cuLaunchKernel(usize, u32, u32, u32, u32, u32, u32, u32, usize, *const *const c_void, *const *const c_void);
    cuStreamCreate(*mut usize, u32);
    cuStreamDestroy_v2(usize);
    cuStreamSynchronize(usize);
    cuStreamWaitEvent(usize, usize, u32);
    cuEventCreate(*mut usize, u32);
    cuEventRecord(usize, usize);
    cuEventSynchronize(usize);
    cuEventQuery(usize);
    cuEventElapsedTime(*mut f32, usize, usize);
    cuEventDestroy_v2(usize);
    cuGetErrorString(u32, *mut *const c_char);
}

fn open(path: &Path) -> Result<*mut c_void, String> {
    let name = CString::new(path.display().to_string()).map_err(|error| error.to_string())?;
    // SAFETY: a valid C string; the library stays loaded.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    if library.is_null() { Err(format!("{} cannot be loaded", path.display())) } else { Ok(library) }
}

fn symbol(library: *mut c_void, name: &str) -> Result<*mut c_void, String> {
    let text = CString::new(name).map_err(|error| error.to_string())?;
    // SAFETY: an open library and a valid C string.
    let found = unsafe { libc::dlsym(library, text.as_ptr()) };
    if found.is_null() { Err(format!("{name} is missing")) } else { Ok(found) }
}
