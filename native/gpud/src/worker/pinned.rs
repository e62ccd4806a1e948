//! The client's page-locked memory, as far as this process has mapped it: pieces of one memory file, which comes beside a
//! Unix socket.

use sluice_backend::{PinnedMemory, PinnedPart, check_file};
use sluice_protocol::{Failure, cuda};
use sluice_transport::Stream;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

/// Pieces of one client that are mapped at a time: each costs the system a mapping.
const MOST: usize = 4096;

/// See the module.
#[derive(Default)]
pub struct Pinned {
    file: Option<OwnedFd>,
    /// What brought it. Its end tells the client that this process has ended and touches none of its memory any more.
    line: Option<Stream>,
    /// By offset in the file.
    open: BTreeMap<u64, Arc<PinnedMemory>>,
    /// Closed, and perhaps still held by a copy or the driver.
    closed: Vec<(u64, Weak<PinnedMemory>)>,
}

fn invalid(text: &str) -> Failure {
    Failure::new(cuda::ERROR_INVALID_VALUE, text)
}

impl Pinned {
    /// Takes the client's memory file; false: it is none, or not the first.
    pub fn take_file(&mut self, file: OwnedFd) -> bool {
        let good = self.file.is_none() && check_file(file.as_fd()).is_ok();
        if good {
            self.file = Some(file);
        }
        good
    }

    /// Keeps the connection that brought the file as long as this process lives.
    pub fn keep_line(&mut self, line: Stream) {
        self.line = Some(line);
    }

    /// Maps a piece that overlaps none that is open.
    pub fn map(&self, offset: u64, bytes: u64) -> Result<PinnedMemory, Failure> {
        let file = self.file.as_ref().ok_or_else(|| invalid("no memory file came on this host"))?;
        if self.open.len() + self.closed.len() >= MOST {
            return Err(Failure::new(cuda::ERROR_OUT_OF_MEMORY, "there are too many pieces of page-locked memory"));
        }
        let before = self.open.range(..offset.saturating_add(bytes)).next_back();
        if before.is_some_and(|(start, memory)| start + memory.bytes() as u64 > offset) {
            return Err(invalid("the page-locked memory is open already"));
        }
        PinnedMemory::map(file.as_fd(), offset, bytes).map_err(|error| invalid(&error.to_string()))
    }

    /// Keeps what [`Pinned::map`] has made.
    pub fn keep(&mut self, offset: u64, memory: Arc<PinnedMemory>) {
        self.open.insert(offset, memory);
    }

    /// No further copy uses what was opened there.
    pub fn close(&mut self, offset: u64) -> Result<Arc<PinnedMemory>, Failure> {
        let memory = self.open.remove(&offset).ok_or_else(|| invalid("no page-locked memory is open there"))?;
        self.closed.push((memory.bytes() as u64, Arc::downgrade(&memory)));
        Ok(memory)
    }

    /// Memory for one copy, inside of what is open.
    pub fn part(&self, offset: u64, bytes: u64) -> Result<PinnedPart, Failure> {
        let found = self.open.range(..=offset).next_back();
        found
            .and_then(|(start, memory)| PinnedPart::of(Arc::clone(memory), offset - start, bytes))
            .filter(|_| bytes > 0)
            .ok_or_else(|| invalid("no page-locked memory is open there"))
    }

    /// Bytes that are mapped.
    pub fn bytes(&mut self) -> u64 {
        self.closed.retain(|(_, memory)| memory.strong_count() > 0);
        let open = self.open.values().map(|memory| memory.bytes() as u64);
        open.chain(self.closed.iter().map(|(bytes, _)| *bytes)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::{AsRawFd, FromRawFd};

    const PAGE: u64 = 4096;

    fn file(seals: libc::c_int) -> OwnedFd {
        // SAFETY: a C string; the descriptor is nobody else's.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING)) };
        file.set_len(16 * PAGE).expect("length");
        // SAFETY: numbers alone.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }, 0);
        file.into()
    }

    fn open(pinned: &mut Pinned, offset: u64, bytes: u64) -> Result<(), Failure> {
        let memory = pinned.map(offset, bytes)?;
        pinned.keep(offset, Arc::new(memory));
        Ok(())
    }

    #[test]
    fn pieces_do_not_overlap_and_copies_stay_inside_of_them() {
        let mut pinned = Pinned::default();
        assert!(open(&mut pinned, 0, PAGE).is_err(), "without a file");
        assert!(!pinned.take_file(file(libc::F_SEAL_GROW)), "a file that can become shorter");
        assert!(pinned.take_file(file(libc::F_SEAL_SHRINK)));
        assert!(!pinned.take_file(file(libc::F_SEAL_SHRINK)), "a second file");
        open(&mut pinned, 4 * PAGE, 4 * PAGE).expect("mapped");
        open(&mut pinned, 8 * PAGE, PAGE).expect("behind it");
        open(&mut pinned, 3 * PAGE, PAGE).expect("before it");
        for (offset, bytes) in [(4, 4), (4, 1), (7, 1), (2, 2), (0, 16), (8, 8), (0, 17)] {
            assert!(open(&mut pinned, offset * PAGE, bytes * PAGE).is_err(), "{offset} {bytes}");
        }
        assert_eq!(pinned.bytes(), 6 * PAGE);
        pinned.part(4 * PAGE + 1, 4 * PAGE - 1).expect("inside");
        for (offset, bytes) in [(0, 1), (4 * PAGE + 1, 4 * PAGE), (9 * PAGE, 1), (4 * PAGE, 0), (u64::MAX, 2)] {
            assert!(pinned.part(offset, bytes).is_err(), "{offset} {bytes}");
        }
    }

    #[test]
    fn what_is_closed_counts_until_nothing_uses_it_any_more() {
        let mut pinned = Pinned::default();
        assert!(pinned.take_file(file(libc::F_SEAL_SHRINK)));
        open(&mut pinned, 0, 2 * PAGE).expect("mapped");
        let copy = pinned.part(0, 10).expect("inside");
        drop(pinned.close(0).expect("open"));
        assert!(pinned.close(0).is_err() && pinned.part(0, 10).is_err());
        assert_eq!(pinned.bytes(), 2 * PAGE);
        // SAFETY: mapped as long as the copy holds it.
        unsafe { copy.start().write(1) };
        drop(copy);
        assert_eq!(pinned.bytes(), 0);
        open(&mut pinned, 0, PAGE).expect("once more");
    }
}
