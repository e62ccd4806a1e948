//! A workspace takes the socket of a gpud on its own host, when it is for the server of its lease.

use sluice_client::bulk::BULK_IN_BYTES;
use sluice_client::generated::*;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{ask, attach, start};
use sluice_conformance::gpud::Gpud;
use std::ffi::c_void;
use std::sync::Arc;

/// Whether this process shares memory with a gpud.
fn shares() -> bool {
    std::fs::read_to_string("/proc/self/maps").expect("Linux").contains("memfd:sluice-lane")
}

/// Copies more than a megabyte there and back, through the program's own functions.
fn copy() {
    let data: Vec<u8> = (0..BULK_IN_BYTES + 77).map(|index| (index * 31 + index / 4093) as u8).collect();
    let (mut address, mut back) = (0, vec![0; data.len()]);
    // SAFETY: live locals, and as much room as is copied.
    unsafe {
        assert_eq!(sluice_cuMemAlloc_v2(&raw mut address, data.len()), 0);
        assert_eq!(sluice_cuMemcpyHtoD_v2(address, data.as_ptr().cast::<c_void>(), data.len()), 0);
        assert_eq!(sluice_cuMemcpyDtoH_v2(back.as_mut_ptr().cast::<c_void>(), address, data.len()), 0);
        assert_eq!(sluice_cuMemFree_v2(address), 0);
    }
    assert!(data == back, "bytes changed on the way");
}

#[test]
fn programs_of_this_host_copy_through_shared_memory() {
    let sockets = std::env::temp_dir().join(format!("sluice-nearby-{}", std::process::id()));
    let gpud = Gpud::start("soft", &["--sockets", sockets.to_str().expect("UTF-8")]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe {
        broker.set_environment();
        std::env::set_var("SLUICE_GPUD_SOCKETS", &sockets);
    }
    start();
    attach();
    copy();
    assert!(shares(), "the copy went over TCP");
    assert!(ask(&serde_json::json!({ "op": "detach" }))["leaseId"].is_string());
    process::get().device(0).any_session().expect("a session").close();

    // The socket of another server is not for this lease.
    std::fs::rename(sockets.join("conformance.sock"), sockets.join("another.sock")).expect("renamed");
    attach();
    copy();
    assert!(!shares(), "a socket of another name was taken");
    process::get().device(0).any_session().expect("a session").close();
    std::fs::remove_dir_all(&sockets).expect("removed");
}
