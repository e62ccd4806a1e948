//! What gpud takes of its host's memory beside what it lends.

use crate::support::{ADD_ONE, Client, Gpud, PATIENCE};
use sluice_protocol::control::{AsyncError, HostReached};
use sluice_protocol::graph::{GraphNode, GraphWork};
use sluice_protocol::messages as m;
use sluice_protocol::{Reader, Wire, cuda, opcode};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const LENT: u64 = 64 * MIB;

/// Memory of these processes that is not a file's, bytes.
fn held(pids: &[u32]) -> u64 {
    let kibibytes = |pid: &u32| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let fields = status.lines().filter(|line| line.starts_with("RssAnon:") || line.starts_with("RssShmem:"));
        fields.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    };
    1024 * pids.iter().map(kibibytes).sum::<u64>()
}

/// Every module that the software GPU is tested with, as nvcc and Numba made them.
fn modules() -> Vec<String> {
    let folder = sluice_testing::package_folder().join("../softgpu/tests/ptx");
    let files = std::fs::read_dir(folder).expect("the folder of modules").flatten();
    let paths = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|kind| kind == "ptx"));
    paths.map(|path| std::fs::read_to_string(path).expect("a module")).collect()
}

fn work(client: &mut Client, modules: &[String]) {
    for (number, ptx) in (2..).zip(modules) {
        client.load(number, ptx).expect("loaded");
    }
    client.load(1, ADD_ONE).expect("loaded");
    let data = client.alloc(LENT).expect("fits");
    for piece in 0..LENT / MIB {
        client.write(data + piece * MIB, &[7; MIB as usize]);
    }
    client.launch(1, (LENT / 1024) as u32, 256, &data.to_le_bytes());
    client.call(&m::ContextSynchronize).expect("done");
}

#[test]
fn gpud_takes_less_than_100_megabytes_beside_what_it_lends() {
    let gpud = Gpud::start(&[]);
    let modules = modules();
    let mut clients: Vec<Client> = (0..3).map(|lease| gpud.connect(&format!("lea-{lease}"), 512 * MIB)).collect();
    clients.iter_mut().for_each(|client| work(client, &modules));
    let mut processes = gpud.workers();
    processes.push(gpud.child.id());
    let lent = clients.len() as u64 * LENT;
    let taken = held(&processes).saturating_sub(lent);
    println!("{taken} bytes for {} clients with {} modules each", clients.len(), modules.len() + 1);
    assert!(taken < 100_000_000, "{taken} bytes beside what is lent");
    assert!(held(&processes) > lent, "what is lent is there");
}

/// A kernel with 200 KiB of local memory for each thread; a card takes that from the context's memory too.
const DEEP: &str = r"
.version 7.5
.target sm_75
.address_size 64
.visible .entry deep(.param .u64 data)
{
    .local .align 8 .b8 own[204800];
    .reg .b64 %rd<4>;
    mov.u64 %rd1, own;
    st.local.u64 [%rd1+204792], %rd1;
    ret;
}
";

#[test]
fn what_a_kernels_threads_take_counts_against_the_lease() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", 96 * MIB);
    client.load(1, DEEP).expect("loaded");
    // 256 threads need 50 MiB: beside 64 MiB that are allocated there are fewer.
    client.launch(1, 1, 256, &[0; 8]);
    client.call(&m::ContextSynchronize).expect("fits");
    let data = client.alloc(64 * MIB).expect("what the kernel took is free again");
    client.launch(1, 1, 256, &[0; 8]);
    let failure = client.call(&m::ContextSynchronize).expect_err("does not fit");
    assert!(failure.code == 701 && failure.text.contains("the lease has less left"), "{failure:?}");
    // Nothing else has failed.
    client.write(data, &[5; 16]);
    client.launch(1, 1, 64, &[0; 8]);
    assert_eq!(client.read(data, 16).expect("goes on"), [5; 16]);
    let deadline = Instant::now() + PATIENCE;
    while client.alloc(24 * MIB).is_err() {
        assert!(Instant::now() < deadline, "what the kernel took is not given back");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Copies to the host that the client reads and never acknowledges.
#[test]
fn a_client_that_acknowledges_nothing_is_ended_with_a_reason() {
    const COPY: u64 = 48 * MIB;
    let gpud = Gpud::start(&[]);
    let worker = gpud.next_worker();
    let mut client = gpud.connect("lea-1", LENT);
    let data = client.alloc(COPY).expect("fits");
    let (mut most, mut copies) = (0, 0);
    let told = loop {
        client.received = 0;
        client.send(&m::CopyFromDevice { address: data, stream: 0, bytes: COPY });
        let frame = client.next().expect("an answer, or why there is none");
        most = most.max(held(&[worker]));
        if frame.header.opcode == opcode::ASYNC_ERROR {
            break AsyncError::take(&mut Reader::new(&frame.payload)).expect("a notice");
        }
        copies += 1;
        assert!(copies < 20, "{copies} copies were kept, {most} bytes");
    };
    println!("ended after {copies} copies of 48 MiB, with at most {} MiB", most / MIB);
    assert!(told.text.contains("MiB of answers unacknowledged"), "{}", told.text);
    assert!(most < LENT + 450 * MIB, "{most} bytes");
    assert!(client.next().is_err(), "the session goes on");
    let deadline = Instant::now() + PATIENCE;
    while std::path::Path::new(&format!("/proc/{worker}")).exists() {
        assert!(Instant::now() < deadline, "the worker goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(client.resume(&gpud.address).is_err(), "the session goes on");
    gpud.connect("lea-1", LENT).alloc(LENT).expect("the lease's memory is free again");
}

/// A program may ask for any number of short copies to page-locked memory and wait for none of them. Its acknowledgements
/// lie behind what it has asked.
#[test]
fn a_client_that_asks_far_ahead_and_acknowledges_gets_everything() {
    const COPY: u64 = 256 << 10;
    const COPIES: u64 = 2000;
    let gpud = Gpud::start(&[]);
    let worker = gpud.next_worker();
    let mut client = gpud.connect("lea-1", LENT);
    let data = client.alloc(COPY).expect("fits");
    client.write(data, &[7; COPY as usize]);
    let first = client.send(&m::CopyFromDevice { address: data, stream: 0, bytes: COPY });
    for _ in 1..COPIES {
        client.send(&m::CopyFromDevice { address: data, stream: 0, bytes: COPY });
    }
    let mut most = 0;
    for call in first..first + COPIES {
        let answer: m::CopyFromDeviceReply = client.answer(call).expect("an answer");
        assert!(answer.data.0.len() as u64 == COPY && answer.data.0[9] == 7);
        if (call - first) % 4 == 3 {
            client.acknowledge();
            most = most.max(held(&[worker]));
        }
    }
    println!("at most {} MiB for {} MiB of answers", most / MIB, COPIES * COPY / MIB);
    assert!(most < 100 * MIB, "{most} bytes");
    client.call(&m::ContextSynchronize).expect("the session goes on");
}

/// A lease of 64 MiB may have 528 MiB of the host's memory; a stream counts 16 KiB of it.
#[test]
fn streams_and_events_without_number_are_out_of_memory() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", LENT);
    let mut other = gpud.connect("lea-2", LENT);
    for stream in 0..40_000 {
        client.send(&m::StreamCreate { stream: 16 + stream, flags: 1, priority: 0 });
    }
    let error = client.async_error();
    assert_eq!(error.code, cuda::ERROR_OUT_OF_MEMORY);
    assert!(error.text.contains("528 MiB of the GPU server's own memory"), "{}", error.text);
    assert_eq!(client.call(&m::ContextSynchronize).expect_err("told").code, cuda::ERROR_OUT_OF_MEMORY);
    // Nor is there room for one of its siblings, while another lease has its own.
    let mut sibling = gpud.connect("lea-1", LENT);
    for event in 0..5_000 {
        sibling.send(&m::EventCreate { event: 16 + event, flags: 2 });
    }
    assert_eq!(sibling.async_error().code, cuda::ERROR_OUT_OF_MEMORY);
    other.send(&m::EventCreate { event: 16, flags: 2 });
    other.call(&m::ContextSynchronize).expect("another account");
    // What is ended makes room.
    for stream in 0..1_000 {
        client.send(&m::StreamDestroy { stream: 16 + stream });
    }
    client.send(&m::EventCreate { event: 1 << 20, flags: 2 });
    client.call(&m::ContextSynchronize).expect("there is room");
}

#[test]
fn graphs_without_number_are_out_of_memory() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", LENT);
    let node = || GraphNode { after: vec![], enabled: true, work: GraphWork::Empty };
    let refused = (0..500).find_map(|graph| {
        let nodes = (0..10_000).map(|_| node()).collect();
        client.call(&m::GraphInstantiate { graph: 16 + graph, flags: 0, nodes }).err()
    });
    assert_eq!(refused.expect("500 graphs of 10,000 nodes").code, cuda::ERROR_OUT_OF_MEMORY);
    client.send(&m::GraphDestroy { graph: 16 });
    client.call(&m::GraphInstantiate { graph: 16, flags: 0, nodes: vec![node()] }).expect("there is room");
}

/// A short kernel takes forty times as much memory as its text.
#[test]
fn modules_of_many_kernels_are_out_of_memory() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", LENT);
    let mut ptx = ".version 7.5\n.target sm_75\n.address_size 64\n".to_owned();
    (0..100_000).for_each(|number| ptx += &format!(".visible .entry k{number}() {{ ret; }}\n"));
    let refused = (0..4).find_map(|module| client.load(16 + module, &ptx).err());
    assert_eq!(refused.expect("400,000 kernels").code, cuda::ERROR_OUT_OF_MEMORY);
    client.send(&m::ModuleUnload { module: 16 });
    client.load(20, ADD_ONE).expect("there is room");
}

/// A host function that does not return keeps everything behind it in the queue.
#[test]
fn work_that_is_queued_without_end_is_out_of_memory() {
    const COPY: u64 = 4 * MIB;
    let gpud = Gpud::start(&[]);
    let worker = gpud.next_worker();
    let mut client = gpud.connect("lea-1", LENT);
    let data = client.alloc(COPY).expect("fits");
    client.send(&m::HostFunction { function: 7, stream: 0 });
    let reached = HostReached::take(&mut Reader::new(&client.notice(opcode::HOST_REACHED).payload)).expect("a notice");
    let bytes = vec![3; COPY as usize];
    (0..300).for_each(|_| client.write(data, &bytes));
    let error = client.async_error();
    assert_eq!(error.code, cuda::ERROR_OUT_OF_MEMORY);
    assert!(held(&[worker]) < 1000 * MIB, "{} bytes", held(&[worker]));
    client.send(&m::HostReturned { ticket: reached.ticket });
    assert_eq!(client.call(&m::ContextSynchronize).expect_err("told").code, cuda::ERROR_OUT_OF_MEMORY);
    assert_eq!(client.read(data, 4).expect("the session goes on"), [3; 4]);
}

#[test]
fn a_launch_with_more_parameters_than_a_kernel_takes_is_refused() {
    let gpud = Gpud::start(&[]);
    let mut client = gpud.connect("lea-1", LENT);
    client.load(1, ADD_ONE).expect("loaded");
    client.launch(1, 1, 256, &vec![0; 1 << 20]);
    assert_eq!(client.async_error().code, cuda::ERROR_INVALID_VALUE);
}

/// The memory of a client that has gone without a word is another's of its lease as soon as that needs it; a client that
/// comes back in time keeps its own.
#[test]
fn who_stays_away_gives_way_to_who_needs_the_memory() {
    let gpud = Gpud::start(&[]);
    let mut gone = gpud.connect("lea-1", 64 * MIB);
    gone.alloc(48 * MIB).expect("fits");
    let mut back = gpud.connect("lea-1", 64 * MIB);
    let kept = back.alloc(8 * MIB).expect("fits");
    back.write(kept, &[9; 4096]);
    back.call(&m::ContextSynchronize).expect("written");
    let mut next = gpud.connect("lea-1", 64 * MIB);
    gone.hang_up(&gpud.address);
    back.hang_up(&gpud.address);
    // The supervisor hears of it from their workers, each a moment later: a growth waits for those that it knows to be away.
    std::thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    let asking = std::thread::spawn(move || next.alloc(48 * MIB).map(|_| next));
    std::thread::sleep(Duration::from_secs(1));
    back.resume(&gpud.address).expect("welcome");
    let next = asking.join().expect("no panic").expect("the memory of who has gone");
    assert!(began.elapsed() < Duration::from_secs(10), "after {:?}", began.elapsed());
    assert_eq!(back.read(kept, 4096).expect("kept"), [9; 4096]);
    assert!(gone.resume(&gpud.address).is_err(), "its session has ended");
    drop(next);
}
