//! What this process sends to gpud, while somebody wants to know: counted by CUDA function, operation and place in
//! the program. The questions that start and read it are described in [`crate::request`].
//!
//! Switched off, a call costs one relaxed load more.

use crate::message;
use serde_json::{Value, json};
use sluice_protocol::generated;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Names the place in the program from which a blocking call comes, as a number of the caller's own; 0 = unknown.
/// Both texts end with NUL and live for good. Called on the calling thread before it waits, with no lock held.
pub type Hook = unsafe extern "C" fn(function: *const c_char, operation: *const c_char) -> u64;

static ON: AtomicBool = AtomicBool::new(false);
/// The [`Hook`], 0 when there is none.
static HOOK: AtomicUsize = AtomicUsize::new(0);
static TABLE: Mutex<BTreeMap<Key, Counts>> = Mutex::new(BTreeMap::new());

thread_local! {
    static FUNCTION: Cell<Option<&'static str>> = const { Cell::new(None) };
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    function: &'static str,
    operation: u16,
    blocking: bool,
    site: u64,
}

#[derive(Default)]
struct Counts {
    count: u64,
    bytes: u64,
    waited: Duration,
}

fn table() -> MutexGuard<'static, BTreeMap<Key, Counts>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The CUDA function that runs on this thread; ends with the value.
pub struct Scope(());

impl Drop for Scope {
    fn drop(&mut self) {
        let _ = FUNCTION.try_with(|function| function.set(None));
    }
}

/// A CUDA function begins. Of functions that call each other the outermost counts: it is what the program called.
#[inline]
pub fn enter(symbol: &'static str) -> Option<Scope> {
    if !ON.load(Ordering::Relaxed) {
        return None;
    }
    FUNCTION
        .try_with(|function| {
            if function.get().is_some() {
                return None;
            }
            function.set(Some(symbol));
            Some(Scope(()))
        })
        .ok()
        .flatten()
}

fn function() -> &'static str {
    FUNCTION.try_with(Cell::get).ok().flatten().unwrap_or("(Sluice itself)")
}

fn add(key: Key, bytes: u64, waited: Duration) {
    let mut table = table();
    let counts = table.entry(key).or_default();
    counts.count += 1;
    counts.bytes += bytes;
    counts.waited += waited;
}

/// A posted operation of so many bytes has been queued.
#[inline]
pub fn posted(operation: u16, bytes: usize) {
    if ON.load(Ordering::Relaxed) {
        add(Key { function: function(), operation, blocking: false, site: 0 }, bytes as u64, Duration::ZERO);
    }
}

/// A call that somebody is about to wait for.
pub struct Waiting {
    key: Key,
    bytes: u64,
    since: Instant,
}

/// A call of so many bytes is about to be sent. Calls that one function has under way together each count.
#[inline]
pub fn calling(operation: u16) -> Option<Waiting> {
    if !ON.load(Ordering::Relaxed) {
        return None;
    }
    let function = function();
    let hook = HOOK.load(Ordering::Acquire);
    let site = if hook == 0 {
        0
    } else {
        let name = message::interned(generated::name(operation).unwrap_or("?"));
        // SAFETY: only `set_hook` stores here, and it stores a Hook.
        let hook = unsafe { std::mem::transmute::<usize, Hook>(hook) };
        // SAFETY: both texts live for good; the caller of `set_hook` answers for the rest.
        unsafe { hook(message::interned(function).as_ptr(), name.as_ptr()) }
    };
    Some(Waiting { key: Key { function, operation, blocking: true, site }, bytes: 0, since: Instant::now() })
}

impl Waiting {
    /// So many bytes travel with it.
    pub fn carries(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// The answer is here.
    pub fn answered(self) {
        add(self.key, self.bytes, self.since.elapsed());
    }
}

/// Starts to count, from nothing.
pub fn start() {
    table().clear();
    ON.store(true, Ordering::Release);
}

/// Stops to count; what was counted can still be read.
pub fn stop() {
    ON.store(false, Ordering::Release);
}

/// What was counted since the last start.
pub fn read() -> Value {
    let table = table();
    let sum = |blocking: bool| -> u64 {
        table.iter().filter(|(key, _)| key.blocking == blocking).map(|(_, counts)| counts.count).sum()
    };
    let calls = table.iter().map(|(key, counts)| {
        json!({
            "function": key.function,
            "operation": generated::name(key.operation).unwrap_or("?"),
            "blocking": key.blocking,
            "site": key.site,
            "count": counts.count,
            "bytes": counts.bytes,
            "waitedUs": counts.waited.as_nanos() as f64 / 1e3,
        })
    });
    json!({
        "on": ON.load(Ordering::Acquire),
        "blocking": sum(true),
        "posted": sum(false),
        "calls": calls.collect::<Vec<_>>(),
    })
}

/// Has blocking calls ask `hook` where they come from; None takes it away.
pub fn set_hook(hook: Option<Hook>) {
    HOOK.store(hook.map_or(0, |hook| hook as usize), Ordering::Release);
}
