//! The door for Python and the command line: one JSON question, one JSON answer.
//!
//! # Trace
//!
//! Counts what this process sends to gpud (`%gpu trace` shows it for a cell):
//!
//! - `{"op": "trace", "on": true}` forgets what was counted and starts to count; `"on": false` stops. Without `on`
//!   nothing changes. Each of them answers what has been counted since the start (after `"on": true`: nothing):
//!
//!   ```json
//!   {"on": true, "blocking": 2, "posted": 240, "calls": [
//!     {"function": "cuStreamSynchronize", "operation": "StreamSynchronize", "blocking": true, "site": 7,
//!      "count": 2, "bytes": 32, "waitedUs": 812.5}]}
//!   ```
//!
//!   `function` is the CUDA function that the program called (`(Sluice itself)` for what is sent outside of one),
//!   `operation` is what travelled, `blocking` whether the program waited for an answer, `bytes` both ways without
//!   frame headers, `waitedUs` the sum of the waits. `blocking` and `posted` above are the sums of `count`. Functions
//!   that are answered without gpud send nothing and are not in the list.
//! - `site` is what the hook of [`sluice_trace_hook`] answered for blocking calls, 0 for posted ones and without a
//!   hook. The hook is called on the calling thread just before it waits, with no lock of this library held; it may
//!   take the interpreter's lock, and must not call CUDA. From Python:
//!
//!   ```python
//!   @ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_char_p, ctypes.c_char_p)
//!   def hook(function, operation):          # keep a reference while it is set
//!       return number_of(sys._getframe(1))  # file and line → a number of your own
//!   library.sluice_trace_hook(hook)         # library.sluice_trace_hook(None) takes it away
//!   ```

use crate::owner::broker::failure;
use crate::owner::{Hook, StillWaits, lease, socket, view};
use crate::process::{self, Process};
use crate::{fork, journal, message, trace};
use serde_json::{Value, json};
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Answers one question: the operation's answer, or `{"error": {"code", "message"}}`.
pub fn answer(process: &'static Process, request: &Value) -> Value {
    answer_to(process, request, &|| true)
}

/// As [`answer`], of somebody who may have gone before there is one.
pub fn answer_to(process: &'static Process, request: &Value, still_waits: StillWaits) -> Value {
    let result = match request.get("op").and_then(Value::as_str) {
        Some("init") => lease::init(process, request),
        Some("attach") => lease::attach(process, request),
        Some("poll") => lease::poll(process, request),
        Some("cancel") => lease::cancel(request),
        Some("detach") => lease::detach(process),
        Some("extend") => lease::extend(process, request),
        Some("status") => lease::status(process),
        Some("profile") => Ok(view::profile(process)),
        Some("devices") => Ok(view::devices(process)),
        Some("lease") => Ok(lease::lease(process)),
        Some("session") => lease::session_for_child(process, request, still_waits),
        Some("message") => {
            let (kind, text) = message::take().unzip();
            let ended = (process.attached() > 0).then(|| process.ended());
            Ok(json!({ "message": text, "kind": kind.map(message::Kind::word), "ended": ended }))
        }
        Some("logs") => Ok(journal::read()),
        Some("variables") => Ok(socket::restored_variables()),
        Some("trace") => {
            match request.get("on").and_then(Value::as_bool) {
                Some(true) => trace::start(),
                Some(false) => trace::stop(),
                None => {}
            }
            Ok(trace::read())
        }
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

/// Sets the hook that names the places of blocking calls while a trace is on; null takes it away. See the module.
///
/// # Safety
/// `hook` can be called from any thread until another one is set and the calls under way have ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_trace_hook(hook: Option<trace::Hook>) {
    trace::set_hook(hook);
}

/// Sets what is told of a GPU that the first use attaches by itself (`gpuPolicy` first-use): the lease's id, empty while
/// one is waited for, and a sentence for a person; null takes it away. It is called on a thread of its own, which may
/// take the interpreter's lock. Without one the sentence goes to stderr.
///
/// # Safety
/// `hook` can be called from any thread until another one is set and the calls under way have ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_attached_hook(hook: Option<Hook>) {
    process::get().owner.set_hook(hook);
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
