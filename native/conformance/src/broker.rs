//! Plays the broker for one workspace: grants every request on one gpud. The real one is `server/broker`.

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
            let leases = Arc::new(AtomicU32::new(0));
            for stream in listener.incoming().flatten() {
                if gone.load(Ordering::Acquire) {
                    continue;
                }
                let (gpud, leases, control) = (Arc::clone(&gpud), Arc::clone(&leases), control.clone());
                std::thread::spawn(move || {
                    let _ = answer(stream, &gpud, &leases, memory_bytes, control.as_deref());
                });
            }
        });
        Ok(Self { url, credential_file, away })
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
    leases: &AtomicU32,
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
    let parts: Vec<&str> = path.split('?').next().unwrap_or("").trim_matches('/').split('/').collect();
    let (status, answer) = match (method, &parts[..]) {
        ("POST", ["v1", "lease-requests"]) => {
            let number = leases.fetch_add(1, Ordering::Relaxed) + 1;
            (
                200,
                json!({
                    "state": "granted", "requestId": body["requestId"],
                    "lease": lease(gpud, &format!("lea-{number}"), memory_bytes),
                }),
            )
        }
        ("POST", ["v1", "leases", id, "sessions"]) => {
            let key = body["publicKey"].as_str().unwrap_or("");
            (
                200,
                json!({
                    "token": gpud.token(key, id, memory_bytes), "sessionId": "gws-test", "address": gpud.address,
                    "tlsFingerprint": gpud.fingerprint.map(|bytes| URL_SAFE_NO_PAD.encode(bytes)),
                    "lease": lease(gpud, id, memory_bytes),
                }),
            )
        }
        ("DELETE", ["v1", "leases", id]) => {
            let parked = control.and_then(|control| control.end_lease(id)).unwrap_or(0);
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
