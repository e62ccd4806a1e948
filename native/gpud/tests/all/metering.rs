//! How busy real cards' multiprocessors are, read from a stand-in for NVIDIA's library.

use crate::support::nvml_stand_in;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

#[test]
fn a_card_that_counts_is_read_one_that_does_not_is_estimated_and_others_are_unknown() {
    let library = nvml_stand_in();
    let cards = ["GPU-counts", "GPU-rates", "GPU-silent", "GPU-elsewhere"];
    let mut meter = Command::new(sluice_testing::program("gpud"))
        .arg("meter")
        .arg(&library)
        .args(cards)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let lines = BufReader::new(meter.stdout.take().expect("piped")).lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(&line.expect("a line")).expect("JSON"));
    let weights = std::cell::RefCell::new(Vec::new());
    let mut lines = lines.filter(|line| {
        let memory = !line["processes"].is_null();
        if memory {
            weights.borrow_mut().push(line.clone());
        }
        !memory
    });
    let mut round = || -> Vec<Value> {
        let read: Vec<Value> = lines.by_ref().take(cards.len()).collect();
        assert!(read.iter().map(|line| line["uuid"].as_str()).eq(cards.map(Some)), "{read:?}");
        read
    };
    assert!(round().iter().all(|line| line["activeNs"].is_null()), "it begins");
    let began = Instant::now();
    let (mut counted, mut estimated) = (0, 0);
    for _ in 0..3 {
        let read = round();
        counted += read[0]["activeNs"].as_u64().expect("known");
        estimated += read[1]["activeNs"].as_u64().expect("known");
        assert_eq!((&read[0]["estimated"], &read[1]["estimated"]), (&Value::Bool(false), &Value::Bool(true)));
        assert!(read[2]["activeNs"].is_null() && read[3]["activeNs"].is_null(), "{read:?}");
    }
    let passed = began.elapsed().as_nanos() as f64;
    for (told, part) in [(counted, 0.375), (estimated, 0.8)] {
        let found = told as f64 / passed;
        assert!((found - part).abs() < 0.1 * part, "{found} of the time, not {part}");
    }
    let weights = weights.into_inner();
    let of = |card: &str| weights.iter().filter(|line| line["uuid"] == card).collect::<Vec<_>>();
    let expected = serde_json::json!([[11, 600 << 20], [12, 1 << 30]]);
    assert!(
        of("GPU-counts").len() >= 10 && of("GPU-counts").iter().all(|line| line["processes"] == expected),
        "{weights:?}"
    );
    assert!(of("GPU-rates").iter().all(|line| line["processes"] == serde_json::json!([])), "memory that is not told");
    assert!(of("GPU-silent").is_empty() && of("GPU-elsewhere").is_empty());
    let _ = meter.kill();
    let _ = meter.wait();
    let _ = std::fs::remove_file(library);
}

#[test]
fn a_host_without_the_library_says_so() {
    let output = Command::new(sluice_testing::program("gpud")).args(["meter", "libnothing.so", "GPU-1"]).output();
    let output = output.expect("ran");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("libnothing.so"), "{text}");
}
