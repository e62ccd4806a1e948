//! Plays the broker's end of gpud's control channel, as far as ending leases goes: what is parked stays with gpud. A
//! welcome names the leases that are granted: gpud ends the others it knows, and a test may attach before the channel is
//! open.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tungstenite::Message;

/// Under which name gpud joins.
pub const SERVER_ID: &str = "conformance";
/// How long the end of a lease may take: its memory goes to the host.
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module.
pub struct Control {
    pub url: String,
    orders: Mutex<Sender<Value>>,
    ended: Mutex<Receiver<(String, u64)>>,
    granted: Arc<Mutex<BTreeSet<String>>>,
}

impl Control {
    /// Waits for one gpud on a free port.
    pub fn start() -> io::Result<Control> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let (orders, ordered) = channel();
        let (ends, ended) = channel();
        let ordered = Arc::new(Mutex::new(ordered));
        let granted = Arc::<Mutex<BTreeSet<String>>>::default();
        let names = Arc::clone(&granted);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (ordered, ends, granted) = (Arc::clone(&ordered), ends.clone(), Arc::clone(&names));
                std::thread::spawn(move || {
                    let _ = serve(stream, &ordered, &ends, &granted);
                });
            }
        });
        Ok(Control { url, orders: Mutex::new(orders), ended: Mutex::new(ended), granted })
    }

    /// Records a lease before anybody hears of it.
    pub fn grant(&self, lease: &str) {
        lock(&self.granted).insert(lease.to_owned());
    }

    /// Ends a lease and keeps its memory; answers the bytes that are parked.
    pub fn end_lease(&self, lease: &str) -> Option<u64> {
        let order = json!({ "type": "end-lease", "leaseId": lease, "mode": "park", "reason": "Given back." });
        lock(&self.orders).send(order).ok()?;
        let ended = lock(&self.ended);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (id, parked) = ended.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
            if id == lease {
                lock(&self.granted).remove(lease);
                return Some(parked);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(
    stream: TcpStream,
    orders: &Mutex<Receiver<Value>>,
    ends: &Sender<(String, u64)>,
    granted: &Mutex<BTreeSet<String>>,
) -> io::Result<()> {
    let mut first = [0; 4];
    stream.peek(&mut first)?;
    if &first == b"POST" { admit(stream) } else { talk(stream, orders, ends, granted) }
}

/// Answers a gpud that joins.
fn admit(stream: TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
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
    }
    reader.read_exact(&mut vec![0; length])?;
    let answer = json!({ "serverId": SERVER_ID }).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
    reader.get_mut().write_all((head + &answer).as_bytes())
}

/// Challenge and welcome, then orders one way and the ends of leases the other.
fn talk(
    stream: TcpStream,
    orders: &Mutex<Receiver<Value>>,
    ends: &Sender<(String, u64)>,
    granted: &Mutex<BTreeSet<String>>,
) -> io::Result<()> {
    let mut line = tungstenite::accept(stream).map_err(|error| io::Error::other(error.to_string()))?;
    line.get_ref().set_read_timeout(Some(Duration::from_millis(5)))?;
    let mut next = Some(json!({ "type": "challenge", "nonce": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }));
    loop {
        if let Some(message) = next.take() {
            line.send(Message::text(message.to_string())).map_err(|error| io::Error::other(error.to_string()))?;
        }
        match line.read() {
            Ok(Message::Text(text)) => {
                let message: Value = serde_json::from_str(text.as_str())?;
                match message["type"].as_str() {
                    Some("hello") => {
                        next = Some(json!({
                            "type": "welcome", "serverId": SERVER_ID, "epoch": 1, "keys": {},
                            "leases": lock(granted).clone(),
                        }));
                        continue;
                    }
                    Some("lease-ended") => {
                        let id = message["leaseId"].as_str().unwrap_or_default().to_owned();
                        let _ = ends.send((id, message["parkedBytes"].as_u64().unwrap_or(0)));
                    }
                    _ => {}
                }
            }
            Ok(_) => {}
            Err(tungstenite::Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(io::Error::other(error.to_string())),
        }
        next = lock(orders).try_recv().ok();
    }
}
