//! Lost connections and lost leases, inside one process: the program goes on, or gets a clear error and goes on later.

use serde_json::json;
use sluice_client::connection::Notices;
use sluice_client::generated::*;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, alloc, ask, attach, fill, first_word, start, words};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::proxy::Proxy;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn cuts_go_unnoticed_and_a_lost_lease_is_named() {
    let mut gpud = Gpud::start("soft", &[]).expect("gpud");
    let proxy = Proxy::before(&mut gpud).expect("proxy");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };

    // Before anything is attached: set-up works, real work names the way out.
    let function = start();
    // SAFETY: takes no pointers.
    assert_eq!(unsafe { sluice_cuCtxSynchronize() }, 0);
    assert_eq!(alloc().0, 46);
    assert!(words(46).contains("%gpu attach"), "{}", words(46));
    assert!(ask(&json!({ "op": "message" }))["message"].as_str().is_some_and(|text| text.contains("%gpu attach")));

    // Attached: the module that was loaded before works; cuts lose nothing and repeat nothing.
    attach();
    let (code, old) = alloc();
    assert_eq!(code, 0);
    fill(old, 0);
    for round in 0..600 {
        assert_eq!(add(function, old, 128, 1), 0);
        if round % 150 == 75 {
            proxy.cut();
        }
        if round % 40 == 0 {
            assert_eq!(first_word(old), (0, round + 1));
        }
    }
    assert_eq!(first_word(old), (0, 600));
    let session = process::get().device(0).any_session().expect("attached");
    assert!(session.connection.resumed.load(std::sync::atomic::Ordering::Relaxed) >= 3);

    // The lease is lost: a clear error that does not stick, and freeing what was there succeeds.
    session.shared.lost("it was switched off");
    session.connection.die(sluice_client::error::CudaError::code(46));
    assert_eq!(add(function, old, 128, 1), 46);
    assert!(words(46).contains("switched off"), "{}", words(46));

    // A new generation: the same function handle works, the old address is refused by name, another range is used.
    attach();
    let (code, new) = alloc();
    assert_eq!(code, 0);
    assert_ne!(new, old);
    fill(new, 5);
    assert_eq!(add(function, new, 128, 2), 0);
    assert_eq!(first_word(new), (0, 7));
    assert_eq!(first_word(old).0, 1);
    assert!(words(1).contains("gone"), "{}", words(1));
    assert_eq!(add(function, old, 128, 1), 1);
    // SAFETY: freeing memory of an ended lease does nothing.
    unsafe {
        assert_eq!(sluice_cuMemFree_v2(old), 0);
        assert_eq!(sluice_cuMemFree_v2(new), 0);
        assert_eq!(sluice_cuCtxSynchronize(), 0);
    }
    process::get().device(0).any_session().expect("attached").close();
    std::thread::sleep(Duration::from_millis(50));
}
