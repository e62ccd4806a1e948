//! Tables of driver functions, loaded from a given `libcuda.so.1`.

use std::ffi::{CString, c_char, c_void};
use std::path::Path;

/// A table of functions by their C signatures: `table! { Name; function(types); … }`.
macro_rules! table {
    ($table:ident; $($name:ident($($argument:ty),*);)*) => {
        /// Functions of a driver library.
        #[allow(non_snake_case, missing_docs)]
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> u32,)*
        }

        impl $table {
            /// Looks the functions up.
            pub fn of(library: $crate::driver::Library) -> Self {
                Self {
                    $($name: {
                        // An older driver may not have it: only whoever calls it hears of that.
                        let absent = $crate::driver::absent as unsafe extern "C" fn() -> u32 as *mut std::ffi::c_void;
                        let found = library.symbol(stringify!($name)).unwrap_or(absent);
                        // SAFETY: the CUDA Driver API gives the function this signature.
                        unsafe {
                            std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($argument),*) -> u32>(found)
                        }
                    },)*
                }
            }
        }
    };
}
pub(crate) use table;

/// Stands for a function that the library does not export.
pub(crate) unsafe extern "C" fn absent() -> u32 {
    u32::MAX
}

/// An open driver library; it stays open.
#[derive(Clone, Copy)]
pub struct Library(*mut c_void);

// SAFETY: a handle of dlopen may be used from any thread, and is never closed.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Opens it.
    pub fn open(path: &Path) -> Result<Self, String> {
        let name = CString::new(path.display().to_string()).map_err(|error| error.to_string())?;
        // SAFETY: a valid C string.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        if library.is_null() { Err(format!("{} cannot be loaded", path.display())) } else { Ok(Self(library)) }
    }

    /// The address of an exported function.
    pub fn symbol(self, name: &str) -> Result<*mut c_void, String> {
        let text = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: an open library and a valid C string.
        let found = unsafe { libc::dlsym(self.0, text.as_ptr()) };
        if found.is_null() { Err(format!("{name} is missing")) } else { Ok(found) }
    }
}

/// What the programs use.
pub struct Driver {
    common: Common,
    /// For programs that need more than [`Common`].
    pub library: Library,
}

impl Driver {
    /// Loads a driver library.
    pub fn load(path: &Path) -> Result<Self, String> {
        let library = Library::open(path)?;
        Ok(Self { common: Common::of(library), library })
    }

    /// Whether the library has a function: programs leave out what newer drivers alone have.
    pub fn has(&self, name: &str) -> bool {
        self.library.symbol(name).is_ok()
    }

    /// Whether it is our client, which answers for any handle; others may die of one that is destroyed.
    pub fn is_ours(&self) -> bool {
        self.has("sluice_request")
    }

    /// Whether free memory is told to the byte at once, as our client does of the software GPU. What a driver takes beside
    /// allocations is measured, and known some time later.
    pub fn counts_exactly(&self) -> bool {
        self.is_ours() && std::env::var("SLUICE_GPU_TYPE").is_ok_and(|gpu_type| gpu_type == "soft")
    }
}

impl std::ops::Deref for Driver {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

table! {
    Common;
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
