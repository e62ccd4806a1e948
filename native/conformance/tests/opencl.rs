//! The built `libsluice_opencl.so`, as OpenCL's loader uses a driver.

use sluice_conformance::gpud::native_dir;
use std::ffi::{CString, c_char, c_void};
use std::process::Command;

const PLATFORM_NOT_FOUND: i32 = -1001;
/// Names the part of a test that runs in a process of its own.
const LOADS: &str = "SLUICE_TEST_LOADS_OPENCL";

/// Loads the driver and asks for its platforms twice, as a loader does.
fn load() {
    let path = CString::new(native_dir().join("libsluice_opencl.so").display().to_string()).expect("no NUL");
    // SAFETY: loading the library does nothing; the functions have the signatures of OpenCL's headers.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!library.is_null(), "{path:?} cannot be loaded");
        let found = libc::dlsym(library, c"clGetExtensionFunctionAddress".as_ptr());
        assert!(!found.is_null());
        let find = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> *mut c_void>(found);
        assert!(!find(c"clGetPlatformInfo".as_ptr()).is_null());
        assert!(find(c"clNonsense".as_ptr()).is_null() && find(std::ptr::null()).is_null());
        let platforms = find(c"clIcdGetPlatformIDsKHR".as_ptr());
        assert!(!platforms.is_null());
        type Platforms = unsafe extern "C" fn(u32, *mut *mut c_void, *mut u32) -> i32;
        let platforms = std::mem::transmute::<*mut c_void, Platforms>(platforms);
        let mut count = 7;
        for _ in 0..2 {
            assert_eq!(platforms(0, std::ptr::null_mut(), &raw mut count), PLATFORM_NOT_FOUND);
        }
        assert_eq!((count, platforms(0, std::ptr::null_mut(), std::ptr::null_mut())), (0, PLATFORM_NOT_FOUND));
    }
}

#[test]
fn there_is_no_platform_and_one_sentence_says_what_to_use() {
    if std::env::var_os(LOADS).is_some() {
        return load();
    }
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    let name = "there_is_no_platform_and_one_sentence_says_what_to_use";
    let output = again.args([name, "--exact", "--nocapture"]).env(LOADS, "1").output().expect("runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("sluice: OpenCL does not reach the borrowed GPU. Use CUDA instead").count(), 1, "{text}");
}
