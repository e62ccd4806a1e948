//! The `gpud` program; what it does is in the library.

// Printing panics where nothing can be written; see `sluice_backend::log`.
#![deny(clippy::print_stderr, clippy::print_stdout)]

use sluice_backend::log;
use sluice_gpud::cli::{HELP, Invocation, parse};
use sluice_gpud::config::{Config, read_token};
use sluice_gpud::control::channel::run as run_channel;
use sluice_gpud::control::join::{join, stay};
use sluice_gpud::identity::Identity;
use sluice_gpud::supervisor::{Supervisor, accept, metering};
use sluice_gpud::{devices, links, listening, worker};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Counts what library calls of the software GPU take; see `sluice_softlibs`.
#[global_allocator]
static ALLOCATOR: sluice_backend::soft::Metered = sluice_backend::soft::Metered;

/// How long workers have to end when gpud stops.
const STOP_TIME: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let outcome = match parse(std::env::args().skip(1)) {
        Ok(Invocation::Help) => write!(io::stdout(), "{HELP}"),
        Ok(Invocation::Version) => writeln!(io::stdout(), "gpud {}", env!("CARGO_PKG_VERSION")),
        Ok(Invocation::Worker) => worker::main(),
        Ok(Invocation::Probe { driver }) => devices::probe(&driver),
        Ok(Invocation::Links { library, uuids }) => links::tell(&library, &uuids),
        Ok(Invocation::Meter { library, uuids }) => metering::tell(&library, &uuids),
        Ok(Invocation::Devices { config }) => devices::print(&config),
        Ok(Invocation::Run { config, token }) => run(*config, token),
        Err(message) => {
            log!("{message}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log!("gpud: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(config: Config, token: Option<String>) -> io::Result<()> {
    // Before any thread is made, so that every thread inherits the mask.
    let signals = block_signals();
    let mut identity = Identity::open(&config.state)?;
    let broker = config.broker.clone().or_else(|| identity.place().map(|place| place.broker.clone()));
    let token = match (token, identity.place()) {
        (Some(token), Some(place)) => {
            stay(place, broker.as_deref().unwrap_or_default(), &token, &config.state)?;
            None
        }
        (None, None) => config.account.as_deref().map(read_token).transpose().map_err(io::Error::other)?,
        (token, _) => token,
    };
    if broker.is_none() && config.trusted_keys.is_empty() {
        return Err(io::Error::other("name the broker: gpud join URL --token TOKEN"));
    }
    if broker.is_some() && token.is_none() && identity.place().is_none() {
        return Err(io::Error::other("not in a pool yet: run the `gpud join` line that the pool page shows"));
    }
    // A token is good for one try: what may fail on this host comes before it is spent.
    let (listener, reachable) = listening::open(&config, broker.as_deref())?;
    let offer = devices::offered(&config)?;
    if let (Some(broker), Some(token)) = (&broker, token) {
        let server_id = join(&mut identity, broker, &token, &config.name)?;
        log!("gpud: joined {broker} as {server_id}");
    }
    let supervisor = Supervisor::new(config, identity, offer)?;
    let ready = serde_json::json!({
        "ready": "gpud", "address": reachable.data_address, "tlsFingerprint": reachable.tls_fingerprint
    });
    // Clients are served all the same: the broker hears of the address over the control channel.
    if let Err(error) = writeln!(io::stdout(), "{ready}") {
        log!("gpud: the line that tells that it is ready cannot be written: {error}");
    }
    metering::start(&supervisor)?;
    if let Some(folder) = &supervisor.config.sockets {
        match listening::nearby(folder, &supervisor.server_id()) {
            Ok(nearby) => {
                let accepting = Arc::clone(&supervisor);
                let serve = move || accept::serve(&accepting, &nearby);
                std::thread::Builder::new().name("accept-near".to_owned()).spawn(serve)?;
            }
            Err(error) => log!("gpud: {error}. Until then, workspaces on this host take the address above."),
        }
    }
    let accepting = Arc::clone(&supervisor);
    let serve = move || accept::serve(&accepting, &listener);
    std::thread::Builder::new().name("accept".to_owned()).spawn(serve)?;
    if let Some(broker) = broker {
        let supervisor = Arc::clone(&supervisor);
        std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            let removed = run_channel(&supervisor, &broker, &reachable);
            let reason = removed.0.trim_end_matches('.');
            log!("gpud: {reason}. To lend this host's GPUs again, join with a new token.");
            supervisor.stop("The GPU server was removed from the pool.", STOP_TIME);
            if let Err(error) = Identity::forget(&supervisor.config.state) {
                log!("gpud: cannot delete this server's key: {error}");
            }
            std::process::exit(0);
        })?;
    }
    wait_for(&signals);
    supervisor.stop("The GPU server stops.", STOP_TIME);
    // The line's own thread sends the last reports.
    std::thread::sleep(Duration::from_millis(100));
    Ok(())
}

fn block_signals() -> libc::sigset_t {
    // SAFETY: the set is initialised by sigemptyset before any use; both signal numbers are valid.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    }
}

fn wait_for(signals: &libc::sigset_t) {
    let mut signal = 0;
    // SAFETY: a set that `block_signals` made, and a place for the number.
    while unsafe { libc::sigwait(signals, &mut signal) } != 0 {}
}
