//! Occupancy.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Local cuOccupancyMaxActiveBlocksPerMultiprocessor 6050
        (blocks: output *mut i32, function: input usize, block: input i32, shared_bytes: input usize);
    Local cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000
        (blocks: output *mut i32, function: input usize, block: input i32, shared_bytes: input usize,
         flags: input u32);
    Local cuOccupancyMaxPotentialBlockSize 6050
        (grid: output *mut i32, block: output *mut i32, function: input usize,
         shared_of_block: input Option<unsafe extern "C" fn(i32) -> usize>, shared_bytes: input usize,
         limit: input i32);
    Local cuOccupancyMaxPotentialBlockSizeWithFlags 7000
        (grid: output *mut i32, block: output *mut i32, function: input usize,
         shared_of_block: input Option<unsafe extern "C" fn(i32) -> usize>, shared_bytes: input usize,
         limit: input i32, flags: input u32);
    Local cuOccupancyAvailableDynamicSMemPerBlock 10020
        (bytes: output *mut usize, function: input usize, blocks: input i32, block: input i32);
    Call cuOccupancyMaxActiveClusters 11070
        (count: output *mut i32, function: input usize, config: input *const LaunchConfig);
    Call cuOccupancyMaxPotentialClusterSize 11070
        (size: output *mut i32, function: input usize, config: input *const LaunchConfig);
};
