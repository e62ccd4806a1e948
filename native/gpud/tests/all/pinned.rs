//! Page-locked memory of clients on gpud's host: what workers take of it, and what a client cannot do with it.

use crate::support::{Client, Gpud, PATIENCE, hello_on, key, memory_file};
use sluice_protocol::handshake::Resume;
use sluice_protocol::messages::{
    ContextSynchronize, Empty, Goodbye, HostFunction, HostReturned, PinnedClose, PinnedIn, PinnedInReply, PinnedOpen,
    PinnedOpenReply, PinnedOut, PinnedOutReply, StreamCreate,
};
use sluice_protocol::{Failure, PINNED_MEMORY, opcode};
use sluice_transport::{Address, Stream};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
const SEALED: libc::c_int = libc::F_SEAL_SHRINK;

/// A gpud with a socket, and the folder of that.
fn gpud(name: &str) -> (Gpud, Address, PathBuf) {
    let folder = std::env::temp_dir().join(format!("gpud-{name}-{}", std::process::id()));
    let gpud = Gpud::start(&["--sockets", folder.to_str().expect("UTF-8")]);
    let address = Address::Unix(folder.join(format!("{}.sock", gpud.server_id)));
    (gpud, address, folder)
}

fn open(client: &mut Client, offset: u64, bytes: u64) -> Result<PinnedOpenReply, Failure> {
    client.call(&PinnedOpen { offset, bytes })
}

fn copy_in(client: &mut Client, address: u64, offset: u64, bytes: u64) -> Result<(), Failure> {
    client.call(&PinnedIn { address, stream: 0, offset, bytes }).map(drop)
}

fn copy_out(client: &mut Client, address: u64, offset: u64, bytes: u64) -> Result<(), Failure> {
    client.call(&PinnedOut { address, stream: 0, offset, bytes }).map(drop)
}

fn at(file: &File, offset: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    file.read_exact_at(&mut data, offset).expect("read");
    data
}

#[test]
fn only_a_memory_file_that_stays_as_long_is_taken_and_only_on_this_host() {
    let (gpud, nearby, folder) = gpud("hand");
    let mut client = gpud.connect("lea-hand", 4 * MIB);
    assert!(open(&mut client, 0, PAGE).is_err(), "without a file");
    let good = memory_file(MIB, SEALED);
    // No descriptor passes a network, and a connection that brings none changes nothing.
    assert!(client.hand_over(&gpud.address, &good).is_err());
    assert!(!client.hand_over(&nearby, &memory_file(MIB, libc::F_SEAL_GROW)).expect("an answer"));
    assert!(!client.hand_over(&nearby, &File::open("/proc/self/exe").expect("open")).expect("an answer"));
    assert!(!client.hand_over(&nearby, &File::open("/dev/zero").expect("open")).expect("an answer"));
    assert!(client.hand_over(&nearby, &good).expect("an answer"));
    assert!(!client.hand_over(&nearby, &memory_file(MIB, SEALED)).expect("an answer"), "a second file");
    // Who cannot show the session's key brings nothing.
    let thief = Client::around(
        Stream::connect(&nearby, None, PATIENCE).expect("connected"),
        client.welcome.clone(),
        key(3),
        client.token.clone(),
    );
    assert!(thief.hand_over(&nearby, &good).is_err());
    open(&mut client, 0, MIB).expect("the first file's");
    client.call(&Empty).expect("undisturbed");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn places_that_are_not_open_are_refused_and_the_file_cannot_be_taken_away() {
    let (gpud, nearby, folder) = gpud("places");
    let mut client = gpud.connect("lea-places", 4 * MIB);
    let file = memory_file(2 * MIB, SEALED);
    assert!(client.hand_over(&nearby, &file).expect("an answer"));
    let address = client.alloc(MIB).expect("memory");
    for (offset, bytes) in [
        (0, 0),
        (1, PAGE),
        (0, PAGE - 1),
        (0, 2 * MIB + PAGE),
        (2 * MIB, PAGE),
        (u64::MAX - PAGE + 1, 2 * PAGE),
        (1 << 63, PAGE),
        (0, 1 << 63),
    ] {
        assert!(open(&mut client, offset, bytes).is_err(), "{offset} {bytes}");
    }
    open(&mut client, MIB, MIB).expect("mapped");
    assert!(open(&mut client, MIB + PAGE, PAGE).is_err(), "mapped already");
    let places = [(0, 1), (MIB - 1, 2), (MIB, MIB + 1), (2 * MIB, 1), (MIB + 1, u64::MAX), (u64::MAX, 2), (MIB, 0)];
    for (offset, bytes) in places {
        assert!(copy_in(&mut client, address, offset, bytes).is_err(), "{offset} {bytes}");
        assert!(copy_out(&mut client, address, offset, bytes).is_err(), "{offset} {bytes}");
    }
    // Device memory that is not the client's.
    assert!(copy_in(&mut client, address + 1, MIB, MIB).is_err());
    assert!(copy_out(&mut client, 4096, MIB, 16).is_err());

    let data: Vec<u8> = (0..5_000u32).map(|index| (index * 31 / 7) as u8).collect();
    file.write_all_at(&data, MIB + 77).expect("written");
    copy_in(&mut client, address + 3, MIB + 77, 5_000).expect("copied");
    assert_eq!(client.read(address + 3, 5_000).expect("read"), data);
    copy_out(&mut client, address + 3, MIB + 50_001, 5_000).expect("copied");
    assert_eq!(at(&file, MIB + 50_001, 5_000), data);

    // It cannot be made shorter, and pages that are taken out of it are zero.
    assert!(file.set_len(MIB).is_err());
    let (from, bytes) = (MIB as libc::off_t, MIB as libc::off_t);
    let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: numbers alone.
    assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), flags, from, bytes) }, 0);
    copy_in(&mut client, address + 3, MIB + 77, 5_000).expect("copied");
    assert_eq!(client.read(address + 3, 5_000).expect("read"), vec![0; 5_000]);

    client.send(&PinnedClose { offset: MIB });
    assert!(copy_in(&mut client, address, MIB, 1).is_err(), "closed");
    client.send(&PinnedClose { offset: MIB });
    assert!(!client.async_error().sticky);
    client.call(&ContextSynchronize).expect_err("what was posted has failed");
    open(&mut client, MIB, MIB).expect("once more");
    client.call(&Empty).expect("undisturbed");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_copy_keeps_its_place_and_outlasts_the_end_of_its_memory() {
    let (gpud, nearby, folder) = gpud("order");
    let mut client = gpud.connect("lea-order", 64 * MIB);
    let file = memory_file(16 * MIB, SEALED);
    assert!(client.hand_over(&nearby, &file).expect("an answer"));
    open(&mut client, 0, 16 * MIB).expect("mapped");
    let address = client.alloc(16 * MIB).expect("memory");
    client.send(&StreamCreate { stream: 7, flags: 1, priority: 0 });
    let word = |file: &File, value: u32| file.write_all_at(&value.to_le_bytes(), 8 * MIB).expect("written");
    word(&file, 1);
    // A host function holds the stream until the client says that it has returned.
    client.send(&HostFunction { stream: 7, function: 1 });
    let reached = client.notice(opcode::HOST_REACHED);
    let inward = client.send(&PinnedIn { address, stream: 7, offset: 0, bytes: 16 * MIB });
    let outward = client.send(&PinnedOut { address, stream: 7, offset: 0, bytes: 16 * MIB });
    client.send(&PinnedClose { offset: 0 });
    assert!(copy_in(&mut client, address, 0, 1).is_err(), "closed");
    // The copy has not begun.
    word(&file, 2);
    let ticket = u64::from_le_bytes(*reached.payload.first_chunk().expect("a ticket"));
    client.send(&HostReturned { ticket });
    client.answer::<PinnedInReply>(inward).expect("copied");
    client.answer::<PinnedOutReply>(outward).expect("copied");
    assert_eq!(client.read(address + 8 * MIB, 4).expect("read"), 2u32.to_le_bytes());
    assert_eq!(at(&file, 8 * MIB, 4), 2u32.to_le_bytes());
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn all_processes_of_a_lease_have_no_more_of_it_mapped_than_device_memory() {
    let (gpud, nearby, folder) = gpud("limit");
    let [mut first, mut second] = [(); 2].map(|()| {
        let client = gpud.connect("lea-limit", 4 * MIB);
        let file = memory_file(64 * MIB, SEALED);
        assert!(client.hand_over(&nearby, &file).expect("an answer"));
        client
    });
    open(&mut first, 0, 3 * MIB).expect("mapped");
    let refused = open(&mut second, 0, 2 * MIB).expect_err("too much");
    assert_eq!(refused.code, 2, "{refused}");
    open(&mut second, 0, MIB).expect("mapped");
    assert!(open(&mut first, 3 * MIB, PAGE).is_err());
    // It is no device memory.
    first.alloc(4 * MIB).expect("memory");
    first.send(&PinnedClose { offset: 0 });
    first.call(&Empty).expect("closed");
    open(&mut second, MIB, 3 * MIB).expect("mapped");
    // Another lease has its own.
    let mut other = gpud.connect("lea-other", 4 * MIB);
    assert!(other.hand_over(&nearby, &memory_file(4 * MIB, SEALED)).expect("an answer"));
    open(&mut other, 0, 4 * MIB).expect("mapped");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_end_of_a_worker_is_the_end_of_the_connection_that_brought_it_memory() {
    let (gpud, nearby, folder) = gpud("line");
    let mut client = gpud.connect("lea-line", 4 * MIB);
    let (taken, mut line) = client.hand_over_on(&nearby, &memory_file(MIB, SEALED)).expect("an answer");
    assert!(taken);
    line.set_timeout(Some(Duration::from_millis(300))).expect("set");
    let error = line.read(&mut [0]).expect_err("nothing more is said");
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    client.send(&Goodbye);
    line.set_timeout(Some(PATIENCE)).expect("set");
    assert_eq!(line.read(&mut [0]).expect("an orderly end"), 0);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_connection_that_brings_no_descriptor_disturbs_nobody() {
    let (gpud, nearby, folder) = gpud("none");
    let mut client = gpud.connect("lea-none", 4 * MIB);
    let resume = || {
        let (session_id, received) = (client.welcome.session_id.clone(), client.received);
        Some(Resume { session_id, received })
    };
    for bytes in [&b""[..], b"x", b"a hundred bytes and more that nobody has asked for"] {
        let stream = Stream::connect(&nearby, None, PATIENCE).expect("connected");
        let features = [PINNED_MEMORY];
        let (mut stream, _) =
            hello_on(stream, &client.key, &client.token, vec![], resume(), &features).expect("welcome");
        stream.write_all(bytes).expect("sent");
    }
    client.call(&Empty).expect("undisturbed");
    assert!(client.hand_over(&nearby, &memory_file(MIB, SEALED)).expect("an answer"));
    std::fs::remove_dir_all(folder).expect("removed");
}
