//! Modules, libraries, kernels, functions, the linker.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Call cuModuleLoad 2000 (module: output *mut usize, path: input *const c_char);
    Call cuModuleLoadData 2000 (module: output *mut usize, image: input *const c_void);
    Call cuModuleLoadDataEx 2010
        (module: output *mut usize, image: input *const c_void, count: input u32, options: input *const u32,
         values: both *mut *mut c_void);
    Call cuModuleLoadFatBinary = cuModuleLoadData 2000 (module: output *mut usize, image: input *const c_void);
    Posted cuModuleUnload 2000 (module: input usize);
    Local cuModuleGetLoadingMode 11070 (mode: output *mut u32);
    Local cuModuleGetFunction 2000 (function: output *mut usize, module: input usize, name: input *const c_char);
    Local cuModuleGetFunctionCount 12040 (count: output *mut u32, module: input usize);
    Local cuModuleEnumerateFunctions 12040 (functions: output *mut usize, count: input u32, module: input usize);
    Local cuModuleGetGlobal_v2 3020
        (address: optional *mut u64, bytes: optional *mut usize, module: input usize, name: input *const c_char);
    Call cuLibraryLoadData 12000
        (library: output *mut usize, image: input *const c_void, jit_options: input *const u32,
         jit_values: both *mut *mut c_void, jit_count: input u32, options: input *const u32,
         values: input *const *mut c_void, count: input u32);
    Call cuLibraryLoadFromFile 12000
        (library: output *mut usize, path: input *const c_char, jit_options: input *const u32,
         jit_values: both *mut *mut c_void, jit_count: input u32, options: input *const u32,
         values: input *const *mut c_void, count: input u32);
    Posted cuLibraryUnload = cuModuleUnload 12000 (library: input usize);
    Local cuLibraryGetKernel = cuModuleGetFunction 12000
        (kernel: output *mut usize, library: input usize, name: input *const c_char);
    Local cuLibraryGetKernelCount = cuModuleGetFunctionCount 12040 (count: output *mut u32, library: input usize);
    Local cuLibraryEnumerateKernels = cuModuleEnumerateFunctions 12040
        (kernels: output *mut usize, count: input u32, library: input usize);
    Local cuLibraryGetModule 12000 (module: output *mut usize, library: input usize);
    Local cuLibraryGetGlobal = cuModuleGetGlobal_v2 12000
        (address: optional *mut u64, bytes: optional *mut usize, library: input usize, name: input *const c_char);
    Local cuKernelGetFunction 12000 (function: output *mut usize, kernel: input usize);
    Local cuKernelGetLibrary = cuFuncGetModule 12050 (library: output *mut usize, kernel: input usize);
    Local cuKernelGetName = cuFuncGetName 12030 (name: output *mut *const c_char, kernel: input usize);
    Local cuKernelGetParamInfo = cuFuncGetParamInfo 12040
        (kernel: input usize, index: input usize, offset: output *mut usize, bytes: optional *mut usize);
    Local cuKernelGetAttribute 12000
        (value: output *mut i32, attribute: input u32, kernel: input usize, device: input i32);
    Posted cuKernelSetAttribute 12000
        (attribute: input u32, value: input i32, kernel: input usize, device: input i32);
    Local cuKernelSetCacheConfig 12000 (kernel: input usize, config: input u32, device: input i32);
    Local cuFuncGetModule 11000 (module: output *mut usize, function: input usize);
    Local cuFuncGetName 12030 (name: output *mut *const c_char, function: input usize);
    Local cuFuncGetParamInfo 12040
        (function: input usize, index: input usize, offset: output *mut usize, bytes: optional *mut usize);
    Local cuFuncIsLoaded 12040 (state: output *mut u32, function: input usize);
    Local cuFuncLoad 12040 (function: input usize);
    Local cuFuncGetAttribute 2020 (value: output *mut i32, attribute: input u32, function: input usize);
    Posted cuFuncSetAttribute 9000 (function: input usize, attribute: input u32, value: input i32);
    Local cuFuncSetCacheConfig 3000 (function: input usize, config: input u32);
    Local cuFuncSetSharedMemConfig 4020 (function: input usize, config: input u32);
    Local cuLinkCreate_v2 6050
        (count: input u32, options: input *const u32, values: both *mut *mut c_void, state: output *mut usize);
    Local cuLinkAddData_v2 6050
        (state: input usize, kind: input u32, data: input *const c_void, bytes: input usize,
         name: input *const c_char, count: input u32, options: input *const u32, values: input *const *mut c_void);
    Local cuLinkAddFile_v2 6050
        (state: input usize, kind: input u32, path: input *const c_char, count: input u32, options: input *const u32,
         values: input *const *mut c_void);
    Local cuLinkComplete 5050 (state: input usize, image: output *mut *mut c_void, bytes: optional *mut usize);
    Local cuLinkDestroy 5050 (state: input usize);
    Local cuLinkCreate = cuLinkCreate_v2 5050
        (count: input u32, options: input *const u32, values: both *mut *mut c_void, state: output *mut usize);
    Local cuLinkAddData = cuLinkAddData_v2 5050
        (state: input usize, kind: input u32, data: input *const c_void, bytes: input usize, name: input *const c_char,
         count: input u32, options: input *const u32, values: input *const *mut c_void);
    Local cuLinkAddFile = cuLinkAddFile_v2 5050
        (state: input usize, kind: input u32, path: input *const c_char, count: input u32, options: input *const u32,
         values: input *const *mut c_void);
    Local cuFuncGetParamCount 13020 (function: input usize, count: output *mut usize);
    Local cuKernelGetParamCount = cuFuncGetParamCount 13020 (kernel: input usize, count: output *mut usize);
    Local cuLibraryGetManaged 12000
        (address: output *mut u64, bytes: output *mut usize, library: input usize, name: input *const c_char);
    Local cuLibraryGetUnifiedFunction 12000
        (function: output *mut *mut c_void, library: input usize, name: input *const c_char);
};

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "the 32-bit ABI of CUDA 3.1 and older cannot hold this device's addresses and sizes; use the _v2 function" {
        cuModuleGetGlobal 2000,
    }
};
