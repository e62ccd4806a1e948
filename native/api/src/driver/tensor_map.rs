//! Tensor maps: descriptions of tensors by which kernels of compute capability 9.0 and above copy tiles.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Call cuTensorMapEncodeTiled 12000
        (map: output *mut [u8; 128], data_type: input u32, rank: input u32, address: input u64,
         sizes: input *const u64, strides: input *const u64, box_sizes: input *const u32,
         element_strides: input *const u32, interleave: input u32, swizzle: input u32, promotion: input u32,
         fill: input u32);
    Call cuTensorMapEncodeIm2col 12000
        (map: output *mut [u8; 128], data_type: input u32, rank: input u32, address: input u64,
         sizes: input *const u64, strides: input *const u64, lower: input *const i32, upper: input *const i32,
         channels: input u32, pixels: input u32, element_strides: input *const u32, interleave: input u32,
         swizzle: input u32, promotion: input u32, fill: input u32);
    Call cuTensorMapReplaceAddress 12000 (map: output *mut [u8; 128], address: input u64);
};
