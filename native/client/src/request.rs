//! The door for Python and the command line: one JSON question, one JSON answer.

use crate::owner::broker::failure;
use crate::owner::lease;
use crate::process::{self, Process};
use crate::{fork, message};
use serde_json::{Value, json};
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Answers one question: the operation's answer, or `{"error": {"code", "message"}}`.
pub fn answer(process: &'static Process, request: &Value) -> Value {
    let result = match request.get("op").and_then(Value::as_str) {
        Some("init") => lease::init(process, request),
        Some("attach") => lease::attach(process, request),
        Some("poll") => lease::poll(process, request),
        Some("cancel") => lease::cancel(request),
        Some("detach") => lease::detach(process),
        Some("status") => lease::status(process),
        Some("session") => lease::session_for_child(process, request),
        Some("message") => Ok(match message::take() {
            Some((kind, text)) => json!({ "message": text, "kind": kind.word() }),
            None => json!({ "message": null }),
        }),
        _ => Err(failure("invalid", "this operation is not known".into())),
    };
    result.unwrap_or_else(|error| json!({ "error": error }))
}

/// Answers a JSON question; the answer is freed with [`sluice_free`]. Null only when there is no memory.
///
/// # Safety
/// `json` is null or points to text that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_request(json: *const c_char) -> *mut c_char {
    let reply = catch_unwind(AssertUnwindSafe(|| {
        if json.is_null() {
            return json!({ "error": failure("invalid", "no question".into()) });
        }
        // SAFETY: not null, and the caller answers for the NUL.
        let text = unsafe { CStr::from_ptr(json) }.to_string_lossy();
        fork::active();
        match serde_json::from_str::<Value>(&text) {
            Ok(request) => answer(process::get(), &request),
            Err(error) => json!({ "error": failure("invalid", error.to_string()) }),
        }
    }))
    .unwrap_or_else(|_| json!({ "error": failure("internal", "Sluice's client failed".into()) }));
    CString::new(reply.to_string()).unwrap_or_default().into_raw()
}

/// Frees an answer of [`sluice_request`].
///
/// # Safety
/// `answer` is null or came from [`sluice_request`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_free(answer: *mut c_char) {
    if !answer.is_null() {
        // SAFETY: it came from CString::into_raw.
        drop(unsafe { CString::from_raw(answer) });
    }
}
