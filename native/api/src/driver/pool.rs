//! Stream-ordered allocation and its pools.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Local cuDeviceGetDefaultMemPool 11020 (pool: output *mut usize, device: input i32);
    Local cuDeviceGetMemPool 11020 (pool: output *mut usize, device: input i32);
    Local cuDeviceSetMemPool 11020 (device: input i32, pool: input usize);
    Posted cuMemAllocAsync 11020 ptsz (address: output *mut u64, bytes: input usize, stream: input usize);
    Posted cuMemAllocFromPoolAsync 11020 ptsz
        (address: output *mut u64, bytes: input usize, pool: input usize, stream: input usize);
    Posted cuMemFreeAsync 11020 ptsz (address: input u64, stream: input usize);
    Local cuMemPoolCreate 11020 (pool: output *mut usize, properties: input *const PoolProperties);
    Local cuMemPoolDestroy 11020 (pool: input usize);
    Local cuMemPoolTrimTo 11020 (pool: input usize, keep: input usize);
    Local cuMemPoolGetAttribute 11020 (pool: input usize, attribute: input u32, value: output *mut c_void);
    Local cuMemPoolSetAttribute 11020 (pool: input usize, attribute: input u32, value: input *const c_void);
    Local cuMemGetDefaultMemPool 13000 (pool: output *mut usize, location: input *const Location, kind: input u32);
    Local cuMemGetMemPool 13000 (pool: output *mut usize, location: input *const Location, kind: input u32);
    Local cuMemSetMemPool 13000 (location: input *const Location, kind: input u32, pool: input usize);
    Local cuMemPoolGetAccess 11020 (flags: output *mut u32, pool: input usize, location: input *const Location);
    Call cuMemPoolSetAccess 11020 (pool: input usize, access: input *const Access, count: input usize);
};
