//! Copies and fills.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Posted cuMemcpyHtoD_v2 3020 ptds (target: input u64, source: input *const c_void, bytes: input usize);
    Posted cuMemcpyHtoDAsync_v2 3020 ptsz
        (target: input u64, source: input *const c_void, bytes: input usize, stream: input usize);
    Call cuMemcpyDtoH_v2 3020 ptds (target: output *mut c_void, source: input u64, bytes: input usize);
    Call cuMemcpyDtoHAsync_v2 3020 ptsz
        (target: output *mut c_void, source: input u64, bytes: input usize, stream: input usize);
    Posted cuMemcpyDtoD_v2 3020 ptds (target: input u64, source: input u64, bytes: input usize);
    Posted cuMemcpyDtoDAsync_v2 3020 ptsz
        (target: input u64, source: input u64, bytes: input usize, stream: input usize);
    Call cuMemcpy 4000 ptds (target: input u64, source: input u64, bytes: input usize);
    Call cuMemcpyAsync 4000 ptsz (target: input u64, source: input u64, bytes: input usize, stream: input usize);
    Posted cuMemsetD8_v2 3020 ptds (address: input u64, value: input u8, count: input usize);
    Posted cuMemsetD16_v2 3020 ptds (address: input u64, value: input u16, count: input usize);
    Posted cuMemsetD32_v2 3020 ptds (address: input u64, value: input u32, count: input usize);
    Posted cuMemsetD8Async 3020 ptsz (address: input u64, value: input u8, count: input usize, stream: input usize);
    Posted cuMemsetD16Async 3020 ptsz (address: input u64, value: input u16, count: input usize, stream: input usize);
    Posted cuMemsetD32Async 3020 ptsz (address: input u64, value: input u32, count: input usize, stream: input usize);
    Call cuMemcpy2D_v2 3020 ptds (copy: input *const Copy2D);
    Call cuMemcpy2DUnaligned_v2 = cuMemcpy2D_v2 3020 ptds (copy: input *const Copy2D);
    Call cuMemcpy2DAsync_v2 3020 ptsz (copy: input *const Copy2D, stream: input usize);
    Call cuMemcpy3D_v2 3020 ptds (copy: input *const Copy3D);
    Call cuMemcpy3DAsync_v2 3020 ptsz (copy: input *const Copy3D, stream: input usize);
    Posted cuMemcpyPeer 4000 ptds
        (target: input u64, target_context: input usize, source: input u64, source_context: input usize,
         bytes: input usize);
    Posted cuMemcpyPeerAsync 4000 ptsz
        (target: input u64, target_context: input usize, source: input u64, source_context: input usize,
         bytes: input usize, stream: input usize);
    Call cuMemcpy3DPeer 4000 ptds (copy: input *const Copy3D);
    Call cuMemcpy3DPeerAsync 4000 ptsz (copy: input *const Copy3D, stream: input usize);
    Call cuMemcpyBatchAsync 12080 ptsz
        (targets: input *const u64, sources: input *const u64, sizes: input *const usize, count: input usize,
         attributes: input *const c_void, first: input *const usize, kinds: input usize, failed: output *mut usize,
         stream: input usize);
    Call cuMemcpyBatchAsync_v2 13000 ptsz
        (targets: input *const u64, sources: input *const u64, sizes: input *const usize, count: input usize,
         attributes: input *const c_void, first: input *const usize, kinds: input usize, stream: input usize);
    Call cuMemcpyWithAttributesAsync 13020 ptsz
        (target: input u64, source: input u64, bytes: input usize, attributes: input *const c_void,
         stream: input usize);
    Posted cuMemsetD2D8_v2 3020 ptds
        (address: input u64, pitch: input usize, value: input u8, width: input usize, height: input usize);
    Posted cuMemsetD2D16_v2 3020 ptds
        (address: input u64, pitch: input usize, value: input u16, width: input usize, height: input usize);
    Posted cuMemsetD2D32_v2 3020 ptds
        (address: input u64, pitch: input usize, value: input u32, width: input usize, height: input usize);
    Posted cuMemsetD2D8Async 3020 ptsz
        (address: input u64, pitch: input usize, value: input u8, width: input usize, height: input usize,
         stream: input usize);
    Posted cuMemsetD2D16Async 3020 ptsz
        (address: input u64, pitch: input usize, value: input u16, width: input usize, height: input usize,
         stream: input usize);
    Posted cuMemsetD2D32Async 3020 ptsz
        (address: input u64, pitch: input usize, value: input u32, width: input usize, height: input usize,
         stream: input usize);
};

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "the 32-bit ABI of CUDA 3.1 and older cannot hold this device's addresses and sizes; use the _v2 function" {
        cuMemcpy2D 2000,
        cuMemcpy2DAsync 2000,
        cuMemcpy2DUnaligned 2000,
        cuMemcpy3D 2000,
        cuMemcpy3DAsync 2000,
        cuMemcpyDtoD 2000,
        cuMemcpyDtoDAsync 3000,
        cuMemcpyDtoH 2000,
        cuMemcpyDtoHAsync 2000,
        cuMemcpyHtoD 2000,
        cuMemcpyHtoDAsync 2000,
        cuMemsetD16 2000,
        cuMemsetD2D16 2000,
        cuMemsetD2D32 2000,
        cuMemsetD2D8 2000,
        cuMemsetD32 2000,
        cuMemsetD8 2000,
    }
    "3D copies in batches are not served; use cuMemcpy3DAsync" {
        cuMemcpy3DBatchAsync 12080 ptsz,
        cuMemcpy3DBatchAsync_v2 13000 ptsz,
        cuMemcpy3DWithAttributesAsync 13020 ptsz,
    }
};
