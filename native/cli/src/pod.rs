//! `sluice pod`: what borrows for a Kubernetes pod, whichever program it runs. `check` runs in the image of each of the
//! pod's containers, `wait` asks for the lease before they start, `hold` has it while they run and gives it back.

use crate::run::{NOT_STARTED, Request, Signals, borrow, start_time};
use crate::text::{refused, string};
use crate::{ask, problem};
use clap::ArgMatches;
use serde_json::{Value, json};
use sluice_client::owner::broker::{self, Method};
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Of the kubelet: what is written there becomes the container's message.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// A lease with less than this left is extended, and by how much, seconds.
const EXTEND_BELOW: i64 = 1800;
const EXTEND_BY: u64 = 3600;
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The loader of programs that need glibc, where every distribution has it.
#[cfg(target_arch = "x86_64")]
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
#[cfg(target_arch = "aarch64")]
const LOADER: &str = "/lib/ld-linux-aarch64.so.1";

/// Runs the word after `sluice pod`.
pub fn run(options: &ArgMatches) -> ExitCode {
    match options.subcommand() {
        Some(("check", options)) => check(options),
        Some(("wait", options)) => said(wait(options)),
        Some(("hold", options)) => said(hold(options)),
        _ => ExitCode::from(2),
    }
}

/// What went wrong goes to the log, and to where the pod's events are made from.
fn said(outcome: Result<(), String>) -> ExitCode {
    let Err(text) = outcome else { return ExitCode::SUCCESS };
    eprintln!("sluice: {text}");
    // It is there in a container, and made nowhere else.
    if let Ok(mut log) = fs::OpenOptions::new().write(true).truncate(true).open(TERMINATION_LOG) {
        let _ = log.write_all(text.as_bytes());
    }
    ExitCode::from(NOT_STARTED)
}

/// Whether the image has a C library that ours work with: its own loader has to run a program that needs one.
fn check(options: &ArgMatches) -> ExitCode {
    let container = options.get_one::<String>("container").cloned().unwrap_or_default();
    let here = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    said(glibc(Path::new(LOADER), &here).map_err(|why| {
        format!(
            "The image of container {container} cannot use a borrowed GPU: {why} Take an image that is built on Debian, \
             Ubuntu, Fedora or their like, or name the containers that need the GPU in the pod's annotation \
             sluice.dev/gpu-containers."
        )
    }))
}

fn glibc(loader: &Path, program: &Path) -> Result<(), String> {
    if !loader.exists() {
        return Err("it has no glibc (it is built on musl, or on nothing), which Sluice's libraries need.".into());
    }
    let ran = Command::new(loader).arg(program).arg("--version").output();
    let ran = ran.map_err(|error| format!("its glibc does not run programs ({error})."))?;
    if ran.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&ran.stderr);
    let first = words.lines().next().unwrap_or_default().trim();
    Err(format!("its C library does not serve Sluice's libraries ({first})."))
}

/// The file in which `wait` leaves the request's key for `hold`.
fn key_file() -> PathBuf {
    folder().join("request")
}

/// What the pod's containers share with ours.
fn folder() -> PathBuf {
    std::env::var_os("SLUICE_RUNTIME_DIR").map_or_else(|| "/sluice/run".into(), PathBuf::from)
}

/// The pod's own token buys a credential of the lease API; gives the pod's name as people read it.
fn join(options: &ArgMatches) -> Result<String, String> {
    let text = |name: &str| options.get_one::<String>(name).cloned().unwrap_or_default();
    let credential = std::env::var("SLUICE_CREDENTIAL_FILE").map_err(|_| "SLUICE_CREDENTIAL_FILE is not set")?;
    let file = text("token");
    let token = fs::read_to_string(&file).map_err(|error| format!("the pod's token {file}: {error}"))?;
    // Asked with what is there: this address takes no credential.
    let write = |text: &str| {
        fs::write(&credential, text)
            .and_then(|()| fs::set_permissions(&credential, Permissions::from_mode(0o600)))
            .map_err(|error| format!("{credential}: {error}"))
    };
    write("none")?;
    let mut body = json!({ "token": token.trim(), "gpuType": text("type") });
    if !text("team").is_empty() {
        body["team"] = json!(text("team"));
    }
    let answer = broker::ask(Method::Post(body), "/v1/pods").map_err(|error| sentence(&error))?;
    write(string(&answer, "/credential"))?;
    Ok(string(&answer, "/name").to_owned())
}

fn sentence(error: &Value) -> String {
    problem(&json!({ "error": error })).unwrap_or_default()
}

fn owner(name: &str) -> Value {
    json!({ "kind": "process", "pid": std::process::id(), "startTime": start_time(), "label": name })
}

/// Asks for the lease and waits in the queue; fails when it is refused or the time is over.
fn wait(options: &ArgMatches) -> Result<(), String> {
    let signals = Signals::take();
    make_folder()?;
    let name = join_when_there(options, &signals)?;
    let request = Request::of(options);
    let mut body = request.body();
    body["owner"] = owner(&name);
    // As many as the client that takes it over can have.
    body["maxDevices"] = json!(sluice_client::device::MOST_DEVICES);
    let mut answer = ask_patiently(|| broker::ask(Method::Post(body.clone()), "/v1/lease-requests"))?;
    eprintln!("sluice: {} asks for a GPU", name);
    loop {
        match string(&answer, "/state") {
            "granted" => break,
            "queued" => {}
            _ => return Err(refused(&answer)),
        }
        if signals.pending().is_some() {
            let _ = broker::ask(Method::Delete, &format!("/v1/lease-requests/{}", request.id));
            return Err("stopped; left the queue".into());
        }
        let path = format!("/v1/lease-requests/{}?wait=1", request.id);
        answer = ask_patiently(|| broker::ask(Method::Get, &path))?;
    }
    fs::write(key_file(), &request.id).map_err(|error| format!("{}: {error}", key_file().display()))
}

/// A broker that is being replaced comes back, and the place in the queue is kept meanwhile.
fn ask_patiently(ask: impl Fn() -> Result<Value, Value>) -> Result<Value, String> {
    let began = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return Ok(answer),
            Err(error) if string(&error, "/code") == "unavailable" && began.elapsed() < LOOK_AGAIN => {
                std::thread::sleep(Duration::from_secs(1));
            }
            Err(error) => return Err(sentence(&error)),
        }
    }
}

/// A broker that is being replaced comes back.
fn join_when_there(options: &ArgMatches, signals: &Signals) -> Result<String, String> {
    let began = Instant::now();
    loop {
        match join(options) {
            Err(problem) if problem.contains("cannot be reached") && began.elapsed() < LOOK_AGAIN => {}
            outcome => return outcome,
        }
        if signals.pending().is_some() {
            return Err("stopped".into());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn make_folder() -> Result<(), String> {
    let made = fs::create_dir_all(folder()).and_then(|()| {
        // The pod's containers may be other users.
        fs::set_permissions(folder(), Permissions::from_mode(0o755))
    });
    made.map_err(|error| format!("{}: {error}", folder().display()))
}

/// Has the lease for the pod's processes, which find it by a socket, until this is told to end.
fn hold(options: &ArgMatches) -> Result<(), String> {
    let signals = Signals::take();
    make_folder()?;
    let socket = folder().join("gpu");
    let _ = fs::remove_file(&socket);
    let name = join_when_there(options, &signals)?;
    write_profile(options.get_one::<String>("type").map_or("", String::as_str));
    let served = ask(&json!({ "op": "init", "owner": owner(&name) }));
    if let Some(problem) = problem(&served) {
        return Err(problem);
    }
    take_over(options, &signals)?;
    open(Path::new(string(&served, "/socket")), &socket).map_err(|error| format!("{}: {error}", socket.display()))?;
    let mut looked = Instant::now();
    while signals.pending().is_none() {
        std::thread::sleep(Duration::from_millis(100));
        if looked.elapsed() >= LOOK_AGAIN {
            looked = Instant::now();
            extend();
        }
    }
    let id = string(&ask(&json!({ "op": "lease" })), "/lease/id").to_owned();
    let _ = fs::remove_file(&socket);
    if id.is_empty() {
        return Ok(());
    }
    // Nobody comes back for its memory.
    broker::ask(Method::Delete, &format!("/v1/leases/{id}")).map(|_| ()).map_err(|error| sentence(&error))
}

/// The lease that `wait` got; a new one when that has ended, after a restart of this container.
fn take_over(options: &ArgMatches, signals: &Signals) -> Result<(), String> {
    let known = fs::read_to_string(key_file()).ok();
    let fresh = Request::of(options);
    let again = |_| borrow(&fresh, signals);
    match known {
        Some(key) => borrow(&fresh.under(key), signals).or_else(again),
        None => borrow(&fresh, signals),
    }
    .map_err(|_| "the pod has no GPU; the lines above say why".to_owned())
}

/// The socket belongs to this user and the pod's programs may be others; whoever sees the volume is of the pod.
fn open(served: &Path, socket: &Path) -> io::Result<()> {
    fs::set_permissions(served, Permissions::from_mode(0o666))?;
    fs::rename(served, socket)
}

/// What the pod's programs answer about the device before they use it.
fn write_profile(gpu_type: &str) {
    if let Ok(profile) = broker::ask(Method::Get, &format!("/v1/profile?type={gpu_type}")) {
        let _ = fs::write(folder().join(format!("profile-{gpu_type}.json")), profile.to_string());
    }
}

/// A pod's lease is meant to last as long as the pod: it is extended for as long as the team's rules allow.
fn extend() {
    let lease = ask(&json!({ "op": "lease" }));
    let left = crate::text::seconds_left(string(&lease, "/lease/expiresAt"), std::time::SystemTime::now());
    if left.is_some_and(|left| left < EXTEND_BELOW) {
        let answer = ask(&json!({ "op": "extend", "forSeconds": EXTEND_BY }));
        if let Some(problem) = problem(&answer) {
            eprintln!("sluice: the lease is not extended: {problem}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LOADER, glibc};
    use std::path::Path;

    #[test]
    fn an_image_is_judged_by_whether_its_loader_runs_a_program() {
        let missing = glibc(Path::new("/lib/ld-musl-nowhere.so.1"), Path::new("/bin/true"));
        assert!(missing.is_err_and(|why| why.contains("no glibc")));
        assert_eq!(glibc(Path::new(LOADER), Path::new("/bin/true")), Ok(()));
        let broken = glibc(Path::new(LOADER), Path::new("/no/such/program"));
        assert!(broken.is_err_and(|why| why.contains("does not serve") && why.contains("/no/such/program")));
    }
}
