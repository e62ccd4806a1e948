//! `sluice-driver-bench LIBCUDA [MIB]`: what a program feels of a driver, as one line of JSON: copies of so many MiB, the
//! cost of a launch, of waiting for the device, and the time to the first kernel. The same on a real driver and through
//! the wire.

use serde_json::json;
use sluice_conformance::driver::Driver;
use sluice_conformance::programs::ADD;
use std::ffi::{CString, c_void};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// How often a copy is timed; the best counts.
const COPIES: usize = 5;
const LAUNCHES: u32 = 20_000;
const WAITS: usize = 400;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(library) = arguments.first() else {
        eprintln!("use: sluice-driver-bench LIBCUDA [MIB]");
        return ExitCode::from(2);
    };
    let mib = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(256);
    match measure(library, mib) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// A CUresult as an outcome.
fn check(what: &str, code: u32) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("{what} answers {code}")) }
}

fn measure(library: &str, mib: usize) -> Result<serde_json::Value, String> {
    let began = Instant::now();
    let driver = Driver::load(Path::new(library))?;
    let (mut context, mut module, mut function, mut address) = (0, 0, 0, 0u64);
    let bytes = mib << 20;
    let (image, name) = (CString::new(ADD), CString::new("add"));
    let (image, name) = (image.map_err(|e| e.to_string())?, name.map_err(|e| e.to_string())?);
    // SAFETY: live locals and C strings; the prototypes are the Driver API's.
    unsafe {
        check("cuInit", (driver.cuInit)(0))?;
        check("cuDevicePrimaryCtxRetain", (driver.cuDevicePrimaryCtxRetain)(&raw mut context, 0))?;
        check("cuCtxSetCurrent", (driver.cuCtxSetCurrent)(context))?;
        check("cuMemAlloc", (driver.cuMemAlloc_v2)(&raw mut address, bytes))?;
        check("cuModuleLoadData", (driver.cuModuleLoadData)(&raw mut module, image.as_ptr().cast()))?;
        check("cuModuleGetFunction", (driver.cuModuleGetFunction)(&raw mut function, module, name.as_ptr()))?;
    }
    let (count, value) = (32u32, 1u32);
    let parameters: [*const c_void; 3] =
        [(&raw const address).cast(), (&raw const count).cast(), (&raw const value).cast()];
    let launch = || {
        let list = parameters.as_ptr();
        // SAFETY: three parameters, as the kernel declares.
        check("cuLaunchKernel", unsafe {
            (driver.cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, 0, list, std::ptr::null())
        })
    };
    // SAFETY: no arguments.
    let wait = || check("cuCtxSynchronize", unsafe { (driver.cuCtxSynchronize)() });
    launch()?;
    wait()?;
    let first_kernel_ms = began.elapsed().as_secs_f64() * 1e3;
    // What the host holds lies in page-locked memory too: programs that care about speed copy from there.
    let locked = PageLocked::new(&driver, bytes)?;
    let pageable: Vec<u8> = (0..bytes).map(|index| (index * 31 + (index >> 12)) as u8).collect();
    let mut back = vec![0u8; bytes];
    // SAFETY: as long as said; nobody else uses it.
    unsafe { std::ptr::copy_nonoverlapping(pageable.as_ptr(), locked.memory.cast(), bytes) };
    let copy_in = |from: *const c_void| {
        // SAFETY: both sides are `bytes` long.
        check("cuMemcpyHtoD", unsafe { (driver.cuMemcpyHtoD_v2)(address, from, bytes) }).and_then(|()| wait())
    };
    let copy_out = |to: *mut c_void| {
        // SAFETY: as above.
        check("cuMemcpyDtoH", unsafe { (driver.cuMemcpyDtoH_v2)(to, address, bytes) })
    };
    let h2d_pageable = best(bytes, || copy_in(pageable.as_ptr().cast()))?;
    let target: *mut c_void = back.as_mut_ptr().cast();
    let d2h_pageable = best(bytes, || copy_out(target))?;
    if back != pageable {
        return Err("what came back is not what was sent".to_owned());
    }
    let h2d_locked = best(bytes, || copy_in(locked.memory))?;
    let d2h_locked = best(bytes, || copy_out(locked.memory))?;
    (0..LAUNCHES / 10).try_for_each(|_| launch())?;
    wait()?;
    let began = Instant::now();
    (0..LAUNCHES).try_for_each(|_| launch())?;
    wait()?;
    let launch_us = began.elapsed().as_secs_f64() * 1e6 / f64::from(LAUNCHES);
    let mut waits = Vec::new();
    for _ in 0..WAITS {
        let began = Instant::now();
        launch()?;
        wait()?;
        waits.push(began.elapsed().as_secs_f64() * 1e6);
    }
    waits.sort_by(f64::total_cmp);
    Ok(json!({
        "mib": mib,
        "first_kernel_ms": first_kernel_ms,
        "h2d_pageable_gb_s": h2d_pageable,
        "d2h_pageable_gb_s": d2h_pageable,
        "h2d_locked_gb_s": h2d_locked,
        "d2h_locked_gb_s": d2h_locked,
        "launch_us": launch_us,
        "launch_and_wait_us": waits[WAITS / 2],
    }))
}

/// GB a second of the best of some copies.
fn best(bytes: usize, mut copy: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    let mut most = 0.0_f64;
    for _ in 0..COPIES {
        let began = Instant::now();
        copy()?;
        most = most.max(bytes as f64 / 1e9 / began.elapsed().as_secs_f64());
    }
    Ok(most)
}

/// Page-locked memory, which ends with the process.
struct PageLocked {
    memory: *mut c_void,
}

impl PageLocked {
    fn new(driver: &Driver, bytes: usize) -> Result<Self, String> {
        let allocate = driver.library.symbol("cuMemAllocHost_v2")?;
        // SAFETY: the Driver API gives the function this signature.
        let allocate = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut *mut c_void, usize) -> u32>(allocate)
        };
        let mut memory = std::ptr::null_mut();
        // SAFETY: a live local.
        check("cuMemAllocHost", unsafe { allocate(&raw mut memory, bytes) })?;
        Ok(Self { memory })
    }
}
