//! What the stubs of programs compiled by nvcc register when they are loaded: fat binaries with their kernels and
//! variables. Nothing happens then but writing it down; a fat binary is loaded when its first kernel or variable is
//! used, and only the image for the device travels.

use super::code::{INVALID_DEVICE_FUNCTION, INVALID_SYMBOL};
use super::context::{context, initialised};
use crate::driver;
use crate::error::{CudaError, CudaResult};
use crate::fork;
use crate::message;
use crate::objects::new_handle;
use sluice_protocol::cuda;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

/// A fat binary of the program.
pub(crate) struct Binary {
    /// Address of its wrapper, which stays while it is registered.
    wrapper: usize,
    loaded: Mutex<Loaded>,
}

#[derive(Default)]
struct Loaded {
    /// 0 when it is not loaded.
    library: usize,
    /// [`fork::count`] at the time: a forked child loads it again.
    forks: u32,
}

impl Binary {
    /// The driver's library; loads it when that has not happened.
    fn library(&self) -> CudaResult<usize> {
        let process = initialised()?;
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let there =
            loaded.library != 0 && loaded.forks == fork::count() && process.objects.modules.get(loaded.library).is_ok();
        if !there {
            let none = std::ptr::null_mut();
            let mut library = 0;
            // SAFETY: a live local; the wrapper is the program's and registered.
            unsafe {
                let image = self.wrapper as *const c_void;
                let (options, values) = (std::ptr::null(), std::ptr::null());
                driver::cuLibraryLoadData(&raw mut library, image, options, none, 0, std::ptr::null(), values, 0)?;
            }
            *loaded = Loaded { library, forks: fork::count() };
        }
        Ok(loaded.library)
    }
}

/// A kernel of the program.
pub(crate) struct Kernel {
    binary: Arc<Binary>,
    name: CString,
    /// What `__cudaGetKernel` gives: it is good before the kernel is loaded, and after a reset.
    pub handle: usize,
    /// The driver's handle, 0 when it is not known, and [`fork::count`] at the time.
    function: AtomicUsize,
    forks: AtomicU32,
}

impl Kernel {
    /// The driver's handle.
    #[inline]
    pub fn function(&self) -> CudaResult<usize> {
        let function = self.function.load(Ordering::Acquire);
        if function != 0 && self.forks.load(Ordering::Acquire) == fork::count() {
            return Ok(function);
        }
        self.find()
    }

    #[cold]
    fn find(&self) -> CudaResult<usize> {
        let library = self.binary.library()?;
        let mut function = 0;
        // SAFETY: a live local and a live string.
        unsafe { driver::cuModuleGetFunction(&raw mut function, library, self.name.as_ptr()) }.map_err(|error| {
            if error.code == cuda::ERROR_NOT_FOUND { CudaError::code(INVALID_DEVICE_FUNCTION) } else { error }
        })?;
        self.forks.store(fork::count(), Ordering::Release);
        self.function.store(function, Ordering::Release);
        Ok(function)
    }

    /// The driver's handle is gone: the device was reset.
    pub fn forget(&self) {
        self.function.store(0, Ordering::Release);
    }
}

/// Why there are no managed variables.
const NO_MANAGED: &str = "kernels on a remote GPU cannot reach host memory: declare the variable __device__ instead of \
     __managed__ and copy it";

/// A variable of the program.
pub(crate) struct Variable {
    binary: Arc<Binary>,
    name: CString,
    pub bytes: usize,
    managed: bool,
}

impl Variable {
    /// Its address on the device, and its size there.
    pub fn address(&self) -> CudaResult<(u64, usize)> {
        if self.managed {
            return Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, NO_MANAGED));
        }
        context()?;
        let library = self.binary.library()?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: live locals and a live string.
        unsafe { driver::cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, library, self.name.as_ptr()) }
            .map_err(
                |error| if error.code == cuda::ERROR_NOT_FOUND { CudaError::code(INVALID_SYMBOL) } else { error },
            )?;
        Ok((address, bytes))
    }
}

#[derive(Default)]
struct Registered {
    /// By what `__cudaRegisterFatBinary` gave.
    binaries: HashMap<usize, Arc<Binary>>,
    /// By the address of the stub, and by handle.
    kernels: HashMap<usize, Arc<Kernel>>,
    /// By the address of the variable's shadow on the host.
    variables: HashMap<usize, Arc<Variable>>,
}

static REGISTERED: LazyLock<RwLock<Registered>> = LazyLock::new(RwLock::default);

fn change<T>(work: impl FnOnce(&mut Registered) -> T) -> T {
    work(&mut REGISTERED.write().unwrap_or_else(PoisonError::into_inner))
}

/// The kernel with this stub or handle.
#[inline]
pub(crate) fn kernel(key: usize) -> Option<Arc<Kernel>> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).kernels.get(&key).cloned()
}

/// The stub of the kernel that the driver knows by this handle; 0 when no stub stands for it.
pub(crate) fn stub(function: usize) -> usize {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let is_it = |(key, kernel): &(&usize, &Arc<Kernel>)| {
        **key != kernel.handle && kernel.function.load(Ordering::Acquire) == function
    };
    registered.kernels.iter().find(is_it).map_or(0, |(key, _)| *key)
}

/// The variable with this shadow, or cudaErrorInvalidSymbol.
pub(crate) fn variable(shadow: usize) -> CudaResult<Arc<Variable>> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.variables.get(&shadow).cloned().ok_or(CudaError::code(INVALID_SYMBOL))
}

pub unsafe fn __cudaRegisterFatBinary(wrapper: *const c_void) -> *mut *mut c_void {
    let binary = Arc::new(Binary { wrapper: wrapper as usize, loaded: Mutex::default() });
    // Programs take it for a pointer to a pointer; nobody follows it.
    let handle = new_handle() as usize;
    change(|registered| registered.binaries.insert(handle, binary));
    handle as *mut *mut c_void
}

pub unsafe fn __cudaRegisterFatBinaryEnd(_binary: *mut *mut c_void) {}

/// Its module is loaded when it is used: 0 as always.
pub unsafe fn __cudaInitModule(_binary: *mut *mut c_void) -> c_char {
    0
}

pub unsafe fn __cudaUnregisterFatBinary(binary: *mut *mut c_void) {
    // Another thread of the parent may have held the lock at the fork, and nobody releases it here.
    if fork::is_child() {
        return;
    }
    let removed = change(|registered| {
        let removed = registered.binaries.remove(&(binary as usize))?;
        registered.kernels.retain(|_, kernel| !Arc::ptr_eq(&kernel.binary, &removed));
        registered.variables.retain(|_, variable| !Arc::ptr_eq(&variable.binary, &removed));
        Some(removed)
    });
    let Some(removed) = removed else { return };
    let loaded = std::mem::take(&mut *removed.loaded.lock().unwrap_or_else(PoisonError::into_inner));
    if loaded.library != 0 && loaded.forks == fork::count() {
        // At the end of a program there may be nobody to tell any more.
        // SAFETY: no pointers go in.
        let _ = unsafe { driver::cuModuleUnload(loaded.library) };
    }
}

fn binary(handle: *mut *mut c_void) -> Option<Arc<Binary>> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).binaries.get(&(handle as usize)).cloned()
}

/// A name that stays when the program's library is unloaded.
unsafe fn owned(name: *const c_char) -> Option<CString> {
    // SAFETY: null, or the program's string.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_owned())
}

pub unsafe fn __cudaRegisterFunction(
    handle: *mut *mut c_void,
    host: usize,
    _device: *const c_char,
    name: *const c_char,
    _thread_limit: i32,
    _thread: *const c_void,
    _block: *const c_void,
    _block_size: *const c_void,
    _grid_size: *const c_void,
    _warp_size: *const i32,
) {
    // SAFETY: the program's string.
    let (Some(binary), Some(name)) = (binary(handle), unsafe { owned(name) }) else { return };
    let handle = new_handle() as usize;
    let (function, forks) = (AtomicUsize::new(0), AtomicU32::new(0));
    let kernel = Arc::new(Kernel { binary, name, handle, function, forks });
    change(|registered| {
        registered.kernels.insert(handle, Arc::clone(&kernel));
        registered.kernels.insert(host, kernel);
    });
}

unsafe fn register_variable(handle: *mut *mut c_void, host: usize, name: *const c_char, bytes: usize, managed: bool) {
    // SAFETY: the program's string.
    let (Some(binary), Some(name)) = (binary(handle), unsafe { owned(name) }) else { return };
    change(|registered| registered.variables.insert(host, Arc::new(Variable { binary, name, bytes, managed })));
}

pub unsafe fn __cudaRegisterVar(
    handle: *mut *mut c_void,
    host: usize,
    _device: *const c_char,
    name: *const c_char,
    _external: i32,
    bytes: usize,
    _constant: i32,
    _global: i32,
) {
    // SAFETY: as the caller's.
    unsafe { register_variable(handle, host, name, bytes, false) };
}

/// Written down so that its use is refused by name; said at once, because the program reads it on the host without
/// asking anybody, and ends there.
pub unsafe fn __cudaRegisterManagedVar(
    handle: *mut *mut c_void,
    host: usize,
    _device: *const c_char,
    name: *const c_char,
    _external: i32,
    bytes: usize,
    _constant: i32,
    _global: i32,
) {
    // SAFETY: null, or the program's string.
    if let Some(name) = unsafe { owned(name) } {
        message::tell(message::Kind::Program, &format!("`{}` is __managed__: {NO_MANAGED}", name.to_string_lossy()));
    }
    // SAFETY: as the caller's.
    unsafe { register_variable(handle, host, name, bytes, true) };
}

/// Host variables that kernels would reach: they cannot, and say so when the image is loaded.
pub unsafe fn __cudaRegisterHostVar() {}

pub unsafe fn __cudaRegisterUnifiedTable() {}
