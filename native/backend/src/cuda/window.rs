//! Bulk copies through pinned memory: pieces go between the sockets and page-locked buffers, and the device's own copy
//! engines between those and its memory, while the program's stream waits.

use super::waiters::Waiters;
use super::{Shareable, Shared, lock};
use crate::error::CudaError;
use crate::window::Window;
use std::io;
use std::sync::{Arc, Mutex};

/// See the module.
pub struct PinnedWindow {
    pub shared: Arc<Shared>,
    pub waiters: Waiters,
    /// The stream of copies in this direction, ordered with none of the program's.
    pub stream: Shareable,
    pub address: u64,
    pub bytes: u64,
    /// Lets the program's stream go on.
    pub go_on: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

// SAFETY: the stream's handle may be used from any thread; all else is shared by its own rules.
unsafe impl Sync for PinnedWindow {}

fn failed(error: CudaError) -> io::Error {
    io::Error::other(error.to_string())
}

impl PinnedWindow {
    fn inside(&self, offset: u64, length: usize) -> io::Result<u64> {
        let end = offset.checked_add(length as u64);
        let inside = end.is_some_and(|end| end <= self.bytes);
        inside.then(|| self.address + offset).ok_or_else(|| io::Error::other("a piece outside of the copy"))
    }
}

impl Window for PinnedWindow {
    fn put(&self, offset: u64, length: usize, fill: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<()> {
        let target = self.inside(offset, length)?;
        let driver = self.shared.enter().map_err(failed)?;
        let buffer = lock(&self.shared.staging).take(length).map_err(failed)?;
        // SAFETY: the buffer is at least this long, page-locked memory that has been zeroed or written before, and
        // nobody else uses it.
        let room = unsafe { std::slice::from_raw_parts_mut(buffer.memory.cast::<u8>(), length) };
        if let Err(error) = fill(room) {
            lock(&self.shared.staging).give_back(buffer);
            return Err(error);
        }
        // SAFETY: as above; the buffer is lent until the copy is done.
        let copied = self.shared.check(unsafe { (driver.copy_in)(target, buffer.memory, length, self.stream.0) });
        match copied.and_then(|()| self.shared.mark(self.stream.0)) {
            Ok(mark) => lock(&self.shared.staging).lend(buffer, mark.0),
            // Whether the device still reads the buffer is not known: it is not used again.
            Err(error) => return Err(failed(error)),
        }
        Ok(())
    }

    fn get(&self, offset: u64, length: usize, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let source = self.inside(offset, length)?;
        let driver = self.shared.enter().map_err(failed)?;
        let buffer = lock(&self.shared.staging).take(length).map_err(failed)?;
        // SAFETY: the buffer is at least this long and lives until the copy is done.
        let copied = self.shared.check(unsafe { (driver.copy_out)(buffer.memory, source, length, self.stream.0) });
        let mark = copied.and_then(|()| self.shared.mark(self.stream.0));
        mark.and_then(|mark| self.shared.pass(mark)).map_err(failed)?;
        // SAFETY: the copy is done: the first `length` bytes are written, and nobody else uses the buffer.
        let taken = take(unsafe { std::slice::from_raw_parts(buffer.memory.cast::<u8>(), length) });
        lock(&self.shared.staging).give_back(buffer);
        taken
    }

    fn close(&self) {
        let Some(go_on) = lock(&self.go_on).take() else { return };
        let (shared, stream) = (Arc::clone(&self.shared), self.stream);
        self.waiters.run(Box::new(move || {
            let stream = stream;
            // A failure is sticky and told by whatever waits for the program's stream.
            let _ = shared.enter().and_then(|_| shared.mark(stream.0)).and_then(|mark| shared.pass(mark));
            go_on();
        }));
    }
}
