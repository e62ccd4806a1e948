//! Opening and resuming a session: connect, answer the challenge, be welcomed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use sluice_protocol::frame::Frame;
use sluice_protocol::handshake::{
    AddressRange, Challenge, HELLO_CONTEXT, Handshake, Hello, Refused, RefusedCode, Resume, Welcome,
};
use sluice_protocol::{EXACT_BOUNDS, PEER_MEMORY, PINNED_MEMORY, SHARED_LANES, VERSION_MAJOR, VERSION_MINOR, opcode};
use sluice_transport::{Address, Stream, read_handshake, write_handshake};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest time that one attempt may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The ephemeral key of one session.
pub struct Key {
    pair: Ed25519KeyPair,
}

impl Key {
    /// A new random key.
    pub fn generate() -> Result<Self, String> {
        let random = ring::rand::SystemRandom::new();
        let document = Ed25519KeyPair::generate_pkcs8(&random).map_err(|_| "no random numbers".to_owned())?;
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).map_err(|error| error.to_string())?;
        Ok(Self { pair })
    }

    /// base64url of the 32 bytes, as the broker takes it.
    pub fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref())
    }

    fn sign(&self, nonce: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.sign(&[HELLO_CONTEXT, nonce].concat()).as_ref())
    }
}

/// What a session is opened with, and resumed with after a lost connection.
#[derive(Clone)]
pub struct Ticket {
    pub address: Address,
    /// The server's socket on this host, if it has one: taken instead of the address.
    pub nearby: Option<PathBuf>,
    /// SHA-256 of the server's certificate, for `tls://`.
    pub pin: Option<[u8; 32]>,
    pub token: String,
    pub key: Arc<Key>,
    /// The process has other devices, which may be linked with this one.
    pub several: bool,
}

/// A lane of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    pub index: u16,
    /// Whether it may go through shared memory, on a Unix socket.
    pub shared: bool,
}

/// Why there is no session.
#[derive(Debug)]
pub enum DialError {
    /// gpud said no.
    Refused(Refused),
    /// gpud could not be reached or understood.
    Io(String),
    /// The memory to share did not come: what is at the other end of the socket is not on this host.
    Memory(std::io::Error),
}

impl std::fmt::Display for DialError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refused) => write!(f, "the GPU server refused: {}", refused.text),
            Self::Io(text) => write!(f, "the GPU server cannot be reached: {text}"),
            Self::Memory(error) => write!(f, "the GPU server shares no memory: {error}"),
        }
    }
}

impl DialError {
    /// Trying again cannot help.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Refused(refused) => !matches!(refused.code, RefusedCode::Unavailable | RefusedCode::Range),
            Self::Io(_) | Self::Memory(_) => false,
        }
    }
}

fn io(error: impl std::fmt::Display) -> DialError {
    DialError::Io(error.to_string())
}

/// As [`io`], for a read of the handshake.
fn unread(error: std::io::Error) -> DialError {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return DialError::Io("the connection ended before the GPU server answered".to_owned());
    }
    io(error)
}

/// Opens a session (`resume` None), takes one up again, or adds a lane to it.
pub fn open(
    ticket: &Ticket,
    ranges: Vec<AddressRange>,
    resume: Option<Resume>,
    lane: Option<Lane>,
) -> Result<(Stream, Welcome), DialError> {
    let mut stream = connect(ticket).map_err(io)?;
    let share = lane.is_some_and(|lane| lane.shared) && stream.is_unix();
    let exact = std::env::var("SLUICE_EXACT_BOUNDS").is_ok_and(|value| value == "1");
    let features = [(share, SHARED_LANES), (exact, EXACT_BOUNDS), (ticket.several, PEER_MEMORY)]
        .into_iter()
        .filter(|(wanted, _)| *wanted);
    let features = features.map(|(_, name)| name).collect();
    let lane = lane.map(|lane| lane.index);
    let welcome = greet(&mut stream, ticket, features, Purpose { ranges, resume, lane })?;
    if share && welcome.features.iter().any(|feature| feature == SHARED_LANES) {
        stream = stream.accept().map_err(DialError::Memory)?;
    }
    stream.set_timeout(None).map_err(io)?;
    Ok((stream, welcome))
}

/// Connects to the worker of a session on this host, to hand it the program's page-locked memory. What is done on the
/// connection takes a bounded time.
pub fn for_memory(ticket: &Ticket, resume: Resume) -> Result<Stream, DialError> {
    let mut stream = connect(ticket).map_err(io)?;
    if !stream.is_unix() {
        return Err(DialError::Memory(std::io::ErrorKind::Unsupported.into()));
    }
    let purpose = Purpose { ranges: Vec::new(), resume: Some(resume), lane: None };
    greet(&mut stream, ticket, vec![PINNED_MEMORY], purpose)?;
    Ok(stream)
}

/// What a connection is for.
struct Purpose {
    ranges: Vec<AddressRange>,
    resume: Option<Resume>,
    lane: Option<u16>,
}

/// Answers the challenge and is welcomed, in a bounded time for each read and write.
fn greet(
    stream: &mut Stream,
    ticket: &Ticket,
    features: Vec<&str>,
    Purpose { ranges, resume, lane }: Purpose,
) -> Result<Welcome, DialError> {
    stream.set_timeout(Some(TIMEOUT)).map_err(io)?;
    let challenge: Challenge = read(stream)?;
    if challenge.version[0] != VERSION_MAJOR {
        return Err(DialError::Refused(Refused {
            code: RefusedCode::Version,
            text: format!("it speaks protocol {}, this client {VERSION_MAJOR}", challenge.version[0]),
        }));
    }
    let nonce = URL_SAFE_NO_PAD.decode(&challenge.nonce).map_err(io)?;
    let hello = Hello {
        version: [VERSION_MAJOR, VERSION_MINOR],
        features: features.into_iter().map(str::to_owned).collect(),
        token: ticket.token.clone(),
        signature: ticket.key.sign(&nonce),
        ranges,
        resume,
        lane,
        pid: std::process::id(),
    };
    write_handshake(stream, &hello).map_err(io)?;
    read(stream)
}

fn connect(ticket: &Ticket) -> std::io::Result<Stream> {
    // A server that has been started anew without its socket is still at its address.
    let nearby = ticket.nearby.as_ref().map(|path| Stream::connect(&Address::Unix(path.clone()), None, TIMEOUT));
    match nearby {
        Some(Ok(stream)) => Ok(stream),
        _ => Stream::connect(&ticket.address, ticket.pin.as_ref(), TIMEOUT),
    }
}

fn read<M: Handshake>(stream: &mut Stream) -> Result<M, DialError> {
    let Frame { header, payload } = read_handshake(stream).map_err(unread)?;
    if header.opcode == M::OPCODE {
        M::decode(&payload).map_err(io)
    } else if header.opcode == opcode::REFUSED {
        Err(DialError::Refused(Refused::decode(&payload).map_err(io)?))
    } else {
        Err(DialError::Io(format!("unexpected message {}", header.opcode)))
    }
}
