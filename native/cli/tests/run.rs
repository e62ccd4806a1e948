//! `sluice run` in the surroundings of a workspace: exit codes and signals go through, the lease is the program's.

use sluice_conformance::broker::Broker;
use sluice_conformance::gpud::Gpud;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A workspace with a broker and a gpud of its own.
struct Workspace {
    broker: Broker,
    runtime: std::path::PathBuf,
}

impl Workspace {
    fn new(name: &str) -> Self {
        let gpud = Arc::new(Gpud::start("soft", &[]).expect("gpud"));
        let broker = Broker::start(gpud, 256 << 20).expect("broker");
        let runtime = std::env::temp_dir().join(format!("sluice-run-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&runtime).expect("a folder");
        Self { broker, runtime }
    }

    fn run(&self, script: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(["run", "--gpu", "0.5", "--wait", "0", "--", "sh", "-c", script]);
        command.env("SLUICE_BROKER_URL", &self.broker.url).env("SLUICE_CREDENTIAL_FILE", &self.broker.credential_file);
        command.env("SLUICE_RUNTIME_DIR", &self.runtime).env_remove("SLUICE_OWNER_SOCKET");
        // A group of its own, as a shell makes it: what an orphaned group is told about stopping is ignored.
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs")
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.runtime);
    }
}

/// State letter of a process, as /proc has it.
fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('?')
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "not within 10 s: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(pid: u32, signal: i32) {
    // SAFETY: takes no pointers; the process is a child of this one that nobody has waited for.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

#[test]
fn the_exit_code_is_the_programs_and_it_finds_the_lease() {
    let workspace = Workspace::new("exit");
    let output = workspace.run("echo socket=$SLUICE_OWNER_SOCKET; exit 7").wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stdout).contains("socket=/"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Attached 0.5 GPU"), "{output:?}");
    let killed = workspace.run("kill -KILL $$").wait_with_output().expect("ends");
    assert_eq!(killed.status.code(), Some(137));
    let missing = workspace.run("exec /no/such/program").wait_with_output().expect("ends");
    assert_eq!(missing.status.code(), Some(127));
}

#[test]
fn signals_and_job_control_go_through() {
    let workspace = Workspace::new("signals");
    let script = "trap 'echo winch' WINCH; trap 'echo term; exit 3' TERM; echo $$; while :; do sleep 0.02; done";
    let mut child = workspace.run(script);
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = || {
        let mut text = String::new();
        lines.read_line(&mut text).expect("a line");
        text.trim().to_owned()
    };
    let program: u32 = line().parse().expect("a pid");
    send(child.id(), libc::SIGWINCH);
    assert_eq!(line(), "winch");
    send(child.id(), libc::SIGTSTP);
    until("both stop", || state(program) == 'T' && state(child.id()) == 'T');
    send(child.id(), libc::SIGCONT);
    until("both go on", || state(program) != 'T' && state(child.id()) != 'T');
    send(child.id(), libc::SIGTERM);
    assert_eq!(line(), "term");
    assert_eq!(child.wait().expect("ends").code(), Some(3));
    let mut errors = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
    assert!(!errors.contains("sluice:"), "{errors}");
}
