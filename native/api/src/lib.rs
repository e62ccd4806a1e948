//! The declaration list: what travels between a client and gpud ([`operations`]), and which public CUDA functions
//! exist and how each of them travels ([`driver`], [`runtime`]). `cargo xtask generate` makes the opcodes, message
//! structs, dispatch, the shims' exports and `docs/api-coverage.md` from it; nothing of that is written by hand.

#[macro_use]
pub mod function;
pub mod driver;
pub mod libraries;
pub mod nvml;
pub mod operations;
pub mod runtime;

pub use function::{Direction, Export, Function, Parameter, Way};
pub use operations::{OPERATIONS, Operation, Travel, Type};
pub use runtime::{RuntimeFunction, runtime_functions};
