//! Bulk copies between processes of one host go through memory that both have mapped, and through the socket where the
//! other end of it is not on this host after all.

use sluice_client::bulk::BULK_IN_BYTES;
use sluice_client::dial::{Key, Ticket};
use sluice_client::session::Session;
use sluice_conformance::gpud::Gpud;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MEMORY: u64 = 256 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder of this test's own, with a short name: the path of a socket has at most a hundred characters.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("sluice-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a folder");
    path
}

fn gpud(sockets: &Path) -> Gpud {
    Gpud::start("soft", &["--sockets", sockets.to_str().expect("UTF-8")]).expect("gpud")
}

fn open(gpud: &Gpud, nearby: Option<PathBuf>) -> Arc<Session> {
    static GENERATION: AtomicU64 = AtomicU64::new(1000);
    let key = Arc::new(Key::generate().expect("key"));
    let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
    let lease = format!("lea-{generation}");
    let token = gpud.token(&key.public(), &lease, MEMORY);
    let ticket =
        Ticket { address: gpud.address.parse().expect("address"), nearby, pin: None, token, key, several: false };
    Session::open(ticket, generation, 0, lease).expect("opened")
}

fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 31 + index / 4093 + seed) as u8).collect()
}

/// Copies there and back.
fn copies(session: &Arc<Session>, seed: usize, bytes: usize) {
    let sent = pattern(seed, bytes);
    let mut back = vec![0; bytes];
    let address = session.alloc(bytes as u64, 0).expect("memory");
    // SAFETY: both live, untouched, until the calls return.
    unsafe {
        session.connection.copy_in(address, 0, sent.as_ptr(), bytes).expect("lanes").expect("copied");
        session.connection.copy_out(address, 0, back.as_mut_ptr(), bytes).expect("lanes").expect("copied");
    }
    assert!(sent == back, "bytes changed on the way");
    session.free(address).expect("freed");
}

/// How many lanes of this process and the gpud's workers go through shared memory.
fn shared_lanes(gpud: &Gpud) -> (usize, usize) {
    let of = |process: &str| {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        maps.lines().filter(|line| line.contains("memfd:sluice-lane")).count()
    };
    (of("self"), gpud.workers().iter().map(|pid| of(&pid.to_string())).sum())
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Passes bytes on between two sockets, as a line to another host does: descriptors beside them are lost.
fn line(from: PathBuf, to: PathBuf) {
    let _ = std::fs::remove_file(&from);
    let listener = UnixListener::bind(from).expect("listens");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = UnixStream::connect(&to).expect("gpud listens");
            for (mut from, mut to) in [
                (client.try_clone().expect("copy"), server.try_clone().expect("copy")),
                (server.try_clone().expect("copy"), client.try_clone().expect("copy")),
            ] {
                std::thread::spawn(move || {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        if to.write_all(&buffer[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
}

#[test]
fn large_copies_of_one_host_share_memory_and_others_take_the_socket() -> io::Result<()> {
    let sockets = folder("near");
    let gpud = gpud(&sockets);
    let socket = sockets.join("conformance.sock");

    // Over TCP, without a socket, and at a socket that is not there any more.
    for nearby in [None, Some(sockets.join("another.sock"))] {
        let session = open(&gpud, nearby);
        copies(&session, 1, 3 * BULK_IN_BYTES + 12_345);
        assert_eq!(shared_lanes(&gpud), (0, 0));
        session.close();
    }

    // What carries bytes alone carries the copies too.
    let far = sockets.join("far.sock");
    line(far.clone(), socket.clone());
    let session = open(&gpud, Some(far));
    copies(&session, 2, 3 * BULK_IN_BYTES + 12_345);
    assert_eq!(shared_lanes(&gpud).0, 0);
    session.close();
    until("the workers are gone", || shared_lanes(&gpud) == (0, 0));

    let session = open(&gpud, Some(socket.clone()));
    copies(&session, 3, BULK_IN_BYTES);
    let (here, there) = shared_lanes(&gpud);
    assert!(here > 0 && there > 0, "{here} and {there} lanes share memory");
    // Of all lengths, several at a time.
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let session = &session;
            scope.spawn(move || {
                for round in 0..6 {
                    copies(session, 10 * thread + round, BULK_IN_BYTES + round * 1_234_567 + thread);
                }
            });
        }
    });
    // It is nobody's memory of the lease.
    assert_eq!(session.used_bytes(), 0);

    // A worker that is killed takes its side with it, in the middle of a copy.
    let worker = gpud.workers().into_iter().find(|pid| gpud.serves(*pid)).expect("a worker");
    let bytes = 64 << 20;
    let (address, data) = (session.alloc(bytes as u64, 0).expect("memory"), pattern(5, bytes));
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(15));
        // SAFETY: a worker of this test's own gpud.
        unsafe { libc::kill(worker as i32, libc::SIGKILL) };
        Instant::now()
    });
    let outcome = loop {
        // SAFETY: it lives, untouched, until the call returns.
        let copied = unsafe { session.connection.copy_in(address, 0, data.as_ptr(), bytes) };
        match copied.expect("lanes") {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    let killed = killer.join().expect("no panic");
    assert!(killed.elapsed() < Duration::from_secs(5), "the error came after {:?}", killed.elapsed());
    assert_ne!(outcome.code, 0);
    session.close();
    until("the memory is gone on this side", || shared_lanes(&gpud).0 == 0);

    // The next session is not touched by it.
    let session = open(&gpud, Some(socket));
    copies(&session, 6, 2 * BULK_IN_BYTES);
    session.close();
    until("the memory is gone on both sides", || shared_lanes(&gpud) == (0, 0));
    std::fs::remove_dir_all(&sockets)
}
