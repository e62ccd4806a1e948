//! Host functions, events that are asked often, words in stream order, and launches with attributes.

use super::{Program, add, alloc, download, load, load_from, start};
use crate::driver::{Driver, table};
use sluice_client::driver::abi::Copy2D;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub const PROGRAMS: &[Program] = &[
    ("host_functions", host_functions),
    ("host_function_blocks_nobody_else", host_function_blocks_nobody_else),
    ("modules_are_loaded_while_a_host_function_runs", modules_are_loaded_while_a_host_function_runs),
    ("waiting_stops_no_other_thread", waiting_stops_no_other_thread),
    ("copying_stops_no_other_thread", copying_stops_no_other_thread),
    ("copies_to_locked_memory_go_on", copies_to_locked_memory_go_on),
    ("large_copies_of_locked_memory_go_on", large_copies_of_locked_memory_go_on),
    ("kernels_wait_for_each_other", kernels_wait_for_each_other),
    ("event_queries", event_queries),
    ("words_in_stream_order", words_in_stream_order),
    ("launch_attributes", launch_attributes),
    ("stream_attributes", stream_attributes),
    ("occupancy", occupancy),
];

table! {
    Functions;
    cuLaunchHostFunc(usize, unsafe extern "C" fn(*mut c_void), *mut c_void);
    cuStreamAddCallback(usize, unsafe extern "C" fn(usize, u32, *mut c_void), *mut c_void, u32);
    cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, usize);
    cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, usize);
    cuMemcpy2DAsync_v2(*const Copy2D, usize);
    cuMemAllocHost_v2(*mut *mut c_void, usize);
    cuMemFreeHost(*mut c_void);
    cuStreamWaitValue32_v2(usize, u64, u32, u32);
    cuStreamWriteValue32_v2(usize, u64, u32, u32);
    cuStreamWaitValue64_v2(usize, u64, u64, u32);
    cuStreamWriteValue64_v2(usize, u64, u64, u32);
    cuStreamBatchMemOp_v2(usize, u32, *const Operation, u32);
    cuStreamQuery(usize);
    cuEventCreate(*mut usize, u32);
    cuEventRecord(usize, usize);
    cuEventSynchronize(usize);
    cuCtxSynchronize();
    cuCtxGetCurrent(*mut usize);
    cuCtxSetCurrent(usize);
    cuLaunchKernelEx(*const Config, usize, *const *const c_void, *const *const c_void);
    cuLaunchCooperativeKernel(usize, u32, u32, u32, u32, u32, u32, u32, usize, *const *const c_void);
    cuStreamSetAttribute(usize, u32, *const [u32; 16]);
    cuStreamGetAttribute(usize, u32, *mut [u32; 16]);
    cuStreamCopyAttributes(usize, usize);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut i32, usize, i32, usize);
    cuOccupancyMaxPotentialBlockSize(*mut i32, *mut i32, usize, *const c_void, usize, i32);
    cuOccupancyMaxActiveClusters(*mut i32, usize, *const Config);
    cuDeviceGetAttribute(*mut i32, i32, i32);
    cuFuncSetAttribute(usize, u32, i32);
    cuFuncSetCacheConfig(usize, u32);
}

/// CUstreamBatchMemOpParams
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Operation {
    kind: u32,
    padding: u32,
    address: u64,
    value: u64,
    flags: u32,
    padding_2: u32,
    alias: u64,
    rest: u64,
}

/// CUlaunchAttribute
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

/// CUlaunchConfig
#[repr(C)]
pub struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: usize,
    attributes: *const Attribute,
    count: u32,
}

fn prepare(driver: &Driver) -> (Functions, usize, [usize; 2]) {
    start(driver);
    let functions = Functions::of(driver.library);
    let (_, function) = load(driver, "add");
    let mut streams = [0; 2];
    for stream in &mut streams {
        // SAFETY: a live local.
        assert_eq!(unsafe { (driver.cuStreamCreate)(&raw mut *stream, 1) }, 0);
    }
    (functions, function, streams)
}

static SEEN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// What a host function finds in memory that the stream has copied before it.
struct Step {
    word: *const u32,
}

unsafe extern "C" fn look(data: *mut c_void) {
    // SAFETY: the program hands over a step and a word that live until it has waited.
    let word = unsafe { (*data.cast::<Step>()).word.read_volatile() };
    SEEN.lock().expect("list").push(word);
}

unsafe extern "C" fn look_with_status(_stream: usize, status: u32, data: *mut c_void) {
    // SAFETY: as above.
    unsafe { look(data) };
    SEEN.lock().expect("list").push(1000 + status);
}

/// They run in stream order, after the data before them have landed.
fn host_functions(driver: &Driver) {
    let (functions, function, [stream, _]) = prepare(driver);
    let address = alloc(driver, 4096);
    let mut words = [0u32; 50];
    let steps: Vec<Step> = words.iter().map(|word| Step { word }).collect();
    // SAFETY: live locals until the stream has been waited for.
    unsafe {
        assert_eq!((driver.cuMemsetD8Async)(address, 0, 4096, stream), 0);
        for (word, step) in words.iter_mut().zip(&steps) {
            assert_eq!(add(driver, function, address, 1024, 1, stream), 0);
            assert_eq!((functions.cuMemcpyDtoHAsync_v2)((&raw mut *word).cast(), address, 4, stream), 0);
            assert_eq!((functions.cuLaunchHostFunc)(stream, look, (&raw const *step).cast_mut().cast()), 0);
        }
        let last: *const Step = &raw const steps[49];
        assert_eq!((functions.cuStreamAddCallback)(stream, look_with_status, last.cast_mut().cast(), 0), 0);
        assert_eq!((functions.cuStreamAddCallback)(stream, look_with_status, last.cast_mut().cast(), 1), 1);
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
    }
    let mut expected: Vec<u32> = (1..=50).collect();
    expected.extend([50, 1000]);
    assert_eq!(*SEEN.lock().expect("list"), expected);
}

static GATE: AtomicBool = AtomicBool::new(false);
static WAITED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn wait_for_gate(_data: *mut c_void) {
    let until = Instant::now() + Duration::from_secs(20);
    while !GATE.load(Ordering::SeqCst) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    WAITED.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn take_long(_data: *mut c_void) {
    std::thread::sleep(Duration::from_millis(300));
    WAITED.fetch_add(1, Ordering::SeqCst);
}

/// A driver may let the load wait for the function; the function must be able to end meanwhile.
fn modules_are_loaded_while_a_host_function_runs(driver: &Driver) {
    let (functions, _, [stream, _]) = prepare(driver);
    let address = alloc(driver, 4096);
    // SAFETY: handles made here.
    unsafe {
        assert_eq!((driver.cuMemsetD8Async)(address, 0, 4096, stream), 0);
        assert_eq!((functions.cuLaunchHostFunc)(stream, take_long, std::ptr::null_mut()), 0);
        for round in 1..4 {
            let (_, function) = load(driver, "add");
            assert_eq!(add(driver, function, address, 1024, 1, stream), 0);
            assert_eq!((driver.cuStreamSynchronize)(stream), 0);
            assert_eq!(download(driver, address, 1), [round]);
            assert_eq!((functions.cuLaunchHostFunc)(stream, take_long, std::ptr::null_mut()), 0);
        }
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
    }
    assert_eq!(WAITED.load(Ordering::SeqCst), 4);
}

/// A function that takes long holds its stream and no other, and no thread that launches.
fn host_function_blocks_nobody_else(driver: &Driver) {
    let (functions, function, [held, free]) = prepare(driver);
    let (a, b) = (alloc(driver, 4096), alloc(driver, 4096));
    // SAFETY: handles made here.
    unsafe {
        assert_eq!((driver.cuMemsetD8Async)(a, 0, 4096, held), 0);
        assert_eq!((driver.cuMemsetD8Async)(b, 0, 4096, free), 0);
        assert_eq!((functions.cuLaunchHostFunc)(held, wait_for_gate, std::ptr::null_mut()), 0);
        assert_eq!(add(driver, function, a, 1024, 1, held), 0);
        for _ in 0..10 {
            assert_eq!(add(driver, function, b, 1024, 1, free), 0);
        }
        assert_eq!((driver.cuStreamSynchronize)(free), 0);
        assert_eq!(download(driver, b, 1), [10]);
        assert_eq!((functions.cuStreamQuery)(held), 600);
        assert_eq!(WAITED.load(Ordering::SeqCst), 0);
        GATE.store(true, Ordering::SeqCst);
        assert_eq!((driver.cuStreamSynchronize)(held), 0);
    }
    assert_eq!((WAITED.load(Ordering::SeqCst), download(driver, a, 1)), (1, vec![1]));
}

/// How a thread waits for a stream.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Stream,
    Event,
    Context,
    Copy,
}

/// However a thread waits for a stream that is held, others go on and the device works for them: the first time for more
/// launches than a client sends before it is acknowledged.
fn waiting_stops_no_other_thread(driver: &Driver) {
    launch_beside(driver, &[(Wait::Stream, 70_000), (Wait::Event, 1000), (Wait::Context, 1000)]);
}

/// The same where it waits for a copy.
fn copying_stops_no_other_thread(driver: &Driver) {
    launch_beside(driver, &[(Wait::Copy, 1000)]);
}

/// Launches so many kernels while another thread waits in each of these ways.
fn launch_beside(driver: &Driver, waits: &[(Wait, u32)]) {
    let (functions, function, [held, free]) = prepare(driver);
    let (gate, b) = (alloc(driver, 4096), alloc(driver, 4096));
    let (mut context, mut event) = (0, 0);
    // SAFETY: live locals.
    unsafe {
        assert_eq!((functions.cuCtxGetCurrent)(&raw mut context), 0);
        assert_eq!((functions.cuEventCreate)(&raw mut event, 2), 0);
    }
    for (&(way, launches), opened) in waits.iter().zip(1u32..) {
        // SAFETY: handles made here.
        unsafe {
            assert_eq!((driver.cuMemsetD8Async)(gate, 0, 4096, free), 0);
            assert_eq!((driver.cuMemsetD8Async)(b, 0, 4096, free), 0);
            assert_eq!((driver.cuStreamSynchronize)(free), 0);
            assert_eq!((functions.cuStreamWaitValue32_v2)(held, gate, opened, 1), 0);
            assert_eq!((functions.cuEventRecord)(event, held), 0);
        }
        // SAFETY: handles made here, and a live local.
        let wait = || unsafe {
            assert_eq!((functions.cuCtxSetCurrent)(context), 0);
            let mut word = opened;
            let code = match way {
                Wait::Stream => (driver.cuStreamSynchronize)(held),
                Wait::Event => (functions.cuEventSynchronize)(event),
                Wait::Context => (functions.cuCtxSynchronize)(),
                Wait::Copy => match (functions.cuMemcpyDtoHAsync_v2)((&raw mut word).cast(), gate, 4, held) {
                    0 => (driver.cuStreamSynchronize)(held),
                    code => code,
                },
            };
            (code, word)
        };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(wait);
            std::thread::sleep(Duration::from_millis(50));
            let began = Instant::now();
            for _ in 0..launches {
                assert_eq!(add(driver, function, b, 128, 1, free), 0);
            }
            // SAFETY: handles made here.
            unsafe {
                assert_eq!((driver.cuStreamSynchronize)(free), 0);
                assert!(began.elapsed() < Duration::from_secs(60), "{way:?}: launches took {:?}", began.elapsed());
                assert!(!waiting.is_finished(), "{way:?}: nothing was waited for");
                assert_eq!((functions.cuStreamWriteValue32_v2)(free, gate, opened, 0), 0);
            }
            assert_eq!(waiting.join().expect("the thread"), (0, opened), "{way:?}");
        });
        assert_eq!(download(driver, b, 1), [launches], "{way:?}");
    }
}

/// A thread that copies short pieces to page-locked memory behind what only it will let go on: the calls return at once,
/// and whatever comes behind the copies finds their data.
fn copies_to_locked_memory_go_on(driver: &Driver) {
    const PIECES: usize = 40;
    let (functions, function, [held, free]) = prepare(driver);
    let (gate, data) = (alloc(driver, 4096), alloc(driver, 4096));
    let (mut memory, mut event) = (std::ptr::null_mut(), 0);
    // SAFETY: live locals; memory that is left alone while copies are under way.
    unsafe {
        assert_eq!((functions.cuMemAllocHost_v2)(&raw mut memory, 4 * PIECES), 0);
        assert_eq!((functions.cuEventCreate)(&raw mut event, 2), 0);
        let words = memory.cast::<u32>();
        for round in 1..=5u32 {
            let base = (round - 1) * PIECES as u32;
            words.write_bytes(0xff, PIECES);
            SEEN.lock().expect("list").clear();
            if round == 1 {
                assert_eq!((driver.cuMemsetD8Async)(gate, 0, 4096, free), 0);
                assert_eq!((driver.cuMemsetD8Async)(data, 0, 4096, free), 0);
                assert_eq!((driver.cuStreamSynchronize)(free), 0);
            }
            let last = Step { word: words.add(PIECES - 1) };
            assert_eq!((functions.cuStreamWaitValue32_v2)(held, gate, round, 1), 0);
            for piece in 0..PIECES {
                assert_eq!(add(driver, function, data, 128, 1, held), 0);
                assert_eq!((functions.cuMemcpyDtoHAsync_v2)(words.add(piece).cast(), data, 4, held), 0);
            }
            assert_eq!((functions.cuLaunchHostFunc)(held, look, (&raw const last).cast_mut().cast()), 0);
            assert_eq!((functions.cuEventRecord)(event, held), 0);
            assert_eq!(words.read_volatile(), u32::MAX, "the copy has overtaken the wait before it");
            assert_eq!((functions.cuStreamWriteValue32_v2)(free, gate, round, 0), 0);
            match round {
                1 => assert_eq!((driver.cuStreamSynchronize)(held), 0),
                2 => while (driver.cuEventQuery)(event) == 600 {},
                3 => while (functions.cuStreamQuery)(held) == 600 {},
                // Another stream behind the event.
                4 => {
                    assert_eq!((driver.cuStreamWaitEvent)(free, event, 0), 0);
                    assert_eq!((driver.cuStreamSynchronize)(free), 0);
                }
                _ => assert_eq!((functions.cuCtxSynchronize)(), 0),
            }
            let found: Vec<u32> = (0..PIECES).map(|piece| words.add(piece).read_volatile()).collect();
            let wanted: Vec<u32> = (base + 1..=base + PIECES as u32).collect();
            assert_eq!(found, wanted, "round {round}");
            assert_eq!(*SEEN.lock().expect("list"), wanted[PIECES - 1..], "round {round}");
        }
        // Rows: four of the device's bytes of every sixteen to every eight of memory.
        let rows = Copy2D {
            source_kind: 2,
            source_device: data,
            source_pitch: 16,
            target_kind: 1,
            target_host: memory,
            target_pitch: 8,
            width: 4,
            height: 8,
            ..std::mem::zeroed()
        };
        words.write_bytes(0xff, PIECES);
        assert_eq!((functions.cuStreamWaitValue32_v2)(held, gate, 6, 1), 0);
        assert_eq!(add(driver, function, data, 128, 1, held), 0);
        assert_eq!((functions.cuMemcpy2DAsync_v2)(&raw const rows, held), 0);
        assert_eq!(words.read_volatile(), u32::MAX, "the copy has overtaken the wait before it");
        assert_eq!((functions.cuStreamWriteValue32_v2)(free, gate, 6, 0), 0);
        assert_eq!((driver.cuStreamSynchronize)(held), 0);
        let value = 5 * PIECES as u32 + 1;
        let found: Vec<u32> = (0..PIECES).map(|at| words.add(at).read_volatile()).collect();
        let wanted: Vec<u32> = (0..PIECES).map(|at| if at < 16 && at % 2 == 0 { value } else { u32::MAX }).collect();
        assert_eq!(found, wanted);
        // Freed with a copy under way, which is waited for.
        assert_eq!((functions.cuStreamWaitValue32_v2)(held, gate, 7, 1), 0);
        assert_eq!((functions.cuMemcpyDtoHAsync_v2)(memory, data, 4, held), 0);
        assert_eq!((functions.cuStreamWriteValue32_v2)(free, gate, 7, 0), 0);
        assert_eq!((functions.cuMemFreeHost)(memory), 0);
        assert_eq!((driver.cuStreamSynchronize)(held), 0);
    }
}

/// The same with longer copies, both ways and of several lengths, which a GPU server on the program's host may make without
/// any copy in between.
fn large_copies_of_locked_memory_go_on(driver: &Driver) {
    const LENGTHS: [usize; 4] = [5_001, 70_000, 300_000, 1_200_000];
    let (functions, function, [held, free]) = prepare(driver);
    let count = LENGTHS.iter().sum::<usize>();
    let (gate, data, mut event) = (alloc(driver, 4096), alloc(driver, 4 * count + 4), 0);
    let (mut source, mut target) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: live locals; memory that is left alone while copies are under way.
    unsafe {
        assert_eq!((functions.cuMemAllocHost_v2)(&raw mut source, 4 * count), 0);
        assert_eq!((functions.cuMemAllocHost_v2)(&raw mut target, 4 * count), 0);
        assert_eq!((functions.cuEventCreate)(&raw mut event, 2), 0);
        assert_eq!((driver.cuMemsetD8Async)(gate, 0, 4096, free), 0);
        assert_eq!((driver.cuStreamSynchronize)(free), 0);
        let (from, to) = (source.cast::<u32>(), target.cast::<u32>());
        let places = LENGTHS.iter().scan(0, |at, length| Some((std::mem::replace(at, *at + length), *length)));
        let places: Vec<(usize, usize)> = places.collect();
        for round in 1..=4u32 {
            SEEN.lock().expect("list").clear();
            (0..count).for_each(|at| from.add(at).write(round * 10_000_000 + at as u32));
            to.write_bytes(0xff, count);
            let last = Step { word: to.add(count - 1) };
            assert_eq!((functions.cuStreamWaitValue32_v2)(held, gate, round, 1), 0);
            for (at, length) in &places {
                let (there, here) = (data + 4 + 4 * *at as u64, from.add(*at).cast());
                assert_eq!((functions.cuMemcpyHtoDAsync_v2)(there, here, 4 * length, held), 0);
            }
            assert_eq!(add(driver, function, data + 4, count as u32, 3, held), 0);
            for (at, length) in &places {
                let (there, here) = (data + 4 + 4 * *at as u64, to.add(*at).cast());
                assert_eq!((functions.cuMemcpyDtoHAsync_v2)(here, there, 4 * length, held), 0);
            }
            assert_eq!((functions.cuLaunchHostFunc)(held, look, (&raw const last).cast_mut().cast()), 0);
            assert_eq!((functions.cuEventRecord)(event, held), 0);
            assert_eq!((functions.cuStreamQuery)(held), 600);
            assert_eq!(to.read_volatile(), u32::MAX, "a copy has overtaken the wait before it");
            assert_eq!((functions.cuStreamWriteValue32_v2)(free, gate, round, 0), 0);
            match round {
                1 => assert_eq!((driver.cuStreamSynchronize)(held), 0),
                2 => while (driver.cuEventQuery)(event) == 600 {},
                3 => {
                    assert_eq!((driver.cuStreamWaitEvent)(free, event, 0), 0);
                    assert_eq!((driver.cuStreamSynchronize)(free), 0);
                }
                _ => assert_eq!((functions.cuCtxSynchronize)(), 0),
            }
            let wrong = (0..count).find(|at| to.add(*at).read_volatile() != round * 10_000_000 + *at as u32 + 3);
            assert_eq!(wrong, None, "round {round}");
            assert_eq!(*SEEN.lock().expect("list"), [to.add(count - 1).read()], "round {round}");
        }
        // Copies that are waited for, at an odd address.
        assert_eq!((driver.cuMemcpyHtoD_v2)(data + 1, source.add(3), 4 * count - 3), 0);
        assert_eq!((driver.cuMemcpyDtoH_v2)(target.add(2), data + 1, 4 * count - 3), 0);
        let bytes =
            |memory: *mut c_void, at: usize| std::slice::from_raw_parts(memory.cast::<u8>().add(at), 4 * count - 3);
        assert!(bytes(target, 2) == bytes(source, 3), "bytes changed on the way");
        // Freed with copies under way, which are waited for.
        to.write_bytes(0, count);
        assert_eq!((functions.cuStreamWaitValue32_v2)(held, gate, 5, 1), 0);
        assert_eq!((functions.cuMemcpyHtoDAsync_v2)(data, source, 4 * count, held), 0);
        assert_eq!((functions.cuMemcpyDtoHAsync_v2)(target, data, 4 * count, held), 0);
        assert_eq!((functions.cuStreamWriteValue32_v2)(free, gate, 5, 0), 0);
        assert_eq!((functions.cuMemFreeHost)(source), 0);
        assert_eq!((driver.cuStreamSynchronize)(held), 0);
        assert_eq!((to.read(), to.add(count - 1).read()), (40_000_000, 40_000_000 + count as u32 - 1));
        assert_eq!((functions.cuMemFreeHost)(target), 0);
    }
}

/// Adds one to a word, and ends when so many have.
const MEET: &str = "\
.version 6.4
.target sm_75
.address_size 64

.visible .entry meet(.param .u64 word, .param .u32 all)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [word];
    ld.param.u32 %r1, [all];
    atom.global.add.u32 %r2, [%rd1], 1;
AGAIN:
    ld.volatile.global.u32 %r3, [%rd1];
    setp.lt.u32 %p1, %r3, %r1;
    @%p1 bra AGAIN;
    ret;
}
";

/// Kernels in many streams that wait for each other in memory: all of them run at the same time.
fn kernels_wait_for_each_other(driver: &Driver) {
    const STREAMS: u32 = 20;
    start(driver);
    let (_, function) = load_from(driver, MEET, "meet");
    let (word, all) = (alloc(driver, 4), STREAMS);
    let parameters: [*const c_void; 2] = [(&raw const word).cast(), (&raw const all).cast()];
    // SAFETY: live locals; two parameters, as the kernel declares.
    unsafe {
        assert_eq!((driver.cuMemsetD32_v2)(word, 0, 1), 0);
        let streams: Vec<usize> = (0..STREAMS)
            .map(|_| {
                let mut stream = 0;
                assert_eq!((driver.cuStreamCreate)(&raw mut stream, 0), 0);
                let (list, none) = (parameters.as_ptr(), std::ptr::null());
                assert_eq!((driver.cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, list, none), 0);
                stream
            })
            .collect();
        for stream in streams {
            assert_eq!((driver.cuStreamSynchronize)(stream), 0);
        }
    }
    assert_eq!(download(driver, word, 1), [STREAMS]);
}

/// Asked as often as one likes, an event is not ready until it is, and then stays so until it is recorded again.
fn event_queries(driver: &Driver) {
    let (functions, function, [held, _]) = prepare(driver);
    let address = alloc(driver, 4096);
    let mut event = 0;
    GATE.store(false, Ordering::SeqCst);
    // SAFETY: live locals, handles made here.
    unsafe {
        assert_eq!((driver.cuEventCreate)(&raw mut event, 0), 0);
        assert_eq!((driver.cuEventQuery)(event), 0, "never recorded");
        for round in 1..=3u32 {
            GATE.store(false, Ordering::SeqCst);
            assert_eq!((functions.cuLaunchHostFunc)(held, wait_for_gate, std::ptr::null_mut()), 0);
            assert_eq!((driver.cuMemsetD8Async)(address, round as u8, 4096, held), 0);
            assert_eq!((driver.cuEventRecord)(event, held), 0);
            for _ in 0..1000 {
                assert_eq!((driver.cuEventQuery)(event), 600);
            }
            GATE.store(true, Ordering::SeqCst);
            let until = Instant::now() + Duration::from_secs(50);
            while (driver.cuEventQuery)(event) == 600 {
                assert!(Instant::now() < until, "the event is never passed");
            }
            assert_eq!((driver.cuEventQuery)(event), 0);
            assert_eq!((driver.cuEventSynchronize)(event), 0);
            assert_eq!(download(driver, address, 1), [round * 0x0101_0101]);
        }
        // Recorded, waited for by its stream: known without a question.
        assert_eq!(add(driver, function, address, 1024, 1, held), 0);
        assert_eq!((driver.cuEventRecord)(event, held), 0);
        assert_eq!((driver.cuStreamSynchronize)(held), 0);
        assert_eq!((driver.cuEventQuery)(event), 0);
    }
}

fn words_in_stream_order(driver: &Driver) {
    let (functions, function, [first, second]) = prepare(driver);
    let (flags, data) = (alloc(driver, 4096), alloc(driver, 4096));
    // SAFETY: handles made here, allocations of this size.
    unsafe {
        assert_eq!((driver.cuMemsetD32_v2)(flags, 0, 1024), 0);
        assert_eq!((driver.cuMemsetD32_v2)(data, 0, 1024), 0);
        // These streams do not wait for the default stream.
        assert_eq!((driver.cuCtxSynchronize)(), 0);
        // The second stream waits for a word that the first writes behind its kernels.
        assert_eq!((functions.cuStreamWaitValue32_v2)(second, flags, 7, 0), 0);
        assert_eq!(add(driver, function, data, 1024, 100, second), 0);
        assert_eq!((functions.cuStreamWriteValue64_v2)(second, flags + 8, 1 << 40, 0), 0);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!((functions.cuStreamQuery)(second), 600);
        assert_eq!(add(driver, function, data, 1024, 1, first), 0);
        assert_eq!((functions.cuStreamWriteValue32_v2)(first, flags, 7, 0), 0);
        assert_eq!((functions.cuStreamWaitValue64_v2)(first, flags + 8, 1 << 40, 1), 0);
        assert_eq!(add(driver, function, data, 1024, 1000, first), 0);
        assert_eq!((driver.cuStreamSynchronize)(first), 0);
        assert_eq!(download(driver, data, 1024), [1101; 1024]);
        // Several at once.
        let of = |kind, address, value, flags| Operation { kind, address, value, flags, ..Operation::default() };
        let list = [of(2, flags + 16, 5, 0), of(1, flags + 16, 5, 1), of(5, flags + 24, 9, 0)];
        assert_eq!((functions.cuStreamBatchMemOp_v2)(first, 3, list.as_ptr(), 0), 0);
        assert_eq!((driver.cuStreamSynchronize)(first), 0);
        assert_eq!(download(driver, flags + 16, 4), [5, 0, 9, 0]);
        // Words are aligned device memory.
        assert_eq!((functions.cuStreamWriteValue32_v2)(first, flags + 2, 1, 0), 1);
        assert_eq!((functions.cuStreamWriteValue32_v2)(first, 64, 1, 0), 1);
    }
}

fn launch_attributes(driver: &Driver) {
    let (functions, function, [stream, _]) = prepare(driver);
    let (address, count, value) = (alloc(driver, 4096), 1024u32, 3u32);
    let (mut event, mut multiprocessors, mut fit, mut clusters) = (0, 0, 0, 0);
    let parameters: [*const c_void; 3] =
        [(&raw const address).cast(), (&raw const count).cast(), (&raw const value).cast()];
    let attribute = |id, words: &[u32]| {
        let mut value = [0; 16];
        value[..words.len()].copy_from_slice(words);
        Attribute { id, padding: 0, value }
    };
    // SAFETY: live locals, three parameters as the kernel declares.
    unsafe {
        // CU_EVENT_DISABLE_TIMING
        assert_eq!((driver.cuEventCreate)(&raw mut event, 2), 0);
        assert_eq!((driver.cuMemsetD32_v2)(address, 0, 1024), 0);
        // The stream does not wait for the default stream.
        assert_eq!((driver.cuCtxSynchronize)(), 0);
        let launch = |attributes: &[Attribute]| {
            let (list, length) = (attributes.as_ptr(), attributes.len() as u32);
            let config = Config {
                grid: [8, 1, 1],
                block: [128, 1, 1],
                shared_bytes: 0,
                stream,
                attributes: list,
                count: length,
            };
            (functions.cuLaunchKernelEx)(&raw const config, function, parameters.as_ptr(), std::ptr::null())
        };
        assert_eq!(launch(&[]), 0);
        // Ignored, cooperative, a cluster of one block, permission to overlap, a priority, a memory domain.
        let hints = [(0, 1), (2, 1), (6, 1), (8, 0), (10, 0)].map(|(id, value)| attribute(id, &[value]));
        assert_eq!(launch(&hints), 0);
        assert_eq!(launch(&[attribute(4, &[1, 1, 1])]), 0);
        // An event that the launch records.
        assert_eq!(launch(&[attribute(12, &[event as u32, (event as u64 >> 32) as u32, 0])]), 0);
        assert_eq!((driver.cuEventSynchronize)(event), 0);
        assert_eq!(download(driver, address, 1024), [12; 1024]);
        assert_eq!(launch(&[attribute(99, &[1])]), 1, "an attribute that nobody knows");
        // Clusters, where the device has them; else a refusal.
        assert_eq!((functions.cuDeviceGetAttribute)(&raw mut clusters, 120, 0), 0);
        let answer = launch(&[attribute(4, &[2, 1, 1])]);
        assert_eq!(answer == 0, clusters != 0, "{answer}");
        // As many cooperative blocks as are resident at once, and no more.
        assert_eq!((functions.cuDeviceGetAttribute)(&raw mut multiprocessors, 16, 0), 0);
        let ask = functions.cuOccupancyMaxActiveBlocksPerMultiprocessor;
        assert_eq!(ask(&raw mut fit, function, 128, 0), 0);
        let most = (fit * multiprocessors) as u32;
        let cooperative = |blocks| {
            let list = parameters.as_ptr();
            (functions.cuLaunchCooperativeKernel)(function, blocks, 1, 1, 128, 1, 1, 0, stream, list)
        };
        assert_eq!(cooperative(most), 0);
        assert_eq!(cooperative(most + 1), 720);
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
    }
}

fn stream_attributes(driver: &Driver) {
    let (functions, _, [first, second]) = prepare(driver);
    let get = |stream, id| {
        let mut value = [9; 16];
        // SAFETY: a live local of the value's size.
        assert_eq!(unsafe { (functions.cuStreamGetAttribute)(stream, id, &raw mut value) }, 0);
        value[0]
    };
    // SAFETY: a live local of the value's size; handles made here.
    unsafe {
        // CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: none of its own, then spinning.
        const NONE: u32 = u32::MAX;
        assert_eq!(get(first, 3), NONE);
        let mut value = [0; 16];
        value[0] = 2;
        assert_eq!((functions.cuStreamSetAttribute)(first, 3, &raw const value), 0);
        assert_eq!((get(first, 3), get(second, 3)), (2, NONE));
        assert_eq!((functions.cuStreamCopyAttributes)(second, first), 0);
        assert_eq!(get(second, 3), 2);
        // An attribute of launches alone.
        assert_eq!((functions.cuStreamSetAttribute)(first, 2, &raw const value), 1);
    }
}

fn occupancy(driver: &Driver) {
    let (functions, function, _) = prepare(driver);
    let (mut blocks, mut grid, mut block, mut fewer, mut per_multiprocessor) = (0, 0, 0, 0, 0);
    // SAFETY: live locals.
    unsafe {
        let ask = functions.cuOccupancyMaxActiveBlocksPerMultiprocessor;
        assert_eq!(ask(&raw mut blocks, function, 128, 0), 0);
        assert_eq!(ask(&raw mut fewer, function, 128, 32 << 10), 0);
        assert!(blocks >= 1 && fewer < blocks, "{blocks} {fewer}");
        assert_eq!((functions.cuDeviceGetAttribute)(&raw mut per_multiprocessor, 39, 0), 0);
        assert!(blocks * 128 <= per_multiprocessor);
        assert_eq!(ask(&raw mut blocks, function, 0, 0), 1);
        let best = functions.cuOccupancyMaxPotentialBlockSize;
        assert_eq!(best(&raw mut grid, &raw mut block, function, std::ptr::null(), 0, 0), 0);
        assert!(grid >= 1 && (32..=1024).contains(&block));
        // MAX_DYNAMIC_SHARED_SIZE_BYTES within the device's limit, a preference, and what is not allowed.
        assert_eq!((functions.cuFuncSetAttribute)(function, 8, 40 << 10), 0);
        assert_eq!((functions.cuFuncSetAttribute)(function, 9, 50), 0);
        assert_eq!((functions.cuFuncSetAttribute)(function, 8, 100 << 20), 1);
        assert_eq!((functions.cuFuncSetAttribute)(function, 4, 1), 1, "registers are not for the program to set");
        assert_eq!((functions.cuFuncSetCacheConfig)(function, 2), 0);
        let (mut clusters, mut count) = (0, 0);
        assert_eq!((functions.cuDeviceGetAttribute)(&raw mut clusters, 120, 0), 0);
        let attribute = Attribute { id: 4, padding: 0, value: std::array::from_fn(|at| u32::from(at < 3)) };
        let (grid, block) = ([8, 1, 1], [128, 1, 1]);
        let config = Config { grid, block, shared_bytes: 0, stream: 0, attributes: &raw const attribute, count: 1 };
        let answer = (functions.cuOccupancyMaxActiveClusters)(&raw mut count, function, &raw const config);
        assert_eq!(answer == 0, clusters != 0, "{answer}");
    }
}
