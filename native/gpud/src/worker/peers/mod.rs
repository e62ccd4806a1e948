//! The workers of one client's devices on this host: each lends its memory to those that the client links with it, and
//! tells them how far its work is, over a line that their supervisor made. What is done for the other worker never waits
//! for this one's session: that may be waiting for the other one.

mod line;
mod marks;

use crate::passing::Channel;
use crate::worker::lock;
use crate::worker::outbox::Outbox;
use crate::worker::session::Session;
use line::{Heard, Line, Mail, Said};
use marks::{Awaited, Marks};
use sluice_backend::{Device, HostWork, Part};
use sluice_protocol::control::PeerLost;
use sluice_protocol::messages::PeerLinkReply;
use sluice_protocol::wire::Wire;
use sluice_protocol::{Failure, ReplyTo, cuda, opcode};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// Of a session, what it has with others.
#[derive(Default)]
pub struct Links {
    /// Calls of the client that wait for a link, and the nonces that they brought.
    calls: Mutex<HashMap<u64, (ReplyTo<PeerLinkReply>, String)>>,
    /// Lines to the sessions that this one is linked with, by nonce.
    lines: Mutex<HashMap<String, Arc<Awaited>>>,
    pub marks: Marks,
}

impl Links {
    /// This call waits.
    pub fn wait(&self, call: u64, reply: ReplyTo<PeerLinkReply>, nonce: &str) {
        lock(&self.calls).insert(call, (reply, nonce.to_owned()));
    }

    /// The link is there, over this line, or will not be. Answers the session's nonce, once.
    fn settle(&self, call: u64, outcome: Result<Arc<Awaited>, Failure>) -> Option<String> {
        let (reply, nonce) = lock(&self.calls).remove(&call)?;
        let outcome = outcome.map(|line| drop(lock(&self.lines).insert(nonce.clone(), line)));
        reply.send(outcome.map(|()| PeerLinkReply));
        Some(nonce)
    }

    /// There will be no link.
    pub fn refuse(&self, call: u64, failure: Failure) {
        self.settle(call, Err(failure));
    }

    /// What a stream does that is to wait for a mark of another session's; None: there is nothing to wait for.
    pub fn wait_for(&self, nonce: &str, mark: u64) -> Option<HostWork> {
        let line = lock(&self.lines).get(nonce).cloned();
        line?.wait_for(mark)
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
        let (channel, device, links) = (Arc::new(channel), Arc::clone(&self.device), Arc::clone(&self.links));
        let (line, answers) = Line::new(Mail::start(Arc::clone(&channel))?);
        let hearing = Arc::clone(&line);
        std::thread::Builder::new()
            .name("peer-hears".to_owned())
            .spawn(move || hearing.hear(&channel, &answers, &links))?;
        std::thread::Builder::new().name("peer-lends".to_owned()).spawn(move || {
            let mail = Arc::clone(&line.mail);
            mail.send(match device.lend(line) {
                Ok(()) => Said::Ready,
                Err(error) => Said::Refused { code: error.code, text: error.text },
            });
        })?;
        Ok(())
    }

    /// Borrows what the worker at the other end has, and answers the client's call when all of it is there.
    pub fn borrow(&self, call: u64, channel: Channel) -> io::Result<()> {
        let channel = Arc::new(channel);
        let awaited = Awaited::new(Mail::start(Arc::clone(&channel))?);
        let (device, links, borrowed) = (Arc::clone(&self.device), Arc::clone(&self.links), BTreeSet::new());
        let outbox = Arc::clone(&self.outbox);
        let borrowing = Borrowing { device, links, outbox, awaited, borrowed, reached: None };
        std::thread::Builder::new()
            .name("peer-borrows".to_owned())
            .spawn(move || borrowing.run(call, &channel))
            .map(drop)
    }
}

/// What this device has of another one.
struct Borrowing {
    device: Arc<dyn Device>,
    links: Arc<Links>,
    outbox: Arc<Outbox>,
    awaited: Arc<Awaited>,
    /// Addresses of parts.
    borrowed: BTreeSet<u64>,
    /// The other session's nonce, as long as its memory is reached.
    reached: Option<String>,
}

impl Borrowing {
    fn run(mut self, call: u64, channel: &Channel) {
        while let Ok(Some((said, memory))) = channel.receive::<Said>() {
            match said {
                Said::Part { range, address, bytes } => {
                    let refused = self.take(Part { range, address, bytes }, memory.into_iter().next());
                    self.awaited.send(Heard::Mapped { refused });
                }
                Said::Ready => self.reached = self.links.settle(call, Ok(Arc::clone(&self.awaited))),
                Said::Refused { code, text } => {
                    self.links.refuse(call, Failure::new(code, text));
                    break;
                }
                Said::TakeBack { address, number } => {
                    self.borrowed.remove(&address);
                    let told = Arc::clone(&self.awaited);
                    self.device.give_back(address, Box::new(move || told.send(Heard::Returned { number })));
                }
                Said::Lost => self.give_up(),
                Said::Passed { mark } => self.awaited.pass(mark),
            }
        }
        let gone = "the worker of the other GPU is gone".to_owned();
        self.links.refuse(call, Failure::new(cuda::ERROR_PEER_ACCESS_UNSUPPORTED, gone));
        self.awaited.end();
        self.give_up();
    }

    /// Makes a part reachable; answers why not.
    fn take(&mut self, part: Part, memory: Option<OwnedFd>) -> Option<String> {
        let Some(memory) = memory else { return Some("a part without memory".to_owned()) };
        match self.device.borrow(part, memory) {
            Ok(()) => {
                self.borrowed.insert(part.address);
                None
            }
            Err(error) => Some(error.text),
        }
    }

    /// Nothing of the other device is reached any more; the client is told.
    fn give_up(&mut self) {
        for address in std::mem::take(&mut self.borrowed) {
            self.device.give_back(address, Box::new(|| ()));
        }
        if let Some(nonce) = self.reached.take() {
            let mut payload = Vec::new();
            PeerLost { nonce }.put(&mut payload);
            self.outbox.send(opcode::PEER_LOST, 0, &payload);
        }
    }
}
