//! Streams that wait for work of another device: a mark is asked for over the line, and its worker says when it has passed.

use super::line::{Heard, Mail, Said};
use crate::worker::lock;
use sluice_backend::HostWork;
use sluice_protocol::{Failure, cuda};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Marks that are kept for others at one time.
const MOST: usize = 1 << 16;

type Done = Box<dyn FnOnce() + Send>;

/// Marks of this device that others ask for, by number.
#[derive(Default)]
pub struct Marks(Mutex<HashMap<u64, Mark>>);

/// A mark that has passed before anybody asked, or that somebody waits for.
enum Mark {
    Passed,
    Asked(Arc<Mail<Said>>),
}

impl Marks {
    /// Marks that nobody asks for are kept: not too many.
    pub fn check_room(&self) -> Result<(), Failure> {
        if lock(&self.0).len() < MOST {
            return Ok(());
        }
        Err(Failure::new(cuda::ERROR_OUT_OF_MEMORY, "too many marks that no other session waits for"))
    }

    /// What was marked has passed, or was refused.
    pub fn pass(&self, mark: u64) {
        let mut marks = lock(&self.0);
        match marks.remove(&mark) {
            Some(Mark::Asked(line)) => line.send(Said::Passed { mark }),
            _ if marks.len() < MOST => drop(marks.insert(mark, Mark::Passed)),
            // Whoever asks for it finds that there are too many.
            _ => {}
        }
    }

    /// Somebody waits for a mark, which may be made later.
    pub(super) fn ask(&self, mark: u64, line: &Arc<Mail<Said>>) {
        let mut marks = lock(&self.0);
        if marks.remove(&mark).is_some() || marks.len() >= MOST {
            return line.send(Said::Passed { mark });
        }
        marks.insert(mark, Mark::Asked(Arc::clone(line)));
    }

    /// Nobody waits on this line any more.
    pub(super) fn forget(&self, line: &Arc<Mail<Said>>) {
        lock(&self.0).retain(|_, mark| !matches!(mark, Mark::Asked(asked) if Arc::ptr_eq(asked, line)));
    }
}

/// A line on which this device's streams wait for marks of another one's.
pub struct Awaited {
    mail: Mail<Heard>,
    /// Nothing when the line has ended.
    waits: Mutex<Option<HashMap<u64, Arc<Wait>>>>,
}

/// A stream's wait: whether the mark has passed, or what is to go on then.
#[derive(Default)]
struct Wait(Mutex<(bool, Option<Done>)>);

impl Wait {
    /// The stream has come to it.
    fn reach(&self, go_on: Done) {
        let mut state = lock(&self.0);
        if state.0 {
            drop(state);
            return go_on();
        }
        state.1 = Some(go_on);
    }

    /// The mark has passed.
    fn pass(&self) {
        let go_on = {
            let mut state = lock(&self.0);
            state.0 = true;
            state.1.take()
        };
        go_on.into_iter().for_each(|go_on| go_on());
    }
}

impl Awaited {
    pub(super) fn new(mail: Mail<Heard>) -> Arc<Awaited> {
        Arc::new(Awaited { mail, waits: Mutex::new(Some(HashMap::new())) })
    }

    /// What a stream does that is to wait for a mark; None: the other session is over.
    pub(super) fn wait_for(&self, mark: u64) -> Option<HostWork> {
        let wait = Arc::<Wait>::default();
        lock(&self.waits).as_mut()?.insert(mark, Arc::clone(&wait));
        self.mail.send(Heard::Await { mark });
        Some(Box::new(move |go_on| wait.reach(go_on)))
    }

    pub(super) fn pass(&self, mark: u64) {
        let wait = lock(&self.waits).as_mut().and_then(|waits| waits.remove(&mark));
        wait.into_iter().for_each(|wait| wait.pass());
    }

    /// The other session is over, and nothing of it is waited for.
    pub(super) fn end(&self) {
        let waits = lock(&self.waits).take();
        waits.into_iter().flatten().for_each(|(_, wait)| wait.pass());
    }

    pub(super) fn send(&self, heard: Heard) {
        self.mail.send(heard);
    }
}
