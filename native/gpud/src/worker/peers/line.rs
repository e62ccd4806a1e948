//! The line between two workers: who lends at one end, who borrows at the other.

use super::Links;
use crate::passing::Channel;
use crate::worker::lock;
use serde::{Deserialize, Serialize};
use sluice_backend::{Borrower, Part};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long the other worker may take to map a part.
const MAP_TIME: Duration = Duration::from_secs(10);

/// From the worker that lends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Said {
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
    /// Nothing is lent any more, and what was is to be given up; marks are told of as before.
    Lost,
    /// The answer to [`Heard::Await`].
    Passed {
        mark: u64,
    },
}

/// From the worker that borrows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "heard", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Heard {
    /// The answer to [`Said::Part`].
    Mapped { refused: Option<String> },
    /// The answer to [`Said::TakeBack`].
    Returned { number: u64 },
    /// A stream over there waits for this mark.
    Await { mark: u64 },
}

/// What goes to the other end. A thread of its own sends it: nobody who hears that end waits until it hears this one.
pub struct Mail<T>(Sender<(T, Option<OwnedFd>)>);

impl<T: Serialize + Send + 'static> Mail<T> {
    /// Sends what it is given until nobody can give it anything.
    pub fn start(channel: Arc<Channel>) -> io::Result<Mail<T>> {
        let (mail, waiting) = std::sync::mpsc::channel::<(T, Option<OwnedFd>)>();
        std::thread::Builder::new().name("peer-sends".to_owned()).spawn(move || {
            for (message, memory) in waiting {
                let memory: Vec<_> = memory.iter().map(AsFd::as_fd).collect();
                if channel.send(&message, &memory).is_err() {
                    // Both ends find it.
                    return channel.end();
                }
            }
        })?;
        Ok(Mail(mail))
    }

    /// A line that has ended takes nothing any more, which its reading thread finds.
    pub fn send(&self, message: T) {
        let _ = self.0.send((message, None));
    }

    fn send_with(&self, message: T, memory: OwnedFd) {
        let _ = self.0.send((message, Some(memory)));
    }
}

type Done = Box<dyn FnOnce() + Send>;

/// The other worker, as the device that lends sees it.
pub struct Line {
    pub mail: Arc<Mail<Said>>,
    /// Answers to parts, which are handed over one at a time.
    mapped: Mutex<Receiver<Option<String>>>,
    /// What was asked back, by number; nothing when the other worker is gone.
    asked: Mutex<Option<BTreeMap<u64, Done>>>,
    /// The number of the next return.
    next: AtomicU64,
    /// See [`Said::Lost`].
    lost: AtomicBool,
}

impl Line {
    /// A line, and where its reading thread puts answers to parts.
    pub fn new(mail: Mail<Said>) -> (Arc<Line>, Sender<Option<String>>) {
        let (answers, mapped) = channel();
        let (mapped, asked) = (Mutex::new(mapped), Mutex::new(Some(BTreeMap::new())));
        let (next, lost) = Default::default();
        (Arc::new(Line { mail: Arc::new(mail), mapped, asked, next, lost }), answers)
    }

    /// Hears the other worker until it is gone.
    pub fn hear(&self, channel: &Channel, answers: &Sender<Option<String>>, links: &Links) {
        while let Ok(Some((heard, _))) = channel.receive::<Heard>() {
            match heard {
                Heard::Mapped { refused } => drop(answers.send(refused)),
                Heard::Await { mark } => links.marks.ask(mark, &self.mail),
                Heard::Returned { number } => {
                    let done = lock(&self.asked).as_mut().and_then(|asked| asked.remove(&number));
                    done.into_iter().for_each(|done| done());
                }
            }
        }
        let left = lock(&self.asked).take();
        left.into_iter().flatten().for_each(|(_, done)| done());
        links.marks.forget(&self.mail);
    }
}

impl Borrower for Line {
    fn give(&self, part: Part, memory: BorrowedFd<'_>) -> io::Result<()> {
        let mapped = lock(&self.mapped);
        if self.lost.load(Ordering::Acquire) {
            return Err(io::Error::other("nothing is lent to it any more"));
        }
        let Part { range, address, bytes } = part;
        self.mail.send_with(Said::Part { range, address, bytes }, memory.try_clone_to_owned()?);
        match mapped.recv_timeout(MAP_TIME) {
            Ok(None) => Ok(()),
            Ok(Some(refused)) => Err(io::Error::other(refused)),
            Err(_) => Err(io::Error::other("the other GPU's worker did not answer")),
        }
    }

    fn take_back(&self, address: u64, done: Done) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let gone = match &mut *lock(&self.asked) {
            Some(asked) => {
                asked.insert(number, done);
                self.mail.send(Said::TakeBack { address, number });
                None
            }
            None => Some(done),
        };
        gone.into_iter().for_each(|done| done());
    }

    fn end(&self) {
        // Answers that come later would be taken for those of other parts: there are none.
        if !self.lost.swap(true, Ordering::AcqRel) {
            self.mail.send(Said::Lost);
        }
    }
}
