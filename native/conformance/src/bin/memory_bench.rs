//! `sluice-memory-bench`: what a gpud on the software GPU takes of its host's memory beyond what it lends, as one line of
//! JSON.
//!
//! A program fills what it has allocated, loads the kernels that nvcc and Numba made for the engine's tests, and
//! multiplies matrices; meanwhile gpud and its workers are looked at, and the most that they held counts.

use serde_json::{Value, json};
use sluice_client::dial::{Key, Ticket};
use sluice_client::session::Session;
use sluice_conformance::gpud::Gpud;
use sluice_protocol::messages::{Fill, Launch, ModuleLoad, StreamSynchronize};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const LENT: u64 = 256 * MIB;
/// Rows of the matrices.
const SIZE: u32 = 1024;
const ROUNDS: u32 = 10;
const STREAM: u64 = 1;

type Outcome<T> = Result<T, String>;

fn main() -> ExitCode {
    match measure() {
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

fn failed(error: sluice_client::error::CudaError) -> String {
    format!("{error:?}")
}

fn measure() -> Outcome<Value> {
    let gpud = Gpud::start("soft", &[])?;
    let idle = gpud.held_bytes();
    let key = Arc::new(Key::generate()?);
    let token = gpud.token(&key.public(), "lea-memory", 2 * LENT);
    let ticket = Ticket { address: gpud.address.parse()?, nearby: None, pin: None, token, key, several: false };
    let session = Session::open(ticket, 1, 0, "lea-memory".to_owned()).map_err(|error| error.to_string())?;
    let over = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Ordering::SeqCst) {
                most = most.max(gpud.held_bytes());
                std::thread::sleep(Duration::from_millis(10));
            }
            most
        });
        let worked = work(&session);
        let after = gpud.held_bytes();
        over.store(true, Ordering::SeqCst);
        let most = watch.join().map_err(|_| "nobody looked at the memory")?;
        worked.map(|()| most.max(after))
    })?;
    session.close();
    let beyond = most.checked_sub(LENT).ok_or_else(|| format!("{most} bytes, of which {LENT} are lent"))?;
    Ok(json!({ "gpud_mb": beyond as f64 / 1e6, "gpud_idle_mb": idle as f64 / 1e6 }))
}

fn work(session: &Session) -> Outcome<()> {
    let data = session.alloc(LENT, 0).map_err(failed)?;
    let fill = Fill { address: data, pattern: 0x3f80_0000, width: 4, count: LENT / 4, stream: STREAM };
    session.connection.post(&fill).map_err(failed)?;
    session.connection.call(&StreamSynchronize { stream: STREAM }).map_err(failed)?;
    let (module, function) = load(session)?;
    let matrix = 4 * u64::from(SIZE) * u64::from(SIZE);
    let addresses = [data, data + matrix, data + 2 * matrix].map(u64::to_le_bytes).concat();
    let parameters = [&addresses[..], &SIZE.to_le_bytes()].concat();
    let (grid, block) = ([SIZE / 16, SIZE / 16, 1], [16, 16, 1]);
    let (flags, shared_bytes, stream) = (0, 0, STREAM);
    let launch = Launch { module, function, grid, block, shared_bytes, flags, stream, parameters: &parameters };
    for _ in 0..ROUNDS {
        session.connection.post(&launch).map_err(failed)?;
    }
    session.connection.call(&StreamSynchronize { stream: STREAM }).map(drop).map_err(failed)
}

/// Loads every module; gives the number of the one with the product of matrices, and the kernel's in it.
fn load(session: &Session) -> Outcome<(u64, u32)> {
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is missing: npm run bench sets it")?;
    let folder = Path::new(&package).join("../softgpu/tests/ptx");
    let files = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?.flatten();
    let paths = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|kind| kind == "ptx"));
    let mut found = None;
    for (module, path) in (1..).zip(paths) {
        let image = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let hash = ring::digest::digest(&ring::digest::SHA256, &image);
        let hash = hash.as_ref().try_into().map_err(|_| "a hash of 32 bytes")?;
        let request = ModuleLoad { module, hash, heap: 8 * MIB, image: &image };
        let loaded = session.connection.call(&request).map_err(failed)?;
        if let Some(at) = loaded.info.functions.iter().position(|function| function.name == "matmul") {
            found = Some((module, at as u32));
        }
    }
    found.ok_or_else(|| format!("no matmul in {}", folder.display()))
}
