//! Contexts: the primary one and the program's own.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Local cuDevicePrimaryCtxRetain 7000 (context: output *mut usize, device: input i32);
    Call cuDevicePrimaryCtxRelease 7000 (device: input i32);
    Call cuDevicePrimaryCtxRelease_v2 = cuDevicePrimaryCtxRelease 11000 (device: input i32);
    Local cuDevicePrimaryCtxSetFlags 7000 (device: input i32, flags: input u32);
    Local cuDevicePrimaryCtxSetFlags_v2 = cuDevicePrimaryCtxSetFlags 11000 (device: input i32, flags: input u32);
    Local cuDevicePrimaryCtxGetState 7000 (device: input i32, flags: output *mut u32, active: output *mut i32);
    Call cuDevicePrimaryCtxReset 7000 (device: input i32);
    Call cuDevicePrimaryCtxReset_v2 = cuDevicePrimaryCtxReset 11000 (device: input i32);
    Local cuCtxCreate_v2 3020 (context: output *mut usize, flags: input u32, device: input i32);
    Local cuCtxCreate_v3 11040
        (context: output *mut usize, affinity: input *const c_void, count: input i32, flags: input u32,
         device: input i32);
    Local cuCtxCreate_v4 12050
        (context: output *mut usize, parameters: input *const c_void, flags: input u32, device: input i32);
    Call cuCtxDestroy_v2 4000 (context: input usize);
    Local cuCtxPushCurrent_v2 4000 (context: input usize);
    Local cuCtxPopCurrent_v2 4000 (context: optional *mut usize);
    Local cuCtxSetCurrent 4000 (context: input usize);
    Local cuCtxGetCurrent 4000 (context: output *mut usize);
    Local cuCtxGetDevice 2000 (device: output *mut i32);
    Local cuCtxGetDevice_v2 13000 (device: output *mut i32, context: input usize);
    Local cuCtxGetFlags 7000 (flags: output *mut u32);
    Local cuCtxGetId 12000 (context: input usize, id: output *mut u64);
    Local cuCtxGetApiVersion 3020 (context: input usize, version: output *mut u32);
    Call cuCtxSynchronize 2000 ();
    Call cuCtxSynchronize_v2 13000 (context: input usize);
    Local cuCtxGetLimit 3010 (value: output *mut usize, limit: input u32);
    Local cuCtxSetLimit 3010 (limit: input u32, value: input usize);
    Local cuCtxGetCacheConfig 3020 (config: output *mut u32);
    Local cuCtxSetCacheConfig 3020 (config: input u32);
    Local cuCtxGetSharedMemConfig 4020 (config: output *mut u32);
    Local cuCtxSetSharedMemConfig 4020 (config: input u32);
    Local cuCtxGetStreamPriorityRange 5050 (least: optional *mut i32, greatest: optional *mut i32);
    Call cuCtxEnablePeerAccess 4000 (peer: input usize, flags: input u32);
    Local cuCtxDisablePeerAccess 4000 (peer: input usize);
    Local cuCtxCreate = cuCtxCreate_v2 2000 (context: output *mut usize, flags: input u32, device: input i32);
    Call cuCtxDestroy = cuCtxDestroy_v2 2000 (context: input usize);
    Local cuCtxPushCurrent = cuCtxPushCurrent_v2 2000 (context: input usize);
    Local cuCtxPopCurrent = cuCtxPopCurrent_v2 2000 (context: optional *mut usize);
    Local cuCtxSetFlags 12010 (flags: input u32);
    Local cuCtxResetPersistingL2Cache 11000 ();
    Call cuCtxRecordEvent 12050 (context: input usize, event: input usize);
    Call cuCtxWaitEvent 12050 (context: input usize, event: input usize);
};

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "usage counts of contexts ended with CUDA 4; use cuCtxPushCurrent and cuCtxPopCurrent" {
        cuCtxAttach 2000,
        cuCtxDetach 2000,
    }
};
