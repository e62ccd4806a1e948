//! What a CUDA function of the client can fail with.

use crate::message;
use sluice_protocol::{Failure, cuda};

/// Result of a CUDA function.
pub type CudaResult<T = ()> = Result<T, CudaError>;

/// A CUresult, with a sentence when there is more to say than its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaError {
    pub code: u32,
    pub text: Option<String>,
}

impl CudaError {
    /// An error whose code says everything.
    pub const fn code(code: u32) -> Self {
        Self { code, text: None }
    }

    /// An error with a sentence for a person.
    pub fn new(code: u32, text: impl Into<String>) -> Self {
        Self { code, text: Some(text.into()) }
    }
}

impl From<Failure> for CudaError {
    fn from(failure: Failure) -> Self {
        let text =
            if failure.text.ends_with(cuda::PTX_ONLY) { message::with_hardware(failure.text) } else { failure.text };
        Self { code: failure.code, text: (!text.is_empty()).then_some(text) }
    }
}

/// CUDA_ERROR_INVALID_VALUE.
pub const INVALID_VALUE: CudaError = CudaError::code(cuda::ERROR_INVALID_VALUE);
/// CUDA_ERROR_INVALID_HANDLE.
pub const INVALID_HANDLE: CudaError = CudaError::code(cuda::ERROR_INVALID_HANDLE);
/// CUDA_ERROR_INVALID_CONTEXT.
pub const INVALID_CONTEXT: CudaError = CudaError::code(cuda::ERROR_INVALID_CONTEXT);
/// CUDA_ERROR_INVALID_DEVICE.
pub const INVALID_DEVICE: CudaError = CudaError::code(cuda::ERROR_INVALID_DEVICE);
/// CUDA_ERROR_NOT_FOUND.
pub const NOT_FOUND: CudaError = CudaError::code(cuda::ERROR_NOT_FOUND);
/// CUDA_ERROR_NOT_SUPPORTED.
pub const NOT_SUPPORTED: CudaError = CudaError::code(cuda::ERROR_NOT_SUPPORTED);
/// CUDA_ERROR_NOT_READY.
pub const NOT_READY: CudaError = CudaError::code(cuda::ERROR_NOT_READY);
