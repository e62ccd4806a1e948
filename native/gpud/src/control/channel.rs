//! The control channel's life: dial, prove who we are, obey, report; again after every loss.

use crate::config::{parse_broker, read_token};
use crate::control::messages::{BrokerMessage, GpudMessage, LeaseUsage};
use crate::supervisor::Supervisor;
use crate::token::from_base64url;
use rustls::pki_types::ServerName;
use sluice_backend::log;
use sluice_transport::authorities::trusted_authorities;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};

/// What gpud signs with its key is this, then the challenge's bytes.
const CONTEXT: &[u8] = b"sluice-control-1";
/// How long connecting and the first messages may take.
const OPEN_TIME: Duration = Duration::from_secs(10);
/// Longest message of the broker, bytes; the broker takes messages of the same length.
const LONGEST_MESSAGE: usize = 4 * 1024 * 1024;
/// How often the line looks for something to send; also the bound on how long an order waits.
const TICK: Duration = Duration::from_millis(10);
/// How often usage is reported while it changes.
const USAGE_TIME: Duration = Duration::from_secs(1);
/// A broker that says nothing for this long is gone; it pings more often.
const SILENCE: Duration = Duration::from_secs(60);
/// Longest wait before the next try.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A byte stream to the broker.
trait Line: Read + Write + Send {}
impl<T: Read + Write + Send> Line for T {}

/// Why the channel ended for good.
#[derive(Debug, PartialEq, Eq)]
pub struct Removed(pub String);

/// What clients are told about the way to this server.
#[derive(Clone, Debug)]
pub struct Reachable {
    pub data_address: String,
    pub tls_fingerprint: Option<String>,
}

/// Keeps the channel open until the server is removed from the pool.
pub fn run(supervisor: &Arc<Supervisor>, broker: &str, reachable: &Reachable) -> Removed {
    let mut wait = Duration::from_millis(100);
    loop {
        let began = Instant::now();
        let outcome = once(supervisor, broker, reachable);
        supervisor.set_outgoing(None);
        match outcome {
            Ok(removed) => return removed,
            Err(error) => log!("gpud: the line to {broker} is down: {error}"),
        }
        if began.elapsed() > Duration::from_secs(30) {
            wait = Duration::from_millis(100);
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

fn dial(broker: &str) -> io::Result<WebSocket<Box<dyn Line>>> {
    let url = parse_broker(broker).map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
    let address = (url.host.as_str(), url.port).to_socket_addrs()?.next();
    let address = address.ok_or_else(|| io::Error::other("the broker has no address"))?;
    let socket = TcpStream::connect_timeout(&address, OPEN_TIME)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(OPEN_TIME))?;
    socket.set_write_timeout(Some(OPEN_TIME))?;
    let ticking = socket.try_clone()?;
    let line: Box<dyn Line> = if url.secure { Box::new(encrypt(socket, &url.host)?) } else { Box::new(socket) };
    let scheme = if url.secure { "wss" } else { "ws" };
    let request = format!("{scheme}://{}{}/v1/control", url.authority, url.path);
    let request = request.into_client_request().map_err(io::Error::other)?;
    let limits =
        WebSocketConfig::default().max_message_size(Some(LONGEST_MESSAGE)).max_frame_size(Some(LONGEST_MESSAGE));
    let (channel, _) = tungstenite::client::client_with_config(request, line, Some(limits))
        .map_err(|error| io::Error::other(error.to_string()))?;
    ticking.set_read_timeout(Some(TICK))?;
    Ok(channel)
}

fn encrypt(socket: TcpStream, host: &str) -> io::Result<impl Line + use<>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(trusted_authorities());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let state = rustls::ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(rustls::StreamOwned::new(state, socket))
}

/// The next message, if one comes within a tick.
fn hear(channel: &mut WebSocket<Box<dyn Line>>) -> io::Result<Option<BrokerMessage>> {
    match channel.read() {
        Ok(Message::Text(text)) => Ok(Some(serde_json::from_str(text.as_str())?)),
        Ok(Message::Close(_)) => Err(io::Error::new(io::ErrorKind::ConnectionReset, "the broker closed it")),
        Ok(_) => Ok(None),
        Err(tungstenite::Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

fn say(channel: &mut WebSocket<Box<dyn Line>>, message: &GpudMessage) -> io::Result<()> {
    let text = serde_json::to_string(message)?;
    channel.send(Message::text(text)).map_err(|error| io::Error::other(error.to_string()))
}

/// One connection's life.
fn once(supervisor: &Arc<Supervisor>, broker: &str, reachable: &Reachable) -> io::Result<Removed> {
    let mut channel = dial(broker)?;
    let (sender, outgoing) = std::sync::mpsc::channel();
    let mut reported: HashMap<String, LeaseUsage> = HashMap::new();
    let mut reported_at = Instant::now();
    let mut heard_at = Instant::now();
    let mut open = false;
    let mut told = HashSet::new();
    loop {
        if let Some(message) = hear(&mut channel)? {
            heard_at = Instant::now();
            match message {
                BrokerMessage::Challenge { nonce } => {
                    let nonce = from_base64url(&nonce).ok_or_else(|| io::Error::other("a challenge without bytes"))?;
                    // What happens from here on waits for the welcome: the hello may be too early to tell it.
                    supervisor.set_outgoing(Some(sender.clone()));
                    let held = supervisor.pool().usage();
                    told = held.iter().map(|lease| lease.lease_id.clone()).collect();
                    say(&mut channel, &hello(supervisor, reachable, &nonce, held))?;
                }
                BrokerMessage::Welcome { server_id, epoch, keys, leases } => {
                    if server_id != supervisor.server_id() {
                        return Err(io::Error::other("the broker takes this server for another one"));
                    }
                    supervisor.reconcile(epoch, &keys, leases, &told);
                    log!("gpud: in the pool as {server_id}");
                    open = true;
                }
                BrokerMessage::EndLease { lease_id, mode, reason } => {
                    supervisor.end_lease(&lease_id, mode, &reason);
                }
                BrokerMessage::DropParked { lease_id } => supervisor.drop_parked(&lease_id),
                BrokerMessage::Ping { nonce } => say(&mut channel, &GpudMessage::Pong { nonce })?,
                BrokerMessage::Removed { reason } => return Ok(Removed(reason)),
            }
        }
        if open {
            forward(&mut channel, &outgoing)?;
        }
        if open && reported_at.elapsed() >= USAGE_TIME {
            reported_at = Instant::now();
            report(supervisor, &mut channel, &mut reported)?;
        }
        if heard_at.elapsed() > SILENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the broker is silent"));
        }
    }
}

fn hello(supervisor: &Supervisor, reachable: &Reachable, nonce: &[u8], held: Vec<LeaseUsage>) -> GpudMessage {
    let identity = supervisor.identity.lock().unwrap_or_else(PoisonError::into_inner);
    let signature = identity.sign(&[CONTEXT, nonce].concat());
    drop(identity);
    let devices = supervisor.pool().devices.clone();
    // Read each time: the cluster replaces it within the hour.
    let account = supervisor.config.account.as_deref().and_then(|file| match read_token(file) {
        Ok(token) => Some(token),
        Err(error) => {
            log!("gpud: {error}");
            None
        }
    });
    GpudMessage::Hello {
        server_id: supervisor.server_id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: u32::from(sluice_protocol::VERSION_MAJOR),
        signature,
        account,
        data_address: reachable.data_address.clone(),
        tls_fingerprint: reachable.tls_fingerprint.clone(),
        devices,
        held,
    }
}

fn forward(channel: &mut WebSocket<Box<dyn Line>>, outgoing: &Receiver<GpudMessage>) -> io::Result<()> {
    while let Ok(message) = outgoing.try_recv() {
        say(channel, &message)?;
    }
    Ok(())
}

/// Reports the leases whose usage has changed.
fn report(
    supervisor: &Supervisor,
    channel: &mut WebSocket<Box<dyn Line>>,
    reported: &mut HashMap<String, LeaseUsage>,
) -> io::Result<()> {
    let usage = supervisor.pool().usage();
    let changed = |lease: &&LeaseUsage| reported.get(&lease.lease_id) != Some(*lease);
    let leases: Vec<LeaseUsage> = usage.iter().filter(changed).cloned().collect();
    *reported = usage.into_iter().map(|lease| (lease.lease_id.clone(), lease)).collect();
    if leases.is_empty() { Ok(()) } else { say(channel, &GpudMessage::Usage { leases }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_elsewhere_is_not_dialled_in_the_clear() {
        // An address of documentation: had it been dialled, the error would be another one.
        let error = dial("http://192.0.2.1:3001").err().expect("refused");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("use https://192.0.2.1:3001"), "{error}");
    }
}
