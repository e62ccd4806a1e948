//! Arguments at the border of what CUDA accepts.

use super::{Program, add, alloc, download, load, start, upload};
use crate::driver::{Driver, table};
use std::ffi::c_void;

pub(super) const PROGRAMS: &[Program] = &[
    ("overlapping_registrations", overlapping_registrations),
    ("null_page_locked_memory", null_page_locked_memory),
    ("two_lists_of_parameters", two_lists_of_parameters),
    ("profiler", profiler),
];

table! {
    More;
    cuMemHostRegister_v2(*mut c_void, usize, u32);
    cuMemHostUnregister(*mut c_void);
    cuMemFreeHost(*mut c_void);
    cuProfilerStart();
    cuProfilerStop();
}

const INVALID_VALUE: u32 = 1;
const ALREADY_REGISTERED: u32 = 712;
const PAGE: usize = 4096;

/// "Part or all of the requested memory range is already mapped."
fn overlapping_registrations(driver: &Driver) {
    start(driver);
    let more = More::of(driver.library);
    let mut memory = vec![0u8; 12 * PAGE];
    let begin = memory.as_mut_ptr();
    // SAFETY: inside the vector.
    let page = |number: usize| unsafe { begin.add(begin.align_offset(PAGE) + number * PAGE) }.cast::<c_void>();
    // SAFETY: the ranges lie in the vector, which outlives their registration.
    unsafe {
        assert_eq!((more.cuMemHostRegister_v2)(page(4), 2 * PAGE, 0), 0);
        let overlaps = [(2, 3), (2, 8), (4, 2), (4, 1), (5, 1), (5, 3)];
        for (start, pages) in overlaps {
            let code = (more.cuMemHostRegister_v2)(page(start), pages * PAGE, 0);
            assert_eq!(code, ALREADY_REGISTERED, "{pages} pages from {start}");
        }
        // Neighbors touch it and overlap nothing.
        for start in [2, 6] {
            assert_eq!((more.cuMemHostRegister_v2)(page(start), 2 * PAGE, 0), 0);
        }
        for start in [2, 4, 6] {
            assert_eq!((more.cuMemHostUnregister)(page(start)), 0);
        }
        assert_eq!((more.cuMemHostRegister_v2)(page(2), 8 * PAGE, 0), 0);
        assert_eq!((more.cuMemHostUnregister)(page(2)), 0);
    }
}

/// Measured on driver 590: freeing nothing succeeds, unregistering nothing does not.
fn null_page_locked_memory(driver: &Driver) {
    start(driver);
    let more = More::of(driver.library);
    // SAFETY: NULL names no memory.
    unsafe {
        assert_eq!((more.cuMemFreeHost)(std::ptr::null_mut()), 0);
        assert_eq!((more.cuMemHostUnregister)(std::ptr::null_mut()), INVALID_VALUE);
    }
}

/// A kernel's parameters come in one list or in the other.
fn two_lists_of_parameters(driver: &Driver) {
    start(driver);
    let (_, function) = load(driver, "add");
    let address = alloc(driver, 4096);
    upload(driver, address, &[1; 1024]);
    let (count, value, mut bytes) = (1024u32, 1u32, 16usize);
    let parameters: [*const c_void; 3] =
        [(&raw const address).cast(), (&raw const count).cast(), (&raw const value).cast()];
    let packed = [address, u64::from(count) | u64::from(value) << 32];
    // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END
    let tag = std::ptr::without_provenance::<c_void>;
    let extra: [*const c_void; 5] = [tag(1), packed.as_ptr().cast(), tag(2), (&raw mut bytes).cast(), tag(0)];
    let launch = |parameters: *const *const c_void, extra: *const *const c_void| {
        // SAFETY: three parameters, as the kernel declares.
        unsafe { (driver.cuLaunchKernel)(function, 8, 1, 1, 128, 1, 1, 0, 0, parameters, extra) }
    };
    assert_eq!(launch(parameters.as_ptr(), extra.as_ptr()), INVALID_VALUE);
    assert_eq!(launch(std::ptr::null(), extra.as_ptr()), 0);
    assert_eq!(add(driver, function, address, 1024, 1, 0), 0);
    assert_eq!(download(driver, address, 1024), [3; 1024]);
}

fn profiler(driver: &Driver) {
    let more = More::of(driver.library);
    // SAFETY: no arguments.
    unsafe { assert_eq!((more.cuProfilerStart)(), 3, "before cuInit") };
    start(driver);
    // SAFETY: no arguments.
    unsafe { assert_eq!([(more.cuProfilerStart)(), (more.cuProfilerStop)()], [0, 0]) };
}
