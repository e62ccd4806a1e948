//! `sluice run` in the surroundings of a workspace: exit codes and signals go through, the lease is the program's.

mod workspace;

use serde_json::json;
use sluice_conformance::gpud::link_libraries;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use workspace::Workspace;

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
    let said = String::from_utf8_lossy(&killed.stderr);
    assert!(said.contains("the program was ended by signal 9 (SIGKILL)"), "{said}");
    let missing = workspace.run("exec /no/such/program").wait_with_output().expect("ends");
    assert_eq!(missing.status.code(), Some(127));
}

#[test]
fn a_command_ends_quietly_when_the_reader_of_its_output_has_left() {
    let workspace = Workspace::new("reader");
    let sluice = sluice_testing::program("sluice");
    let shown = format!("(sleep 1; '{}' nvidia-smi -L; echo code=$? >&2) | true", sluice.display());
    let output = workspace.run(&shown).wait_with_output().expect("ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("code={}", 128 + libc::SIGPIPE)) && !said.contains("panicked"), "{said}");
}

#[test]
fn what_the_flags_say_reaches_the_broker() {
    let workspace = Workspace::new("flags");
    let flags = ["--gpu", "0.5", "--mem", "64M", "--type", "soft", "--for", "30m", "--priority", "low", "--wait", "0"];
    let output = workspace.start_asking(&flags, &["true"], &[]).wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let asked = workspace.broker.asked();
    let wanted = json!({
        "amount": "0.5", "memory": "64M", "gpuType": "soft", "forSeconds": 1800, "priority": "low", "waitSeconds": 0,
        "guaranteed": false,
    });
    for (field, value) in wanted.as_object().expect("fields") {
        assert_eq!(&asked[field], value, "{field} of {asked}");
    }
}

#[test]
fn nothing_is_borrowed_for_a_program_that_is_not_there() {
    let workspace = Workspace::new("missing");
    // Whoever asks now would wait.
    workspace.broker.set_full(true);
    let script = workspace.runtime.join("train.py");
    std::fs::write(&script, "#!/usr/bin/env python3\n").expect("written");
    let script = script.to_str().expect("a name in UTF-8");
    for (program, code, problem) in [
        ("no-such-program", 127, "there is no such program"),
        ("/no/such/program", 127, "there is no such program"),
        (script, 126, "nobody may execute it (see chmod +x)"),
    ] {
        let output = workspace.start_waiting("1m", &[program], &[]).wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(code));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(errors, format!("sluice: {program}: {problem}; no GPU was borrowed\n"));
    }
    assert_eq!(workspace.broker.waiting(), Vec::<String>::new());
}

#[test]
fn a_wait_goes_on_when_the_broker_was_away_meanwhile() {
    let workspace = Workspace::new("away");
    workspace.broker.set_full(true);
    let mut child = workspace.start_waiting("1m", &["true"], &[]);
    until("it waits", || workspace.broker.waiting().len() == 1);
    workspace.broker.set_away(true);
    // Longer than it takes to ask twice.
    std::thread::sleep(Duration::from_secs(3));
    assert!(child.try_wait().expect("its state").is_none(), "it has given up");
    workspace.broker.set_full(false);
    workspace.broker.set_away(false);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Attached 0.5 GPU"), "{output:?}");
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

/// Ends with 7 when CUDA does not work.
const ALLOCATES: &str = r#"
#include <cstdio>
int main() {
    void *memory;
    cudaError_t first = cudaMalloc(&memory, 4), second = cudaMalloc(&memory, 4);
    std::printf("%s %s\n", cudaGetErrorName(first), cudaGetErrorName(second));
    return second == cudaSuccess ? 0 : 7;
}
"#;

/// The program, built as nvcc builds by itself: NVIDIA's own runtime inside.
fn static_program(folder: &Path) -> PathBuf {
    let toolkit = sluice_testing::package_folder().join("../conformance/cuda/toolkit.py");
    let printed = Command::new("python3").arg(toolkit).output().expect("the toolkit").stdout;
    let nvcc = Path::new(String::from_utf8(printed).expect("a path").trim()).join("cu13/bin/nvcc");
    let (source, program) = (folder.join("allocates.cu"), folder.join("allocates"));
    std::fs::write(&source, ALLOCATES).expect("a file");
    let built = Command::new(nvcc).arg("--cudart=static").arg("-o").arg(&program).arg(source).output().expect("nvcc");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

#[test]
fn a_program_with_a_static_runtime_is_told_why_once_and_ends_as_it_would() {
    let workspace = Workspace::new("static");
    let program = static_program(&workspace.runtime);
    let libraries = workspace.runtime.join("lib");
    std::fs::create_dir_all(&libraries).expect("a folder");
    link_libraries(&libraries).expect("libraries are built");
    let told_once = |output: Output| {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(errors.matches("static CUDA runtime inside").count(), 1, "{errors}");
        assert!(errors.contains("allocates was built with") && errors.contains("--cudart=shared"), "{errors}");
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        errors.lines().filter(|line| line.starts_with("sluice:")).count()
    };
    // From a terminal of the workspace, where our libraries are found first.
    let mut bare = Command::new(&program);
    bare.env("LD_LIBRARY_PATH", &libraries).env("SLUICE_RUNTIME_DIR", &workspace.runtime);
    assert_eq!(told_once(bare.env_remove("SLUICE_OWNER_SOCKET").output().expect("runs")), 1);
    let lent = workspace.start(&[program.to_str().expect("UTF-8")], &[("SLUICE_LIBRARY_DIR", &libraries)]);
    assert_eq!(told_once(lent.wait_with_output().expect("ends")), 1);
}
