//! The programs. Each uses the driver API as a program would and panics where an answer is not CUDA's.

mod arguments;
mod asynchronous;
mod contexts;
mod copies;
mod endings;
mod graphs;
mod mappings;
mod objects;
mod optional;
mod page_locked;
mod per_thread;
mod ptx;

use crate::driver::Driver;
use std::ffi::{CString, c_void};

/// Adds a number to each of `n` words; every thread takes one.
pub const ADD: &str = "\
.version 6.4
.target sm_75
.address_size 64

.visible .entry add(.param .u64 data, .param .u32 n, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [value];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd1, %rd1;
    mul.wide.u32 %rd2, %r6, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r7, [%rd3];
    add.s32 %r7, %r7, %r2;
    st.global.u32 [%rd3], %r7;
DONE:
    ret;
}
";

/// Prints `thread N` once for each thread of the block.
const PRINT: &str = "\
.version 6.4
.target sm_75
.address_size 64

.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.const .align 1 .b8 FORMAT[11] = {116, 104, 114, 101, 97, 100, 32, 37, 100, 10, 0};

.visible .entry print()
{
    .local .align 8 .b8 depot[8];
    .reg .b32 %r<3>;
    .reg .b64 %rd<5>;
    mov.u64 %rd1, depot;
    cvta.local.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    st.local.u32 [%rd1], %r1;
    mov.u64 %rd3, FORMAT;
    cvta.const.u64 %rd4, %rd3;
    {
        .param .b64 param0;
        st.param.b64 [param0+0], %rd4;
        .param .b64 param1;
        st.param.b64 [param1+0], %rd2;
        .param .b32 retval0;
        call.uni (retval0), vprintf, (param0, param1);
        ld.param.b32 %r2, [retval0+0];
    }
    ret;
}
";

/// A program and its name.
pub type Program = (&'static str, fn(&Driver));

/// Every program.
pub fn programs() -> impl Iterator<Item = &'static Program> {
    [
        PROGRAMS,
        arguments::PROGRAMS,
        asynchronous::PROGRAMS,
        contexts::PROGRAMS,
        copies::PROGRAMS,
        endings::PROGRAMS,
        graphs::PROGRAMS,
        mappings::PROGRAMS,
        objects::PROGRAMS,
        optional::PROGRAMS,
        page_locked::PROGRAMS,
        per_thread::PROGRAMS,
        ptx::PROGRAMS,
    ]
    .into_iter()
    .flatten()
}

const PROGRAMS: &[Program] = &[
    ("memory", memory),
    ("out_of_memory_then_on", out_of_memory_then_on),
    ("launch", launch),
    ("print", print),
    ("errors_are_synchronous", errors_are_synchronous),
    ("streams_and_events", streams_and_events),
    ("threads", threads),
    ("broken_ptx", broken_ptx),
    ("fork", fork),
];

fn start(driver: &Driver) -> usize {
    let mut context = 0;
    // SAFETY: outputs are live locals.
    unsafe {
        assert_eq!((driver.cuInit)(0), 0);
        assert_eq!((driver.cuDevicePrimaryCtxRetain)(&raw mut context, 0), 0);
        assert_eq!((driver.cuCtxSetCurrent)(context), 0);
    }
    context
}

#[track_caller]
fn alloc(driver: &Driver, bytes: usize) -> u64 {
    let mut address = 0;
    // SAFETY: a live local.
    assert_eq!(unsafe { (driver.cuMemAlloc_v2)(&raw mut address, bytes) }, 0);
    address
}

#[track_caller]
fn upload(driver: &Driver, address: u64, words: &[u32]) {
    // SAFETY: the slice is live and as long as said.
    assert_eq!(unsafe { (driver.cuMemcpyHtoD_v2)(address, words.as_ptr().cast(), size_of_val(words)) }, 0);
}

#[track_caller]
fn download(driver: &Driver, address: u64, count: usize) -> Vec<u32> {
    let mut words = vec![0u32; count];
    // SAFETY: the vector has room.
    assert_eq!(unsafe { (driver.cuMemcpyDtoH_v2)(words.as_mut_ptr().cast(), address, count * 4) }, 0);
    words
}

#[track_caller]
fn load(driver: &Driver, name: &str) -> (usize, usize) {
    load_from(driver, ADD, name)
}

#[track_caller]
fn load_from(driver: &Driver, ptx: &str, name: &str) -> (usize, usize) {
    let (image, name) = (CString::new(ptx).expect("text"), CString::new(name).expect("text"));
    let (mut module, mut function) = (0, 0);
    // SAFETY: live strings and locals.
    unsafe {
        assert_eq!((driver.cuModuleLoadData)(&raw mut module, image.as_ptr().cast()), 0);
        assert_eq!((driver.cuModuleGetFunction)(&raw mut function, module, name.as_ptr()), 0);
    }
    (module, function)
}

#[track_caller]
fn add(driver: &Driver, function: usize, address: u64, count: u32, value: u32, stream: usize) -> u32 {
    let parameters: [*const c_void; 3] =
        [(&raw const address).cast(), (&raw const count).cast(), (&raw const value).cast()];
    let blocks = count.div_ceil(128);
    // SAFETY: three parameters, as the kernel declares.
    unsafe {
        let list = parameters.as_ptr();
        (driver.cuLaunchKernel)(function, blocks, 1, 1, 128, 1, 1, 0, stream, list, std::ptr::null())
    }
}

fn memory(driver: &Driver) {
    start(driver);
    let words: Vec<u32> = (0..3_000_000).map(|index| index * 7).collect();
    let (a, b) = (alloc(driver, words.len() * 4), alloc(driver, words.len() * 4));
    assert_ne!(a, b);
    upload(driver, a, &words);
    // SAFETY: both are allocations of this size.
    assert_eq!(unsafe { (driver.cuMemcpyDtoD_v2)(b, a, words.len() * 4) }, 0);
    assert!(download(driver, b, words.len()) == words, "a copy changed");
    // SAFETY: inside the allocation.
    assert_eq!(unsafe { (driver.cuMemsetD32_v2)(b + 400, 0xdead_beef, 100) }, 0);
    let mut expected = words;
    expected[100..200].fill(0xdead_beef);
    assert!(download(driver, b, expected.len()) == expected, "a fill went elsewhere");
    // SAFETY: what was allocated is freed once; freeing again and freeing the middle are errors.
    unsafe {
        assert_eq!((driver.cuMemFree_v2)(a), 0);
        assert_eq!((driver.cuMemFree_v2)(a), 1);
        assert_eq!((driver.cuMemFree_v2)(b + 512), 1);
        assert_eq!((driver.cuMemFree_v2)(b), 0);
        assert_eq!((driver.cuMemFree_v2)(0), 0);
    }
}

fn out_of_memory_then_on(driver: &Driver) {
    start(driver);
    let (mut free, mut total, mut address) = (0, 0, 0);
    // SAFETY: live locals.
    unsafe {
        assert_eq!((driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total), 0);
        assert!(free <= total);
        assert_eq!((driver.cuMemAlloc_v2)(&raw mut address, total + 1), 2);
    }
    let most = alloc(driver, free / 8 * 7);
    // SAFETY: live local.
    assert_eq!(unsafe { (driver.cuMemAlloc_v2)(&raw mut address, free / 4) }, 2);
    // SAFETY: allocated above.
    assert_eq!(unsafe { (driver.cuMemFree_v2)(most) }, 0);
    let small = alloc(driver, 4096);
    upload(driver, small, &[42]);
    assert_eq!(download(driver, small, 1), [42]);
}

fn launch(driver: &Driver) {
    start(driver);
    let (module, function) = load(driver, "add");
    let words: Vec<u32> = (0..10_000).collect();
    let address = alloc(driver, words.len() * 4);
    upload(driver, address, &words);
    for round in 0..50 {
        assert_eq!(add(driver, function, address, 10_000, round, 0), 0);
    }
    let expected: Vec<u32> = words.iter().map(|word| word + 1225).collect();
    assert!(download(driver, address, words.len()) == expected, "50 launches gave another sum");
    let mut threads = 0;
    // SAFETY: live local; the module is unloaded once.
    unsafe {
        assert_eq!((driver.cuFuncGetAttribute)(&raw mut threads, 0, function), 0);
        assert!(threads >= 128);
        assert_eq!((driver.cuModuleUnload)(module), 0);
    }
}

/// What a kernel prints stands on the standard output after the call that waits for it.
fn print(driver: &Driver) {
    start(driver);
    let (mut module, mut function) = (0, 0);
    let (image, name) = (CString::new(PRINT).expect("text"), CString::new("print").expect("text"));
    let none: *const *const c_void = std::ptr::null();
    // SAFETY: every pointer is live; the kernel takes no parameters.
    unsafe {
        assert_eq!((driver.cuModuleLoadData)(&raw mut module, image.as_ptr().cast()), 0);
        assert_eq!((driver.cuModuleGetFunction)(&raw mut function, module, name.as_ptr()), 0);
        assert_eq!((driver.cuLaunchKernel)(function, 1, 1, 1, 3, 1, 1, 0, 0, none, none), 0);
        assert_eq!((driver.cuCtxSynchronize)(), 0);
    }
    println!("after");
}

fn errors_are_synchronous(driver: &Driver) {
    start(driver);
    let (_, function) = load(driver, "add");
    let address = alloc(driver, 1024);
    let mut other = 0;
    let missing = CString::new("missing").expect("text");
    let (mut module, image) = (0, CString::new(ADD).expect("text"));
    let (mut bounded, kernel) = (0, CString::new("add").expect("text"));
    let bounds =
        CString::new(ADD.replace(".param .u32 value)", ".param .u32 value)\n.maxntid 128, 1, 1")).expect("text");
    let word = 7u32;
    // SAFETY: every pointer is live; sizes and handles are wrong on purpose and must be refused.
    unsafe {
        assert_eq!((driver.cuMemcpyHtoD_v2)(address, [0u8; 2048].as_ptr().cast(), 2048), 1);
        assert_eq!((driver.cuMemcpyHtoD_v2)(8, (&raw const word).cast(), 4), 1);
        assert_eq!((driver.cuModuleLoadData)(&raw mut module, image.as_ptr().cast()), 0);
        assert_eq!((driver.cuModuleGetFunction)(&raw mut other, module, missing.as_ptr()), 500);
        let none: *const *const c_void = std::ptr::null();
        assert_eq!((driver.cuLaunchKernel)(function, 1, 1, 1, 4096, 1, 1, 0, 0, none, none), 1);
        assert_eq!((driver.cuLaunchKernel)(function, 0, 1, 1, 32, 1, 1, 0, 0, none, none), 1);
        // More threads than the kernel itself was compiled for.
        assert_eq!((driver.cuModuleLoadData)(&raw mut module, bounds.as_ptr().cast()), 0);
        assert_eq!((driver.cuModuleGetFunction)(&raw mut bounded, module, kernel.as_ptr()), 0);
        assert_eq!((driver.cuLaunchKernel)(bounded, 1, 1, 1, 256, 1, 1, 0, 0, none, none), 1);
        assert_eq!((driver.cuMemAlloc_v2)((&raw mut other).cast(), 0), 1);
    }
    // None of it hurts what follows.
    upload(driver, address, &[1; 256]);
    assert_eq!(add(driver, function, address, 256, 1, 0), 0);
    assert_eq!(download(driver, address, 256), [2; 256]);
}

fn streams_and_events(driver: &Driver) {
    start(driver);
    let (_, function) = load(driver, "add");
    let address = alloc(driver, 1 << 20);
    let (mut first, mut second) = (0, 0);
    let (mut begin, mut between, mut end) = (0, 0, 0);
    // SAFETY: live locals, handles made here.
    unsafe {
        assert_eq!((driver.cuStreamCreate)(&raw mut first, 1), 0);
        assert_eq!((driver.cuStreamCreate)(&raw mut second, 1), 0);
        for event in [&raw mut begin, &raw mut between, &raw mut end] {
            assert_eq!((driver.cuEventCreate)(event, 0), 0);
        }
        assert_eq!((driver.cuMemsetD8Async)(address, 0, 1 << 20, first), 0);
        assert_eq!((driver.cuEventRecord)(begin, first), 0);
        for _ in 0..20 {
            assert_eq!(add(driver, function, address, 1 << 18, 1, first), 0);
        }
        assert_eq!((driver.cuEventRecord)(between, first), 0);
        assert_eq!((driver.cuStreamWaitEvent)(second, between, 0), 0);
        assert_eq!(add(driver, function, address, 1 << 18, 100, second), 0);
        assert_eq!((driver.cuEventRecord)(end, second), 0);
        assert_eq!((driver.cuEventSynchronize)(end), 0);
        assert_eq!((driver.cuEventQuery)(between), 0);
        let mut milliseconds = -1.0;
        assert_eq!((driver.cuEventElapsedTime)(&raw mut milliseconds, begin, begin), 0);
        assert_eq!(milliseconds, 0.0);
        assert_eq!((driver.cuEventElapsedTime)(&raw mut milliseconds, begin, end), 0);
        assert!(milliseconds >= 0.0);
        assert_eq!((driver.cuStreamSynchronize)(second), 0);
    }
    assert_eq!(download(driver, address, 1 << 18), vec![120; 1 << 18]);
    // SAFETY: made here, destroyed once; a second time is an error.
    unsafe {
        assert_eq!((driver.cuStreamDestroy_v2)(first), 0);
        assert_eq!((driver.cuEventDestroy_v2)(begin), 0);
        if driver.is_ours() {
            assert_eq!((driver.cuStreamSynchronize)(first), 400);
        }
    }
}

fn threads(driver: &Driver) {
    let context = start(driver);
    let (_, function) = load(driver, "add");
    std::thread::scope(|scope| {
        for number in 0..4u32 {
            scope.spawn(move || {
                // SAFETY: a context of this process.
                assert_eq!(unsafe { (driver.cuCtxSetCurrent)(context) }, 0);
                let address = alloc(driver, 4000);
                for round in 0..20 {
                    upload(driver, address, &[number; 1000]);
                    assert_eq!(add(driver, function, address, 1000, round, 0), 0);
                    assert_eq!(download(driver, address, 1000), [number + round; 1000]);
                }
            });
        }
    });
}

/// A driver refuses the module; the software GPU refuses to run the kernel. Both name the instruction.
fn broken_ptx(driver: &Driver) {
    start(driver);
    let image = CString::new(ADD.replace("mad.lo.s32", "nonsense.lo.s32")).expect("text");
    let name = CString::new("add").expect("text");
    let (mut module, mut function) = (0, 0);
    let mut text = std::ptr::null();
    // SAFETY: live locals; the error's text lives for good.
    let words = unsafe {
        let mut code = (driver.cuModuleLoadData)(&raw mut module, image.as_ptr().cast());
        if code == 0 {
            assert_eq!((driver.cuModuleGetFunction)(&raw mut function, module, name.as_ptr()), 0);
            let address = alloc(driver, 512);
            code = match add(driver, function, address, 128, 1, 0) {
                0 => (driver.cuCtxSynchronize)(),
                refused => refused,
            };
        }
        assert!(matches!(code, 209 | 218), "{code}");
        assert_eq!((driver.cuGetErrorString)(code, &raw mut text), 0);
        std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned()
    };
    assert!(words.contains("nonsense") || words.contains("PTX JIT compilation failed"), "{words}");
    let (_, function) = load(driver, "add");
    let address = alloc(driver, 512);
    upload(driver, address, &[1; 128]);
    assert_eq!(add(driver, function, address, 128, 1, 0), 0);
    assert_eq!(download(driver, address, 128), [2; 128]);
}

/// As with CUDA: a child of a process that has used the driver cannot use it; its parent goes on.
fn fork(driver: &Driver) {
    start(driver);
    let address = alloc(driver, 4096);
    upload(driver, address, &[5; 1024]);
    // SAFETY: the child calls only the driver and _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the child at once, without the parent's exit handlers.
        unsafe { libc::_exit(((driver.cuInit)(0) != 3) as i32) };
    }
    let mut status = -1;
    // SAFETY: the child made above.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child could use the parent's CUDA");
    assert_eq!(download(driver, address, 1024), [5; 1024]);
}
