//! What `libsluice_client.so` knows of the devices and the lease: one question, its answer kept for a moment, because
//! tools call twenty functions for one line of their tables.

use crate::status::{INVALID_ARGUMENT, NvmlReturn, UNKNOWN};
use serde_json::Value;
use std::ffi::{CStr, c_char};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

unsafe extern "C" {
    fn sluice_request(json: *const c_char) -> *mut c_char;
    fn sluice_free(answer: *mut c_char);
}

/// How long an answer is kept.
const KEPT: Duration = Duration::from_millis(200);

/// The handle of the first device; the others count on. Not 0, which programs take for "none".
pub const FIRST: usize = 1;

static LAST: Mutex<Option<(Instant, Arc<Value>)>> = Mutex::new(None);

/// The devices as this process sees them: see `owner::view` of the client.
fn view() -> Result<Arc<Value>, NvmlReturn> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((when, view)) = &*last
        && when.elapsed() < KEPT
    {
        return Ok(Arc::clone(view));
    }
    let view = Arc::new(ask(c"{\"op\":\"devices\"}").ok_or(UNKNOWN)?);
    *last = Some((Instant::now(), Arc::clone(&view)));
    Ok(view)
}

/// How many there are.
pub fn count() -> Result<usize, NvmlReturn> {
    Ok(view()?.get("devices").and_then(Value::as_array).map_or(0, Vec::len))
}

/// One device's part of the answer.
pub struct Device {
    view: Arc<Value>,
    index: usize,
}

impl Deref for Device {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.view["devices"][self.index]
    }
}

/// The device with this handle; one that is not there any more is unknown.
pub fn device(handle: usize) -> Result<Device, NvmlReturn> {
    let index = handle.checked_sub(FIRST).ok_or(INVALID_ARGUMENT)?;
    let view = view()?;
    if view["devices"].get(index).is_none() {
        return Err(INVALID_ARGUMENT);
    }
    Ok(Device { view, index })
}

/// Forgets the last answer.
pub fn forget() {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

fn ask(question: &CStr) -> Option<Value> {
    // SAFETY: the question ends with NUL; the answer is null or ends with NUL, and is freed once.
    let text = unsafe {
        let answer = sluice_request(question.as_ptr());
        if answer.is_null() {
            return None;
        }
        let text = CStr::from_ptr(answer).to_string_lossy().into_owned();
        sluice_free(answer);
        text
    };
    serde_json::from_str(&text).ok().filter(|answer: &Value| answer.get("error").is_none())
}

/// A number of the answer, 0 when it is not there.
pub fn number(view: &Value, pointer: &str) -> u64 {
    view.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// A text of the answer, empty when it is not there.
pub fn text<'a>(view: &'a Value, pointer: &str) -> &'a str {
    view.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}
