//! The backend on a stand-in for the driver, whose work ends when the test says so.

mod peers;

use super::loader::{Driver, Handle, MemoryWords, Pointer, Status};
use super::{CudaDevice, Function, INVALID_VALUE, LIGHT_BYTES, Loaded, Memory, Shareable, Shared, Staging, Turn, lock};
use crate::device::{Device, LONG};
use crate::gate::Gate;
use crate::graph::{GraphId, HostSide, Node, NodeWork};
use crate::pinned::{PinnedMemory, PinnedPart};
use crate::types::{EventId, Fill, FunctionInfo, FunctionRef, LaunchConfig, ModuleId, Running, StreamId};
use crate::window::Way;
use sluice_softgpu::plain_name;
use std::ffi::{c_uint, c_void};
use std::fs::File;
use std::os::fd::{AsFd, FromRawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A stream: how many operations were issued to it, and how many have ended.
#[derive(Default)]
struct Lane {
    issued: AtomicU64,
    /// Host functions that have not returned.
    inside: AtomicU32,
    ended: Mutex<u64>,
    changed: Condvar,
}

impl Lane {
    fn at(stream: Handle) -> &'static Lane {
        // SAFETY: the streams of these tests are lanes that live for ever.
        unsafe { &*stream.cast::<Lane>() }
    }

    fn issue(stream: Handle) -> Status {
        Lane::at(stream).issued.fetch_add(1, Ordering::SeqCst);
        0
    }

    /// So many operations end.
    fn end(&self, count: u64) {
        *lock(&self.ended) += count;
        self.changed.notify_all();
    }

    fn wait(&self, place: u64) {
        let ended = lock(&self.ended);
        drop(self.changed.wait_while(ended, |ended| *ended < place).unwrap_or_else(PoisonError::into_inner));
    }
}

/// A place in a stream.
#[derive(Default)]
struct Event {
    stream: AtomicU64,
    place: AtomicU64,
}

unsafe extern "C" fn event_create(event: *mut Handle, _flags: c_uint) -> Status {
    // SAFETY: the caller's local.
    unsafe { *event = Box::into_raw(Box::<Event>::default()).cast() };
    0
}

unsafe extern "C" fn event_destroy(event: Handle) -> Status {
    // SAFETY: made above.
    drop(unsafe { Box::from_raw(event.cast::<Event>()) });
    0
}

unsafe extern "C" fn event_record(event: Handle, stream: Handle) -> Status {
    // SAFETY: made above.
    let event = unsafe { &*event.cast::<Event>() };
    event.stream.store(stream.expose_provenance() as u64, Ordering::SeqCst);
    event.place.store(Lane::at(stream).issued.load(Ordering::SeqCst), Ordering::SeqCst);
    0
}

unsafe extern "C" fn event_synchronize(event: Handle) -> Status {
    // SAFETY: made above.
    let event = unsafe { &*event.cast::<Event>() };
    let stream = std::ptr::with_exposed_provenance_mut(event.stream.load(Ordering::SeqCst) as usize);
    Lane::at(stream).wait(event.place.load(Ordering::SeqCst));
    0
}

unsafe extern "C" fn stream_query(stream: Handle) -> Status {
    let lane = Lane::at(stream);
    if *lock(&lane.ended) < lane.issued.load(Ordering::SeqCst) { 600 } else { 0 }
}

/// Starts of memory that is locked.
static LOCKED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

unsafe extern "C" fn host_register(memory: *mut c_void, _: usize, _: c_uint) -> Status {
    lock(&LOCKED).push(memory.addr());
    0
}

unsafe extern "C" fn host_unregister(memory: *mut c_void) -> Status {
    lock(&LOCKED).retain(|start| *start != memory.addr());
    0
}

unsafe extern "C" fn launch(
    _: Handle,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    stream: Handle,
    _: *mut *mut c_void,
    _: *mut *mut c_void,
) -> Status {
    Lane::issue(stream)
}

unsafe extern "C" fn launch_graph(_: Handle, stream: Handle) -> Status {
    Lane::issue(stream)
}

/// A function of the host runs when all before it has ended, on a thread of the driver.
unsafe extern "C" fn launch_host(stream: Handle, function: unsafe extern "C" fn(*mut c_void), data: Handle) -> Status {
    let (lane, data) = (Lane::at(stream), Shareable(data));
    let place = lane.issued.fetch_add(1, Ordering::SeqCst);
    std::thread::spawn(move || {
        let data = data;
        lane.wait(place);
        lane.inside.fetch_add(1, Ordering::SeqCst);
        // SAFETY: as the caller of the driver says.
        unsafe { function(data.0) };
        lane.inside.fetch_sub(1, Ordering::SeqCst);
        lane.end(1);
    });
    0
}

/// Waits for words of host memory, one at a time.
unsafe extern "C" fn stream_memory(stream: Handle, count: c_uint, words: *mut MemoryWords, _: c_uint) -> Status {
    // SAFETY: the caller's list.
    let MemoryWords { kind: 1, address, value, flags: 0, .. } = (unsafe { &*words }) else { return INVALID_VALUE };
    let (lane, address, value) = (Lane::at(stream), *address as usize, *value as u32);
    let place = lane.issued.fetch_add(u64::from(count), Ordering::SeqCst);
    std::thread::spawn(move || {
        lane.wait(place);
        let word = std::ptr::with_exposed_provenance_mut::<u32>(address);
        // SAFETY: a word of pinned memory, which is kept until the stream has come past this.
        while unsafe { AtomicU32::from_ptr(word) }.load(Ordering::Acquire) < value {
            std::thread::sleep(Duration::from_millis(1));
        }
        lane.end(1);
    });
    0
}

unsafe extern "C" fn copy_in(_: Pointer, _: *const c_void, _: usize, stream: Handle) -> Status {
    Lane::issue(stream)
}

unsafe extern "C" fn copy_out(_: *mut c_void, _: Pointer, _: usize, stream: Handle) -> Status {
    Lane::issue(stream)
}

unsafe extern "C" fn copy_device(_: Pointer, _: Pointer, _: usize, stream: Handle) -> Status {
    Lane::issue(stream)
}

unsafe extern "C" fn fill(_: Pointer, _: usize, _: u8, _: usize, _: usize, stream: Handle) -> Status {
    Lane::issue(stream)
}

unsafe extern "C" fn host_alloc(memory: *mut *mut c_void, bytes: usize) -> Status {
    // SAFETY: the caller's local.
    unsafe { *memory = libc::malloc(bytes) };
    if bytes == 0 { INVALID_VALUE } else { 0 }
}

fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| Driver {
        event_create,
        event_destroy,
        event_record,
        event_synchronize,
        stream_query,
        host_register,
        host_unregister,
        launch,
        graph_launch: launch_graph,
        launch_host,
        stream_memory,
        copy_in,
        copy_out,
        copy_device,
        fill_8: fill,
        host_alloc,
        device_attribute,
        context_set_limit,
        context_set: peers::context_set,
        address_reserve: peers::address_reserve,
        granularity: peers::granularity,
        memory_create: peers::memory_create,
        memory_release: peers::memory_release,
        memory_export: peers::memory_export,
        memory_import: peers::memory_import,
        memory_map: peers::memory_map,
        memory_unmap: peers::memory_unmap,
        ..Driver::idle()
    })
}

/// A device of two multiprocessors.
unsafe extern "C" fn device_attribute(value: *mut i32, attribute: i32, _device: i32) -> Status {
    // SAFETY: the caller's local.
    unsafe {
        *value = match attribute {
            16 => 2,
            41 => 1,
            _ => 1_000,
        };
    }
    0
}

static STACK: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn context_set_limit(limit: c_uint, bytes: usize) -> Status {
    if limit == 0 {
        STACK.store(bytes as u64, Ordering::SeqCst);
    }
    0
}

const NAMES: [&str; 3] = ["_Z6matmulPfS_", "relu", "softmax"];
const MATMUL: u32 = 0;
const RELU: u32 = 1;
const SOFTMAX: u32 = 2;

fn config() -> LaunchConfig {
    let (shared_bytes, cooperative, params, attributes) = Default::default();
    LaunchConfig { grid: [64, 1, 1], block: [32, 1, 1], shared_bytes, cooperative, params, attributes }
}

/// A device with two streams and one module.
struct Bench {
    device: CudaDevice,
    lanes: [&'static Lane; 2],
}

const STREAMS: [StreamId; 2] = [StreamId(7), StreamId(8)];

impl Bench {
    fn new() -> Bench {
        Bench::in_context(0)
    }

    /// The device of a process of its own, which is named by its context.
    fn in_context(context: usize) -> Bench {
        let lanes: [&'static Lane; 2] = std::array::from_fn(|_| &*Box::leak(Box::<Lane>::default()));
        let handle = |lane: &'static Lane| Shareable(std::ptr::from_ref(lane).cast_mut().cast());
        let shared = Shared {
            driver: driver(),
            context: Shareable(std::ptr::without_provenance_mut(context)),
            device: context as i32,
            memory: Mutex::new(None::<Memory>),
            shares: AtomicBool::new(false),
            lending: Mutex::default(),
            borrowed: Mutex::default(),
            backing: Arc::default(),
            staging: Mutex::new(Staging::new(driver())),
            outgoing: Default::default(),
            sticky: Mutex::new(None),
            observer: Box::new(|_| ()),
            printed: OnceLock::new(),
        };
        let device = CudaDevice {
            shared: Arc::new(shared),
            state: Mutex::default(),
            waiters: Default::default(),
            libraries: Default::default(),
            turn: Arc::new(Turn::default()),
            lanes: lanes.map(handle),
            heap: Mutex::default(),
            legacy: AtomicBool::new(false),
            pinned: Default::default(),
            words: Default::default(),
        };
        let function = |name: &&str| Function {
            handle: Shareable(std::ptr::null_mut()),
            info: FunctionInfo { name: (*name).to_owned(), ..FunctionInfo::default() },
            name: plain_name(name).into(),
        };
        let functions = NAMES.iter().map(function).collect();
        let mut state = lock(&device.state);
        state.modules.insert(ModuleId(1), Loaded { module: Shareable(std::ptr::null_mut()), functions });
        state.streams.extend(STREAMS.into_iter().zip(lanes.map(handle)));
        drop(state);
        Bench { device, lanes }
    }

    fn launch(&self, stream: usize, index: u32) {
        let function = FunctionRef { module: ModuleId(1), index };
        self.device.launch(STREAMS[stream], function, config()).expect("launched");
    }

    fn fill(&self, stream: usize, bytes: u64) {
        let fill = Fill { dst: 0, pitch: 0, value: 0, element: 1, width: bytes, height: 1 };
        self.device.fill(STREAMS[stream], fill).expect("filled");
    }

    /// What runs, and for how long.
    fn running(&self) -> Option<(String, Duration)> {
        self.device.turn.running().map(|(work, worked)| (work.to_string(), worked))
    }

    /// Returns when this is what runs, and for how long it has.
    fn until(&self, name: Option<&str>) -> Duration {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let running = self.running();
            if running.as_ref().map(|(name, _)| name.as_str()) == name {
                return running.map_or(Duration::ZERO, |(_, worked)| worked);
            }
            assert!(Instant::now() < deadline, "{running:?} instead of {name:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// So long that it shows in what is measured.
const WHILE: Duration = Duration::from_millis(300);

#[test]
fn a_stack_for_all_threads_is_had_where_the_lease_has_the_memory() {
    let bench = Bench::new();
    bench.device.limit_stack(1_124, 200_000).expect("100 bytes more for each of 2,000 threads");
    assert_eq!(STACK.load(Ordering::SeqCst), 1_124);
    let refused = bench.device.limit_stack(1_125, 200_000).expect_err("more than there is");
    assert!(refused.to_string().contains("more than the lease has left"), "{refused}");
    assert_eq!(STACK.load(Ordering::SeqCst), 1_124);
    bench.device.limit_stack(512, 0).expect("less than every thread has");
}

#[test]
fn locked_memory_is_given_up_when_nothing_runs_any_more() {
    let bench = Bench::new();
    // SAFETY: a C string; the descriptor is nobody else's.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC)) };
    file.set_len(1 << 16).expect("length");
    let [first, second] = [0, 1 << 15].map(|offset| {
        let memory = PinnedMemory::map(file.as_fd(), offset, 1 << 15).expect("mapped");
        Arc::new(memory)
    });
    bench.device.open_pinned(&first).expect("locked");
    let part = PinnedPart::of(Arc::clone(&first), 100, 1_000).expect("inside");
    let (sender, done) = channel();
    let done_with = Box::new(move |outcome| drop(sender.send(outcome)));
    bench.device.copy_pinned(STREAMS[0], Way::In, 0, part, done_with).expect("issued");
    let start = first.start().addr();
    let kept = Arc::downgrade(&first);
    bench.device.close_pinned(first);
    assert!(lock(&LOCKED).contains(&start) && kept.strong_count() > 0, "the copy has not run");
    assert!(bench.device.backlog() > 0);
    bench.lanes[0].end(1);
    done.recv_timeout(Duration::from_secs(10)).expect("answered").expect("copied");
    assert_eq!(bench.device.backlog(), 0);
    // Something else runs.
    bench.launch(1, MATMUL);
    bench.device.open_pinned(&second).expect("locked");
    assert!(lock(&LOCKED).contains(&start), "whoever unlocks may wait for what runs");
    bench.lanes[1].end(1);
    bench.device.close_pinned(second);
    assert!(lock(&LOCKED).is_empty() && kept.strong_count() == 0);
}

#[test]
fn a_kernel_that_runs_long_is_told_by_its_name_and_without_blocks() {
    let bench = Bench::new();
    bench.launch(0, MATMUL);
    bench.until(Some("matmul"));
    assert_eq!(bench.device.running(), None, "not for a second yet");
    std::thread::sleep(LONG);
    let running = bench.device.running().expect("it runs long");
    assert!(running.worked >= LONG && running.worked < LONG * 5, "{running:?}");
    let expected = Running { kernel: "matmul".to_owned(), done: 0, blocks: 0, worked: running.worked };
    assert_eq!(running, expected);
    bench.lanes[0].end(1);
    bench.until(None);
    assert_eq!(bench.device.running(), None);
}

#[test]
fn what_was_queued_has_run_since_what_was_before_it_ended() {
    let bench = Bench::new();
    bench.launch(0, MATMUL);
    bench.until(Some("matmul"));
    bench.launch(0, RELU);
    std::thread::sleep(WHILE);
    assert!(bench.until(Some("matmul")) >= WHILE);
    bench.lanes[0].end(1);
    assert!(bench.until(Some("relu")) < WHILE);
    bench.lanes[0].end(1);
    bench.until(None);
}

#[test]
fn of_several_the_first_is_named_that_is_not_known_to_have_ended() {
    let bench = Bench::new();
    bench.launch(0, MATMUL);
    bench.until(Some("matmul"));
    bench.launch(0, RELU);
    bench.launch(0, SOFTMAX);
    bench.launch(1, SOFTMAX);
    bench.lanes[0].end(1);
    bench.until(Some("relu"));
    bench.lanes[0].end(1);
    std::thread::sleep(WHILE);
    assert!(bench.until(Some("relu")) >= WHILE, "softmax runs, which only its end would tell");
    bench.lanes[0].end(1);
    assert!(bench.until(Some("softmax")) < WHILE, "that of the other stream");
    bench.lanes[1].end(1);
    bench.until(None);
}

#[test]
fn who_waits_for_the_host_does_not_run() {
    let bench = Bench::new();
    let ((begun, begins), (finish, finished)) = (channel(), channel::<()>());
    bench.launch(0, MATMUL);
    bench.until(Some("matmul"));
    bench.launch(0, RELU);
    let work = move |go_on: Box<dyn FnOnce() + Send>| {
        begun.send(()).expect("the test waits");
        finished.recv().expect("the test lives");
        go_on();
    };
    bench.device.host_work(STREAMS[0], Box::new(work)).expect("queued");
    bench.launch(0, SOFTMAX);
    bench.lanes[0].end(1);
    // What is in front of the host's work is known to have ended before it, and what is behind it not to have begun.
    bench.until(Some("relu"));
    bench.lanes[0].end(1);
    begins.recv().expect("the host works");
    bench.until(None);
    std::thread::sleep(WHILE);
    assert_eq!(bench.running(), None);
    finish.send(()).expect("the host works");
    assert!(bench.until(Some("softmax")) < WHILE);
    bench.lanes[0].end(1);
    bench.until(None);
}

#[test]
fn who_waits_for_a_stream_that_waits_for_the_host_does_not_run() {
    let bench = Bench::new();
    let ((begun, begins), (finish, finished)) = (channel(), channel::<()>());
    let work = move |go_on: Box<dyn FnOnce() + Send>| {
        begun.send(()).expect("the test waits");
        finished.recv().expect("the test lives");
        go_on();
    };
    bench.device.host_work(STREAMS[1], Box::new(work)).expect("queued");
    begins.recv().expect("the host works");
    bench.launch(0, MATMUL);
    bench.until(Some("matmul"));
    bench.device.create_event(EventId(3), 2).expect("made");
    bench.device.record_event(EventId(3), STREAMS[1]).expect("recorded");
    bench.device.wait_event(STREAMS[0], EventId(3)).expect("queued");
    bench.launch(0, RELU);
    bench.lanes[0].end(1);
    bench.until(None);
    std::thread::sleep(WHILE);
    assert_eq!(bench.running(), None);
    finish.send(()).expect("the host works");
    assert!(bench.until(Some("relu")) < WHILE);
    bench.lanes[0].end(1);
    bench.until(None);
}

/// A gate that counts.
#[derive(Default)]
struct Counted {
    entered: AtomicU32,
    left: AtomicU32,
}

impl Gate for Counted {
    fn enter(&self) -> bool {
        self.entered.fetch_add(1, Ordering::SeqCst);
        false
    }
    fn leave(&self) {
        self.left.fetch_add(1, Ordering::SeqCst);
    }
    fn charge(&self, _bytes: u64) -> bool {
        true
    }
    fn discharge(&self, _bytes: u64) {}
}

#[test]
fn large_copies_and_fills_take_a_turn_and_small_ones_do_not() {
    let (bench, gate) = (Bench::new(), Arc::new(Counted::default()));
    bench.device.ask(Arc::clone(&gate) as Arc<dyn Gate>);
    let (stream, device) = (STREAMS[0], &bench.device);
    let each = |bytes: u64| {
        bench.fill(0, bytes);
        device.copy(stream, 0, 0, bytes).expect("copied");
        device.copy_in(stream, 0, &vec![0; bytes as usize]).expect("copied");
        device.copy_out(stream, 0, bytes, Box::new(|_| ())).expect("copied");
    };
    each(LIGHT_BYTES);
    assert_eq!(gate.entered.load(Ordering::SeqCst), 0);
    each(LIGHT_BYTES + 1);
    assert_eq!((gate.entered.load(Ordering::SeqCst), gate.left.load(Ordering::SeqCst)), (4, 0));
    // They are not kernels that run long.
    std::thread::sleep(WHILE / 10);
    assert_eq!(bench.running(), None);
    bench.lanes[0].end(8);
    device.turn.settle();
    assert_eq!(gate.left.load(Ordering::SeqCst), 4);
}

#[test]
fn a_kernel_behind_a_fill_is_named() {
    let bench = Bench::new();
    bench.launch(0, MATMUL);
    bench.until(Some("matmul"));
    bench.fill(0, LIGHT_BYTES * 2);
    bench.launch(0, RELU);
    bench.lanes[0].end(1);
    bench.until(Some("relu"));
    bench.lanes[0].end(2);
    bench.until(None);
}

#[test]
fn who_waits_for_another_device_holds_up_no_host_function() {
    let bench = Bench::new();
    let (sender, armed) = channel();
    let arm = move |go_on| {
        let _ = sender.send(go_on);
    };
    for _ in 0..2 {
        bench.device.wait(STREAMS[0], Box::new(arm.clone())).expect("issued");
        bench.launch(0, MATMUL);
        let go_on: Box<dyn FnOnce() + Send> = armed.recv_timeout(LONG * 10).expect("the stream has come to it");
        let deadline = Instant::now() + LONG * 10;
        while bench.lanes[0].inside.load(Ordering::SeqCst) > 0 {
            assert!(Instant::now() < deadline, "the driver's thread waits");
            std::thread::yield_now();
        }
        std::thread::sleep(WHILE / 10);
        assert_eq!(bench.device.query_stream(STREAMS[0]), Ok(false), "it waits for the other device");
        assert_eq!(bench.running(), None, "and does not run");
        go_on();
        bench.until(Some("matmul"));
        bench.lanes[0].end(1);
        bench.until(None);
    }
    assert_eq!(bench.device.words.idle(), 1024, "the word is idle again, and was used twice");
}

/// The program's side of a graph without host nodes.
struct Nobody;

impl HostSide for Nobody {
    fn call(&self, _function: u64, done: Box<dyn FnOnce() + Send>) {
        done();
    }
    fn fetch(&self, _copy: u64, _bytes: u64, done: Box<dyn FnOnce(Vec<u8>) + Send>) {
        done(Vec::new());
    }
    fn deliver(&self, _copy: u64, _data: Vec<u8>) {}
}

#[test]
fn a_graph_is_named_by_its_first_kernel() {
    let bench = Bench::new();
    let node = |work| Node { work, after: Vec::new(), enabled: true };
    let kernel = |index| NodeWork::Kernel { function: FunctionRef { module: ModuleId(1), index }, config: config() };
    let nodes = vec![node(NodeWork::Empty), node(kernel(RELU)), node(kernel(MATMUL))];
    let device = &bench.device;
    let run = |expected: &str| {
        device.launch_graph(GraphId(1), STREAMS[0]).expect("launched");
        bench.until(Some(expected));
        bench.lanes[0].end(1);
        bench.until(None);
    };
    device.instantiate_graph(GraphId(1), 0, nodes, Arc::new(Nobody)).expect("made");
    run("a graph with relu");
    device.update_graph(GraphId(1), vec![(1, false, kernel(RELU))]).expect("changed");
    run("a graph with matmul");
    device.instantiate_graph(GraphId(1), 0, vec![node(NodeWork::Empty)], Arc::new(Nobody)).expect("made");
    run("a graph");
}
