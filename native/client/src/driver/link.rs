//! The linker: PTX in, PTX out, several modules made into one, be it text or in object files and libraries. gpud's driver
//! (or the software GPU) compiles it when it is loaded. What is the only input, and complete, goes through as it is.

use super::context::current_context;
use super::jit::{error_log, most_registers};
use super::launch::is_software;
use super::link_input::{Part, take_apart};
use super::ptx_link::{limit_registers, merge, needed};
use super::{current, put, put_optional, text};
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
fn add(state: usize, kind: u32, data: &[u8], name: &str) -> CudaResult {
    let device = current()?;
    let link = device.process.objects.links.get(state)?;
    let mut link = link.lock().unwrap_or_else(PoisonError::into_inner);
    let parts = take_apart(kind, data, name, device.process.profile());
    link.tell(&parts);
    let parts = parts?;
    if is_software(device.process)
        && let Some(session) = device.session_if_any()
        && session.welcome.features.iter().any(|name| name == PTX_CHECK)
    {
        for ptx in parts.iter().filter_map(|part| part.ptx.as_deref()) {
            let checked = session.connection.call(&PtxCheck { ptx });
            link.tell(&checked);
            checked?;
        }
    }
    link.parts.extend(parts);
    Ok(())
}

pub unsafe fn cuLinkAddData_v2(
    state: usize,
    kind: u32,
    data: *const c_void,
    bytes: usize,
    name: *const c_char,
    _count: u32,
    _options: *const u32,
    _values: *const *mut c_void,
) -> CudaResult {
    super::ready()?;
    if data.is_null() || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's data, `bytes` long, and null or the caller's string.
    let (data, name) = unsafe { (std::slice::from_raw_parts(data.cast::<u8>(), bytes), text(name)) };
    add(state, kind, data, name.unwrap_or("the input"))
}

pub unsafe fn cuLinkAddFile_v2(
    state: usize,
    kind: u32,
    path: *const c_char,
    _count: u32,
    _options: *const u32,
    _values: *const *mut c_void,
) -> CudaResult {
    super::ready()?;
    // SAFETY: the caller's string.
    let path = unsafe { text(path)? };
    let data = std::fs::read(path).map_err(|_| CudaError::code(cuda::ERROR_FILE_NOT_FOUND))?;
    add(state, kind, &data, path)
}

/// One image out of those that were added.
fn join(parts: &[Part]) -> CudaResult<Vec<u8>> {
    if parts.is_empty() {
        return Err(INVALID_VALUE);
    }
    if let [Part { image: Some(image), .. }] = parts {
        return Ok(image.clone());
    }
    let text = |part: &'_ Part| -> CudaResult<String> {
        let text = part.ptx.clone().ok_or_else(|| {
            let why = "code is linked as PTX, and there is machine code alone: compile it with PTX, for example with \
                       -gencode arch=compute_75,code=compute_75";
            CudaError::new(cuda::ERROR_NO_BINARY_FOR_GPU, format!("{}: {why}", part.name))
        })?;
        String::from_utf8(text).map_err(|_| CudaError::code(cuda::ERROR_INVALID_PTX))
    };
    let invalid = |why| CudaError::new(cuda::ERROR_INVALID_IMAGE, why);
    let (firm, spare): (Vec<&Part>, Vec<&Part>) = parts.iter().partition(|part| !part.spare);
    let firm = firm.into_iter().map(text).collect::<CudaResult<Vec<_>>>()?;
    // A spare part of machine code alone may be one that nobody needs: what misses it says so when it is loaded.
    let spare: Vec<String> = spare.into_iter().filter_map(|part| text(part).ok()).collect();
    let texts = needed(&firm, &spare).map_err(invalid)?;
    match texts.as_slice() {
        [] => {
            Err(CudaError::new(cuda::ERROR_NO_BINARY_FOR_GPU, "nothing of the libraries is PTX that could be linked"))
        }
        [text] => Ok(text.as_bytes().to_vec()),
        texts => merge(texts).map(String::into_bytes).map_err(invalid),
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
        put_optional(bytes, output.len() - 1);
    }
    Ok(())
}

pub unsafe fn cuLinkDestroy(state: usize) -> CudaResult {
    super::ready()?.objects.links.remove(state).map(|_| ())
}
