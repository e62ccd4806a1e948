//! Words of pinned host memory that streams wait for. Whoever lets a stream go on writes its word: the driver's thread for
//! host functions, of which other streams may need it, is not held up meanwhile.

use super::{Shared, lock};
use crate::error::CudaResult;
use crate::graph::MemoryOperation;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Words that are allocated at a time.
const MANY: usize = 1024;
/// CU_STREAM_MEM_OP_WAIT_VALUE_32
const WAIT_32: u32 = 1;
/// CU_STREAM_WAIT_VALUE_GEQ
const AT_LEAST: u32 = 0;
/// CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: streams know host memory by the host's addresses.
const UNIFIED: i32 = 41;

/// Idle words, all of them 0.
#[derive(Default)]
pub struct Words {
    idle: Arc<Mutex<Vec<usize>>>,
    usable: OnceLock<bool>,
}

/// A word that a stream waits for; idle again when nobody has it.
pub struct Word {
    address: usize,
    idle: Arc<Mutex<Vec<usize>>>,
}

impl Words {
    /// A word that is 0; None where a stream cannot wait for it.
    pub fn take(&self, shared: &Shared) -> CudaResult<Option<Arc<Word>>> {
        let is_usable = || {
            let mut unified = 0;
            // SAFETY: the driver writes one number.
            let asked = unsafe { (shared.driver.device_attribute)(&mut unified, UNIFIED, shared.device) };
            asked == 0 && unified == 1
        };
        if !*self.usable.get_or_init(is_usable) {
            return Ok(None);
        }
        let mut idle = lock(&self.idle);
        if idle.is_empty() {
            let mut memory = std::ptr::null_mut();
            // SAFETY: the driver writes one pointer. The memory is kept as long as the session: giving it back may wait for
            // the device.
            shared.check(unsafe { (shared.driver.host_alloc)(&mut memory, MANY * size_of::<u32>()) })?;
            // SAFETY: as long as that, and nobody else's.
            unsafe { memory.cast::<u32>().write_bytes(0, MANY) };
            let start = memory.expose_provenance();
            idle.extend((0..MANY).map(|at| start + at * size_of::<u32>()));
        }
        let address = idle.pop();
        Ok(address.map(|address| Arc::new(Word { address, idle: Arc::clone(&self.idle) })))
    }
}

#[cfg(test)]
impl Words {
    pub fn idle(&self) -> usize {
        lock(&self.idle).len()
    }
}

impl Word {
    /// What a stream does that waits for it; it is to be kept until the stream has come past that.
    pub fn awaited(&self) -> MemoryOperation {
        MemoryOperation { kind: WAIT_32, address: self.address as u64, value: 1, flags: AT_LEAST }
    }

    fn write(&self, value: u32) {
        let word = std::ptr::with_exposed_provenance_mut::<u32>(self.address);
        // SAFETY: one of the words that `take` has allocated; they are reached as atomics alone.
        unsafe { AtomicU32::from_ptr(word) }.store(value, Ordering::Release);
    }

    /// The stream that waits for it goes on.
    pub fn pass(&self) {
        self.write(1);
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        self.write(0);
        lock(&self.idle).push(self.address);
    }
}
