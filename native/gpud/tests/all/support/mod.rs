//! A real gpud, tokens that it trusts, and a bare client that speaks the protocol frame by frame.

pub mod broker;

use base64::Engine as _;
pub use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use ring::digest::{SHA256, digest};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use sluice_protocol::control::{AsyncError, LeaseEnded};
use sluice_protocol::frame::{Header, put_frame};
use sluice_protocol::handshake::{AddressRange, Challenge, HELLO_CONTEXT, Handshake, Hello, Refused, Resume, Welcome};
use sluice_protocol::messages::{self as m, CallRequest, Request};
use sluice_protocol::reply::decode_reply;
use sluice_protocol::{Failure, Frame, PINNED_MEMORY, Reader, Wire, opcode};
use sluice_transport::{Address, Stream, read_handshake, write_handshake};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub const NAME: &str = "test-server";
/// Answers of a healthy gpud come long before that.
pub const PATIENCE: Duration = Duration::from_secs(20);

static COUNTER: AtomicU32 = AtomicU32::new(1);

pub fn unique() -> u32 {
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

pub fn key(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).expect("32 bytes")
}

/// The broker's key in these tests.
const SIGNER: u8 = 1;

pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("clock").as_secs() as i64
}

/// `libnvidia-ml.so.1` of three cards (conformance/standins/nvml.c).
pub fn nvml_stand_in() -> PathBuf {
    let source = sluice_testing::package_folder().join("../conformance/standins/nvml.c");
    let library = std::env::temp_dir().join(format!("nvml-{}-{}.so", std::process::id(), unique()));
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(source);
    assert!(compiler.status().expect("cc").success());
    library
}

/// The fingerprint of a certificate, as gpud tells it.
pub fn pin_of(text: &str) -> [u8; 32] {
    BASE64URL.decode(text).expect("base64url").try_into().expect("SHA-256")
}

/// A gpud process; ended and removed with the value.
pub struct Gpud {
    pub child: Child,
    pub address: Address,
    /// Of its certificate, where it listens with TLS.
    pub pin: Option<[u8; 32]>,
    pub state: PathBuf,
    /// UUID of its first device.
    pub device: String,
    /// Of all.
    pub devices: Vec<String>,
    /// Under which name tokens address it.
    pub server_id: String,
}

impl Gpud {
    pub fn start(options: &[&str]) -> Gpud {
        Gpud::run(&[], options, NAME, Stdio::inherit())
    }

    /// As [`Gpud::start`], with what gpud and its workers say in a file.
    pub fn start_logging(log: File, options: &[&str]) -> Gpud {
        Gpud::run(&[], options, NAME, Stdio::from(log))
    }

    /// A gpud that has joined this broker; the channel is still to be opened.
    pub fn join(broker: &mut broker::Broker, options: &[&str]) -> Gpud {
        Gpud::join_logging(broker, options, Stdio::inherit())
    }

    /// As [`Gpud::join`], with another log.
    pub fn join_logging(broker: &mut broker::Broker, options: &[&str], log: Stdio) -> Gpud {
        let url = broker.url.clone();
        std::thread::scope(|scope| {
            let starting =
                scope.spawn(|| Gpud::run(&["join", &url, "--token", "slj_t"], options, broker::SERVER_ID, log));
            broker.admit("slj_t");
            starting.join().expect("started")
        })
    }

    fn run(verb: &[&str], options: &[&str], server_id: &str, log: Stdio) -> Gpud {
        let state = std::env::temp_dir().join(format!("gpud-test-{}-{}", std::process::id(), unique()));
        let trusted = format!("k1={}", BASE64URL.encode(key(SIGNER).public_key().as_ref()));
        let program = sluice_testing::program("gpud");
        let common =
            ["--state", state.to_str().expect("UTF-8"), "--name", NAME, "--trust-key", &trusted, "--backend", "soft"];
        let listed = Command::new(&program).arg("devices").args(common).args(options).output().expect("gpud devices");
        let devices: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
        let mut command = Command::new(program);
        command
            .args(verb)
            .args(common)
            .args(["--listen", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = command.spawn().expect("gpud starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("ready line");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(ready["ready"], "gpud");
        let address = ready["address"].as_str().expect("address").parse().expect("address");
        let pin = ready["tlsFingerprint"].as_str().map(pin_of);
        let uuid = |device: &Value| device["uuid"].as_str().expect("uuid").to_owned();
        let devices: Vec<String> = devices.as_array().expect("a list").iter().map(uuid).collect();
        let device = devices[0].clone();
        Gpud { child, address, pin, state, device, devices, server_id: server_id.to_owned() }
    }

    /// Claims of a good token for a lease with this much memory.
    pub fn claims(&self, client: &Ed25519KeyPair, lease: &str, memory: u64) -> Value {
        json!({
            "iss": "sluice", "aud": format!("gpud:{}", self.server_id), "sub": "ws-test", "jti": format!("j{}", unique()),
            "iat": now(), "exp": now() + 300, "sid": format!("gws-{}", unique()),
            "cnf": {"ed25519": BASE64URL.encode(client.public_key().as_ref())},
            "lease": {"id": lease, "epoch": 1, "deviceUuid": self.device, "milli": 500, "memoryBytes": memory,
                      "gpuType": "soft", "expiresAt": now() + 3600},
        })
    }

    /// A connection on which nothing has been said.
    pub fn open(&self) -> Stream {
        Stream::connect(&self.address, self.pin.as_ref(), PATIENCE).expect("connected")
    }

    pub fn connect(&self, lease: &str, memory: u64) -> Client {
        let client = key(unique() as u8 | 0x80);
        let token = sign(&self.claims(&client, lease, memory));
        Client::connect_on(self.open(), client, token).expect("welcome")
    }

    /// Process ids of the workers that serve a client now, by their sockets' age: all but the one made ahead.
    pub fn workers(&self) -> Vec<u32> {
        let path = format!("/proc/{0}/task", self.child.id());
        let tasks = std::fs::read_dir(path).expect("tasks").flatten();
        tasks
            .flat_map(|task| {
                let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
                children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
            })
            .collect()
    }

    /// The worker that is made ahead, once it runs the program: it serves the next client.
    pub fn next_worker(&self) -> u32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            for pid in self.workers() {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                if line.ends_with(b"\0worker\0") {
                    return pid;
                }
            }
            assert!(Instant::now() < deadline, "no worker is made ahead");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops the worker that serves the next client, so that it carries out nothing until it is continued.
    pub fn stop_next_worker(&self) -> u32 {
        let worker = self.next_worker();
        // SAFETY: a worker of this gpud.
        assert_eq!(unsafe { libc::kill(worker as libc::pid_t, libc::SIGSTOP) }, 0);
        worker
    }

    /// Waits until this worker, the only one so far, has been given to a client: another is made ahead then.
    pub fn wait_until_taken(&self, worker: u32) {
        let deadline = Instant::now() + PATIENCE;
        while self.workers().iter().all(|pid| *pid == worker) {
            assert!(Instant::now() < deadline, "no client has been given the worker");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Time that these processes have spent on processors.
pub fn processor_time(pids: &[u32]) -> Duration {
    let ticks = |pid: &u32| -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    };
    // A hundred ticks a second, on every Linux.
    Duration::from_millis(10 * pids.iter().filter_map(ticks).sum::<u64>())
}

impl Drop for Gpud {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

/// Signs claims as the broker does.
pub fn sign(claims: &Value) -> String {
    sign_with(SIGNER, claims)
}

pub fn sign_with(seed: u8, claims: &Value) -> String {
    let header = BASE64URL.encode(r#"{"alg":"EdDSA","kid":"k1","typ":"JWT"}"#);
    let signed = format!("{header}.{}", BASE64URL.encode(claims.to_string()));
    let signature = BASE64URL.encode(key(seed).sign(signed.as_bytes()).as_ref());
    format!("{signed}.{signature}")
}

/// A memory file with these seals.
pub fn memory_file(bytes: u64, seals: libc::c_int) -> File {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a C string; the descriptor is nobody else's.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), flags)) };
    file.set_len(bytes).expect("length");
    // SAFETY: numbers alone.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }, 0);
    file
}

/// One connection to gpud, with its session's numbers.
pub struct Client {
    pub stream: Stream,
    pub key: Ed25519KeyPair,
    pub token: String,
    pub welcome: Welcome,
    pub sent: u64,
    pub received: u64,
    /// Frames that came while an answer was waited for.
    pub others: VecDeque<Frame>,
    next_address: u64,
}

/// How a hello was answered.
#[derive(Debug)]
pub enum HelloError {
    Refused(Refused),
    Io(io::Error),
}

impl From<io::Error> for HelloError {
    fn from(error: io::Error) -> HelloError {
        HelloError::Io(error)
    }
}

/// Connects, and answers the challenge with this key and token.
pub fn hello(
    address: &Address,
    key: &Ed25519KeyPair,
    token: &str,
    ranges: Vec<AddressRange>,
    resume: Option<Resume>,
) -> Result<(Stream, Welcome), HelloError> {
    hello_on(Stream::connect(address, None, PATIENCE)?, key, token, ranges, resume, &[])
}

/// As [`hello`], on a connection that is open, of a client with these features.
pub fn hello_on(
    mut stream: Stream,
    key: &Ed25519KeyPair,
    token: &str,
    ranges: Vec<AddressRange>,
    resume: Option<Resume>,
    features: &[&str],
) -> Result<(Stream, Welcome), HelloError> {
    say_hello(&mut stream, key, token, ranges, resume, features)?;
    let frame = read_handshake(&mut stream)?;
    if frame.header.opcode == opcode::REFUSED {
        return Err(HelloError::Refused(Refused::decode(&frame.payload).expect("refusal")));
    }
    assert_eq!(frame.header.opcode, opcode::WELCOME);
    Ok((stream, Welcome::decode(&frame.payload).expect("welcome")))
}

/// Answers the challenge, and leaves gpud's answer to be read.
pub fn say_hello(
    stream: &mut Stream,
    key: &Ed25519KeyPair,
    token: &str,
    ranges: Vec<AddressRange>,
    resume: Option<Resume>,
    features: &[&str],
) -> io::Result<()> {
    say_hello_as(stream, key, token, ranges, resume, features, std::process::id())
}

/// As [`say_hello`], of a process that calls itself `pid`.
pub fn say_hello_as(
    stream: &mut Stream,
    key: &Ed25519KeyPair,
    token: &str,
    ranges: Vec<AddressRange>,
    resume: Option<Resume>,
    features: &[&str],
    pid: u32,
) -> io::Result<()> {
    stream.set_timeout(Some(PATIENCE))?;
    let frame = read_handshake(stream)?;
    let challenge = Challenge::decode(&frame.payload).expect("challenge");
    let nonce = BASE64URL.decode(challenge.nonce).expect("base64url");
    let signature = BASE64URL.encode(key.sign(&[HELLO_CONTEXT, &nonce].concat()).as_ref());
    let version = [sluice_protocol::VERSION_MAJOR, sluice_protocol::VERSION_MINOR];
    let token = token.to_owned();
    let features = features.iter().map(|name| (*name).to_owned()).collect();
    let hello = Hello { version, features, token, signature, ranges, resume, lane: None, pid };
    write_handshake(stream, &hello)
}

/// A range like those that clients propose. Workers have address spaces of their own, so a thousand ranges serve any
/// number of them.
pub fn range() -> AddressRange {
    AddressRange { base: 0x2000_0000_0000 + u64::from(unique() % 1000) * (32 << 30), bytes: 16 << 30 }
}

impl Client {
    pub fn connect(address: &Address, key: Ed25519KeyPair, token: String) -> Result<Client, HelloError> {
        Client::connect_on(Stream::connect(address, None, PATIENCE)?, key, token)
    }

    pub fn connect_on(stream: Stream, key: Ed25519KeyPair, token: String) -> Result<Client, HelloError> {
        let (stream, welcome) = hello_on(stream, &key, &token, vec![range()], None, &[])?;
        Ok(Client::around(stream, welcome, key, token))
    }

    /// A client whose hello was answered.
    pub fn around(stream: Stream, welcome: Welcome, key: Ed25519KeyPair, token: String) -> Client {
        let next_address = welcome.range.base;
        Client { stream, key, token, welcome, sent: 0, received: 0, others: VecDeque::new(), next_address }
    }

    /// Goes on under a new lease.
    pub fn rebind(&mut self, token: &str) -> Result<m::RebindReply, Failure> {
        self.call(&m::Rebind { token })
    }

    /// Lets the connection go without a word, as a process that is killed does.
    pub fn hang_up(&mut self, address: &Address) {
        self.stream = Stream::connect(address, None, PATIENCE).expect("a connection that says nothing");
    }

    /// Takes the session up again on a new connection.
    pub fn resume(&mut self, address: &Address) -> Result<Welcome, HelloError> {
        let resume = Resume { session_id: self.welcome.session_id.clone(), received: self.received };
        let (stream, welcome) = hello(address, &self.key, &self.token, vec![], Some(resume))?;
        self.stream = stream;
        Ok(welcome)
    }

    /// Hands a memory file to the session's worker, by this address; whether it takes it.
    pub fn hand_over(&self, address: &Address, file: &File) -> io::Result<bool> {
        self.hand_over_on(address, file).map(|(taken, _)| taken)
    }

    /// The same, with the connection, which ends with the worker.
    pub fn hand_over_on(&self, address: &Address, file: &File) -> io::Result<(bool, Stream)> {
        let resume = Resume { session_id: self.welcome.session_id.clone(), received: self.received };
        let stream = Stream::connect(address, None, PATIENCE)?;
        let welcomed = hello_on(stream, &self.key, &self.token, vec![], Some(resume), &[PINNED_MEMORY]);
        let (mut stream, _) = welcomed.map_err(|error| io::Error::other(format!("{error:?}")))?;
        stream.hand_over(file.as_fd())?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        Ok((answer == [1], stream))
    }

    pub fn send<'a, R: Request<'a>>(&mut self, request: &R) -> u64 {
        self.sent += 1;
        let mut bytes = Vec::new();
        let header =
            Header { opcode: R::OPCODE, thread: 1, seq: self.sent, ack: self.received as u32, ..Header::default() };
        put_frame(&mut bytes, header, |out| request.put(out));
        // A connection that is gone shows itself at the next read.
        let _ = self.stream.write_all(&bytes);
        self.sent
    }

    /// Acknowledges what has been received, behind what has been sent.
    pub fn acknowledge(&mut self) {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, Header { opcode: opcode::ACK, ack: self.received as u32, ..Header::default() }, |_| ());
        self.stream.write_all(&bytes).expect("sent");
    }

    /// The next numbered frame.
    pub fn next(&mut self) -> io::Result<Frame> {
        loop {
            let frame = read_frame(&mut self.stream)?;
            if frame.header.seq == 0 {
                continue;
            }
            self.received = frame.header.seq;
            return Ok(frame);
        }
    }

    pub fn call<'a, R: CallRequest<'a>>(&mut self, request: &R) -> Result<R::Reply, Failure> {
        let call = self.send(request);
        self.answer::<R::Reply>(call)
    }

    pub fn answer<T: for<'a> Wire<'a>>(&mut self, call: u64) -> Result<T, Failure> {
        loop {
            let frame = self.next().expect("an answer");
            if frame.header.opcode == opcode::REPLY {
                let (answered, result) = decode_reply(&frame.payload).expect("reply");
                if answered == call {
                    return result.map(|body| T::take(&mut Reader::new(body)).expect("body"));
                }
            }
            self.others.push_back(frame);
        }
    }

    /// The next frame of this kind, kept or new.
    pub fn notice(&mut self, code: u16) -> Frame {
        if let Some(at) = self.others.iter().position(|frame| frame.header.opcode == code) {
            return self.others.remove(at).expect("there");
        }
        loop {
            let frame = self.next().expect("a notice");
            if frame.header.opcode == code {
                return frame;
            }
            self.others.push_back(frame);
        }
    }

    pub fn lease_ended(&mut self) -> LeaseEnded {
        let frame = self.notice(opcode::LEASE_ENDED);
        LeaseEnded::take(&mut Reader::new(&frame.payload)).expect("notice")
    }

    pub fn async_error(&mut self) -> AsyncError {
        let frame = self.notice(opcode::ASYNC_ERROR);
        AsyncError::take(&mut Reader::new(&frame.payload)).expect("notice")
    }

    /// Allocates as a client does: growing the credit, then posting.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, Failure> {
        self.call(&m::MemGrow { bytes })?;
        let address = self.next_address;
        self.next_address += bytes.next_multiple_of(512);
        self.send(&m::MemAlloc { address, bytes });
        Ok(address)
    }

    pub fn write(&mut self, address: u64, data: &[u8]) {
        self.send(&m::CopyToDevice { address, stream: 0, data });
    }

    pub fn read(&mut self, address: u64, bytes: u64) -> Result<Vec<u8>, Failure> {
        self.call(&m::CopyFromDevice { address, stream: 0, bytes }).map(|reply| reply.data.0)
    }

    pub fn load(&mut self, module: u64, ptx: &str) -> Result<sluice_protocol::ModuleInfo, Failure> {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, ptx.as_bytes()).as_ref());
        self.call(&m::ModuleLoad { module, hash, heap: 8 << 20, image: ptx.as_bytes() }).map(|reply| reply.info)
    }

    pub fn launch(&mut self, module: u64, grid: u32, block: u32, parameters: &[u8]) -> u64 {
        self.send(&m::Launch {
            module,
            function: 0,
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            shared_bytes: 0,
            flags: 0,
            stream: 0,
            parameters,
        })
    }
}

/// Adds one to each of the 32-bit numbers at its parameter; 256 threads a block, as many blocks as launched.
pub const ADD_ONE: &str = r"
.version 7.5
.target sm_75
.address_size 64
.visible .entry add_one(.param .u64 data)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r5, [%rd3];
    add.s32 %r5, %r5, 1;
    st.global.u32 [%rd3], %r5;
    ret;
}
";

/// Never ends.
pub const ENDLESS: &str = r"
.version 7.5
.target sm_75
.address_size 64
.visible .entry endless(.param .u64 data)
{
L:
    bra L;
}
";

/// Blocks below 40 end at once, the others when the 32-bit number at its parameter is not zero any more.
pub const WAITING: &str = r"
.version 7.5
.target sm_75
.address_size 64
.visible .entry _Z7waitingPj(.param .u64 data)
{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %ctaid.x;
    setp.lt.u32 %p1, %r1, 40;
    @%p1 ret;
L:
    ld.volatile.global.u32 %r2, [%rd1];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra L;
    ret;
}
";

fn read_frame(stream: &mut Stream) -> io::Result<Frame> {
    let mut bytes = [0; sluice_protocol::HEADER_BYTES];
    stream.read_exact(&mut bytes)?;
    let header = Header::decode(&bytes, sluice_protocol::MAX_FRAME_BYTES).map_err(io::Error::other)?;
    let mut payload = vec![0; header.len as usize];
    stream.read_exact(&mut payload)?;
    Ok(Frame { header, payload })
}
