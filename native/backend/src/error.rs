//! CUDA driver error codes with a sentence for people.

use std::fmt;

/// `CUresult` values that the backends produce.
pub mod code {
    pub const INVALID_VALUE: u32 = 1;
    pub const OUT_OF_MEMORY: u32 = 2;
    pub const NO_DEVICE: u32 = 100;
    pub const INVALID_DEVICE: u32 = 101;
    pub const INVALID_IMAGE: u32 = 200;
    pub const NO_BINARY_FOR_GPU: u32 = 209;
    pub const UNSUPPORTED_PTX_VERSION: u32 = 222;
    pub const INVALID_PTX: u32 = 218;
    pub const INVALID_HANDLE: u32 = 400;
    pub const NOT_FOUND: u32 = 500;
    pub const NOT_READY: u32 = 600;
    pub const ILLEGAL_ADDRESS: u32 = 700;
    pub const LAUNCH_FAILED: u32 = 719;
    pub const PEER_ACCESS_UNSUPPORTED: u32 = 217;
    pub const NOT_SUPPORTED: u32 = 801;
    pub const SYSTEM_NOT_READY: u32 = 802;
    pub const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;
    pub const UNKNOWN: u32 = 999;
}

/// A failed operation: CUDA's code and, where one helps, a sentence for the person at the notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaError {
    /// `CUresult`.
    pub code: u32,
    /// What happened, without a stack or an internal name; may be empty.
    pub text: String,
}

/// The result of a backend operation.
pub type CudaResult<T> = Result<T, CudaError>;

impl CudaError {
    /// An error with a sentence.
    pub fn new(code: u32, text: impl Into<String>) -> CudaError {
        CudaError { code, text: text.into() }
    }

    /// Whether CUDA keeps this error for the life of the context: the memory's contents are no longer trusted.
    pub fn is_sticky(&self) -> bool {
        matches!(self.code, 214 | 219 | 700 | 702..=704 | 710 | 714..=719)
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() {
            write!(f, "CUDA error {}", self.code)
        } else {
            write!(f, "{} ({})", self.text, self.code)
        }
    }
}

impl std::error::Error for CudaError {}
