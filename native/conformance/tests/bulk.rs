//! Bulk copies arrive whole, also when the line is cut in the middle of them, and they keep their place in the stream.

use serde_json::json;
use sluice_client::bulk::BULK_IN_BYTES;
use sluice_client::generated::*;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{ask, attach, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::proxy::Proxy;
use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BYTES: usize = 32 << 20;

/// Counts to its parameter.
const LONG: &str = "\
.version 6.4
.target sm_75
.address_size 64
.visible .entry count(.param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
AGAIN:
    add.s32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra AGAIN;
    ret;
}
";

fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 31 + index / 4093 + seed) as u8).collect()
}

fn alloc(bytes: usize) -> u64 {
    let mut address = 0;
    // SAFETY: a live local.
    assert_eq!(unsafe { sluice_cuMemAlloc_v2(&raw mut address, bytes) }, 0);
    address
}

/// Makes the context the calling thread's.
fn enter() {
    let mut context = 0;
    // SAFETY: a live local.
    unsafe {
        assert_eq!(sluice_cuDevicePrimaryCtxRetain(&raw mut context, 0), 0);
        assert_eq!(sluice_cuCtxSetCurrent(context), 0);
    }
}

fn write(address: u64, data: &[u8], stream: usize) {
    // SAFETY: the data live until the call returns.
    assert_eq!(unsafe { sluice_cuMemcpyHtoDAsync_v2(address, data.as_ptr().cast(), data.len(), stream) }, 0);
}

fn read(address: u64, bytes: usize, stream: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    // SAFETY: room for as many bytes; the stream is synchronised before the data are looked at.
    unsafe {
        assert_eq!(sluice_cuMemcpyDtoHAsync_v2(data.as_mut_ptr().cast(), address, bytes, stream), 0);
        assert_eq!(sluice_cuStreamSynchronize(stream), 0);
    }
    data
}

fn stream() -> usize {
    let mut stream = 0;
    // SAFETY: a live local. 1 = does not wait for the default stream.
    assert_eq!(unsafe { sluice_cuStreamCreate(&raw mut stream, 1) }, 0);
    stream
}

fn count(function: usize, to: u32, stream: usize) {
    let parameters: [*const c_void; 1] = [(&raw const to).cast()];
    // SAFETY: one parameter, as the kernel declares.
    let code =
        unsafe { sluice_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters.as_ptr(), std::ptr::null()) };
    assert_eq!(code, 0);
}

/// Loads [`LONG`], and how far it counts in a second here.
fn long_kernel(stream: usize) -> (usize, u32) {
    let (mut module, mut function) = (0, 0);
    let (image, name) = (CString::new(LONG).expect("text"), CString::new("count").expect("text"));
    // SAFETY: live strings and locals.
    unsafe {
        assert_eq!(sluice_cuModuleLoadData(&raw mut module, image.as_ptr().cast()), 0);
        assert_eq!(sluice_cuModuleGetFunction(&raw mut function, module, name.as_ptr()), 0);
    }
    let (mut to, mut took) = (50_000u32, Duration::ZERO);
    while took < Duration::from_millis(30) {
        to *= 2;
        let began = Instant::now();
        count(function, to, stream);
        // SAFETY: a stream made here.
        assert_eq!(unsafe { sluice_cuStreamSynchronize(stream) }, 0);
        took = began.elapsed();
    }
    (function, (f64::from(to) / took.as_secs_f64()).min(2e9) as u32)
}

/// Page-locked memory of [`BYTES`].
struct Pinned(*mut u8);

impl Pinned {
    fn new() -> Self {
        let mut memory: *mut c_void = std::ptr::null_mut();
        // SAFETY: a live local; the memory is written before it is read.
        unsafe {
            assert_eq!(sluice_cuMemAllocHost_v2(&raw mut memory, BYTES), 0);
            memory.write_bytes(0, BYTES);
        }
        Self(memory.cast())
    }

    fn data(&mut self) -> &mut [u8] {
        // SAFETY: so long, and no copy is under way when this is called.
        unsafe { std::slice::from_raw_parts_mut(self.0, BYTES) }
    }

    /// Frees it; copies that still use it are finished before.
    fn free(self) {
        // SAFETY: allocated in `new`.
        assert_eq!(unsafe { sluice_cuMemFreeHost(self.0.cast()) }, 0);
    }
}

/// Copies from and to page-locked memory return behind a kernel that still runs, keep their place in the stream, and
/// are waited for where the stream is, or where their memory is given back.
fn pinned_copies_do_not_wait(proxy: &Proxy, address: u64, stream: usize, function: usize, second: u32) {
    let (mut source, mut target, mut event) = (Pinned::new(), Pinned::new(), 0);
    let wanted = pattern(300, BYTES);
    source.data().copy_from_slice(&wanted);
    // SAFETY: live locals; page-locked memory that is left alone while copies are under way; a stream made here.
    unsafe {
        assert_eq!(sluice_cuEventCreate(&raw mut event, 2), 0);
        ask(&json!({ "op": "trace", "on": true }));
        count(function, second.saturating_mul(3), stream);
        assert_eq!(sluice_cuMemcpyHtoDAsync_v2(address, source.0.cast(), BYTES, stream), 0);
        assert_eq!(sluice_cuMemcpyDtoHAsync_v2(target.0.cast(), address, BYTES, stream), 0);
        assert_eq!(sluice_cuEventRecord(event, stream), 0);
        assert_eq!(ask(&json!({ "op": "trace", "on": false }))["blocking"], 0);
        assert_eq!(sluice_cuStreamQuery(stream), 600, "the kernel was over before the copies were issued");
        assert_eq!((target.0.read(), target.0.add(BYTES - 1).read()), (0, 0), "the copy has overtaken the kernel");
        while sluice_cuEventQuery(event) == 600 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(target.data() == wanted, "the event is passed, and the data are not there");

        // More than gpud would keep, while the line is cut: each round is of its own pattern.
        let parts = BYTES / BULK_IN_BYTES;
        for round in 0..4 {
            source.data().copy_from_slice(&pattern(400 + round, BYTES));
            count(function, second / 4, stream);
            for at in (0..parts).map(|part| part * BULK_IN_BYTES) {
                let (from, to) = (source.0.add(at), target.0.add(at).cast());
                assert_eq!(sluice_cuMemcpyAsync(address + at as u64, from as u64, BULK_IN_BYTES, stream), 0);
                assert_eq!(sluice_cuMemcpyDtoHAsync_v2(to, address + at as u64, BULK_IN_BYTES, stream), 0);
            }
            std::thread::sleep(Duration::from_millis(200 + 25 * round as u64));
            proxy.cut();
            assert_eq!(sluice_cuStreamSynchronize(stream), 0);
            assert!(target.data() == pattern(400 + round, BYTES), "bytes changed in round {round}");
        }

        // Who frees memory of the device may know by that, as by a driver, that the copies before have ended.
        for bytes in [4096, BULK_IN_BYTES] {
            let freed = alloc(4096);
            target.data().fill(0);
            count(function, second / 2, stream);
            assert_eq!(sluice_cuMemcpyDtoHAsync_v2(target.0.cast(), address, bytes, stream), 0);
            assert_eq!((sluice_cuStreamQuery(stream), target.0.read()), (600, 0));
            assert_eq!(sluice_cuMemFree_v2(freed), 0);
            assert!(target.data()[..bytes] == pattern(403, BYTES)[..bytes], "freed before {bytes} bytes were there");
        }

        // Freed with a copy under way.
        count(function, second / 2, stream);
        assert_eq!(sluice_cuMemcpyHtoDAsync_v2(address, source.0.cast(), BYTES, stream), 0);
        assert_eq!(sluice_cuStreamQuery(stream), 600);
        source.free();
        assert!(read(address, BYTES, 0) == pattern(403, BYTES));
        // One that is not page-locked any more is copied before the call returns, as any other memory.
        let mut plain = pattern(500, BYTES);
        assert_eq!(sluice_cuMemHostRegister_v2(plain.as_mut_ptr().cast(), BYTES, 0), 0);
        assert_eq!(sluice_cuMemHostUnregister(plain.as_mut_ptr().cast()), 0);
        write(address, &plain, stream);
        plain.fill(0);
        assert!(read(address, BYTES, stream) == pattern(500, BYTES));
    }
    target.free();
}

#[test]
fn bulk_copies_outlast_cuts_and_threads_do_not_wait_for_each_other() {
    let mut gpud = Gpud::start("soft", &["--listen", "tls://127.0.0.1:0"]).expect("gpud");
    let proxy = Proxy::before(&mut gpud).expect("proxy");
    let broker = Broker::start(Arc::new(gpud), 512 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    start();
    attach();
    let (left, right) = (stream(), stream());
    let address = alloc(BYTES);

    // Lengths around the pieces', at odd addresses.
    for (seed, bytes) in [BULK_IN_BYTES, BULK_IN_BYTES + 1, (8 << 20) - 3].into_iter().enumerate() {
        let data = pattern(seed, bytes);
        write(address + 3, &data, 0);
        assert!(read(address + 3, bytes, 0) == data, "{bytes} bytes changed on the way");
    }

    // The line is cut again and again, and down for a while, in the middle of copies both ways.
    let session = process::get().device(0).any_session().expect("attached");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..12 {
                std::thread::sleep(Duration::from_millis(23 + round * 7));
                proxy.cut();
            }
            proxy.set_down(true);
            std::thread::sleep(Duration::from_millis(1200));
            proxy.set_down(false);
            over.store(true, Ordering::Release);
        });
        let mut rounds = 0;
        while !over.load(Ordering::Acquire) || rounds < 3 {
            rounds += 1;
            let data = pattern(rounds, BYTES);
            write(address, &data, left);
            assert!(read(address, BYTES, left) == data, "bytes changed in round {rounds}");
        }
    });
    assert!(session.connection.resumed.load(Ordering::Relaxed) >= 1, "nothing was cut");
    assert!(Arc::ptr_eq(&session, &process::get().device(0).any_session().expect("attached")));

    // A copy waits for the kernel before it, in its stream; meanwhile other threads launch, copy and wait elsewhere.
    let (function, second) = long_kernel(left);
    let (old, new) = (pattern(100, BYTES), pattern(200, BYTES));
    write(address, &old, 0);
    let other = alloc(BULK_IN_BYTES);
    count(function, second.saturating_mul(4), left);
    std::thread::scope(|scope| {
        let behind = scope.spawn(|| {
            enter();
            write(address, &new, left);
        });
        let waiting = scope.spawn(|| {
            enter();
            // SAFETY: a stream made here.
            unsafe { sluice_cuStreamSynchronize(left) }
        });
        std::thread::sleep(Duration::from_millis(100));
        count(function, 1000, right);
        write(other, &old[..BULK_IN_BYTES], right);
        assert!(read(other, BULK_IN_BYTES, right) == old[..BULK_IN_BYTES]);
        // Not yet its turn.
        let now = read(address, BULK_IN_BYTES, right);
        assert!(now == old[..BULK_IN_BYTES], "the copy has overtaken the kernel before it");
        assert!(!behind.is_finished() && !waiting.is_finished(), "threads waited for each other");
        behind.join().expect("copied");
        assert_eq!(waiting.join().expect("waited"), 0);
    });
    assert!(read(address, BYTES, left) == new);
    pinned_copies_do_not_wait(&proxy, address, left, function, second);
    session.close();
}
