//! Attach, detach, and the sessions that come of them.

use super::broker::{Method, ask, failure};
use super::interrupt::Interrupts;
use super::{StillWaits, socket};
use crate::device::{Device, MOST_DEVICES};
use crate::dial::{Key, Ticket};
use crate::driver::peer;
use crate::journal;
use crate::message;
use crate::process::Process;
use crate::session::{Session, Unusable};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sluice_protocol::messages::ContextSynchronize;
use sluice_transport::variables;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// How long the first use of a GPU waits for one: as long as `%gpu attach`.
const FIRST_USE_WAIT: Duration = Duration::from_secs(120);

/// An error body of the broker's shape.
type Failure = Value;

fn string(value: &Value, field: &str) -> Option<String> {
    value.get(field).and_then(Value::as_str).map(str::to_owned)
}

/// One GPU of a lease. Each is a lease at its gpud, with sessions of its own; all begin and end together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    lease: String,
    /// The pool's id of the GPU.
    gpu: String,
}

/// The GPUs of a `leaseView`, in the order of their ordinals; none when it is no lease.
pub fn parts_of(lease: &Value) -> Vec<Part> {
    let part = |value: &Value, id: &str| {
        Some(Part { lease: string(value, id)?, gpu: string(value, "gpuId").unwrap_or_default() })
    };
    match lease.get("devices").and_then(Value::as_array) {
        Some(devices) => devices.iter().filter_map(|device| part(device, "leaseId")).collect(),
        None => part(lease, "id").into_iter().collect(),
    }
}

/// Where this process has parked memory of a device.
fn parked_on(device: Device) -> MutexGuard<'static, Option<String>> {
    device.state.parked_on.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device's session, if its memory is parked.
fn parked(device: Device) -> Option<Arc<Session>> {
    device.any_session().filter(|session| matches!(session.usable(), Err(Unusable::Parked)))
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
    ask_for(process, request)
}

/// The same for who is changing the process's leases already.
fn ask_for(process: &'static Process, request: &Value) -> Result<Value, Failure> {
    let request_id = string(request, "requestId").ok_or_else(|| failure("invalid", "requestId is missing".into()))?;
    if process.attached() > 0
        && let Some(lease) = process.owner.state().lease.clone()
    {
        return Ok(json!({
            "state": "granted", "requestId": request_id, "lease": lease, "connectMs": 0, "ended": process.ended(),
            "already": true,
        }));
    }
    note_parked(process);
    let mut body = json!({
        "requestId": request_id,
        "amount": string(request, "amount").unwrap_or_default(),
        "guaranteed": request.get("guaranteed").and_then(Value::as_bool).unwrap_or(false),
        "waitSeconds": request.get("waitSeconds").and_then(Value::as_f64).unwrap_or(120.0).ceil() as u64,
        "owner": owner_of(process, request.get("scope").and_then(Value::as_str)),
        "maxDevices": MOST_DEVICES,
    });
    for field in ["memory", "gpuType", "forSeconds", "priority"] {
        if let Some(value) = request.get(field).filter(|value| !value.is_null()) {
            body[field] = value.clone();
        }
    }
    // The broker keeps one GPU for who has memory there. Of several it gives what is free, and `check_parked` looks.
    let several = body["amount"].as_str().and_then(|amount| amount.parse().ok()).is_some_and(|gpus: f64| gpus > 1.0);
    if !several && let Some((_, gpu)) = holding(process).find(|(device, _)| device.part() == 0) {
        body["pinnedGpuId"] = json!(gpu);
    }
    let answer = ask(Method::Post(body), "/v1/lease-requests")?;
    claim(process, answer)
}

/// The devices whose parked memory holds something, each with the GPU that it is on.
fn holding(process: &'static Process) -> impl Iterator<Item = (Device, String)> {
    let holds = |device: &Device| parked(*device).is_some_and(|session| session.used_bytes() > 0);
    process.devices().filter(holds).filter_map(|device| Some((device, parked_on(device).clone()?)))
}

/// A lease on other GPUs than those that hold this process's memory would be the end of that memory.
fn check_parked(process: &'static Process, parts: &[Part]) -> Result<(), Failure> {
    let mut lost = holding(process).filter(|(device, _)| device.part() < parts.len());
    match lost.find(|(_, gpu)| parts.iter().all(|part| part.gpu != *gpu)) {
        None => Ok(()),
        Some((device, _)) => Err(failure(
            "conflict",
            format!(
                "the GPU that holds the parked memory of device {} was not free, and others were given back at once. \
                 Try again when it is free, or restart the notebook to start without the parked memory",
                device.ordinal
            ),
        )),
    }
}

/// A lease that ended from outside may have left memory parked: the next one is asked for on the same device.
fn note_parked(process: &'static Process) {
    let parts = process.owner.state().lease.as_ref().map(parts_of).unwrap_or_default();
    for device in process.devices().filter(|device| parked(*device).is_some()) {
        let mut known = parked_on(device);
        if known.is_none() {
            *known = parts.get(device.part()).map(|part| part.gpu.clone());
        }
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
    let mut lease =
        answer.get("lease").cloned().ok_or_else(|| failure("internal", "a grant without a lease".into()))?;
    let started = Instant::now();
    if let Err(error) = connect(process, &mut lease) {
        // A lease that cannot be used is not kept from others.
        if let Some(id) = string(&lease, "id") {
            let _ = ask(Method::Delete, &format!("/v1/leases/{id}?park=1"));
        }
        return Err(error);
    }
    journal::note(format!("attached: {}, lease {}", places(&lease), string(&lease, "id").unwrap_or_default()));
    answer["connectMs"] = json!(started.elapsed().as_secs_f64() * 1000.0);
    answer["ended"] = json!(process.ended());
    process.owner.state().lease = Some(lease);
    Ok(answer)
}

/// Where a lease's GPUs are, in words.
fn places(lease: &Value) -> String {
    let place = |at: &Value| {
        let text = |field| string(at, field).unwrap_or_default();
        format!("{} on {}", text("deviceName"), text("serverName"))
    };
    match lease.get("devices").and_then(Value::as_array) {
        Some(devices) => devices.iter().map(place).collect::<Vec<_>>().join(", "),
        None => place(lease),
    }
}

/// Opens a session for each device that the program sees. When one fails, the others are parked.
fn connect(process: &'static Process, lease: &mut Value) -> Result<(), Failure> {
    check_parked(process, &parts_of(lease))?;
    process.grows_to(parts_of(lease).len());
    put_in_place(process, lease);
    let parts = parts_of(lease);
    if parts.is_empty() {
        return Err(failure("internal", "a lease without an id".into()));
    }
    let mut connected: Vec<(Device, &Part)> = Vec::new();
    for device in process.devices() {
        let Some(part) = parts.get(device.part()) else { continue };
        if let Err(error) = connect_device(device, part) {
            for (device, part) in connected {
                device.any_session().inspect(|session| session.park());
                *parked_on(device) = Some(part.gpu.clone());
            }
            return Err(error);
        }
        connected.push((device, part));
    }
    connected.iter().for_each(|(device, _)| *parked_on(*device) = None);
    Ok(())
}

/// A GPU that holds parked memory becomes the device again that it was.
fn put_in_place(process: &'static Process, lease: &mut Value) {
    let Some(parts) = lease.get_mut("devices").and_then(Value::as_array_mut) else { return };
    let count = parts.len();
    for device in process.devices().filter(|device| device.part() < count) {
        let known = parked_on(device).clone();
        let found = parts.iter().position(|part| known.is_some() && string(part, "gpuId") == known);
        if let Some(at) = found {
            parts.swap(at, device.part());
        }
    }
}

fn connect_device(device: Device, part: &Part) -> Result<(), Failure> {
    let known = parked_on(device).clone();
    if known.as_deref() == Some(part.gpu.as_str())
        && let Some(session) = parked(device)
    {
        let opened = open_session(&part.lease, &session.connection.ticket().key.public())?;
        if let Some(token) = string(&opened, "token")
            && session.rebind(&token).is_ok()
        {
            message::reset();
            peer::restore(device);
            return Ok(());
        }
    }
    let key = Arc::new(Key::generate().map_err(|error| failure("internal", error))?);
    let opened = open_session(&part.lease, &key.public())?;
    bind(device, &opened, key, part.lease.clone()).map(|_| ())
}

fn open_session(lease_id: &str, public_key: &str) -> Result<Value, Failure> {
    let body = json!({ "publicKey": public_key, "pid": std::process::id(), "startTime": start_time() });
    ask(Method::Post(body), &format!("/v1/leases/{lease_id}/sessions"))
}

fn bind(device: Device, opened: &Value, key: Arc<Key>, lease_id: String) -> Result<Arc<Session>, Failure> {
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
    message::set_hardware(
        opened
            .get("hardwareTypes")
            .and_then(Value::as_array)
            .map(|types| types.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
    );
    let several = device.process.count() > 1;
    let ticket = Ticket { address, nearby: nearby(&token), pin, token, key, several };
    let session = Session::open(ticket, device.process.next_generation(), device.ordinal, lease_id)
        .map_err(|error| failure("unavailable", error.to_string()))?;
    // A session of before whose memory was parked elsewhere ends now.
    if let Some(old) = device.any_session() {
        old.close();
    }
    device.bind(Arc::clone(&session));
    peer::restore(device);
    at_exit();
    Ok(session)
}

/// The socket of the server that a session token is for, where this host has it: the folder of such sockets is named by
/// the workspace's environment.
fn nearby(token: &str) -> Option<PathBuf> {
    let folder = variables::text("SLUICE_GPUD_SOCKETS")?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?).ok()?;
    let server = claims.get("aud")?.as_str()?.strip_prefix("gpud:").filter(|id| !id.contains('/'))?;
    let path = PathBuf::from(folder).join(format!("{server}.sock"));
    path.exists().then_some(path)
}

/// A process that ends says so, and gpud need not wait for it to come back.
fn at_exit() {
    static ONCE: Once = Once::new();
    extern "C" fn goodbye() {
        crate::output::flush();
        for session in crate::process::get().devices().filter_map(Device::any_session) {
            session.close();
        }
    }
    ONCE.call_once(|| {
        // SAFETY: the function stays loaded: nothing unloads this library.
        unsafe { libc::atexit(goodbye) };
    });
}

/// The devices with a session on this lease, each with its GPU.
fn held(process: &'static Process, lease: &Value) -> Vec<(Device, Part)> {
    let parts = parts_of(lease);
    let part_of = |session: &Session| parts.iter().find(|part| part.lease == session.lease_id()).cloned();
    process.devices().filter_map(|device| Some((device, part_of(&*device.any_session()?)?))).collect()
}

/// Whether nothing of a part of a lease is parked, by the answer to giving the lease back.
fn parks_nothing(answer: &Value, part: &str) -> bool {
    match answer["devices"].as_array() {
        Some(parts) => parts.iter().any(|one| one["leaseId"] == part && one["parkedBytes"] == 0),
        // A broker of before tells of all of them together.
        None => answer["parkedBytes"] == 0,
    }
}

/// `detach`: gives the lease back; live memory stays parked at gpud. `lostBytes` of the answer, of the GPUs where nothing
/// of it did: their server goes out of service, or has no room for it. A lease that the broker could not take back stays
/// in use, and detaching can be tried again.
pub fn detach(process: &'static Process) -> Result<Value, Failure> {
    let _one = process.changing.lock().unwrap_or_else(PoisonError::into_inner);
    let lease = process.owner.state().lease.clone();
    let Some(lease) = lease else {
        return Err(failure("not-found", "no GPU is attached to this notebook".into()));
    };
    let id = string(&lease, "id").unwrap_or_default();
    let sessions: Vec<Arc<Session>> = process.devices().filter_map(Device::session_now).collect();
    for session in &sessions {
        // What runs is finished first; its errors are not this call's.
        let _ = session.connection.call(&ContextSynchronize);
        session.park();
    }
    let used: Vec<u64> = sessions.iter().map(|session| session.used_bytes()).collect();
    let mut answer = ask(Method::Delete, &format!("/v1/leases/{id}?park=1"));
    // A lease that the broker does not know is over.
    if let Err(error) = &answer
        && string(error, "code").as_deref() != Some("not-found")
    {
        sessions.iter().for_each(|session| session.unpark());
        return answer;
    }
    journal::note(format!("given back: lease {id}"));
    process.owner.state().lease = None;
    if let Ok(answer) = &mut answer {
        let mut lost = 0;
        for (session, used) in sessions.iter().zip(used) {
            if used > 0 && parks_nothing(answer, &session.lease_id()) {
                lost += used;
                // gpud's word of it may be late, and the next lease need not be where nothing is kept.
                session.end_given_back();
            }
        }
        if lost > 0 {
            answer["lostBytes"] = json!(lost);
        }
    }
    for (device, part) in held(process, &lease) {
        if parked(device).is_some() {
            *parked_on(device) = Some(part.gpu);
        }
    }
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
    // All are asked: that is when a device lets go of what is lost.
    let loss = process.devices().filter_map(Device::last_loss).reduce(|first, _| first);
    let sessions: Vec<Arc<Session>> = process.devices().filter_map(Device::any_session).collect();
    let mut answer = ask(Method::Get, &path)?;
    answer["attached"] = json!(process.attached() > 0);
    answer["lastLoss"] = json!(loss.or_else(|| sessions.iter().find_map(|session| session.loss())));
    answer["usedBytes"] = json!(sessions.iter().map(|session| session.used_bytes()).sum::<u64>());
    answer["generation"] = json!(sessions.iter().map(|session| session.generation).max().unwrap_or(0));
    let resumed = |session: &Arc<Session>| session.connection.resumed.load(Ordering::Relaxed);
    answer["resumed"] = json!(sessions.iter().map(resumed).sum::<u64>());
    Ok(answer)
}

/// `lease`, asked by a child process: the lease that this process holds, or null.
pub fn lease(process: &'static Process) -> Value {
    let lease = process.owner.state().lease.clone().filter(|_| process.attached() > 0);
    json!({ "lease": lease })
}

/// `session`, asked by a child process: a token on one GPU of this process's lease, bound to the child's key.
pub fn session_for_child(
    process: &'static Process,
    request: &Value,
    still_waits: StillWaits,
) -> Result<Value, Failure> {
    if process.attached() == 0 {
        let why = process.owner.borrow(process.device(0), still_waits).err().flatten();
        why.map_or(Ok(()), |text| Err(failure("refused", text)))?;
    }
    let lease = process.owner.state().lease.clone().filter(|_| process.attached() > 0);
    let lease = lease.ok_or_else(|| failure("not-found", crate::message::NO_GPU.into()))?;
    let number = request.get("part").and_then(Value::as_u64).unwrap_or(0) as usize;
    let parts = parts_of(&lease);
    let part = parts.get(number).ok_or_else(|| {
        let text = format!("the lease has {} GPUs, and this is number {number}", parts.len());
        failure("not-found", text)
    })?;
    let body = json!({
        "publicKey": request.get("publicKey"),
        "pid": request.get("pid"),
        "startTime": request.get("startTime"),
    });
    let opened = ask(Method::Post(body), &format!("/v1/leases/{}/sessions", part.lease))?;
    Ok(json!({
        "token": opened.get("token"),
        "address": opened.get("address"),
        "fingerprint": opened.get("tlsFingerprint"),
        "hardwareTypes": opened.get("hardwareTypes"),
        "leaseId": part.lease,
        "lease": lease,
    }))
}

/// A notebook without a lease of its own uses the one that another notebook has attached for the whole workspace, or
/// attaches one where the workspace's GPU policy is to do that at the first use.
pub fn from_workspace(device: Device, still_waits: StillWaits) -> Result<Arc<Session>, Failure> {
    let process = device.process;
    // A notebook that is just attaching or giving back does not wait for itself.
    let _one = process.changing.try_lock().map_err(|_| failure("conflict", "an attach is under way".into()))?;
    let status = ask(Method::Get, "/v1/status")?;
    let leases = status.get("leases").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let shared = leases.iter().find(|entry| entry.pointer("/owner/kind") == Some(&json!("workspace")));
    match shared.and_then(|entry| entry.get("lease")).cloned() {
        Some(mut lease) => {
            // Parked memory would end with a lease on another GPU: what is known of it is looked at.
            note_parked(process);
            connect(process, &mut lease)?;
            journal::note(format!("using the workspace's GPU, lease {}", string(&lease, "id").unwrap_or_default()));
            process.owner.state().lease = Some(lease);
        }
        None if status.pointer("/workspace/gpuPolicy") == Some(&json!("first-use")) => {
            attach_at_first_use(process, still_waits)?;
        }
        None => return Err(failure("not-found", crate::message::NO_GPU.into())),
    }
    device.session_now().ok_or_else(|| failure("unavailable", "the workspace's GPU has just ended".into()))
}

/// The wait for a GPU was stopped by Ctrl-C, or Stop in a notebook; of a child process, by its end, too.
fn stopped() -> Failure {
    let text = "The wait for a GPU was stopped, and its request has left the queue. The next call that needs a GPU \
                waits again; or run %gpu attach 0.5.";
    failure("stopped", text.into())
}

/// Asks for the workspace's default amount and waits for it. Who is waited for is told what happens.
fn attach_at_first_use(process: &'static Process, still_waits: StillWaits) -> Result<(), Failure> {
    let id = uuid::Uuid::new_v4().to_string();
    let began = Instant::now();
    let interrupts = Interrupts::noted();
    let is_stopped = || interrupts.came() || !still_waits();
    let mut answer = ask_for(process, &json!({ "requestId": id, "waitSeconds": FIRST_USE_WAIT.as_secs() }))?;
    let state = |answer: &Value| string(answer, "state").unwrap_or_default();
    let reason = |answer: &Value| answer.pointer("/reason/message").and_then(Value::as_str).map(str::to_owned);
    if state(&answer) == "queued" {
        let why = reason(&answer).unwrap_or_default();
        process.owner.say("", &format!("Waiting up to 2 min for a GPU, which this work needs: {why}"));
    }
    while state(&answer) == "queued" && began.elapsed() < FIRST_USE_WAIT && !is_stopped() {
        match ask(Method::Get, &format!("/v1/lease-requests/{id}?wait=1")) {
            Ok(news) => answer = claim(process, news)?,
            // The question itself is interrupted, too.
            Err(_) if interrupts.came() => {}
            Err(error) => return Err(error),
        }
    }
    match state(&answer).as_str() {
        "granted" => {
            let lease = answer.get("lease").cloned().unwrap_or_default();
            let text = format!(
                "Attached a GPU by itself ({}) in {:.0} ms: this workspace's GPU policy is on first use.",
                places(&lease),
                began.elapsed().as_secs_f64() * 1000.0
            );
            process.owner.say(&string(&lease, "id").unwrap_or_default(), &text);
            Ok(())
        }
        "queued" => {
            let why = reason(&answer).unwrap_or_default();
            let left = ask(Method::Delete, &format!("/v1/lease-requests/{id}"))?;
            // Granted at the same moment.
            let granted = state(&left) == "granted";
            if is_stopped() {
                if let Some(lease) = left.pointer("/lease/id").and_then(Value::as_str).filter(|_| granted) {
                    ask(Method::Delete, &format!("/v1/leases/{lease}?park=1"))?;
                }
                return Err(stopped());
            }
            if granted {
                return claim(process, left).map(|_| ());
            }
            Err(failure("refused", format!("No GPU came free within 2 min: {why}")))
        }
        _ => Err(failure("refused", reason(&answer).unwrap_or_else(|| "No GPU was granted.".into()))),
    }
}

/// The child's side of `session_for_child`.
pub fn from_parent(device: Device, path: &OsStr) -> Result<Arc<Session>, Failure> {
    let ask_owner = |key: &Key| {
        let request = json!({
            "op": "session", "part": device.part(), "publicKey": key.public(), "pid": std::process::id(),
            "startTime": start_time(),
        });
        let answer = socket::ask(path, &request).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => stopped(),
            _ => failure("unavailable", error.to_string()),
        })?;
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer),
        }
    };
    if let Some(session) = parked(device) {
        let answer = ask_owner(&session.connection.ticket().key)?;
        if let Some(token) = string(&answer, "token")
            && session.rebind(&token).is_ok()
        {
            peer::restore(device);
            return Ok(session);
        }
    }
    let key = Arc::new(Key::generate().map_err(|error| failure("internal", error))?);
    let answer = ask_owner(&key)?;
    device.process.grows_to(parts_of(&answer["lease"]).len());
    bind(device, &answer, key, string(&answer, "leaseId").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_of_several_gpus_has_a_part_for_each() {
        let one = json!({ "id": "lea-1", "gpuId": "gpu-a" });
        let part = |lease: &str, gpu: &str| Part { lease: lease.into(), gpu: gpu.into() };
        assert_eq!(parts_of(&one), [part("lea-1", "gpu-a")]);
        let devices = json!([{ "leaseId": "lea-1", "gpuId": "gpu-a" }, { "leaseId": "lea-2", "gpuId": "gpu-b" }]);
        let two = json!({ "id": "lea-1", "gpuId": "gpu-a", "devices": devices });
        assert_eq!(parts_of(&two), [part("lea-1", "gpu-a"), part("lea-2", "gpu-b")]);
        assert_eq!(parts_of(&Value::Null), []);
    }

    #[test]
    fn the_start_time_is_that_of_proc() {
        let uptime = std::fs::read_to_string("/proc/uptime").expect("Linux");
        let ticks: f64 = uptime.split_whitespace().next().and_then(|text| text.parse().ok()).expect("a number");
        let started = super::start_time() as f64 / 100.0;
        assert!(started > 0.0 && started <= ticks + 1.0, "{started} of {ticks}");
    }
}
