//! What a gpud worker executes on.
//!
//! [`Device`] is the border: driver-level operations on handles and addresses that the client chose.  Behind it stand
//! the software GPU ([`soft`]), a real driver ([`cuda`]) and a recorder that executes nothing ([`null`]).

// Printing panics where nothing can be written; see `log`.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod attributes;
mod cubin;
pub mod cuda;
pub mod device;
pub mod error;
mod gate;
pub mod graph;
pub mod log;
pub mod null;
mod peer;
mod pinned;
pub mod soft;
pub mod timeline;
pub mod types;
pub mod window;
mod words;

pub use device::{BACKLOG, Device, Done, ErrorObserver, HostWork, Printer};
pub use error::{CudaError, CudaResult, code};
pub use gate::Gate;
pub use peer::{Borrower, Part};
pub use pinned::{PinnedMemory, PinnedPart, check_file};
pub use types::{
    Copy2D, DeviceDescription, DeviceProfile, EventId, Fill, FunctionInfo, FunctionRef, GlobalInfo, LaunchAttribute,
    LaunchConfig, LibraryAnswer, LibraryCall, ModuleId, ModuleInfo, Running, StreamId,
};
pub use window::{Opened, Way, Window};
