//! The client's functions, called inside this process as the shim calls them.

use crate::programs::ADD;
use serde_json::{Value, json};
use sluice_client::generated::*;
use sluice_client::{process, request};
use std::ffi::{CStr, CString, c_void};

/// Asks the client as Python does.
pub fn ask(question: &Value) -> Value {
    request::answer(process::get(), question)
}

/// Borrows a GPU.
pub fn attach() {
    let wish = json!({ "op": "attach", "requestId": "00000000-0000-4000-8000-000000000000", "waitSeconds": 0 });
    let answer = ask(&wish);
    assert_eq!(answer["state"], "granted", "{answer}");
}

/// Starts CUDA and loads [`ADD`]: its function.
pub fn start() -> usize {
    let (mut context, mut module, mut function) = (0, 0, 0);
    let (image, name) = (CString::new(ADD).expect("text"), CString::new("add").expect("text"));
    // SAFETY: live strings and locals.
    unsafe {
        assert_eq!(sluice_cuInit(0), 0);
        assert_eq!(sluice_cuDevicePrimaryCtxRetain(&raw mut context, 0), 0);
        assert_eq!(sluice_cuCtxSetCurrent(context), 0);
        assert_eq!(sluice_cuModuleLoadData(&raw mut module, image.as_ptr().cast()), 0);
        assert_eq!(sluice_cuModuleGetFunction(&raw mut function, module, name.as_ptr()), 0);
    }
    function
}

/// Launches [`ADD`].
pub fn add(function: usize, address: u64, count: u32, value: u32) -> u32 {
    let parameters: [*const c_void; 3] =
        [(&raw const address).cast(), (&raw const count).cast(), (&raw const value).cast()];
    // SAFETY: three parameters, as the kernel declares.
    unsafe { sluice_cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, 0, parameters.as_ptr(), std::ptr::null()) }
}

/// The answer and the first word at an address.
pub fn first_word(address: u64) -> (u32, u32) {
    let mut word = 0u32;
    // SAFETY: a live local.
    let code = unsafe { sluice_cuMemcpyDtoH_v2((&raw mut word).cast(), address, 4) };
    (code, word)
}

/// What `cuGetErrorString` says.
pub fn words(code: u32) -> String {
    let mut text = std::ptr::null();
    // SAFETY: texts live for good.
    unsafe {
        assert_eq!(sluice_cuGetErrorString(code, &raw mut text), 0);
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

/// Allocates 4096 bytes.
pub fn alloc() -> (u32, u64) {
    let mut address = 0;
    // SAFETY: a live local.
    let code = unsafe { sluice_cuMemAlloc_v2(&raw mut address, 4096) };
    (code, address)
}

/// Sets the 1024 words of an allocation of [`alloc`].
pub fn fill(address: u64, word: u32) {
    // SAFETY: the caller's allocation has 4096 bytes; another is refused.
    assert_eq!(unsafe { sluice_cuMemsetD32_v2(address, word, 1024) }, 0);
}
