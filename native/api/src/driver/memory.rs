//! Memory: allocation, the host's own, sizes.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Call cuMemGetInfo_v2 3020 (free: optional *mut usize, total: optional *mut usize);
    Posted cuMemAlloc_v2 3020 (address: output *mut u64, bytes: input usize);
    Posted cuMemAllocPitch_v2 3020
        (address: output *mut u64, pitch: output *mut usize, width: input usize, height: input usize,
         element: input u32);
    Posted cuMemFree_v2 3020 (address: input u64);
    Local cuMemGetAddressRange_v2 3020 (base: optional *mut u64, bytes: optional *mut usize, address: input u64);
    Local cuMemAllocHost_v2 3020 (memory: output *mut *mut c_void, bytes: input usize);
    Local cuMemHostAlloc 2020 (memory: output *mut *mut c_void, bytes: input usize, flags: input u32);
    Local cuMemFreeHost 2000 (memory: input *mut c_void);
    Local cuMemHostRegister_v2 6050 (memory: input *mut c_void, bytes: input usize, flags: input u32);
    Local cuMemHostUnregister 4000 (memory: input *mut c_void);
    Local cuMemHostGetFlags 2030 (flags: output *mut u32, memory: input *mut c_void);
};

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "the 32-bit ABI of CUDA 3.1 and older cannot hold this device's addresses and sizes; use the _v2 function" {
        cuMemAlloc 2000,
        cuMemAllocHost 2000,
        cuMemAllocPitch 2000,
        cuMemFree 2000,
        cuMemGetAddressRange 2000,
        cuMemGetInfo 2000,
        cuMemHostRegister 4000,
    }
    "decompression engines are not served: decompress on the CPU or in a kernel" {
        cuMemBatchDecompressAsync 12060 ptsz,
    }
};
