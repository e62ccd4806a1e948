//! Sentences for people: what the last failed CUDA calls meant.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

/// What a CUDA call without a lease says.
pub const NO_GPU: &str = "this notebook has no GPU. Run %gpu attach 0.5, then this cell again.";

/// What a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no lease, or one was lost.
    Lease,
    /// The program asked for what the device cannot do, or did something wrong on it.
    Program,
}

impl Kind {
    /// As `sluice_request` answers it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Program => "program",
        }
    }
}

static LAST: Mutex<Option<(Kind, String)>> = Mutex::new(None);
static PRINTED: Mutex<Option<String>> = Mutex::new(None);
/// Something (IPython) asks for messages and shows them; then nothing is printed here.
static ASKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static THREAD: std::cell::RefCell<Option<(u32, String)>> = const { std::cell::RefCell::new(None) };
}

/// Keeps the sentence of a failed call, and prints it once where nobody asks for it.
pub fn tell(kind: Kind, text: &str) {
    crate::journal::note(text);
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some((kind, text.to_owned()));
    if ASKED.load(Ordering::Relaxed) {
        return;
    }
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.as_deref() != Some(text) {
        *printed = Some(text.to_owned());
        eprintln!("sluice: {text}");
    }
}

/// The sentence since last asked.
pub fn take() -> Option<(Kind, String)> {
    shown_elsewhere();
    LAST.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// From now on somebody asks: nothing is printed.
pub fn shown_elsewhere() {
    ASKED.store(true, Ordering::Relaxed);
}

/// A new lease: the next loss is printed again.
pub fn reset() {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = None;
    *PRINTED.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// What the broker said of the pool's cards; none before the first session on a software GPU.
static HARDWARE: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Keeps which GPU types of the pool run machine code; the broker says so with a session on a software GPU.
pub fn set_hardware(types: Option<Vec<String>>) {
    *HARDWARE.lock().unwrap_or_else(PoisonError::into_inner) = types;
}

/// A sentence about machine code that this GPU cannot run, with the GPU types that can.
pub fn with_hardware(text: String) -> String {
    match HARDWARE.lock().unwrap_or_else(PoisonError::into_inner).as_deref() {
        None => text,
        Some([]) => format!("{text}. This pool has no GPU that runs it"),
        Some([only]) => format!("{text}. A GPU of type {only} runs it: %gpu attach --type {only}"),
        Some([first, others @ ..]) => {
            format!("{text}. GPUs of type {first}, {} run it: %gpu attach --type {first}", others.join(", "))
        }
    }
}

/// Remembers what this thread's last failure meant, for `cuGetErrorString`. A thread that is ending, whose libraries give
/// their contexts back then, has nobody to ask any more.
pub fn remember(code: u32, text: String) {
    let _ = THREAD.try_with(|last| *last.borrow_mut() = Some((code, text)));
}

/// The sentence of this thread's last failure with this code, as a string that lives for good.
pub fn of_code(code: u32) -> Option<&'static CString> {
    let kept = THREAD.try_with(|last| last.borrow().clone()).ok().flatten();
    let (_, text) = kept.filter(|(remembered, _)| *remembered == code)?;
    Some(interned(&text))
}

/// A C string that lives for good; equal texts share one.
pub fn interned(text: &str) -> &'static CString {
    static TEXTS: LazyLock<Mutex<HashMap<String, &'static CString>>> = LazyLock::new(Mutex::default);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = texts.get(text) {
        return found;
    }
    let made: &'static CString = Box::leak(Box::new(CString::new(text.replace('\0', " ")).unwrap_or_default()));
    texts.insert(text.to_owned(), made);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_code_that_cannot_run_here_names_the_types_that_can() {
        let said = |types: Option<&[&str]>| {
            set_hardware(types.map(|types| types.iter().map(|name| (*name).to_owned()).collect()));
            with_hardware("no PTX".to_owned())
        };
        assert_eq!(said(None), "no PTX");
        assert_eq!(said(Some(&[])), "no PTX. This pool has no GPU that runs it");
        assert_eq!(said(Some(&["a100"])), "no PTX. A GPU of type a100 runs it: %gpu attach --type a100");
        assert_eq!(said(Some(&["a100", "h200"])), "no PTX. GPUs of type a100, h200 run it: %gpu attach --type a100");
    }
}
