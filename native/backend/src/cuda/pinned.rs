//! Copies between the device and memory of the client that is locked for them: nothing lies in between.
//!
//! As the copies of [`window`](super::window)s they are issued outside of the lease's turn: a copy engine runs them beside
//! kernels.

use super::{CudaDevice, lock};
use crate::device::Done;
use crate::error::CudaResult;
use crate::pinned::{PinnedMemory, PinnedPart};
use crate::types::StreamId;
use crate::window::Way;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// CU_MEMHOSTREGISTER_PORTABLE
const PORTABLE: u32 = 1;

/// What there is of it beside the session's own list.
#[derive(Default)]
pub struct Pinned {
    /// Closed, and still locked.
    closed: Mutex<Vec<Arc<PinnedMemory>>>,
    /// Copies that have not been answered.
    copies: Arc<AtomicU64>,
}

impl Pinned {
    /// Copies that have not been answered.
    pub fn copies(&self) -> u64 {
        self.copies.load(Ordering::Relaxed)
    }
}

impl CudaDevice {
    /// Has the driver lock its pages.
    pub(super) fn lock_pages(&self, memory: &PinnedMemory) -> CudaResult<()> {
        let driver = self.shared.enter()?;
        self.unlock_closed();
        // SAFETY: mapped, and so long; it stays mapped until it is unlocked.
        self.shared.check(unsafe { (driver.host_register)(memory.start().cast(), memory.bytes(), PORTABLE) })
    }

    /// Has it give them up when it can.
    pub(super) fn unlock_pages(&self, memory: Arc<PinnedMemory>) {
        lock(&self.pinned.closed).push(memory);
        self.unlock_closed();
    }

    /// Unlocks what is closed if nothing runs. A driver may have whoever unlocks wait for the device, which may wait for
    /// the client, whose words come by the thread that would wait here.
    fn unlock_closed(&self) {
        let mut closed = lock(&self.pinned.closed);
        if closed.is_empty() {
            return;
        }
        let Ok(driver) = self.shared.enter() else { return };
        let streams = self.all_streams().into_iter().chain(self.lanes);
        // SAFETY: streams of this context.
        if streams.into_iter().any(|stream| unsafe { (driver.stream_query)(stream.0) } != 0) {
            return;
        }
        for memory in closed.drain(..) {
            // SAFETY: locked by `lock_pages`; no copy of it is under way.
            if unsafe { (driver.host_unregister)(memory.start().cast()) } != 0 {
                // The driver may still use it.
                std::mem::forget(memory);
            }
        }
    }

    /// Queues a copy.
    pub(super) fn copy_locked(
        &self,
        stream: StreamId,
        way: Way,
        address: u64,
        part: PinnedPart,
        done: Done<()>,
    ) -> CudaResult<()> {
        let (driver, stream) = (self.shared.enter()?, self.stream(stream)?);
        let (host, bytes) = (part.start(), part.bytes());
        // SAFETY: the part is locked and as long, and stays so until `done` is called; the driver checks the address.
        self.shared.check(unsafe {
            match way {
                Way::In => (driver.copy_in)(address, host.cast(), bytes, stream),
                Way::Out => (driver.copy_out)(host.cast(), address, bytes, stream),
            }
        })?;
        let copies = Arc::clone(&self.pinned.copies);
        copies.fetch_add(1, Ordering::Relaxed);
        let answer: Done<()> = Box::new(move |outcome| {
            drop(part);
            copies.fetch_sub(1, Ordering::Relaxed);
            done(outcome);
        });
        self.after(stream, |_| (), answer).inspect_err(|_| {
            self.pinned.copies.fetch_sub(1, Ordering::Relaxed);
        })
    }
}
