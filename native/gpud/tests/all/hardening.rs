//! What a worker may do to its host, and what gpud sends over a network.

use crate::support::broker::Broker;
use crate::support::{
    ADD_ONE, BASE64URL, Client, Gpud, HelloError, NAME, PATIENCE, hello, hello_on, key, range, say_hello, sign, unique,
};
use base64::Engine as _;
use ring::signature::KeyPair as _;
use serde_json::Value;
use sluice_protocol::frame::Header;
use sluice_protocol::handshake::{AddressRange, Handshake, Refused, RefusedCode, Resume};
use sluice_protocol::messages::{Empty, MemGrow};
use sluice_protocol::reply::decode_reply;
use sluice_protocol::{cuda, opcode};
use sluice_transport::{Address, read_handshake};
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const NOBODY: u32 = 65534;

fn user() -> u32 {
    // SAFETY: has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

/// The values of one line of a process's status; nothing if there is no such process.
fn status(pid: u32, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// A session computes, and its worker has none of root's rights.
fn serves_without_rights(gpud: &Gpud) {
    let worker = gpud.next_worker();
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(10, ADD_ONE).expect("loaded");
    let data = client.alloc(1024).expect("memory");
    client.write(data, &[0; 1024]);
    client.launch(10, 1, 256, &data.to_le_bytes());
    assert_eq!(client.read(data, 1024).expect("result"), [1, 0, 0, 0].repeat(256));
    let uid = if user() == 0 { NOBODY } else { user() }.to_string();
    assert_eq!(status(worker, "Uid"), [&*uid, &*uid, &*uid, &*uid]);
    if user() == 0 {
        assert_eq!(status(worker, "Gid"), ["65534"; 4]);
        assert_eq!(status(worker, "Groups"), [""; 0]);
    }
    for rights in ["CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(status(worker, rights), ["0000000000000000"], "{rights}");
    }
    assert_eq!(status(worker, "NoNewPrivs"), ["1"]);
    // A filter of system calls: `supervisor/seccomp.rs`.
    assert_eq!(status(worker, "Seccomp"), ["2"]);
}

#[test]
fn a_worker_is_nobody_on_its_host() {
    serves_without_rights(&Gpud::start(&[]));
}

/// As [`Gpud::start`], with another copy of the program.
fn start_copy(program: &Path, state: PathBuf) -> Gpud {
    let trusted = format!("k1={}", BASE64URL.encode(key(1).public_key().as_ref()));
    let mut command = Command::new(program);
    command.args(["--backend", "soft", "--name", NAME, "--listen", "127.0.0.1:0", "--trust-key", &trusted]);
    command.arg("--state").arg(&state).stdout(Stdio::piped());
    let mut child = command.spawn().expect("gpud starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("ready line");
    let ready: Value = serde_json::from_str(&line).expect("JSON");
    let address = ready["address"].as_str().expect("address").parse().expect("address");
    let listed = Command::new(program).args(["devices", "--backend", "soft", "--state"]).arg(&state).output();
    let devices: Value = serde_json::from_slice(&listed.expect("gpud devices").stdout).expect("JSON");
    let device = devices[0]["uuid"].as_str().expect("uuid").to_owned();
    Gpud { child, address, pin: None, state, devices: vec![device.clone()], device, server_id: NAME.to_owned() }
}

/// A copy of the program in a folder that its owner alone may enter; removed with the value.
struct Copy(PathBuf);

impl Copy {
    fn new(mode: u32) -> Copy {
        let folder = std::env::temp_dir().join(format!("gpud-private-{}-{}", std::process::id(), unique()));
        std::fs::create_dir(&folder).expect("folder");
        std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("mode");
        let copy = Copy(folder);
        // By another process: what this one has open for writing, a child that another test forks has open too, and
        // a program that somebody writes to cannot be started.
        let copied = Command::new("cp").arg(sluice_testing::program("gpud")).arg(copy.program()).status();
        assert!(copied.expect("cp").success());
        std::fs::set_permissions(copy.program(), Permissions::from_mode(mode)).expect("mode");
        copy
    }

    fn program(&self) -> PathBuf {
        self.0.join("gpud")
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn workers_start_from_a_folder_that_only_its_owner_enters() {
    let copy = Copy::new(0o755);
    serves_without_rights(&start_copy(&copy.program(), copy.0.join("state")));
}

#[test]
fn a_program_that_workers_may_not_start_is_named_at_once() {
    if user() != 0 {
        // Who is not root starts workers as themselves.
        return;
    }
    let copy = Copy::new(0o700);
    let mut command = Command::new(copy.program());
    command.args(["--backend", "soft", "--listen", "127.0.0.1:0", "--trust-key"]);
    command.arg(format!("k1={}", BASE64URL.encode(key(1).public_key().as_ref())));
    let output = command.arg("--state").arg(copy.0.join("state")).output().expect("gpud ends");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(&format!("chmod o+x {}", copy.program().display())), "{text}");
}

#[test]
fn a_worker_that_takes_no_orders_is_ended_and_holds_nobody_up() {
    let gpud = Gpud::start(&["--listen", "tls://127.0.0.1:0"]);
    let worker = gpud.next_worker();
    let client = gpud.connect("lea-1", 64 * MIB);
    // SAFETY: a worker of this test's own gpud.
    assert_eq!(unsafe { libc::kill(worker as libc::pid_t, libc::SIGSTOP) }, 0);
    let resume = || Some(Resume { session_id: client.welcome.session_id.clone(), received: 0 });
    let mut lines = Vec::new();
    while !status(worker, "State").is_empty() {
        assert!(lines.len() < 2000, "it has been told enough");
        let mut line = gpud.open();
        say_hello(&mut line, &client.key, &client.token, vec![], resume(), &[]).expect("said");
        lines.push(line);
        if lines.len().is_multiple_of(50) {
            gpud.connect("lea-2", 64 * MIB).alloc(MIB).expect("others are served");
        }
    }
    assert!(lines.len() > 50, "it was ended after {} orders", lines.len());
    gpud.connect("lea-2", 64 * MIB).alloc(MIB).expect("others are served");
}

#[test]
fn a_worker_that_ends_before_it_serves_is_replaced() {
    let gpud = Gpud::start(&[]);
    let worker = gpud.next_worker();
    // SAFETY: a worker of this test's own gpud.
    assert_eq!(unsafe { libc::kill(worker as libc::pid_t, libc::SIGKILL) }, 0);
    std::thread::sleep(Duration::from_millis(100));
    gpud.connect("lea-1", 64 * MIB).alloc(MIB).expect("served");
}

#[test]
fn a_client_is_refused_and_the_log_says_why_when_its_worker_ends_before_it_answers() {
    for listen in ["tcp://127.0.0.1:0", "tls://127.0.0.1:0"] {
        let path = std::env::temp_dir().join(format!("gpud-unanswered-{}.log", std::process::id()));
        let gpud = Gpud::start_logging(std::fs::File::create(&path).expect("log"), &["--listen", listen]);
        let owner = key(9);
        let token = sign(&gpud.claims(&owner, "lea-1", 64 * MIB));
        let mut line = gpud.open();
        let worker = gpud.stop_next_worker();
        say_hello(&mut line, &owner, &token, vec![range()], None, &[]).expect("said");
        gpud.wait_until_taken(worker);
        // SAFETY: a worker of this test's own gpud.
        assert_eq!(unsafe { libc::kill(worker as libc::pid_t, libc::SIGKILL) }, 0);
        let answer = read_handshake(&mut line).expect("an answer");
        assert_eq!(answer.header.opcode, opcode::REFUSED, "{listen}");
        let refused = Refused::decode(&answer.payload).expect("refusal");
        assert_eq!(refused.code, RefusedCode::Unavailable, "{listen}");
        assert!(refused.text.contains("ended before it answered") && refused.text.contains("signal: 9"), "{refused:?}");
        let log = std::fs::read_to_string(&path).expect("log");
        assert!(log.contains(&refused.text), "{log}");
        gpud.connect("lea-1", 64 * MIB).alloc(64 * MIB).expect("the seat is free again");
        let _ = std::fs::remove_file(path);
    }
}

#[test]
fn a_spoiled_record_ends_the_line_and_the_session_goes_on() {
    let gpud = Gpud::start(&["--listen", "tls://127.0.0.1:0"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    let data = client.alloc(MIB).expect("memory");
    client.write(data, &[7; 1000]);
    client.call(&Empty).expect("written");
    let record = [&[23, 3, 3, 0, 32][..], &[0xaa; 32]].concat();
    // SAFETY: so many bytes.
    let sent = unsafe { libc::send(client.stream.as_raw_fd(), record.as_ptr().cast(), record.len(), 0) };
    assert_eq!(sent, record.len() as isize);
    assert!(client.next().is_err(), "the line goes on");
    let resume = Resume { session_id: client.welcome.session_id.clone(), received: client.received };
    let back = hello_on(gpud.open(), &client.key, &client.token, vec![], Some(resume), &[]);
    client.stream = back.expect("welcome").0;
    assert_eq!(client.read(data, 1000).expect("the session is there"), [7; 1000]);
}

#[test]
fn of_many_proposed_ranges_the_first_are_looked_at() {
    let gpud = Gpud::start(&[]);
    let owner = key(9);
    let token = sign(&gpud.claims(&owner, "lea-1", 64 * MIB));
    let ranges = (0..3800).map(|index| AddressRange { base: (0x2000 + index) << 32, bytes: 16 << 30 }).collect();
    let (stream, welcome) = hello(&gpud.address, &owner, &token, ranges, None).expect("welcome");
    Client::around(stream, welcome, owner, token).alloc(MIB).expect("served");
}

#[test]
fn a_worker_ends_with_its_supervisor_even_when_it_cannot_notice() {
    let mut gpud = Gpud::start(&[]);
    let worker = gpud.next_worker();
    // SAFETY: this gpud's own worker; a stopped process reads no end of a socket.
    unsafe { libc::kill(worker as i32, libc::SIGSTOP) };
    gpud.child.kill().expect("killed");
    gpud.child.wait().expect("ended");
    let deadline = Instant::now() + PATIENCE;
    while !matches!(status(worker, "State").first().map(String::as_str), None | Some("Z" | "X")) {
        assert!(Instant::now() < deadline, "the worker outlives its supervisor");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file on which every write fails with "no space left on device".
fn full_disk() -> Stdio {
    Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").expect("every Linux has it"))
}

/// Threads of a process.
fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

#[test]
fn growths_without_number_wait_on_one_thread() {
    let gpud = Gpud::start(&[]);
    // A sibling that keeps its idle credit: every growth waits for it.
    let mut sibling = gpud.connect("lea-1", 64 * MIB);
    sibling.call(&MemGrow { bytes: 48 * MIB }).expect("credit");
    let mut client = gpud.connect("lea-1", 64 * MIB);
    let before = threads(gpud.child.id());
    let mut unanswered: BTreeSet<u64> = (0..3000).map(|_| client.send(&MemGrow { bytes: 48 * MIB })).collect();
    let (began, mut most) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(500) {
        most = most.max(threads(gpud.child.id()));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(most <= before + 2, "{before} threads became {most}");
    // Each is answered, those that wait and those that are too many.
    while !unanswered.is_empty() {
        let frame = client.next().expect("an answer");
        let (call, answer) = decode_reply(&frame.payload).expect("an answer");
        assert_eq!(answer.expect_err("the sibling keeps it").code, cuda::ERROR_OUT_OF_MEMORY);
        assert!(unanswered.remove(&call), "answered twice");
    }
    assert!(began.elapsed() < PATIENCE, "answered after {:?}", began.elapsed());
    client.alloc(8 * MIB).expect("the session goes on");
}

#[test]
fn a_log_that_cannot_be_written_ends_nothing() {
    let mut broker = Broker::new();
    let gpud = Gpud::join_logging(&mut broker, &[], full_disk());
    broker.welcome(1, &["lea-1"]);
    // The threads of a hello, of the control channel and of a worker's frames each have something to tell.
    let mut noise = gpud.open();
    noise.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    let mut broken = gpud.connect("lea-1", 64 * MIB);
    broken
        .stream
        .write_all(&Header { len: u32::MAX, opcode: 256, seq: 1, ..Header::default() }.encode())
        .expect("sent");
    assert!(broken.next().is_err(), "a frame that is too long ends its session");
    broker.hang_up();
    broker.welcome(2, &["lea-1"]);
    gpud.connect("lea-1", 64 * MIB).alloc(MIB).expect("served");
}

#[test]
fn a_ready_line_that_cannot_be_written_ends_nothing() {
    let state = std::env::temp_dir().join(format!("gpud-full-{}-{}", std::process::id(), unique()));
    let socket = state.join("s");
    std::fs::create_dir_all(&state).expect("folder");
    let trusted = format!("k1={}", BASE64URL.encode(key(1).public_key().as_ref()));
    let listen = format!("unix://{}", socket.display());
    let mut command = Command::new(sluice_testing::program("gpud"));
    command.args(["--backend", "soft", "--name", NAME, "--trust-key", &trusted, "--listen", &listen, "--state"]);
    let child = command.arg(&state).stdout(full_disk()).stderr(full_disk()).spawn().expect("gpud starts");
    let address = Address::Unix(socket.clone());
    // The device is not known before gpud has told its name: a refusal shows that gpud serves.
    let gpud =
        Gpud { child, address, pin: None, state, devices: vec![], device: String::new(), server_id: NAME.to_owned() };
    let deadline = Instant::now() + PATIENCE;
    while !socket.exists() {
        assert!(Instant::now() < deadline, "gpud does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let token = sign(&gpud.claims(&key(9), "lea-1", 64 * MIB));
    for _ in 0..2 {
        let answer = hello_on(gpud.open(), &key(9), &token, vec![range()], None, &[]);
        assert!(matches!(answer, Err(HelloError::Refused(_))), "gpud serves");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_token_is_not_sent_over_a_network_in_the_clear() {
    let state = std::env::temp_dir().join(format!("gpud-clear-{}-{}", std::process::id(), unique()));
    // An address of documentation, where nobody answers: had gpud dialled it, it would say so instead.
    let mut command = Command::new(sluice_testing::program("gpud"));
    command.args(["join", "http://192.0.2.1:3001", "--token", "slj_t", "--backend", "soft", "--listen", "127.0.0.1:0"]);
    let output = command.arg("--state").arg(&state).output().expect("gpud ends");
    let _ = std::fs::remove_dir_all(&state);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("use https://192.0.2.1:3001"), "{text}");
}
