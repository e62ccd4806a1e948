//! `sluice-call-bench`: what one call costs over loopback, as one line of JSON. Starts a gpud with the null backend.

use serde_json::json;
use sluice_client::dial::{Key, Ticket};
use sluice_client::session::Session;
use sluice_conformance::gpud::Gpud;
use sluice_conformance::measure::{own_cpu_us, percentile};
use sluice_protocol::messages::{Empty, EmptyPosted};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let gpud = Gpud::start("null", &[])?;
    let key = Arc::new(Key::generate()?);
    let token = gpud.token(&key.public(), "lea-bench", 1 << 30);
    let ticket = Ticket { address: gpud.address.parse()?, nearby: None, pin: None, token, key, several: false };
    let session = Session::open(ticket, 1, 0, "lea-bench".into()).map_err(|error| error.to_string())?;
    let connection = &session.connection;
    let failed = |error: sluice_client::error::CudaError| format!("{error:?}");

    for _ in 0..2000 {
        connection.call(&Empty).map_err(failed)?;
    }
    let calls = 10_000;
    let (cpu, server) = (own_cpu_us(), gpud.cpu_us());
    let mut roundtrips = Vec::with_capacity(calls);
    for _ in 0..calls {
        let start = Instant::now();
        connection.call(&Empty).map_err(failed)?;
        roundtrips.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let call_cpu = (own_cpu_us() - cpu) / calls as f64;
    let call_server = (gpud.cpu_us() - server) as f64 / calls as f64;

    // Bursts: each ends with a call, which is answered when everything before was executed and acknowledged.
    let (bursts, length) = (500, 1000);
    let (cpu, server) = (own_cpu_us(), gpud.cpu_us());
    let (mut whole, mut posting) = (Vec::new(), Vec::new());
    for _ in 0..bursts {
        let start = Instant::now();
        for _ in 0..length {
            connection.post(&EmptyPosted).map_err(failed)?;
        }
        posting.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(length));
        connection.call(&Empty).map_err(failed)?;
        whole.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(length));
    }
    let posts = f64::from(bursts * length);
    let posted_cpu = (own_cpu_us() - cpu) / posts;
    let posted_server = (gpud.cpu_us() - server) as f64 / posts;

    // One posted call on an idle link: what it costs the caller.
    let mut single = Vec::new();
    for _ in 0..2000 {
        let start = Instant::now();
        connection.post(&EmptyPosted).map_err(failed)?;
        single.push(start.elapsed().as_secs_f64() * 1e6);
        connection.call(&Empty).map_err(failed)?;
    }
    session.close();
    let round = |value: f64| (value * 100.0).round() / 100.0;
    Ok(json!({
        "posted_p50_us": round(percentile(whole.clone(), 0.5)),
        "posted_p95_us": round(percentile(whole, 0.95)),
        "posted_client_p50_us": round(percentile(posting, 0.5)),
        "posted_single_p50_us": round(percentile(single, 0.5)),
        "roundtrip_p50_us": round(percentile(roundtrips.clone(), 0.5)),
        "roundtrip_p95_us": round(percentile(roundtrips, 0.95)),
        "posted_client_cpu_us": round(posted_cpu),
        "posted_gpud_cpu_us": round(posted_server),
        "roundtrip_client_cpu_us": round(call_cpu),
        "roundtrip_gpud_cpu_us": round(call_server),
    })
    .to_string())
}
