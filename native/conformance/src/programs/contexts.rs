//! Several contexts on a device: what belongs to one is not used with another's.

use super::{Program, add, alloc, download, load, start, upload};
use crate::driver::{Driver, table};

table! {
    Contexts;
    cuCtxCreate_v2(*mut usize, u32, i32);
    cuCtxDestroy_v2(usize);
    cuStreamBeginCapture_v2(usize, u32);
    cuStreamEndCapture(usize, *mut usize);
    cuCtxRecordEvent(usize, usize);
}

pub const PROGRAMS: &[Program] =
    &[("a_launch_is_in_its_kernels_context", launches), ("an_event_is_recorded_in_its_context", records)];

/// CUDA_ERROR_INVALID_HANDLE
const INVALID_HANDLE: u32 = 400;

/// What a context has.
struct Held {
    context: usize,
    function: usize,
    memory: u64,
    stream: usize,
    event: usize,
}

impl Held {
    /// Made in the current context.
    fn new(driver: &Driver, context: usize) -> Self {
        let (_, function) = load(driver, "add");
        let memory = alloc(driver, 4096);
        upload(driver, memory, &[1; 1024]);
        let (mut stream, mut event) = (0, 0);
        // It and the default stream wait for each other, as their work is on the same memory.
        // SAFETY: live locals.
        unsafe {
            assert_eq!((driver.cuStreamCreate)(&raw mut stream, 0), 0);
            assert_eq!((driver.cuEventCreate)(&raw mut event, 0), 0);
        }
        Self { context, function, memory, stream, event }
    }

    fn make_current(&self, driver: &Driver) {
        // SAFETY: a live context.
        assert_eq!(unsafe { (driver.cuCtxSetCurrent)(self.context) }, 0);
    }
}

/// The primary context's, and a second one's, which is current.
fn two(driver: &Driver, contexts: &Contexts) -> (Held, Held) {
    let first = Held::new(driver, start(driver));
    let mut context = 0;
    // SAFETY: a live local.
    assert_eq!(unsafe { (contexts.cuCtxCreate_v2)(&raw mut context, 0, 0) }, 0);
    let second = Held::new(driver, context);
    (first, second)
}

fn launches(driver: &Driver) {
    let contexts = &Contexts::of(driver.library);
    let (first, second) = two(driver, contexts);
    let launch = |kernel: &Held, stream: usize| add(driver, kernel.function, kernel.memory, 1024, 1, stream);
    assert_eq!(launch(&first, second.stream), INVALID_HANDLE);
    assert_eq!(launch(&second, first.stream), INVALID_HANDLE);
    assert_eq!(launch(&first, 0), INVALID_HANDLE, "the default stream is the current context's");
    assert_eq!((launch(&second, second.stream), launch(&second, 0)), (0, 0));
    let mut graph = 0;
    // SAFETY: live handles and a live local; what was refused has ended the capture.
    unsafe {
        assert_eq!((contexts.cuStreamBeginCapture_v2)(second.stream, 2), 0);
        assert_eq!(launch(&first, second.stream), INVALID_HANDLE, "captured");
        assert_ne!((contexts.cuStreamEndCapture)(second.stream, &raw mut graph), 0);
        assert_eq!((driver.cuCtxSynchronize)(), 0);
    }
    assert_eq!(download(driver, second.memory, 1024), [3; 1024]);
    first.make_current(driver);
    assert_eq!((launch(&first, first.stream), launch(&first, 0)), (0, 0));
    assert_eq!(launch(&second, 0), INVALID_HANDLE);
    // SAFETY: no arguments.
    assert_eq!(unsafe { (driver.cuCtxSynchronize)() }, 0);
    assert_eq!(download(driver, first.memory, 1024), [3; 1024], "what was refused has not run");
    // SAFETY: a context of the program's own, destroyed once.
    assert_eq!(unsafe { (contexts.cuCtxDestroy_v2)(second.context) }, 0);
}

fn records(driver: &Driver) {
    let contexts = &Contexts::of(driver.library);
    let (first, second) = two(driver, contexts);
    // SAFETY: live handles.
    unsafe {
        assert_eq!((driver.cuEventRecord)(first.event, second.stream), INVALID_HANDLE);
        assert_eq!((driver.cuEventRecord)(second.event, first.stream), INVALID_HANDLE);
        assert_eq!((driver.cuEventRecord)(first.event, 0), INVALID_HANDLE, "the current context's default stream");
        assert_eq!((driver.cuEventRecord)(first.event, first.stream), 0, "whichever context is current");
        assert_eq!((driver.cuEventRecord)(second.event, 0), 0);
        // A stream may wait for any event.
        assert_eq!((driver.cuStreamWaitEvent)(second.stream, first.event, 0), 0);
        assert_eq!((driver.cuStreamSynchronize)(second.stream), 0);
        assert_eq!((driver.cuEventSynchronize)(first.event), 0);
        if driver.has("cuCtxRecordEvent") {
            assert_eq!((contexts.cuCtxRecordEvent)(first.context, first.event), 0);
            assert_eq!((contexts.cuCtxRecordEvent)(first.context, second.event), INVALID_HANDLE);
        } else {
            println!("cuCtxRecordEvent is left out");
        }
        assert_eq!((contexts.cuCtxDestroy_v2)(second.context), 0);
    }
}
