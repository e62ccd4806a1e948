//! The libraries that run beside the driver (cuBLAS, cuFFT, …): every function with the kind of each parameter.
//!
//! A library's file holds its declarations as text, one function a line, `{S,D,C,Z}` standing for a family:
//!
//! ```text
//! run cublas{S,D}axpy_v2(object handle, dim n, scalar:T alpha, device x, i32 incx, device y, i32 incy)
//! ```
//!
//! Functions that are refused are listed by name under their reason; `name=value` says what one answers that has no status.
//!
//! From it follow the exported stubs, the encoding in the client, the checks, the recording of calls and
//! `docs/api-coverage.md`. On the wire a function is its [`Function::number`], a hash of its name, so that lists may
//! grow and be sorted without an old peer noticing.

mod cublas;
mod cublaslt;
mod cudnn;
mod cufft;
mod cufile;
mod cupti;
mod curand;
mod cusolver;
mod cusparse;
mod cusparselt;
mod nccl;
mod nvshmem;
mod parse;

use std::collections::HashMap;
use std::sync::OnceLock;

/// One declared library, as it is written down.
pub struct Source {
    /// Number on the wire; never used for another library.
    pub number: u16,
    /// As people write it.
    pub title: &'static str,
    /// Short name in lower case, e.g. `cublaslt`.
    pub name: &'static str,
    /// The libraries under which programs know it, oldest first.
    pub shims: &'static [Shim],
    pub status: Status,
    /// Its objects are C ints, not pointers.
    pub small_handles: bool,
    /// Its objects are structures in the program's memory, and their addresses are passed. The client keeps an object's
    /// number in the first bytes, the server has a structure of its own.
    pub in_place: bool,
    /// Frameworks ask for it at every start: a refusal is not told to people.
    pub probed: bool,
    /// The function that says where an object's scalars lie: it takes the object and 0 (host) or 1 (device).
    pub set_pointer_mode: &'static str,
    /// See the module.
    pub functions: &'static str,
}

/// A shared library as programs load it.
#[derive(Clone, Copy, Debug)]
pub struct Shim {
    pub soname: &'static str,
    /// What the library's own version query answers where no server is asked.
    pub version: u32,
    /// The version that the original's symbols carry, mostly its SONAME; empty for none.
    pub node: &'static str,
}

impl Shim {
    /// The number at the end of its SONAME.
    pub fn abi(&self) -> u32 {
        self.soname.rsplit('.').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

/// A library's words for what can go wrong.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    pub not_initialized: u32,
    pub alloc_failed: u32,
    pub invalid_value: u32,
    pub execution_failed: u32,
    pub not_supported: u32,
}

/// How a function is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Makes an object at the server; waits.
    Make,
    /// Makes an object together with other processes, for which it waits; it is of one generation.
    Join,
    /// Ends an object.
    End,
    /// Sets a property of an object; sent again for a new generation.
    Set,
    /// Answers what the named function set last.
    Get,
    /// Makes a description: a value that travels when it is first used, equal ones only once.
    Describe,
    /// Changes a description.
    Change,
    /// Ends a description.
    Drop,
    /// Makes a draft: an object that is written here and travels with its first use.
    Draft,
    /// Says something of a draft. What the server has against it, the next call that waits for the draft tells.
    Write,
    /// Closes a draft; waits, unless the draft is of the type in the note: what only one call uses, that call sends.
    Finish,
    /// Asks an object, or has it fill drafts.
    Read,
    /// Work. Waits when it has outputs for the host, or when a call with these choices has not been accepted yet, and
    /// where that is told by host memory ([`Function::reads_samples`]).
    Run,
    /// A question whose answer depends on its arguments alone; asked once.
    Ask,
    /// Answered in the client by hand-written code.
    Local,
    /// Exists and answers "not supported" in the library's own terms.
    Refused,
}

/// The size of one element that a pointer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Bytes.
    Fixed(u32),
    /// By the cudaDataType in this parameter.
    Data(usize),
    /// By the cublasComputeType_t in this parameter.
    Compute(usize),
    /// By the scale type of the matmul description in this parameter.
    Scale(usize),
    /// Double precision for the tensor of this parameter when that is in it, else single.
    Tensor(usize),
    /// Bytes, in host memory or on a device: the address tells.
    Anywhere(u32),
    /// By the ncclDataType_t in this parameter, where the ncclScalarResidence_t in the next one says.
    Reduced(usize),
}

/// Bytes of an ncclDataType_t.
pub const fn nccl_bytes(kind: u32) -> u32 {
    match kind {
        0 | 1 | 10 | 11 => 1,
        6 | 9 => 2,
        2 | 3 | 7 => 4,
        4 | 5 | 8 => 8,
        _ => 0,
    }
}

/// What an element of an attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// So many bytes that say it all.
    Bytes(u32),
    /// An object: a handle.
    Handle,
    /// An object: a descriptor.
    Descriptor,
    /// Device memory; or host memory for what is passed by value: one number.
    Address,
}

impl Attribute {
    /// Of a cudnnBackendAttributeType_t; none for one that is not known.
    pub const fn of(kind: u32) -> Option<Self> {
        Some(match kind {
            0 => Self::Handle,
            15 => Self::Descriptor,
            6 => Self::Address,
            2 | 24 => Self::Bytes(1),
            3 | 5 => Self::Bytes(8),
            26 => Self::Bytes(16),
            // Enumerations and numbers of 32 bits.
            1 | 4 | 7..=14 | 16..=23 | 25 | 27..=33 => Self::Bytes(4),
            _ => return None,
        })
    }

    /// Bytes in the caller's array.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes as usize,
            _ => 8,
        }
    }
}

/// Bytes at a host pointer: a number, times factors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Length {
    pub bytes: u32,
    pub times: Vec<Factor>,
}

/// A factor of a [`Length`], by the parameter that it is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// Its value.
    Value(usize),
    /// How many samples a tensor over time has: its second dimension.
    Batch(usize),
    /// The sum of the 32-bit numbers in this array, which is read.
    Sum(usize),
}

/// What a parameter is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Receives a new object or description.
    New,
    /// An object that ends.
    End,
    /// An object of the library that lives at the server.
    Object,
    /// An object that the call is about, though another stands before it.
    Subject,
    /// An object or null.
    Optional,
    /// An object that is a choice itself: the first call with each waits.
    Which,
    /// A description.
    Value,
    Stream,
    /// An array of streams, as many as the next parameter says: one, or null.
    Streams,
    /// A device address.
    Device,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    /// A cuComplex by value: two floats in the slot.
    Complex,
    /// A count that must not be negative.
    Dim,
    /// As [`Kind::Dim`], 64 bits.
    Dim64,
    /// A choice (operation, type, attribute): calls with choices that have been accepted need not wait.
    Enum,
    /// Read from where the object's pointer mode says.
    Scalar(Element),
    /// Written to where the object's pointer mode says.
    Result(Element),
    /// Read and written there.
    Both(Element),
    /// Host memory that is read; null is allowed.
    In(Length),
    /// Host memory that is written; null is allowed.
    Out(Length),
    /// Host memory that is read and written; null is allowed.
    InOut(Length),
    /// An array that is read: of what the parameter `of` says (see [`Attribute`]), as many as `count` says.
    Elements {
        of: usize,
        count: usize,
    },
    /// Such an array with room for the answer; objects in it are filled.
    Into {
        of: usize,
        count: usize,
    },
    /// An ncclConfig_t or null. What it names by text stays here, and who waits is the client.
    Config,
    /// A structure of so many bytes that is passed by value, of more than two words.
    Block(u32),
    /// Not read by the encoder: for hand-written functions.
    Any,
}

/// One parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub kind: Kind,
}

/// One exported function.
#[derive(Clone, Debug)]
pub struct Function {
    pub symbol: String,
    /// Its name on the wire.
    pub number: u32,
    pub way: Way,
    pub parameters: Vec<Parameter>,
    /// The reason of a refusal, or the function whose value a [`Way::Get`] answers.
    pub note: String,
    /// Whether it reads a number for each sample from host memory. Whether the library takes the call stands in those, and
    /// a graph would look for them at each launch.
    pub reads_samples: bool,
    /// What a refused function answers that has no status to answer: a null pointer, a number that no caller takes for
    /// work that was done.
    pub refusal: Option<i64>,
}

impl Function {
    /// Whether the host waits for data that only the server knows; results by pointer mode are not counted.
    pub fn has_outputs(&self) -> bool {
        self.parameters.iter().any(|p| matches!(p.kind, Kind::Out(_) | Kind::InOut(_)))
    }

    /// The parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|p| p.name == name)
    }
}

/// A library with its functions expanded.
pub struct Library {
    pub source: &'static Source,
    pub functions: Vec<Function>,
    by_number: HashMap<u32, usize>,
    by_symbol: HashMap<String, usize>,
}

impl Library {
    /// The function of a wire number.
    pub fn numbered(&self, number: u32) -> Option<&Function> {
        self.by_number.get(&number).map(|at| &self.functions[*at])
    }

    /// The name under which a program loaded it: the one that ends in the number in an id on the wire.
    pub fn shim(&self, id: u32) -> &'static Shim {
        let shims = self.source.shims;
        shims.iter().find(|shim| shim.abi() == id & 0xffff).unwrap_or(&shims[0])
    }

    /// The function that ends what this one makes: the next of that way in the list.
    pub fn end_of(&self, function: &Function, way: Way) -> Option<&Function> {
        self.functions.iter().skip_while(|other| other.number != function.number).find(|other| other.way == way)
    }

    /// The function of this name.
    pub fn named(&self, symbol: &str) -> Option<&Function> {
        self.by_symbol.get(symbol).map(|at| &self.functions[*at])
    }
}

/// FNV-1a of a symbol.
pub const fn number_of(symbol: &str) -> u32 {
    let (bytes, mut at, mut state) = (symbol.as_bytes(), 0, 0x811c_9dc5u32);
    while at < bytes.len() {
        state = (state ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    state
}

/// Bytes of a cudaDataType, 0 for one that is smaller than a byte or not known.
pub const fn data_bytes(kind: u32) -> u32 {
    match kind {
        3 | 8 | 28..=30 => 1,
        2 | 14 | 7 | 9 | 20 | 22 => 2,
        0 | 6 | 10 | 12 | 15 | 21 | 23 => 4,
        1 | 4 | 11 | 13 | 24 | 26 => 8,
        5 | 25 | 27 => 16,
        _ => 0,
    }
}

const SOURCES: &[Source] = &[
    cublas::SOURCE,
    cublaslt::SOURCE,
    cufft::SOURCE,
    curand::SOURCE,
    cusolver::SOURCE,
    cusparse::SOURCE,
    cudnn::SOURCE,
    cusparselt::SOURCE,
    nccl::SOURCE,
    cupti::SOURCE,
    nvshmem::SOURCE,
    cufile::SOURCE,
];

/// Every library, expanded on first use.
pub fn libraries() -> &'static [OnceLibrary] {
    static LIBRARIES: OnceLock<Vec<OnceLibrary>> = OnceLock::new();
    LIBRARIES.get_or_init(|| SOURCES.iter().map(|source| OnceLibrary { source, library: OnceLock::new() }).collect())
}

/// A library that is expanded when it is asked for.
pub struct OnceLibrary {
    pub source: &'static Source,
    library: OnceLock<Library>,
}

impl OnceLibrary {
    /// The library.
    pub fn get(&'static self) -> &'static Library {
        self.library.get_or_init(|| {
            let functions = parse::functions(self.source);
            let by_number = functions.iter().enumerate().map(|(at, f)| (f.number, at)).collect();
            let by_symbol = functions.iter().enumerate().map(|(at, f)| (f.symbol.clone(), at)).collect();
            Library { source: self.source, functions, by_number, by_symbol }
        })
    }
}

/// The library of a wire number.
pub fn library(number: u16) -> Option<&'static Library> {
    libraries().iter().find(|library| library.source.number == number).map(OnceLibrary::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_declaration_is_understood_and_no_two_functions_share_a_number() {
        for library in libraries() {
            let library = library.get();
            let numbers: BTreeSet<u32> = library.functions.iter().map(|f| f.number).collect();
            assert_eq!(numbers.len(), library.functions.len(), "{}", library.source.name);
            assert!(library.functions.iter().all(|f| f.way == Way::Refused || !f.symbol.contains(['{', ','])));
        }
        let numbers: BTreeSet<u16> = libraries().iter().map(|library| library.source.number).collect();
        assert_eq!(numbers.len(), libraries().len());
    }

    #[test]
    fn a_family_takes_its_types_from_its_letters() {
        let library = library(1).expect("cuBLAS");
        let scal = library.named("cublasCsscal_v2").expect("declared");
        assert_eq!(scal.parameters[2].kind, Kind::Scalar(Element::Fixed(4)));
        let gemm = library.named("cublasZgemm_v2").expect("declared");
        assert_eq!(gemm.parameters[6].kind, Kind::Scalar(Element::Fixed(16)));
        let gemm = library.named("cublasGemmEx").expect("declared");
        assert_eq!(gemm.parameters[6].kind, Kind::Scalar(Element::Compute(17)));
    }
}
