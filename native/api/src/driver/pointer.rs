//! What is known of a pointer.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Local cuPointerGetAttribute 4000 (value: output *mut c_void, attribute: input u32, address: input u64);
    Local cuPointerGetAttributes 7000
        (count: input u32, attributes: input *const u32, values: output *const *mut c_void, address: input u64);
    Local cuPointerSetAttribute 6000 (value: input *const c_void, attribute: input u32, address: input u64);
};
