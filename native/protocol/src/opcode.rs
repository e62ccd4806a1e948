//! Opcodes of frames that are not operations of the declaration list. Operations: [`crate::messages`].

/// Only acknowledges (the header's `ack`); no payload, unnumbered.
pub const ACK: u16 = 1;
/// Answer to a call: [`crate::reply`].
pub const REPLY: u16 = 2;
/// A posted operation failed: [`crate::control::AsyncError`].
pub const ASYNC_ERROR: u16 = 3;
/// The lease is over: [`crate::control::LeaseEnded`].
pub const LEASE_ENDED: u16 = 4;
/// gpud wants idle credit back: [`crate::control::CreditRecall`].
pub const CREDIT_RECALL: u16 = 8;
/// Unnumbered; the payload comes back in a PONG.
pub const PING: u16 = 10;
/// See [`PING`].
pub const PONG: u16 = 11;
/// Kernels have printed something: [`crate::control::Printed`].
pub const PRINTED: u16 = 12;
/// A device's memory is reached no more: [`crate::control::PeerLost`].
pub const PEER_LOST: u16 = 13;
/// On a lane, unnumbered: a piece of a bulk copy, `transfer u64 | offset u64 | data`.
pub const LANE_DATA: u16 = 99;
/// From gpud, numbered, `transfer u64`: the turn of this copy to the device has come; the rest of it may be sent.
pub const BULK_GO: u16 = 100;
/// Handshake, in this order: [`crate::handshake`].
pub const CHALLENGE: u16 = 16;
pub const HELLO: u16 = 17;
pub const WELCOME: u16 = 18;
pub const REFUSED: u16 = 19;
/// A stream has reached a function of the client: [`crate::control::HostReached`].
pub const HOST_REACHED: u16 = 326;
/// Bytes for the client's memory: [`crate::control::HostData`].
pub const HOST_DATA: u16 = 330;
/// A copy from the client's memory has come to its turn: [`crate::control::HostWanted`].
pub const HOST_WANTED: u16 = 331;
/// An event that the client asked about has been passed: [`crate::control::EventPassed`].
pub const EVENT_PASSED: u16 = 343;
