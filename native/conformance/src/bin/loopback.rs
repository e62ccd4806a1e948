//! `sluice-loopback [--backend soft] [--memory BYTES] -- COMMAND…`: runs a command in the surroundings of a workspace:
//! a gpud and a broker of its own, our libraries first in the library path, and this program as the owner of the lease.

use sluice_client::{process, request};
use sluice_conformance::broker::Broker;
use sluice_conformance::gpud::{Gpud, link_libraries};
use std::process::{Command, ExitCode};
use std::sync::Arc;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, String> {
    let mut arguments = std::env::args().skip(1);
    let (mut backend, mut memory, mut attach) = ("soft".to_owned(), 4u64 << 30, true);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--backend" => backend = arguments.next().ok_or("--backend needs a name")?,
            "--memory" => {
                memory = arguments.next().and_then(|text| text.parse().ok()).ok_or("--memory needs bytes")?;
            }
            "--no-attach" => attach = false,
            "--" => break,
            other => return Err(format!("unknown option {other}")),
        }
    }
    let program = arguments.next().ok_or("name a command after --")?;
    let gpud = Arc::new(Gpud::start(&backend, &[])?);
    let broker = Broker::start(Arc::clone(&gpud), memory).map_err(|error| error.to_string())?;
    let runtime = std::env::temp_dir().join(format!("sluice-loopback-{}", std::process::id()));
    std::fs::create_dir_all(&runtime).map_err(|error| error.to_string())?;
    // SAFETY: no other thread of this program reads the environment yet.
    unsafe {
        std::env::set_var("SLUICE_BROKER_URL", &broker.url);
        std::env::set_var("SLUICE_CREDENTIAL_FILE", &broker.credential_file);
        std::env::set_var("SLUICE_RUNTIME_DIR", &runtime);
    }
    let mut child = Command::new(program);
    child.args(arguments);
    if attach {
        let owner = serde_json::json!({ "kind": "process", "pid": std::process::id(), "startTime": 1 });
        let ready = request::answer(process::get(), &serde_json::json!({ "op": "init", "owner": owner }));
        let wish = serde_json::json!({
            "op": "attach", "requestId": "00000000-0000-4000-8000-000000000000", "amount": "0.5", "waitSeconds": 0,
        });
        let granted = request::answer(process::get(), &wish);
        if granted["state"] != "granted" {
            return Err(format!("attach failed: {granted}"));
        }
        child.env("SLUICE_OWNER_SOCKET", ready["socket"].as_str().unwrap_or(""));
    }
    link_libraries(&runtime).map_err(|error| error.to_string())?;
    child.env("LD_LIBRARY_PATH", &runtime);
    let status = child.status().map_err(|error| error.to_string())?;
    let _ = std::fs::remove_dir_all(&runtime);
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
