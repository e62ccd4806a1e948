//! The frame header: 24 bytes, little-endian.
//!
//! `len u32 | opcode u16 | flags u16 | thread u32 | ack u32 | seq u64`, then `len` bytes of payload.

use crate::wire::{DecodeError, Reader, Wire};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 24;
/// Longest payload of one frame.
pub const MAX_FRAME_BYTES: usize = 64 << 20;
/// Longest handshake message; nothing larger is read from a peer that has not proven who it is.
pub const MAX_HANDSHAKE_BYTES: usize = 256 << 10;
/// Bytes that a client sends without an acknowledgement before its calls wait (back-pressure).
pub const WINDOW_BYTES: usize = 64 << 20;
/// Frames that a client sends without an acknowledgement before its calls wait.
pub const WINDOW_FRAMES: u64 = 65_536;
/// Bytes of a bulk copy that may be sent before its turn on the device has come.
pub const BULK_AHEAD_BYTES: u64 = 16 << 20;
/// An image that is shorter is sent without asking whether gpud has it, and is not kept there beyond its session: to
/// ask would cost about as much.
pub const ASKED_IMAGE_BYTES: usize = 16 << 10;
/// Pieces into which bulk copies are cut, so that other threads' frames pass between them.
pub const CHUNK_BYTES: usize = 4 << 20;

/// A frame's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Bytes of payload.
    pub len: u32,
    pub opcode: u16,
    /// Kept for later versions: sent as 0, ignored when read.
    pub flags: u16,
    /// The client thread that this frame belongs to, counted from 1 in the client process.
    pub thread: u32,
    /// Low 32 bits of the number of the last numbered frame that the sender has received and taken over.
    pub ack: u32,
    /// Number of this frame in its direction, from 1; 0 for `Ack`, `Ping`, `Pong` and the handshake.
    pub seq: u64,
}

impl Header {
    /// The header as bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.len.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.opcode.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.flags.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.thread.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.ack.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.seq.to_le_bytes());
        bytes
    }

    /// Reads a header and refuses a payload above `limit` bytes.
    pub fn decode(bytes: &[u8; HEADER_BYTES], limit: usize) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let header = Self {
            len: u32::take(&mut reader)?,
            opcode: u16::take(&mut reader)?,
            flags: u16::take(&mut reader)?,
            thread: u32::take(&mut reader)?,
            ack: u32::take(&mut reader)?,
            seq: u64::take(&mut reader)?,
        };
        if header.len as usize > limit {
            return Err(DecodeError::TooLong(u64::from(header.len)));
        }
        Ok(header)
    }
}

/// A whole frame as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub header: Header,
    pub payload: Vec<u8>,
}

/// The full number behind the low 32 bits of an acknowledgement; `last` is the last known one.
pub fn widen_ack(last: u64, ack: u32) -> u64 {
    let delta = ack.wrapping_sub(last as u32);
    // An older acknowledgement than the last one (frames sent in parallel) must not move it back.
    if delta > u32::MAX / 2 { last } else { last + u64::from(delta) }
}

/// Appends one frame: header, then what `body` writes.
pub fn put_frame(out: &mut Vec<u8>, mut header: Header, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    body(out);
    header.len = (out.len() - start - HEADER_BYTES) as u32;
    out[start..start + HEADER_BYTES].copy_from_slice(&header.encode());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_way_there_and_back() {
        let header = Header { len: 7, opcode: 256, flags: 0, thread: 3, ack: 9, seq: 1 << 40 };
        assert_eq!(Header::decode(&header.encode(), 100), Ok(header));
    }

    #[test]
    fn a_header_that_announces_too_much_is_refused() {
        let header = Header { len: 101, ..Header::default() };
        assert_eq!(Header::decode(&header.encode(), 100), Err(DecodeError::TooLong(101)));
    }

    #[test]
    fn acknowledgements_widen_across_32_bits_and_never_go_back() {
        assert_eq!(widen_ack(0xffff_fff0, 0x0000_0002), 0x1_0000_0002);
        assert_eq!(widen_ack(10, 9), 10);
        assert_eq!(widen_ack(10, 10), 10);
    }
}
