//! What a program sends is counted by function, and blocking calls by place.

use serde_json::{Value, json};
use sluice_client::generated::*;
use sluice_client::request::sluice_trace_hook;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, alloc, ask, attach, fill, first_word, start};
use sluice_conformance::gpud::Gpud;
use std::ffi::{CStr, c_char};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static PLACE: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn place(function: *const c_char, operation: *const c_char) -> u64 {
    // SAFETY: both texts end with NUL.
    let (function, operation) = unsafe { (CStr::from_ptr(function), CStr::from_ptr(operation)) };
    assert!(function.to_bytes().starts_with(b"cu") && !operation.is_empty(), "{function:?} {operation:?}");
    PLACE.load(Ordering::Relaxed)
}

fn found(trace: &Value, function: &str, site: u64) -> (u64, bool) {
    let calls = trace["calls"].as_array().expect("a list");
    let call = calls.iter().find(|call| call["function"] == function && call["site"] == site);
    let call = call.unwrap_or_else(|| panic!("no {function} at {site} in {trace}"));
    (call["count"].as_u64().expect("a number"), call["blocking"].as_bool().expect("a truth"))
}

#[test]
fn a_trace_counts_what_was_waited_for_and_where() {
    let gpud = Gpud::start("null", &[]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe {
        broker.set_environment();
        sluice_trace_hook(Some(place));
    }
    let function = start();
    attach();
    let (code, address) = alloc();
    assert_eq!(code, 0);
    fill(address, 0);
    assert_eq!(add(function, address, 128, 1), 0);

    assert_eq!(ask(&json!({ "op": "trace", "on": true }))["calls"], json!([]));
    for round in 1..=2u64 {
        PLACE.store(round, Ordering::Relaxed);
        (0..10).for_each(|_| assert_eq!(add(function, address, 128, 1), 0));
        assert_eq!(first_word(address), (0, 0));
        // SAFETY: no arguments.
        assert_eq!(unsafe { sluice_cuCtxSynchronize() }, 0);
    }
    let trace = ask(&json!({ "op": "trace", "on": false }));
    assert_eq!((&trace["blocking"], &trace["posted"], &trace["on"]), (&json!(4), &json!(20), &json!(false)), "{trace}");
    assert_eq!(found(&trace, "cuLaunchKernel", 0), (20, false));
    for round in 1..=2 {
        assert_eq!(found(&trace, "cuMemcpyDtoH_v2", round), (1, true));
        assert_eq!(found(&trace, "cuCtxSynchronize", round), (1, true));
    }

    // Switched off, nothing is counted.
    assert_eq!(first_word(address), (0, 0));
    assert_eq!(ask(&json!({ "op": "trace" }))["blocking"], json!(4));
}
