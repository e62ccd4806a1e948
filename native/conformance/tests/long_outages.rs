//! The line to gpud is cut for almost as long as a session waits for its client, and for longer.
//!
//! A session waits for three seconds here, and for `SLUICE_RETURN_SECONDS` where that is set: `npm run soak -- outages`
//! plays the thirty seconds that it has.

use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, alloc, attach, fill, first_word, start, words};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::proxy::Proxy;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// CUDA_ERROR_DEVICE_UNAVAILABLE
const UNAVAILABLE: u32 = 46;

#[test]
fn an_outage_is_bridged_up_to_the_limit_and_named_beyond_it() {
    let seconds = std::env::var("SLUICE_RETURN_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3u64);
    let limit = Duration::from_secs(seconds);
    let mut gpud = Gpud::start("soft", &[&format!("--return-time={seconds}")]).expect("gpud");
    let proxy = Proxy::before(&mut gpud).expect("proxy");
    let gpud = Arc::new(gpud);
    let broker = Broker::start(Arc::clone(&gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    let serving = || gpud.workers().into_iter().filter(|pid| gpud.serves(*pid)).count();
    let function = start();
    attach();
    let (code, address) = alloc();
    assert_eq!(code, 0);
    fill(address, 0);
    assert_eq!((add(function, address, 128, 1), first_word(address)), (0, (0, 1)));
    let session = process::get().device(0).any_session().expect("attached");
    // While the line is down for so long, a launch and its result: the answer, and how long it took.
    let during = |time: Duration| {
        proxy.set_down(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(time);
                proxy.set_down(false);
            });
            let began = Instant::now();
            let launched = add(function, address, 128, 1);
            (launched, first_word(address), began.elapsed())
        })
    };

    // Five sixths of it: unnoticed but for the wait.
    let (launched, result, waited) = during(limit * 5 / 6);
    assert_eq!((launched, result), (0, (0, 2)));
    assert!(waited > limit / 2, "the line was not down: the wait was {waited:?}");
    assert_eq!(session.connection.resumed.load(Ordering::Relaxed), 1);
    assert_eq!(serving(), 1);

    // Longer: an error that says why, about when the limit is over, and gpud keeps nothing.
    let (_, (code, _), waited) = during(limit + Duration::from_secs(4));
    assert_eq!(code, UNAVAILABLE);
    let said = words(code);
    let cut =
        said.strip_prefix("The connection to your GPU was lost (cut for ").and_then(|rest| rest.split_once(" s; "));
    let cut: u64 = cut.and_then(|(number, _)| number.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    assert!((seconds..=seconds + 2).contains(&cut), "{said}");
    assert!(said.contains("Run %gpu attach 0.5 to borrow again."), "{said}");
    assert!(limit <= waited && waited < limit + Duration::from_secs(4), "the error came after {waited:?}");
    let until = Instant::now() + Duration::from_secs(5);
    while serving() > 0 {
        assert!(Instant::now() < until, "gpud keeps the session");
        std::thread::sleep(Duration::from_millis(10));
    }

    // The same program goes on with another lease.
    assert_eq!(alloc().0, UNAVAILABLE);
    attach();
    let (code, address) = alloc();
    assert_eq!(code, 0);
    fill(address, 5);
    assert_eq!((add(function, address, 128, 1), first_word(address)), (0, (0, 6)));
    process::get().device(0).any_session().expect("attached").close();
}
