//! Launches. Everything that CUDA tells synchronously is checked here, then the launch is posted.

use super::context::{Current, current_context};
use super::graph::Kernel;
use super::{capture, current, occupancy, ready, stream};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, INVALID_HANDLE, INVALID_VALUE};
use crate::objects::{Event, Function, Resolved, attribute_of};
use crate::process::Process;
use crate::session::Session;
use sluice_protocol::graph::LaunchAttribute;
use sluice_protocol::messages::{Launch, LaunchWith, StreamSynchronize};
use sluice_protocol::{ParameterInfo, cuda};
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Arc;

/// CUlaunchConfig
#[repr(C)]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub stream: usize,
    attributes: *const Attribute,
    count: u32,
}

/// CUlaunchAttribute
#[repr(C)]
pub struct Attribute {
    id: u32,
    padding: u32,
    value: [u8; 64],
}

/// CU_LAUNCH_ATTRIBUTE_COOPERATIVE
const COOPERATIVE: u32 = 2;
/// CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
const CLUSTER: u32 = 4;

/// What a launch is made of.
pub struct Work {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub stream: usize,
}

/// A launch's attributes.
#[derive(Default)]
pub struct Attributes {
    /// What the device is told.
    pub list: Vec<LaunchAttribute>,
    /// Recorded behind the kernel: the events of programmatic and of completed launches, which may pass later than the
    /// program asked for, never earlier.
    events: Vec<usize>,
}

/// An attribute's word at a place.
fn word(value: &[u8; 64], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&value[at * 4..at * 4 + 4]);
    u32::from_le_bytes(word)
}

/// Whether the device executes kernels in software, or not at all: hints have no meaning to it.
pub fn is_software(process: &Process) -> bool {
    matches!(process.profile().gpu_type.as_str(), "soft" | "null")
}

/// Checks an attribute and adds it; what is only a hint is left out where the device knows no hints.
pub fn set_attribute(process: &Process, list: &mut Vec<LaunchAttribute>, id: u32, value: [u8; 64]) -> CudaResult {
    match id {
        COOPERATIVE => {}
        CLUSTER if word(&value, 0) * word(&value, 1) * word(&value, 2) <= 1 => {}
        // CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
        CLUSTER if process.profile().attribute(120) != Some(1) => {
            let name = &process.profile().device.name;
            let text = format!("{name} has no thread block clusters: launch without a cluster dimension");
            return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, text));
        }
        // CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
        13 if word(&value, 0) != 0 => {
            return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, "graph nodes that kernels update are not supported"));
        }
        0 | 13 => return Ok(()),
        // Hints, and permissions to overlap that plain stream order fulfils.
        1 | 3 | CLUSTER | 5 | 6 | 8..=11 | 14..=18 => {
            if is_software(process) {
                return Ok(());
            }
        }
        _ => return Err(INVALID_VALUE),
    }
    list.retain(|attribute| attribute.id != id);
    list.push(LaunchAttribute { id, value });
    Ok(())
}

/// Reads the attributes of a launch.
///
/// # Safety
/// The program's configuration, whose list is as long as it says.
pub unsafe fn attributes(process: &Process, config: &LaunchConfig) -> CudaResult<Attributes> {
    let mut found = Attributes::default();
    if config.count == 0 {
        return Ok(found);
    }
    if config.attributes.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's list, `count` long.
    let attributes = unsafe { std::slice::from_raw_parts(config.attributes, config.count as usize) };
    for attribute in attributes {
        match attribute.id {
            // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, …_LAUNCH_COMPLETION_EVENT
            7 | 12 => {
                let mut event = [0; 8];
                event.copy_from_slice(&attribute.value[..8]);
                found.events.push(u64::from_le_bytes(event) as usize);
            }
            id => set_attribute(process, &mut found.list, id, attribute.value)?,
        }
    }
    Ok(found)
}

fn is_cooperative(attributes: &[LaunchAttribute]) -> bool {
    attributes.iter().any(|attribute| attribute.id == COOPERATIVE && word(&attribute.value, 0) != 0)
}

/// All blocks of a cooperative launch are resident at once; a grid is made of whole clusters.
fn check_attributes(
    device: Device,
    session: &Session,
    function: &Function,
    work: &Work,
    attributes: &[LaunchAttribute],
) -> CudaResult {
    if is_cooperative(attributes) {
        let threads = work.block.iter().product();
        let fit =
            occupancy::resident_blocks(device, Some(session), function, threads, u64::from(work.shared_bytes), 0)?;
        let blocks: u64 = work.grid.iter().map(|size| u64::from(*size)).product();
        if blocks > fit * occupancy::multiprocessors(device.process) {
            return Err(CudaError::code(cuda::ERROR_COOPERATIVE_LAUNCH_TOO_LARGE));
        }
    }
    if let Some(cluster) = attributes.iter().find(|attribute| attribute.id == CLUSTER) {
        for (axis, size) in work.grid.iter().enumerate() {
            let cluster = word(&cluster.value, axis);
            if cluster == 0 || size % cluster != 0 {
                return Err(CudaError::code(cuda::ERROR_INVALID_CLUSTER_SIZE));
            }
        }
    }
    Ok(())
}

/// What CUDA tells synchronously of a launch.
pub fn check(
    device: Device,
    session: &Session,
    function: &Function,
    resolved: &Resolved,
    work: &Work,
    attributes: &[LaunchAttribute],
) -> CudaResult {
    check_sizes(device.process, resolved, work)?;
    if attributes.is_empty() { Ok(()) } else { check_attributes(device, session, function, work, attributes) }
}

fn check_sizes(process: &Process, function: &Resolved, work: &Work) -> CudaResult {
    let [x, y, z] = work.block;
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    if threads == 0 || work.grid.contains(&0) {
        return Err(INVALID_VALUE);
    }
    let profile = process.profile();
    let sizes = [x, y, z, work.grid[0], work.grid[1], work.grid[2]];
    if sizes.iter().zip(profile.launch_limits).any(|(size, limit)| *size > limit) {
        return Err(INVALID_VALUE);
    }
    if threads > u64::from(function.max_threads) {
        // CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, …_MAX_REGISTERS_PER_BLOCK, CU_FUNC_ATTRIBUTE_NUM_REGS. More than the kernel's own bound
        // (`.maxntid`) is a wrong value; only what its registers forbid is a lack of resources.
        let most = u64::from(profile.attribute(1).unwrap_or(1024).unsigned_abs());
        let registers = u64::from(attribute_of(&function.info, 4).unwrap_or(0).unsigned_abs());
        let there_are = u64::from(profile.attribute(12).unwrap_or(0).unsigned_abs());
        let lacking = threads <= most && threads.next_multiple_of(32) * registers > there_are;
        return Err(if lacking { CudaError::code(cuda::ERROR_LAUNCH_OUT_OF_RESOURCES) } else { INVALID_VALUE });
    }
    if work.shared_bytes > function.max_dynamic_shared {
        return Err(INVALID_VALUE);
    }
    Ok(())
}

/// Fills the parameter buffer from the list of pointers, or from `extra`.
///
/// # Safety
/// The program's lists, of the kernel's parameters.
pub unsafe fn gather(
    layout: &[ParameterInfo],
    parameters: *const *const c_void,
    extra: *const *const c_void,
    buffer: &mut Vec<u8>,
) -> CudaResult {
    // "both kernelParams and extra are non-NULL": CUDA_ERROR_INVALID_VALUE (cuLaunchKernel, cuGraphAddKernelNode)
    if !parameters.is_null() && !extra.is_null() {
        return Err(INVALID_VALUE);
    }
    let all = layout.iter().map(|parameter| (parameter.offset + parameter.bytes) as usize).max().unwrap_or(0);
    buffer.clear();
    buffer.resize(all, 0);
    if !parameters.is_null() {
        for (index, parameter) in layout.iter().enumerate() {
            let (start, bytes) = (parameter.offset as usize, parameter.bytes as usize);
            // SAFETY: the caller's list has an entry for each parameter, which points to its value.
            unsafe {
                let value = parameters.add(index).read();
                if value.is_null() {
                    return Err(INVALID_VALUE);
                }
                std::ptr::copy_nonoverlapping(value.cast::<u8>(), buffer.as_mut_ptr().add(start), bytes);
            }
        }
        return Ok(());
    }
    if extra.is_null() {
        return if all == 0 { Ok(()) } else { Err(INVALID_VALUE) };
    }
    let (mut data, mut bytes) = (std::ptr::null::<u8>(), 0usize);
    for index in (0..).step_by(2) {
        // SAFETY: the list ends with CU_LAUNCH_PARAM_END (0); every other key has a value.
        let (key, value) = unsafe {
            let key = extra.add(index).read() as usize;
            if key == 0 {
                break;
            }
            (key, extra.add(index + 1).read())
        };
        match key {
            1 => data = value.cast(),
            // SAFETY: CU_LAUNCH_PARAM_BUFFER_SIZE points to a size.
            2 => bytes = unsafe { value.cast::<usize>().read() },
            _ => return Err(INVALID_VALUE),
        }
    }
    if data.is_null() || bytes < all {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's buffer is at least as long as the parameters.
    unsafe { std::ptr::copy_nonoverlapping(data, buffer.as_mut_ptr(), all) };
    Ok(())
}

/// A pointer into memory of an ended lease would fault on the device; this says why instead.
pub fn check_pointers(process: &Process, function: &Resolved, buffer: &[u8]) -> CudaResult {
    for parameter in function.info.parameters.iter().filter(|parameter| parameter.bytes == 8) {
        let start = parameter.offset as usize;
        let mut value = [0; 8];
        value.copy_from_slice(&buffer[start..start + 8]);
        if let Some(error) = process.stale(u64::from_le_bytes(value)) {
            return Err(error);
        }
    }
    Ok(())
}

/// A launch is in its stream's context, and so has its kernel to be; a library's belongs to none.
#[inline]
fn check_context(function: &Function, context: u64) -> CudaResult {
    let owner = function.module.context;
    if owner == 0 || owner == context { Ok(()) } else { Err(INVALID_HANDLE) }
}

/// A launch into a capturing stream.
unsafe fn node(
    device: Device,
    here: Current,
    function: &Arc<Function>,
    work: &Work,
    attributes: &[LaunchAttribute],
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> CudaResult<Kernel> {
    check_context(function, stream::context(here, work.stream)?.context)?;
    let mut buffer = Vec::new();
    let known = super::function::info(device, function)?;
    // SAFETY: the caller's parameter list.
    unsafe { gather(&known.parameters, parameters, extra, &mut buffer)? };
    let session = device.session()?;
    check(device, &session, function, &*function.resolve(&session)?, work, attributes)?;
    Ok(Kernel {
        function: Arc::clone(function),
        grid: work.grid,
        block: work.block,
        shared_bytes: work.shared_bytes,
        parameters: buffer,
        attributes: attributes.to_vec(),
    })
}

unsafe fn launch(
    function: usize,
    work: &Work,
    attributes: &[LaunchAttribute],
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> CudaResult {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let with_buffer = |post: &dyn Fn(&RefCell<Vec<u8>>) -> CudaResult| {
        // In the end of a thread its buffer may be gone.
        BUFFER.try_with(post).unwrap_or_else(|_| post(&RefCell::default()))
    };
    let process = ready()?;
    let here = current_context()?;
    let device = process.device(here.device);
    let function = process.objects.functions.get(function).map_err(|_| INVALID_HANDLE)?;
    // SAFETY: the caller's parameter list.
    let make = || unsafe { node(device, here, &function, work, attributes, parameters, extra) };
    if capture::kernel(device, work.stream, make)? {
        return Ok(());
    }
    let session = device.session()?;
    let resolved = function.resolve(&session)?;
    check(device, &session, &function, &resolved, work, attributes)?;
    let fits = |of: Option<u64>| check_context(&function, of.unwrap_or(here.context));
    let stream = stream::at_server_of(device, &session, work.stream, fits)?;
    with_buffer(&|buffer| {
        let mut buffer = buffer.try_borrow_mut().map_err(|_| CudaError::code(cuda::ERROR_UNKNOWN))?;
        // SAFETY: the caller's parameter list.
        unsafe { gather(&resolved.info.parameters, parameters, extra, &mut buffer)? };
        if device.process.has_ended() {
            check_pointers(device.process, &resolved, &buffer)?;
        }
        let (module, function) = (function.module.handle, resolved.index);
        let Work { grid, block, shared_bytes, .. } = *work;
        let cooperative = is_cooperative(attributes);
        if attributes.iter().all(|attribute| attribute.id == COOPERATIVE) {
            let flags = u32::from(cooperative);
            let launch = Launch { module, function, grid, block, shared_bytes, flags, stream, parameters: &buffer };
            return session.connection.post(&launch);
        }
        let attributes = attributes.to_vec();
        let parameters = buffer.as_slice();
        let launch = LaunchWith { module, function, grid, block, shared_bytes, stream, attributes, parameters };
        session.connection.post(&launch)
    })?;
    if blocking() {
        session.connection.call(&StreamSynchronize { stream })?;
    }
    Ok(())
}

/// `CUDA_LAUNCH_BLOCKING=1`
fn blocking() -> bool {
    static BLOCKING: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *BLOCKING.get_or_init(|| std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|value| value == "1"))
}

pub unsafe fn cuLaunchKernel(
    function: usize,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_bytes: u32,
    stream: usize,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> CudaResult {
    let work = Work { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared_bytes, stream };
    // SAFETY: as the caller's.
    unsafe { launch(function, &work, &[], parameters, extra) }
}

pub unsafe fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    function: usize,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> CudaResult {
    let device = current()?;
    // SAFETY: the caller's configuration.
    let config = unsafe { config.as_ref() }.ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's attribute list.
    let attributes = unsafe { attributes(device.process, config)? };
    let events: Vec<Arc<Event>> =
        attributes.events.iter().map(|event| device.process.objects.events.get(*event)).collect::<CudaResult<_>>()?;
    let Work { stream, .. } = Work::of(config);
    // SAFETY: as the caller's.
    unsafe { launch(function, &Work::of(config), &attributes.list, parameters, extra)? };
    let here = current_context()?;
    events.into_iter().try_for_each(|event| super::event::record(here, event, stream, false))
}

impl Work {
    fn of(config: &LaunchConfig) -> Self {
        Self { grid: config.grid, block: config.block, shared_bytes: config.shared_bytes, stream: config.stream }
    }
}

pub unsafe fn cuLaunchCooperativeKernel(
    function: usize,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_bytes: u32,
    stream: usize,
    parameters: *const *const c_void,
) -> CudaResult {
    let work = Work { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared_bytes, stream };
    let mut value = [0; 64];
    value[0] = 1;
    let cooperative = [LaunchAttribute { id: COOPERATIVE, value }];
    // SAFETY: as the caller's.
    unsafe { launch(function, &work, &cooperative, parameters, std::ptr::null()) }
}
