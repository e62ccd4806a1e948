//! Page-locked memory of a program on its GPU server's host: copied straight by the worker, and the program's own whatever
//! becomes of its GPU.

use serde_json::json;
use sluice_client::generated::*;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{ask, attach, start};
use sluice_conformance::control::Control;
use sluice_conformance::gpud::Gpud;
use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LEASE: u64 = 64 << 20;
const BYTES: usize = 12 << 20;

fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 31 + index / 4093 + seed) as u8).collect()
}

/// Lines of a process's memory map that name such a file.
fn maps(process: &str, file: &str) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.lines().filter(|line| line.contains(file)).count()
}

/// How many pieces of this program's page-locked memory the gpud's workers have mapped.
fn mapped_by_workers(gpud: &Gpud) -> usize {
    gpud.workers().iter().map(|pid| maps(&pid.to_string(), "memfd:sluice-pinned")).sum()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Page-locked memory.
#[derive(Clone, Copy)]
struct Locked(*mut u8, usize);

impl Locked {
    fn new(bytes: usize) -> Self {
        let mut memory: *mut c_void = std::ptr::null_mut();
        // SAFETY: a live local; the memory is written before it is read.
        unsafe {
            assert_eq!(sluice_cuMemHostAlloc(&raw mut memory, bytes, 1), 0);
            memory.write_bytes(0, bytes);
        }
        Self(memory.cast(), bytes)
    }

    fn data(&mut self) -> &mut [u8] {
        // SAFETY: so long, and no copy is under way when this is called.
        unsafe { std::slice::from_raw_parts_mut(self.0, self.1) }
    }

    fn free(self) {
        // SAFETY: allocated in `new`.
        assert_eq!(unsafe { sluice_cuMemFreeHost(self.0.cast()) }, 0);
    }
}

fn alloc(bytes: usize) -> u64 {
    let mut address = 0;
    // SAFETY: a live local.
    assert_eq!(unsafe { sluice_cuMemAlloc_v2(&raw mut address, bytes) }, 0);
    address
}

/// Copies `bytes` of the memory to the device and from there to the other, waiting at the end or for each.
fn there_and_back(address: u64, from: Locked, to: Locked, bytes: usize, waits: bool) -> [u32; 3] {
    let (source, target): (*const c_void, *mut c_void) = (from.0.cast(), to.0.cast());
    // SAFETY: both are as long, and left alone until the stream has been waited for.
    unsafe {
        if waits {
            [sluice_cuMemcpyHtoD_v2(address, source, bytes), sluice_cuMemcpyDtoH_v2(target, address, bytes), 0]
        } else {
            let copies = [
                sluice_cuMemcpyHtoDAsync_v2(address, source, bytes, 0),
                sluice_cuMemcpyDtoHAsync_v2(target, address, bytes, 0),
            ];
            [copies[0], copies[1], sluice_cuCtxSynchronize()]
        }
    }
}

/// The same, and looks whether the bytes arrive.
fn arrives(address: u64, mut from: Locked, mut to: Locked, bytes: usize, seed: usize) {
    for waits in [true, false] {
        from.data()[..bytes].copy_from_slice(&pattern(seed + usize::from(waits), bytes));
        to.data().fill(0);
        assert_eq!(there_and_back(address, from, to, bytes, waits), [0; 3]);
        assert!(to.data()[..bytes] == from.data()[..bytes], "bytes changed on the way");
    }
}

/// In a forked child the memory is what it was, and its file is closed.
fn a_child_finds_it(memory: Locked) {
    let name = |descriptor: i32| std::fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap_or_default();
    let file = (3..256).find(|descriptor| name(*descriptor).to_string_lossy().contains("memfd:sluice-pinned"));
    let file = file.expect("the file");
    // SAFETY: the child only looks and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above; the memory is there.
        unsafe {
            let closed = libc::fcntl(file, libc::F_GETFD) < 0;
            libc::_exit(i32::from(!closed || memory.0.read() != 17));
        }
    }
    let mut status = -1;
    // SAFETY: the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child finds the file open, or other bytes");
}

#[test]
fn page_locked_memory_is_copied_straight_and_outlives_its_gpu() {
    let sockets = std::env::temp_dir().join(format!("sluice-pinned-{}", std::process::id()));
    let control = Arc::new(Control::start().expect("control"));
    let options = ["--sockets", sockets.to_str().expect("UTF-8")];
    let gpud = Arc::new(Gpud::start_with("soft", &options, Some(&control.url)).expect("gpud"));
    let broker = Broker::start_with(Arc::clone(&gpud), LEASE, Some(control)).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe {
        broker.set_environment();
        std::env::set_var("SLUICE_GPUD_SOCKETS", &sockets);
    }
    start();
    // It is there before any GPU is.
    let (mut from, to) = (Locked::new(BYTES), Locked::new(BYTES));
    from.data().fill(3);
    attach();
    let address = alloc(BYTES);
    arrives(address, from, to, BYTES, 1);
    arrives(address, from, to, 100_001, 2);
    assert_eq!((maps("self", "memfd:sluice-pinned"), mapped_by_workers(&gpud)), (2, 2));
    assert_eq!(maps("self", "memfd:sluice-lane"), 0, "lanes were opened");
    // A copy that need not be waited for is not.
    ask(&json!({ "op": "trace", "on": true }));
    // SAFETY: both are as long, and left alone until the stream has been waited for.
    unsafe {
        assert_eq!(sluice_cuMemcpyHtoDAsync_v2(address, from.0.cast(), BYTES, 0), 0);
        assert_eq!(sluice_cuMemcpyDtoHAsync_v2(to.0.cast(), address, BYTES, 0), 0);
        assert_eq!(ask(&json!({ "op": "trace", "on": false }))["blocking"], 0);
        assert_eq!(sluice_cuCtxSynchronize(), 0);
    }
    from.data()[0] = 17;
    a_child_finds_it(from);

    // What is freed is gone on both sides; short memory and the program's own need no mapping.
    let third = Locked::new(2 << 20);
    arrives(address, third, to, 2 << 20, 3);
    assert_eq!(mapped_by_workers(&gpud), 3);
    third.free();
    until("the worker has given it up", || mapped_by_workers(&gpud) == 2);
    assert_eq!(maps("self", "memfd:sluice-pinned"), 2);
    let short = Locked::new(200_000);
    arrives(address, short, to, 200_000, 4);
    short.free();
    assert_eq!(mapped_by_workers(&gpud), 2);

    // More than the lease has device memory: what does not fit goes by lanes.
    let large = Locked::new(LEASE as usize);
    arrives(address, large, to, BYTES, 5);
    assert_eq!(mapped_by_workers(&gpud), 2);
    assert!(maps("self", "memfd:sluice-lane") > 0, "it was copied straight");
    large.free();

    // Given back and attached again, the same worker goes on with it, at the device's old addresses.
    arrives(address, from, to, BYTES, 6);
    assert_eq!(ask(&json!({ "op": "detach" }))["parkedBytes"], BYTES);
    attach();
    // SAFETY: as long as what was copied there.
    assert_eq!(unsafe { sluice_cuMemcpyDtoH_v2(to.0.cast(), address, BYTES) }, 0);
    let mut kept = to;
    assert!(kept.data() == from.data(), "parked bytes changed");
    arrives(address, from, to, BYTES, 9);
    assert_eq!(mapped_by_workers(&gpud), 2);

    // The lease ends: the memory stays the program's, and another GPU maps it anew.
    assert!(ask(&json!({ "op": "detach" }))["leaseId"].is_string());
    from.data().copy_from_slice(&pattern(7, BYTES));
    process::get().device(0).any_session().expect("a session").close();
    until("the worker is gone", || mapped_by_workers(&gpud) == 0);
    attach();
    let address = alloc(BYTES);
    assert!(from.data() == pattern(7, BYTES));
    arrives(address, from, to, BYTES, 8);
    assert_eq!(mapped_by_workers(&gpud), 2);

    // A worker that is killed takes its side with it, in the middle of copies; the memory is the program's own again.
    let worker = gpud.workers().into_iter().find(|pid| gpud.serves(*pid)).expect("a worker");
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        // SAFETY: a worker of this test's own gpud.
        unsafe { libc::kill(worker as i32, libc::SIGKILL) };
    });
    let began = Instant::now();
    while there_and_back(address, from, to, BYTES, false) == [0; 3] {}
    assert!(began.elapsed() < Duration::from_secs(10), "the error came after {:?}", began.elapsed());
    killer.join().expect("no panic");
    from.data().fill(9);
    assert_eq!(from.data()[BYTES - 1], 9);
    from.free();
    to.free();
    assert_eq!(maps("self", "memfd:sluice-pinned"), 0);
    std::fs::remove_dir_all(&sockets).expect("removed");
}
