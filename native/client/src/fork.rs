//! What a forked child does: it closes the parent's connections and nothing else.

use crate::device::MOST_DEVICES;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// A device has a connection and lanes, each with a few descriptors; beside them there is the owner's socket.
const SLOTS: usize = 32 * MOST_DEVICES;
static DESCRIPTORS: [AtomicI32; SLOTS] = [const { AtomicI32::new(-1) }; SLOTS];
/// How often this process image was forked since it became active.
static FORKS: AtomicU32 = AtomicU32::new(0);
static CUDA_USED: AtomicBool = AtomicBool::new(false);
static CHILD: AtomicBool = AtomicBool::new(false);
static ACTIVE: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// Called when this process starts to use CUDA or opens a connection.
pub fn active() {
    HOOK.call_once(|| {
        // SAFETY: the handler only touches atomics and calls close, which is allowed between fork and exec.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    ACTIVE.store(true, Ordering::Release);
}

extern "C" fn in_child() {
    if !ACTIVE.load(Ordering::Acquire) {
        return;
    }
    FORKS.fetch_add(1, Ordering::AcqRel);
    if CUDA_USED.load(Ordering::Acquire) {
        CHILD.store(true, Ordering::Release);
    }
    for slot in &DESCRIPTORS {
        let descriptor = slot.swap(-1, Ordering::AcqRel);
        if descriptor >= 0 {
            // SAFETY: the descriptor belongs to this library; no thread of it runs in the child.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// `cuInit` has succeeded: CUDA cannot be used in children forked from now on.
pub fn cuda_used() {
    active();
    CUDA_USED.store(true, Ordering::Release);
}

/// This process was forked from one that had used CUDA: as with the real driver, CUDA cannot be used here.
#[inline]
pub fn is_child() -> bool {
    CHILD.load(Ordering::Relaxed)
}

/// How often this process image was forked since it became active: state of another count belongs to a parent.
#[inline]
pub fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Has a forked child close this descriptor.
pub fn register(descriptor: i32) {
    active();
    for slot in &DESCRIPTORS {
        if slot.compare_exchange(-1, descriptor, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return;
        }
    }
}

/// The descriptor is about to be closed here.
pub fn unregister(descriptor: i32) {
    for slot in &DESCRIPTORS {
        if slot.compare_exchange(descriptor, -1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_closes_the_connections_of_as_many_devices_as_there_can_be() {
        // SAFETY: standard error is open; the copies are closed below.
        let copies: Vec<i32> = (0..30 * MOST_DEVICES).map(|_| unsafe { libc::dup(libc::STDERR_FILENO) }).collect();
        assert!(copies.iter().all(|copy| *copy >= 0));
        copies.iter().for_each(|copy| register(*copy));
        // SAFETY: the child only asks for descriptors and ends at once.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above.
            let open = copies.iter().filter(|copy| unsafe { libc::fcntl(**copy, libc::F_GETFD) } >= 0).count();
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(open > 0)) };
        }
        let mut status = -1;
        // SAFETY: the child made above.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "the child keeps descriptors open");
        for copy in copies {
            unregister(copy);
            // SAFETY: made above, and nobody else's.
            assert_eq!(unsafe { libc::close(copy) }, 0, "the parent's own were touched");
        }
    }
}
