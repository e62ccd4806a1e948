//! Memory between the workers of one client's devices on this host: each lends what it has to those that the client links
//! with it, over a line that their supervisor made. What is done for the other worker never waits for this one's session:
//! that may be waiting for the other one.

use crate::passing::Channel;
use crate::worker::outbox::Outbox;
use crate::worker::session::Session;
use serde::{Deserialize, Serialize};
use sluice_backend::{Borrower, Device, HostWork, Part};
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

/// Marks that are kept for others at one time.
const MOST_MARKS: usize = 1 << 16;

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
    /// The answer to [`Heard::Await`].
    Passed {
        mark: u64,
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
    /// A stream over there waits for this mark.
    Await { mark: u64 },
}

/// Of a session, what it has with others.
#[derive(Default)]
pub struct Links {
    /// Calls of the client that wait for a link, and the nonces that they brought.
    calls: Mutex<HashMap<u64, (ReplyTo<PeerLinkReply>, String)>>,
    /// Lines to those whose memory this one reaches, by nonce.
    lines: Mutex<HashMap<String, Arc<Awaited>>>,
    /// Marks that others ask for.
    marks: Mutex<HashMap<u64, Mark>>,
}

/// A mark that has passed before anybody asked, or that somebody waits for.
enum Mark {
    Passed,
    Asked(Arc<Channel>),
}

/// A line on which this device's streams wait for marks of another one's.
struct Awaited {
    channel: Arc<Channel>,
    /// Nothing when the line has ended.
    waits: Mutex<Option<HashMap<u64, Arc<Wait>>>>,
}

/// A stream's wait: whether the mark has passed, or what is to go on then.
#[derive(Default)]
struct Wait(Mutex<(bool, Option<Done>)>);

impl Wait {
    /// The stream has come to it.
    fn reach(&self, go_on: Done) {
        let now = {
            let mut state = unpoisoned(&self.0);
            if state.0 {
                Some(go_on)
            } else {
                state.1 = Some(go_on);
                None
            }
        };
        now.into_iter().for_each(|go_on| go_on());
    }

    /// The mark has passed.
    fn pass(&self) {
        let go_on = {
            let mut state = unpoisoned(&self.0);
            state.0 = true;
            state.1.take()
        };
        go_on.into_iter().for_each(|go_on| go_on());
    }
}

impl Links {
    /// This call waits.
    pub fn wait(&self, call: u64, reply: ReplyTo<PeerLinkReply>, nonce: &str) {
        unpoisoned(&self.calls).insert(call, (reply, nonce.to_owned()));
    }

    /// Memory of the other session's device is reached now, over this line, or will not be. Answers the session's nonce,
    /// once.
    fn settle(&self, call: u64, outcome: Result<Arc<Awaited>, Failure>) -> Option<String> {
        let (reply, nonce) = unpoisoned(&self.calls).remove(&call)?;
        let outcome = outcome.map(|line| drop(unpoisoned(&self.lines).insert(nonce.clone(), line)));
        reply.send(outcome.map(|()| PeerLinkReply));
        Some(nonce)
    }

    /// There will be no link.
    pub fn refuse(&self, call: u64, failure: Failure) {
        self.settle(call, Err(failure));
    }

    /// Marks that nobody asks for are kept: not too many.
    pub fn check_room(&self) -> Result<(), Failure> {
        if unpoisoned(&self.marks).len() < MOST_MARKS {
            return Ok(());
        }
        Err(Failure::new(cuda::ERROR_OUT_OF_MEMORY, "too many marks that no other session waits for"))
    }

    /// What was marked has passed, or never will.
    pub fn pass(&self, mark: u64) {
        let mut marks = unpoisoned(&self.marks);
        let Some(Mark::Asked(channel)) = marks.remove(&mark) else {
            marks.insert(mark, Mark::Passed);
            return;
        };
        drop(marks);
        // One that cannot be told waits no more.
        let _ = channel.send(&Said::Passed { mark }, &[]);
    }

    /// Somebody waits for a mark, which may be made later.
    fn ask(&self, mark: u64, channel: &Arc<Channel>) {
        let mut marks = unpoisoned(&self.marks);
        if marks.remove(&mark).is_none() {
            marks.insert(mark, Mark::Asked(Arc::clone(channel)));
            return;
        }
        drop(marks);
        let _ = channel.send(&Said::Passed { mark }, &[]);
    }

    /// What a stream does that is to wait for a mark of another session's; None: there is nothing to wait for.
    pub fn wait_for(&self, nonce: &str, mark: u64) -> Option<HostWork> {
        let line = Arc::clone(unpoisoned(&self.lines).get(nonce)?);
        let wait = Arc::<Wait>::default();
        unpoisoned(&line.waits).as_mut()?.insert(mark, Arc::clone(&wait));
        // A line that has ended since lets all go on.
        let _ = line.channel.send(&Heard::Await { mark }, &[]);
        Some(Box::new(move |go_on| wait.reach(go_on)))
    }
}

impl Awaited {
    fn new(channel: &Arc<Channel>) -> Arc<Awaited> {
        Arc::new(Awaited { channel: Arc::clone(channel), waits: Mutex::new(Some(HashMap::new())) })
    }

    fn pass(&self, mark: u64) {
        let wait = unpoisoned(&self.waits).as_mut().and_then(|waits| waits.remove(&mark));
        wait.into_iter().for_each(|wait| wait.pass());
    }

    fn end(&self) {
        let waits = unpoisoned(&self.waits).take();
        waits.into_iter().flatten().for_each(|(_, wait)| wait.pass());
    }
}

type Done = Box<dyn FnOnce() + Send>;

/// The other worker, as the device that lends sees it.
struct Line {
    channel: Arc<Channel>,
    links: Arc<Links>,
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
                Heard::Await { mark } => self.links.ask(mark, &self.channel),
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
        let links = Arc::clone(&self.links);
        let line = Arc::new(Line { channel: Arc::clone(&channel), links, mapped, asked, next: AtomicU64::new(0) });
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
            let awaited = Awaited::new(&channel);
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
                    Said::Ready => reached = links.settle(call, Ok(Arc::clone(&awaited))),
                    Said::Passed { mark } => awaited.pass(mark),
                    Said::Refused { code, text } => {
                        links.refuse(call, Failure::new(code, text));
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
            links.refuse(call, Failure::new(cuda::ERROR_PEER_ACCESS_UNSUPPORTED, gone));
            awaited.end();
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
