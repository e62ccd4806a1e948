//! Memory between the workers of one client's devices on this host: each lends what it has to those that the client links
//! with it, over a line that their supervisor made. What is done for the other worker never waits for this one's session:
//! that may be waiting for the other one.

use crate::passing::Channel;
use crate::worker::outbox::Outbox;
use crate::worker::session::Session;
use serde::{Deserialize, Serialize};
use sluice_backend::{Borrower, Device, Part};
use sluice_protocol::control::PeerLost;
use sluice_protocol::messages::PeerLinkReply;
use sluice_protocol::wire::Wire;
use sluice_protocol::{Failure, ReplyTo, cuda, opcode};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the other worker may take to map a part.
const MAP_TIME: Duration = Duration::from_secs(10);

/// From the worker that lends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Said {
    /// With the part's memory beside it.
    Part {
        range: (u64, u64),
        address: u64,
        bytes: u64,
    },
    /// All that there was at first has been handed over.
    Ready,
    /// Nothing can be lent.
    Refused {
        code: u32,
        text: String,
    },
    TakeBack {
        address: u64,
        number: u64,
    },
}

/// From the worker that borrows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "heard", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Heard {
    /// The answer to [`Said::Part`].
    Mapped { refused: Option<String> },
    /// The answer to [`Said::TakeBack`].
    Returned { number: u64 },
}

/// Calls of the client that wait for a link.
#[derive(Default)]
pub struct Links(Mutex<HashMap<u64, Asked>>);

/// A call, and the nonce that it brought.
type Asked = (ReplyTo<PeerLinkReply>, String);

impl Links {
    /// This call waits.
    pub fn wait(&self, call: u64, reply: ReplyTo<PeerLinkReply>, nonce: &str) {
        unpoisoned(&self.0).insert(call, (reply, nonce.to_owned()));
    }

    /// Memory of the other session's device is reached now, or will not be. Answers the session's nonce, once.
    pub fn answer(&self, call: u64, outcome: Result<(), Failure>) -> Option<String> {
        let (reply, nonce) = unpoisoned(&self.0).remove(&call)?;
        reply.send(outcome.map(|()| PeerLinkReply));
        Some(nonce)
    }
}

type Done = Box<dyn FnOnce() + Send>;

/// The other worker, as the device that lends sees it.
struct Line {
    channel: Arc<Channel>,
    /// Answers to parts, which are handed over one at a time.
    mapped: Mutex<Receiver<Option<String>>>,
    /// What was asked back, by number; nothing when the other worker is gone.
    asked: Mutex<Option<BTreeMap<u64, Done>>>,
    /// The number of the next return.
    next: AtomicU64,
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Borrower for Line {
    fn give(&self, part: Part, memory: BorrowedFd<'_>) -> io::Result<()> {
        let mapped = unpoisoned(&self.mapped);
        let Part { range, address, bytes } = part;
        self.channel.send(&Said::Part { range, address, bytes }, &[memory])?;
        match mapped.recv_timeout(MAP_TIME) {
            Ok(None) => Ok(()),
            Ok(Some(refused)) => Err(io::Error::other(refused)),
            Err(_) => {
                // Answers that come later would be taken for those of other parts.
                self.channel.end();
                Err(io::Error::other("the other GPU's worker did not answer"))
            }
        }
    }

    fn take_back(&self, address: u64, done: Done) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let gone = match &mut *unpoisoned(&self.asked) {
            Some(asked) => {
                asked.insert(number, done);
                None
            }
            None => Some(done),
        };
        match gone {
            Some(done) => done(),
            // One that cannot be told is gone, which the reading thread finds. The lock is free again: that thread needs it
            // to make room on the line.
            None => drop(self.channel.send(&Said::TakeBack { address, number }, &[])),
        }
    }

    fn end(&self) {
        self.channel.end();
    }
}

impl Line {
    /// Hears the other worker until it is gone.
    fn hear(&self, answers: &Sender<Option<String>>) {
        while let Ok(Some((heard, _))) = self.channel.receive::<Heard>() {
            match heard {
                Heard::Mapped { refused } => drop(answers.send(refused)),
                Heard::Returned { number } => {
                    let done = unpoisoned(&self.asked).as_mut().and_then(|asked| asked.remove(&number));
                    done.into_iter().for_each(|done| done());
                }
            }
        }
        let left = unpoisoned(&self.asked).take();
        left.into_iter().flatten().for_each(|(_, done)| done());
    }
}

/// What orders about other devices need of the session, which may be waiting for one of them.
pub struct Peers {
    device: Arc<dyn Device>,
    pub links: Arc<Links>,
    outbox: Arc<Outbox>,
}

impl Peers {
    /// Of a session.
    pub fn of(session: &Session) -> Peers {
        let (device, links) = (Arc::clone(&session.device), Arc::clone(&session.links));
        Peers { device, links, outbox: Arc::clone(&session.outbox) }
    }

    /// See [`Device::recall`].
    pub fn recall(&self) {
        self.device.recall();
    }

    /// Lends this device's memory to the worker at the other end, until that is gone.
    pub fn lend(&self, channel: Channel) -> io::Result<()> {
        let (channel, device) = (Arc::new(channel), Arc::clone(&self.device));
        let (answers, mapped) = std::sync::mpsc::channel();
        let (mapped, asked) = (Mutex::new(mapped), Mutex::new(Some(BTreeMap::new())));
        let line = Arc::new(Line { channel: Arc::clone(&channel), mapped, asked, next: AtomicU64::new(0) });
        let hearing = Arc::clone(&line);
        std::thread::Builder::new().name("peer-hears".to_owned()).spawn(move || hearing.hear(&answers))?;
        std::thread::Builder::new().name("peer-lends".to_owned()).spawn(move || {
            let said = match device.lend(line) {
                Ok(()) => Said::Ready,
                Err(error) => Said::Refused { code: error.code, text: error.text },
            };
            // One that cannot be told is gone, and its client is told so there.
            let _ = channel.order(&said, &[]);
        })?;
        Ok(())
    }

    /// Borrows what the worker at the other end has, and answers the client's call when all of it is there.
    pub fn borrow(&self, call: u64, channel: Channel) -> io::Result<()> {
        let (device, links) = (Arc::clone(&self.device), Arc::clone(&self.links));
        let outbox = Arc::clone(&self.outbox);
        std::thread::Builder::new().name("peer-borrows".to_owned()).spawn(move || {
            let (channel, mut borrowed, mut reached) = (Arc::new(channel), BTreeSet::new(), None);
            while let Ok(Some((said, memory))) = channel.receive::<Said>() {
                match said {
                    Said::Part { range, address, bytes } => {
                        let memory = memory.into_iter().next();
                        let taken = memory.map(|memory| device.borrow(Part { range, address, bytes }, memory));
                        let refused = match taken {
                            Some(Ok(())) => {
                                borrowed.insert(address);
                                None
                            }
                            Some(Err(error)) => Some(error.text),
                            None => Some("a part without memory".to_owned()),
                        };
                        let _ = channel.send(&Heard::Mapped { refused }, &[]);
                    }
                    Said::Ready => reached = links.answer(call, Ok(())),
                    Said::Refused { code, text } => {
                        links.answer(call, Err(Failure::new(code, text)));
                        break;
                    }
                    Said::TakeBack { address, number } => {
                        borrowed.remove(&address);
                        let told = Arc::clone(&channel);
                        let told = move || drop(told.send(&Heard::Returned { number }, &[]));
                        device.give_back(address, Box::new(told));
                    }
                }
            }
            let gone = "the worker of the other GPU is gone".to_owned();
            links.answer(call, Err(Failure::new(cuda::ERROR_PEER_ACCESS_UNSUPPORTED, gone)));
            borrowed.into_iter().for_each(|address| device.give_back(address, Box::new(|| ())));
            if let Some(nonce) = reached {
                let mut payload = Vec::new();
                PeerLost { nonce }.put(&mut payload);
                outbox.send(opcode::PEER_LOST, 0, &payload);
            }
        })?;
        Ok(())
    }
}
