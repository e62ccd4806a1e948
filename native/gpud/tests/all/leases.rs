//! The ends and returns of leases, as the broker orders them.

use crate::support::broker::Broker;
use crate::support::{
    ADD_ONE, Client, ENDLESS, Gpud, HelloError, PATIENCE, WAITING, hello, key, pin_of, processor_time, range,
    say_hello, sign,
};
use sluice_gpud::control::messages::{BrokerMessage, EndMode, GpudMessage, LeaseUsage, RunningKernel};
use sluice_protocol::control::HostReached;
use sluice_protocol::handshake::{Handshake, Refused, RefusedCode, Welcome};
use sluice_protocol::messages as m;
use sluice_protocol::{LeaseProcess, Reader, Wire, cuda, opcode};
use sluice_transport::{Stream, read_handshake};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn joined(options: &[&str], leases: &[&str]) -> (Broker, Gpud) {
    let mut broker = Broker::new();
    let gpud = Gpud::join(&mut broker, options);
    broker.welcome(1, leases);
    (broker, gpud)
}

/// A token for the client of this connection and another lease.
fn next_token(gpud: &Gpud, client: &Client, lease: &str, memory: u64) -> String {
    sign(&gpud.claims(&client.key, lease, memory))
}

#[test]
fn a_server_joins_and_is_in_the_pool_again_after_the_line_was_lost() {
    let mut broker = Broker::new();
    let gpud = Gpud::join(&mut broker, &["--soft-memory", "2G", "--soft-devices", "2"]);
    let hello = broker.welcome(1, &[]);
    assert_eq!(hello["serverId"], "gsv-test");
    assert_eq!(hello["devices"].as_array().map(Vec::len), Some(2));
    assert_eq!(hello["devices"][1]["memoryBytes"], 2u64 << 30);
    assert_eq!(hello["dataAddress"], gpud.address.to_string());
    broker.hang_up();
    let again = broker.welcome(2, &[]);
    assert_eq!(again["devices"], hello["devices"]);
    broker.say(&BrokerMessage::Ping { nonce: "n".to_owned() });
    broker.hear(|message| matches!(message, GpudMessage::Pong { nonce } if nonce == "n"));
}

#[test]
fn an_encrypted_line_is_pinned_by_the_fingerprint_in_the_hello() {
    let mut broker = Broker::new();
    let gpud = Gpud::join(&mut broker, &["--listen", "tls://127.0.0.1:0"]);
    let hello = broker.welcome(1, &["lea-1"]);
    assert!(hello["dataAddress"].as_str().is_some_and(|address| address.starts_with("tls://")), "{hello}");
    let pin = pin_of(hello["tlsFingerprint"].as_str().expect("told"));
    assert!(Stream::connect(&gpud.address, Some(&[0; 32]), PATIENCE).is_err(), "another certificate is not trusted");
    let stream = Stream::connect(&gpud.address, Some(&pin), PATIENCE).expect("pinned");
    let owner = key(99);
    let token = sign(&gpud.claims(&owner, "lea-1", 64 * MIB));
    let mut client = Client::connect_on(stream, owner, token).expect("welcome");
    let data = client.alloc(8 * MIB).expect("fits");
    let bytes: Vec<u8> = (0..8 * MIB).map(|number| (number % 251) as u8).collect();
    client.write(data, &bytes);
    assert_eq!(client.read(data, 8 * MIB).expect("read"), bytes);
}

#[test]
fn parked_memory_is_there_again_under_the_next_lease() {
    let (mut broker, gpud) = joined(&[], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    broker.hear(|message| matches!(message, GpudMessage::SessionOpened { lease_id, .. } if lease_id == "lea-1"));
    client.load(1, ADD_ONE).expect("loaded");
    let data = client.alloc(MIB).expect("fits");
    client.write(data, &vec![42; MIB as usize]);
    client.call(&m::ContextSynchronize).expect("written");
    broker.end_lease("lea-1", EndMode::Park, "Given back.");
    assert_eq!(broker.lease_ended("lea-1"), MIB);
    let ended = client.lease_ended();
    assert_eq!((ended.parked, ended.parked_bytes, ended.reason.as_str()), (true, MIB, "Given back."));

    let refused = client.read(data, 4).expect_err("no lease");
    assert_eq!((refused.code, refused.text.as_str()), (cuda::ERROR_DEVICE_UNAVAILABLE, "Given back."));
    // Somebody else has the device meanwhile.
    let mut other = gpud.connect("lea-2", 64 * MIB);
    other.alloc(64 * MIB).expect("all of it");

    let token = next_token(&gpud, &client, "lea-3", 32 * MIB);
    let reply = client.rebind(&token).expect("taken up");
    assert_eq!((reply.lease_id.as_str(), reply.memory_bytes), ("lea-3", 32 * MIB));
    broker.hear(|message| matches!(message, GpudMessage::SessionOpened { lease_id, .. } if lease_id == "lea-3"));
    assert!(client.read(data, MIB).expect("there").iter().all(|byte| *byte == 42));
    client.write(data, &[0; 1024]);
    client.launch(1, 1, 256, &data.to_le_bytes());
    let out = client.read(data, 1024).expect("the module is there too");
    assert!(out.chunks(4).all(|number| number == [1, 0, 0, 0]));
    let info = client.call(&m::MemInfo).expect("info");
    assert_eq!((info.free, info.total), (31 * MIB, 32 * MIB));
    let told = client.call(&m::LeaseProcesses).expect("told").processes;
    assert_eq!(told, [LeaseProcess { pid: std::process::id(), bytes: MIB }], "of the next lease");

    // A cut line is mended under the next lease, too: whether the client has heard of it or not.
    let earlier = std::mem::replace(&mut client.token, token);
    for token in [client.token.clone(), earlier] {
        client.token = token;
        client.hang_up(&gpud.address);
        client.resume(&gpud.address).expect("goes on");
        assert_eq!(client.read(data, 8).expect("there"), [1, 0, 0, 0, 1, 0, 0, 0]);
    }
}

#[test]
fn a_host_function_that_runs_when_the_lease_ends_reports_back_and_the_memory_is_kept() {
    let (mut broker, gpud) = joined(&[], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    broker.hear(|message| matches!(message, GpudMessage::SessionOpened { lease_id, .. } if lease_id == "lea-1"));
    client.load(1, ADD_ONE).expect("loaded");
    let data = client.alloc(MIB).expect("fits");
    client.write(data, &vec![0; MIB as usize]);
    client.send(&m::HostFunction { function: 7, stream: 0 });
    client.launch(1, 1, 256, &data.to_le_bytes());
    client.call(&m::Empty).expect("the launch is queued");
    let reached = HostReached::take(&mut Reader::new(&client.notice(opcode::HOST_REACHED).payload)).expect("notice");
    let began = Instant::now();
    broker.end_lease("lea-1", EndMode::Park, "Given back.");
    // Nothing new is executed while the function runs.
    while client.call(&m::MemInfo).map_err(|failure| failure.code) != Err(cuda::ERROR_DEVICE_UNAVAILABLE) {
        assert!(began.elapsed() < PATIENCE, "the lease does not end");
    }
    client.send(&m::HostReturned { ticket: reached.ticket });
    assert_eq!(broker.lease_ended("lea-1"), MIB);
    assert!(client.lease_ended().parked && began.elapsed() < Duration::from_secs(5));
    let token = next_token(&gpud, &client, "lea-3", 32 * MIB);
    client.rebind(&token).expect("taken up");
    let out = client.read(data, 1024).expect("there");
    assert!(out.chunks(4).all(|number| number == [1, 0, 0, 0]), "the launch behind the function has run");
}

#[test]
fn what_is_parked_must_fit_the_next_lease() {
    let (mut broker, gpud) = joined(&[], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    let data = client.alloc(32 * MIB).expect("fits");
    client.write(data, &[7; 4]);
    client.call(&m::ContextSynchronize).expect("written");
    broker.end_lease("lea-1", EndMode::Park, "Given back.");
    client.lease_ended();
    let small = next_token(&gpud, &client, "lea-2", 16 * MIB);
    assert_eq!(client.rebind(&small).expect_err("too small").code, cuda::ERROR_OUT_OF_MEMORY);
    let large = next_token(&gpud, &client, "lea-3", 32 * MIB);
    client.rebind(&large).expect("fits");
    assert_eq!(client.read(data, 4).expect("there"), [7; 4]);
}

#[test]
fn a_parked_session_takes_up_only_a_lease_of_its_own_client() {
    let (mut broker, gpud) = joined(&[], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    broker.end_lease("lea-1", EndMode::Park, "Given back.");
    client.lease_ended();
    let foreign = sign(&gpud.claims(&key(3), "lea-2", 64 * MIB));
    let refused = client.rebind(&foreign).expect_err("another client's");
    assert!(refused.text.contains("another client"), "{}", refused.text);
    let ended = next_token(&gpud, &client, "lea-1", 64 * MIB);
    assert_eq!(client.rebind(&ended).expect_err("over").text, "Given back.");
}

#[test]
fn more_than_the_host_may_keep_is_not_parked() {
    let (mut broker, gpud) = joined(&["--park-limit", "8M"], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.alloc(9 * MIB).expect("fits");
    client.call(&m::ContextSynchronize).expect("allocated");
    broker.end_lease("lea-1", EndMode::Park, "Given back.");
    assert_eq!(broker.lease_ended("lea-1"), 0);
    assert!(!client.lease_ended().parked);
}

#[test]
fn parked_memory_can_be_dropped() {
    let (mut broker, gpud) = joined(&[], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.alloc(MIB).expect("fits");
    client.call(&m::ContextSynchronize).expect("allocated");
    broker.end_lease("lea-1", EndMode::Park, "Given back.");
    assert_eq!(broker.lease_ended("lea-1"), MIB);
    broker.say(&BrokerMessage::DropParked { lease_id: "lea-1".to_owned() });
    broker.hear(|message| matches!(message, GpudMessage::SessionClosed { lease_id, .. } if lease_id == "lea-1"));
    client.lease_ended();
    assert!(client.next().is_err(), "the worker is gone");
}

#[test]
fn a_lease_ended_by_force_stops_an_endless_kernel() {
    let (mut broker, gpud) = joined(&[], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(1, ENDLESS).expect("loaded");
    client.launch(1, 1, 32, &[0; 8]);
    let began = Instant::now();
    broker.end_lease("lea-1", EndMode::Kill, "Your GPU was ended by an admin.");
    assert_eq!(client.lease_ended().reason, "Your GPU was ended by an admin.");
    assert_eq!(broker.lease_ended("lea-1"), 0);
    assert!(began.elapsed() < Duration::from_secs(3));
    assert!(client.next().is_err(), "the worker is gone");
    // Its token is of no use any more, and the reason is told.
    let Err(HelloError::Refused(refused)) = hello(&gpud.address, &client.key, &client.token, vec![range()], None)
    else {
        panic!("a token of an ended lease was accepted")
    };
    assert_eq!((refused.code, refused.text.as_str()), (RefusedCode::Lease, "Your GPU was ended by an admin."));
}

#[test]
fn a_kernel_that_outlives_its_lease_ends_soon_after_it() {
    let (mut broker, gpud) = joined(&[], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(1, ENDLESS).expect("loaded");
    client.launch(1, 64, 1024, &[0; 8]);
    client.call(&m::Empty).expect("the launch is queued");
    let began = Instant::now();
    broker.end_lease("lea-1", EndMode::Park, "Taken back.");
    assert_eq!(broker.lease_ended("lea-1"), 0);
    broker.hear(|message| matches!(message, GpudMessage::SessionClosed { lease_id, .. } if lease_id == "lea-1"));
    // It had the time to end by itself.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn what_a_client_runs_is_held_while_it_is_away() {
    let (mut broker, gpud) = joined(&[], &["lea-1", "lea-2"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(1, ENDLESS).expect("loaded");
    // Both threads have a block, and more wait to begin beside them.
    client.launch(1, 8, 1024, &[0; 8]);
    client.call(&m::Empty).expect("the launch is queued");
    let workers = gpud.workers();
    // Others may have the processors for a while.
    let runs = || {
        let (began, before) = (Instant::now(), processor_time(&workers));
        while processor_time(&workers) - before < Duration::from_millis(200) {
            assert!(began.elapsed() < PATIENCE, "the kernel does not run");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    runs();
    client.hang_up(&gpud.address);
    std::thread::sleep(Duration::from_millis(1200));
    let before = processor_time(&workers);
    std::thread::sleep(Duration::from_millis(800));
    let idle = processor_time(&workers) - before;
    assert!(idle < Duration::from_millis(100), "{idle:?} of work for a client that is away");
    // The device serves others as if nothing was there.
    let mut other = gpud.connect("lea-2", 64 * MIB);
    other.load(1, ADD_ONE).expect("loaded");
    let data = other.alloc(1024).expect("fits");
    other.write(data, &[0; 1024]);
    let began = Instant::now();
    for _ in 0..20 {
        other.launch(1, 1, 256, &data.to_le_bytes());
        other.call(&m::ContextSynchronize).expect("done");
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // It goes on with its client, and ends with its lease.
    client.resume(&gpud.address).expect("resumed");
    runs();
    client.hang_up(&gpud.address);
    std::thread::sleep(Duration::from_millis(1200));
    broker.end_lease("lea-1", EndMode::Kill, "The notebook has ended.");
    let began = Instant::now();
    broker.hear(|message| matches!(message, GpudMessage::SessionClosed { lease_id, .. } if lease_id == "lea-1"));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[test]
fn the_end_of_an_unknown_lease_is_answered_each_time() {
    let (mut broker, _gpud) = joined(&[], &[]);
    for _ in 0..2 {
        broker.end_lease("lea-nowhere", EndMode::Park, "Given back.");
        assert_eq!(broker.lease_ended("lea-nowhere"), 0);
    }
}

#[test]
fn leases_that_the_broker_does_not_name_end_when_the_line_is_back() {
    let (mut broker, gpud) = joined(&[], &["lea-1", "lea-2"]);
    let mut kept = gpud.connect("lea-1", 64 * MIB);
    let mut fenced = gpud.connect("lea-2", 64 * MIB);
    let data = kept.alloc(16).expect("fits");
    kept.write(data, &[5; 16]);
    broker.hear(|message| matches!(message, GpudMessage::SessionOpened { lease_id, .. } if lease_id == "lea-1"));
    broker.hear(|message| matches!(message, GpudMessage::SessionOpened { lease_id, .. } if lease_id == "lea-2"));
    broker.hang_up();
    let hello = broker.welcome(2, &["lea-1"]);
    let held: Vec<&str> =
        hello["held"].as_array().expect("list").iter().filter_map(|l| l["leaseId"].as_str()).collect();
    assert_eq!(held, ["lea-1", "lea-2"]);
    assert!(!fenced.lease_ended().parked);
    assert_eq!(kept.read(data, 16).expect("goes on"), [5; 16]);
    // A token of the earlier epoch for a lease that nobody names any more is refused.
    let client = key(77);
    let stale = sign(&gpud.claims(&client, "lea-9", MIB));
    let answer = hello_code(&gpud, &client, &stale);
    assert_eq!(answer, Some(RefusedCode::Lease));
}

#[test]
fn a_lease_that_is_newer_than_the_brokers_word_goes_on() {
    let mut broker = Broker::new();
    let gpud = Gpud::join(&mut broker, &[]);
    let mut client = None;
    broker.welcome_after(1, &[], || client = Some(gpud.connect("lea-1", 64 * MIB)));
    let mut client = client.expect("connected");
    broker.hear(|message| matches!(message, GpudMessage::SessionOpened { lease_id, .. } if lease_id == "lea-1"));
    let data = client.alloc(16).expect("goes on");
    // Of an epoch that is over, it ends all the same.
    broker.hang_up();
    let mut late = None;
    broker.welcome_after(2, &["lea-1"], || late = Some(gpud.connect("lea-2", 64 * MIB)));
    assert!(!late.expect("connected").lease_ended().parked);
    assert_eq!(client.read(data, 16).expect("goes on").len(), 16);
}

/// A lease that ends while its worker starts: what the worker does after that is up to `then`.
fn ended_while_its_worker_starts(then: impl FnOnce(libc::pid_t)) -> (Gpud, Stream) {
    let (mut broker, gpud) = joined(&[], &["lea-1"]);
    let owner = key(9);
    let token = sign(&gpud.claims(&owner, "lea-1", 64 * MIB));
    let mut line = gpud.open();
    let worker = gpud.stop_next_worker();
    say_hello(&mut line, &owner, &token, vec![range()], None, &[]).expect("said");
    gpud.wait_until_taken(worker);
    broker.end_lease("lea-1", EndMode::Kill, "Given back.");
    // Orders are carried out one after the other.
    broker.say(&BrokerMessage::Ping { nonce: "n".to_owned() });
    broker.hear(|message| matches!(message, GpudMessage::Pong { nonce } if nonce == "n"));
    then(worker as libc::pid_t);
    broker.lease_ended("lea-1");
    (gpud, line)
}

#[test]
fn a_lease_that_ends_while_its_worker_starts_is_told_behind_the_welcome() {
    // SAFETY: a worker of this test's own gpud.
    let (_gpud, mut line) = ended_while_its_worker_starts(|worker| unsafe {
        assert_eq!(libc::kill(worker, libc::SIGCONT), 0);
    });
    let answer = read_handshake(&mut line).expect("an answer");
    assert_eq!(answer.header.opcode, opcode::WELCOME);
    let welcome = Welcome::decode(&answer.payload).expect("welcome");
    let ended = Client::around(line, welcome, key(9), String::new()).lease_ended();
    assert_eq!((ended.parked, ended.reason.as_str()), (false, "Given back."));
}

#[test]
fn a_client_whose_worker_is_killed_for_the_end_of_the_lease_is_refused_with_the_reason() {
    // SAFETY: a worker of this test's own gpud.
    let (_gpud, mut line) = ended_while_its_worker_starts(|worker| unsafe {
        assert_eq!(libc::kill(worker, libc::SIGKILL), 0);
    });
    let answer = read_handshake(&mut line).expect("an answer");
    assert_eq!(answer.header.opcode, opcode::REFUSED);
    let refused = Refused::decode(&answer.payload).expect("refusal");
    assert_eq!((refused.code, refused.text.as_str()), (RefusedCode::Lease, "Given back."));
}

fn hello_code(gpud: &Gpud, client: &ring::signature::Ed25519KeyPair, token: &str) -> Option<RefusedCode> {
    match hello(&gpud.address, client, token, vec![range()], None) {
        Err(HelloError::Refused(refused)) => Some(refused.code),
        _ => None,
    }
}

#[test]
fn usage_is_reported_while_it_changes() {
    let (mut broker, gpud) = joined(&[], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(1, ADD_ONE).expect("loaded");
    let data = client.alloc(3 * MIB).expect("fits");
    client.launch(1, 3 * 1024, 256, &data.to_le_bytes());
    client.call(&m::ContextSynchronize).expect("done");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let GpudMessage::Usage { leases } = broker.hear(|message| matches!(message, GpudMessage::Usage { .. })) else {
            unreachable!("just matched")
        };
        let lease = leases.iter().find(|lease| lease.lease_id == "lea-1").expect("named");
        if lease.memory_bytes == 3 * MIB && lease.gpu_time_us > 0 && lease.calls >= 4 && lease.sessions == 1 {
            break;
        }
        assert!(Instant::now() < deadline, "{lease:?}");
    }
}

/// The next report of a lease's usage like this.
fn usage(broker: &mut Broker, lease: &str, wanted: impl Fn(&LeaseUsage) -> bool) -> LeaseUsage {
    let found = |message: &GpudMessage| match message {
        GpudMessage::Usage { leases } => leases.iter().find(|usage| usage.lease_id == lease && wanted(usage)).cloned(),
        _ => None,
    };
    found(&broker.hear(|message| found(message).is_some())).expect("just heard")
}

#[test]
fn a_kernel_that_runs_long_is_reported_with_its_blocks() {
    let (mut broker, gpud) = joined(&[], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(1, WAITING).expect("loaded");
    let data = client.alloc(4).expect("fits");
    client.write(data, &[0; 4]);
    client.send(&m::StreamCreate { stream: 9, flags: 1, priority: 0 });
    let parameters = data.to_le_bytes();
    let (grid, block) = ([64, 1, 1], [32, 1, 1]);
    let parameters = parameters.as_slice();
    client.send(&m::Launch { module: 1, function: 0, grid, block, shared_bytes: 0, flags: 0, stream: 9, parameters });
    client.call(&m::Empty).expect("the launch is queued");
    let running = usage(&mut broker, "lea-1", |usage| usage.running.is_some());
    let seconds = running.running.as_ref().map_or(0, |kernel| kernel.seconds);
    let expected = RunningKernel { kernel: "waiting".to_owned(), blocks_done: 40, blocks: 64, seconds };
    assert_eq!(running.running, Some(expected));
    usage(&mut broker, "lea-1", |usage| usage.running.as_ref().is_some_and(|kernel| kernel.seconds > seconds));
    // Its time counts while it runs: a lease with one long kernel is not idle.
    assert!(running.gpu_time_us > 900_000, "{running:?}");
    client.write(data, &[1; 4]);
    client.call(&m::ContextSynchronize).expect("done");
    usage(&mut broker, "lea-1", |usage| usage.running.is_none() && usage.gpu_time_us >= running.gpu_time_us);
}

#[test]
fn a_kernel_of_one_block_uses_the_gpu_and_keeps_one_multiprocessor_active() {
    let (mut broker, gpud) = joined(&[], &["lea-1", "lea-2"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(1, ENDLESS).expect("loaded");
    let (grid, block) = ([1, 1, 1], [32, 1, 1]);
    client.send(&m::StreamCreate { stream: 9, flags: 1, priority: 0 });
    let parameters = [0; 8].as_slice();
    client.send(&m::Launch { module: 1, function: 0, grid, block, shared_bytes: 0, flags: 0, stream: 9, parameters });
    client.call(&m::Empty).expect("the launch is queued");
    let sm = |usage: &LeaseUsage| usage.sm_activity.expect("the software GPU counts it");
    let busy = usage(&mut broker, "lea-1", |usage| usage.gpu_time_us > 1_500_000);
    let share = sm(&busy).active_us as f64 / busy.gpu_time_us as f64;
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    assert!((share - 1.0 / threads).abs() < 0.1, "{share} of {threads} threads: {busy:?}");
    assert_eq!((sm(&busy).known_us, sm(&busy).estimated_us), (busy.gpu_time_us, 0));
    // Who holds a GPU and lets it lie idle keeps none active.
    let mut idle = gpud.connect("lea-2", 64 * MIB);
    idle.alloc(MIB).expect("fits");
    let idle = usage(&mut broker, "lea-2", |usage| usage.memory_bytes == MIB);
    assert_eq!((idle.gpu_time_us, sm(&idle).active_us), (0, 0));
}

#[test]
fn a_removed_server_says_so_and_stops() {
    let (mut broker, mut gpud) = joined(&[], &["lea-1"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    broker.say(&BrokerMessage::Removed { reason: "replaced".to_owned() });
    assert_eq!(client.lease_ended().reason, "The GPU server was removed from the pool.");
    assert_eq!(gpud.child.wait().expect("ended").code(), Some(0));
    // The pool never takes the key again, so the next join makes a new one.
    assert!(!gpud.state.join("server.json").exists());
    assert!(!gpud.state.join("server-key.pk8").exists());
}
