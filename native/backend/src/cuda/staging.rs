//! Pinned host memory through which copies go, so that issuing one never waits for the device.

use super::loader::{Driver, Handle};
use crate::error::CudaResult;
use std::ffi::c_void;

/// Buffers are made in multiples of this.
const UNIT: usize = 64 << 10;

/// A pinned buffer.
pub struct Buffer {
    pub memory: *mut c_void,
    length: usize,
}

// SAFETY: pinned host memory may be used from any thread; the buffer has one owner.
unsafe impl Send for Buffer {}

/// A buffer that the device reads until an event has passed.
struct Busy {
    buffer: Buffer,
    event: Handle,
}

/// Buffers, idle and in use by copies to the device.
pub struct Staging {
    driver: &'static Driver,
    idle: Vec<Buffer>,
    busy: Vec<Busy>,
}

// SAFETY: events and pinned memory may be used from any thread that has set the context.
unsafe impl Send for Staging {}

impl Staging {
    /// Without any buffer.
    pub fn new(driver: &'static Driver) -> Staging {
        Staging { driver, idle: Vec::new(), busy: Vec::new() }
    }

    /// A buffer of at least so many bytes.
    pub fn take(&mut self, bytes: usize) -> CudaResult<Buffer> {
        self.collect();
        let fitting = self.idle.iter().enumerate().filter(|(_, buffer)| buffer.length >= bytes);
        if let Some((at, _)) = fitting.min_by_key(|(_, buffer)| buffer.length) {
            return Ok(self.idle.swap_remove(at));
        }
        let length = bytes.next_multiple_of(UNIT);
        let mut memory = std::ptr::null_mut();
        // SAFETY: the driver writes one pointer.
        self.driver.check(unsafe { (self.driver.host_alloc)(&mut memory, length) })?;
        Ok(Buffer { memory, length })
    }

    /// The device reads the buffer until the event has passed; then both are the staging's again.
    pub fn lend(&mut self, buffer: Buffer, event: Handle) {
        self.busy.push(Busy { buffer, event });
    }

    /// The buffer is idle. None is freed while the session lasts: that may wait for the device, which may wait for who frees it.
    pub fn give_back(&mut self, buffer: Buffer) {
        self.idle.push(buffer);
    }

    fn collect(&mut self) {
        for at in (0..self.busy.len()).rev() {
            // SAFETY: the event was made by the device and is destroyed here alone.
            let passed = self.busy.get(at).is_some_and(|busy| unsafe { (self.driver.event_query)(busy.event) } == 0);
            if passed {
                let done = self.busy.swap_remove(at);
                // SAFETY: as above.
                unsafe { (self.driver.event_destroy)(done.event) };
                self.give_back(done.buffer);
            }
        }
    }
}
