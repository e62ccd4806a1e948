//! What the client of an older build said to its gpud is said again to today's: gpuds of a major version take the clients
//! of every build that spoke it, so that an upgrade of the servers breaks no running notebook.
//!
//! `recorded/protocol-2.0.txt` is such a conversation, of the client of the first build that spoke 2.0. It stays as it is:
//! a message that it holds may change with a new major version only. `SLUICE_RECORD=<file> cargo test --test transcript`
//! records one of today's client.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use sluice_client::generated::*;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, alloc, attach, fill, first_word, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::{Library, download, upload};
use sluice_protocol::frame::{Header, put_frame};
use sluice_protocol::handshake::{Challenge, HELLO_CONTEXT, Handshake, Welcome};
use sluice_protocol::messages::{
    Goodbye, LibraryOpen, LibraryOpenReply, MemInfo, MemInfoReply, ModuleLoad, ModuleLoadReply, ModuleQuery,
    ModuleQueryReply, Request,
};
use sluice_protocol::reply::decode_reply;
use sluice_protocol::{Frame, Reader, VERSION_MAJOR, Wire, opcode};
use sluice_transport::FrameReader;
use std::collections::HashMap;
use std::ffi::c_void;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const RECORDED: &str = include_str!("../recorded/protocol-2.0.txt");
/// The lease's.
const MEMORY: u64 = 256 << 20;
/// Answers come long before that.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_recorded_client_is_answered_as_it_was() {
    match std::env::var_os("SLUICE_RECORD") {
        Some(file) => record(Path::new(&file)),
        None => play(&Gpud::start("soft", &[]).expect("gpud"), RECORDED),
    }
}

// What is recorded

/// Memory, a kernel, streams, events, a host function, a graph and a product of matrices.
fn program() {
    let function = start();
    attach();
    let (code, address) = alloc();
    assert_eq!(code, 0);
    fill(address, 3);
    assert_eq!((add(function, address, 128, 4), first_word(address)), (0, (0, 7)));
    let (mut stream, mut event, mut graph, mut executable, mut called) = (0, 0, 0, 0, 0u32);
    let (given, mut taken) = ([11u32; 128], [0u32; 128]);
    let (mut free, mut total) = (0, 0);
    // SAFETY: live locals, which outlive the work on them: each stream is waited for.
    unsafe {
        assert_eq!(sluice_cuStreamCreate(&raw mut stream, 1), 0);
        assert_eq!(sluice_cuEventCreate(&raw mut event, 2), 0);
        assert_eq!(sluice_cuMemcpyHtoDAsync_v2(address, given.as_ptr().cast(), 512, stream), 0);
        assert_eq!(sluice_cuEventRecord(event, stream), 0);
        assert_eq!(sluice_cuStreamWaitEvent(0, event, 0), 0);
        assert_eq!(add(function, address, 128, 1), 0);
        assert_eq!(sluice_cuEventSynchronize(event), 0);
        assert_eq!(sluice_cuCtxSynchronize(), 0);
        assert_eq!(sluice_cuLaunchHostFunc(stream, Some(mark), (&raw mut called).cast()), 0);
        assert_eq!(sluice_cuMemcpyDtoHAsync_v2(taken.as_mut_ptr().cast(), address, 512, stream), 0);
        assert_eq!(sluice_cuStreamSynchronize(stream), 0);
        assert_eq!((called, taken), (1, [12; 128]));
        assert_eq!(sluice_cuStreamBeginCapture_v2(stream, 0), 0);
        assert_eq!(sluice_cuMemsetD32Async(address, 20, 1024, stream), 0);
        assert_eq!(sluice_cuStreamEndCapture(stream, &raw mut graph), 0);
        assert_eq!(sluice_cuGraphInstantiateWithFlags(&raw mut executable, graph, 0), 0);
        assert_eq!(sluice_cuGraphLaunch(executable, stream), 0);
        assert_eq!(sluice_cuStreamSynchronize(stream), 0);
        assert_eq!(first_word(address), (0, 20));
        assert_eq!(sluice_cuGraphExecDestroy(executable), 0);
        assert_eq!(sluice_cuEventDestroy_v2(event), 0);
        assert_eq!(sluice_cuStreamDestroy_v2(stream), 0);
        assert_eq!(sluice_cuMemGetInfo_v2(&raw mut free, &raw mut total), 0);
    }
    let (blas, mut handle) = (Library::load("cublas", 13), 0usize);
    let at = |number: &f32| std::ptr::from_ref(number) as usize;
    let matrix = upload(&[1.0f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat()) as usize;
    blas.run("cublasCreate_v2", &[(&raw mut handle) as usize]);
    blas.run("cublasSgemm_v2", &[handle, 0, 0, 2, 2, 2, at(&1.0), matrix, 2, matrix, 2, at(&0.0), matrix, 2]);
    assert_eq!(download(matrix as u64, 16), [7.0f32, 10.0, 15.0, 22.0].map(f32::to_le_bytes).concat());
    blas.run("cublasDestroy_v2", &[handle]);
    // SAFETY: no pointers of the host.
    assert_eq!(unsafe { sluice_cuMemFree_v2(address) }, 0);
    assert_eq!(unsafe { sluice_cuCtxSynchronize() }, 0);
}

unsafe extern "C" fn mark(called: *mut c_void) {
    // SAFETY: the program's counter.
    unsafe { *called.cast::<u32>() += 1 };
}

/// Frames of one connection in the order in which they passed, each with the side that it came from.
type Kept = Arc<Mutex<Vec<(char, Frame)>>>;

/// Keeps the frames between the program and a gpud, but for what differs each time.
fn record(file: &Path) {
    let mut gpud = Gpud::start("soft", &[]).expect("gpud");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let upstream = gpud.address.strip_prefix("tcp://").expect("TCP").to_owned();
    gpud.address = format!("tcp://{}", listener.local_addr().expect("bound"));
    let broker = Broker::start(Arc::new(gpud), MEMORY).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    let kept = Kept::default();
    let passed = Arc::clone(&kept);
    std::thread::spawn(move || {
        let client = listener.accept().expect("the program").0;
        let server = TcpStream::connect(upstream).expect("gpud");
        let (from, to) = (server.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
        let kept = Arc::clone(&passed);
        std::thread::spawn(move || pass('<', from, to, &kept));
        pass('>', client, server, &passed);
    });
    program();
    process::get().device(0).any_session().expect("attached").close();
    let frames = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::from(
        "# Recorded by tests/transcript.rs. hello, then: side, number, thread, acknowledged, opcode, payload.\n",
    );
    for (side, Frame { header, payload }) in &*frames {
        if header.opcode == opcode::HELLO {
            let mut hello: Value = serde_json::from_slice(payload).expect("JSON");
            let fields = hello.as_object_mut().expect("an object");
            fields.retain(|field, _| !["token", "signature", "pid"].contains(&field.as_str()));
            text += &format!("hello {hello}\n");
        }
        if header.opcode == Goodbye::OPCODE {
            break;
        }
        if header.seq > 0 {
            let payload: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
            let Header { seq, thread, ack, opcode, .. } = header;
            text += format!("{side} {seq} {thread} {ack} {opcode} {payload}").trim_end();
            text.push('\n');
        }
    }
    std::fs::write(file, text).expect("written");
}

fn pass(side: char, from: TcpStream, mut to: TcpStream, kept: &Kept) {
    let mut frames = FrameReader::new(from);
    while let Ok(Some(frame)) = frames.next() {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, frame.header, |out| out.extend_from_slice(&frame.payload));
        kept.lock().unwrap_or_else(PoisonError::into_inner).push((side, frame));
        if to.write_all(&bytes).is_err() {
            return;
        }
    }
}

// The same again

fn play(gpud: &Gpud, recorded: &str) {
    let mut lines = recorded.lines().filter(|line| !line.starts_with('#'));
    let hello = lines.next().and_then(|line| line.strip_prefix("hello ")).expect("a hello");
    let mut hello: Value = serde_json::from_str(hello).expect("JSON");
    let mut stream = TcpStream::connect(gpud.address.strip_prefix("tcp://").expect("TCP")).expect("gpud");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut frames = FrameReader::new(stream.try_clone().expect("a socket"));
    let mut next = || frames.next().expect("a frame").expect("the connection is open");

    let key = Ed25519KeyPair::from_seed_unchecked(&[5; 32]).expect("32 bytes");
    let challenge = Challenge::decode(&next().payload).expect("a challenge");
    assert_eq!(challenge.version[0], VERSION_MAJOR);
    let nonce = URL_SAFE_NO_PAD.decode(challenge.nonce).expect("base64url");
    hello["signature"] = json!(URL_SAFE_NO_PAD.encode(key.sign(&[HELLO_CONTEXT, &nonce].concat()).as_ref()));
    hello["token"] = json!(gpud.token(&URL_SAFE_NO_PAD.encode(key.public_key().as_ref()), "lea-recorded", MEMORY));
    let range = hello["ranges"][0]["base"].as_u64();
    send(&mut stream, Header { opcode: opcode::HELLO, ..Header::default() }, hello.to_string().as_bytes());
    let answer = next();
    assert_eq!(answer.header.opcode, opcode::WELCOME, "{}", String::from_utf8_lossy(&answer.payload));
    assert_eq!(Some(Welcome::decode(&answer.payload).expect("a welcome").range.base), range);

    let mut asked = HashMap::new();
    let mut heard = 0;
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let payload = unhex(words.get(5).copied().unwrap_or_default());
        let header = Header {
            seq: number(1),
            thread: number(2) as u32,
            ack: number(3) as u32,
            opcode: number(4) as u16,
            ..Header::default()
        };
        if words[0] == ">" {
            asked.insert(header.seq, header.opcode);
            send(&mut stream, header, &payload);
            continue;
        }
        let frame = loop {
            let frame = next();
            if frame.header.seq > 0 {
                break frame;
            }
        };
        heard += 1;
        assert_eq!((frame.header.opcode, frame.header.seq), (header.opcode, header.seq), "{line}");
        compare(&frame.payload, &payload, header.opcode, &asked);
    }
    assert!(heard > 10, "only {heard} frames were compared");
}

fn send(stream: &mut TcpStream, header: Header, payload: &[u8]) {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, header, |out| out.extend_from_slice(payload));
    stream.write_all(&bytes).expect("the connection is open");
}

/// What a frame from gpud says now, and what it said.
fn compare(now: &[u8], then: &[u8], code: u16, asked: &HashMap<u64, u16>) {
    if code != opcode::REPLY {
        return assert_eq!(now, then, "of {code}");
    }
    let ((call, now), (answered, then)) = (decode_reply(now).expect("a reply"), decode_reply(then).expect("a reply"));
    assert_eq!(call, answered);
    let of = asked[&call];
    let bodies = [now, then].map(|reply| reply.unwrap_or_else(|failure| panic!("operation {of}: {failure}")));
    // What a server has it may have more of tomorrow; how it says so stays.
    let reads: Option<fn(&[u8]) -> bool> = match of {
        of if of == ModuleQuery::OPCODE => Some(whole::<ModuleQueryReply>),
        of if of == ModuleLoad::OPCODE => Some(whole::<ModuleLoadReply>),
        of if of == LibraryOpen::OPCODE => Some(whole::<LibraryOpenReply>),
        of if of == MemInfo::OPCODE => Some(whole::<MemInfoReply>),
        _ => None,
    };
    match reads {
        Some(reads) => assert!(bodies.iter().all(|body| reads(body)), "of operation {of}"),
        None => assert_eq!(bodies[0], bodies[1], "of operation {of}"),
    }
}

/// Whether these bytes are an answer of this kind, and nothing more.
fn whole<T: for<'a> Wire<'a>>(body: &[u8]) -> bool {
    let mut reader = Reader::new(body);
    T::take(&mut reader).is_ok() && reader.rest().is_empty()
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digit).collect()
}
