//! The built `libnvidia-ml.so.1`: every public name is exported; without a lease the recorded device is there, with
//! one its memory is the lease's.

use serde_json::json;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::ask;
use sluice_conformance::driver::Driver;
use sluice_conformance::gpud::{Gpud, native_dir};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Arc;

fn library() -> *mut c_void {
    let path = native_dir().join("libnvidia_ml.so");
    let path = CString::new(path.display().to_string()).expect("no NUL");
    // SAFETY: loading the library does nothing.
    let found = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!found.is_null(), "{path:?} cannot be loaded");
    found
}

fn address(library: *mut c_void, name: &str) -> *mut c_void {
    let name = CString::new(name).expect("no NUL");
    // SAFETY: the library is loaded and the name ends with NUL.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}

macro_rules! function {
    ($library:expr, $name:literal, $kind:ty) => {{
        let address = address($library, $name);
        assert!(!address.is_null(), $name);
        // SAFETY: the address is that of the function of this name, whose C signature this is.
        unsafe { std::mem::transmute::<*mut c_void, $kind>(address) }
    }};
}

#[test]
fn every_public_name_is_exported() {
    let library = library();
    let missing: Vec<&str> = sluice_api::nvml::names().filter(|name| address(library, name).is_null()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_device_shows_the_lease_and_not_the_card() {
    // SAFETY: no other thread of this program reads these variables now.
    unsafe {
        for name in ["SLUICE_BROKER_URL", "SLUICE_OWNER_SOCKET", "SLUICE_GPU_TYPE"] {
            std::env::remove_var(name);
        }
        // NVML does not know the variable; CUDA does.
        std::env::set_var("CUDA_VISIBLE_DEVICES", "0");
    }
    let library = library();
    let init = function!(library, "nvmlInit_v2", unsafe extern "C" fn() -> u32);
    let shutdown = function!(library, "nvmlShutdown", unsafe extern "C" fn() -> u32);
    let count = function!(library, "nvmlDeviceGetCount_v2", unsafe extern "C" fn(*mut u32) -> u32);
    let handle = function!(library, "nvmlDeviceGetHandleByIndex_v2", unsafe extern "C" fn(u32, *mut usize) -> u32);
    let name = function!(library, "nvmlDeviceGetName", unsafe extern "C" fn(usize, *mut c_char, u32) -> u32);
    let power = function!(library, "nvmlDeviceGetPowerUsage", unsafe extern "C" fn(usize, *mut u32) -> u32);
    let memory = function!(library, "nvmlDeviceGetMemoryInfo", unsafe extern "C" fn(usize, *mut [u64; 3]) -> u32);
    let processes = function!(
        library,
        "nvmlDeviceGetComputeRunningProcesses_v3",
        unsafe extern "C" fn(usize, *mut u32, *mut [u64; 3]) -> u32
    );
    let (mut devices, mut device, mut bytes, mut text) = (0, 0, [0; 3], [0 as c_char; 96]);
    // SAFETY: every output has the room that its function writes to.
    unsafe {
        assert_eq!(count(&mut devices), 1, "uninitialised");
        assert_eq!(init(), 0);
        assert_eq!((count(&mut devices), devices), (0, 1));
        assert_eq!(handle(1, &mut device), 2);
        assert_eq!(handle(0, &mut device), 0);
        assert_eq!(name(device, text.as_mut_ptr(), 4), 7, "too little room");
        assert_eq!(name(device, text.as_mut_ptr(), 96), 0);
        assert_eq!(CStr::from_ptr(text.as_ptr()).to_str(), Ok("Sluice Software GPU"));
        assert_eq!(power(device, &mut devices), 3);
        assert_eq!(memory(device, &mut bytes), 0);
        assert_eq!(bytes, [4 << 30, 4 << 30, 0], "the default amount, half of 8 GiB");
        assert_eq!(shutdown(), 0);
        assert_eq!(shutdown(), 1);
    }

    // This program's own client owns a lease; the libraries, with a client of theirs, use it as a child's would.
    let broker = Broker::start(Arc::new(Gpud::start("soft", &[]).expect("gpud")), 256 << 20).expect("broker");
    // SAFETY: as above.
    unsafe { broker.set_environment() };
    let owner = json!({ "kind": "process", "pid": std::process::id(), "startTime": 1 });
    let served = ask(&json!({ "op": "init", "owner": owner }));
    let id = "00000000-0000-4000-8000-000000000000";
    let granted = ask(&json!({ "op": "attach", "requestId": id, "amount": "0.5", "waitSeconds": 0 }));
    assert_eq!(granted["state"], "granted", "{granted}");
    // SAFETY: as above.
    unsafe { std::env::set_var("SLUICE_OWNER_SOCKET", served["socket"].as_str().expect("a socket")) };
    let driver = Driver::load(&native_dir().join("libcuda.so")).expect("libcuda");
    // SAFETY: every output has the room that its function writes to.
    unsafe {
        assert_eq!(init(), 0);
        assert_eq!(memory(device, &mut bytes), 0);
        assert_eq!(bytes, [256 << 20, 256 << 20, 0]);
        let (mut cuda_device, mut context, mut array) = (0, 0, 0);
        assert_eq!((driver.cuInit)(0), 0);
        assert_eq!((driver.cuDeviceGet)(&mut cuda_device, 0), 0);
        assert_eq!((driver.cuDevicePrimaryCtxRetain)(&mut context, cuda_device), 0);
        assert_eq!((driver.cuCtxSetCurrent)(context), 0);
        assert_eq!((driver.cuMemAlloc_v2)(&mut array, 64 << 20), 0);
        assert_eq!((driver.cuCtxSynchronize)(), 0);
        // The answer of a moment ago is forgotten with the library's end.
        assert_eq!((shutdown(), init()), (0, 0));
        assert_eq!(memory(device, &mut bytes), 0);
        assert_eq!(bytes, [256 << 20, 192 << 20, 64 << 20]);
        let (mut found, mut infos) = (8, [[0; 3]; 8]);
        assert_eq!(processes(device, &mut found, infos.as_mut_ptr()), 0);
        assert_eq!(found, 1);
        // The number of the process fills half of the first word.
        assert_eq!((infos[0][0] as u32, infos[0][1]), (std::process::id(), 64 << 20));
    }
}
