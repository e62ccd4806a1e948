//! Contexts, devices, modules and libraries: what is not work but is asked for.

use super::{ADD, Program, start};
use crate::driver::{Driver, table};
use std::ffi::{CStr, CString, c_char, c_void};

pub const PROGRAMS: &[Program] =
    &[("contexts", contexts), ("libraries", libraries), ("old_and_refused", old_and_refused)];

table! {
    Objects;
    cuCtxCreate_v2(*mut usize, u32, i32);
    cuCtxDestroy_v2(usize);
    cuCtxGetCurrent(*mut usize);
    cuCtxSetFlags(u32);
    cuCtxGetFlags(*mut u32);
    cuCtxGetLimit(*mut usize, u32);
    cuCtxSetLimit(u32, usize);
    cuCtxRecordEvent(usize, usize);
    cuCtxWaitEvent(usize, usize);
    cuCtxEnablePeerAccess(usize, u32);
    cuCtxDisablePeerAccess(usize);
    cuDeviceCanAccessPeer(*mut i32, i32, i32);
    cuDeviceGetAttribute(*mut i32, i32, i32);
    cuDeviceGetProperties(*mut [i32; 14], i32);
    cuLibraryLoadData(*mut usize, *const c_void, *const u32, *mut *mut c_void, u32, *const u32, *const *mut c_void, u32);
    cuLibraryUnload(usize);
    cuLibraryGetKernelCount(*mut u32, usize);
    cuLibraryEnumerateKernels(*mut usize, u32, usize);
    cuLibraryGetModule(*mut usize, usize);
    cuLibraryGetManaged(*mut u64, *mut usize, usize, *const c_char);
    cuKernelGetFunction(*mut usize, usize);
    cuKernelGetName(*mut *const c_char, usize);
    cuKernelGetParamInfo(usize, usize, *mut usize, *mut usize);
    cuKernelGetParamCount(usize, *mut usize);
    cuFuncGetName(*mut *const c_char, usize);
    cuModuleGetFunctionCount(*mut u32, usize);
    cuCtxPushCurrent_v2(usize);
    cuCtxPopCurrent_v2(*mut usize);
    cuStreamDestroy(usize);
    cuMemAlloc(*mut u32, u32);
    cuGreenCtxCreate(*mut usize, usize, i32, u32);
    cuCheckpointProcessLock(i32, *mut c_void);
}

fn contexts(driver: &Driver) {
    let first = start(driver);
    let objects = Objects::of(driver.library);
    let (mut second, mut current, mut flags, mut limit, mut event, mut peer) = (0, 0, 0, 0, 0, 9);
    // SAFETY: live locals and handles made here.
    unsafe {
        assert_eq!((objects.cuCtxCreate_v2)(&raw mut second, 0, 0), 0);
        assert_eq!((objects.cuCtxSetFlags)(4), 0);
        assert_eq!((objects.cuCtxGetFlags)(&raw mut flags), 0);
        assert_eq!(flags & 4, 4);
        assert_eq!((objects.cuCtxSetLimit)(0, 4096), 0);
        assert_eq!((objects.cuCtxGetLimit)(&raw mut limit, 0), 0);
        assert!(limit >= 4096);
        assert!([1, 215].contains(&(objects.cuCtxGetLimit)(&raw mut limit, 99)), "no such limit");
        assert_eq!((driver.cuEventCreate)(&raw mut event, 0), 0);
        assert_eq!((objects.cuCtxRecordEvent)(second, event), 0);
        assert_eq!((objects.cuCtxWaitEvent)(second, event), 0);
        assert_eq!((driver.cuEventSynchronize)(event), 0);
        assert_eq!((driver.cuEventQuery)(event), 0);
        // A device is no peer of its own.
        assert_eq!((objects.cuDeviceCanAccessPeer)(&raw mut peer, 0, 0), 0);
        assert_eq!(peer, 0);
        // NVIDIA's driver 580 says that the devices are no peers.
        assert!([201, 217].contains(&(objects.cuCtxEnablePeerAccess)(second, 0)), "with itself");
        assert_eq!((objects.cuCtxEnablePeerAccess)(first, 0), 217);
        assert_eq!((objects.cuCtxDisablePeerAccess)(first), 705);
        assert_eq!((objects.cuCtxDestroy_v2)(second), 0);
        assert_eq!((objects.cuCtxGetCurrent)(&raw mut current), 0);
        assert_eq!(current, first);
        assert_eq!((objects.cuCtxPushCurrent_v2)(first), 0);
        assert_eq!((objects.cuCtxPopCurrent_v2)(&raw mut current), 0);
        assert_eq!(current, first);
        let mut properties = [0; 14];
        assert_eq!((objects.cuDeviceGetProperties)(&raw mut properties, 0), 0);
        let mut warp = 0;
        assert_eq!((objects.cuDeviceGetAttribute)(&raw mut warp, 10, 0), 0);
        assert_eq!(properties[9], warp);
    }
}

fn libraries(driver: &Driver) {
    start(driver);
    let objects = Objects::of(driver.library);
    let (image, name) = (CString::new(ADD).expect("text"), CString::new("add").expect("text"));
    let (mut library, mut count, mut kernel, mut module, mut function) = (0, 0, 0, 0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: live strings and locals; handles are made here.
    unsafe {
        let loaded = (objects.cuLibraryLoadData)(
            &raw mut library,
            image.as_ptr().cast(),
            std::ptr::null(),
            none,
            0,
            std::ptr::null(),
            std::ptr::null(),
            0,
        );
        assert_eq!(loaded, 0);
        assert_eq!((objects.cuLibraryGetKernelCount)(&raw mut count, library), 0);
        assert_eq!(count, 1);
        assert_eq!((objects.cuLibraryEnumerateKernels)(&raw mut kernel, 1, library), 0);
        let mut text = std::ptr::null();
        assert_eq!((objects.cuKernelGetName)(&raw mut text, kernel), 0);
        assert_eq!(CStr::from_ptr(text), name.as_c_str());
        let (mut parameters, mut offset, mut bytes) = (0, 0, 0);
        if driver.has("cuKernelGetParamCount") {
            assert_eq!((objects.cuKernelGetParamCount)(kernel, &raw mut parameters), 0);
            assert_eq!(parameters, 3);
        } else {
            println!("cuKernelGetParamCount is left out");
        }
        assert_eq!((objects.cuKernelGetParamInfo)(kernel, 2, &raw mut offset, &raw mut bytes), 0);
        assert_eq!((offset, bytes), (12, 4));
        assert_eq!((objects.cuKernelGetParamInfo)(kernel, 3, &raw mut offset, &raw mut bytes), 1);
        assert_eq!((objects.cuLibraryGetModule)(&raw mut module, library), 0);
        assert_eq!((objects.cuModuleGetFunctionCount)(&raw mut count, module), 0);
        assert_eq!(count, 1);
        assert_eq!((driver.cuModuleGetFunction)(&raw mut function, module, name.as_ptr()), 0);
        assert_eq!((objects.cuKernelGetFunction)(&raw mut function, kernel), 0);
        assert_eq!((objects.cuFuncGetName)(&raw mut text, function), 0);
        assert_eq!(CStr::from_ptr(text), name.as_c_str());
        let (mut address, mut size) = (0, 0);
        assert_eq!((objects.cuLibraryGetManaged)(&raw mut address, &raw mut size, library, name.as_ptr()), 500);
        assert_eq!((objects.cuLibraryUnload)(library), 0);
        if driver.is_ours() {
            assert_eq!((objects.cuLibraryUnload)(library), 400);
        }
    }
}

/// The oldest names work where their ABI can; what our client refuses says why.
fn old_and_refused(driver: &Driver) {
    start(driver);
    let objects = Objects::of(driver.library);
    let (mut stream, mut address, mut green) = (0, 0, 0);
    let mut text = std::ptr::null();
    // SAFETY: live locals; refused functions read nothing.
    unsafe {
        assert_eq!((driver.cuStreamCreate)(&raw mut stream, 0), 0);
        assert_eq!((objects.cuStreamDestroy)(stream), 0);
        if !driver.is_ours() {
            return;
        }
        assert_ne!((objects.cuMemAlloc)(&raw mut address, 64), 0);
        assert_ne!((objects.cuGreenCtxCreate)(&raw mut green, 0, 0, 0), 0);
        let refused = (objects.cuCheckpointProcessLock)(0, std::ptr::null_mut());
        assert_ne!(refused, 0);
        assert_eq!((driver.cuGetErrorString)(refused, &raw mut text), 0);
        assert!(!CStr::from_ptr(text).is_empty());
    }
}
