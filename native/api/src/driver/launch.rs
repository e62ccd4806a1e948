//! Launches.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Posted cuLaunchKernel 4000 ptsz
        (function: input usize, grid_x: input u32, grid_y: input u32, grid_z: input u32, block_x: input u32,
         block_y: input u32, block_z: input u32, shared_bytes: input u32, stream: input usize,
         parameters: input *const *const c_void, extra: input *const *const c_void);
    Posted cuLaunchKernelEx 11060 ptsz
        (config: input *const LaunchConfig, function: input usize, parameters: input *const *const c_void,
         extra: input *const *const c_void);
    Posted cuLaunchCooperativeKernel 9000 ptsz
        (function: input usize, grid_x: input u32, grid_y: input u32, grid_z: input u32, block_x: input u32,
         block_y: input u32, block_z: input u32, shared_bytes: input u32, stream: input usize,
         parameters: input *const *const c_void);
    Posted cuLaunchHostFunc 10000 ptsz
        (stream: input usize, function: input Option<unsafe extern "C" fn(*mut c_void)>, data: input *mut c_void);
    Posted cuLaunchHostFunc_v2 13010 ptsz
        (stream: input usize, function: input Option<unsafe extern "C" fn(*mut c_void)>, data: input *mut c_void,
         mode: input u32);
};

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "launches by cuParamSet* ended with CUDA 4; use cuLaunchKernel" {
        cuFuncSetBlockShape 2000,
        cuFuncSetSharedSize 2000,
        cuLaunch 2000,
        cuLaunchGrid 2000,
        cuLaunchGridAsync 2000,
        cuParamSetSize 2000,
        cuParamSetf 2000,
        cuParamSeti 2000,
        cuParamSetv 2000,
    }
    "launches over several devices ended with CUDA 11; launch on each device" {
        cuLaunchCooperativeKernelMultiDevice 9000,
    }
};
