//! Streams.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Call cuStreamAddCallback 5000 ptsz
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
};

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "waiting for and writing memory words in stream order is not served; use events" {
        cuStreamBatchMemOp 8000 ptsz,
        cuStreamBatchMemOp_v2 11070 ptsz,
        cuStreamWaitValue32 8000 ptsz,
        cuStreamWaitValue32_v2 11070 ptsz,
        cuStreamWaitValue64 9000 ptsz,
        cuStreamWaitValue64_v2 11070 ptsz,
        cuStreamWriteValue32 8000 ptsz,
        cuStreamWriteValue32_v2 11070 ptsz,
        cuStreamWriteValue64 9000 ptsz,
        cuStreamWriteValue64_v2 11070 ptsz,
    }
    "stream attributes are not served yet" {
        cuStreamCopyAttributes 11000 ptsz,
        cuStreamGetAttribute 11000 ptsz,
        cuStreamSetAttribute 11000 ptsz,
    }
};
