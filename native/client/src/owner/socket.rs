//! The owner's Unix socket: JSON lines, one question and one answer each. Only this user may open it.

use super::broker::failure;
use super::interrupt::Interrupts;
use crate::fork;
use crate::process::Process;
use serde_json::Value;
use sluice_transport::variables;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Names the owner's socket to its child processes.
const OWNER: &str = "SLUICE_OWNER_SOCKET";
/// A line longer than this is no question of ours.
const MAX_LINE: u64 = 64 << 10;
/// The owner may wait in the queue for the child's first use.
const ANSWER_WITHIN: Duration = Duration::from_secs(150);
/// How soon an asker notes an interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where the owner of this number serves.
pub fn path_of(pid: u32) -> PathBuf {
    let folder = variables::var("SLUICE_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    folder.join(format!("owner-{pid}.sock"))
}

/// The socket of the process whose lease this one uses: its parents have set the variable. Where the environment was
/// cleared on the way, the nearest parent that serves.
pub fn of_owner() -> Option<OsString> {
    std::env::var_os(OWNER).or_else(|| {
        let was_cleared = !variables::restored().is_empty();
        was_cleared.then(|| nearest(std::process::id(), |pid| serves(&path_of(pid)))).flatten()
    })
}

fn serves(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}

/// The first of a process's parents that serves.
fn nearest(pid: u32, serves: impl Fn(u32) -> bool) -> Option<OsString> {
    std::iter::successors(parent(pid), |pid| parent(*pid))
        .find(|pid| serves(*pid))
        .map(|pid| path_of(pid).into_os_string())
}

/// Field 4 of /proc/PID/stat.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let parent = stat.rsplit(") ").next()?.split_whitespace().nth(1)?.parse().ok()?;
    (parent > 0).then_some(parent)
}

/// Starts to serve; returns the socket's path.
pub fn serve(process: &'static Process) -> Result<String, Value> {
    let path = path_of(std::process::id());
    let broken = |error: io::Error| failure("internal", format!("{}: {error}", path.display()));
    // A process of this number that is gone may have left its own.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).map_err(broken)?;
    // It stays open as long as this process lives: nothing unregisters it.
    fork::register(listener.as_raw_fd());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(broken)?;
    std::thread::Builder::new()
        .name("sluice-owner".into())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                let answer = move || {
                    let _ = answer_lines(process, stream);
                };
                // Without a thread for it the question goes unanswered; the asker sees the end of the stream.
                let _ = std::thread::Builder::new().name("sluice-child".into()).spawn(answer);
            }
        })
        .map_err(broken)?;
    Ok(path.display().to_string())
}

fn answer_lines(process: &'static Process, stream: UnixStream) -> io::Result<()> {
    let mut reader = BufReader::new(io::Read::take(stream.try_clone()?, MAX_LINE));
    let mut writer = stream.try_clone()?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let answer = match serde_json::from_str::<Value>(&line) {
            Ok(request) => crate::request::answer_to(process, &request, &|| is_open(&stream)),
            Err(error) => serde_json::json!({ "error": failure("invalid", error.to_string()) }),
        };
        writeln!(writer, "{answer}")?;
        line.clear();
        reader.get_mut().set_limit(MAX_LINE);
    }
    Ok(())
}

/// Whether the other side may still ask or wait for an answer.
fn is_open(stream: &UnixStream) -> bool {
    let mut byte = 0u8;
    // SAFETY: a live local of one byte.
    let read =
        unsafe { libc::recv(stream.as_raw_fd(), (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT) };
    read > 0 || (read < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock)
}

/// Asks an owner. An interrupt ends the wait for the answer.
pub fn ask(path: &OsStr, request: &Value) -> io::Result<Value> {
    ask_within(path, request, ANSWER_WITHIN)
}

/// As [`ask`], for an answer that is worth waiting for so long.
pub fn ask_within(path: &OsStr, request: &Value, patience: Duration) -> io::Result<Value> {
    let interrupts = Interrupts::noted();
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    writeln!(stream, "{request}")?;
    let (asked, mut line, mut reader) = (Instant::now(), Vec::new(), BufReader::new(stream));
    while let Err(error) = reader.read_until(b'\n', &mut line) {
        if interrupts.came() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if error.kind() != io::ErrorKind::WouldBlock || asked.elapsed() > patience {
            return Err(error);
        }
    }
    serde_json::from_slice(&line).map_err(io::Error::other)
}

/// `variables`: what a process whose environment was cleared has to set, for itself and its children.
pub fn restored_variables() -> Value {
    let mut found = serde_json::json!(variables::restored());
    if let Some(path) = of_owner().filter(|_| !variables::restored().is_empty()) {
        found[OWNER] = Value::from(path.to_string_lossy());
    }
    serde_json::json!({ "variables": found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_parent_that_serves_is_the_owner() {
        let own = std::process::id();
        let above = parent(own).expect("a parent");
        assert_eq!(nearest(own, |pid| pid == above), Some(path_of(above).into_os_string()));
        assert_eq!(nearest(own, |pid| pid == own), None, "a process is not its own parent");
        assert_eq!(nearest(own, |_| false), None);
        assert_eq!(parent(0), None);
    }
}
