//! Clients whose processes have ended without a goodbye, and clients that only lost their connection.

use crate::support::{Client, Gpud, PATIENCE, key, range, say_hello_as, sign};
use sluice_protocol::handshake::{Handshake, Welcome};
use sluice_protocol::messages as m;
use sluice_transport::{Address, Stream, read_handshake};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// From when on a client that is away counts as gone (`ledger::GONE_TIME`).
const GONE_TIME: Duration = Duration::from_secs(3);
/// The same where its connection was closed and another client stayed connected (`ledger::CLOSED_GONE_TIME`).
const CLOSED_GONE_TIME: Duration = Duration::from_millis(750);
/// Seed of the key of the client in another process.
const OTHER: u8 = 77;
const SOCKET: &str = "GPUD_TEST_SOCKET";
const TOKEN: &str = "GPUD_TEST_TOKEN";
const CALLED: &str = "GPUD_TEST_CALLED";

/// A gpud with a Unix socket.
struct Nearby {
    gpud: Gpud,
    address: Address,
    folder: PathBuf,
}

impl Nearby {
    fn start(name: &str) -> Nearby {
        let folder = std::env::temp_dir().join(format!("gpud-{name}-{}", std::process::id()));
        let gpud = Gpud::start(&["--sockets", folder.to_str().expect("UTF-8")]);
        let address = Address::Unix(folder.join(format!("{}.sock", gpud.server_id)));
        Nearby { gpud, address, folder }
    }

    fn token(&self) -> String {
        sign(&self.gpud.claims(&key(OTHER), "lea-1", 64 * MIB))
    }

    /// A client in a process of its own with 48 MiB; with `called`, the process calls itself by another number.
    fn client_process(&self, token: &str, called: Option<u32>) -> Child {
        let Address::Unix(socket) = &self.address else { unreachable!("made above") };
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "gone::a_helper", "--nocapture"]).env(SOCKET, socket).env(TOKEN, token);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(called) = called {
            command.env(CALLED, called.to_string());
        }
        let mut child = command.spawn().expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with("allocated")), "the client has its memory");
        child
    }
}

impl Drop for Nearby {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// In the process of [`Nearby::client_process`]: the client, which lives as long as the test that started it.
#[test]
fn a_helper() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let token = std::env::var(TOKEN).expect("a token");
    let called = std::env::var(CALLED).map_or(std::process::id(), |text| text.parse().expect("a number"));
    let mut stream = Stream::connect(&Address::Unix(socket.into()), None, PATIENCE).expect("connected");
    say_hello_as(&mut stream, &key(OTHER), &token, vec![range()], None, &[], called).expect("said");
    let welcome = Welcome::decode(&read_handshake(&mut stream).expect("an answer").payload).expect("welcome");
    let mut client = Client::around(stream, welcome, key(OTHER), token);
    client.alloc(48 * MIB).expect("fits");
    client.call(&m::ContextSynchronize).expect("allocated");
    println!("allocated");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn free(client: &mut Client) -> u64 {
    client.call(&m::MemInfo).expect("told").free
}

/// The processes of the lease with their bytes.
fn processes(client: &mut Client) -> Vec<u64> {
    client.call(&m::LeaseProcesses).expect("told").processes.iter().map(|process| process.bytes).collect()
}

/// Waits for so many workers: one of each session, and one that is made ahead some time after the last was taken.
fn wait_for_workers(gpud: &Gpud, count: usize) {
    let began = Instant::now();
    while gpud.workers().len() != count {
        assert!(began.elapsed() < PATIENCE, "{} workers, not {count}", gpud.workers().len());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How long after `began` the whole lease is free.
fn free_after(client: &mut Client, began: Instant) -> Duration {
    while free(client) < 64 * MIB {
        assert!(began.elapsed() < PATIENCE, "the memory is not free");
        std::thread::sleep(Duration::from_millis(10));
    }
    began.elapsed()
}

#[test]
fn a_session_ends_with_the_process_of_its_client_on_the_same_host() {
    let nearby = Nearby::start("killed");
    let mut sibling = nearby.gpud.connect("lea-1", 64 * MIB);
    let token = nearby.token();
    let mut child = nearby.client_process(&token, None);
    assert_eq!((free(&mut sibling), processes(&mut sibling)), (16 * MIB, vec![0, 48 * MIB]));
    wait_for_workers(&nearby.gpud, 3);
    child.kill().expect("killed");
    // The process stays a zombie meanwhile, because its parent has not reaped it. A client that only counts as gone
    // keeps its worker.
    wait_for_workers(&nearby.gpud, 2);
    child.wait().expect("ended");
    assert_eq!(processes(&mut sibling), [0]);
}

/// A forwarder that ends says nothing about the client behind it.
#[test]
fn a_session_outlives_a_process_that_is_not_its_client() {
    let nearby = Nearby::start("forwarded");
    let mut sibling = nearby.gpud.connect("lea-1", 64 * MIB);
    let token = nearby.token();
    let mut child = nearby.client_process(&token, Some(std::process::id()));
    let began = Instant::now();
    child.kill().expect("killed");
    child.wait().expect("ended");
    let free = free_after(&mut sibling, began);
    assert!((CLOSED_GONE_TIME..GONE_TIME).contains(&free), "free after {free:?}");
    // Free to be seen, and still the client's.
    wait_for_workers(&nearby.gpud, 3);
}

#[test]
fn a_client_that_lost_its_connection_keeps_its_memory_and_others_see_it_as_free() {
    let nearby = Nearby::start("cut");
    for (lease, address) in [("lea-1", &nearby.gpud.address), ("lea-2", &nearby.address)] {
        let mut sibling = nearby.gpud.connect(lease, 64 * MIB);
        let token = sign(&nearby.gpud.claims(&key(OTHER), lease, 64 * MIB));
        let mut client = Client::connect(address, key(OTHER), token).expect("welcome");
        let data = client.alloc(48 * MIB).expect("fits");
        client.write(data, &[9; 4096]);
        client.call(&m::ContextSynchronize).expect("written");
        let began = Instant::now();
        client.hang_up(address);
        let free_at = free_after(&mut sibling, began);
        let is_soon = (CLOSED_GONE_TIME..GONE_TIME).contains(&free_at);
        assert!(is_soon, "{address}: a cut that lasts shorter is not the end: {free_at:?}");
        assert_eq!(processes(&mut sibling), [0], "{address}");
        client.resume(address).expect("welcome");
        assert_eq!(client.read(data, 4096).expect("kept"), [9; 4096]);
        assert_eq!((free(&mut sibling), processes(&mut sibling)), (16 * MIB, vec![0, 48 * MIB]), "{address}");
    }
}

/// What is shown as free can be allocated.
#[test]
fn memory_that_a_gone_client_holds_is_given_to_who_asks_for_it() {
    let nearby = Nearby::start("asked");
    let mut sibling = nearby.gpud.connect("lea-1", 64 * MIB);
    let mut client = nearby.gpud.connect("lea-1", 64 * MIB);
    client.alloc(48 * MIB).expect("fits");
    client.call(&m::ContextSynchronize).expect("allocated");
    let began = Instant::now();
    client.hang_up(&nearby.gpud.address);
    free_after(&mut sibling, began);
    sibling.alloc(64 * MIB).expect("all of it is free");
    assert!(client.resume(&nearby.gpud.address).is_err(), "its session has ended");
}
