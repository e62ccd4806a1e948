//! The programs through the shim, a real gpud and the software GPU.

use sluice_conformance::gpud::native_dir;
use sluice_conformance::programs::programs;
use std::process::Command;

#[test]
fn every_program_gets_cudas_answers() {
    through_loopback(&[]);
}

/// As in a workspace on the GPU server's own host.
#[test]
fn every_program_gets_cudas_answers_nearby() {
    through_loopback(&["--near"]);
}

fn through_loopback(options: &[&str]) {
    let mut failed = Vec::new();
    for (name, _) in programs() {
        let output = Command::new(sluice_testing::program("sluice-loopback"))
            .env("SLUICE_NATIVE_DIR", native_dir())
            .args(options)
            .args(["--memory", "268435456", "--"])
            .arg(sluice_testing::program("sluice-programs"))
            .args(["libcuda.so.1", name])
            .output()
            .expect("runs");
        if !output.status.success() {
            failed.push(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn what_a_kernel_prints_comes_before_what_the_program_prints_next() {
    let output = Command::new(sluice_testing::program("sluice-loopback"))
        .env("SLUICE_NATIVE_DIR", native_dir())
        .arg("--")
        .arg(sluice_testing::program("sluice-programs"))
        .args(["libcuda.so.1", "print"])
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("thread 0\nthread 1\nthread 2\nafter\n"), "{text}");
}
