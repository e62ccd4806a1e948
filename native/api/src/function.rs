//! What a declaration says of one public function, and the two lists in which declarations are written.

/// How a function is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In the client, from what it already knows.
    Local,
    /// Sent and not waited for.
    Posted,
    /// Waits for gpud.
    Call,
    /// Exists, and returns CUDA_ERROR_NOT_SUPPORTED for this reason.
    Refused(&'static str),
}

/// One ABI variant of a public function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The exported symbol, e.g. `cuMemAlloc_v2`.
    pub symbol: &'static str,
    /// The symbol whose implementation answers, where an older variant is the same to us; else `symbol`.
    pub implementation: &'static str,
    /// First CUDA version that knows this variant, e.g. 3020.
    pub since: u32,
    pub way: Way,
    /// Empty for refused functions, whose arguments are never read.
    pub parameters: &'static [Parameter],
    /// `ptsz` or `ptds` where the library also exports the variant that takes stream 0 for the calling thread's own
    /// default stream.
    pub per_thread: Option<&'static str>,
}

/// One exported symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub symbol: String,
    /// First CUDA version that knows it.
    pub since: u32,
    /// Stream 0 is the calling thread's own default stream.
    pub per_thread: bool,
}

/// The first CUDA version with per-thread default streams.
const PER_THREAD_SINCE: u32 = 7000;

impl Function {
    /// The name that `cuGetProcAddress` is asked for: the symbol without `_v2` and the like.
    pub fn name(&self) -> &'static str {
        match self.symbol.rsplit_once("_v") {
            Some((name, version)) if version.bytes().all(|digit| digit.is_ascii_digit()) => name,
            _ => self.symbol,
        }
    }

    /// The symbols that the library exports for it.
    pub fn exports(&self) -> impl Iterator<Item = Export> {
        let own = Export { symbol: self.symbol.to_owned(), since: self.since, per_thread: false };
        let per_thread = self.per_thread.map(|suffix| Export {
            symbol: format!("{}_{suffix}", self.symbol),
            since: self.since.max(PER_THREAD_SINCE),
            per_thread: true,
        });
        std::iter::once(own).chain(per_thread)
    }
}

/// One parameter of an exported function.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// Rust type of the C parameter: numbers as they are, handles `usize`, device addresses `u64`.
    pub kind: &'static str,
    pub direction: Direction,
}

/// Which way a parameter's data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
    /// An output that CUDA lets the caller leave out: NULL is ignored. The declaration names the source.
    OptionalOut,
    InOut,
}

macro_rules! direction {
    (input) => {
        $crate::function::Direction::In
    };
    (output) => {
        $crate::function::Direction::Out
    };
    (optional) => {
        $crate::function::Direction::OptionalOut
    };
    (both) => {
        $crate::function::Direction::InOut
    };
}

/// The first word that is given.
macro_rules! first {
    ($word:ident $($other:ident)*) => {
        stringify!($word)
    };
}

macro_rules! optional {
    () => {
        None
    };
    ($word:ident) => {
        Some(stringify!($word))
    };
}

/// Functions with an implementation: `way symbol [= the symbol that implements it] version [ptsz|ptds] (parameters)`.
macro_rules! served {
    ($($way:ident $symbol:ident $(= $same:ident)? $since:literal $($suffix:ident)?
       ($($p:ident: $d:ident $t:ty),* $(,)?);)*) => {
        &[$($crate::function::Function {
            symbol: stringify!($symbol),
            implementation: first!($($same)? $symbol),
            since: $since,
            way: $crate::function::Way::$way,
            parameters: &[$($crate::function::Parameter {
                name: stringify!($p),
                kind: stringify!($t),
                direction: direction!($d),
            }),*],
            per_thread: optional!($($suffix)?),
        }),*]
    };
}

/// Functions that exist so that programs link and get an answer they can act on: `"reason" { symbol version … }`.
macro_rules! refused {
    ($($reason:literal { $($symbol:ident $since:literal $($suffix:ident)?,)* })*) => {
        &[$($($crate::function::Function {
            symbol: stringify!($symbol),
            implementation: stringify!($symbol),
            since: $since,
            way: $crate::function::Way::Refused($reason),
            parameters: &[],
            per_thread: optional!($($suffix)?),
        },)*)*]
    };
}
