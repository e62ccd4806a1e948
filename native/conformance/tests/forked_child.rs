//! A process that holds a lease is killed while a child that it forked lives on: nothing of the lease stays open.

use serde_json::json;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{alloc, ask, attach, fill, first_word, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::proxy::Proxy;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const NAME: &str = "a_forked_child_keeps_nothing_open";
/// Set in the process that holds the lease.
const HOLDER: &str = "SLUICE_TEST_HOLDER";

/// Ends a process that is nobody's child here.
struct Orphan(libc::pid_t);

impl Orphan {
    fn lives(&self) -> bool {
        // SAFETY: signal 0 only asks.
        unsafe { libc::kill(self.0, 0) == 0 }
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        // SAFETY: the process that the holder forked, which only waits.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

#[test]
fn a_forked_child_keeps_nothing_open() {
    if std::env::var_os(HOLDER).is_some() {
        hold();
    }
    let mut gpud = Gpud::start("soft", &[]).expect("gpud");
    let proxy = Proxy::before(&mut gpud).expect("proxy");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    let mut holder = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", NAME, "--nocapture"])
        .env(HOLDER, "1")
        .env("SLUICE_BROKER_URL", &broker.url)
        .env("SLUICE_CREDENTIAL_FILE", &broker.credential_file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(holder.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let said = lines.find_map(|line| line.split_once("holds ").map(|(_, rest)| rest.to_owned()));
    let (child, socket) = said.as_deref().and_then(|said| said.split_once(' ')).expect("the holder's words");
    let child = Orphan(child.parse().expect("a number"));
    assert_eq!(proxy.clients(), 1);
    UnixStream::connect(socket).expect("the owner answers");

    holder.kill().expect("killed");
    holder.wait().expect("ended");
    let until = Instant::now() + Duration::from_secs(5);
    while proxy.clients() > 0 {
        assert!(Instant::now() < until, "the child keeps gpud's connection open");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(UnixStream::connect(socket).is_err(), "the child keeps the owner's socket open");
    assert!(child.lives(), "the child ended early: nothing was tested");
    let _ = std::fs::remove_file(socket);
}

/// Takes a lease, uses it, forks a child that only waits, and waits to be killed.
fn hold() -> ! {
    let owner = json!({ "kind": "process", "pid": std::process::id(), "startTime": 1 });
    let ready = ask(&json!({ "op": "init", "owner": owner }));
    let socket = ready["socket"].as_str().expect("a socket");
    start();
    attach();
    let (code, address) = alloc();
    assert_eq!(code, 0);
    fill(address, 3);
    assert_eq!(first_word(address), (0, 3));
    // SAFETY: the child only waits; that it is killed in the end is up to the test.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: changes nothing but what is waited for. A child whose test has failed ends by itself.
        unsafe {
            libc::alarm(60);
            loop {
                libc::pause();
            }
        }
    }
    println!("holds {child} {socket}");
    std::thread::sleep(Duration::from_secs(60));
    std::process::exit(1)
}
