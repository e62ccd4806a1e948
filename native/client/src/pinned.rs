//! Page-locked memory that a GPU server on this host maps: its copies go between there and the device, and no processor
//! touches their data.
//!
//! It lies in one memory file, of which every allocation is a piece of its own; no place in the file is used twice. A
//! session's worker gets the file once, on a connection of its own, and maps a piece when the program first copies from or
//! to it. Where any of that fails, copies take the way of all others.
//!
//! A worker whose session is lost may still be copying. Its end is the end of the connection that brought it the file, and
//! until then no call that was under way fails: the program may do with its memory what it likes when it hears of the loss.

use crate::connection::Connection;
use crate::dial;
use crate::fork;
use sluice_protocol::handshake::{Resume, Welcome};
use sluice_protocol::messages::{PinnedClose, PinnedOpen};
use sluice_protocol::{PINNED_MEMORY, cuda};
use sluice_transport::Stream;
use sluice_transport::spin::readable_within;
use sluice_transport::variables;
use std::collections::HashMap;
use std::ffi::c_void;
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Shorter page-locked memory is not worth a mapping of its own.
const LEAST_BYTES: usize = 1 << 20;
/// Shorter copies travel as others do: what they cost in copying is less than the answer.
pub const PINNED_BYTES: usize = 64 << 10;
/// Longest time that a worker may take to end.
const END_MILLISECONDS: i32 = 5000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A piece of the file, mapped here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub start: usize,
    pub bytes: usize,
    offset: u64,
}

/// The file, and where its last piece ends. It is never closed.
struct File {
    descriptor: OwnedFd,
    end: u64,
}

static FILE: Mutex<Option<File>> = Mutex::new(None);

impl File {
    fn create() -> Option<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let descriptor = unsafe { libc::memfd_create(c"sluice-pinned".as_ptr(), flags) };
        if descriptor < 0 {
            return None;
        }
        // SAFETY: just made, and nobody else's.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
        // SAFETY: numbers alone.
        let sealed = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_ADD_SEALS, seals) } == 0;
        if sealed {
            fork::register(descriptor.as_raw_fd());
        }
        sealed.then_some(Self { descriptor, end: 0 })
    }

    /// Makes the file longer by a piece, and maps it.
    fn extend(&mut self, bytes: usize) -> Option<Piece> {
        let (offset, end) = (self.end, self.end.checked_add(bytes as u64)?);
        let mut most = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a live local. Beyond that limit the system would end the program.
        let fits = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut most) } == 0 && end <= most.rlim_cur;
        let descriptor = self.descriptor.as_raw_fd();
        // SAFETY: numbers alone.
        if !fits || unsafe { libc::ftruncate(descriptor, end as libc::off_t) } != 0 {
            return None;
        }
        self.end = end;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a shared mapping of a file that is long enough and stays so; the address is the kernel's choice.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, descriptor, offset as libc::off_t)
        };
        (start != libc::MAP_FAILED).then_some(Piece { start: start as usize, bytes, offset })
    }
}

/// Page-locked memory of at least so many bytes in the file; None: ordinary memory does as well, because it is short or no
/// GPU server is on this host, or there is no more.
pub fn take(bytes: usize) -> Option<Piece> {
    let near = variables::text("SLUICE_GPUD_SOCKETS").is_some();
    if bytes < LEAST_BYTES || !near {
        return None;
    }
    // SAFETY: a number alone.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let bytes = bytes.checked_next_multiple_of(page).filter(|bytes| isize::try_from(*bytes).is_ok())?;
    let mut file = lock(&FILE);
    if file.is_none() {
        *file = File::create();
    }
    file.as_mut()?.extend(bytes)
}

/// Gives a piece back.
///
/// # Safety
/// It came from [`take`], and nobody uses its memory any more.
pub unsafe fn give_back(piece: Piece) {
    // SAFETY: a mapping of this library's own, given back once.
    unsafe { libc::munmap(piece.start as *mut c_void, piece.bytes) };
    if let Some(file) = &*lock(&FILE) {
        let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (at, bytes) = (piece.offset as libc::off_t, piece.bytes as libc::off_t);
        // SAFETY: numbers alone. The memory itself is the system's again.
        unsafe { libc::fallocate(file.descriptor.as_raw_fd(), flags, at, bytes) };
    }
}

/// The connection that brought the file to a worker, which keeps its end until it ends itself.
struct Line(Stream);

impl Drop for Line {
    fn drop(&mut self) {
        fork::unregister(self.0.as_raw_fd());
    }
}

/// What a session's worker has mapped.
pub struct Reach {
    state: Mutex<State>,
    line: OnceLock<Line>,
}

#[derive(Default)]
struct State {
    /// Whether the worker has the file; None: it was not tried.
    has_file: Option<bool>,
    /// By offset: whether the worker has mapped that piece.
    pieces: HashMap<u64, bool>,
}

impl Reach {
    /// Of a session that was welcomed so.
    pub fn of(welcome: &Welcome) -> Self {
        let possible = welcome.features.iter().any(|feature| feature == PINNED_MEMORY);
        let state = State { has_file: (!possible).then_some(false), ..State::default() };
        Self { state: Mutex::new(state), line: OnceLock::new() }
    }

    /// Returns when the worker cannot touch the program's memory any more, since it has ended.
    pub fn outlive_worker(&self) {
        if let Some(Line(stream)) = self.line.get() {
            readable_within(stream.as_raw_fd(), END_MILLISECONDS);
        }
    }
}

impl Connection {
    /// Where the worker finds memory of a piece in the file; None: it does not.
    pub fn reached(self: &Arc<Self>, piece: Piece, address: usize) -> Option<u64> {
        let mut state = lock(&self.reach.state);
        if !*state.has_file.get_or_insert_with(|| self.hand_over().is_some()) {
            return None;
        }
        let mapped = match state.pieces.get(&piece.offset) {
            Some(mapped) => *mapped,
            None => {
                // Its pages are this process's, not the worker's that would touch them first.
                // SAFETY: the piece is mapped. An older system does not know it, and nothing is lost.
                unsafe { libc::madvise(piece.start as *mut c_void, piece.bytes, libc::MADV_POPULATE_WRITE) };
                let opened = self.call(&PinnedOpen { offset: piece.offset, bytes: piece.bytes as u64 });
                if opened.as_ref().is_err_and(|error| error.code == cuda::ERROR_DEVICE_UNAVAILABLE) {
                    return None;
                }
                state.pieces.insert(piece.offset, opened.is_ok());
                opened.is_ok()
            }
        };
        mapped.then(|| piece.offset + (address - piece.start) as u64)
    }

    /// Brings the file to the worker; None: that is not possible.
    fn hand_over(&self) -> Option<()> {
        let file = lock(&FILE).as_ref()?.descriptor.as_raw_fd();
        let resume = Resume { session_id: self.session_id().to_owned(), received: 0 };
        let mut stream = dial::for_memory(&self.ticket(), resume).ok()?;
        // SAFETY: the file is never closed.
        stream.hand_over(unsafe { BorrowedFd::borrow_raw(file) }).ok()?;
        let mut answer = [0];
        stream.read_exact(&mut answer).ok()?;
        if answer == [1] {
            fork::register(stream.as_raw_fd());
            self.reach.line.set(Line(stream)).ok()
        } else {
            None
        }
    }

    /// No copy uses a piece any more.
    pub fn forget_piece(&self, piece: Piece) {
        if lock(&self.reach.state).pieces.remove(&piece.offset) == Some(true) {
            // A session that is lost holds nothing.
            let _ = self.post(&PinnedClose { offset: piece.offset });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    #[test]
    fn a_loss_is_told_when_the_worker_has_ended() {
        let (near, far) = UnixStream::pair().expect("pair");
        let reach = Reach { state: Mutex::default(), line: OnceLock::new() };
        let began = Instant::now();
        reach.outlive_worker();
        assert!(began.elapsed() < Duration::from_secs(1), "it has nothing of the program's");
        assert!(reach.line.set(Line(Stream::Unix(near))).is_ok());
        let ending = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(far);
        });
        reach.outlive_worker();
        assert!(began.elapsed() >= Duration::from_millis(200), "it may still copy");
        ending.join().expect("no panic");
    }

    #[test]
    fn pieces_lie_apart_in_a_file_that_keeps_its_length_and_go_back_to_the_system() {
        let mut file = File::create().expect("a file");
        let [first, second] = [1 << 20, 1 << 21].map(|bytes| file.extend(bytes).expect("a piece"));
        assert_eq!((first.offset, second.offset, file.end), (0, 1 << 20, 3 << 20));
        // SAFETY: numbers alone.
        assert_ne!(unsafe { libc::ftruncate(file.descriptor.as_raw_fd(), 0) }, 0);
        // SAFETY: a live local.
        let kept = |file: &File| unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            assert_eq!(libc::fstat(file.descriptor.as_raw_fd(), &raw mut status), 0);
            status.st_blocks * 512
        };
        // SAFETY: mapped, and as long.
        unsafe { (second.start as *mut u8).write_bytes(1, second.bytes) };
        assert!(kept(&file) >= 1 << 21);
        let shared = lock(&FILE).insert(file).descriptor.as_raw_fd();
        // SAFETY: the pieces of this test, which nobody uses any more.
        unsafe { [first, second].into_iter().for_each(|piece| give_back(piece)) };
        let file = lock(&FILE).take().expect("still there");
        assert_eq!((kept(&file), file.descriptor.as_raw_fd()), (0, shared));
        fork::unregister(shared);
    }
}
