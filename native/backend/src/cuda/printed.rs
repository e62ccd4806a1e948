//! What kernels print: the driver writes it to this process's standard output when something waits for the device.

use crate::device::Printer;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{Mutex, PoisonError};

/// What has been told is cut off when it is longer.
const KEPT_BYTES: u64 = 16 << 20;

/// Standard output as a file in memory, which never makes the driver wait, and who hears of what is in it.
pub struct Printed {
    file: Mutex<File>,
    printer: Printer,
}

impl Printed {
    /// From now on this process's standard output is the printer's.
    pub fn capture(printer: Printer) -> io::Result<Printed> {
        // SAFETY: the name is a C string, the flags are valid.
        let fd = unsafe { libc::memfd_create(c"sluice-printed".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        // Opened once more: what is written has a place of its own in the file, always its end.
        let written = File::options().append(true).open(format!("/proc/self/fd/{fd}"))?;
        // SAFETY: both descriptors are open.
        if unsafe { libc::dup2(written.as_raw_fd(), libc::STDOUT_FILENO) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Printed { file: Mutex::new(file), printer })
    }

    /// Tells what has been printed since the last time.
    pub fn tell(&self) {
        // SAFETY: null means all of C's streams.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Vec::new();
        if matches!(file.read_to_end(&mut text), Ok(1..)) {
            // Seldom: what somebody prints between this reading and the cut is lost.
            if file.stream_position().is_ok_and(|read| read > KEPT_BYTES) && file.set_len(0).is_ok() {
                let _ = file.seek(SeekFrom::Start(0));
            }
            (self.printer)(&String::from_utf8_lossy(&text));
        }
    }
}
