//! Plays the broker for one workspace: grants every request on one gpud, of several GPUs on as many of its devices. The real one is `server/broker`.

use crate::control::Control;
use crate::gpud::Gpud;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A broker on a free port.
pub struct Broker {
    pub url: String,
    pub credential_file: PathBuf,
    away: Arc<AtomicBool>,
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
        let away: Arc<AtomicBool> = Arc::default();
        let gone = Arc::clone(&away);
        std::thread::spawn(move || {
            let (leases, parts) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(1)));
            for stream in listener.incoming().flatten() {
                if gone.load(Ordering::Acquire) {
                    continue;
                }
                let (gpud, leases, control) = (Arc::clone(&gpud), Arc::clone(&leases), control.clone());
                let parts = Arc::clone(&parts);
                std::thread::spawn(move || {
                    let _ = answer(stream, &gpud, (&leases, &parts), memory_bytes, control.as_deref());
                });
            }
        });
        Ok(Self { url, credential_file, away })
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
        self.away.store(away, Ordering::Release);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.credential_file);
    }
}

fn answer(
    mut stream: TcpStream,
    gpud: &Gpud,
    (leases, parts): (&AtomicU32, &AtomicU32),
    memory_bytes: u64,
    control: Option<&Control>,
) -> io::Result<()> {
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
    let words: Vec<&str> = path.split('?').next().unwrap_or("").trim_matches('/').split('/').collect();
    let (status, answer) = match (method, &words[..]) {
        ("POST", ["v1", "lease-requests"]) => {
            let number = leases.fetch_add(1, Ordering::Relaxed) + 1;
            let id = format!("lea-{number}");
            let mut lease = lease(gpud, &id, memory_bytes);
            let count = body["amount"].as_str().and_then(|amount| amount.parse::<f64>().ok()).unwrap_or(0.0) as usize;
            parts.store(count.max(1) as u32, Ordering::Relaxed);
            if count > 1 {
                let part = |device: usize| part(gpud, &id, device, memory_bytes);
                lease["devices"] = (0..count.min(gpud.devices.len())).map(part).collect();
            }
            (200, json!({ "state": "granted", "requestId": body["requestId"], "lease": lease }))
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
            let ends = |device: usize| control.and_then(|control| control.end_lease(&part_id(id, device)));
            let parts = parts.load(Ordering::Relaxed) as usize;
            let parked: u64 = (0..parts).filter_map(ends).sum();
            (200, json!({ "leaseId": id, "parkedBytes": parked, "heldSeconds": 1 }))
        }
        ("GET", ["v1", "status"]) => (200, json!({ "leases": [] })),
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
