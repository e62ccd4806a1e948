//! Programs and libraries with NVIDIA's own CUDA runtime linked in. It asks the driver for private tables at its first
//! call, which we do not have; so such a program cannot use a borrowed GPU, and is told why, once.

use crate::message::{self, Kind};
use std::ffi::{CStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Names the file of which whoever started this program has said it already: nobody is told twice.
pub const TOLD: &str = "SLUICE_STATIC_RUNTIME_TOLD";

/// What to do, for a file that has the runtime inside.
pub fn advice(file: &Path) -> String {
    let text = format!(
        "{} was built with NVIDIA's static CUDA runtime inside, which works with a GPU of this machine alone and not \
         with a borrowed one.",
        file.display()
    );
    if file.as_os_str().as_bytes().windows(5).any(|part| part == b"/cupy") {
        return format!("{text} Use the environment CuPy, whose build loads the runtime dynamically.");
    }
    format!("{text} Use a build that loads libcudart dynamically (nvcc --cudart=shared), or the driver API.")
}

/// Whether a program or library has the static runtime inside: a name that only the runtime uses, together with its
/// private look-up, and no dependency on the dynamic runtime.
pub fn is_inside(file: &[u8]) -> bool {
    let has = |text: &[u8]| find(file, text);
    file.starts_with(b"\x7fELF") && has(b"cudart.shm") && has(b"cuGetExportTable") && !has(b"\0libcudart.so.")
}

fn find(file: &[u8], text: &[u8]) -> bool {
    // SAFETY: both are live slices of the lengths given.
    let found = unsafe { libc::memmem(file.as_ptr().cast(), file.len(), text.as_ptr().cast(), text.len()) };
    !found.is_null()
}

unsafe extern "C" {
    /// `execinfo.h` of glibc.
    fn backtrace(addresses: *mut *mut c_void, count: c_int) -> c_int;
}

/// The library or program that called into this library: the first one on the stack that is not ours.
fn caller() -> Option<PathBuf> {
    let mut addresses = [std::ptr::null_mut(); 32];
    // SAFETY: the array has room for what is said.
    let count = unsafe { backtrace(addresses.as_mut_ptr(), addresses.len() as c_int) };
    for address in addresses.iter().take(usize::try_from(count).unwrap_or(0)) {
        // SAFETY: plain data that dladdr fills.
        let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: dladdr takes any address.
        if unsafe { libc::dladdr(*address, &raw mut found) } == 0 || found.dli_fname.is_null() {
            continue;
        }
        // SAFETY: dladdr gives text that lives as long as the library is loaded.
        let name = unsafe { CStr::from_ptr(found.dli_fname) }.to_bytes();
        let path = Path::new(std::ffi::OsStr::from_bytes(name));
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !file.starts_with("libsluice_client") && !file.starts_with("libcuda.so") {
            return Some(path.to_owned());
        }
    }
    None
}

/// A private table was asked for. Compilers do so too and go on without it; a static runtime cannot.
#[cold]
pub fn asked_for_table() {
    let same = |told: PathBuf, file: &Path| told.canonicalize().ok() == file.canonicalize().ok();
    if let Some(file) = caller()
        && !std::env::var_os(TOLD).is_some_and(|told| same(told.into(), &file))
        && std::fs::read(&file).is_ok_and(|bytes| is_inside(&bytes))
    {
        message::tell(Kind::Program, &advice(&file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_static_runtime_is_told_from_the_dynamic_one() {
        let of = |parts: &[&[u8]]| is_inside(&[b"\x7fELF..".as_slice(), &parts.concat()].concat());
        assert!(of(&[b"..cudart.shm\0", b"cuGetExportTable\0"]));
        assert!(!of(&[b"\0libcudart.so.13\0", b"cuGetExportTable\0cudart.shm"]));
        assert!(!of(&[b"cuGetExportTable\0"]), "a compiler");
        assert!(!is_inside(b"#!/bin/sh cudart.shm cuGetExportTable"), "a script");
    }

    #[test]
    fn the_caller_outside_of_the_library_is_found() {
        // Here the library is linked in: the caller is this test.
        assert_eq!(caller(), std::env::current_exe().ok());
    }

    #[test]
    fn advice_names_the_file_and_what_to_do() {
        assert!(advice(Path::new("/home/u/saxpy")).contains("/home/u/saxpy was built"));
        assert!(advice(Path::new("/x/site-packages/cupy_backends/runtime.so")).contains("the environment CuPy"));
    }
}
