//! Memory of one device that another device's worker reaches, at the same addresses.

use std::io;
use std::os::fd::BorrowedFd;

/// What one worker hands to another at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The range of the session that it is of: where it begins, and its bytes.
    pub range: (u64, u64),
    pub address: u64,
    pub bytes: u64,
}

/// The worker that memory is lent to. Its answers need nothing of the worker that lends.
pub trait Borrower: Send + Sync {
    /// Hands a part over and waits until the other device reaches it. Fails when the other worker could not take it, or is
    /// gone; it is then lent to nobody.
    fn give(&self, part: Part, memory: BorrowedFd<'_>) -> io::Result<()>;

    /// Asks for the part at an address back: `done` when nothing that was issued to the other device before uses it, or
    /// that worker is gone.
    fn take_back(&self, address: u64, done: Box<dyn FnOnce() + Send>);

    /// Nothing more is lent to it, and it is to give up what it has.
    fn end(&self);
}
