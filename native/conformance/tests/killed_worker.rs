//! A worker that is killed while its program computes: the program gets an error soon, and nobody else notices.

use sluice_client::dial::{Key, Ticket};
use sluice_client::generated::*;
use sluice_client::process;
use sluice_client::session::Session;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, alloc, attach, fill, first_word, start, words};
use sluice_conformance::gpud::Gpud;
use sluice_protocol::messages::Empty;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// CUDA_ERROR_DEVICE_UNAVAILABLE
const UNAVAILABLE: u32 = 46;
/// CUDA_ERROR_NOT_READY
const NOT_READY: u32 = 600;

/// Holds a stream by a host function that returns when the sender is dropped.
fn hold(stream: usize) -> Sender<()> {
    unsafe extern "C" fn wait(receiver: *mut c_void) {
        // SAFETY: what `hold` gave, called once.
        let _ = unsafe { Box::from_raw(receiver.cast::<Receiver<()>>()) }.recv();
    }
    let (sender, receiver) = channel();
    // SAFETY: the function takes what it is given.
    let code = unsafe { sluice_cuLaunchHostFunc(stream, Some(wait), Box::into_raw(Box::new(receiver)).cast()) };
    assert_eq!(code, 0);
    sender
}

/// What a stream and an event say of themselves.
fn asked(stream: usize, event: usize) -> [u32; 2] {
    // SAFETY: no pointers.
    unsafe { [sluice_cuStreamQuery(stream), sluice_cuEventQuery(event)] }
}

#[test]
fn a_killed_worker_is_an_error_within_five_seconds_and_touches_nobody_else() {
    let gpud = Arc::new(Gpud::start("soft", &[]).expect("gpud"));
    let broker = Broker::start(Arc::clone(&gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    // Another program's session, on another lease.
    let key = Arc::new(Key::generate().expect("key"));
    let token = gpud.token(&key.public(), "lea-other", 64 << 20);
    let ticket =
        Ticket { address: gpud.address.parse().expect("address"), nearby: None, pin: None, token, key, several: false };
    let other = Session::open(ticket, 1000, 0, "lea-other".into()).expect("opened");
    let kept = other.alloc(1 << 20, 0).expect("memory");
    let serving = || gpud.workers().into_iter().filter(|pid| gpud.serves(*pid)).collect::<Vec<u32>>();
    let before = serving();

    let function = start();
    let (mut stream, mut event) = (0, 0);
    // SAFETY: live locals.
    unsafe {
        assert_eq!(sluice_cuStreamCreate(&raw mut stream, 1), 0);
        assert_eq!(sluice_cuEventCreate(&raw mut event, 0), 0);
    }
    for round in 0..4u64 {
        attach();
        let (code, address) = alloc();
        assert_eq!(code, 0);
        fill(address, 0);
        assert_eq!((add(function, address, 128, 1), first_word(address)), (0, (0, 1)));
        // A host function that the stream comes to when it has been called: the queue of a framework.
        let release = hold(stream);
        // SAFETY: no pointers.
        assert_eq!(unsafe { (sluice_cuEventRecord(event, stream), asked(stream, event)) }, (0, [NOT_READY; 2]));
        let worker = serving().into_iter().find(|pid| !before.contains(pid));
        let worker = worker.expect("a worker for this session");
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(300 + round * 17_771));
            // SAFETY: a worker of this test's own gpud.
            unsafe { libc::kill(worker as i32, libc::SIGKILL) };
            Instant::now()
        });
        let code = loop {
            let code = match add(function, address, 128, 1) {
                0 => first_word(address).0,
                code => code,
            };
            if code != 0 {
                break code;
            }
        };
        let killed = killer.join().expect("killed");
        assert!(killed.elapsed() < Duration::from_secs(5), "the error came after {:?}", killed.elapsed());
        assert!(!words(code).is_empty());
        // What was under way has come to nothing, and whoever asks is told so, however often: it is not done.
        for _ in 0..2 {
            // SAFETY: no pointers.
            assert_eq!(unsafe { sluice_cuStreamSynchronize(stream) }, UNAVAILABLE);
            assert_eq!(asked(stream, event), [UNAVAILABLE; 2]);
        }
        drop(release);
        other.connection.call(&Empty).expect("the other lease is untouched");
    }
    attach();
    assert_eq!(asked(stream, event), [0; 2], "of another GPU");
    assert_eq!(alloc().0, 0);
    other.free(kept).expect("the other lease is untouched");
    other.close();
    process::get().device(0).any_session().expect("attached").close();
}
