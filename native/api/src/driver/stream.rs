//! Streams.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Posted cuStreamAddCallback 5000 ptsz
        (stream: input usize, function: input Option<unsafe extern "C" fn(usize, u32, *mut c_void)>,
         data: input *mut c_void, flags: input u32);
    Posted cuStreamCreate 2000 (stream: output *mut usize, flags: input u32);
    Posted cuStreamCreateWithPriority 5050 (stream: output *mut usize, flags: input u32, priority: input i32);
    Posted cuStreamDestroy_v2 4000 (stream: input usize);
    Call cuStreamSynchronize 2000 ptsz (stream: input usize);
    Call cuStreamQuery 2000 ptsz (stream: input usize);
    Posted cuStreamWaitEvent 3020 ptsz (stream: input usize, event: input usize, flags: input u32);
    Local cuStreamGetFlags 5050 ptsz (stream: input usize, flags: output *mut u32);
    Local cuStreamGetPriority 5050 ptsz (stream: input usize, priority: output *mut i32);
    Local cuStreamGetId 12000 ptsz (stream: input usize, id: output *mut u64);
    Local cuStreamGetCtx 9020 ptsz (stream: input usize, context: output *mut usize);
    Local cuStreamGetCtx_v2 12050 ptsz (stream: input usize, context: output *mut usize, green: output *mut usize);
    Local cuStreamGetDevice 12080 ptsz (stream: input usize, device: output *mut i32);
    Local cuStreamIsCapturing 10000 ptsz (stream: input usize, status: output *mut u32);
    Posted cuStreamDestroy = cuStreamDestroy_v2 2000 (stream: input usize);
    Posted cuStreamSetAttribute 11000 ptsz (stream: input usize, attribute: input u32, value: input *const c_void);
    Local cuStreamGetAttribute 11000 ptsz (stream: input usize, attribute: input u32, value: output *mut c_void);
    Posted cuStreamCopyAttributes 11000 ptsz (target: input usize, source: input usize);
    Posted cuStreamWaitValue32_v2 11070 ptsz (stream: input usize, address: input u64, value: input u32, flags: input u32);
    Posted cuStreamWriteValue32_v2 11070 ptsz
        (stream: input usize, address: input u64, value: input u32, flags: input u32);
    Posted cuStreamWaitValue64_v2 11070 ptsz (stream: input usize, address: input u64, value: input u64, flags: input u32);
    Posted cuStreamWriteValue64_v2 11070 ptsz
        (stream: input usize, address: input u64, value: input u64, flags: input u32);
    Posted cuStreamBatchMemOp_v2 11070 ptsz
        (stream: input usize, count: input u32, operations: input *const c_void, flags: input u32);
    // The first versions differ in nothing but the rights that a device had to give.
    Posted cuStreamWaitValue32 = cuStreamWaitValue32_v2 8000 ptsz
        (stream: input usize, address: input u64, value: input u32, flags: input u32);
    Posted cuStreamWriteValue32 = cuStreamWriteValue32_v2 8000 ptsz
        (stream: input usize, address: input u64, value: input u32, flags: input u32);
    Posted cuStreamWaitValue64 = cuStreamWaitValue64_v2 9000 ptsz
        (stream: input usize, address: input u64, value: input u64, flags: input u32);
    Posted cuStreamWriteValue64 = cuStreamWriteValue64_v2 9000 ptsz
        (stream: input usize, address: input u64, value: input u64, flags: input u32);
    Posted cuStreamBatchMemOp = cuStreamBatchMemOp_v2 8000 ptsz
        (stream: input usize, count: input u32, operations: input *const c_void, flags: input u32);
};
