//! What supervisor and worker say to each other over their socket pair.

use crate::control::messages::{DeviceReport, EndMode, RunningKernel};
use crate::images::Hash;
use serde::{Deserialize, Serialize};
use sluice_protocol::handshake::AddressRange;
use sluice_transport::tls::Keys;

/// Which backend a worker opens.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum BackendChoice {
    /// The software GPU; `threads` 0 means one for each core.
    Soft { threads: usize },
    /// Records and executes nothing; the recording goes to this file.
    Null { recording: Option<String> },
    /// A real driver, in the library of this name or path.
    Cuda { driver: String },
}

/// The lease that a worker works for, as far as it has to know.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeasePart {
    pub lease_id: String,
    pub session_id: String,
    /// The worker's slot in the lease's account.
    pub slot: usize,
    pub memory_bytes: u64,
}

/// Supervisor to worker. `tls`: TLS goes on with these keys on the connection beside the order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Order {
    /// First order; beside it the account, the connection and the bell of the device's arbiter.
    Start {
        tls: Option<Keys>,
        backend: BackendChoice,
        device: Box<DeviceReport>,
        lease: LeasePart,
        /// The client's process, as it calls itself.
        client: u32,
        ranges: Vec<AddressRange>,
        /// How long to wait for the client when its connection was lost.
        return_seconds: u64,
        /// The session's, base64url, for its welcome.
        nonce: String,
        /// The client wants accesses checked to the byte where that can be done.
        exact_bounds: bool,
        /// UUIDs of the other devices here, where the client may link this one with them.
        others: Vec<String>,
    },
    /// The client is back, on the connection beside this; it has received frames up to this number.
    Connection { tls: Option<Keys>, received: u64 },
    /// A lane of the session, on the connection beside this; its client can share memory with this host's processes.
    Lane { tls: Option<Keys>, index: u16, shared: bool },
    /// The connection beside this brings the client's memory file.
    Pinned { tls: Option<Keys> },
    /// The answer to [`Report::FindImage`], with the image's memory beside it when it is there.
    Image,
    /// The lease is over; at most `park_limit` bytes may be kept.
    EndLease { mode: EndMode, reason: String, park_limit: u64 },
    /// The answer to [`Report::Link`]: the line to the other worker is beside it.
    Linked { call: u64 },
    /// The link is refused.
    NotLinked { call: u64 },
    /// The line beside this leads to a worker that this one's memory is lent to.
    Lend,
    /// The client's new lease, with its account beside it.
    Rebound { call: u64, lease: LeasePart },
    /// The client's new lease is refused.
    NotRebound { call: u64, text: String },
    /// A sibling needs memory: ask the client for idle credit.
    Recall { bytes: u64 },
    /// The answer to [`Report::Wanted`]: what could be freed for it is free.
    Freed,
}

/// Worker to supervisor.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "report", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Report {
    /// The session is open. The worker sends this before it writes the welcome: until then the supervisor answers the
    /// client if the worker ends.
    Opened,
    /// The session cannot be opened. The worker sends this before it writes the refusal.
    Refused { text: String },
    /// The client's connection was lost; the session waits for it.
    Lost,
    /// The client is back.
    Returned,
    /// The session is over, by the client's goodbye or because nobody came back.
    Closed { clean: bool },
    /// The lease's end has been carried out.
    Ended { parked_bytes: u64 },
    /// The client wants to go on under a new lease.
    Rebind { call: u64, token: String },
    /// The client wants this device to reach the memory of another session's, whose nonce it knows.
    Link { call: u64, nonce: String },
    /// The new lease has been taken up, or could not be.
    Resumed { taken: bool },
    /// A growth of this many bytes waits, and perhaps others behind it; the next of these comes after [`Order::Freed`].
    Wanted { bytes: u64 },
    /// An image to keep, in the memory beside this.
    Image { hash: Hash },
    /// The client says that it holds the image of this hash; answered by [`Order::Image`].
    FindImage { hash: Hash, proof: Hash },
    /// How far a kernel that runs long has come; nothing when it has ended.
    Running { running: Option<RunningKernel> },
}
