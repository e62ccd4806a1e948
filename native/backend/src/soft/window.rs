//! A bulk copy's view of the arena.

use crate::window::Window;
use std::io;
use std::sync::{Mutex, PoisonError};

/// A mapped range of the arena. The node of the timeline that opened it is not finished before it is closed, and pages
/// are given back only after all such nodes.
pub struct ArenaWindow {
    address: u64,
    bytes: u64,
    go_on: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl ArenaWindow {
    /// The range, which is mapped, until `go_on` is called.
    pub fn new(address: u64, bytes: u64, go_on: Box<dyn FnOnce() + Send>) -> ArenaWindow {
        ArenaWindow { address, bytes, go_on: Mutex::new(Some(go_on)) }
    }

    fn place(&self, offset: u64, length: usize) -> io::Result<u64> {
        if offset > self.bytes || length as u64 > self.bytes - offset {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the piece leaves its copy"));
        }
        Ok(self.address + offset)
    }
}

impl Window for ArenaWindow {
    fn put(&self, offset: u64, length: usize, fill: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<()> {
        let place = self.place(offset, length)?;
        // SAFETY: mapped as long as the window is open, bytes of any value. A kernel of another stream that uses them
        // meanwhile finds either value in each byte, as on a card.
        fill(unsafe { std::slice::from_raw_parts_mut(place as *mut u8, length) })
    }

    fn get(&self, offset: u64, length: usize, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let place = self.place(offset, length)?;
        // SAFETY: as in `put`.
        take(unsafe { std::slice::from_raw_parts(place as *const u8, length) })
    }

    fn close(&self) {
        let go_on = self.go_on.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(go_on) = go_on {
            go_on();
        }
    }
}
