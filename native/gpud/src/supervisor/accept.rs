//! Admits connections: a bounded number at a time, each with a limited time to say who it is.

use crate::supervisor::Supervisor;
use sluice_transport::{Listener, Stream};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Connections that may be between accept and welcome at once.
const HANDSHAKES: usize = 64;
/// A connection that has not said who it is by then is closed.
pub const HELLO_TIME: Duration = Duration::from_secs(10);

/// Serves the listener for ever.
pub fn serve(supervisor: &Arc<Supervisor>, listener: &Listener) -> ! {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let incoming = match listener.accept() {
            Ok(incoming) => incoming,
            Err(error) => {
                eprintln!("gpud: cannot accept a connection: {error}");
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if open.fetch_add(1, Ordering::AcqRel) >= HANDSHAKES {
            open.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (supervisor, counted) = (Arc::clone(supervisor), Arc::clone(&open));
        let started = std::thread::Builder::new().name("hello".to_owned()).spawn(move || {
            let outcome = incoming.open(HELLO_TIME).and_then(|stream| supervisor.greet(stream));
            counted.fetch_sub(1, Ordering::AcqRel);
            if let Err(error) = outcome {
                eprintln!("gpud: a connection was not admitted: {error}");
            }
        });
        if started.is_err() {
            open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// A descriptor for the worker: the socket itself, or one end of a pair behind which TLS goes on here.
pub fn descriptor(stream: Stream) -> io::Result<OwnedFd> {
    stream.set_timeout(None)?;
    let tls = match stream.into_fd() {
        Ok(socket) => return Ok(socket),
        Err(tls) => tls,
    };
    let (near, far) = UnixStream::pair()?;
    let (mut from_client, mut to_client) = tls.split()?;
    let (mut to_worker, mut from_worker) = (near.try_clone()?, near);
    std::thread::Builder::new().name("tls-in".to_owned()).spawn(move || {
        relay(&mut from_client, &mut to_worker);
        let _ = to_worker.shutdown(std::net::Shutdown::Both);
    })?;
    std::thread::Builder::new().name("tls-out".to_owned()).spawn(move || {
        relay(&mut from_worker, &mut to_client);
        to_client.shutdown();
    })?;
    Ok(far.into())
}

fn relay(from: &mut impl Read, to: &mut impl Write) {
    let mut buffer = vec![0; 256 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
            return;
        }
    }
}
