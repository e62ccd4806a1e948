//! gpud lends the GPUs of one host.
//!
//! One *supervisor* admits client processes and talks to the broker; it never opens a device.  Each client process
//! gets one *worker*, a process of its own that executes the client's calls under the limits of its lease.

// Printing panics where nothing can be written; see `sluice_backend::log`.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod arbiter;
pub mod cli;
pub mod config;
pub mod control;
pub mod devices;
pub mod identity;
pub mod images;
pub mod ledger;
pub mod links;
pub mod listening;
pub mod orders;
pub mod passing;
pub mod supervisor;
pub mod token;
pub mod worker;
