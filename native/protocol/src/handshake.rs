//! The four handshake messages, JSON in unnumbered frames: gpud `Challenge`, client `Hello`, gpud `Welcome` or
//! `Refused`. Fields that a peer does not know are ignored, missing new ones have defaults: neighbouring minor
//! versions work together.

use crate::opcode;
use crate::wire::DecodeError;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;

/// What the client signs with its ephemeral key is this, then the 32 bytes of the challenge.
pub const HELLO_CONTEXT: &[u8] = b"sluice-hello-1";

/// Who holds an image shows it with a SHA-256 of this, the 32 bytes of [`Welcome::nonce`], and the image.
pub const IMAGE_CONTEXT: &[u8] = b"sluice-image-1";

/// A handshake message and its opcode.
pub trait Handshake: Serialize + DeserializeOwned {
    const OPCODE: u16;

    /// The payload.
    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the payload of a frame of this opcode.
    fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(payload).map_err(|error| DecodeError::Json(error.to_string()))
    }
}

/// First message, from gpud.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Challenge {
    /// 32 random bytes, base64url without padding.
    pub nonce: String,
    pub version: [u16; 2],
    #[serde(default)]
    pub features: Vec<String>,
}

/// From the client.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    pub version: [u16; 2],
    #[serde(default)]
    pub features: Vec<String>,
    /// Session token (JWT). On resume an expired one is accepted: session and key must be the same.
    pub token: String,
    /// Ed25519 over [`HELLO_CONTEXT`] and the nonce's bytes, base64url without padding.
    pub signature: String,
    /// Address ranges that are free in the client, best first; gpud takes the first that it can have.
    #[serde(default)]
    pub ranges: Vec<AddressRange>,
    #[serde(default)]
    pub resume: Option<Resume>,
    /// With `resume`: this connection is a lane of the session, not its new connection.
    #[serde(default)]
    pub lane: Option<u16>,
    /// The client's process as it is called where it runs, for people who ask who uses a lease; 0: it does not say.
    #[serde(default)]
    pub pid: u32,
}

/// A range of device addresses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AddressRange {
    pub base: u64,
    pub bytes: u64,
}

/// Goes on with a session whose connection was lost.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Resume {
    pub session_id: String,
    /// Last numbered frame received from gpud; it sends the later ones again.
    pub received: u64,
}

/// gpud accepts.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    pub version: [u16; 2],
    #[serde(default)]
    pub features: Vec<String>,
    pub session_id: String,
    /// Last numbered frame of the client that gpud has taken over (0 for a new session).
    pub executed: u64,
    pub range: AddressRange,
    pub device: Device,
    /// Memory of the lease, bytes.
    pub memory_bytes: u64,
    /// Bytes that this process may allocate without asking.
    pub credit: u64,
    /// How long a session waits for its client when the connection was lost, seconds.
    #[serde(default = "usual_return_seconds")]
    pub return_seconds: u64,
    /// 32 random bytes of this session, base64url without padding; with them the client shows that it holds an image
    /// ([`IMAGE_CONTEXT`]).
    #[serde(default)]
    pub nonce: String,
}

/// [`Welcome::return_seconds`], unless gpud was told otherwise.
pub const RETURN_SECONDS: u64 = 30;

fn usual_return_seconds() -> u64 {
    RETURN_SECONDS
}

/// The device behind the session.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// `GPU-…`.
    pub uuid: String,
    pub gpu_type: String,
    pub profile: DeviceProfile,
    /// UUIDs of this server's devices whose memory this one can reach ([`crate::messages::PeerLink`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
}

/// What is recorded of a device type; the shape of `deviceProfile` in `server/contracts/control.ts`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DeviceProfile {
    pub name: String,
    pub compute_capability_major: i32,
    pub compute_capability_minor: i32,
    pub total_memory_bytes: u64,
    /// As cuDriverGetVersion reports it, e.g. 12080.
    pub driver_version: i32,
    /// The driver's own version, e.g. `580.65.06`; the software GPU has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// CUdevice_attribute number → value.
    pub attributes: BTreeMap<String, i32>,
}

/// gpud refuses and closes.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    pub code: RefusedCode,
    /// One sentence for a person.
    pub text: String,
}

/// Why a hello was refused.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedCode {
    /// The token or the proof of its key does not hold.
    Credential,
    /// Another major version.
    Version,
    /// The session to resume is not there any more.
    Gone,
    /// None of the address ranges could be had: propose others.
    Range,
    /// The lease has ended.
    Lease,
    /// gpud cannot take the session now.
    Unavailable,
}

impl Handshake for Challenge {
    const OPCODE: u16 = opcode::CHALLENGE;
}
impl Handshake for Hello {
    const OPCODE: u16 = opcode::HELLO;
}
impl Handshake for Welcome {
    const OPCODE: u16 = opcode::WELCOME;
}
impl Handshake for Refused {
    const OPCODE: u16 = opcode::REFUSED;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_of_a_newer_minor_version_is_read() {
        let text = br#"{"version":[1,7],"token":"t","signature":"s","somethingNew":{"a":1}}"#;
        let hello = Hello::decode(text).expect("unknown fields are ignored");
        assert_eq!(hello.version, [1, 7]);
        assert_eq!(hello.resume, None);
    }
}
