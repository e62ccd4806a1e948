//! Frames, messages and codecs of the data plane, without any I/O.
//!
//! A connection starts with four handshake messages (JSON in frames, see [`handshake`]); after `Welcome` both sides
//! send binary frames: numbered ones (operations, replies, notices) and unnumbered ones (`Ack`, `Ping`, `Pong`).
//! Every header carries the cumulative acknowledgement of the other direction, so that both sides can forget what
//! the peer has taken over and send the rest again after a lost connection.

pub mod control;
pub mod cuda;
pub mod fat_binary;
pub mod frame;
pub mod generated;
pub mod graph;
pub mod handshake;
pub mod library;
pub mod opcode;
pub mod reply;
pub mod tensor_map;
pub mod types;
pub mod wire;

pub use frame::{Frame, HEADER_BYTES, Header, MAX_FRAME_BYTES};
pub use generated::messages;
pub use reply::{Failure, ReplySink, ReplyTo};
pub use types::{FunctionInfo, GlobalInfo, LeaseProcess, ModuleInfo, ParameterInfo};
pub use wire::{DecodeError, Reader, Wire};

/// Version of this protocol: another major number is refused, minor numbers work together. It is raised when a message
/// changes that both sides send today; what is only added is a feature of a minor version.
pub const VERSION_MAJOR: u16 = 2;
/// See [`VERSION_MAJOR`]; what a minor version adds is named in `features` of the handshake.
pub const VERSION_MINOR: u16 = 0;
/// What has been added since: a gpud names it in its welcome, and a client uses nothing that is not named there.
pub const FEATURES: &[&str] =
    &[PTX_CHECK, MODULE_STORE, PRINT_LIMIT, STACK_LIMIT, PINNED_MEMORY, TENSOR_MAPS, LEASE_PROCESSES];
/// gpud answers [`messages::PtxCheck`].
pub const PTX_CHECK: &str = "ptx-check";
/// gpud keeps images beyond the session that sent them and answers [`messages::ModuleFind`].
pub const MODULE_STORE: &str = "module-store";
/// gpud takes [`messages::PrintLimit`].
pub const PRINT_LIMIT: &str = "print-limit";
/// gpud takes [`messages::StackLimit`].
pub const STACK_LIMIT: &str = "stack-limit";
/// gpud takes [`messages::PinnedOpen`]. With `resume` in a hello on a Unix socket: behind the welcome, this connection
/// brings the memory file in which the client's page-locked memory lies, and nothing else.
pub const PINNED_MEMORY: &str = "pinned-memory";
/// gpud answers [`messages::TensorMapEncode`].
pub const TENSOR_MAPS: &str = "tensor-maps";
/// gpud answers [`messages::LeaseProcesses`].
pub const LEASE_PROCESSES: &str = "lease-processes";
/// In a session's hello: the client has several devices, and may link this one with others.
pub const PEER_MEMORY: &str = "peer-memory";
/// In a session's hello: accesses are to be checked against the bytes that were asked for, where the device can do that;
/// else an allocation is accessible to the end of its granule, as on a card.
pub const EXACT_BOUNDS: &str = "exact-bounds";
/// In the hello of a lane on a Unix socket: its client can take memory to share. In the welcome of that lane: the memory
/// comes next, and everything behind it goes the way of `sluice_transport::shared`.
pub const SHARED_LANES: &str = "shared-lanes";
/// Most bytes of what kernels print that are kept on the way, whatever a program asks for.
pub const MOST_PRINTED_BYTES: u64 = 16 << 20;
