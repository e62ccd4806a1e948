//! Writing to the caller's memory.

use crate::status::{Answer, INSUFFICIENT_SIZE, INVALID_ARGUMENT};
use std::ffi::c_char;

/// Writes an output.
///
/// # Safety
/// `target` is null or points to room for a `T`.
pub unsafe fn put<T>(target: *mut T, value: T) -> Answer {
    if target.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the caller answers for the room.
    unsafe { target.write_unaligned(value) };
    Ok(())
}

/// Writes a text with its NUL, or fails when it has no room for all of it.
///
/// # Safety
/// `target` is null or points to room for `length` bytes.
pub unsafe fn put_text(target: *mut c_char, length: u32, text: &str) -> Answer {
    if target.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if text.len() >= length as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: there is room for the text and its NUL, and the two do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), target, text.len());
        target.add(text.len()).write(0);
    }
    Ok(())
}

/// A text as a field of a C struct: cut to its room, ended by NUL.
pub fn field<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    let count = text.len().min(N - 1);
    out[..count].copy_from_slice(&text.as_bytes()[..count]);
    out
}
