//! The shims as programs call them: by C's calling convention, from a process of its own.

use sluice_conformance::gpud::native_dir;
use std::process::Command;

/// Runs a program of `python/` on the software GPU.
fn run(program: &str) {
    run_with(&["--memory", "268435456"], program, &[]);
}

fn run_with(options: &[&str], program: &str, arguments: &[&str]) {
    let mut command = Command::new(sluice_testing::program("sluice-loopback"));
    command.env("SLUICE_NATIVE_DIR", native_dir()).args(options).args(["--", "python3"]);
    command.arg(sluice_testing::package_folder().join("python").join(program)).args(arguments);
    let output = command.output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.ends_with(b"ok\n"), "{text}");
}

#[test]
fn a_python_program_calls_the_libraries_by_their_sonames() {
    run("libraries.py");
}

#[test]
fn captured_calls_run_at_each_launch_of_their_graph() {
    run("library_graphs.py");
}

#[test]
fn communicators_of_one_process_reach_the_worker_of_each_device() {
    let file = std::env::temp_dir().join(format!("sluice-nccl-{}.jsonl", std::process::id()));
    let file = file.display().to_string();
    let recording = format!("--gpud=--recording={file}");
    let options = ["--backend", "null", "--gpud=--soft-devices=2", &recording, "--no-attach"];
    run_with(&options, "nccl_devices.py", &[&file]);
    let _ = std::fs::remove_file(&file);
}
