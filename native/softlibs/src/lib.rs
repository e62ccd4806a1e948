//! The libraries that programs use beside the driver (cuBLAS, cuBLASLt, cuFFT, cuRAND, cuSOLVER, cuSPARSE), computed on
//! the CPU for the software GPU: correct first, then fast.
//!
//! [`Libraries::prepare`] checks a call and answers what there is to do; the work itself runs later, in stream order,
//! on copies of its operands.

mod arguments;
mod blas;
mod description;
mod factor;
mod fft;
mod lt;
mod memory;
mod meter;
mod number;
mod objects;
mod rand;
mod solver;
mod sparse;
mod spectral;
mod types;

pub use memory::{Fault, Memory};
pub use meter::{Metered, Short, metered};
pub use objects::{Libraries, Recorded, Step, Work};

use sluice_api::libraries::Status;

/// Why a call is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// In the library's own numbers.
    pub status: u32,
    /// For the person at the notebook; may be empty.
    pub text: String,
}

/// What went wrong, before a library's numbers are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// An argument is not valid.
    Invalid(String),
    /// The combination is not served here.
    Unsupported(String),
    /// What the library has a status of its own for.
    Own(u32, String),
}

impl Problem {
    fn in_words_of(self, status: Status) -> Refused {
        match self {
            Problem::Invalid(text) => Refused { status: status.invalid_value, text },
            Problem::Unsupported(text) => Refused { status: status.not_supported, text },
            Problem::Own(status, text) => Refused { status, text },
        }
    }
}

/// An argument that is not valid.
pub(crate) fn invalid(what: impl Into<String>) -> Problem {
    Problem::Invalid(what.into())
}

/// A combination that is not served.
pub(crate) fn unsupported(what: impl std::fmt::Display) -> Problem {
    Problem::Unsupported(format!("{what} is not served by the software GPU"))
}
