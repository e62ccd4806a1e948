//! Attach, detach, and the sessions that come of them.

use super::broker::{Method, ask, failure};
use super::socket;
use crate::dial::{Key, Ticket};
use crate::journal;
use crate::process::Process;
use crate::session::{Session, Unusable};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sluice_protocol::messages::ContextSynchronize;
use std::ffi::OsStr;
use std::sync::{Arc, Once, PoisonError};
use std::time::Instant;

/// An error body of the broker's shape.
type Failure = Value;

fn string(value: &Value, field: &str) -> Option<String> {
    value.get(field).and_then(Value::as_str).map(str::to_owned)
}

/// `init`: who owns the leases of this process; serves child processes from now on.
pub fn init(process: &'static Process, request: &Value) -> Result<Value, Failure> {
    let owner = request.get("owner").filter(|owner| owner.is_object());
    let owner = owner.ok_or_else(|| failure("invalid", "init needs an owner".into()))?;
    if owner.get("kind").and_then(Value::as_str) == Some("kernel") {
        crate::message::shown_elsewhere();
    }
    let mut state = process.owner.state();
    state.owner = Some(owner.clone());
    if state.socket.is_none() {
        state.socket = Some(socket::serve(process)?);
    }
    Ok(json!({ "ok": true, "socket": state.socket }))
}

/// The owner as the broker knows it; without `init`, this process.
fn owner_of(process: &Process, scope: Option<&str>) -> Value {
    let mut owner = process
        .owner
        .state()
        .owner
        .clone()
        .unwrap_or_else(|| json!({ "kind": "process", "pid": std::process::id(), "startTime": start_time() }));
    if scope == Some("workspace") {
        owner["kind"] = json!("workspace");
    }
    owner
}

/// Field 22 of /proc/self/stat.
fn start_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(") ").next().unwrap_or("");
    behind_name.split_whitespace().nth(19).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// `attach`: asks for a lease; when it is granted at once, this process is connected before the answer.
pub fn attach(process: &'static Process, request: &Value) -> Result<Value, Failure> {
    let _one = process.changing.lock().unwrap_or_else(PoisonError::into_inner);
    let request_id = string(request, "requestId").ok_or_else(|| failure("invalid", "requestId is missing".into()))?;
    if process.session_now().is_some()
        && let Some(lease) = process.owner.state().lease.clone()
    {
        return Ok(json!({
            "state": "granted", "requestId": request_id, "lease": lease, "connectMs": 0, "already": true,
        }));
    }
    note_parked(process);
    let mut body = json!({
        "requestId": request_id,
        "amount": string(request, "amount").unwrap_or_default(),
        "guaranteed": request.get("guaranteed").and_then(Value::as_bool).unwrap_or(false),
        "waitSeconds": request.get("waitSeconds").and_then(Value::as_f64).unwrap_or(120.0).ceil() as u64,
        "owner": owner_of(process, request.get("scope").and_then(Value::as_str)),
    });
    for field in ["gpuType", "forSeconds"] {
        if let Some(value) = request.get(field).filter(|value| !value.is_null()) {
            body[field] = value.clone();
        }
    }
    if let Some(session) = process.any_session()
        && matches!(session.usable(), Err(Unusable::Parked))
        && session.used_bytes() > 0
        && let Some(gpu) = process.owner.state().parked_on.clone()
    {
        body["pinnedGpuId"] = json!(gpu);
    }
    let answer = ask(Method::Post(body), "/v1/lease-requests")?;
    claim(process, answer)
}

/// A lease that ended from outside may have left memory parked: the next one is asked for on the same device.
fn note_parked(process: &Process) {
    let parked = process.any_session().is_some_and(|session| matches!(session.usable(), Err(Unusable::Parked)));
    let mut state = process.owner.state();
    if parked && state.parked_on.is_none() {
        state.parked_on = state.lease.as_ref().and_then(|lease| string(lease, "gpuId"));
    }
}

/// `poll`: waits for the queue to move; connects when the lease is granted.
pub fn poll(process: &'static Process, request: &Value) -> Result<Value, Failure> {
    let _one = process.changing.lock().unwrap_or_else(PoisonError::into_inner);
    let id = string(request, "requestId").ok_or_else(|| failure("invalid", "requestId is missing".into()))?;
    let wait = request.get("waitSeconds").and_then(Value::as_f64).unwrap_or(20.0).clamp(0.0, 25.0);
    claim(process, ask(Method::Get, &format!("/v1/lease-requests/{id}?wait={wait}"))?)
}

/// `cancel`: leaves the queue.
pub fn cancel(request: &Value) -> Result<Value, Failure> {
    let id = string(request, "requestId").ok_or_else(|| failure("invalid", "requestId is missing".into()))?;
    ask(Method::Delete, &format!("/v1/lease-requests/{id}"))
}

fn claim(process: &'static Process, mut answer: Value) -> Result<Value, Failure> {
    if answer.get("state").and_then(Value::as_str) != Some("granted") {
        return Ok(answer);
    }
    let lease = answer.get("lease").cloned().ok_or_else(|| failure("internal", "a grant without a lease".into()))?;
    let started = Instant::now();
    if let Err(error) = connect(process, &lease) {
        // A lease that cannot be used is not kept from others.
        if let Some(id) = string(&lease, "id") {
            let _ = ask(Method::Delete, &format!("/v1/leases/{id}"));
        }
        return Err(error);
    }
    journal::note(format!(
        "attached: {} on {}, lease {}",
        string(&lease, "deviceName").unwrap_or_default(),
        string(&lease, "serverName").unwrap_or_default(),
        string(&lease, "id").unwrap_or_default(),
    ));
    answer["connectMs"] = json!(started.elapsed().as_secs_f64() * 1000.0);
    let mut state = process.owner.state();
    state.parked_on = None;
    state.lease = Some(lease);
    Ok(answer)
}

fn connect(process: &'static Process, lease: &Value) -> Result<(), Failure> {
    let id = string(lease, "id").ok_or_else(|| failure("internal", "a lease without an id".into()))?;
    let gpu = string(lease, "gpuId");
    let same_gpu = process.owner.state().parked_on == gpu;
    if same_gpu
        && let Some(session) = process.any_session()
        && matches!(session.usable(), Err(Unusable::Parked))
    {
        let opened = open_session(&id, &session.connection.ticket().key.public())?;
        if let Some(token) = string(&opened, "token")
            && session.rebind(&token).is_ok()
        {
            crate::message::reset();
            return Ok(());
        }
    }
    let key = Arc::new(Key::generate().map_err(|error| failure("internal", error))?);
    let opened = open_session(&id, &key.public())?;
    bind(process, &opened, key, id).map(|_| ())
}

fn open_session(lease_id: &str, public_key: &str) -> Result<Value, Failure> {
    let body = json!({ "publicKey": public_key, "pid": std::process::id(), "startTime": start_time() });
    ask(Method::Post(body), &format!("/v1/leases/{lease_id}/sessions"))
}

fn bind(process: &'static Process, opened: &Value, key: Arc<Key>, lease_id: String) -> Result<Arc<Session>, Failure> {
    let unusable = |text: &str| failure("internal", format!("the session's {text} cannot be used"));
    let address = string(opened, "address").and_then(|text| text.parse().ok()).ok_or_else(|| unusable("address"))?;
    let pin = match opened.get("tlsFingerprint").or_else(|| opened.get("fingerprint")).and_then(Value::as_str) {
        None => None,
        Some(text) => {
            let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| unusable("fingerprint"))?;
            Some(<[u8; 32]>::try_from(bytes).map_err(|_| unusable("fingerprint"))?)
        }
    };
    let token = string(opened, "token").ok_or_else(|| unusable("token"))?;
    let ticket = Ticket { address, pin, token, key };
    let session = Session::open(ticket, process.next_generation(), lease_id)
        .map_err(|error| failure("unavailable", error.to_string()))?;
    // A session of before whose memory was parked elsewhere ends now.
    if let Some(old) = process.any_session() {
        old.close();
    }
    process.bind(Arc::clone(&session));
    at_exit();
    Ok(session)
}

/// A process that ends says so, and gpud need not wait for it to come back.
fn at_exit() {
    static ONCE: Once = Once::new();
    extern "C" fn goodbye() {
        crate::output::flush();
        if let Some(session) = crate::process::get().any_session() {
            session.close();
        }
    }
    ONCE.call_once(|| {
        // SAFETY: the function stays loaded: nothing unloads this library.
        unsafe { libc::atexit(goodbye) };
    });
}

/// `detach`: gives the lease back; live memory stays parked at gpud. A lease that the broker could not take back stays
/// in use, and detaching can be tried again.
pub fn detach(process: &'static Process) -> Result<Value, Failure> {
    let _one = process.changing.lock().unwrap_or_else(PoisonError::into_inner);
    let lease = process.owner.state().lease.clone();
    let Some(lease) = lease else {
        return Err(failure("not-found", "no GPU is attached to this notebook".into()));
    };
    let id = string(&lease, "id").unwrap_or_default();
    let session = process.session_now();
    if let Some(session) = &session {
        // What runs is finished first; its errors are not this call's.
        let _ = session.connection.call(&ContextSynchronize);
        session.park();
    }
    let answer = ask(Method::Delete, &format!("/v1/leases/{id}?park=1"));
    // A lease that the broker does not know is over.
    if let Err(error) = &answer
        && string(error, "code").as_deref() != Some("not-found")
    {
        if let Some(session) = session {
            session.unpark();
        }
        return answer;
    }
    journal::note(format!("given back: lease {id}"));
    let mut state = process.owner.state();
    state.parked_on = string(&lease, "gpuId");
    state.lease = None;
    answer
}

/// `extend`: the lease lasts `forSeconds` longer; the broker refuses what is beyond the team's longest.
pub fn extend(process: &'static Process, request: &Value) -> Result<Value, Failure> {
    let lease = process.owner.state().lease.clone();
    let id = lease.as_ref().and_then(|lease| string(lease, "id"));
    let id = id.ok_or_else(|| failure("not-found", "no GPU is attached to this notebook".into()))?;
    let body = json!({ "forSeconds": request.get("forSeconds") });
    let answer = ask(Method::Post(body), &format!("/v1/leases/{id}/extend"))?;
    if let (Some(lease), Some(until)) = (process.owner.state().lease.as_mut(), answer.get("expiresAt")) {
        lease["expiresAt"] = until.clone();
    }
    Ok(answer)
}

/// `status`: the broker's answer, and what this process knows itself.
pub fn status(process: &'static Process) -> Result<Value, Failure> {
    let lease = process.owner.state().lease.clone();
    let path = match lease.as_ref().and_then(|lease| string(lease, "id")) {
        Some(id) => format!("/v1/status?leaseId={id}"),
        None => "/v1/status".to_owned(),
    };
    let loss = process.last_loss();
    let session = process.any_session();
    let mut answer = ask(Method::Get, &path)?;
    answer["attached"] = json!(process.session_now().is_some());
    answer["lastLoss"] = json!(loss.or_else(|| session.as_ref().and_then(|session| session.loss())));
    answer["usedBytes"] = json!(session.as_ref().map_or(0, |session| session.used_bytes()));
    answer["generation"] = json!(session.as_ref().map_or(0, |session| session.generation));
    answer["resumed"] =
        json!(session.map_or(0, |session| session.connection.resumed.load(std::sync::atomic::Ordering::Relaxed)));
    Ok(answer)
}

/// `session`, asked by a child process: a token on this process's lease, bound to the child's key.
pub fn session_for_child(process: &'static Process, request: &Value) -> Result<Value, Failure> {
    let lease = process.owner.state().lease.clone().filter(|_| process.session_now().is_some());
    let lease = lease.ok_or_else(|| failure("not-found", crate::message::NO_GPU.into()))?;
    let id = string(&lease, "id").unwrap_or_default();
    let body = json!({
        "publicKey": request.get("publicKey"),
        "pid": request.get("pid"),
        "startTime": request.get("startTime"),
    });
    let opened = ask(Method::Post(body), &format!("/v1/leases/{id}/sessions"))?;
    Ok(json!({
        "token": opened.get("token"),
        "address": opened.get("address"),
        "fingerprint": opened.get("tlsFingerprint"),
        "lease": lease,
    }))
}

/// A notebook without a lease of its own uses the one that another notebook has attached for the whole workspace.
pub fn from_workspace(process: &'static Process) -> Result<Arc<Session>, Failure> {
    // A notebook that is just attaching or giving back does not wait for itself.
    let _one = process.changing.try_lock().map_err(|_| failure("conflict", "an attach is under way".into()))?;
    let status = ask(Method::Get, "/v1/status")?;
    let leases = status.get("leases").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let shared = leases.iter().find(|entry| entry.pointer("/owner/kind") == Some(&json!("workspace")));
    let lease = shared.and_then(|entry| entry.get("lease")).cloned();
    let lease = lease.ok_or_else(|| failure("not-found", crate::message::NO_GPU.into()))?;
    connect(process, &lease)?;
    journal::note(format!("using the workspace's GPU, lease {}", string(&lease, "id").unwrap_or_default()));
    process.owner.state().lease = Some(lease);
    process.session_now().ok_or_else(|| failure("unavailable", "the workspace's GPU has just ended".into()))
}

/// The child's side of `session_for_child`.
pub fn from_parent(process: &Process, path: &OsStr) -> Result<Arc<Session>, Failure> {
    // The process lives as long as the program.
    let process: &'static Process = if std::ptr::eq(process, crate::process::get()) {
        crate::process::get()
    } else {
        return Err(failure("internal", "the process was forked".into()));
    };
    let ask_owner = |key: &Key| {
        let request = json!({
            "op": "session", "publicKey": key.public(), "pid": std::process::id(), "startTime": start_time(),
        });
        let answer = socket::ask(path, &request).map_err(|error| failure("unavailable", error.to_string()))?;
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer),
        }
    };
    if let Some(session) = process.any_session()
        && matches!(session.usable(), Err(Unusable::Parked))
    {
        let answer = ask_owner(&session.connection.ticket().key)?;
        if let Some(token) = string(&answer, "token")
            && session.rebind(&token).is_ok()
        {
            return Ok(session);
        }
    }
    let key = Arc::new(Key::generate().map_err(|error| failure("internal", error))?);
    let answer = ask_owner(&key)?;
    let lease_id = answer.get("lease").and_then(|lease| string(lease, "id")).unwrap_or_default();
    bind(process, &answer, key, lease_id)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_start_time_is_that_of_proc() {
        let uptime = std::fs::read_to_string("/proc/uptime").expect("Linux");
        let ticks: f64 = uptime.split_whitespace().next().and_then(|text| text.parse().ok()).expect("a number");
        let started = super::start_time() as f64 / 100.0;
        assert!(started > 0.0 && started <= ticks + 1.0, "{started} of {ticks}");
    }
}
