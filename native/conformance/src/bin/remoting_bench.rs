//! `sluice-remoting-bench [--quick]`: what remoting costs, as one line of JSON. Launches and calls go to a null
//! device, bulk copies to the software GPU's memory; over loopback, and through a line that takes its time.

use serde_json::{Map, Value, json};
use sluice_client::bulk::lane_count;
use sluice_client::dial::{Key, Ticket};
use sluice_client::generated::*;
use sluice_client::objects::Module;
use sluice_client::process;
use sluice_client::session::Session;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, alloc, ask, attach, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::measure::{own_cpu_us, percentile};
use sluice_conformance::programs::ADD;
use sluice_conformance::proxy::Proxy;
use sluice_protocol::messages::{Empty, EmptyPosted};
use sluice_transport::{Address, Listener, ReadHalf, Stream, WriteHalf, tls};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const GIB: f64 = (1u64 << 30) as f64;

type Figures = Map<String, Value>;
type Outcome<T = ()> = Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--far-side", address, count] => serve_far_side(address, count.parse().unwrap_or(1)),
        others => run(others.contains(&"--quick")),
    };
    match outcome {
        Ok(figures) => {
            println!("{}", Value::Object(figures));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn put(figures: &mut Figures, name: impl Into<String>, value: f64) {
    figures.insert(name.into(), json!((value * 1000.0).round() / 1000.0));
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Keeps the calling thread, and what it starts from now on, on one core; None lets it go.
fn pin(core: Option<usize>) {
    // SAFETY: a zeroed set is empty; the set is a live local of the size given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for index in 0..libc::sysconf(libc::_SC_NPROCESSORS_CONF) as usize {
            if core.is_none_or(|core| core == index) {
                libc::CPU_SET(index, &mut set);
            }
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

fn ticket(gpud: &Gpud, address: &str, memory: u64) -> Outcome<Ticket> {
    let key = Arc::new(Key::generate()?);
    let token = gpud.token(&key.public(), "lea-bench", memory);
    Ok(Ticket { address: address.parse()?, nearby: None, pin: None, token, key, several: false })
}

fn run(quick: bool) -> Outcome<Figures> {
    let mut figures = Figures::new();
    let scale = if quick { 10 } else { 1 };
    one_core(&mut figures, scale)?;
    calls(&mut figures, scale)?;
    for kind in ["tcp", "tls", "unix"] {
        bulk(&mut figures, scale, kind)?;
    }
    modules(&mut figures, scale)?;
    Ok(figures)
}

/// A gpud's options for TLS.
const TLS: [&str; 2] = ["--listen", "tls://127.0.0.1:0"];

/// Posted calls with client and gpud together on one core.
fn one_core(figures: &mut Figures, scale: u32) -> Outcome {
    pin(Some(0));
    let gpud = Gpud::start("null", &[])?;
    let session = Session::open(ticket(&gpud, &gpud.address, 1 << 30)?, 1, 0, "lea-bench".into());
    let session = session.map_err(|error| error.to_string())?;
    let failed = |error: sluice_client::error::CudaError| format!("{error:?}");
    let count = 4_000_000 / scale;
    for _ in 0..count / 10 {
        session.connection.post(&EmptyPosted).map_err(failed)?;
    }
    session.connection.call(&Empty).map_err(failed)?;
    let began = Instant::now();
    for _ in 0..count {
        session.connection.post(&EmptyPosted).map_err(failed)?;
    }
    session.connection.call(&Empty).map_err(failed)?;
    put(figures, "calls_per_s", f64::from(count) / began.elapsed().as_secs_f64());
    session.close();
    pin(None);
    Ok(())
}

/// Attaches, launches and round trips as a program makes them, on lines of several lengths, and with TLS.
fn calls(figures: &mut Figures, scale: u32) -> Outcome {
    let mut function = None;
    for (name, added) in [("", 0.0), ("_tls", 0.0), ("_rtt02", 0.2), ("_rtt1", 1.0)] {
        let options: &[&str] = if name == "_tls" { &TLS } else { &[] };
        let mut gpud = Gpud::start("null", options)?;
        let line = Proxy::with_round_trip(&gpud.address, Duration::from_secs_f64(added / 1000.0));
        let line = line.map_err(|error| error.to_string())?;
        if added > 0.0 {
            gpud.address = line.address.clone();
        }
        let gpud = Arc::new(gpud);
        let broker = Broker::start(Arc::clone(&gpud), 1 << 30).map_err(|error| error.to_string())?;
        // SAFETY: no other thread of this program reads the environment now.
        unsafe { broker.set_environment() };
        let function = *function.get_or_insert_with(start);
        let mut attaches = Vec::new();
        for _ in 0..20 / scale.min(4) {
            let began = Instant::now();
            attach();
            let (code, address) = alloc();
            assert_eq!((code, add(function, address, 128, 1)), (0, 0));
            // SAFETY: no arguments.
            assert_eq!(unsafe { sluice_cuCtxSynchronize() }, 0);
            attaches.push(micros(began.elapsed()) / 1000.0);
            // SAFETY: allocated above.
            unsafe { sluice_cuMemFree_v2(address) };
            let answer = ask(&json!({ "op": "detach" }));
            assert!(answer["leaseId"].is_string(), "{answer}");
            if let Some(session) = process::get().device(0).any_session() {
                session.close();
            }
        }
        put(figures, format!("attach_ms{name}"), percentile(attaches, 0.5));
        attach();
        launches(figures, name, &gpud, function, 200 / scale.min(10))?;
        round_trips(figures, name, &gpud, (if added > 0.0 { 1000 } else { 10_000 }) / scale)?;
        if let Some(session) = process::get().device(0).any_session() {
            session.close();
        }
    }
    Ok(())
}

/// Bursts of launches; each burst ends with a synchronisation, which is answered when all of it was executed.
fn launches(figures: &mut Figures, name: &str, gpud: &Gpud, function: usize, bursts: u32) -> Outcome {
    const LENGTH: u32 = 10_000;
    let (code, address) = alloc();
    assert_eq!(code, 0);
    let (mut whole, mut posting) = (Vec::new(), Vec::new());
    let (mut cpu, mut server) = (0.0, 0);
    for burst in 0..bursts + 2 {
        if burst == 2 {
            (cpu, server) = (own_cpu_us(), gpud.cpu_us());
        }
        let began = Instant::now();
        for _ in 0..LENGTH {
            assert_eq!(add(function, address, 128, 1), 0);
        }
        let posted = began.elapsed();
        // SAFETY: no arguments.
        assert_eq!(unsafe { sluice_cuCtxSynchronize() }, 0);
        if burst >= 2 {
            posting.push(micros(posted) / f64::from(LENGTH));
            whole.push(micros(began.elapsed()) / f64::from(LENGTH));
        }
    }
    let count = f64::from(bursts * LENGTH);
    put(figures, format!("launch_us{name}"), percentile(whole, 0.5));
    put(figures, format!("launch_posting_us{name}"), percentile(posting, 0.5));
    // The longer lines are in this process, which would count their time too.
    if name.is_empty() {
        put(figures, "launch_client_cpu_us", (own_cpu_us() - cpu) / count);
        put(figures, "launch_gpud_cpu_us", (gpud.cpu_us() - server) as f64 / count);
    }
    // SAFETY: allocated above.
    unsafe { sluice_cuMemFree_v2(address) };
    Ok(())
}

fn round_trips(figures: &mut Figures, name: &str, gpud: &Gpud, count: u32) -> Outcome {
    let session = process::get().device(0).any_session().ok_or("not attached")?;
    let failed = |error: sluice_client::error::CudaError| format!("{error:?}");
    for _ in 0..count / 5 {
        session.connection.call(&Empty).map_err(failed)?;
    }
    let (cpu, server) = (own_cpu_us(), gpud.cpu_us());
    let mut times = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        session.connection.call(&Empty).map_err(failed)?;
        times.push(micros(began.elapsed()));
    }
    put(figures, format!("roundtrip_us{name}"), percentile(times, 0.5));
    if name.is_empty() {
        put(figures, "roundtrip_client_cpu_us", (own_cpu_us() - cpu) / f64::from(count));
        put(figures, "roundtrip_gpud_cpu_us", (gpud.cpu_us() - server) as f64 / f64::from(count));
    }
    // Calls with a pause between them: both sides have gone to sleep.
    let mut times = Vec::new();
    for _ in 0..(200 / count.min(2)) {
        std::thread::sleep(Duration::from_millis(3));
        let began = Instant::now();
        session.connection.call(&Empty).map_err(failed)?;
        times.push(micros(began.elapsed()));
    }
    put(figures, format!("roundtrip_asleep_us{name}"), percentile(times, 0.5));
    Ok(())
}

/// Copies of 256 MiB between touched memory and touched memory, against the same bytes over bare connections of the
/// same kind and number, turn by turn so that both see the same machine. Of one host, copies go through shared memory,
/// and the bare connections are the Unix sockets that they would take without it.
fn bulk(figures: &mut Figures, scale: u32, kind: &str) -> Outcome {
    const BYTES: usize = 256 << 20;
    let rounds = if scale > 1 { 3 } else { 9 };
    let sockets = Sockets::new()?;
    let (prefix, generation, options): (_, _, &[&str]) = match kind {
        "tls" => ("tls_", 1001, &TLS),
        "unix" => ("shared_", 1002, &["--sockets", sockets.text()]),
        _ => ("", 1000, &[]),
    };
    let gpud = Gpud::start("soft", options)?;
    let mut ticket = ticket(&gpud, &gpud.address, 1 << 30)?;
    ticket.pin = gpud.fingerprint;
    ticket.nearby = (kind == "unix").then(|| sockets.0.join("conformance.sock"));
    let session = Session::open(ticket, generation, 0, "lea-bench".into());
    let session = session.map_err(|error| error.to_string())?;
    let failed = |error: sluice_client::error::CudaError| format!("{error:?}");
    let address = session.alloc(BYTES as u64, 0).map_err(failed)?;
    let lanes = lane_count();
    let pattern = |round: usize| (0..BYTES / 8).flat_map(move |at| ((at * 0x9e37_79b9 + round) as u64).to_le_bytes());
    let mut here: Vec<u8> = pattern(0).collect();
    let mut back = vec![1; BYTES];
    let bare = Bare::start(lanes, kind, &sockets)?;
    let (mut up, mut down, mut bare_up, mut bare_down) = (vec![], vec![], vec![], vec![]);
    for round in 0..rounds {
        for (word, bytes) in here.chunks_exact_mut(8).enumerate().step_by(509) {
            bytes.copy_from_slice(&((word * 0x9e37_79b9 + round) as u64).to_le_bytes());
        }
        bare_up.push(bare.send(&here)?);
        let began = Instant::now();
        // SAFETY: `here` is not touched meanwhile.
        unsafe { session.connection.copy_in(address, 0, here.as_ptr(), BYTES) }.ok_or("no lanes")?.map_err(failed)?;
        up.push(BYTES as f64 / began.elapsed().as_secs_f64());
        bare_down.push(bare.receive(&mut back)?);
        let began = Instant::now();
        // SAFETY: `back` has room, and is not touched meanwhile.
        unsafe { session.connection.copy_out(address, 0, back.as_mut_ptr(), BYTES) }
            .ok_or("no lanes")?
            .map_err(failed)?;
        down.push(BYTES as f64 / began.elapsed().as_secs_f64());
        if here != back {
            return Err("a copy changed its bytes".into());
        }
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if maps.contains("memfd:sluice-lane") != (kind == "unix") {
        return Err(format!("copies over {kind} went another way"));
    }
    session.close();
    let (up, down, bare_up, bare_down) =
        (percentile(up, 0.5), percentile(down, 0.5), percentile(bare_up, 0.5), percentile(bare_down, 0.5));
    put(figures, format!("{prefix}h2d_share"), up / bare_up);
    put(figures, format!("{prefix}d2h_share"), down / bare_down);
    put(figures, format!("{prefix}h2d_gib_s"), up / GIB);
    put(figures, format!("{prefix}d2h_gib_s"), down / GIB);
    put(figures, format!("{prefix}bare_up_gib_s"), bare_up / GIB);
    put(figures, format!("{prefix}bare_down_gib_s"), bare_down / GIB);
    figures.insert("lanes".into(), json!(lanes));
    Ok(())
}

/// A folder for sockets, gone with the value.
struct Sockets(PathBuf);

impl Sockets {
    fn new() -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("sluice-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        Ok(Self(path))
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A program for five kinds of devices, as libraries carry them, of which one image travels: of [`IMAGE_BYTES`].
fn fat_binary() -> Vec<u8> {
    let text = format!("{ADD}\n// {}\n", "x".repeat(IMAGE_BYTES));
    let entry = |kind: u16, arch: u32, payload: &[u8]| {
        let mut bytes = vec![0; 64];
        bytes[0..2].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&64u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes[28..32].copy_from_slice(&arch.to_le_bytes());
        bytes.extend(payload);
        bytes
    };
    let machine_code = vec![1; IMAGE_BYTES];
    let others = [80, 86, 90, 100].map(|arch| entry(2, arch, &machine_code));
    let body = [entry(1, 75, text.as_bytes()), others.concat()].concat();
    let mut image =
        [0xba55_ed50u32.to_le_bytes().as_slice(), &[1, 0, 16, 0], &(body.len() as u64).to_le_bytes()].concat();
    image.extend(body);
    image
}

const IMAGE_BYTES: usize = 48 << 20;

/// From asking for a lease to the result of the first kernel of a module of [`IMAGE_BYTES`]: sent, where gpud keeps no
/// images, and kept, where an earlier lease has sent it; of one process, and until the last of ten at one time is
/// ready.
fn modules(figures: &mut Figures, scale: u32) -> Outcome {
    let image = fat_binary();
    let name = c"add";
    for (word, options) in [("sent", &["--image-limit", "0"][..]), ("kept", &[][..])] {
        let gpud = Arc::new(Gpud::start("null", options)?);
        let broker = Broker::start(Arc::clone(&gpud), 1 << 30).map_err(|error| error.to_string())?;
        // SAFETY: no other thread of this program reads the environment now.
        unsafe { broker.set_environment() };
        let mut times = Vec::new();
        for round in 0..=10 / scale.min(4) {
            let began = Instant::now();
            attach();
            let (mut module, mut function) = (0, 0);
            // SAFETY: a whole image, a live string and live locals.
            unsafe {
                assert_eq!(sluice_cuModuleLoadData(&raw mut module, image.as_ptr().cast()), 0);
                assert_eq!(sluice_cuModuleGetFunction(&raw mut function, module, name.as_ptr()), 0);
            }
            let (code, address) = alloc();
            assert_eq!((code, add(function, address, 128, 1)), (0, 0));
            // SAFETY: no arguments; a module loaded and memory allocated above.
            unsafe {
                assert_eq!(sluice_cuCtxSynchronize(), 0);
                if round > 0 {
                    times.push(micros(began.elapsed()) / 1000.0);
                }
                assert_eq!(sluice_cuModuleUnload(module), 0);
                sluice_cuMemFree_v2(address);
            }
            ask(&json!({ "op": "detach" }));
            if let Some(session) = process::get().device(0).any_session() {
                session.close();
            }
        }
        put(figures, format!("module_{word}_ms"), percentile(times, 0.5));
        let began = Instant::now();
        let text: Arc<[u8]> = format!("{ADD}\n// {}\n", "x".repeat(IMAGE_BYTES)).into_bytes().into();
        let load = |number: u64| {
            let session = Session::open(ticket(&gpud, &gpud.address, 1 << 30)?, 1100 + number, 0, "lea-ten".into());
            let session = session.map_err(|error| error.to_string())?;
            let loaded = Module::new(number, None, Arc::clone(&text)).ensure(&session);
            session.close();
            loaded.map(drop).map_err(|error| format!("{error:?}"))
        };
        std::thread::scope(|scope| {
            let load = &load;
            let threads: Vec<_> = (0..10).map(|number| scope.spawn(move || load(number))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        put(figures, format!("module_ten_{word}_ms"), micros(began.elapsed()) / 1000.0);
    }
    Ok(())
}

/// Bare connections to a process of its own, as gpud's worker is one: what the system can carry. The far side keeps
/// its bytes in memory of its own, touched, as long as a copy.
struct Bare {
    connections: Vec<Mutex<(ReadHalf, WriteHalf)>>,
    child: Child,
}

/// Bytes of one system call.
const CALL_BYTES: usize = 1 << 20;

impl Bare {
    fn start(count: usize, kind: &str, sockets: &Sockets) -> Outcome<Self> {
        let text = |error: std::io::Error| error.to_string();
        let program = std::env::current_exe().map_err(text)?;
        let place = if kind == "unix" { format!("{}/bare.sock", sockets.text()) } else { "127.0.0.1:0".to_owned() };
        let mut child = Command::new(program)
            .args(["--far-side", &format!("{kind}://{place}"), &count.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(text)?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line).map_err(text)?;
        let told: (String, [u8; 32]) = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let address: Address = told.0.parse()?;
        let connect = |_| {
            Stream::connect(&address, Some(&told.1), PATIENCE).and_then(Stream::split).map(Mutex::new).map_err(text)
        };
        Ok(Self { connections: (0..count).map(connect).collect::<Result<_, _>>()?, child })
    }

    fn each<T: Send>(
        &self,
        parts: Vec<T>,
        work: impl Fn(&mut (ReadHalf, WriteHalf), T) -> std::io::Result<()> + Sync,
    ) -> Outcome<f64> {
        let began = Instant::now();
        std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = self
                .connections
                .iter()
                .zip(parts)
                .map(|(connection, part)| scope.spawn(move || work(&mut connection.lock().expect("one user"), part)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("no panic"))
                .map_err(|error| error.to_string())
        })?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Bytes a second to the far side, received there.
    fn send(&self, bytes: &[u8]) -> Outcome<f64> {
        let part = bytes.len() / self.connections.len();
        let seconds = self.each(bytes.chunks(part).collect(), |(read, write), part| {
            write.write_all(&[b"w", &(part.len() as u64).to_le_bytes()[..]].concat())?;
            part.chunks(CALL_BYTES).try_for_each(|piece| write.write_all(piece))?;
            write.flush()?;
            read.read_exact(&mut [0])
        })?;
        Ok(bytes.len() as f64 / seconds)
    }

    /// Bytes a second from the far side.
    fn receive(&self, bytes: &mut [u8]) -> Outcome<f64> {
        let (length, part) = (bytes.len(), bytes.len() / self.connections.len());
        let seconds = self.each(bytes.chunks_mut(part).collect(), |(read, write), part| {
            write.write_all(&[b"r", &(part.len() as u64).to_le_bytes()[..]].concat())?;
            write.flush()?;
            part.chunks_mut(CALL_BYTES).try_for_each(|piece| read.read_exact(piece))
        })?;
        Ok(length as f64 / seconds)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.connections.clear();
        // It ends when its connections do.
        let _ = self.child.wait();
    }
}

/// The far side's process: says where it listens, and serves so many connections.
fn serve_far_side(address: &str, count: usize) -> Outcome<Figures> {
    let text = |error: std::io::Error| error.to_string();
    let (identity, _) = tls::Identity::generate("bench").map_err(text)?;
    let pin = identity.fingerprint;
    let listener = Listener::bind(&address.parse()?, Some(Arc::new(identity))).map_err(text)?;
    println!("{}", json!((listener.address().map_err(text)?.to_string(), pin)));
    let serve = |_| {
        let stream = listener.accept().and_then(|incoming| incoming.open(PATIENCE)).ok()?;
        Some(std::thread::spawn(move || far_side(stream)))
    };
    let serving: Vec<_> = (0..count).filter_map(serve).collect();
    serving.into_iter().for_each(|thread| drop(thread.join()));
    std::process::exit(0);
}

fn far_side(stream: Stream) -> Option<()> {
    let (mut read, mut write) = stream.split().ok()?;
    let mut memory = Vec::new();
    loop {
        let mut order = [0; 9];
        read.read_exact(&mut order).ok()?;
        let length = u64::from_le_bytes(*order[1..].first_chunk()?) as usize;
        memory.resize(length, 7);
        if order[0] == b'w' {
            memory.chunks_mut(CALL_BYTES).try_for_each(|piece| read.read_exact(piece)).ok()?;
            write.write_all(&[1]).ok()?;
        } else {
            memory.chunks(CALL_BYTES).try_for_each(|piece| write.write_all(piece)).ok()?;
        }
        write.flush().ok()?;
    }
}
