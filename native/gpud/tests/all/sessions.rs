//! Client processes, each with its worker, under the limits of their lease.

use crate::support::{ADD_ONE, Client, Gpud, PATIENCE};
use sluice_protocol::messages as m;
use sluice_protocol::{LeaseProcess, cuda, opcode};
use std::time::Instant;

const MIB: u64 = 1 << 20;

#[test]
fn a_kernel_runs_and_its_result_comes_back() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    assert_eq!(client.welcome.device.gpu_type, "soft");
    assert_eq!(client.welcome.device.profile.compute_capability_major, 7);
    let info = client.load(10, ADD_ONE).expect("loaded");
    assert_eq!(info.functions[0].name, "add_one");
    let data = client.alloc(4096).expect("memory");
    let numbers: Vec<u8> = (0..1024u32).flat_map(u32::to_le_bytes).collect();
    client.write(data, &numbers);
    client.launch(10, 4, 256, &data.to_le_bytes());
    let out = client.read(data, 4096).expect("result");
    let expected: Vec<u8> = (1..=1024u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(out, expected);
}

#[test]
fn two_processes_of_a_lease_share_its_limit_to_the_byte() {
    let gpud = Gpud::start(&[]);
    let mut first = gpud.connect("lea-1", 64 * MIB);
    let mut second = gpud.connect("lea-1", 64 * MIB);
    first.alloc(40 * MIB).expect("fits");
    let refused = second.alloc(24 * MIB + 1).expect_err("one byte too many");
    assert_eq!(refused.code, cuda::ERROR_OUT_OF_MEMORY);
    second.alloc(24 * MIB).expect("fits exactly");
    assert_eq!(first.alloc(1).expect_err("full").code, cuda::ERROR_OUT_OF_MEMORY);
    let info = second.call(&m::MemInfo).expect("info");
    assert_eq!((info.free, info.total), (0, 64 * MIB));
}

#[test]
fn the_processes_of_a_lease_are_told_with_what_counts_for_each() {
    let gpud = Gpud::start(&[]);
    let mut first = gpud.connect("lea-1", 64 * MIB);
    let mut second = gpud.connect("lea-1", 64 * MIB);
    let mut other = gpud.connect("lea-2", 64 * MIB);
    first.alloc(40 * MIB).expect("fits");
    first.call(&m::ContextSynchronize).expect("allocated");
    second.alloc(8 * MIB).expect("fits");
    let told = |client: &mut Client| client.call(&m::LeaseProcesses).expect("told").processes;
    // Both clients are in this process.
    let process = |bytes| LeaseProcess { pid: std::process::id(), bytes };
    assert_eq!(told(&mut second), [process(40 * MIB), process(8 * MIB)]);
    assert_eq!(told(&mut other), [process(0)]);
    first.send(&m::Goodbye);
    let deadline = Instant::now() + PATIENCE;
    while told(&mut second) != [process(8 * MIB)] {
        assert!(Instant::now() < deadline, "a process that has ended is listed");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn credit_that_one_process_does_not_use_goes_to_its_sibling() {
    let gpud = Gpud::start(&[]);
    let mut first = gpud.connect("lea-1", 64 * MIB);
    let mut second = gpud.connect("lea-1", 64 * MIB);
    let kept = first.alloc(48 * MIB).expect("fits");
    first.send(&m::MemFree { address: kept });
    first.call(&m::ContextSynchronize).expect("done");
    // 48 MiB are idle credit of the first process now: the second's wish makes gpud ask for it.
    let wish = second.send(&m::MemGrow { bytes: 60 * MIB });
    first.notice(opcode::CREDIT_RECALL);
    first.send(&m::CreditReturn { bytes: 48 * MIB });
    assert_eq!(second.answer::<m::MemGrowReply>(wish).expect("granted").granted, 60 * MIB);
}

#[test]
fn another_lease_is_another_account() {
    let gpud = Gpud::start(&[]);
    let mut first = gpud.connect("lea-1", 16 * MIB);
    let mut second = gpud.connect("lea-2", 16 * MIB);
    first.alloc(16 * MIB).expect("all of the first");
    second.alloc(16 * MIB).expect("all of the second");
}

#[test]
fn a_worker_killed_takes_no_other_with_it_and_its_memory_is_free_again() {
    let gpud = Gpud::start(&[]);
    let deadline = Instant::now() + PATIENCE;
    let mut before = gpud.workers();
    while before.is_empty() {
        assert!(Instant::now() < deadline, "no worker is made ahead");
        std::thread::sleep(std::time::Duration::from_millis(5));
        before = gpud.workers();
    }
    let mut first = gpud.connect("lea-1", 64 * MIB);
    let worker = *before.first().expect("one made ahead");
    let mut second = gpud.connect("lea-1", 64 * MIB);
    first.alloc(60 * MIB).expect("fits");
    let data = second.alloc(4 * MIB).expect("fits");
    second.write(data, &[42; 16]);
    // SAFETY: the worker of the first client, made before it connected.
    unsafe { libc::kill(worker as i32, libc::SIGKILL) };
    assert!(first.next().is_err(), "the client sees the end of its connection");
    assert_eq!(second.read(data, 16).expect("alive"), [42; 16]);
    let deadline = Instant::now() + PATIENCE;
    while second.alloc(60 * MIB).is_err() {
        assert!(Instant::now() < deadline, "the dead worker's memory was not given back");
    }
}

#[test]
fn a_posted_operation_that_cannot_be_queued_is_told_at_once_and_reported_once() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(1, ADD_ONE).expect("loaded");
    let data = client.alloc(1024).expect("fits");
    client.write(data, &[1; 1024]);
    let seq = client.launch(1, 1, 256, &[]);
    let error = client.async_error();
    assert_eq!((error.seq, error.code, error.sticky), (seq, cuda::ERROR_INVALID_VALUE, false));
    let failure = client.call(&m::ContextSynchronize).expect_err("reported");
    assert_eq!((failure.code, failure.text), (error.code, error.text));
    assert_eq!(client.call(&m::ContextSynchronize), Ok(m::ContextSynchronizeReply));
    assert_eq!(client.read(data, 1024), Ok(vec![1; 1024]));
}

#[test]
fn an_illegal_address_is_told_at_once_and_stays() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    let mut sibling = gpud.connect("lea-1", 64 * MIB);
    client.load(1, ADD_ONE).expect("loaded");
    let wild = client.welcome.range.base + (1 << 30);
    client.launch(1, 1, 256, &wild.to_le_bytes());
    let error = client.async_error();
    assert_eq!((error.code, error.sticky), (cuda::ERROR_ILLEGAL_ADDRESS, true));
    for part in ["out of bounds: ", &format!("address {wild:#x}, in add_one, block (0,0,0), thread (0,0,0)")] {
        assert!(error.text.contains(part), "{part}: {}", error.text);
    }
    let code = client.call(&m::ContextSynchronize).expect_err("sticky").code;
    assert_eq!(code, cuda::ERROR_ILLEGAL_ADDRESS);
    assert_eq!(client.read(wild, 4).expect_err("sticky").code, cuda::ERROR_ILLEGAL_ADDRESS);
    let data = sibling.alloc(16).expect("a sibling goes on");
    sibling.write(data, &[1; 16]);
    assert_eq!(sibling.read(data, 16).expect("alive"), [1; 16]);
}

#[test]
fn memory_of_one_client_is_never_seen_by_another() {
    let gpud = Gpud::start(&[]);
    let mut first = gpud.connect("lea-1", 64 * MIB);
    let data = first.alloc(MIB).expect("fits");
    first.write(data, &vec![0x5a; MIB as usize]);
    first.call(&m::ContextSynchronize).expect("written");
    first.send(&m::Goodbye);
    assert!(first.next().is_err());
    let mut second = gpud.connect("lea-2", 64 * MIB);
    let data = second.alloc(MIB).expect("fits");
    assert!(second.read(data, MIB).expect("read").iter().all(|byte| *byte == 0));
}

#[test]
fn a_session_goes_on_after_its_connection_was_cut() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(1, ADD_ONE).expect("loaded");
    let data = client.alloc(1024).expect("fits");
    client.write(data, &[0; 1024]);
    client.call(&m::ContextSynchronize).expect("written");
    // The frame is on its way when the line is cut: gpud may or may not have it.
    client.launch(1, 1, 256, &data.to_le_bytes());
    let welcome = client.resume(&gpud.address).expect("resumed");
    assert_eq!(welcome.session_id, client.welcome.session_id);
    if welcome.executed < client.sent {
        client.sent = welcome.executed;
        client.launch(1, 1, 256, &data.to_le_bytes());
    }
    let out = client.read(data, 1024).expect("result");
    assert!(out.chunks(4).all(|number| number == [1, 0, 0, 0]), "executed exactly once");
}

#[test]
fn answers_lost_with_the_connection_are_sent_again() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    let call = client.send(&m::MemInfo);
    // The answer is left unread; the client remembers only what it has received.
    std::thread::sleep(std::time::Duration::from_millis(200));
    client.resume(&gpud.address).expect("resumed");
    assert_eq!(client.answer::<m::MemInfoReply>(call).expect("again").total, 64 * MIB);
}

#[test]
fn ending_gpud_tells_clients_why() {
    let mut gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    // SAFETY: our own child.
    unsafe { libc::kill(gpud.child.id() as i32, libc::SIGTERM) };
    let ended = client.lease_ended();
    assert!(!ended.parked);
    assert_eq!(ended.reason, "The GPU server stops.");
    assert_eq!(gpud.child.wait().expect("ended").code(), Some(0));
}

#[test]
fn a_client_far_ahead_of_the_device_is_held_back_and_nothing_is_lost() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(1, ADD_ONE).expect("loaded");
    let data = client.alloc(1024).expect("fits");
    client.write(data, &[0; 1024]);
    const LAUNCHES: u32 = 3_000;
    (0..LAUNCHES).for_each(|_| {
        client.launch(1, 1, 256, &data.to_le_bytes());
    });
    let out = client.read(data, 1024).expect("result");
    assert!(out.chunks(4).all(|number| number == LAUNCHES.to_le_bytes()));
}

#[test]
fn a_modules_variables_are_charged_to_the_lease() {
    const VARIABLE: &str = "
.version 7.5
.target sm_75
.address_size 64
.visible .global .align 8 .b8 table[1048576];
.visible .entry nothing() { ret; }
";
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", 2 * MIB);
    let info = client.load(1, VARIABLE).expect("loaded");
    assert_eq!((info.globals[0].name.as_str(), info.globals[0].bytes), ("table", MIB));
    assert_eq!(client.call(&m::MemInfo).expect("info").free, MIB);
    let refused = client.alloc(MIB + 1).expect_err("the variable takes half");
    assert_eq!(refused.code, cuda::ERROR_OUT_OF_MEMORY);
    client.load(2, VARIABLE).expect("fits");
    assert_eq!(client.load(3, VARIABLE).expect_err("full").code, cuda::ERROR_OUT_OF_MEMORY);
    client.send(&m::ModuleUnload { module: 1 });
    client.load(4, VARIABLE).expect("fits again");
    let bytes = client.read(info.globals[0].address, 8);
    assert!(bytes.is_err(), "an unloaded variable is gone");
}

#[test]
fn the_recorder_names_every_point_where_a_program_waits() {
    let recording = std::env::temp_dir().join(format!("gpud-recording-{}", crate::support::unique()));
    let file = recording.to_str().expect("UTF-8");
    let gpud = Gpud::start(&["--backend", "null", "--recording", file]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    client.load(1, ADD_ONE).expect("loaded");
    let data = client.alloc(4096).expect("fits");
    for _ in 0..3 {
        client.write(data, &[1; 4096]);
        client.launch(1, 4, 256, &data.to_le_bytes());
        assert_eq!(client.read(data, 4).expect("plausible"), [0; 4]);
    }
    let text = std::fs::read_to_string(&recording).expect("written");
    let _ = std::fs::remove_file(&recording);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |call: &str| lines.iter().filter(|line| line["call"] == call).count();
    assert_eq!((of("copy-in"), of("launch"), of("copy-out")), (3, 3, 3));
    assert_eq!(lines.iter().filter(|line| line["blocking"] == true).count(), 4, "the module and three results");
}
