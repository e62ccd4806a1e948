//! Modules and libraries (one and the same here): loading, look-up of kernels and globals, unloading.

use super::context::{Current, current_context};
use super::jit::error_log;
use super::{current, put, put_optional, ready, text};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_VALUE, NOT_FOUND};
use crate::image;
use crate::objects::{Function, Module, new_handle};
use crate::process::Process;
use sluice_protocol::cuda;
use sluice_protocol::messages::ModuleUnload;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, PoisonError};

/// Records an image as a module of a context (`of`) or as a library. Where `device` has a lease or gets one, it is
/// loaded at once, so that what is wrong with it is told here; else when a lease is there and it is used.
fn load(device: Device, of: Option<Current>, image: Vec<u8>) -> CudaResult<u64> {
    let handle = new_handle();
    let module = Module::new(handle, of, image.into());
    if let Some(session) = device.session_if_any() {
        module.ensure(&session)?;
    } else if image::is_ptx(&module.image) && module.known().is_none_or(|info| info.functions.is_empty()) {
        let text = std::str::from_utf8(&module.image).is_ok_and(|text| text.contains(".version"));
        if !text {
            return Err(CudaError::code(cuda::ERROR_INVALID_IMAGE));
        }
    }
    device.process.objects.modules.put(handle, module);
    Ok(handle)
}

/// Loads the program's image as a module or a library, which are one here; what is wrong with it goes to the log that
/// the program gave as well.
unsafe fn load_image(
    device: Device,
    of: Option<Current>,
    output: *mut usize,
    image: *const c_void,
    count: u32,
    options: *const u32,
    values: *mut *mut c_void,
) -> CudaResult {
    if image.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's image, whole.
    let image = unsafe { image::copy(image.cast()) }.ok_or(CudaError::code(cuda::ERROR_INVALID_IMAGE))?;
    // SAFETY: the caller's lists.
    let log = unsafe { error_log(count, options, values) };
    let loaded = load(device, of, image);
    if let Some(mut log) = log {
        // SAFETY: the caller's buffer and lists, named in this very call.
        unsafe { log.tell(&loaded) };
    }
    // SAFETY: the caller's output.
    unsafe { put(output, loaded? as usize) }
}

unsafe fn read_file(path: *const c_char) -> CudaResult<Vec<u8>> {
    // SAFETY: the caller's string.
    let path = unsafe { text(path)? };
    let mut data = std::fs::read(path).map_err(|_| CudaError::code(cuda::ERROR_FILE_NOT_FOUND))?;
    data.push(0);
    Ok(data)
}

pub unsafe fn cuModuleLoadData(module: *mut usize, image: *const c_void) -> CudaResult {
    let device = current()?;
    // SAFETY: as the caller's.
    unsafe { load_image(device, Some(current_context()?), module, image, 0, std::ptr::null(), std::ptr::null_mut()) }
}

pub unsafe fn cuModuleLoadDataEx(
    module: *mut usize,
    image: *const c_void,
    count: u32,
    options: *const u32,
    values: *mut *mut c_void,
) -> CudaResult {
    let device = current()?;
    // SAFETY: as the caller's.
    unsafe { load_image(device, Some(current_context()?), module, image, count, options, values) }
}

pub unsafe fn cuModuleLoad(module: *mut usize, path: *const c_char) -> CudaResult {
    ready()?;
    // SAFETY: as the caller's; the file's text got its NUL.
    unsafe {
        let data = read_file(path)?;
        cuModuleLoadData(module, data.as_ptr().cast())
    }
}

pub unsafe fn cuLibraryLoadData(
    library: *mut usize,
    image: *const c_void,
    jit_options: *const u32,
    jit_values: *mut *mut c_void,
    jit_count: u32,
    _options: *const u32,
    _values: *const *mut c_void,
    _count: u32,
) -> CudaResult {
    // Libraries belong to no context; ours need none either.
    // SAFETY: as the caller's.
    unsafe { load_image(super::here()?, None, library, image, jit_count, jit_options, jit_values) }
}

pub unsafe fn cuLibraryLoadFromFile(
    library: *mut usize,
    path: *const c_char,
    jit_options: *const u32,
    jit_values: *mut *mut c_void,
    jit_count: u32,
    options: *const u32,
    values: *const *mut c_void,
    count: u32,
) -> CudaResult {
    ready()?;
    // SAFETY: as the caller's; the file's text got its NUL.
    unsafe {
        let data = read_file(path)?;
        cuLibraryLoadData(library, data.as_ptr().cast(), jit_options, jit_values, jit_count, options, values, count)
    }
}

pub unsafe fn cuModuleUnload(module: usize) -> CudaResult {
    unload(ready()?, module)
}

/// Its functions' handles and its variables' addresses end with it.
pub(super) fn unload(process: &'static Process, module: usize) -> CudaResult {
    let removed = process.objects.modules.remove(module)?;
    for handle in removed.functions.lock().unwrap_or_else(PoisonError::into_inner).values() {
        let _ = process.objects.functions.remove(*handle as usize);
    }
    for session in process.devices().filter_map(Device::session_now).filter(|session| removed.is_in(session)) {
        removed.unloaded(&session);
        session.connection.post(&ModuleUnload { module: removed.handle })?;
    }
    Ok(())
}

/// Where a question about a module goes: to its device, of a library to the current one.
pub(crate) fn device_of(here: Device, module: &Module) -> Device {
    module.device.map_or(here, |ordinal| here.process.device(ordinal))
}

/// CU_MODULE_LAZY_LOADING or CU_MODULE_EAGER_LOADING, as CUDA_MODULE_LOADING says.
pub unsafe fn cuModuleGetLoadingMode(mode: *mut u32) -> CudaResult {
    ready()?;
    let eager = std::env::var("CUDA_MODULE_LOADING").is_ok_and(|value| value == "EAGER");
    // SAFETY: the caller's output.
    unsafe { put(mode, if eager { 1 } else { 2 }) }
}

/// The handle of a kernel; asked twice it is the same.
fn function(process: &Process, module: &Arc<Module>, name: &str) -> CudaResult<u64> {
    // A binary image that gpud has not seen yet is taken at its word; PTX text is read here.
    if let Some(info) = module.known()
        && !info.functions.iter().any(|function| function.name == name)
    {
        return Err(NOT_FOUND);
    }
    let mut functions = module.functions.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = functions.get(name) {
        return Ok(*handle);
    }
    let handle = new_handle();
    process.objects.functions.put(handle, Function::new(handle, name.to_owned(), Arc::clone(module)));
    functions.insert(name.to_owned(), handle);
    Ok(handle)
}

pub unsafe fn cuModuleGetFunction(out: *mut usize, module: usize, name: *const c_char) -> CudaResult {
    let process = ready()?;
    let module = process.objects.modules.get(module)?;
    // SAFETY: the caller's string and output.
    unsafe { put(out, function(process, &module, text(name)?)? as usize) }
}

pub unsafe fn cuLibraryGetModule(module: *mut usize, library: usize) -> CudaResult {
    ready()?.objects.modules.get(library)?;
    // SAFETY: the caller's output.
    unsafe { put(module, library) }
}

fn names(device: Device, module: &Arc<Module>) -> CudaResult<Vec<String>> {
    let info = match module.known() {
        Some(info) => info,
        None => module.ensure(&*device_of(device, module).session()?)?,
    };
    Ok(info.functions.iter().map(|function| function.name.clone()).collect())
}

pub unsafe fn cuModuleGetFunctionCount(count: *mut u32, module: usize) -> CudaResult {
    let device = super::here()?;
    let module = device.process.objects.modules.get(module)?;
    // SAFETY: the caller's output.
    unsafe { put(count, names(device, &module)?.len() as u32) }
}

pub unsafe fn cuModuleEnumerateFunctions(functions: *mut usize, count: u32, module: usize) -> CudaResult {
    let device = super::here()?;
    let module = device.process.objects.modules.get(module)?;
    if functions.is_null() {
        return Err(INVALID_VALUE);
    }
    for (index, name) in names(device, &module)?.iter().take(count as usize).enumerate() {
        // SAFETY: the caller's list is `count` long.
        unsafe { put(functions.add(index), function(device.process, &module, name)? as usize)? };
    }
    Ok(())
}

pub unsafe fn cuModuleGetGlobal_v2(
    address: *mut u64,
    bytes: *mut usize,
    module: usize,
    name: *const c_char,
) -> CudaResult {
    let device = super::here()?;
    let module = device.process.objects.modules.get(module)?;
    if address.is_null() && bytes.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's string.
    let name = unsafe { text(name)? };
    // Only gpud knows where a global lies.
    let info = module.ensure(&*device_of(device, &module).session()?)?;
    let global = info.globals.iter().find(|global| global.name == name).ok_or(NOT_FOUND)?;
    // SAFETY: the caller's outputs.
    unsafe {
        put_optional(address, global.address);
        put_optional(bytes, global.bytes as usize);
    }
    Ok(())
}

/// Managed variables do not exist here: a module that has some is refused when it is loaded.
pub unsafe fn cuLibraryGetManaged(
    _address: *mut u64,
    _bytes: *mut usize,
    library: usize,
    name: *const c_char,
) -> CudaResult {
    ready()?.objects.modules.get(library)?;
    // SAFETY: the caller's string.
    unsafe { text(name)? };
    Err(NOT_FOUND)
}

/// Functions that host and device share need a device with unified function pointers (attribute 129), which none is.
pub unsafe fn cuLibraryGetUnifiedFunction(
    _function: *mut *mut c_void,
    library: usize,
    name: *const c_char,
) -> CudaResult {
    ready()?.objects.modules.get(library)?;
    // SAFETY: the caller's string.
    unsafe { text(name)? };
    Err(NOT_FOUND)
}
