//! Copies to the host that are under way.
//!
//! The program may have gone on behind such a copy, and then hears that its data are there by whatever comes after it:
//! the stream, an event of any stream, a host function. Those are waited for on threads of their own, so each of them
//! first has the copies answered that have ended.

use super::loader::{Driver, Handle};
use super::staging::Buffer;
use super::waiters::Waiters;
use super::{Shareable, Shared, lock};
use crate::device::Done;
use crate::error::CudaResult;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

/// CUDA_ERROR_NOT_READY
const NOT_READY: i32 = 600;

/// One of them.
struct Copy {
    /// Behind it in its stream.
    event: Shareable,
    buffer: Buffer,
    bytes: usize,
    done: Done<Vec<u8>>,
}

/// All of them.
#[derive(Default)]
pub struct Outgoing {
    copies: Mutex<Vec<Copy>>,
    /// How many; for threads that may not wait for the lock.
    count: AtomicUsize,
}

impl Shared {
    /// Copies to the host; returns when the copy is issued.
    pub(super) fn copy_out(
        self: &Arc<Self>,
        waiters: &Waiters,
        stream: Handle,
        src: u64,
        bytes: usize,
        done: Done<Vec<u8>>,
    ) -> CudaResult<()> {
        let driver = self.enter()?;
        let event = self.event(2)?;
        let buffer = lock(&self.staging).take(bytes)?;
        // SAFETY: the buffer is at least as long as the copy and lives until its event has passed.
        if let Err(error) = self.check(unsafe { (driver.copy_out)(buffer.memory, src, bytes, stream) }) {
            lock(&self.staging).give_back(buffer);
            return Err(error);
        }
        // Where this fails, the buffer is nobody's: the copy may be writing to it.
        // SAFETY: a stream and an event of this context.
        self.check(unsafe { (driver.event_record)(event.0, stream) })?;
        self.outgoing.count.fetch_add(1, Ordering::SeqCst);
        lock(&self.outgoing.copies).push(Copy { event, buffer, bytes, done });
        let shared = Arc::clone(self);
        waiters.run(Box::new(move || drop(shared.pass(event))));
        Ok(())
    }

    /// Answers the copies that have ended. Called before anybody hears of something that may come after one.
    pub(super) fn deliver(&self) {
        if self.outgoing.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let entered = self.enter();
        // Held until the last answer is given: else another thread could find the list empty too early.
        let mut copies = lock(&self.outgoing.copies);
        let over = |copy: &mut Copy| match &entered {
            // SAFETY: who ends the event has this function take the copy off the list before.
            Ok(driver) => (unsafe { (driver.event_query)(copy.event.0) }) != NOT_READY,
            Err(_) => true,
        };
        let ended: Vec<Copy> = copies.extract_if(.., over).collect();
        for copy in ended {
            let outcome = entered.clone().and_then(|driver| self.ended(driver, &copy));
            lock(&self.staging).give_back(copy.buffer);
            (copy.done)(outcome);
            self.outgoing.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn ended(&self, driver: &Driver, copy: &Copy) -> CudaResult<Vec<u8>> {
        // SAFETY: as in `deliver`.
        self.check(unsafe { (driver.event_query)(copy.event.0) })?;
        // SAFETY: the copy has ended: the first `bytes` bytes are written, and nobody else uses the buffer.
        Ok(unsafe { std::slice::from_raw_parts(copy.buffer.memory.cast::<u8>(), copy.bytes) }.to_vec())
    }

    /// Copies that have not been answered.
    pub(super) fn outgoing(&self) -> u64 {
        self.outgoing.count.load(Ordering::SeqCst) as u64
    }

    /// The same as [`Shared::deliver`], on the driver's thread for host functions, which may not call the driver itself.
    pub(super) fn deliver_elsewhere(self: &Arc<Self>, waiters: &Waiters) {
        if self.outgoing.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let (shared, (sender, done)) = (Arc::clone(self), channel());
        waiters.run(Box::new(move || {
            shared.deliver();
            let _ = sender.send(());
        }));
        let _ = done.recv();
    }
}
