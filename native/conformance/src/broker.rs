//! Plays the broker for one workspace: grants every request on one gpud, of several GPUs on as many of its devices, or
//! has it wait. The real one is `server/broker`.

use crate::control::Control;
use crate::gpud::Gpud;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A broker on a free port.
pub struct Broker {
    pub url: String,
    pub credential_file: PathBuf,
    pool: Arc<Pool>,
}

/// What it grants from.
struct Pool {
    gpud: Arc<Gpud>,
    control: Option<Arc<Control>>,
    memory_bytes: u64,
    leases: AtomicU32,
    /// GPUs of the newest lease.
    parts: AtomicU32,
    away: AtomicBool,
    full: AtomicBool,
    first_use: AtomicBool,
    /// Requests in the queue.
    waiting: Mutex<BTreeSet<String>>,
    /// The newest lease, until it is given back, as the status of a workspace has it.
    newest: Mutex<Option<Value>>,
    /// The newest request for a lease.
    asked: Mutex<Value>,
}

impl Broker {
    /// Grants leases of `memory_bytes` on `gpud`.
    pub fn start(gpud: Arc<Gpud>, memory_bytes: u64) -> io::Result<Self> {
        Self::start_with(gpud, memory_bytes, None)
    }

    /// As [`Broker::start`]; leases that are given back are ended at gpud, which keeps their memory.
    pub fn start_with(gpud: Arc<Gpud>, memory_bytes: u64, control: Option<Arc<Control>>) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let credential_file = std::env::temp_dir().join(format!("sluice-credential-{}-{number}", std::process::id()));
        std::fs::write(&credential_file, "slw_test")?;
        let pool = Arc::new(Pool {
            gpud,
            control,
            memory_bytes,
            leases: AtomicU32::new(0),
            parts: AtomicU32::new(1),
            away: AtomicBool::new(false),
            full: AtomicBool::new(false),
            first_use: AtomicBool::new(false),
            waiting: Mutex::default(),
            newest: Mutex::default(),
            asked: Mutex::default(),
        });
        let serving = Arc::clone(&pool);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.away.load(Ordering::Acquire) {
                    continue;
                }
                let pool = Arc::clone(&serving);
                std::thread::spawn(move || {
                    let _ = answer(stream, &pool);
                });
            }
        });
        Ok(Self { url, credential_file, pool })
    }

    /// Makes this process a program of the workspace.
    ///
    /// # Safety
    /// No other thread of this process reads the environment now.
    pub unsafe fn set_environment(&self) {
        // SAFETY: the caller's.
        unsafe {
            std::env::set_var("SLUICE_BROKER_URL", &self.url);
            std::env::set_var("SLUICE_CREDENTIAL_FILE", &self.credential_file);
        }
    }

    /// Away, it answers nobody: connections end without a word.
    pub fn set_away(&self, away: bool) {
        self.pool.away.store(away, Ordering::Release);
    }

    /// Programs of the workspace attach by themselves at the first use.
    pub fn set_first_use(&self) {
        self.pool.first_use.store(true, Ordering::Release);
    }

    /// Full, it lets every request wait; what waits is granted when it is full no more.
    pub fn set_full(&self, full: bool) {
        self.pool.full.store(full, Ordering::Release);
    }

    /// The GPU that the newest request named, as parked memory is on it.
    pub fn pinned(&self) -> Option<String> {
        self.asked()["pinnedGpuId"].as_str().map(str::to_owned)
    }

    /// The newest request for a lease, as it was sent; null before the first.
    pub fn asked(&self) -> Value {
        self.pool.asked().clone()
    }

    /// The requests that wait.
    pub fn waiting(&self) -> Vec<String> {
        self.pool.waiting().iter().cloned().collect()
    }
}

impl Pool {
    fn waiting(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn newest(&self) -> MutexGuard<'_, Option<Value>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, Value> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a request, which waits while nothing is free.
    fn grant(&self, request: &str, gpus: u32) -> Value {
        if self.full.load(Ordering::Acquire) {
            self.waiting().insert(request.to_owned());
            let reason = json!({ "rule": "free-device", "message": "no GPU is free" });
            return json!({ "state": "queued", "requestId": request, "position": 1, "reason": reason });
        }
        self.waiting().remove(request);
        let (gpud, memory_bytes) = (&self.gpud, self.memory_bytes);
        let id = format!("lea-{}", self.leases.fetch_add(1, Ordering::Relaxed) + 1);
        let mut lease = lease(gpud, &id, memory_bytes);
        self.parts.store(gpus.max(1), Ordering::Relaxed);
        if gpus > 1 {
            let part = |device: usize| part(gpud, &id, device, memory_bytes);
            lease["devices"] = (0..gpud.devices.len().min(gpus as usize)).map(part).collect();
        }
        if let Some(control) = &self.control {
            (0..gpus.max(1) as usize).for_each(|device| control.grant(&part_id(&id, device)));
        }
        json!({ "state": "granted", "requestId": request, "lease": lease })
    }

    /// As [`Pool::grant`], when the queue has moved or after so many seconds.
    fn follow(&self, request: &str, query: &str) -> Value {
        let seconds = query.strip_prefix("wait=").and_then(|text| text.parse().ok()).unwrap_or(0.0);
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        while self.full.load(Ordering::Acquire) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Its client may have left the queue meanwhile.
        let waits = self.waiting().contains(request);
        if waits { self.grant(request, 1) } else { json!({ "state": "cancelled", "requestId": request }) }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.credential_file);
    }
}

fn answer(mut stream: TcpStream, pool: &Pool) -> io::Result<()> {
    let (gpud, memory_bytes) = (&*pool.gpud, pool.memory_bytes);
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.to_ascii_lowercase().starts_with("transfer-encoding: chunked") {
            length = usize::MAX;
        }
    }
    let body = if length == usize::MAX { chunked(&mut reader)? } else { exactly(&mut reader, length)? };
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let words: Vec<&str> = first.split_whitespace().collect();
    let (method, path) = (words.first().copied().unwrap_or(""), words.get(1).copied().unwrap_or(""));
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (status, answer) = match (method, &words[..]) {
        ("POST", ["v1", "lease-requests"]) => {
            *pool.asked() = body.clone();
            let gpus = body["amount"].as_str().and_then(|amount| amount.parse::<f64>().ok()).unwrap_or(0.0) as u32;
            let answer = pool.grant(body["requestId"].as_str().unwrap_or(""), gpus);
            if answer["state"] == "granted" {
                *pool.newest() = Some(json!({
                    "lease": answer["lease"], "owner": body["owner"], "usedMemoryBytes": 0, "computePercent": 0,
                    "gpuTimeUs": 0,
                }));
            }
            (200, answer)
        }
        ("GET", ["v1", "lease-requests", id]) => (200, pool.follow(id, query)),
        ("DELETE", ["v1", "lease-requests", id]) => {
            pool.waiting().remove(*id);
            (200, json!({ "state": "cancelled", "requestId": id }))
        }
        ("POST", ["v1", "leases", id, "sessions"]) => {
            let key = body["publicKey"].as_str().unwrap_or("");
            (
                200,
                json!({
                    "token": gpud.token_on(device_of(id), key, id, 500, memory_bytes), "sessionId": "gws-test", "address": gpud.address,
                    "tlsFingerprint": gpud.fingerprint.map(|bytes| URL_SAFE_NO_PAD.encode(bytes)),
                    "hardwareTypes": ["h200"],
                    "lease": lease(gpud, id, memory_bytes),
                }),
            )
        }
        ("DELETE", ["v1", "leases", id]) => {
            // The parts of a lease end together; one that was never connected has nothing to end.
            let ends = |device| pool.control.as_ref().and_then(|control| control.end_lease(&part_id(id, device)));
            let parts = pool.parts.load(Ordering::Relaxed) as usize;
            let kept: Vec<u64> = (0..parts).map(|device| ends(device).unwrap_or(0)).collect();
            let part = |(device, kept)| json!({ "leaseId": part_id(id, device), "parkedBytes": kept });
            let devices: Value = kept.iter().enumerate().map(part).collect();
            let parked: u64 = kept.iter().sum();
            *pool.newest() = None;
            (200, json!({ "leaseId": id, "parkedBytes": parked, "heldSeconds": 1, "devices": devices }))
        }
        ("GET", ["v1", "status"]) => {
            let policy = if pool.first_use.load(Ordering::Acquire) { "first-use" } else { "ask" };
            let leases: Vec<Value> = pool.newest().iter().cloned().collect();
            (200, json!({ "leases": leases, "workspace": { "gpuPolicy": policy } }))
        }
        _ => (404, json!({ "error": { "code": "not-found", "message": "no such path" } })),
    };
    let text = answer.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// The lease of one GPU of a lease of several: the first has the id of the whole.
fn part_id(lease: &str, device: usize) -> String {
    if device == 0 { lease.to_owned() } else { format!("{lease}-{device}") }
}

/// The device that a part is on.
fn device_of(part: &str) -> usize {
    part.split('-').nth(2).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn part(gpud: &Gpud, id: &str, device: usize, memory_bytes: u64) -> Value {
    let lease = lease(gpud, id, memory_bytes);
    json!({
        "leaseId": part_id(id, device), "gpuId": format!("gpu-{}", device + 1), "deviceName": format!("gpu-{device}"),
        "serverId": lease["serverId"], "serverName": lease["serverName"], "milli": 1000, "memoryBytes": memory_bytes,
    })
}

fn lease(gpud: &Gpud, id: &str, memory_bytes: u64) -> Value {
    json!({
        "id": id, "gpuType": gpud.gpu_type(), "milli": 500, "memoryBytes": memory_bytes, "deviceName": "gpu-0",
        "gpuId": "gpu-1", "serverId": "gsv-1", "serverName": "conformance", "borrowed": false,
        "grantedAt": "2026-01-01T00:00:00Z", "expiresAt": "2126-01-01T00:00:00Z",
    })
}

fn exactly(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length.min(1 << 20)];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn chunked(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
        body.extend(exactly(reader, size)?);
        reader.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(body);
        }
    }
}
