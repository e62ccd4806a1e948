//! Driver-API programs that run through any `libcuda.so.1`: the shim with a gpud behind it, or a real driver.

pub mod broker;
pub mod calls;
pub mod control;
pub mod driver;
pub mod gpud;
pub mod libraries;
pub mod measure;
pub mod numbers;
pub mod programs;
pub mod proxy;
