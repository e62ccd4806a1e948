//! The hello of one connection: who it is, and which worker it goes to.

use crate::orders::{LeasePart, Order};
use crate::supervisor::Supervisor;
use crate::supervisor::accept::HELLO_TIME;
use crate::supervisor::leases::{kill, now};
use crate::supervisor::pool::{Pool, Worker};
use crate::supervisor::unanswered::Unanswered;
use crate::token::{self, Claims, TokenError, from_base64url, to_base64url};
use ring::rand::{SecureRandom, SystemRandom};
use sluice_protocol::handshake::{Challenge, HELLO_CONTEXT, Handshake, Hello, Refused, RefusedCode};
use sluice_protocol::{EXACT_BOUNDS, PEER_MEMORY, PINNED_MEMORY, SHARED_LANES, VERSION_MAJOR, VERSION_MINOR, opcode};
use sluice_transport::tls::Keys;
use sluice_transport::{Stream, read_handshake, write_handshake};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// Proposals for the address range that are looked at.
const MOST_RANGES: usize = 64;

/// Reads until a moment, however slowly the bytes come.
struct Until<'a> {
    stream: &'a mut Stream,
    deadline: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

/// What a worker gets of a connection.
fn parts(mut stream: Stream) -> io::Result<(OwnedFd, Option<Keys>)> {
    stream.set_timeout(None)?;
    stream.into_parts()
}

/// A refusal, and its sentence.
pub type Refusal = (RefusedCode, String);

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(bytes)
}

impl Supervisor {
    /// Greets a connection and hands it to its worker, or tells it why not. Calls `proved` when the client has shown that a
    /// session token is its own.
    pub fn greet(self: &Arc<Self>, mut stream: Stream, proved: impl FnOnce()) -> io::Result<()> {
        stream.set_timeout(Some(HELLO_TIME))?;
        let nonce = random()?;
        let version = [VERSION_MAJOR, VERSION_MINOR];
        let challenge = Challenge { nonce: to_base64url(&nonce), version, features: Vec::new() };
        let deadline = Instant::now() + HELLO_TIME;
        write_handshake(&mut stream, &challenge)?;
        let frame = read_handshake(&mut Until { stream: &mut stream, deadline })?;
        // The connection may go to another process: a client waits for its answer.
        if frame.header.opcode != opcode::HELLO || stream.holds_bytes() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a hello alone"));
        }
        let hello = Hello::decode(&frame.payload).map_err(io::Error::other)?;
        let refused = match self.verify(&hello, &nonce) {
            Err(refusal) => Some((stream, refusal)),
            Ok(claims) => {
                proved();
                self.admit(stream, &hello, &claims)?
            }
        };
        let Some((mut stream, (code, text))) = refused else { return Ok(()) };
        write_handshake(&mut stream, &Refused { code, text: text.clone() })?;
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }

    /// Checks version, token and proof.
    fn verify(&self, hello: &Hello, nonce: &[u8]) -> Result<Claims, Refusal> {
        if hello.version[0] != VERSION_MAJOR {
            let text = format!(
                "this GPU server speaks protocol {VERSION_MAJOR}.{VERSION_MINOR}, the client {}.{}",
                hello.version[0], hello.version[1]
            );
            return Err((RefusedCode::Version, text));
        }
        let audience = format!("gpud:{}", self.server_id());
        let pool = self.pool();
        let claims = token::verify(&hello.token, &pool.keys, &audience, now(), hello.resume.is_some()).map_err(
            |error| match error {
                TokenError::UnknownKey if self.config.broker.is_some() && !pool.has_newest_keys => {
                    let text =
                        "the GPU server has no connection to the broker, so the token's key may be newer; try again";
                    (RefusedCode::Unavailable, text.to_owned())
                }
                _ => (RefusedCode::Credential, error.to_string()),
            },
        )?;
        let message = [HELLO_CONTEXT, nonce].concat();
        if !token::proves_possession(&claims, &message, &hello.signature) {
            let text = "the client does not hold the key that the session token is bound to".to_owned();
            return Err((RefusedCode::Credential, text));
        }
        Ok(claims)
    }

    /// Whether a lease may be worked for.
    pub(super) fn check_lease(&self, pool: &Pool, claims: &Claims) -> Result<(), String> {
        let lease = &claims.lease;
        if let Some(reason) = pool.end_reason(&lease.id) {
            return Err(reason.to_owned());
        }
        // A lease of an earlier epoch holds only if the broker said so when the channel was last opened.
        let fenced = pool.epoch.is_some_and(|epoch| lease.epoch < epoch);
        if fenced && !pool.held.contains(&lease.id) && !pool.leases.contains_key(&lease.id) {
            return Err("the lease was closed while the GPU server was out of reach".to_owned());
        }
        if lease.expires_at <= now() {
            return Err("the lease's time is up".to_owned());
        }
        Ok(())
    }

    /// Hands the connection to its worker; gives it back with the reason when there is none for it.
    fn admit(
        self: &Arc<Self>,
        stream: Stream,
        hello: &Hello,
        claims: &Claims,
    ) -> io::Result<Option<(Stream, Refusal)>> {
        let nonce = random()?;
        let mut pool = self.pool();
        if pool.stopping {
            return Ok(Some((stream, (RefusedCode::Unavailable, "the GPU server stops".to_owned()))));
        }
        let known = pool.worker_of_session(&claims.sid, hello.resume.is_some());
        let known = known.map(|(id, worker)| (id, worker.key.clone(), worker.seat.clone()));
        if let Some((id, key, _)) = &known
            && *key == claims.cnf.ed25519
        {
            // The token names the session, which has had another name if it has gone on under a new lease.
            if let Some(resume) = hello.resume.as_ref() {
                let has = |name: &str| hello.features.iter().any(|feature| feature == name);
                let shared = stream.is_unix() && has(SHARED_LANES);
                let (connection, tls) = parts(stream)?;
                if let Some(worker) = pool.workers.get(id) {
                    let order = match hello.lane {
                        Some(index) => Order::Lane { tls, index, shared },
                        None if has(PINNED_MEMORY) => Order::Pinned { tls },
                        None => Order::Connection { tls, received: resume.received },
                    };
                    worker.channel.order(&order, &[connection.as_fd()])?;
                }
                return Ok(None);
            }
            // The same client begins anew, having lost what it knew: what it had is of no use to anybody.
            kill(&pool, *id);
        } else if known.is_some() {
            let text = "the session belongs to another client".to_owned();
            return Ok(Some((stream, (RefusedCode::Credential, text))));
        }
        if hello.resume.is_some() {
            let reason = pool.end_reason(&claims.lease.id);
            let text = reason.unwrap_or("the session is not on this GPU server any more").to_owned();
            return Ok(Some((stream, (RefusedCode::Gone, text))));
        }
        if let Err(text) = self.check_lease(&pool, claims) {
            return Ok(Some((stream, (RefusedCode::Lease, text))));
        }
        let Some(device) = pool.devices.iter().find(|d| d.uuid == claims.lease.device_uuid).cloned() else {
            let text = "the lease's device is not on this GPU server".to_owned();
            return Ok(Some((stream, (RefusedCode::Unavailable, text))));
        };
        if let Err(refusal) = pool.check_places(claims, known.as_ref().map(|(id, _, _)| *id)) {
            return Ok(Some((stream, refusal)));
        }
        let memory_bytes = claims.lease.memory_bytes.min(device.memory_bytes);
        if let Err(text) = pool.has_room(&claims.lease, memory_bytes, known.as_ref().map(|(_, _, seat)| seat)) {
            return Ok(Some((stream, (RefusedCode::Lease, text))));
        }
        let (seat, ledger, arbiter) = match pool.take_seat(&claims.lease, &claims.sid, memory_bytes) {
            Ok((seat, lease)) => (seat, Arc::clone(&lease.ledger), Arc::clone(&lease.arbiter)),
            Err(text) => return Ok(Some((stream, (RefusedCode::Unavailable, text)))),
        };
        let fresh = match self.spawner.lock().map_err(|_| io::Error::other("spawner")).and_then(|s| s.take()) {
            Ok(fresh) => fresh,
            Err(error) => {
                pool.give_seat_up(&seat);
                let text = format!("the GPU server cannot start a worker: {error}");
                return Ok(Some((stream, (RefusedCode::Unavailable, text))));
            }
        };
        let id = pool.new_worker_id();
        let channel = Arc::new(fresh.channel);
        let lease = LeasePart {
            lease_id: seat.lease_id.clone(),
            session_id: seat.session_id.clone(),
            slot: seat.slot,
            memory_bytes,
        };
        let has = |name: &str| hello.features.iter().any(|feature| feature == name);
        let links = self.config.peer_memory && has(PEER_MEMORY);
        let others = pool.devices.iter().filter(|other| links && other.uuid != device.uuid);
        let others = others.map(|other| other.uuid.clone()).collect();
        let worker = Worker::new(Arc::clone(&channel), fresh.child.id(), claims, nonce, seat);
        pool.workers.insert(id, worker);
        let parted = parts(stream).and_then(|(connection, tls)| {
            let unanswered = Unanswered::copy(&connection, tls.as_ref(), &claims.lease.id)?;
            Ok((connection, tls, unanswered))
        });
        let (started, unanswered) = match parted {
            Ok((connection, tls, unanswered)) => {
                let order = Order::Start {
                    tls,
                    backend: self.backend.clone(),
                    device: Box::new(device),
                    lease,
                    client: hello.pid,
                    ranges: hello.ranges.iter().take(MOST_RANGES).copied().collect(),
                    return_seconds: self.config.return_time.as_secs(),
                    nonce: to_base64url(&nonce),
                    exact_bounds: has(EXACT_BOUNDS),
                    others,
                };
                let descriptors = [ledger.descriptor(), connection.as_fd(), arbiter.bell().descriptor()];
                (channel.order(&order, &descriptors), Some(unanswered))
            }
            Err(error) => {
                channel.end();
                (Err(error), None)
            }
        };
        // Not before the start is ordered: the end of the lease, which may come now, is not a worker's first order.
        drop(pool);
        Arc::clone(self).attend(id, fresh.child, channel, unanswered);
        started?;
        Ok(None)
    }
}

/// Reads an Ed25519 public key given on the command line.
pub fn read_key(text: &str) -> Result<Vec<u8>, String> {
    match from_base64url(text.trim_end_matches('=')) {
        Some(key) if key.len() == 32 => Ok(key),
        _ => Err(format!("{text}: not an Ed25519 public key in base64url")),
    }
}
