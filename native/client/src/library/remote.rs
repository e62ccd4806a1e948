//! What one session's server knows of the libraries.

use super::{Loaded, Outcome, Refusal};
use crate::objects::new_handle;
use crate::session::Session;
use sluice_api::libraries::number_of;
use sluice_protocol::messages::{LibraryCall, LibraryOpen, LibraryPost};
use sluice_protocol::{Wire, cuda, library::Argument};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Descriptions, answers and accepted choices that are kept; then all are forgotten and made again as they are used.
const MOST_KEPT: usize = 4096;

/// See the module.
#[derive(Default)]
pub struct Remote {
    state: Mutex<State>,
    making: Mutex<()>,
}

/// The functions that the server cannot execute, or why it has no such library: status and sentence.
type Opened = Result<Arc<HashSet<u32>>, (u32, String)>;

#[derive(Default)]
struct State {
    opened: HashMap<u32, Opened>,
    /// Functions with their choices that were accepted, and with which operands.
    accepted: HashMap<u64, Vec<Operands>>,
    answers: HashMap<Vec<u8>, Answer>,
    /// Descriptions by their contents: number at the server, library and the function that ends it.
    descriptions: HashMap<Vec<u8>, (u64, u32, u32)>,
}

/// What an algorithm is chosen for and descriptions do not say: how the matrices lie in memory, and the work space.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Operands {
    /// Of the call's device addresses in their order; 0 where there is none.
    pub alignments: [u16; 8],
    /// Bytes.
    pub workspace: u64,
}

impl Operands {
    /// The alignment that nothing of cuBLASLt goes beyond.
    pub const ALIGNED: u16 = 256;

    /// An address's alignment; null suits everything.
    pub fn alignment(address: u64) -> u16 {
        1 << address.trailing_zeros().min(Self::ALIGNED.trailing_zeros())
    }

    /// Whether what serves `other` serves these too.
    fn suit(&self, other: &Self) -> bool {
        let aligned = self.alignments.iter().zip(other.alignments).all(|(own, needed)| *own >= needed);
        aligned && self.workspace >= other.workspace
    }
}

/// What a library answered.
#[derive(Clone)]
pub(super) struct Answer {
    pub status: u32,
    pub text: String,
    pub outputs: Arc<[u8]>,
}

impl Remote {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails when the server has no such library, or cannot execute this function of it.
    pub(super) fn check(&self, session: &Session, loaded: Loaded, symbol: &str, number: u32) -> Outcome<()> {
        let known = self.lock().opened.get(&loaded.id).cloned();
        let opened = match known {
            Some(opened) => opened,
            None => {
                let opened = match session.connection.call(&LibraryOpen { library: loaded.id }) {
                    Ok(reply) => {
                        let numbers =
                            reply.refused.0.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                        Ok(Arc::new(numbers.collect()))
                    }
                    Err(error) if error.code == cuda::ERROR_NOT_SUPPORTED => {
                        Err((loaded.library.source.status.not_supported, error.text.unwrap_or_default()))
                    }
                    Err(error) => return Err(Refusal::from_cuda(loaded.library.source.status, error)),
                };
                self.lock().opened.insert(loaded.id, opened.clone());
                opened
            }
        };
        match opened {
            Err((status, text)) => Err(Refusal::new(status, text)),
            Ok(refused) if refused.contains(&number) => Err(Refusal::new(
                loaded.library.source.status.not_supported,
                format!("{symbol} cannot be executed by this GPU server; %gpu attach --type names another kind of GPU"),
            )),
            Ok(_) => Ok(()),
        }
    }

    /// Held by the thread that makes objects of other generations: each is made once, after those that it names.
    pub(super) fn making(&self) -> MutexGuard<'_, ()> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a function with these choices was accepted with operands that asked for no less.
    pub(super) fn is_accepted(&self, choices: u64, operands: &Operands) -> bool {
        self.lock().accepted.get(&choices).is_some_and(|known| known.iter().any(|known| operands.suit(known)))
    }

    pub(super) fn accept(&self, choices: u64, operands: Operands) {
        let mut state = self.lock();
        if state.accepted.len() >= MOST_KEPT {
            state.accepted.clear();
        }
        let known = state.accepted.entry(choices).or_default();
        if !known.iter().any(|known| operands.suit(known)) {
            known.retain(|known| !known.suit(&operands));
            known.push(operands);
        }
    }

    /// The kept answer to a question.
    fn answer(&self, question: &[u8]) -> Option<Answer> {
        self.lock().answers.get(question).cloned()
    }

    fn keep(&self, question: Vec<u8>, answer: Answer) {
        let mut state = self.lock();
        if state.answers.len() >= MOST_KEPT {
            state.answers.clear();
        }
        state.answers.insert(question, answer);
    }

    /// The server's number of a description with these contents; sent when it has none.
    pub(super) fn description(
        &self,
        session: &Session,
        loaded: Loaded,
        contents: &super::value::Contents,
    ) -> Outcome<u64> {
        let key = contents.key(loaded.id);
        let mut state = self.lock();
        if let Some((number, ..)) = state.descriptions.get(&key) {
            return Ok(*number);
        }
        let post = |library: u32, function: u32, arguments: &[u8]| {
            let posted = session.connection.post(&LibraryPost { library, function, stream: 0, arguments });
            posted.map_err(|error| Refusal::from_cuda(loaded.library.source.status, error))
        };
        if state.descriptions.len() >= MOST_KEPT {
            for (number, library, end) in std::mem::take(&mut state.descriptions).into_values() {
                let mut arguments = Vec::new();
                Argument::End(number).put(&mut arguments);
                post(library, end, &arguments)?;
            }
        }
        let number = new_handle();
        let mut arguments = Vec::new();
        Argument::New(number).put(&mut arguments);
        arguments.extend_from_slice(&contents.arguments);
        post(loaded.id, contents.describe, &arguments)?;
        for ((function, _), rest) in &contents.changes {
            let mut arguments = Vec::new();
            Argument::Object(number).put(&mut arguments);
            arguments.extend_from_slice(rest);
            post(loaded.id, *function, &arguments)?;
        }
        let end = number_of(&contents.end);
        state.descriptions.insert(key, (number, loaded.id, end));
        Ok(number)
    }
}

/// Sends a call and waits for its status and outputs.
pub(super) fn call(session: &Session, loaded: Loaded, function: u32, stream: u64, arguments: &[u8]) -> Outcome<Answer> {
    let request = LibraryCall { library: loaded.id, function, stream, arguments };
    let reply = session.connection.call(&request).and_then(|reply| {
        // What was posted before may have failed, and this answer's numbers with it.
        session.check_sticky()?;
        Ok(Answer { status: reply.status, text: reply.text, outputs: reply.outputs.0.into() })
    });
    reply.map_err(|error| Refusal::from_cuda(loaded.library.source.status, error))
}

/// As [`call`] for a question whose answer depends on nothing but what is in `question`
/// ([`super::encode::Encoded::question`], or the arguments themselves): it is asked once, unless it is refused.
pub(super) fn ask(
    session: &Session,
    loaded: Loaded,
    function: u32,
    stream: u64,
    (arguments, question): (&[u8], &[u8]),
) -> Outcome<Answer> {
    let key = [&function.to_le_bytes()[..], &loaded.id.to_le_bytes(), question].concat();
    if let Some(answer) = session.libraries.answer(&key) {
        return Ok(answer);
    }
    let answer = call(session, loaded, function, stream, arguments)?;
    if answer.status == 0 {
        session.libraries.keep(key, answer.clone());
    }
    Ok(answer)
}
