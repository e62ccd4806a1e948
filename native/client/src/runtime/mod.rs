//! The CUDA Runtime API, in files named after its objects, over the driver functions of [`crate::driver`]: programs that
//! use both share contexts, streams and pointers, as with NVIDIA's libraries.
//!
//! `libcudart.so.12` and `.13` both lead here; where they disagree about a function, its name ends in `_12` or `_13`.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments, missing_docs)]

pub mod context;
pub mod copy;
pub mod device;
pub mod entry_point;
pub mod error;
pub mod fill;
pub mod function;
pub mod generated;
pub mod graph;
pub mod guard;
pub mod launch;
pub mod memory;
pub mod pointer;
pub mod properties;
pub mod register;
pub mod stream;
pub mod symbol;
pub mod types;

pub use copy::*;
pub use device::*;
pub use entry_point::*;
pub use error::*;
pub use fill::*;
pub use function::*;
pub use graph::*;
pub use launch::*;
pub use memory::*;
pub use pointer::*;
pub use properties::*;
pub use register::*;
pub use stream::*;
pub use symbol::*;

/// cudaStreamPerThread: the default stream of the calling thread.
pub(crate) const PER_THREAD: usize = 2;

/// In programs compiled with a default stream per thread, 0 is that stream.
#[inline]
pub(crate) fn per_thread(stream: usize) -> usize {
    if stream == 0 { PER_THREAD } else { stream }
}

/// Runtime errors that the driver does not have (`driver_types.h`).
pub(crate) mod code {
    pub const INVALID_CONFIGURATION: u32 = 9;
    pub const INVALID_PITCH_VALUE: u32 = 12;
    pub const INVALID_SYMBOL: u32 = 13;
    pub const INVALID_MEMCPY_DIRECTION: u32 = 21;
    pub const MISSING_CONFIGURATION: u32 = 52;
    pub const INVALID_DEVICE_FUNCTION: u32 = 98;
}
