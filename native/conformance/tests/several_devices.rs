//! A lease of two GPUs in one process: memory and kernels on both, copies and waits between them, what does not fit the
//! current device, parking, and the loss of one.

use serde_json::json;
use sluice_client::driver::abi::{Access, AllocationProperties, Location};
use sluice_client::generated::*;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, ask, first_word};
use sluice_conformance::control::Control;
use sluice_conformance::gpud::Gpud;
use sluice_conformance::programs::ADD;
use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// CUDA's words for errors.
const INVALID_DEVICE: u32 = 101;
const INVALID_CONTEXT: u32 = 201;
const INVALID_HANDLE: u32 = 400;
const PEER_ACCESS_ALREADY_ENABLED: u32 = 704;
const PEER_ACCESS_NOT_ENABLED: u32 = 705;

/// A device as the program holds it: its primary context, a module's function, and a stream.
#[derive(Clone, Copy)]
struct Held {
    context: usize,
    function: usize,
    stream: usize,
}

impl Held {
    fn of(ordinal: i32) -> Self {
        let (mut context, mut module, mut function, mut stream) = (0, 0, 0, 0);
        let (image, name) = (CString::new(ADD).expect("text"), CString::new("add").expect("text"));
        // SAFETY: live strings and locals.
        unsafe {
            assert_eq!(sluice_cuDevicePrimaryCtxRetain(&raw mut context, ordinal), 0);
            assert_eq!(sluice_cuCtxSetCurrent(context), 0);
            assert_eq!(sluice_cuModuleLoadData(&raw mut module, image.as_ptr().cast()), 0);
            assert_eq!(sluice_cuModuleGetFunction(&raw mut function, module, name.as_ptr()), 0);
            assert_eq!(sluice_cuStreamCreate(&raw mut stream, 1), 0);
        }
        Self { context, function, stream }
    }

    fn make_current(self) {
        // SAFETY: a context of this process.
        assert_eq!(unsafe { sluice_cuCtxSetCurrent(self.context) }, 0);
    }

    fn alloc(self, bytes: usize) -> u64 {
        self.make_current();
        let mut address = 0;
        // SAFETY: a live local.
        assert_eq!(unsafe { sluice_cuMemAlloc_v2(&raw mut address, bytes) }, 0);
        address
    }

    /// Adds to `count` words in this device's stream.
    fn add(self, address: u64, count: u32, value: u32) -> u32 {
        self.make_current();
        launch(self.function, self.stream, address, count, value)
    }
}

fn launch(function: usize, stream: usize, address: u64, count: u32, value: u32) -> u32 {
    let parameters: [*const c_void; 3] =
        [(&raw const address).cast(), (&raw const count).cast(), (&raw const value).cast()];
    let grid = count.div_ceil(128);
    // SAFETY: three parameters, as the kernel declares.
    unsafe { sluice_cuLaunchKernel(function, grid, 1, 1, 128, 1, 1, 0, stream, parameters.as_ptr(), std::ptr::null()) }
}

fn attach_two() {
    let wish = json!({
        "op": "attach", "requestId": "00000000-0000-4000-8000-000000000000", "amount": "2", "waitSeconds": 0,
    });
    let answer = ask(&wish);
    assert_eq!(answer["state"], "granted", "{answer}");
}

fn fill(address: u64, word: u32, count: usize) {
    // SAFETY: the caller's allocation; another is refused.
    assert_eq!(unsafe { sluice_cuMemsetD32_v2(address, word, count) }, 0);
}

fn download(address: u64, count: usize) -> Vec<u32> {
    let mut words = vec![0u32; count];
    // SAFETY: the vector has room.
    assert_eq!(unsafe { sluice_cuMemcpyDtoH_v2(words.as_mut_ptr().cast(), address, count * 4) }, 0);
    words
}

fn event(of: Held) -> usize {
    of.make_current();
    let mut event = 0;
    // SAFETY: a live local.
    assert_eq!(unsafe { sluice_cuEventCreate(&raw mut event, 2) }, 0);
    event
}

#[test]
fn a_lease_of_two_gpus_is_two_devices_of_one_process() {
    let control = Arc::new(Control::start().expect("control"));
    let gpud = Gpud::start_with("soft", &["--soft-devices", "2"], Some(&control.url)).expect("gpud");
    let gpud = Arc::new(gpud);
    let broker = Broker::start_with(Arc::clone(&gpud), 256 << 20, Some(control)).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe {
        broker.set_environment();
        std::env::remove_var("CUDA_VISIBLE_DEVICES");
    }
    let count = || {
        let mut count = 0;
        // SAFETY: a live local.
        assert_eq!(unsafe { sluice_cuDeviceGetCount(&raw mut count) }, 0);
        count
    };
    // SAFETY: no pointers.
    assert_eq!(unsafe { sluice_cuInit(0) }, 0);
    assert_eq!(count(), 1, "before anything is attached");
    attach_two();
    assert_eq!(count(), 2);

    devices_differ();
    let (first, second) = (Held::of(0), Held::of(1));
    let (a, b) = memory_of_both(first, second);
    kernels_on_both_from_two_threads(first, second, a, b);
    // They are linked under another lease than the one with which their sessions began.
    parked_memory_of_both_comes_back(first, second, a, b);
    copies_between_them(first, second);
    events_order_their_streams(first, second, a, b);
    each_reaches_the_memory_of_the_other(first, second);
    copies_between_them_are_work_of_a_stream(first, second);
    a_copy_as_pytorch_makes_it_waits_for_nothing(first, second);
    memory_that_the_program_maps_is_copied_through_it(first, second);
    what_is_of_the_other_is_refused(first, second, a, b);
    a_blocked_device_does_not_stop_the_other(first, second, b);
    parked_memory_of_both_comes_back(first, second, a, b);
    assert_eq!(read_from(second, a), 42, "and so does access to it");
    let serving = || gpud.workers().into_iter().filter(|pid| gpud.serves(*pid)).collect::<Vec<u32>>();
    the_loss_of_one_is_its_own(first, second, a, b, &serving);

    for device in process::get().devices() {
        if let Some(session) = device.any_session() {
            session.close();
        }
    }
}

fn devices_differ() {
    let (mut ids, mut device) = ([[0u8; 16]; 2], 0);
    // SAFETY: live locals.
    unsafe {
        assert_eq!(sluice_cuDeviceGet(&raw mut device, 2), INVALID_DEVICE);
        for ordinal in 0..2 {
            assert_eq!(sluice_cuDeviceGet(&raw mut device, ordinal), 0);
            assert_eq!(sluice_cuDeviceGetUuid(ids[ordinal as usize].as_mut_ptr().cast(), device), 0);
        }
        let can = |from: i32, to: i32| {
            let (mut possible, mut supported) = (7, 7);
            assert_eq!(sluice_cuDeviceCanAccessPeer(&raw mut possible, from, to), 0);
            if from != to {
                assert_eq!(sluice_cuDeviceGetP2PAttribute(&raw mut supported, 2, from, to), 0);
                assert_eq!(supported, possible);
            }
            possible
        };
        assert_eq!((can(0, 1), can(1, 0), can(0, 0)), (1, 1, 0), "both are on one server");
    }
    assert_ne!(ids[0], ids[1]);
}

fn memory_of_both(first: Held, second: Held) -> (u64, u64) {
    let (a, b) = (first.alloc(4096), second.alloc(4096));
    assert!(a.abs_diff(b) >= 1 << 32, "ranges of their own: {a:x}, {b:x}");
    // SAFETY: live locals of the types that CUDA names; what is asked for needs no current device.
    unsafe {
        for (address, ordinal) in [(a, 0), (b, 1)] {
            let mut found = -1i32;
            assert_eq!(sluice_cuPointerGetAttribute((&raw mut found).cast(), 9, address), 0);
            assert_eq!(found, ordinal);
        }
        let (mut free, mut total) = (0, 0);
        assert_eq!(sluice_cuMemGetInfo_v2(&raw mut free, &raw mut total), 0);
        assert_eq!(total, 256 << 20, "each device has its own share");
    }
    (a, b)
}

fn kernels_on_both_from_two_threads(first: Held, second: Held, a: u64, b: u64) {
    let work = |held: Held, address: u64, value: u32| {
        move || {
            held.make_current();
            fill(address, 0, 1024);
            for _ in 0..200 {
                assert_eq!(held.add(address, 1024, value), 0);
            }
            // SAFETY: this thread's own stream.
            assert_eq!(unsafe { sluice_cuStreamSynchronize(held.stream) }, 0);
            assert!(download(address, 1024).iter().all(|word| *word == 200 * value));
        }
    };
    let other = std::thread::spawn(work(second, b, 3));
    work(first, a, 1)();
    other.join().expect("the other thread");
}

fn copies_between_them(first: Held, second: Held) {
    // More than travels at a time, and an odd size.
    let words = (20 << 20) / 4 + 3;
    let (a, b) = (first.alloc(words * 4), second.alloc(words * 4));
    let data: Vec<u32> = (0..words as u32).map(|word| word.wrapping_mul(2_654_435_761)).collect();
    // SAFETY: live memory of this length on both sides; contexts of this process.
    unsafe {
        assert_eq!(sluice_cuMemcpyHtoD_v2(a, data.as_ptr().cast(), words * 4), 0, "to the device that is not current");
        assert_eq!(sluice_cuMemcpyPeer(b, second.context, a, first.context, words * 4), 0);
        assert!(download(b, words) == data);
        assert_eq!(launch(second.function, 0, b, words as u32, 1), 0);
        // Back by unified addressing, in a stream of the source's device.
        assert_eq!(sluice_cuMemcpyDtoDAsync_v2(a, b, words * 4, 0), 0);
        first.make_current();
        let back = download(a, words);
        assert!(back.iter().zip(&data).all(|(found, sent)| *found == sent.wrapping_add(1)));
        assert_eq!(sluice_cuMemFree_v2(a), 0);
        assert_eq!(sluice_cuMemFree_v2(b), 0, "whatever device is current");
    }
}

/// Each device's stream waits for the other's event in turn; the events are recorded anew before the waits are over.
fn events_order_their_streams(first: Held, second: Held, a: u64, b: u64) {
    let (left, right) = (event(first), event(second));
    first.make_current();
    fill(a, 0, 1024);
    second.make_current();
    fill(b, 0, 1024);
    // SAFETY: streams, events and memory of this process.
    unsafe {
        assert_eq!(sluice_cuStreamSynchronize(0), 0);
        for round in 0..20u32 {
            assert_eq!(first.add(a, 1024, 1), 0);
            assert_eq!(sluice_cuEventRecord(left, first.stream), 0);
            assert_eq!(sluice_cuStreamWaitEvent(second.stream, left, 0), 0);
            assert_eq!(second.add(b, 1024, 1), 0);
            if round % 5 == 4 {
                assert_eq!(sluice_cuMemcpyPeerAsync(b, second.context, a, first.context, 4096, second.stream), 0);
            }
            assert_eq!(sluice_cuEventRecord(right, second.stream), 0);
            assert_eq!(sluice_cuStreamWaitEvent(first.stream, right, 0), 0);
        }
        assert_eq!(sluice_cuEventSynchronize(right), 0);
        assert_eq!(sluice_cuEventQuery(left), 0);
        first.make_current();
        assert_eq!((first_word(a), first_word(b)), ((0, 20), (0, 20)));
        assert_eq!((sluice_cuEventDestroy_v2(left), sluice_cuEventDestroy_v2(right)), (0, 0));
    }
}

/// The first word of another device's memory, as a stream of this one copies it to its own.
fn read_from(held: Held, other: u64) -> u32 {
    let own = held.alloc(4096);
    fill(own, 0, 1024);
    // SAFETY: live memory of both.
    unsafe {
        assert_eq!(sluice_cuMemcpyDtoDAsync_v2(own, other, 4, held.stream), 0);
        assert_eq!(sluice_cuStreamSynchronize(held.stream), 0);
        let (code, word) = first_word(own);
        assert_eq!((code, sluice_cuMemFree_v2(own)), (0, 0));
        word
    }
}

fn each_reaches_the_memory_of_the_other(first: Held, second: Held) {
    let early = second.alloc(4096);
    fill(early, 5, 1024);
    // SAFETY: contexts, streams and memory of this process.
    unsafe {
        assert_eq!(sluice_cuStreamSynchronize(0), 0);
        first.make_current();
        assert_eq!(sluice_cuCtxDisablePeerAccess(second.context), PEER_ACCESS_NOT_ENABLED);
        assert_eq!(sluice_cuCtxEnablePeerAccess(second.context, 0), 0);
        assert_eq!(sluice_cuCtxEnablePeerAccess(second.context, 0), PEER_ACCESS_ALREADY_ENABLED);
        assert_eq!(sluice_cuCtxEnablePeerAccess(first.context, 0), INVALID_CONTEXT, "a context's own");
        second.make_current();
        assert_eq!(sluice_cuCtxEnablePeerAccess(first.context, 0), 0);
        // A kernel of the first device works on memory of the second.
        assert_eq!(first.add(early, 1024, 2), 0);
        assert_eq!(sluice_cuStreamSynchronize(first.stream), 0);
        assert!(download(early, 1024).iter().all(|word| *word == 7));
        // What is allocated later is there when the call returns, and what one frees another may get.
        let mut same = 0;
        for round in 0..200u32 {
            let late = second.alloc(1 << 20);
            assert_eq!(sluice_cuMemsetD32Async(late, round, 1 << 18, second.stream), 0);
            assert_eq!(sluice_cuStreamSynchronize(second.stream), 0);
            assert_eq!(first.add(late, 1 << 18, 1), 0);
            second.make_current();
            assert_eq!(sluice_cuMemFree_v2(late), 0, "waits for the other device's work");
            same += u32::from(late == early + 4096);
        }
        assert!(same > 100, "addresses are used again");
        assert_eq!(sluice_cuStreamSynchronize(first.stream), 0, "no kernel has met memory that was gone");
        // In both directions at once.
        let (mine, yours) = (first.alloc(4096), second.alloc(4096));
        fill(mine, 0, 1024);
        fill(yours, 0, 1024);
        assert_eq!(sluice_cuStreamSynchronize(0), 0);
        first.make_current();
        assert_eq!(sluice_cuStreamSynchronize(0), 0);
        let other = std::thread::spawn(move || (0..100).for_each(|_| assert_eq!(second.add(mine, 1024, 1), 0)));
        (0..100).for_each(|_| assert_eq!(first.add(yours, 1024, 1), 0));
        other.join().expect("the other thread");
        for held in [first, second] {
            held.make_current();
            assert_eq!(sluice_cuStreamSynchronize(held.stream), 0);
        }
        assert!(download(mine, 1024).iter().chain(&download(yours, 1024)).all(|word| *word == 100));
        assert_eq!((sluice_cuMemFree_v2(mine), sluice_cuMemFree_v2(yours), sluice_cuMemFree_v2(early)), (0, 0, 0));
        first.make_current();
        assert_eq!(sluice_cuCtxDisablePeerAccess(second.context), 0);
        assert_eq!(sluice_cuCtxDisablePeerAccess(second.context), PEER_ACCESS_NOT_ENABLED);
    }
}

/// Nobody waits for them: the stream's earlier work has not run when they are issued.
fn copies_between_them_are_work_of_a_stream(first: Held, second: Held) {
    let words = 1 << 18;
    let (from, to) = (second.alloc(words * 4), first.alloc(words * 4));
    fill(to, 0, words);
    second.make_current();
    fill(from, 3, words);
    let gate = second.alloc(4096);
    fill(gate, 0, 1);
    // SAFETY: this process's own streams, contexts and memory.
    unsafe {
        assert_eq!(sluice_cuStreamSynchronize(0), 0);
        assert_eq!(sluice_cuStreamWaitValue32_v2(second.stream, gate, 1, 1), 0);
        assert_eq!(second.add(from, words as u32, 1), 0);
        let began = Instant::now();
        for _ in 0..20 {
            let bytes = words * 4;
            assert_eq!(sluice_cuMemcpyPeerAsync(to, first.context, from, second.context, bytes, second.stream), 0);
        }
        assert!(began.elapsed() < Duration::from_secs(5), "issued, and not waited for");
        assert_eq!(first_word(to), (0, 0));
        second.make_current();
        assert_eq!(sluice_cuStreamWriteValue32_v2(0, gate, 1, 0), 0);
        assert_eq!(sluice_cuStreamSynchronize(second.stream), 0);
        assert!(download(to, words).iter().all(|word| *word == 4));
        // As a node of a graph.
        let (mut graph, mut exec) = (0, 0);
        assert_eq!(sluice_cuStreamBeginCapture_v2(second.stream, 2), 0);
        assert_eq!(second.add(from, words as u32, 1), 0);
        assert_eq!(sluice_cuMemcpyDtoDAsync_v2(to, from, words * 4, second.stream), 0);
        assert_eq!(sluice_cuStreamEndCapture(second.stream, &raw mut graph), 0);
        assert_eq!(sluice_cuGraphInstantiateWithFlags(&raw mut exec, graph, 0), 0);
        (0..2).for_each(|_| assert_eq!(sluice_cuGraphLaunch(exec, second.stream), 0));
        assert_eq!(sluice_cuStreamSynchronize(second.stream), 0);
        assert!(download(to, words).iter().all(|word| *word == 6));
        assert_eq!((sluice_cuGraphExecDestroy(exec), sluice_cuGraphDestroy(graph)), (0, 0));
        for address in [from, to, gate] {
            assert_eq!(sluice_cuMemFree_v2(address), 0);
        }
    }
}

/// In the default streams of both devices, with an event to either side of it.
fn a_copy_as_pytorch_makes_it_waits_for_nothing(first: Held, second: Held) {
    let (from, to, words) = (first.alloc(1 << 20), second.alloc(1 << 20), 1 << 18);
    let (before, after) = (event(second), event(first));
    let rounds = |count: u32| {
        for _ in 0..count {
            first.make_current();
            assert_eq!(launch(first.function, 0, from, words as u32, 1), 0);
            // SAFETY: events, streams and memory of this process.
            unsafe {
                second.make_current();
                assert_eq!(sluice_cuEventRecord(before, 0), 0);
                first.make_current();
                assert_eq!(sluice_cuStreamWaitEvent(0, before, 0), 0);
                assert_eq!(sluice_cuMemcpyAsync(to, from, words * 4, 0), 0);
                assert_eq!(sluice_cuEventRecord(after, 0), 0);
                second.make_current();
                assert_eq!(sluice_cuStreamWaitEvent(0, after, 0), 0);
            }
            assert_eq!(launch(second.function, 0, to, words as u32, 1), 0);
        }
    };
    first.make_current();
    fill(from, 0, words);
    rounds(2);
    ask(&json!({ "op": "trace", "on": true }));
    rounds(20);
    let traced = ask(&json!({ "op": "trace", "on": false }));
    assert_eq!(traced["blocking"], 0, "{traced}");
    assert!(download(to, words).iter().all(|word| *word == 23), "22 additions there, and one here");
    // SAFETY: made here.
    unsafe {
        assert_eq!((sluice_cuEventDestroy_v2(before), sluice_cuEventDestroy_v2(after)), (0, 0));
        assert_eq!((sluice_cuMemFree_v2(from), sluice_cuMemFree_v2(to)), (0, 0));
    }
}

/// It is its own device's: other workers do not have it, and no copy may look for it there.
fn memory_that_the_program_maps_is_copied_through_it(first: Held, second: Held) {
    let bytes = 2 << 20;
    second.make_current();
    let location = Location { kind: 1, id: 1 };
    let properties =
        AllocationProperties { kind: 1, handle_types: 0, location, windows: std::ptr::null_mut(), flags: [0; 8] };
    let access = Access { location, flags: 3 };
    let (mut mapped, mut handle) = (0, 0);
    // SAFETY: live locals, in the layouts of cuda.h; contexts, streams and memory of this process.
    unsafe {
        assert_eq!(sluice_cuMemAddressReserve(&raw mut mapped, bytes, 0, 0, 0), 0);
        assert_eq!(sluice_cuMemCreate(&raw mut handle, bytes, &raw const properties, 0), 0);
        assert_eq!(sluice_cuMemMap(mapped, bytes, 0, handle, 0), 0);
        assert_eq!(sluice_cuMemSetAccess(mapped, bytes, &raw const access, 1), 0);
        fill(mapped, 11, bytes / 4);
        assert_eq!(sluice_cuStreamSynchronize(0), 0);
        let own = first.alloc(bytes);
        assert_eq!(sluice_cuMemcpyPeerAsync(own, first.context, mapped, second.context, bytes, first.stream), 0);
        assert_eq!(sluice_cuStreamSynchronize(first.stream), 0);
        assert!(download(own, bytes / 4).iter().all(|word| *word == 11));
        fill(own, 12, bytes / 4);
        assert_eq!(sluice_cuMemcpyPeer(mapped, second.context, own, first.context, bytes), 0);
        assert!(download(mapped, bytes / 4).iter().all(|word| *word == 12));
        assert_eq!(sluice_cuMemFree_v2(own), 0);
        second.make_current();
        assert_eq!((sluice_cuMemUnmap(mapped, bytes), sluice_cuMemRelease(handle)), (0, 0));
        assert_eq!(sluice_cuMemAddressFree(mapped, bytes), 0);
    }
}

fn what_is_of_the_other_is_refused(first: Held, second: Held, a: u64, b: u64) {
    let mark = event(first);
    second.make_current();
    assert_eq!(launch(first.function, 0, b, 128, 1), INVALID_HANDLE, "a function of another device's module");
    assert_eq!(launch(second.function, first.stream, b, 128, 1), INVALID_HANDLE, "another device's stream");
    // SAFETY: handles of this process.
    unsafe {
        assert_eq!(sluice_cuEventRecord(mark, second.stream), INVALID_HANDLE);
        assert_eq!(sluice_cuEventDestroy_v2(mark), 0);
    }
    assert_eq!((first_word(a).0, first_word(b).0), (0, 0), "nothing sticks");
}

fn a_blocked_device_does_not_stop_the_other(first: Held, second: Held, b: u64) {
    let gate = first.alloc(4096);
    fill(gate, 0, 1);
    // SAFETY: this process's own streams and memory.
    unsafe {
        assert_eq!(sluice_cuStreamSynchronize(0), 0);
        assert_eq!(sluice_cuStreamWaitValue32_v2(first.stream, gate, 1, 1), 0);
    }
    let blocked = std::thread::spawn(move || {
        first.make_current();
        // SAFETY: as above.
        unsafe { sluice_cuStreamSynchronize(first.stream) }
    });
    let began = Instant::now();
    for _ in 0..100 {
        assert_eq!(second.add(b, 1024, 1), 0);
    }
    // SAFETY: as above.
    unsafe {
        assert_eq!(sluice_cuStreamSynchronize(second.stream), 0);
        assert!(!blocked.is_finished() && began.elapsed() < Duration::from_secs(10));
        first.make_current();
        assert_eq!(sluice_cuStreamWriteValue32_v2(0, gate, 1, 0), 0);
        assert_eq!(blocked.join().expect("the thread"), 0);
        assert_eq!(sluice_cuMemFree_v2(gate), 0);
    }
}

fn parked_memory_of_both_comes_back(first: Held, second: Held, a: u64, b: u64) {
    first.make_current();
    fill(a, 41, 1024);
    second.make_current();
    fill(b, 42, 1024);
    let answer = ask(&json!({ "op": "detach" }));
    assert!(answer["parkedBytes"].as_u64().is_some_and(|bytes| bytes >= 8192), "{answer}");
    assert_eq!((first_word(a).0, first_word(b).0), (46, 46), "no GPU is attached");
    attach_two();
    assert_eq!((first_word(a), first_word(b)), ((0, 41), (0, 42)));
    assert_eq!((first.add(a, 1024, 1), second.add(b, 1024, 1)), (0, 0), "modules and streams live on");
    // SAFETY: no pointers.
    assert_eq!(unsafe { sluice_cuStreamSynchronize(first.stream) }, 0);
    // SAFETY: no pointers.
    assert_eq!(unsafe { sluice_cuStreamSynchronize(second.stream) }, 0);
    assert_eq!((first_word(a), first_word(b)), ((0, 42), (0, 43)));
}

fn the_loss_of_one_is_its_own(first: Held, second: Held, a: u64, b: u64, serving: &dyn Fn() -> Vec<u32>) {
    let workers = serving();
    assert_eq!(workers.len(), 2, "a worker for each device");
    // Only one of the two is the second device's: the other one is found to work on below.
    let pid = |held: Held, address: u64| {
        let before: Vec<u64> = workers.iter().map(|pid| ticks(*pid)).collect();
        let until = Instant::now() + Duration::from_millis(400);
        while Instant::now() < until {
            assert_eq!(held.add(address, 1024, 0), 0);
        }
        // SAFETY: no pointers.
        assert_eq!(unsafe { sluice_cuStreamSynchronize(held.stream) }, 0);
        let busy = workers.iter().zip(before).max_by_key(|(pid, before)| ticks(**pid) - before);
        *busy.expect("two workers").0
    };
    let worker = pid(second, b);
    assert_ne!(pid(first, a), worker);
    // SAFETY: a worker of this test's own gpud.
    unsafe { libc::kill(worker as i32, libc::SIGKILL) };
    let began = Instant::now();
    second.make_current();
    while first_word(b).0 == 0 {
        assert!(began.elapsed() < Duration::from_secs(5), "an error within five seconds");
    }
    first.make_current();
    let (code, before) = first_word(a);
    assert_eq!((code, add(first.function, a, 128, 1)), (0, 0), "the other device goes on");
    assert_eq!(first_word(a), (0, before + 1));
    // SAFETY: memory of an ended generation.
    assert_eq!(unsafe { sluice_cuMemFree_v2(b) }, 0);
}

/// Processor time of a process, in clock ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split_whitespace().collect();
    let at = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    at(11) + at(12)
}
