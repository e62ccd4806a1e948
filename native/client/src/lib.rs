//! The client of a borrowed GPU: `libsluice_client.so`.
//!
//! Loading it does nothing. The shims (`libcuda.so.1`, …) hand every CUDA call on to [`generated`], which calls the
//! hand-written functions in [`driver`] and [`runtime`]. [`session`] and [`connection`] speak with gpud; [`owner`] speaks with the
//! broker and serves the lease to child processes; [`request`] is the door for Python.

pub mod answers;
pub mod arena;
pub mod bulk;
pub mod connection;
pub mod device;
pub mod dial;
pub mod driver;
pub mod error;
pub mod fat_binary;
pub mod fork;
pub mod generated;
pub mod host;
pub mod image;
pub mod journal;
pub mod library;
pub mod mappings;
pub mod message;
pub mod objects;
pub mod opencl;
pub mod output;
pub mod owner;
pub mod pinned;
pub mod process;
pub mod profile;
pub mod progress;
pub mod request;
pub mod runtime;
pub mod session;
pub mod static_runtime;
pub mod trace;

pub use sluice_transport::variables;
