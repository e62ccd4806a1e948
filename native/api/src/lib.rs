//! The declaration list: what travels between a client and gpud ([`operations`]), and which public CUDA functions
//! exist and how each of them travels ([`functions`]). `cargo xtask generate` makes the opcodes, message structs,
//! dispatch, the shim's exports and `docs/api-coverage.md` from it; nothing of that is written by hand.

pub mod functions;
pub mod operations;

pub use functions::{Direction, Function, Parameter, Way, functions};
pub use operations::{OPERATIONS, Operation, Travel, Type};
