//! The messages of the control channel, as `server/contracts/control.ts` defines them; a test checks these types
//! against the JSON Schemas that are generated from there.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `POST /v1/gpu-servers/join`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinInput {
    pub token: String,
    pub name: String,
    /// Ed25519 public key, base64url.
    pub public_key: String,
}

/// The broker's answer to [`JoinInput`].
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinAnswer {
    pub server_id: String,
}

/// What gpud recorded of a device; clients answer from it before anything is attached.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeviceProfile {
    pub name: String,
    pub compute_capability_major: u32,
    pub compute_capability_minor: u32,
    pub total_memory_bytes: u64,
    /// The CUDA version that the driver serves: 13050 for 13.5.
    pub driver_version: i32,
    /// The driver's own version; the software GPU has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// `CUdevice_attribute` number to value.
    pub attributes: BTreeMap<String, i32>,
}

/// A device in the pool.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeviceReport {
    pub uuid: String,
    pub index: u32,
    pub gpu_type: String,
    pub model: String,
    /// Memory that leases may use, bytes.
    pub memory_bytes: u64,
    /// Devices of this host with the same one reach each other over NVLink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_group: Option<String>,
    pub profile: DeviceProfile,
}

/// A kernel that has run for a second and more.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunningKernel {
    pub kernel: String,
    pub blocks_done: u64,
    /// 0 where the device does not tell how many have ended.
    pub blocks: u64,
    /// How long it has worked; time in which it was held does not count.
    pub seconds: u64,
}

/// For how much of a lease's GPU time the device's multiprocessors held warps; totals since it began, microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SmActivity {
    /// Averaged over all of the device's multiprocessors.
    pub active_us: u64,
    /// Of the lease's GPU time, that for which it is known.
    pub known_us: u64,
    /// Of `active_us`, what was estimated from the time in which any kernel ran.
    pub estimated_us: u64,
}

/// What a lease has used since it began.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaseUsage {
    pub lease_id: String,
    /// Connected client processes.
    pub sessions: u64,
    /// What counts against its limit: what programs allocate, and what driver and libraries take for them.
    pub memory_bytes: u64,
    pub parked_bytes: u64,
    pub gpu_time_us: u64,
    /// Nothing where it has never been known.
    pub sm_activity: Option<SmActivity>,
    /// Time on the device while other leases wanted it too, and what the lease's share of such time was.
    pub delivered_us: u64,
    pub promised_us: u64,
    pub calls: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// What runs now, where the device can tell.
    pub running: Option<RunningKernel>,
}

/// gpud to broker.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum GpudMessage {
    Hello {
        server_id: String,
        version: String,
        protocol: u32,
        /// Ed25519 over `sluice-control-1` and the challenge, base64url.
        signature: String,
        /// The token of gpud's account on a cluster.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
        data_address: String,
        tls_fingerprint: Option<String>,
        devices: Vec<DeviceReport>,
        /// Leases whose workers are here.
        held: Vec<LeaseUsage>,
    },
    Usage {
        leases: Vec<LeaseUsage>,
    },
    SessionOpened {
        lease_id: String,
        session_id: String,
    },
    SessionClosed {
        lease_id: String,
        session_id: String,
        clean: bool,
    },
    LeaseEnded {
        lease_id: String,
        parked_bytes: u64,
        gpu_time_us: u64,
    },
    Pong {
        nonce: String,
    },
}

/// How a lease ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum EndMode {
    /// Memory stays in the host for the same client.
    Park,
    /// The workers end.
    Kill,
}

/// Broker to gpud.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum BrokerMessage {
    Challenge {
        nonce: String,
    },
    Welcome {
        server_id: String,
        epoch: u64,
        /// Key id to Ed25519 public key, base64url.
        keys: BTreeMap<String, String>,
        /// Leases that hold; every other one ends here.
        leases: Vec<String>,
    },
    EndLease {
        lease_id: String,
        mode: EndMode,
        /// The sentence that the client process gets.
        reason: String,
    },
    DropParked {
        lease_id: String,
    },
    Ping {
        nonce: String,
    },
    Removed {
        reason: String,
    },
}
