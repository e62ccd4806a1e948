//! What goes with a context, and what stays.

use super::{ADD, Program, add, alloc, download, load, start, upload};
use crate::driver::{Driver, table};
use std::ffi::{CString, c_char, c_void};
use std::sync::mpsc::channel;

pub const PROGRAMS: &[Program] = &[
    ("a_context_takes_what_is_its_own", own_context),
    ("the_primary_context_ends", primary_context),
    ("the_heap_of_kernels_is_charged", heap),
];

table! {
    Ends;
    cuCtxCreate_v2(*mut usize, u32, i32);
    cuCtxDestroy_v2(usize);
    cuCtxGetCurrent(*mut usize);
    cuCtxGetDevice(*mut i32);
    cuCtxPushCurrent_v2(usize);
    cuCtxGetLimit(*mut usize, u32);
    cuCtxSetLimit(u32, usize);
    cuDevicePrimaryCtxRelease_v2(i32);
    cuDevicePrimaryCtxReset_v2(i32);
    cuDevicePrimaryCtxGetState(i32, *mut u32, *mut i32);
    cuMemAllocAsync(*mut u64, usize, usize);
    cuMemFreeAsync(u64, usize);
    cuMemHostAlloc(*mut *mut c_void, usize, u32);
    cuMemFreeHost(*mut c_void);
    cuMemHostRegister_v2(*mut c_void, usize, u32);
    cuMemHostUnregister(*mut c_void);
    cuLinkCreate_v2(u32, *const u32, *mut *mut c_void, *mut usize);
    cuLinkDestroy(usize);
    cuModuleGetGlobal_v2(*mut u64, *mut usize, usize, *const c_char);
}

/// Bytes that a context has of its own: so much that nothing else hides it.
const MUCH: usize = 96 << 20;
/// A module with a variable, so that it has memory too.
const VARIABLE: &str = "\n.visible .global .align 4 .b8 table[8388608];\n.visible .entry add(";

/// Allocates in a kernel.
const TAKE: &str = "\
.version 6.4
.target sm_75
.address_size 64

.extern .func (.param .b64 result) malloc(.param .b64 bytes);

.visible .entry take(.param .u64 out)
{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u64 %rd2, 4096;
    {
        .param .b64 param0;
        st.param.b64 [param0+0], %rd2;
        .param .b64 retval0;
        call.uni (retval0), malloc, (param0);
        ld.param.b64 %rd3, [retval0+0];
    }
    st.global.u64 [%rd1], %rd3;
    ret;
}
";
/// CU_LIMIT_MALLOC_HEAP_SIZE
const HEAP: u32 = 2;

/// Bytes of the device that are free.
fn free(driver: &Driver) -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: live locals.
    assert_eq!(unsafe { (driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total) }, 0);
    free
}

/// What a context owns.
struct Owned {
    module: usize,
    function: usize,
    table: u64,
    memory: u64,
    stream: usize,
    event: usize,
    link: usize,
    pinned: *mut c_void,
}

/// Makes one of each in the current context, with work that is under way.
fn make(driver: &Driver, ends: &Ends, registered: &mut [u32]) -> Owned {
    let ptx = ADD.replace("\n.visible .entry add(", VARIABLE);
    let (module, function) = super::load_from(driver, &ptx, "add");
    let memory = alloc(driver, MUCH);
    let (mut stream, mut event, mut link, mut pinned) = (0, 0, 0, std::ptr::null_mut());
    let (mut table, mut bytes, name) = (0, 0, CString::new("table").expect("text"));
    // SAFETY: live locals; what is registered outlives the context.
    unsafe {
        assert_eq!((driver.cuStreamCreate)(&raw mut stream, 1), 0);
        assert_eq!((driver.cuEventCreate)(&raw mut event, 0), 0);
        assert_eq!((ends.cuLinkCreate_v2)(0, std::ptr::null(), std::ptr::null_mut(), &raw mut link), 0);
        assert_eq!((ends.cuMemHostAlloc)(&raw mut pinned, 1 << 20, 0), 0);
        assert_eq!((ends.cuMemHostRegister_v2)(registered.as_mut_ptr().cast(), size_of_val(registered), 0), 0);
        assert_eq!((ends.cuModuleGetGlobal_v2)(&raw mut table, &raw mut bytes, module, name.as_ptr()), 0);
        assert_eq!(bytes, 8 << 20);
        assert_eq!((driver.cuMemsetD8Async)(memory, 0, MUCH, stream), 0);
        assert_eq!(add(driver, function, memory, (MUCH / 4) as u32, 5, stream), 0);
        assert_eq!((driver.cuEventRecord)(event, stream), 0);
    }
    Owned { module, function, table, memory, stream, event, link, pinned }
}

/// Nothing of it can be used any more. Others than ours need not look handles up.
fn gone(driver: &Driver, ends: &Ends, owned: &Owned, registered: &mut [u32]) {
    let mut word = 0u32;
    // SAFETY: live locals; our client answers for any handle and address.
    unsafe {
        assert_eq!((driver.cuMemFree_v2)(owned.memory), 1);
        assert_eq!((driver.cuMemcpyDtoH_v2)((&raw mut word).cast(), owned.memory, 4), 1);
        if !driver.is_ours() {
            return;
        }
        assert_eq!((driver.cuMemcpyDtoH_v2)((&raw mut word).cast(), owned.table, 4), 1, "a variable");
        assert_eq!(add(driver, owned.function, owned.memory, 1, 1, 0), 400);
        assert_eq!((driver.cuModuleUnload)(owned.module), 400);
        assert_eq!((driver.cuStreamSynchronize)(owned.stream), 400);
        assert_eq!((driver.cuEventQuery)(owned.event), 400);
        assert_eq!((ends.cuLinkDestroy)(owned.link), 400);
        assert_eq!((ends.cuMemFreeHost)(owned.pinned), 1);
        assert_eq!((ends.cuMemHostUnregister)(registered.as_mut_ptr().cast()), 713);
    }
}

fn own_context(driver: &Driver) {
    let first = start(driver);
    let ends = &Ends::of(driver.library);
    let mut registered = vec![0u32; 4096];
    let (mut second, mut current, mut pooled, mut device) = (0, 0, 0, -1);
    let kept = alloc(driver, 4096);
    upload(driver, kept, &[7; 1024]);
    // Whatever the driver takes at its first launch is there already.
    let (_, function) = load(driver, "add");
    assert_eq!(add(driver, function, kept, 1024, 1, 0), 0);
    assert_eq!(download(driver, kept, 1), [8]);
    let before = free(driver);
    for _ in 0..3 {
        // SAFETY: live locals; contexts are destroyed once.
        unsafe {
            assert_eq!((ends.cuCtxCreate_v2)(&raw mut second, 0, 0), 0);
            let owned = make(driver, ends, &mut registered);
            assert_eq!((ends.cuMemAllocAsync)(&raw mut pooled, 4096, 0), 0);
            assert_eq!((driver.cuCtxSynchronize)(), 0);
            assert!(before - free(driver) >= MUCH, "memory is charged");
            let (ready, used) = (channel(), channel());
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let (mut current, mut device) = (0, 0);
                    assert_eq!((driver.cuCtxSetCurrent)(second), 0);
                    ready.0.send(()).expect("heard");
                    used.1.recv().expect("told");
                    // It stays this thread's, and can do nothing any more.
                    assert_eq!((ends.cuCtxGetCurrent)(&raw mut current), 0);
                    assert_eq!(current, second);
                    let mut address = 0;
                    assert_eq!((driver.cuMemAlloc_v2)(&raw mut address, 4096), 709);
                    assert_eq!((ends.cuCtxGetDevice)(&raw mut device), 709);
                    assert_eq!((driver.cuCtxSetCurrent)(first), 0);
                    assert_eq!((ends.cuCtxGetDevice)(&raw mut device), 0);
                });
                ready.1.recv().expect("told");
                assert_eq!((ends.cuCtxDestroy_v2)(second), 0);
                used.0.send(()).expect("heard");
            });
            assert_eq!((ends.cuCtxGetCurrent)(&raw mut current), 0);
            assert_eq!(current, first);
            assert_eq!((ends.cuCtxGetDevice)(&raw mut device), 0);
            gone(driver, ends, &owned, &mut registered);
            // Memory of a pool belongs to no context.
            assert_eq!((driver.cuMemsetD8Async)(pooled, 1, 4096, 0), 0);
            assert_eq!((ends.cuMemFreeAsync)(pooled, 0), 0);
            assert_eq!((driver.cuCtxSynchronize)(), 0);
            if driver.is_ours() {
                assert_eq!((ends.cuCtxDestroy_v2)(second), 201);
                assert_eq!((ends.cuCtxPushCurrent_v2)(second), 201);
            }
            if driver.counts_exactly() {
                assert_eq!(before, free(driver));
            } else {
                assert!(before.saturating_sub(free(driver)) < MUCH, "the context's memory is free again");
            }
        }
    }
    assert_eq!(add(driver, function, kept, 1024, 1, 0), 0, "of another context");
    assert_eq!(download(driver, kept, 1024), [9; 1024]);
}

fn primary_context(driver: &Driver) {
    let first = start(driver);
    let ends = &Ends::of(driver.library);
    let mut registered = vec![0u32; 4096];
    let (mut flags, mut active, mut again, mut address, mut limit) = (0, 0, 0, 0, 0);
    // SAFETY: live locals; what is retained is released once.
    unsafe {
        // Ended by the last release …
        let before = free(driver);
        assert_eq!((driver.cuDevicePrimaryCtxRetain)(&raw mut again, 0), 0);
        assert_eq!((ends.cuCtxSetLimit)(0, 8192), 0);
        let owned = make(driver, ends, &mut registered);
        assert_eq!((ends.cuDevicePrimaryCtxRelease_v2)(0), 0);
        assert_eq!((driver.cuStreamSynchronize)(owned.stream), 0, "somebody holds it still");
        assert_eq!(download(driver, owned.memory, 1), [5]);
        assert_eq!((ends.cuDevicePrimaryCtxRelease_v2)(0), 0);
        assert_eq!((ends.cuDevicePrimaryCtxGetState)(0, &raw mut flags, &raw mut active), 0);
        assert_eq!(active, 0);
        if driver.is_ours() {
            assert_eq!((ends.cuDevicePrimaryCtxRelease_v2)(0), 201);
        }
        // It is still this thread's, and there is nothing in it.
        assert_eq!((ends.cuCtxGetCurrent)(&raw mut again), 0);
        assert_eq!(again, first);
        assert_eq!((driver.cuMemAlloc_v2)(&raw mut address, 4096), 709);
        // … and there again, empty.
        start(driver);
        gone(driver, ends, &owned, &mut registered);
        assert_eq!((ends.cuCtxGetLimit)(&raw mut limit, 0), 0);
        assert!(limit < 8192, "{limit}");
        assert!(before.abs_diff(free(driver)) < MUCH / 2);
        let (_, function) = load(driver, "add");
        let memory = alloc(driver, 4096);
        upload(driver, memory, &[1; 1024]);
        assert_eq!(add(driver, function, memory, 1024, 1, 0), 0);
        assert_eq!(download(driver, memory, 1024), [2; 1024]);

        // Ended by a reset, beside what belongs to another context or to none.
        let (mut second, mut pooled) = (0, 0);
        assert_eq!((ends.cuCtxCreate_v2)(&raw mut second, 0, 0), 0);
        let others = alloc(driver, 4096);
        upload(driver, others, &[3; 1024]);
        assert_eq!((driver.cuCtxSetCurrent)(again), 0);
        let owned = make(driver, ends, &mut registered);
        assert_eq!((ends.cuMemAllocAsync)(&raw mut pooled, 4096, 0), 0);
        assert_eq!((ends.cuDevicePrimaryCtxReset_v2)(0), 0);
        assert_eq!((driver.cuCtxSetCurrent)(second), 0);
        gone(driver, ends, &owned, &mut registered);
        assert_eq!(download(driver, others, 1024), [3; 1024]);
        assert_eq!((driver.cuMemsetD8Async)(pooled, 1, 4096, 0), 0);
        assert_eq!((ends.cuMemFreeAsync)(pooled, 0), 0);
        assert_eq!((ends.cuCtxDestroy_v2)(second), 0);
    }
}

/// The limit asked for is the lease's from the first module on whose kernels allocate, until the context's end.
fn heap(driver: &Driver) {
    start(driver);
    let ends = &Ends::of(driver.library);
    let (mut limit, mut total, mut free_now, mut module) = (0, 0, 0, 0);
    let (image, none) = (CString::new(TAKE).expect("text"), std::ptr::null());
    // SAFETY: live locals; the kernel takes one pointer.
    unsafe {
        let out = alloc(driver, 8);
        assert_eq!((ends.cuCtxSetLimit)(HEAP, 32 << 20), 0);
        let (_, plain) = load(driver, "add");
        let before = free(driver);
        let (_, take) = super::load_from(driver, TAKE, "take");
        let parameters: [*const c_void; 1] = [(&raw const out).cast()];
        assert_eq!((driver.cuLaunchKernel)(take, 1, 1, 1, 1, 1, 1, 0, 0, parameters.as_ptr(), none), 0);
        assert_ne!(download(driver, out, 2), [0, 0], "memory of the heap");
        if driver.counts_exactly() {
            assert_eq!(before - free(driver), 32 << 20);
        }
        // Once, however many modules use it; its size stands now.
        super::load_from(driver, TAKE, "take");
        assert_eq!(add(driver, plain, out, 1, 1, 0), 0);
        if driver.counts_exactly() {
            assert_eq!(before - free(driver), 32 << 20);
        }
        assert_ne!((ends.cuCtxSetLimit)(HEAP, 64 << 20), 0);
        assert_eq!((ends.cuCtxGetLimit)(&raw mut limit, HEAP), 0);
        assert!(limit >= 32 << 20);

        assert_eq!((ends.cuDevicePrimaryCtxRelease_v2)(0), 0);
        start(driver);
        assert_eq!((ends.cuCtxGetLimit)(&raw mut limit, HEAP), 0);
        assert_eq!(limit, 8 << 20);
        if driver.is_ours() {
            assert_eq!((driver.cuMemGetInfo_v2)(&raw mut free_now, &raw mut total), 0);
            assert_eq!((ends.cuCtxSetLimit)(HEAP, total + (1 << 20)), 0);
            assert_eq!((driver.cuModuleLoadData)(&raw mut module, image.as_ptr().cast()), 2, "more than the lease");
            if driver.counts_exactly() {
                assert!(free_now >= before);
                assert_eq!(free(driver), free_now);
            }
            assert_eq!((ends.cuCtxSetLimit)(HEAP, 1 << 20), 0);
            assert_eq!((driver.cuModuleLoadData)(&raw mut module, image.as_ptr().cast()), 0);
            if driver.counts_exactly() {
                assert!(free_now - free(driver) >= 1 << 20);
            }
        }
    }
}
