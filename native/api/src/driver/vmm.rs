//! The program's own virtual memory management.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "the program's own virtual memory management is not served yet" {
        cuMemAddressFree 10020,
        cuMemAddressReserve 10020,
        cuMemCreate 10020,
        cuMemGetAccess 10020,
        cuMemGetAllocationGranularity 10020,
        cuMemGetAllocationPropertiesFromHandle 10020,
        cuMemMap 10020,
        cuMemRelease 10020,
        cuMemRetainAllocationHandle 11000,
        cuMemSetAccess 10020,
        cuMemUnmap 10020,
    }
};
