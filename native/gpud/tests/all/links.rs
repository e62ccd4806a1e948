//! Which real cards reach each other over NVLink, read from a stand-in for NVIDIA's library.

use crate::support::nvml_stand_in;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::process::{Command, Output};

fn links(library: impl AsRef<OsStr>, cards: &[&str]) -> Output {
    Command::new(sluice_testing::program("gpud")).arg("links").arg(library).args(cards).output().expect("ran")
}

#[test]
fn each_card_tells_which_ones_it_reaches_and_one_that_the_library_does_not_know_reaches_none() {
    let library = nvml_stand_in();
    let output = links(&library, &["GPU-counts", "GPU-elsewhere", "GPU-rates", "GPU-silent"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reached: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        reached,
        json!([
            [false, false, true, true],
            [false, false, false, false],
            [true, false, false, false],
            [false, false, false, false],
        ])
    );
    let _ = std::fs::remove_file(library);
}

#[test]
fn a_host_without_the_library_says_so() {
    let output = links("libnothing.so", &["GPU-1", "GPU-2"]);
    assert!(!output.status.success() && output.stdout.is_empty());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("libnothing.so"), "{text}");
}
