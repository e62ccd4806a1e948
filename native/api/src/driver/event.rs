//! Events.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Posted cuEventCreate 2000 (event: output *mut usize, flags: input u32);
    Posted cuEventDestroy_v2 4000 (event: input usize);
    Posted cuEventRecord 2000 ptsz (event: input usize, stream: input usize);
    Posted cuEventRecordWithFlags 11010 ptsz (event: input usize, stream: input usize, flags: input u32);
    Call cuEventSynchronize 2000 (event: input usize);
    Call cuEventQuery 2000 (event: input usize);
    Call cuEventElapsedTime 2000 (milliseconds: output *mut f32, start: input usize, end: input usize);
    Call cuEventElapsedTime_v2 = cuEventElapsedTime 12080
        (milliseconds: output *mut f32, start: input usize, end: input usize);
    Posted cuEventDestroy = cuEventDestroy_v2 2000 (event: input usize);
};
