//! The public CUDA runtime functions (`libcudart.so.12` and `.13`), and how each is answered.
//!
//! Most of them are a driver function by another name ([`as_driver`]); those with an own meaning stand in [`own`] and
//! are written by hand in `client/src/runtime`; the rest is refused with a reason ([`refused`]).

mod as_driver;
mod own;
mod refused;

use crate::driver::functions;
use crate::function::{Function, Parameter, Way};

/// The libraries that export a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libraries {
    Both,
    Only12,
    Only13,
}

impl Libraries {
    /// Whether the library of this major version exports it.
    pub fn has(self, major: u32) -> bool {
        match self {
            Self::Both => true,
            Self::Only12 => major == 12,
            Self::Only13 => major == 13,
        }
    }
}

/// The variant of a function for programs compiled with a default stream per thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
    None,
    /// `…_ptsz`: stream 0 means the thread's stream.
    Ptsz,
    /// `…_ptds`: works on the thread's stream.
    Ptds,
}

impl Twin {
    /// What follows the function's name.
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Ptsz => Some("_ptsz"),
            Self::Ptds => Some("_ptds"),
        }
    }
}

/// What a function needs before it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// CUDA initialised.
    Init,
    /// A current context: the program's own, else the primary one of the thread's device.
    Context,
}

/// How a function is answered.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// By the driver function with this symbol, which has the same parameters.
    Driver { symbol: &'static str, needs: Needs },
    /// By a function of the same name in `client/src/runtime`.
    Own {
        way: Way,
        parameters: &'static [Parameter],
        /// C return type when it is not cudaError_t; such a function leaves the thread's last error alone.
        returns: Option<&'static str>,
    },
    /// With cudaErrorNotSupported, for this reason.
    Refused(&'static str),
}

/// One function of the runtime library.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeFunction {
    pub symbol: &'static str,
    pub libraries: Libraries,
    pub twin: Twin,
    pub answer: Answer,
}

impl RuntimeFunction {
    /// The exported symbols: its own, and its twin's.
    pub fn symbols(&self) -> impl Iterator<Item = String> {
        let twin = self.twin.suffix().map(|suffix| format!("{}{suffix}", self.symbol));
        std::iter::once(self.symbol.to_owned()).chain(twin)
    }

    /// Its name inside the client: where 12 and 13 disagree about a symbol, the version is part of it.
    pub fn entry(&self) -> String {
        let shared = runtime_functions().filter(|other| other.symbol == self.symbol).count() > 1;
        match self.libraries {
            Libraries::Only12 if shared => format!("{}_12", self.symbol),
            Libraries::Only13 if shared => format!("{}_13", self.symbol),
            _ => self.symbol.to_owned(),
        }
    }

    /// The driver function that answers it.
    pub fn driver(&self) -> Option<&'static Function> {
        match self.answer {
            Answer::Driver { symbol, .. } => functions().find(|function| function.symbol == symbol),
            _ => None,
        }
    }

    /// How it travels; a driver function that is not served refuses it.
    pub fn way(&self) -> Way {
        match self.answer {
            Answer::Driver { .. } => {
                self.driver().map_or(Way::Refused("its driver function is not served yet"), |function| function.way)
            }
            Answer::Own { way, .. } => way,
            Answer::Refused(reason) => Way::Refused(reason),
        }
    }
}

/// Every exported function of the runtime libraries.
pub fn runtime_functions() -> impl Iterator<Item = &'static RuntimeFunction> {
    own::OWN.iter().chain(as_driver::AS_DRIVER).chain(refused::REFUSED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn exported(major: u32) -> BTreeSet<String> {
        let mut symbols = BTreeSet::new();
        for function in runtime_functions().filter(|function| function.libraries.has(major)) {
            for symbol in function.symbols() {
                assert!(symbols.insert(symbol.clone()), "{symbol} stands here twice");
            }
        }
        symbols
    }

    fn names(list: &str) -> BTreeSet<String> {
        list.lines().map(str::to_owned).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
    }

    #[test]
    fn every_public_symbol_of_12_and_13_is_declared_and_no_other() {
        for (major, list) in
            [(12, include_str!("../../names/runtime-12.txt")), (13, include_str!("../../names/runtime-13.txt"))]
        {
            let (declared, public) = (exported(major), names(list));
            let missing: Vec<_> = public.difference(&declared).collect();
            let unknown: Vec<_> = declared.difference(&public).collect();
            assert!(missing.is_empty() && unknown.is_empty(), "{major}: missing {missing:?}, unknown {unknown:?}");
        }
    }

    #[test]
    fn own_functions_with_a_twin_take_a_stream_that_the_twin_changes() {
        for function in runtime_functions().filter(|function| function.twin != Twin::None) {
            let Answer::Own { parameters, .. } = function.answer else { continue };
            let takes_one = parameters.iter().any(|parameter| parameter.name.ends_with("stream"));
            assert!(takes_one, "{}", function.symbol);
        }
    }
}
