//! Waits for and writes of words in device memory (`cuStreamBatchMemOp`).
//!
//! A wait holds its stream and no thread: one thread for all of them looks at the words, often at first, then less so.

use super::{Shared, bad_address};
use crate::device::Done;
use crate::error::{CudaError, CudaResult, code};
use crate::graph::MemoryOperation;
use crate::timeline::Later;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the words are looked at while something waits.
const LOOK_TIME: Duration = Duration::from_micros(100);
/// … after some time without a change.
const SLOW_LOOK_TIME: Duration = Duration::from_millis(2);
/// Looks until the pace slows down.
const FAST_LOOKS: u32 = 2000;

/// Operations that are under way, the first of which is a wait.
struct Waiting {
    shared: Arc<Shared>,
    operations: VecDeque<MemoryOperation>,
    done: Done<()>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    /// A thread looks.
    watched: bool,
}

/// See the module.
pub struct Words {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    wake: Condvar,
    /// Nothing is waited for any more.
    stopped: Box<dyn Fn() -> bool + Send + Sync>,
}

fn bytes_of(kind: u32) -> CudaResult<u64> {
    match kind {
        1 | 2 => Ok(4),
        4 | 5 => Ok(8),
        6 => Ok(0),
        other => {
            let text = format!("operation {other} of cuStreamBatchMemOp is not supported by the software GPU");
            Err(CudaError::new(code::NOT_SUPPORTED, text))
        }
    }
}

/// Whether a wait is over (`CUstreamWaitValue_flags`).
fn satisfied(operation: &MemoryOperation, found: u64) -> bool {
    let short = operation.kind == 1;
    let mask = if short { u64::from(u32::MAX) } else { u64::MAX };
    let (found, value) = (found & mask, operation.value & mask);
    match operation.flags & 3 {
        // Cyclic: the difference as a signed number.
        0 if short => (found as u32).wrapping_sub(value as u32) as i32 >= 0,
        0 => found.wrapping_sub(value) as i64 >= 0,
        1 => found == value,
        2 => found & value != 0,
        _ => !(found | value) & mask != 0,
    }
}

impl Words {
    /// Waits end at once when `stopped` says so.
    pub fn new(stopped: Box<dyn Fn() -> bool + Send + Sync>) -> Words {
        let inner = Inner { state: Mutex::default(), wake: Condvar::new(), stopped };
        Words { inner: Arc::new(inner) }
    }

    /// Operations as work of a stream, checked.
    pub fn work(&self, shared: &Arc<Shared>, operations: Vec<MemoryOperation>) -> CudaResult<Later> {
        let arena = shared.memory()?.arena();
        for operation in &operations {
            let bytes = bytes_of(operation.kind)?;
            if bytes > 0 && (!operation.address.is_multiple_of(bytes) || !arena.contains(operation.address, bytes)) {
                let text = format!("there is no word at {:#x}", operation.address);
                return Err(CudaError::new(code::INVALID_VALUE, text));
            }
        }
        let (inner, shared) = (Arc::clone(&self.inner), Arc::clone(shared));
        Ok(Box::new(move |done| inner.start(Waiting { shared, operations: operations.into(), done })))
    }
}

impl Waiting {
    /// Goes on as far as it can; `true` when it waits.
    fn advance(&mut self) -> CudaResult<bool> {
        while let Some(operation) = self.operations.front() {
            let arena = self.shared.memory()?.arena();
            let bytes = bytes_of(operation.kind)? as usize;
            match operation.kind {
                1 | 4 => {
                    let mut word = [0; 8];
                    arena.read(operation.address, &mut word[..bytes]).map_err(|error| bad_address(&error))?;
                    if !satisfied(operation, u64::from_le_bytes(word)) {
                        return Ok(true);
                    }
                }
                2 | 5 => {
                    let word = operation.value.to_le_bytes();
                    arena.write(operation.address, &word[..bytes]).map_err(|error| bad_address(&error))?;
                }
                _ => {}
            }
            self.operations.pop_front();
        }
        Ok(false)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Self>, mut waiting: Waiting) {
        match waiting.advance() {
            Ok(true) => {}
            outcome => return (waiting.done)(outcome.map(|_| ())),
        }
        let mut state = self.lock();
        state.waiting.push(waiting);
        if !state.watched {
            let inner = Arc::clone(self);
            let made = std::thread::Builder::new().name("words".to_owned()).spawn(move || inner.watch());
            state.watched = made.is_ok();
        }
        self.wake.notify_one();
    }

    fn watch(&self) {
        let mut looks = 0;
        loop {
            let mut state = self.lock();
            while state.waiting.is_empty() {
                looks = 0;
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let waiting = std::mem::take(&mut state.waiting);
            drop(state);
            let stopped = (self.stopped)();
            let mut left = Vec::new();
            for mut one in waiting {
                match one.advance() {
                    Ok(true) if !stopped => left.push(one),
                    outcome => {
                        looks = 0;
                        (one.done)(outcome.map(|_| ()));
                    }
                }
            }
            self.lock().waiting.append(&mut left);
            looks += 1;
            std::thread::sleep(if looks < FAST_LOOKS { LOOK_TIME } else { SLOW_LOOK_TIME });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_as_its_condition_says() {
        let wait = |kind, flags, value| MemoryOperation { kind, flags, address: 0, value };
        assert!(satisfied(&wait(1, 0, 5), 5) && satisfied(&wait(1, 0, 5), 6) && !satisfied(&wait(1, 0, 5), 4));
        // Cyclic, as CUDA defines it: just past the wrap is "greater".
        assert!(satisfied(&wait(1, 0, 0xffff_fff0), 3));
        assert!(satisfied(&wait(4, 0, u64::MAX - 1), 3));
        assert!(satisfied(&wait(1, 1, 7), 7) && !satisfied(&wait(1, 1, 7), 8));
        assert!(satisfied(&wait(4, 2, 1 << 40), 1 << 40) && !satisfied(&wait(4, 2, 1), 2));
        assert!(satisfied(&wait(1, 3, 1), 2) && !satisfied(&wait(1, 3, 0), u64::from(u32::MAX)));
    }
}
