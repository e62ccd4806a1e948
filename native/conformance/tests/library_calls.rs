//! The shims as programs call them: by C's calling convention, from a process of its own.

use sluice_conformance::gpud::native_dir;
use std::path::Path;
use std::process::Command;

/// Runs a program of `python/` on the software GPU.
fn run(program: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice-loopback"));
    command.env("SLUICE_NATIVE_DIR", native_dir()).args(["--memory", "268435456", "--", "python3"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(program));
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
