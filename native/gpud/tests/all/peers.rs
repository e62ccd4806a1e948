//! Devices of one client that reach each other's memory.

use crate::support::broker::Broker;
use crate::support::{ADD_ONE, BASE64URL, Client, Gpud, hello_on, key, range, sign};
use base64::Engine as _;
use sluice_gpud::control::messages::EndMode;
use sluice_protocol::control::{HostReached, PeerLost};
use sluice_protocol::messages as m;
use sluice_protocol::{Failure, PEER_MEMORY, Reader, Wire, opcode};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const PEER_ACCESS_UNSUPPORTED: u32 = 217;
const ILLEGAL_ADDRESS: u32 = 700;
const NOT_SUPPORTED: u32 = 801;

/// A gpud of two devices, and a session on each.
struct Two {
    gpud: Gpud,
    first: Client,
    second: Client,
}

fn connect(gpud: &Gpud, seed: u8, device: &str, features: &[&str]) -> Client {
    connect_from(gpud, seed, device, features, "ws-test")
}

fn connect_from(gpud: &Gpud, seed: u8, device: &str, features: &[&str], workspace: &str) -> Client {
    let mut claims = gpud.claims(&key(seed), &format!("lea-{seed}"), 64 * MIB);
    claims["sub"] = workspace.into();
    claims["lease"]["deviceUuid"] = device.into();
    let token = sign(&claims);
    let (stream, welcome) = hello_on(gpud.open(), &key(seed), &token, vec![range()], None, features).expect("welcome");
    Client::around(stream, welcome, key(seed), token)
}

impl Two {
    fn new(options: &[&str], features: [&[&str]; 2]) -> Two {
        let gpud = Gpud::start(&[&["--soft-devices", "2"], options].concat());
        let first = connect(&gpud, 1, &gpud.device.clone(), features[0]);
        let second = connect(&gpud, 2, &gpud.devices[1].clone(), features[1]);
        Two { gpud, first, second }
    }

    /// The first session asks for the memory of the second.
    fn link(&mut self) -> Result<(), Failure> {
        self.first.call(&m::PeerLink { nonce: &self.second.welcome.nonce }).map(|_| ())
    }
}

#[test]
fn work_of_one_device_reaches_the_memory_of_another() {
    let mut two = Two::new(&[], [&[PEER_MEMORY]; 2]);
    assert_eq!(two.first.welcome.device.peers, [two.gpud.devices[1].clone()]);
    assert_eq!(two.second.welcome.device.peers, [two.gpud.device.clone()]);
    two.first.load(1, ADD_ONE).expect("loaded");
    let early = two.second.alloc(1024).expect("allocated");
    two.second.write(early, &[7; 1024]);
    two.second.call(&m::ContextSynchronize).expect("written");
    two.link().expect("linked");
    assert_eq!(two.link().expect_err("once").code, PEER_ACCESS_UNSUPPORTED);
    two.first.launch(1, 1, 256, &early.to_le_bytes());
    two.first.call(&m::ContextSynchronize).expect("run");
    assert_eq!(two.second.read(early, 4).expect("read"), [8, 7, 7, 7]);
    let own = two.first.alloc(1024).expect("allocated");
    two.first.send(&m::CopyOnDevice { target: own, source: early, bytes: 1024, stream: 0 });
    assert_eq!(two.first.read(own + 1020, 4).expect("copied"), [8, 7, 7, 7]);
    // Not the other way round: nobody has asked for it.
    two.second.send(&m::CopyOnDevice { target: early, source: own, bytes: 4, stream: 0 });
    assert_eq!(two.second.call(&m::ContextSynchronize).expect_err("not reached").code, 1);
    // What is freed is gone for both.
    two.second.send(&m::MemFree { address: early });
    two.second.call(&m::ContextSynchronize).expect("freed");
    two.first.send(&m::CopyOnDevice { target: own, source: early, bytes: 4, stream: 0 });
    assert_eq!(two.first.call(&m::ContextSynchronize).expect_err("freed").code, 1);
}

#[test]
fn the_end_of_a_session_ends_what_it_lent_and_nothing_else() {
    let mut two = Two::new(&[], [&[PEER_MEMORY]; 2]);
    two.link().expect("linked");
    two.first.load(1, ADD_ONE).expect("loaded");
    let (own, lent) = (two.first.alloc(1024).expect("allocated"), two.second.alloc(1024).expect("allocated"));
    two.second.call(&m::ContextSynchronize).expect("there");
    two.first.launch(1, 1, 256, &lent.to_le_bytes());
    two.first.call(&m::ContextSynchronize).expect("reached");
    two.second.send(&m::Goodbye);
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        two.first.send(&m::CopyOnDevice { target: own, source: lent, bytes: 1024, stream: 0 });
        match two.first.call(&m::ContextSynchronize) {
            Err(failure) => break assert_eq!(failure.code, 1),
            Ok(_) => assert!(Instant::now() < deadline, "memory of a session that is over"),
        }
    }
    two.first.launch(1, 1, 256, &own.to_le_bytes());
    two.first.call(&m::ContextSynchronize).expect("its own memory is there");
    let told = two.first.notice(opcode::PEER_LOST);
    let told = PeerLost::take(&mut Reader::new(&told.payload)).expect("a notice");
    assert_eq!(told.nonce, two.second.welcome.nonce);
    // A kernel meets it as any memory that is gone.
    two.first.launch(1, 1, 256, &lent.to_le_bytes());
    assert_eq!(two.first.call(&m::ContextSynchronize).expect_err("gone").code, ILLEGAL_ADDRESS);
}

#[test]
fn a_stream_waits_for_what_another_device_was_given_before() {
    let mut two = Two::new(&[], [&[PEER_MEMORY]; 2]);
    two.link().expect("linked");
    two.first.load(1, ADD_ONE).expect("loaded");
    let own = two.first.alloc(1024).expect("allocated");
    let nonce = two.second.welcome.nonce.clone();
    // What is marked before it is asked for, after it, and never.
    for (mark, early) in [(1, true), (2, false)] {
        if early {
            two.second.send(&m::PeerMark { mark, stream: 0 });
            two.second.call(&m::ContextSynchronize).expect("passed");
        }
        two.first.send(&m::PeerWait { stream: 0, nonce: &nonce, mark });
        two.first.launch(1, 1, 256, &own.to_le_bytes());
        if !early {
            two.second.send(&m::PeerMark { mark, stream: 0 });
        }
        two.first.call(&m::ContextSynchronize).expect("went on");
    }
    // A mark tells nothing of errors, and takes none away.
    two.second.send(&m::CopyOnDevice { target: own, source: own, bytes: 4, stream: 0 });
    two.second.send(&m::PeerMark { mark: 9, stream: 0 });
    two.first.send(&m::PeerWait { stream: 0, nonce: &nonce, mark: 9 });
    two.first.call(&m::ContextSynchronize).expect("no error of its own");
    assert_eq!(two.second.call(&m::ContextSynchronize).expect_err("memory that it does not have").code, 1);
    // Of an event it is the newest recording when it is marked: the next one is behind what waits here.
    two.second.send(&m::EventCreate { event: 16, flags: 2 });
    two.second.send(&m::HostFunction { function: 7, stream: 0 });
    two.second.send(&m::EventRecord { event: 16, stream: 0 });
    two.second.send(&m::StreamCreate { stream: 32, flags: 1, priority: 0 });
    two.second.send(&m::StreamWaitEvent { stream: 32, event: 16 });
    two.second.send(&m::PeerMark { mark: 3, stream: 32 });
    two.second.send(&m::StreamDestroy { stream: 32 });
    let reached =
        HostReached::take(&mut Reader::new(&two.second.notice(opcode::HOST_REACHED).payload)).expect("notice");
    two.second.send(&m::HostFunction { function: 8, stream: 0 });
    two.second.send(&m::EventRecord { event: 16, stream: 0 });
    two.first.send(&m::PeerWait { stream: 0, nonce: &nonce, mark: 3 });
    two.first.launch(1, 1, 256, &own.to_le_bytes());
    assert_eq!(two.first.call(&m::StreamQuery { stream: 0 }).expect("asked").ready, 0, "it waits");
    two.second.send(&m::HostReturned { ticket: reached.ticket });
    two.first.call(&m::ContextSynchronize).expect("went on");
    // The end of the other session is the end of the wait.
    two.second.send(&m::PeerMark { mark: 4, stream: 0 });
    two.first.send(&m::PeerWait { stream: 0, nonce: &nonce, mark: 4 });
    two.first.launch(1, 1, 256, &own.to_le_bytes());
    assert_eq!(
        two.first.call(&m::StreamQuery { stream: 0 }).expect("asked").ready,
        0,
        "the second function has not ended"
    );
    two.second.send(&m::Goodbye);
    assert_eq!(two.first.read(own, 4).expect("went on"), [4, 0, 0, 0]);
    two.first.send(&m::PeerWait { stream: 0, nonce: &nonce, mark: 5 });
    two.first.call(&m::ContextSynchronize).expect("nobody is waited for");
}

#[test]
fn who_does_not_hold_the_other_session_gets_nothing_of_it() {
    let mut two = Two::new(&[], [&[PEER_MEMORY]; 2]);
    let (own, other) = (two.first.welcome.clone(), two.second.welcome.clone());
    let unknown = BASE64URL.encode([7; 32]);
    for (nonce, case) in [
        (own.nonce.as_str(), "its own session"),
        ("", "none"),
        ("no base64url!", "no nonce"),
        (&unknown, "a session that is not there"),
        (&other.session_id, "a session's name"),
    ] {
        let refused = two.first.call(&m::PeerLink { nonce }).expect_err(case);
        assert_eq!(refused.code, PEER_ACCESS_UNSUPPORTED, "{case}: {}", refused.text);
    }
    // Two sessions on one device reach it each for itself.
    let mut third = connect(&two.gpud, 3, &two.gpud.devices[1].clone(), &[PEER_MEMORY]);
    let refused = third.call(&m::PeerLink { nonce: &other.nonce }).expect_err("the same device");
    assert_eq!(refused.code, PEER_ACCESS_UNSUPPORTED);
    // The nonce of a session of another workspace, however it came to be known.
    let mut stranger = connect_from(&two.gpud, 4, &two.gpud.device.clone(), &[PEER_MEMORY], "ws-other");
    let refused = stranger.call(&m::PeerLink { nonce: &other.nonce }).expect_err("another workspace");
    assert_eq!(refused.code, PEER_ACCESS_UNSUPPORTED);
    assert!(refused.text.contains("workspace"), "{}", refused.text);
    two.link().expect("nothing of it has spoiled anything");
}

#[test]
fn a_session_whose_lease_has_ended_lends_nothing() {
    let mut broker = Broker::new();
    let gpud = Gpud::join(&mut broker, &["--soft-devices", "2"]);
    broker.welcome(1, &["lea-1", "lea-2"]);
    let mut first = connect(&gpud, 1, &gpud.device.clone(), &[PEER_MEMORY]);
    let mut second = connect(&gpud, 2, &gpud.devices[1].clone(), &[PEER_MEMORY]);
    second.alloc(1024).expect("allocated");
    second.call(&m::ContextSynchronize).expect("there");
    broker.end_lease("lea-2", EndMode::Park, "Taken back.");
    assert_eq!(broker.lease_ended("lea-2"), 1024);
    let refused = first.call(&m::PeerLink { nonce: &second.welcome.nonce }).expect_err("its memory is parked");
    assert_eq!(refused.code, PEER_ACCESS_UNSUPPORTED, "{}", refused.text);
    // With its next lease it is there again.
    let mut claims = gpud.claims(&key(2), "lea-3", 64 * MIB);
    claims["lease"]["deviceUuid"] = gpud.devices[1].clone().into();
    second.rebind(&sign(&claims)).expect("a new lease");
    first.call(&m::PeerLink { nonce: &second.welcome.nonce }).expect("linked");
}

#[test]
fn memory_is_lent_only_where_it_was_asked_for() {
    let mut two = Two::new(&[], [&[PEER_MEMORY], &[]]);
    assert!(two.second.welcome.device.peers.is_empty());
    assert_eq!(two.link().expect_err("a session of one device").code, NOT_SUPPORTED);
    let two = Two::new(&["--peer-memory", "off"], [&[PEER_MEMORY]; 2]);
    assert!(two.first.welcome.device.peers.is_empty() && two.second.welcome.device.peers.is_empty());
}
