//! The line to gpud is down for a while, and the broker is: the program goes on, and detaching can be tried again.

use serde_json::json;
use sluice_client::generated::{sluice_cuMemAlloc_v2, sluice_cuMemcpyDtoH_v2, sluice_cuMemcpyHtoD_v2};
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, alloc, ask, attach, fill, first_word, start};
use sluice_conformance::control::Control;
use sluice_conformance::gpud::Gpud;
use sluice_conformance::proxy::Proxy;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const DOWN_FOR: Duration = Duration::from_secs(5);

#[test]
fn a_program_outlasts_a_dead_line_and_a_broker_that_is_away() {
    let control = Arc::new(Control::start().expect("control"));
    let options = ["--listen", "tls://127.0.0.1:0"];
    let mut gpud = Gpud::start_with("soft", &options, Some(&control.url)).expect("gpud");
    let proxy = Proxy::before(&mut gpud).expect("proxy");
    let broker = Broker::start_with(Arc::new(gpud), 256 << 20, Some(control)).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    let function = start();
    attach();
    let (code, address) = alloc();
    assert_eq!(code, 0);
    fill(address, 0);

    // The line is dead for five seconds in the middle of a loop: every launch is executed, and once.
    let session = process::get().device(0).any_session().expect("attached");
    let mut launches = 0u32;
    std::thread::scope(|scope| {
        let outage = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            proxy.set_down(true);
            std::thread::sleep(DOWN_FOR);
            proxy.set_down(false);
        });
        let mut longest = Duration::ZERO;
        while !outage.is_finished() {
            assert_eq!(add(function, address, 128, 1), 0);
            launches += 1;
            if launches.is_multiple_of(16) {
                let asked = Instant::now();
                assert_eq!(first_word(address), (0, launches));
                longest = longest.max(asked.elapsed());
            }
        }
        assert!(longest > DOWN_FOR / 2, "the line was not down: the longest wait was {longest:?}");
    });
    assert_eq!(first_word(address), (0, launches));
    assert!(proxy.refused() > 0, "nobody tried again while the line was down");
    assert!(session.connection.resumed.load(Ordering::Relaxed) >= 1, "the session was not resumed");
    assert!(Arc::ptr_eq(&session, &process::get().device(0).any_session().expect("attached")));

    // The broker cannot take the lease back: the notebook keeps it and its memory, and can detach later.
    broker.set_away(true);
    let answer = ask(&json!({ "op": "detach" }));
    assert_eq!(answer["error"]["code"], "unavailable", "{answer}");
    assert_eq!(add(function, address, 128, 1), 0);
    assert_eq!(first_word(address), (0, launches + 1));
    broker.set_away(false);
    let answer = ask(&json!({ "op": "detach" }));
    assert!(answer["leaseId"].is_string(), "{answer}");
    assert_eq!(add(function, address, 128, 1), 46);
    let answer = ask(&json!({ "op": "detach" }));
    assert_eq!(answer["error"]["code"], "not-found", "{answer}");

    // Under the next lease the session goes on: the lanes of its first large copy, and a line that was down.
    attach();
    assert!(Arc::ptr_eq(&session, &process::get().device(0).any_session().expect("attached")));
    let data: Vec<u8> = (0..24usize << 20).map(|at| (at * 7 + at / 251) as u8).collect();
    let (mut large, mut back) = (0, vec![0u8; data.len()]);
    // SAFETY: live locals; memory of this size on both sides.
    unsafe {
        assert_eq!(sluice_cuMemAlloc_v2(&raw mut large, data.len()), 0);
        assert_eq!(sluice_cuMemcpyHtoD_v2(large, data.as_ptr().cast(), data.len()), 0);
        assert_eq!(sluice_cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), large, data.len()), 0);
    }
    assert!(back == data);
    let resumed = session.connection.resumed.load(Ordering::Relaxed);
    proxy.set_down(true);
    std::thread::sleep(Duration::from_secs(1));
    proxy.set_down(false);
    assert_eq!(first_word(address), (0, launches + 1));
    assert!(session.connection.resumed.load(Ordering::Relaxed) > resumed);
    ask(&json!({ "op": "detach" }));
    session.close();
}
