//! Notices that gpud sends on its own account, as numbered frames.

use crate::wire::{DecodeError, Reader, Wire};

/// A posted operation failed. The error is also kept on the server's side and answers the next call that CUDA allows
/// to report it; this frame lets the client answer earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncError {
    /// Number of the frame that failed; 0 when it cannot be told.
    pub seq: u64,
    /// CUresult.
    pub code: u32,
    /// The context cannot be used any more (CUDA's sticky errors, e.g. 700).
    pub sticky: bool,
    pub text: String,
}

impl<'a> Wire<'a> for AsyncError {
    fn put(&self, out: &mut Vec<u8>) {
        self.seq.put(out);
        self.code.put(out);
        u8::from(self.sticky).put(out);
        self.text.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            seq: u64::take(reader)?,
            code: u32::take(reader)?,
            sticky: u8::take(reader)? != 0,
            text: String::take(reader)?,
        })
    }
}

/// The lease has ended. Parked: memory and handles are kept, the connection stays, and only `Rebind` and `Goodbye`
/// are executed until a new lease is bound. Not parked: the server closes the connection after this frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseEnded {
    pub parked: bool,
    pub parked_bytes: u64,
    /// One sentence for a person, e.g. `Your GPU was ended by an admin: maintenance.`
    pub reason: String,
}

impl<'a> Wire<'a> for LeaseEnded {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(self.parked).put(out);
        self.parked_bytes.put(out);
        self.reason.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { parked: u8::take(reader)? != 0, parked_bytes: u64::take(reader)?, reason: String::take(reader)? })
    }
}

/// The memory of another session's device, which was linked with this one, is reached no more: that session has ended, or
/// its server could not keep the way open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerLost {
    /// Of the other session's welcome, as it was named.
    pub nonce: String,
}

impl<'a> Wire<'a> for PeerLost {
    fn put(&self, out: &mut Vec<u8>) {
        self.nonce.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { nonce: String::take(reader)? })
    }
}

/// What kernels have printed since the last one of these. Sent before the answer to the call that waits for the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    pub text: String,
}

impl<'a> Wire<'a> for Printed {
    fn put(&self, out: &mut Vec<u8>) {
        self.text.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { text: String::take(reader)? })
    }
}

/// gpud asks for up to `bytes` of idle credit; the client answers at once with `CreditReturn` (0 when it has none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditRecall {
    pub bytes: u64,
}

impl<'a> Wire<'a> for CreditRecall {
    fn put(&self, out: &mut Vec<u8>) {
        self.bytes.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { bytes: u64::take(reader)? })
    }
}

/// A stream has come to a function of the client; it goes on when the client has posted `HostReturned`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostReached {
    /// To be handed back.
    pub ticket: u64,
    /// The number that `HostFunction` or a graph's node named.
    pub function: u64,
}

impl<'a> Wire<'a> for HostReached {
    fn put(&self, out: &mut Vec<u8>) {
        self.ticket.put(out);
        self.function.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { ticket: u64::take(reader)?, function: u64::take(reader)? })
    }
}

/// Part of what a graph copies to the client's memory. It comes before every notice and answer that says that the
/// copy is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostData<'a> {
    /// The number that the graph's node named.
    pub copy: u64,
    /// Where in the copy, its rows laid end to end.
    pub offset: u64,
    pub data: &'a [u8],
}

impl<'a> Wire<'a> for HostData<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        self.copy.put(out);
        self.offset.put(out);
        self.data.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { copy: u64::take(reader)?, offset: u64::take(reader)?, data: Wire::take(reader)? })
    }
}

/// A graph's copy from the client's memory has come to its turn; the client posts `HostSupplied`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostWanted {
    /// To be handed back.
    pub ticket: u64,
    /// The number that the graph's node named.
    pub copy: u64,
}

impl<'a> Wire<'a> for HostWanted {
    fn put(&self, out: &mut Vec<u8>) {
        self.ticket.put(out);
        self.copy.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { ticket: u64::take(reader)?, copy: u64::take(reader)? })
    }
}

/// An event that was not ready when `EventWatch` asked has been passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPassed {
    pub event: u64,
    /// The number that `EventWatch` named.
    pub recording: u64,
}

impl<'a> Wire<'a> for EventPassed {
    fn put(&self, out: &mut Vec<u8>) {
        self.event.put(out);
        self.recording.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { event: u64::take(reader)?, recording: u64::take(reader)? })
    }
}
