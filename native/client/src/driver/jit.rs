//! JIT options: the buffer for the error log, and the most registers of a thread.

use crate::error::CudaResult;
use std::ffi::{c_char, c_void};

/// CU_JIT_ERROR_LOG_BUFFER
const ERROR_LOG: u32 = 5;
/// CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
const ERROR_LOG_BYTES: u32 = 6;
/// CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
const INFO_LOG_BYTES: u32 = 4;

/// CU_JIT_MAX_REGISTERS
const MOST_REGISTERS: u32 = 0;

/// The most registers that a thread may use, from an option list; zero when it does not say.
///
/// # Safety
/// `options` and `values` are lists of `count` entries, as the CUDA Driver API describes them.
pub unsafe fn most_registers(count: u32, options: *const u32, values: *const *mut c_void) -> u32 {
    if options.is_null() || values.is_null() {
        return 0;
    }
    // SAFETY: both lists are `count` long.
    let mut pairs = (0..count as usize).map(|index| unsafe { (options.add(index).read(), values.add(index).read()) });
    pairs.rfind(|(option, _)| *option == MOST_REGISTERS).map_or(0, |(_, value)| value as u32)
}

/// Where the program wants to read what went wrong.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    buffer: usize,
    bytes: usize,
    /// Where the program reads how much was written; 0: it did not ask.
    written: usize,
    /// Bytes of text that are in it.
    used: usize,
}

/// Finds the error log in an option list; says that nothing was written to the logs (their sizes become 0).
///
/// # Safety
/// `options` and `values` are lists of `count` entries, as the CUDA Driver API describes them.
pub unsafe fn error_log(count: u32, options: *const u32, values: *mut *mut c_void) -> Option<Log> {
    if options.is_null() || values.is_null() {
        return None;
    }
    let (mut buffer, mut bytes, mut written) = (0, 0, 0);
    for index in 0..count as usize {
        // SAFETY: both lists are `count` long.
        let (option, value) = unsafe { (options.add(index).read(), values.add(index).read()) };
        match option {
            ERROR_LOG => buffer = value as usize,
            // SAFETY: as above.
            ERROR_LOG_BYTES => (bytes, written) = (value as u32 as usize, unsafe { values.add(index) } as usize),
            _ => {}
        }
        if matches!(option, INFO_LOG_BYTES | ERROR_LOG_BYTES) {
            // SAFETY: as above; these two options are outputs too.
            unsafe { values.add(index).write(std::ptr::null_mut()) };
        }
    }
    (buffer != 0 && bytes > 1).then_some(Log { buffer, bytes, written, used: 0 })
}

impl Log {
    /// Writes what is wrong behind what was wrong before, cut to the buffer, and how much that is in all.
    ///
    /// # Safety
    /// The program's buffer and its lists of options are still there.
    pub unsafe fn tell<T>(&mut self, result: &CudaResult<T>) {
        let Some(text) = result.as_ref().err().and_then(|error| error.text.as_ref()) else { return };
        let line = if self.used == 0 { "" } else { "\n" };
        for text in [line, text] {
            let count = text.len().min(self.bytes - 1 - self.used);
            // SAFETY: the buffer has room for `bytes`, of which so many are used.
            unsafe {
                let target = (self.buffer as *mut c_char).add(self.used);
                std::ptr::copy_nonoverlapping(text.as_ptr().cast(), target, count);
                target.add(count).write(0);
            }
            self.used += count;
        }
        if self.written != 0 {
            // SAFETY: the size is an entry of the list of values.
            unsafe { (self.written as *mut *mut c_void).write((self.used + 1) as *mut c_void) };
        }
    }
}
