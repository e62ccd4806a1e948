//! A line on which nothing comes any more, and nobody says so, as when a host loses its power: it is found out, and
//! bridged like one that was cut.

use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, alloc, attach, fill, first_word, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::proxy::Proxy;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longer than it takes to find out. Where a silence is shorter, the system repeats what was lost.
const SILENT_FOR: Duration = Duration::from_secs(9);

#[test]
fn a_line_that_has_fallen_silent_is_given_up_for_another() {
    let mut gpud = Gpud::start("soft", &[]).expect("gpud");
    let proxy = Proxy::before(&mut gpud).expect("proxy");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    let function = start();
    attach();
    let (code, address) = alloc();
    assert_eq!(code, 0);
    fill(address, 0);
    assert_eq!((add(function, address, 128, 1), first_word(address)), (0, (0, 1)));
    let session = process::get().device(0).any_session().expect("attached");

    proxy.set_silent(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(SILENT_FOR);
            proxy.set_silent(false);
        });
        let began = Instant::now();
        assert_eq!((add(function, address, 128, 1), first_word(address)), (0, (0, 2)));
        assert!(began.elapsed() > SILENT_FOR / 2, "the line was not silent");
    });
    assert_eq!(session.connection.resumed.load(Ordering::Relaxed), 1, "the dead line was waited for");
    assert_eq!((add(function, address, 128, 1), first_word(address)), (0, (0, 3)));
    session.close();
}
