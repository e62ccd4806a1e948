//! The program's own virtual memory management.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Local cuMemAddressReserve 10020
        (address: output *mut u64, bytes: input usize, alignment: input usize, wish: input u64, flags: input u64);
    Local cuMemAddressFree 10020 (address: input u64, bytes: input usize);
    Call cuMemCreate 10020
        (handle: output *mut u64, bytes: input usize, properties: input *const AllocationProperties, flags: input u64);
    Posted cuMemRelease 10020 (handle: input u64);
    Call cuMemMap 10020
        (address: input u64, bytes: input usize, offset: input usize, handle: input u64, flags: input u64);
    Call cuMemUnmap 10020 (address: input u64, bytes: input usize);
    Call cuMemSetAccess 10020 (address: input u64, bytes: input usize, access: input *const Access, count: input usize);
    Local cuMemGetAccess 10020 (flags: output *mut u64, location: input *const Location, address: input u64);
    Local cuMemGetAllocationGranularity 10020
        (bytes: output *mut usize, properties: input *const AllocationProperties, option: input u32);
    Local cuMemGetAllocationPropertiesFromHandle 10020
        (properties: output *mut AllocationProperties, handle: input u64);
    Local cuMemRetainAllocationHandle 11000 (handle: output *mut u64, address: input *const c_void);
};
