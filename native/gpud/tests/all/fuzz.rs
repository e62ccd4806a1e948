//! Frames that are cut off, reordered, too long or random, at gpud's port: the connection is closed, nothing else.
//!
//! Mutates what `corpus/` holds, from a seed, for `SLUICE_FUZZ_SECONDS` (5). Each file there is a run of frames,
//! `OPCODE PAYLOAD` a line, and lines of remarks that begin with #; addresses lie in the range that is proposed here,
//! and what a run makes it ends again. A case that shows something is printed,
//! and repeated with `SLUICE_FUZZ_SEED` and the same number of cases.

use crate::support::{Client, Gpud, HelloError, PATIENCE, hello, key, memory_file, sign, unique};
use sluice_protocol::frame::{Header, put_frame};
use sluice_protocol::handshake::{
    AddressRange, Challenge, HELLO_CONTEXT, Handshake, Hello, RefusedCode, Resume, Welcome,
};
use sluice_protocol::messages::{
    ContextSynchronize, ContextSynchronizeReply, Empty, EventElapsed, Goodbye, HostReturned, HostSupplied,
    OccupancyBlocks, OccupancyClusters, OccupancyShared, PeerLink, Rebind, Request, TensorMapEncode,
    TensorMapReplaceAddress,
};
use sluice_protocol::reply::decode_reply;
use sluice_protocol::{Frame, HEADER_BYTES, MAX_FRAME_BYTES, SHARED_LANES, opcode};
use sluice_transport::{Address, Stream, read_handshake, write_handshake};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const RANGE: AddressRange = AddressRange { base: 0x2100_0000_0000, bytes: 16 << 30 };
/// Runs that a case spoils on a session's own connection.
const RUNS: [&[&str]; 7] = [
    &["compute.txt"],
    &["bulk.txt"],
    &["pinned.txt"],
    &["memory.txt"],
    &["work.txt"],
    &["libraries.txt"],
    &["graphs.txt", "answers.txt"],
];
/// Operations that no run has, and where they come instead.
const ELSEWHERE: [(&str, &str); 1] = [("Goodbye", "ends every session here; in a run it would hide what follows it")];
/// Calls of the runs that may be refused, and why.
const REFUSED: [(u16, &str); 8] = [
    (PeerLink::OPCODE, "there is no such session"),
    (Rebind::OPCODE, "the session has a lease"),
    (EventElapsed::OPCODE, "nobody has waited for the events"),
    (OccupancyBlocks::OPCODE, "of the software GPU the client knows it"),
    (OccupancyShared::OPCODE, "of the software GPU the client knows it"),
    (OccupancyClusters::OPCODE, "of the software GPU the client knows it"),
    (TensorMapEncode::OPCODE, "the software GPU has none"),
    (TensorMapReplaceAddress::OPCODE, "the software GPU has none"),
];
/// Cases after which a session is ended in order.
const CASES_A_SESSION: u32 = 40;

/// The splitmix64 generator: the same cases from the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn interesting(&mut self) -> u64 {
        const VALUES: [u64; 12] = [
            0,
            1,
            2,
            u64::MAX,
            u32::MAX as u64,
            i64::MAX as u64,
            i32::MAX as u64,
            1 << 40,
            MAX_FRAME_BYTES as u64 + 1,
            RANGE.base,
            RANGE.base + RANGE.bytes - 1,
            4096,
        ];
        VALUES[self.below(VALUES.len())]
    }
}

type Frames = Vec<(u16, Vec<u8>)>;

fn corpus(name: &str) -> Frames {
    let path = sluice_testing::package_folder().join("tests/corpus").join(name);
    let text = std::fs::read_to_string(&path).expect("a file of the corpus");
    let bytes = |hex: &str| {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect()
    };
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (code, payload) = line.split_once(' ').expect("an opcode and a payload");
            (code.parse().expect("a number"), bytes(payload))
        })
        .collect()
}

fn encode(frames: &Frames, mut seq: u64, numbered: bool) -> Vec<Vec<u8>> {
    let encoded = frames.iter().map(|(code, payload)| {
        let mut bytes = Vec::new();
        let header = Header { opcode: *code, seq: if numbered { seq } else { 0 }, thread: 1, ..Header::default() };
        seq += 1;
        put_frame(&mut bytes, header, |out| out.extend_from_slice(payload));
        bytes
    });
    encoded.collect()
}

/// Spoils a run of frames in one to three ways.
fn mutate(random: &mut Random, mut frames: Vec<Vec<u8>>) -> Vec<u8> {
    for _ in 0..1 + random.below(3) {
        let at = random.below(frames.len());
        let other = random.below(frames.len());
        match random.below(9) {
            0 => frames.swap(at, other),
            1 => frames.insert(at, frames[other].clone()),
            2 if frames.len() > 1 => drop(frames.remove(at)),
            3 => {
                let length = random.interesting() as u32;
                frames[at][..4].copy_from_slice(&length.to_le_bytes());
            }
            4 => {
                let code = random.next() as u16 % 600;
                frames[at][4..6].copy_from_slice(&code.to_le_bytes());
            }
            5 => {
                let seq = random.interesting();
                frames[at][16..24].copy_from_slice(&seq.to_le_bytes());
            }
            6 if frames[at].len() >= HEADER_BYTES + 8 => {
                let place = HEADER_BYTES + random.below(frames[at].len() - HEADER_BYTES - 7);
                let value = random.interesting().to_le_bytes();
                let width = [1, 4, 8][random.below(3)];
                frames[at][place..place + width].copy_from_slice(&value[..width]);
            }
            7 => {
                let place = random.below(frames[at].len());
                frames[at][place] ^= 1 << random.below(8);
            }
            _ => {
                let noise: Vec<u8> = (0..random.below(60)).map(|_| random.next() as u8).collect();
                let place = random.below(frames[at].len() + 1);
                frames[at].splice(place..place, noise);
            }
        }
    }
    let mut bytes = frames.concat();
    if random.below(4) == 0 {
        bytes.truncate(random.below(bytes.len() + 1));
    }
    bytes
}

/// Sends and hangs up; gpud may have hung up before.
fn throw(mut stream: Stream, bytes: &[u8]) {
    stream.set_timeout(Some(Duration::from_secs(5))).expect("timeout");
    let _ = stream.write_all(bytes);
    let _ = match &stream {
        Stream::Tcp(socket) => socket.shutdown(Shutdown::Write),
        Stream::Unix(socket) => socket.shutdown(Shutdown::Write),
        _ => Ok(()),
    };
}

/// A session whose worker has a memory file.
fn start(gpud: &Gpud, nearby: &Address) -> Client {
    let owner = key(unique() as u8 | 0x80);
    let token = sign(&gpud.claims(&owner, "lea-fuzz", 64 * MIB));
    let (stream, welcome) = hello(&gpud.address, &owner, &token, vec![RANGE], None).expect("welcome");
    let client = Client::around(stream, welcome, owner, token);
    let file = memory_file(MIB, libc::F_SEAL_SHRINK);
    assert!(client.hand_over(nearby, &file).expect("a worker on this host"));
    client
}

/// The number after the last frame that the session has taken over, on a new connection; None when it is gone.
fn resume(gpud: &Gpud, client: &mut Client) -> Option<u64> {
    let began = Instant::now();
    loop {
        match client.resume(&gpud.address) {
            Ok(welcome) => return Some(welcome.executed + 1),
            Err(HelloError::Refused(refused)) => {
                assert_eq!(refused.code, RefusedCode::Gone, "{}", refused.text);
                return None;
            }
            // Its worker is just ending.
            Err(HelloError::Io(error)) => {
                assert!(began.elapsed() < PATIENCE, "gpud does not answer: {error}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Opens a lane; on a Unix socket one that shares memory.
fn lane(address: &Address, client: &Client, index: u16) -> io::Result<Stream> {
    use base64::Engine as _;
    let mut stream = Stream::connect(address, None, PATIENCE)?;
    stream.set_timeout(Some(PATIENCE))?;
    let challenge = Challenge::decode(&read_handshake(&mut stream)?.payload).map_err(io::Error::other)?;
    let nonce = crate::support::BASE64URL.decode(challenge.nonce).map_err(io::Error::other)?;
    let resume = Resume { session_id: client.welcome.session_id.clone(), received: 0 };
    let signature = crate::support::BASE64URL.encode(client.key.sign(&[HELLO_CONTEXT, &nonce].concat()).as_ref());
    let version = [sluice_protocol::VERSION_MAJOR, sluice_protocol::VERSION_MINOR];
    let hello = Hello {
        version,
        features: vec![SHARED_LANES.to_owned()],
        token: client.token.clone(),
        signature,
        ranges: vec![],
        resume: Some(resume),
        lane: Some(index),
        pid: 0,
    };
    write_handshake(&mut stream, &hello)?;
    let Frame { header, payload } = read_handshake(&mut stream)?;
    if header.opcode != opcode::WELCOME {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let shares = Welcome::decode(&payload).map_err(io::Error::other)?.features.iter().any(|name| name == SHARED_LANES);
    // Of more lanes than clients open, the others have none.
    assert_eq!(shares, stream.is_unix() && index < 4, "memory is shared on this host and with nobody else");
    Ok(stream)
}

/// A run as it travels beside shared memory, a message a part: bytes in short ones, and words of slots among them.
fn beside_memory(random: &mut Random, bytes: &[u8]) -> Vec<Vec<u8>> {
    let message = |kind: u8, slot: u8, length: usize| {
        let mut message = vec![kind, slot, 0, 0];
        message.extend((length as u32).to_le_bytes());
        message
    };
    let parts = bytes.chunks(400).map(|part| {
        let mut whole = [message(1, 0, part.len()), part.to_vec()].concat();
        match random.below(4) {
            0 => whole.extend(message(2, random.below(6) as u8, 1 + random.below(600 << 10))),
            1 => whole.extend(message(3, random.below(6) as u8, 0)),
            _ => {}
        }
        whole
    });
    parts.collect()
}

/// Sends a run as it is, and sees that nothing in it is refused.
fn in_order(client: &mut Client, name: &str) {
    let (run, before) = (corpus(name), client.sent);
    for (code, payload) in &run {
        // What the device asks of the client is answered when it has asked.
        match *code {
            HostSupplied::OPCODE => drop(client.notice(opcode::HOST_WANTED)),
            HostReturned::OPCODE => drop(client.notice(opcode::HOST_REACHED)),
            _ => {}
        }
        client.sent += 1;
        let frame = encode(&vec![(*code, payload.clone())], client.sent, true).concat();
        client.stream.write_all(&frame).expect("sent");
        if *code == ContextSynchronize::OPCODE {
            // A client unmaps when it knows that nothing uses the memory any more.
            let answer: Result<ContextSynchronizeReply, _> = client.answer(client.sent);
            answer.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        }
    }
    client.call(&Empty).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    let waited = std::mem::take(&mut client.others);
    for frame in waited {
        assert_ne!(frame.header.opcode, opcode::ASYNC_ERROR, "{name}: {:?}", String::from_utf8_lossy(&frame.payload));
        if frame.header.opcode != opcode::REPLY {
            client.others.push_back(frame);
            continue;
        }
        let (call, answer) = decode_reply(&frame.payload).expect("a reply");
        let place = call.checked_sub(before + 1).and_then(|place| usize::try_from(place).ok());
        let Some((code, _)) = place.and_then(|place| run.get(place)) else { continue };
        let refused = REFUSED.iter().any(|(refused, _)| refused == code);
        assert!(refused || answer.is_ok(), "{name}: {code}: {}", answer.expect_err("a refusal"));
    }
}

#[test]
fn every_operation_is_in_the_corpus() {
    let files = RUNS.iter().copied().flatten().copied().chain(["landing.txt"]);
    let there: BTreeSet<u16> = files.flat_map(corpus).map(|(code, _)| code).collect();
    for operation in sluice_api::OPERATIONS {
        let elsewhere = ELSEWHERE.iter().any(|(name, _)| *name == operation.name);
        let (name, code) = (operation.name, operation.opcode);
        assert!(there.contains(&code) != elsewhere, "{name} ({code}) is to stand in the corpus, or in ELSEWHERE");
    }
    assert!(there.iter().all(|code| sluice_api::OPERATIONS.iter().any(|known| known.opcode == *code)));
}

#[test]
fn spoiled_frames_end_their_connection_and_nothing_else() {
    let seconds = std::env::var("SLUICE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let seed = std::env::var("SLUICE_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let log = std::env::temp_dir().join(format!("gpud-fuzz-{}.log", std::process::id()));
    let sockets = std::env::temp_dir().join(format!("gpud-fuzz-{}", std::process::id()));
    let options = ["--sockets", sockets.to_str().expect("UTF-8")];
    let mut gpud = Gpud::start_logging(std::fs::File::create(&log).expect("log"), &options);
    let nearby = Address::Unix(sockets.join(format!("{}.sock", gpud.server_id)));
    let mut good = gpud.connect("lea-good", 64 * MIB);
    let [landing, pieces] = ["landing.txt", "lane.txt"].map(corpus);
    let runs = RUNS.map(|files| files.iter().flat_map(|name| corpus(name)).collect::<Frames>());

    // The corpus itself is in order: every frame is executed, and the piece lands.
    let mut client = start(&gpud, &nearby);
    for name in RUNS.iter().copied().flatten().chain(&["landing.txt"]) {
        in_order(&mut client, name);
    }
    let mut whole = lane(&gpud.address, &client, 0).expect("a lane");
    whole.write_all(&encode(&pieces, 0, false).concat()).expect("sent");
    assert_eq!(client.read(RANGE.base, 5000).expect("landed"), pieces[0].1[16..], "the piece is where it belongs");
    assert!(client.others.iter().all(|frame| frame.header.opcode != opcode::ASYNC_ERROR), "the piece has an error");
    client.send(&Goodbye);

    let mut random = Random(seed);
    let (began, mut cases) = (Instant::now(), 0u64);
    let mut session: Option<(Client, u32)> = None;
    while began.elapsed() < Duration::from_secs(seconds) {
        cases += 1;
        if cases.is_multiple_of(8) {
            // Before anybody has said who it is.
            let hello = br#"{"version":[1,0],"token":"a.b.c","signature":"AAAA","ranges":[],"pid":1}"#.to_vec();
            let stream = Stream::connect(&gpud.address, None, PATIENCE).expect("gpud accepts");
            throw(stream, &mutate(&mut random, encode(&vec![(opcode::HELLO, hello)], 0, false)));
            continue;
        }
        let (mut client, used) = session.take().unwrap_or_else(|| (start(&gpud, &nearby), 0));
        let Some(next) = resume(&gpud, &mut client) else { continue };
        if used >= CASES_A_SESSION {
            client.sent = next - 1;
            client.send(&Goodbye);
            good.call(&Empty).expect("another session is undisturbed");
            continue;
        }
        let on_a_lane = random.below(4) == 0;
        let shared = on_a_lane && random.below(2) == 0;
        let bytes = if on_a_lane {
            client.stream.write_all(&encode(&landing, next, true).concat()).expect("sent");
            let pieces = encode(&pieces, 0, false);
            let pieces = if shared { beside_memory(&mut random, &pieces.concat()) } else { pieces };
            mutate(&mut random, pieces)
        } else {
            let run = &runs[random.below(runs.len())];
            mutate(&mut random, encode(run, next, true))
        };
        if on_a_lane {
            let address = if shared { &nearby } else { &gpud.address };
            if let Ok(stream) = lane(address, &client, random.below(20) as u16) {
                throw(stream, &bytes);
            }
        } else {
            let socket =
                std::mem::replace(&mut client.stream, Stream::connect(&gpud.address, None, PATIENCE).expect("x"));
            throw(socket, &bytes);
        }
        assert!(gpud.child.try_wait().expect("asked").is_none(), "gpud ended at case {cases} of seed {seed}");
        session = Some((client, used + 1));
    }
    good.alloc(MIB).expect("another session is undisturbed");
    let said = std::fs::read_to_string(&log).expect("log");
    let panics: Vec<&str> = said.lines().filter(|line| line.contains("panicked")).collect();
    let _ = (std::fs::remove_file(&log), std::fs::remove_dir_all(&sockets));
    assert!(panics.is_empty(), "in {cases} cases of seed {seed}: {panics:#?}");
    println!("fuzz: {cases} cases in {seconds} s, seed {seed}, 0 findings");
}
