//! Memory that both host and device would reach.

use crate::function::Function;

/// Refusals that a program is told even when it does not look: it goes on with the pointer that it did not get, and ends
/// by a segmentation fault.
pub const TOLD: &[&str] = &["cuMemAllocManaged", "cuMemHostGetDevicePointer_v2"];

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "kernels on a remote GPU cannot reach host memory; allocate device memory and copy" {
        cuMemAdvise 8000,
        cuMemAdvise_v2 12020,
        cuMemAllocManaged 6000,
        cuMemDiscardAndPrefetchBatchAsync 13000 ptsz,
        cuMemDiscardBatchAsync 13000 ptsz,
        cuMemGetLocationInfo 13040,
        cuMemHostGetDevicePointer_v2 3020,
        cuMemPrefetchAsync 8000 ptsz,
        cuMemPrefetchAsync_v2 12020 ptsz,
        cuMemPrefetchBatchAsync 13000 ptsz,
        cuMemRangeGetAttribute 8000,
        cuMemRangeGetAttributes 8000,
        cuStreamAttachMemAsync 6000 ptsz,
    }
    "the 32-bit ABI of CUDA 3.1 and older cannot hold this device's addresses and sizes; use the _v2 function" {
        cuMemHostGetDevicePointer 2020,
    }
};
