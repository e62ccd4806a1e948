//! PTX through the public interface. One program, because each has to be linked with the code generator.

mod addresses;
mod barriers;
mod bounds;
mod breadth;
mod common;
mod device_runtime;
mod expressions;
mod faults;
mod fuzz;
mod halves;
mod instructions;
mod invalid;
mod malformed;
mod mbarrier;
mod numba;
mod nvcc;
mod own_memory;
mod printf;
mod reference;
mod rounding;
mod shapes;
mod targets;
mod variables;
mod wmma;
