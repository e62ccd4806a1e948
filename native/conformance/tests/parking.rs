//! Where the next lease is asked for when memory is parked, or could not be.

use serde_json::json;
use sluice_client::driver::abi::{AllocationProperties, Location};
use sluice_client::generated::*;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{ask, attach, start};
use sluice_conformance::control::Control;
use sluice_conformance::gpud::Gpud;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// Physical memory of the program's own, as JAX and PyTorch's expandable segments take it.
fn physical(bytes: u64) -> u64 {
    physical_on(0, bytes)
}

fn physical_on(device: i32, bytes: u64) -> u64 {
    let location = Location { kind: 1, id: device };
    let properties =
        AllocationProperties { kind: 1, handle_types: 0, location, windows: std::ptr::null_mut(), flags: [0; 8] };
    let mut handle = 0;
    // SAFETY: live locals.
    assert_eq!(unsafe { sluice_cuMemCreate(&raw mut handle, bytes as usize, &raw const properties, 0) }, 0);
    handle
}

#[test]
fn the_next_lease_is_asked_for_where_memory_is_parked_and_nowhere_when_none_is() {
    let control = Arc::new(Control::start().expect("control"));
    let gpud =
        Gpud::start_with("soft", &["--park-limit", "4M", "--soft-devices", "2"], Some(&control.url)).expect("gpud");
    let broker = Broker::start_with(Arc::new(gpud), 64 << 20, Some(control)).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    start();
    attach();
    assert_eq!(broker.pinned(), None, "nothing is parked yet");
    let first = physical(2 * MIB);
    assert_eq!(ask(&json!({ "op": "status" }))["usedBytes"], 2 * MIB);
    let kept = ask(&json!({ "op": "detach" }));
    assert_eq!((kept["parkedBytes"].as_u64(), kept["lostBytes"].as_u64()), (Some(2 * MIB), None), "{kept}");
    attach();
    assert_eq!(broker.pinned().as_deref(), Some("gpu-1"));

    // More than the host may keep.
    let second = physical(8 * MIB);
    let lost = ask(&json!({ "op": "detach" }));
    assert_eq!((lost["parkedBytes"].as_u64(), lost["lostBytes"].as_u64()), (Some(0), Some(10 * MIB)), "{lost}");
    attach();
    assert_eq!(broker.pinned(), None, "it is nowhere");
    for handle in [first, second] {
        // SAFETY: handles of a generation that has ended.
        assert_eq!(unsafe { sluice_cuMemRelease(handle) }, 0);
    }
    ask(&json!({ "op": "detach" }));

    // Of two GPUs, one keeps what it has; the other has more than is left of the room.
    let answer = ask(&json!({
        "op": "attach", "requestId": "00000000-0000-4000-8000-000000000000", "amount": "2", "waitSeconds": 0,
    }));
    assert_eq!(answer["state"], "granted", "{answer}");
    let (small, large) = (physical_on(0, 2 * MIB), physical_on(1, 8 * MIB));
    let part = ask(&json!({ "op": "detach" }));
    assert_eq!((part["parkedBytes"].as_u64(), part["lostBytes"].as_u64()), (Some(2 * MIB), Some(8 * MIB)), "{part}");
    attach();
    assert_eq!(broker.pinned().as_deref(), Some("gpu-1"), "where the first is");
    assert_eq!(ask(&json!({ "op": "status" }))["usedBytes"], 2 * MIB);
    for handle in [small, large] {
        // SAFETY: handles of this process, one of a generation that has ended.
        assert_eq!(unsafe { sluice_cuMemRelease(handle) }, 0);
    }
    process::get().device(0).any_session().expect("attached").close();
}
