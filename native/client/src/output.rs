//! What kernels print: kept as it arrives, and written to the program's standard output when one of its CUDA calls
//! returns, so that what a kernel has printed stands there after the call that waited for it, as with CUDA.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most bytes that are kept for a program that makes no call: those of CUDA's default buffer, or of the largest one that
/// the program has asked for; later text is dropped.
static MOST: AtomicUsize = AtomicUsize::new(1 << 20);

static THERE: AtomicBool = AtomicBool::new(false);
static KEPT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The program has asked for a buffer of so many bytes.
pub fn keep_at_least(bytes: usize) {
    MOST.fetch_max(bytes, Ordering::Relaxed);
}

/// Keeps text until the next [`flush`]. Does not wait.
pub fn keep(text: &str) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let room = MOST.load(Ordering::Relaxed).saturating_sub(kept.len()).min(text.len());
    kept.extend_from_slice(&text.as_bytes()[..room]);
    THERE.store(true, Ordering::Release);
}

/// Writes what is kept to standard output: the descriptor itself, which CUDA's printf uses too.
#[inline]
pub fn flush() {
    if THERE.load(Ordering::Acquire) {
        write();
    }
}

#[cold]
fn write() {
    let text = {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        THERE.store(false, Ordering::Release);
        std::mem::take(&mut *kept)
    };
    let mut rest = &text[..];
    while !rest.is_empty() {
        // SAFETY: the pointer and length are those of a live slice.
        let written = unsafe { libc::write(libc::STDOUT_FILENO, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            // Standard output that is closed or full takes no more.
            Err(_) if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted => return,
            Err(_) => {}
        }
    }
}
