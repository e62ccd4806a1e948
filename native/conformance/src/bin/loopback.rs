//! `sluice-loopback [options] -- COMMAND…`: runs a command in the surroundings of a workspace: a gpud and a broker of its
//! own, our libraries first in the library path, and this program as the owner of the lease.
//!
//!     --backend soft|null|cuda    what gpud executes on (default: soft)
//!     --memory BYTES              of the lease (default: 4 GiB)
//!     --ceiling MILLI             thousandths of the device that the lease never gets more than (default: all of it)
//!     --gpud OPTION               one of gpud's own options, as --flag=value (repeatable)
//!     --round-trip MS             adds this much to every round trip on the way to gpud
//!     --near                      the command finds gpud's socket, as a workspace on its host does
//!     --no-attach                 the command begins without a lease
//!     --joined                    gpud hears when a lease is given back, and parks its memory
//!     --libraries FOLDER          the command finds these libraries before ours
//!     --as-driver                 the command may use our libraries as the driver of a gpud of its own, whose workers
//!                                 are another user where it runs as root
//!
//! With `--as-driver` two of these make a chain in which the cuda backend runs without a GPU: program, client, gpud on the
//! cuda backend, our libraries as its driver, gpud on the software GPU.

use sluice_client::{process, request};
use sluice_conformance::broker::Broker;
use sluice_conformance::control::Control;
use sluice_conformance::gpud::{Gpud, all_libraries, ends_with_us, link_libraries};
use sluice_conformance::proxy::Proxy;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    backend: String,
    memory: u64,
    ceiling: Option<u32>,
    gpud: Vec<String>,
    round_trip: Duration,
    near: bool,
    attach: bool,
    joined: bool,
    as_driver: bool,
    libraries: Option<String>,
    command: Vec<String>,
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        backend: "soft".to_owned(),
        memory: 4 << 30,
        ceiling: None,
        gpud: Vec::new(),
        round_trip: Duration::ZERO,
        near: false,
        attach: true,
        joined: false,
        as_driver: false,
        libraries: None,
        command: Vec::new(),
    };
    while let Some(argument) = arguments.next() {
        let (argument, inline) = match argument.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        let mut value = || inline.clone().or_else(|| arguments.next()).ok_or(format!("{argument} needs a value"));
        let number = |text: String| text.parse::<f64>().map_err(|_| format!("{text}: use a number"));
        match argument.as_str() {
            "--backend" => options.backend = value()?,
            "--memory" => options.memory = number(value()?)? as u64,
            "--ceiling" => options.ceiling = Some(number(value()?)? as u32),
            "--gpud" => options.gpud.push(value()?),
            "--round-trip" => options.round_trip = Duration::from_secs_f64(number(value()?)?.max(0.0) / 1000.0),
            "--near" => options.near = true,
            "--no-attach" => options.attach = false,
            "--joined" => options.joined = true,
            "--libraries" => options.libraries = Some(value()?),
            "--as-driver" => options.as_driver = true,
            "--" => break,
            other => return Err(format!("unknown option {other}")),
        }
    }
    options.command = arguments.collect();
    Ok(options)
}

fn run() -> Result<ExitCode, String> {
    let options = parse(std::env::args().skip(1))?;
    let (program, arguments) = options.command.split_first().ok_or("name a command after --")?;
    let words = |error: io::Error| error.to_string();
    let runtime = std::env::temp_dir().join(format!("sluice-loopback-{}", std::process::id()));
    std::fs::create_dir_all(&runtime).map_err(words)?;
    let sockets = options.near.then(|| format!("--sockets={}", runtime.display()));
    let given: Vec<&str> = options.gpud.iter().chain(&sockets).map(String::as_str).collect();
    let control = if options.joined { Some(Arc::new(Control::start().map_err(words)?)) } else { None };
    let pool = control.as_ref().map(|control| control.url.as_str());
    let mut gpud = Gpud::start_with(&options.backend, &given, pool)?;
    gpud.ceiling_milli = options.ceiling;
    let _line = if options.round_trip.is_zero() {
        None
    } else {
        let line = Proxy::with_round_trip(&gpud.address, options.round_trip).map_err(words)?;
        gpud.address.clone_from(&line.address);
        Some(line)
    };
    let gpud = Arc::new(gpud);
    let broker = Broker::start_with(Arc::clone(&gpud), options.memory, control).map_err(words)?;
    let profile = runtime.join(format!("profile-{}.json", gpud.gpu_type()));
    std::fs::write(profile, gpud.device["profile"].to_string()).map_err(words)?;
    // SAFETY: no other thread of this program reads the environment yet.
    unsafe {
        broker.set_environment();
        std::env::set_var("SLUICE_RUNTIME_DIR", &runtime);
        std::env::set_var("SLUICE_LIBRARY_DIR", &runtime);
        std::env::set_var("SLUICE_GPU_TYPE", gpud.gpu_type());
        if options.near {
            std::env::set_var("SLUICE_GPUD_SOCKETS", &runtime);
        }
    }
    let mut child = Command::new(program);
    child.args(arguments);
    ends_with_us(&mut child);
    if options.attach {
        let owner = serde_json::json!({ "kind": "process", "pid": std::process::id(), "startTime": 1 });
        let ready = request::answer(process::get(), &serde_json::json!({ "op": "init", "owner": owner }));
        let wish = serde_json::json!({
            "op": "attach", "requestId": "00000000-0000-4000-8000-000000000000", "amount": "0.5", "waitSeconds": 0,
        });
        let granted = request::answer(process::get(), &wish);
        if granted["state"] != "granted" {
            return Err(format!("attach failed: {granted}"));
        }
        let socket = ready["socket"].as_str().unwrap_or("");
        if options.as_driver {
            std::fs::set_permissions(socket, Permissions::from_mode(0o666)).map_err(words)?;
        }
        child.env("SLUICE_OWNER_SOCKET", socket);
    }
    if options.as_driver { copy_libraries(&runtime) } else { link_libraries(&runtime) }.map_err(words)?;
    let ours = runtime.display().to_string();
    let found = options.libraries.map_or(ours.clone(), |folder| format!("{folder}:{ours}"));
    child.env("LD_LIBRARY_PATH", found).env("SLUICE_LIBRARY_DIR", &runtime);
    let status = child.status().map_err(|error| format!("{program}: {error}"))?;
    let _ = std::fs::remove_dir_all(&runtime);
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Another user may not be allowed to enter the folder in which the libraries were built.
fn copy_libraries(folder: &Path) -> io::Result<()> {
    for (name, built) in all_libraries()? {
        std::fs::copy(built, folder.join(name))?;
    }
    std::fs::set_permissions(folder, Permissions::from_mode(0o755))
}
