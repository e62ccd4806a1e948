//! What a program does at the end of its threads, streams and processes, and calls with places that are none.

use serde_json::json;
use sluice_client::generated::*;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, alloc, ask, attach, start};
use sluice_conformance::gpud::Gpud;
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Arc;

const BYTES: usize = 64 << 20;

/// Device memory and a stream that are given back with it.
struct Kept(u64, usize);

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: made by the thread.
        let outcomes = unsafe { [sluice_cuMemFree_v2(self.0), sluice_cuStreamDestroy_v2(self.1)] };
        // A panic would end the process: the free memory tells.
        if outcomes != [0, 0] {
            eprintln!("the thread's last calls: {outcomes:?}");
        }
    }
}

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

fn free_bytes() -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: live locals.
    assert_eq!(unsafe { sluice_cuMemGetInfo_v2(&raw mut free, &raw mut total) }, 0);
    free
}

/// A thread's object gives back what it holds when the thread ends, after the client's own storage of the thread has ended.
fn objects_of_a_thread(context: usize) {
    let free = free_bytes();
    for _ in 0..6 {
        let thread = std::thread::spawn(move || {
            // First, so that it is dropped last.
            KEPT.with(|_| ());
            let (mut address, mut stream) = (0, 0);
            // SAFETY: live locals, a context of this process.
            unsafe {
                assert_eq!(sluice_cuCtxSetCurrent(context), 0);
                assert_eq!(sluice_cuMemAlloc_v2(&raw mut address, BYTES), 0);
                assert_eq!(sluice_cuStreamCreate(&raw mut stream, 0), 0);
            }
            KEPT.replace(Some(Kept(address, stream)));
        });
        thread.join().expect("no panic");
        assert_eq!(free_bytes(), free);
    }
}

/// A capture whose stream is destroyed is over, and forbids nothing.
fn captures_without_a_stream(function: usize) {
    let (code, address) = alloc();
    assert_eq!(code, 0);
    let mut stream = 0;
    // SAFETY: live locals, handles made here.
    unsafe {
        assert_eq!(sluice_cuStreamCreate(&raw mut stream, 0), 0);
        assert_eq!(sluice_cuStreamBeginCapture_v2(stream, 0), 0);
        assert_ne!(add(function, address, 128, 1), 0, "the legacy stream would wait for it");
        assert_eq!(sluice_cuStreamDestroy_v2(stream), 0);
        assert_eq!(add(function, address, 128, 1), 0);
        assert_eq!(sluice_cuCtxSynchronize(), 0);
        assert_eq!(sluice_cuMemFree_v2(address), 0);
    }
}

fn places_that_are_none() {
    let (mut graph, mut node) = (0, 0);
    let page = 1usize << 12;
    // SAFETY: wrong on purpose; nothing of it is to be followed.
    unsafe {
        let unmapped =
            libc::mmap(std::ptr::null_mut(), page, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANON, -1, 0);
        assert_eq!(libc::munmap(unmapped, page), 0);
        assert_eq!(sluice_cuMemHostRegister_v2(unmapped, page, 0), 1);
        assert_eq!(sluice_cuMemHostRegister_v2(page as *mut c_void, usize::MAX, 0), 1);
        assert_eq!(sluice_cuGraphCreate(&raw mut graph, 0), 0);
        let list = [0usize; 1];
        assert_eq!(sluice_cuGraphAddEmptyNode(&raw mut node, graph, list.as_ptr(), usize::MAX >> 3), 1);
        assert_eq!(sluice_cuGraphDestroy(graph), 0);
    }
}

#[test]
fn the_last_calls_of_threads_and_streams_are_served() {
    let gpud = Arc::new(Gpud::start("soft", &[]).expect("gpud"));
    let broker = Broker::start(Arc::clone(&gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    let function = start();
    attach();
    let mut context = 0;
    // SAFETY: a live local.
    assert_eq!(unsafe { sluice_cuCtxGetCurrent(&raw mut context) }, 0);
    objects_of_a_thread(context);
    captures_without_a_stream(function);
    places_that_are_none();
    assert!(ask(&json!({ "op": "detach" }))["leaseId"].is_string());
    process::get().device(0).any_session().expect("a session").close();
}
