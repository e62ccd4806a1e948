//! Why PTX was refused, and how a launch can fail.

use std::fmt;

/// Why a module cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxError {
    /// Line in the PTX, from 1.
    pub line: u32,
    /// Column in the line, from 1.
    pub column: u32,
    /// The instruction or directive that the engine does not support, if that is the reason.
    pub unsupported: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl PtxError {
    pub(crate) fn syntax(line: u32, column: u32, message: impl Into<String>) -> PtxError {
        PtxError { line, column, unsupported: None, message: message.into() }
    }

    pub(crate) fn unsupported(line: u32, column: u32, name: impl Into<String>) -> PtxError {
        let name = name.into();
        PtxError {
            line,
            column,
            message: format!("the software GPU does not support `{name}`"),
            unsupported: Some(name),
        }
    }
}

impl fmt::Display for PtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for PtxError {}

/// A PTX state space, as an address error names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Generic,
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// Why a launch failed.  Every fault but [`Fault::Cancelled`] and those found before the first instruction
/// ([`Fault::Unsupported`], [`Fault::OutOfResources`], [`Fault::InvalidLaunch`]) is sticky in CUDA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An access outside what is mapped (CUDA error 700).  It was not made.
    IllegalAddress { address: u64, space: Space, write: bool, kernel: String, line: u32 },
    /// An access whose address is not a multiple of its size (716).
    Misaligned { address: u64, size: u32, kernel: String, line: u32 },
    /// The kernel executed `trap` (719).
    Trap { kernel: String, line: u32 },
    /// A device-side `assert` failed (710).
    Assert { message: String },
    /// The kernel cannot go on (719).
    LaunchFailure(String),
    /// The kernel needs an instruction that the engine does not have (209, no image for the device).
    Unsupported { instruction: String, line: u32 },
    /// The launch was told to stop (702, launch timeout).
    Cancelled,
    /// More threads, registers or shared memory than there are (701).
    OutOfResources(String),
    /// The launch itself is wrong: no such kernel, an empty grid, too few parameter bytes (1).
    InvalidLaunch(String),
}

impl Fault {
    /// The CUDA driver API's code for this fault (`CUresult`).
    pub fn cuda_code(&self) -> u32 {
        match self {
            Fault::IllegalAddress { .. } => 700,
            Fault::Misaligned { .. } => 716,
            Fault::Trap { .. } | Fault::LaunchFailure(_) => 719,
            Fault::Assert { .. } => 710,
            Fault::Unsupported { .. } => 209,
            Fault::Cancelled => 702,
            Fault::OutOfResources(_) => 701,
            Fault::InvalidLaunch(_) => 1,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::IllegalAddress { address, space, write, kernel, line } => {
                let verb = if *write { "wrote to" } else { "read" };
                write!(f, "{kernel} {verb} {address:#x} ({space:?}), which is not mapped (PTX line {line})")
            }
            Fault::Misaligned { address, size, kernel, line } => {
                write!(f, "{kernel} used {address:#x} for an access of {size} bytes (PTX line {line})")
            }
            Fault::Trap { kernel, line } => write!(f, "{kernel} executed trap (PTX line {line})"),
            Fault::Assert { message } => write!(f, "device-side assertion failed: {message}"),
            Fault::LaunchFailure(reason) => write!(f, "launch failed: {reason}"),
            Fault::Unsupported { instruction, line } => {
                write!(f, "the software GPU does not support `{instruction}` (PTX line {line})")
            }
            Fault::Cancelled => write!(f, "the launch was cancelled"),
            Fault::OutOfResources(what) => write!(f, "too many resources requested: {what}"),
            Fault::InvalidLaunch(what) => write!(f, "invalid launch: {what}"),
        }
    }
}

impl std::error::Error for Fault {}
