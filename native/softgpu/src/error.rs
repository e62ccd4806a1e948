//! Why PTX was refused, and how a launch can fail.

use crate::names::plain_name;
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
    /// The CUDA driver API's code (`CUresult`): 218, invalid PTX; 222, an unsupported version of it; 209, nothing for this
    /// device, of what the engine lacks.
    pub code: u32,
}

impl PtxError {
    pub(crate) fn syntax(line: u32, column: u32, message: impl Into<String>) -> PtxError {
        PtxError { line, column, unsupported: None, message: message.into(), code: 218 }
    }

    pub(crate) fn unsupported(line: u32, column: u32, name: impl Into<String>) -> PtxError {
        let name = name.into();
        PtxError {
            line,
            column,
            message: format!("the software GPU does not support `{name}`"),
            unsupported: Some(name),
            code: 209,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    Generic,
    Global,
    Const,
    Shared,
    Local,
    Param,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Const => "constant",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Param => "parameter",
        })
    }
}

/// Where in a kernel something went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub kernel: String,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    /// Line in the PTX; 0 if it is not known.
    pub line: u32,
    /// File and line of the program, where the PTX has `.loc` directives.
    pub source: Option<(String, u32)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [x, y, z]) = (self.block, self.thread);
        write!(f, "in {}, block ({bx},{by},{bz}), thread ({x},{y},{z})", plain_name(&self.kernel))?;
        if let Some((file, line)) = &self.source {
            write!(f, ", {file}:{line}")?;
        }
        if self.line > 0 { write!(f, ", PTX line {}", self.line) } else { Ok(()) }
    }
}

/// Why a launch failed.  Every fault but [`Fault::Cancelled`] and those found before the first instruction
/// ([`Fault::Unsupported`], [`Fault::OutOfResources`], [`Fault::InvalidLaunch`]) is sticky in CUDA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An access outside what is mapped (CUDA error 700).  It was not made.
    IllegalAddress {
        address: u64,
        space: Space,
        write: bool,
        /// How much shared memory the block has, if the access was to it.
        shared_bytes: Option<u32>,
        place: Place,
    },
    /// An access whose address is not a multiple of its size (716).
    Misaligned { address: u64, size: u32, place: Place },
    /// The kernel executed `trap` (719).
    Trap { place: Place },
    /// A device-side `assert` failed (710).
    Assert { kernel: String, message: String },
    /// The kernel cannot go on (719).
    LaunchFailure(String),
    /// The kernel needs an instruction that the engine does not have (209, no image for the device).
    Unsupported { instruction: String, line: u32 },
    /// The launch was told to stop (702, launch timeout).
    Cancelled,
    /// The kernel ran longer than the engine's limit (702).
    Timeout { kernel: String, seconds: u64 },
    /// More threads, registers or shared memory than there are (701).
    OutOfResources(String),
    /// The launch itself is wrong: no such kernel, an empty grid, too few parameter bytes (1).
    InvalidLaunch(String),
}

/// Bytes of what the threads of a launch say whose assertions fail; those beyond are left out.
const MOST_ASSERTED: usize = 256 << 10;

impl Fault {
    /// The fault of a launch, with what a later one adds: the first counts, but each thread that fails an assertion says
    /// so.
    pub(crate) fn and(self, other: Fault) -> Fault {
        match (self, other) {
            (Fault::Assert { kernel, mut message }, Fault::Assert { message: more, .. }) => {
                if message.len() + more.len() < MOST_ASSERTED {
                    message.push('\n');
                    message.push_str(&more);
                }
                Fault::Assert { kernel, message }
            }
            // Those who stop because of another say that they were cancelled.
            (Fault::Cancelled, other) => other,
            (first, _) => first,
        }
    }

    /// The CUDA driver API's code for this fault (`CUresult`).
    pub fn cuda_code(&self) -> u32 {
        match self {
            Fault::IllegalAddress { .. } => 700,
            Fault::Misaligned { .. } => 716,
            Fault::Trap { .. } | Fault::LaunchFailure(_) => 719,
            Fault::Assert { .. } => 710,
            Fault::Unsupported { .. } => 209,
            Fault::Cancelled | Fault::Timeout { .. } => 702,
            Fault::OutOfResources(_) => 701,
            Fault::InvalidLaunch(_) => 1,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::IllegalAddress { address, space, write, shared_bytes, place } => {
                let verb = if *write { "write to" } else { "read from" };
                match shared_bytes {
                    Some(bytes) => {
                        write!(f, "out of bounds: {verb} shared memory at {address:#x} of {bytes} bytes, {place}")
                    }
                    None => write!(f, "out of bounds: {verb} {space} address {address:#x}, {place}"),
                }
            }
            Fault::Misaligned { address, size, place } => {
                write!(f, "misaligned address {address:#x} for an access of {size} bytes, {place}")
            }
            Fault::Trap { place } => write!(f, "trap {place}"),
            Fault::Timeout { kernel, seconds } => {
                let kernel = plain_name(kernel);
                write!(f, "{kernel} ran longer than {seconds} s, which is this device's limit for one kernel")
            }
            Fault::Assert { kernel, message } => {
                write!(f, "device-side assertion failed in {}: {message}", plain_name(kernel))
            }
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
