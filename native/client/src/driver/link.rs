//! The linker: PTX in, PTX out, several modules made into one. gpud's driver (or the software GPU) compiles it when it
//! is loaded.

use super::context::current_context;
use super::jit::{error_log, most_registers};
use super::launch::is_software;
use super::ptx_link::{limit_registers, merge};
use super::{current, put, text};
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::image;
use crate::objects::{Link, new_handle};
use sluice_protocol::PTX_CHECK;
use sluice_protocol::cuda;
use sluice_protocol::messages::PtxCheck;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

pub unsafe fn cuLinkCreate_v2(
    count: u32,
    options: *const u32,
    values: *mut *mut c_void,
    state: *mut usize,
) -> CudaResult {
    let (process, context) = (current()?.process, current_context()?.context);
    let handle = new_handle();
    // SAFETY: the caller's lists; the option values are outputs until cuLinkDestroy, as CUDA says.
    let (most_registers, error_log) =
        unsafe { (most_registers(count, options, values), error_log(count, options, values)) };
    // SAFETY: the caller's output.
    unsafe { put(state, handle as usize)? };
    process.objects.links.put(handle, Mutex::new(Link { context, error_log, most_registers, ..Link::default() }));
    Ok(())
}

/// Adds an input. PTX for the software GPU is looked at where it is given, if a GPU can be had: its lines are numbered as
/// the program knows them.
fn add(state: usize, mut data: Vec<u8>) -> CudaResult {
    let device = current()?;
    let link = device.process.objects.links.get(state)?;
    let mut link = link.lock().unwrap_or_else(PoisonError::into_inner);
    if image::is_ptx(&data) {
        let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
        data.truncate(end);
        if is_software(device.process)
            && let Some(session) = device.session_if_any()
            && session.welcome.features.iter().any(|name| name == PTX_CHECK)
        {
            let checked = session.connection.call(&PtxCheck { ptx: &data });
            link.tell(&checked);
            checked?;
        }
    }
    link.parts.push(data);
    Ok(())
}

/// Whether an input is CUDA's device runtime (libcudadevrt.a). Nothing of it is needed: who loads the result brings
/// its own.
fn is_device_runtime(kind: u32, data: &[u8]) -> bool {
    // Its functions' names stand in compressed code; the member's name is in the open.
    let name = b"cuda_device_runtime.o";
    kind == LIBRARY && data.starts_with(b"!<arch>\n") && data.windows(name.len()).any(|window| window == name)
}

/// CUDA's number for an archive of object files.
const LIBRARY: u32 = 4;

fn check_kind(kind: u32) -> CudaResult {
    match kind {
        // Cubin, PTX, fat binary
        0..=2 => Ok(()),
        3 | LIBRARY => Err(CudaError::new(
            cuda::ERROR_NOT_SUPPORTED,
            "linking object files and libraries is not served yet; link PTX or a cubin",
        )),
        _ => Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, "this kind of linker input is not served; hand over PTX")),
    }
}

pub unsafe fn cuLinkAddData_v2(
    state: usize,
    kind: u32,
    data: *const c_void,
    bytes: usize,
    _name: *const c_char,
    _count: u32,
    _options: *const u32,
    _values: *const *mut c_void,
) -> CudaResult {
    if data.is_null() || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's data, `bytes` long.
    let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) }.to_vec();
    if is_device_runtime(kind, &data) {
        return current()?.process.objects.links.get(state).map(|_| ());
    }
    check_kind(kind)?;
    add(state, data)
}

pub unsafe fn cuLinkAddFile_v2(
    state: usize,
    kind: u32,
    path: *const c_char,
    _count: u32,
    _options: *const u32,
    _values: *const *mut c_void,
) -> CudaResult {
    // SAFETY: the caller's string.
    let path = unsafe { text(path)? };
    let data = std::fs::read(path).map_err(|_| CudaError::code(cuda::ERROR_FILE_NOT_FOUND))?;
    if is_device_runtime(kind, &data) {
        return current()?.process.objects.links.get(state).map(|_| ());
    }
    check_kind(kind)?;
    add(state, data)
}

/// One image out of those that were added.
fn join(parts: &[Vec<u8>]) -> CudaResult<Vec<u8>> {
    match parts {
        [] => Err(INVALID_VALUE),
        [part] => Ok(part.clone()),
        parts => {
            let texts = parts.iter().map(|part| std::str::from_utf8(part).ok().filter(|_| image::is_ptx(part)));
            let texts = texts.collect::<Option<Vec<_>>>().ok_or_else(|| {
                let why = "several modules are linked into one as PTX only; one of these is machine code";
                CudaError::new(cuda::ERROR_NOT_SUPPORTED, why)
            })?;
            merge(&texts).map(String::into_bytes).map_err(|why| CudaError::new(cuda::ERROR_INVALID_IMAGE, why))
        }
    }
}

pub unsafe fn cuLinkComplete(state: usize, image: *mut *mut c_void, bytes: *mut usize) -> CudaResult {
    let link = current()?.process.objects.links.get(state)?;
    let mut link = link.lock().unwrap_or_else(PoisonError::into_inner);
    if link.output.is_none() {
        let joined = join(&link.parts);
        link.tell(&joined);
        let mut output = joined?;
        if link.most_registers > 0
            && image::is_ptx(&output)
            && let Ok(text) = std::str::from_utf8(&output)
        {
            output = limit_registers(text, link.most_registers).into_bytes();
        }
        // Readers that take PTX as a C string find its end.
        output.push(0);
        link.output = Some(output.into_boxed_slice());
    }
    let output = link.output.as_mut().ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's outputs; the buffer lives until cuLinkDestroy.
    unsafe {
        put(image, output.as_mut_ptr().cast())?;
        if bytes.is_null() { Ok(()) } else { put(bytes, output.len() - 1) }
    }
}

pub unsafe fn cuLinkDestroy(state: usize) -> CudaResult {
    super::ready()?.objects.links.remove(state).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_runtime_is_known_by_its_member() {
        assert!(is_device_runtime(LIBRARY, b"!<arch>\ncuda_device_runtime.o/ 0"));
        assert!(!is_device_runtime(LIBRARY, b"!<arch>\nmine.o/ 0"));
        assert!(!is_device_runtime(1, b"!<arch>\ncuda_device_runtime.o/ 0"));
    }
}
