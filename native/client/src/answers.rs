//! What a driver has answered to questions whose answer does not change: each is asked once.

use crate::error::CudaResult;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// Answers that are kept; more are asked again.
const KEPT: usize = 4096;

/// See the module. A question names the generation that it is asked in, where that matters.
pub struct Answers<Q, A> {
    known: Mutex<HashMap<Q, A>>,
}

impl<Q, A> Default for Answers<Q, A> {
    fn default() -> Self {
        Self { known: Mutex::default() }
    }
}

impl<Q: Eq + Hash, A: Copy> Answers<Q, A> {
    /// The answer, asked for when it is not known.
    pub fn answer(&self, question: Q, ask: impl FnOnce(&Q) -> CudaResult<A>) -> CudaResult<A> {
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = lock().get(&question) {
            return Ok(*answer);
        }
        let answer = ask(&question)?;
        let mut known = lock();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(question, answer);
        Ok(answer)
    }

    /// What was answered holds no more.
    pub fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
