//! What workers ring when their lease's turn has to be looked at: an eventfd for each device.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// See the module.
pub struct Bell(OwnedFd);

impl Bell {
    /// A new bell.
    pub fn new() -> io::Result<Bell> {
        // SAFETY: takes numbers alone.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Bell(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The bell behind a descriptor that came from the supervisor.
    pub fn from_descriptor(descriptor: OwnedFd) -> Bell {
        Bell(descriptor)
    }

    /// The descriptor to hand to a worker.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Wakes the arbiter; a bell that has rung already rings on.
    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from a number on the stack.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Waits until the bell rings or the time is over, and stops its ringing.
    pub fn wait(&self, time: Option<Duration>) {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let time = time.map(|time| libc::timespec {
            tv_sec: time.as_secs().min(3600) as libc::time_t,
            tv_nsec: libc::c_long::from(time.subsec_nanos()),
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let mut rung = 0u64;
        // SAFETY: one pollfd and a time that outlive the call; eight bytes are written to a number on the stack.
        unsafe {
            libc::ppoll(&raw mut poll, 1, time, std::ptr::null());
            libc::read(self.0.as_raw_fd(), (&raw mut rung).cast(), 8);
        }
    }
}
