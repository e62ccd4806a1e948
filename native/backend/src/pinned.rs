//! Memory of the host that the client's process and this one have mapped: a driver copies straight from and to it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

/// What has to be there of a memory file's seals: nobody makes it shorter under a process that reads it.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK;

fn not_a_place() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not whole pages of a memory file that keeps its length")
}

/// Checks that a descriptor is a memory file of ordinary pages that cannot become shorter: what is mapped of it stays
/// readable, whatever its other owner does.
pub fn check_file(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: a zeroed statfs is valid; the calls take a descriptor that is open and a live local.
    let fits = unsafe {
        let mut status: libc::statfs = std::mem::zeroed();
        let seals = libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS);
        seals >= 0
            && seals & SEALS == SEALS
            && libc::fstatfs(file.as_raw_fd(), &raw mut status) == 0
            && status.f_type == libc::TMPFS_MAGIC
    };
    if fits { Ok(()) } else { Err(not_a_place()) }
}

/// See the module. The other process may change the bytes at any time: they are copied as they are and never looked at.
pub struct PinnedMemory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping that lives as long as the value; its bytes are only copied, by whoever holds a part of it.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// Maps whole pages of a file that [`check_file`] has found good.
    pub fn map(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<PinnedMemory> {
        // SAFETY: a number alone.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
        let whole = bytes > 0 && offset.is_multiple_of(page) && bytes.is_multiple_of(page);
        let end = offset.checked_add(bytes).filter(|end| whole && *end <= i64::MAX as u64).ok_or_else(not_a_place)?;
        // SAFETY: a zeroed stat is valid; an open descriptor and a live local.
        let there = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            libc::fstat(file.as_raw_fd(), &raw mut status) == 0 && status.st_size as u64 >= end
        };
        if !there {
            return Err(not_a_place());
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a shared mapping of a file that is long enough and stays so; the address is the kernel's choice.
        let address = unsafe {
            let (length, from) = (bytes as usize, offset as libc::off_t);
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), from)
        };
        match NonNull::new(address.cast()) {
            Some(start) if address != libc::MAP_FAILED => Ok(PinnedMemory { start, bytes: bytes as usize }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Where it begins.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How long it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and used through the value and its parts alone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A part of it, which keeps all of it mapped.
#[derive(Clone)]
pub struct PinnedPart {
    memory: Arc<PinnedMemory>,
    offset: usize,
    bytes: usize,
}

impl PinnedPart {
    /// So many bytes from an offset on, if that lies inside.
    pub fn of(memory: Arc<PinnedMemory>, offset: u64, bytes: u64) -> Option<PinnedPart> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= memory.bytes as u64);
        inside.then_some(PinnedPart { memory, offset: offset as usize, bytes: bytes as usize })
    }

    /// Where it begins.
    pub fn start(&self) -> *mut u8 {
        // SAFETY: inside the mapping, as `of` has checked.
        unsafe { self.memory.start().add(self.offset) }
    }

    /// How long it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::{AsFd, FromRawFd};

    const PAGE: u64 = 4096;

    fn file(flags: libc::c_uint, seals: libc::c_int, bytes: u64) -> File {
        // SAFETY: a C string; the descriptor is nobody else's.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), flags | libc::MFD_ALLOW_SEALING)) };
        file.set_len(bytes).expect("length");
        // SAFETY: numbers alone.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }, 0);
        file
    }

    #[test]
    fn a_file_that_can_become_shorter_or_is_none_is_not_taken() {
        check_file(file(0, SEALS, PAGE).as_fd()).expect("a sealed file");
        assert!(check_file(file(0, libc::F_SEAL_GROW, PAGE).as_fd()).is_err());
        assert!(check_file(File::open("/proc/self/exe").expect("open").as_fd()).is_err());
        assert!(check_file(std::io::pipe().expect("pipe").0.as_fd()).is_err());
        // Sealed against writing, it cannot be mapped for it.
        let fixed = file(0, SEALS | libc::F_SEAL_WRITE, PAGE);
        assert!(PinnedMemory::map(fixed.as_fd(), 0, PAGE).is_err());
    }

    #[test]
    fn only_whole_pages_that_are_there_are_mapped_and_only_parts_of_them_are_given() {
        let file = file(0, SEALS, 4 * PAGE);
        for (offset, bytes) in [
            (0, 0),
            (1, PAGE),
            (0, PAGE + 1),
            (0, 5 * PAGE),
            (4 * PAGE, PAGE),
            (u64::MAX - PAGE + 1, PAGE),
            (PAGE, u64::MAX - PAGE + 1),
            (1 << 63, PAGE),
        ] {
            assert!(PinnedMemory::map(file.as_fd(), offset, bytes).is_err(), "{offset} {bytes}");
        }
        let memory = Arc::new(PinnedMemory::map(file.as_fd(), PAGE, 3 * PAGE).expect("mapped"));
        for (offset, bytes) in [(0, 3 * PAGE + 1), (3 * PAGE, 1), (1, u64::MAX), (u64::MAX, 2)] {
            assert!(PinnedPart::of(Arc::clone(&memory), offset, bytes).is_none(), "{offset} {bytes}");
        }
        let part = PinnedPart::of(memory, PAGE, 2 * PAGE).expect("inside");
        // SAFETY: the part's first byte.
        unsafe { part.start().write(7) };
        let mut there = [0];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut there, 2 * PAGE).expect("read");
        assert_eq!((there, part.bytes()), ([7], 2 * PAGE as usize));
    }
}
