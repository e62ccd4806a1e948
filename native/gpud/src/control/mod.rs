//! The control channel: gpud dials the broker and keeps the line open.

pub mod channel;
pub mod join;
pub mod messages;
