//! Initialisation, versions, errors, the look-up of functions, profilers.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Local cuInit 2000 (flags: input u32);
    Local cuDriverGetVersion 2020 (version: output *mut i32);
    Local cuGetErrorName 6000 (error: input u32, text: output *mut *const c_char);
    Local cuGetErrorString 6000 (error: input u32, text: output *mut *const c_char);
    Local cuGetProcAddress 11030
        (symbol: input *const c_char, function: output *mut *mut c_void, version: input i32, flags: input u64);
    Local cuGetProcAddress_v2 12000
        (symbol: input *const c_char, function: output *mut *mut c_void, version: input i32, flags: input u64,
         status: optional *mut i32);
    Local cuGetExportTable 3000 (table: output *mut *const c_void, id: input *const c_void);
    Local cuProfilerStart 4000 ();
    Local cuProfilerStop 4000 ();
};

/// Functions that a program may call before `cuInit`; any other one then returns CUDA_ERROR_NOT_INITIALIZED (the
/// documentation of `cuInit`). These are the ones whose documentation does not list that error, and that programs or the
/// CUDA runtime call first: versions, error texts, the look-up of functions, and settings of the process.
pub const BEFORE_INIT: &[&str] = &[
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cuGetExportTable",
    "cuCoredumpGetAttributeGlobal",
    "cuCoredumpSetAttributeGlobal",
    "cuCoredumpRegisterStartCallback",
    "cuCoredumpRegisterCompleteCallback",
    "cuCoredumpDeregisterStartCallback",
    "cuCoredumpDeregisterCompleteCallback",
    "cuLogsRegisterCallback",
    "cuLogsUnregisterCallback",
    "cuLogsCurrent",
    "cuLogsDumpToFile",
    "cuLogsDumpToMemory",
];

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "profilers of the driver have nothing to write here; use the profiler of the GPU server" {
        cuProfilerInitialize 4000,
    }
};
