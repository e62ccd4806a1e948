//! `sluice-programs LIBCUDA [PROGRAM…]`: runs the programs, each in a process of its own; `sluice-programs --list` names
//! them.

use sluice_conformance::driver::Driver;
use sluice_conformance::programs::programs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// A program that takes longer hangs. Below a ceiling, a lease rests for each second in which its work waited on the
/// device; a program whose work waits takes seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs one program in a process of its own; what is wrong with its end.
fn run(library: &str, name: &str) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program).args([library, name]).spawn().map_err(|error| error.to_string())?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(status.to_string()),
            None if Instant::now() > deadline => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no end within {} s", PATIENCE.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((library, wanted)) = arguments.split_first() else {
        eprintln!("use: sluice-programs LIBCUDA [PROGRAM…]");
        return ExitCode::from(2);
    };
    if library == "--list" {
        programs().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    if let [one] = wanted
        && let Some((_, program)) = programs().find(|(name, _)| name == one)
    {
        match Driver::load(Path::new(library)) {
            Ok(driver) => program(&driver),
            Err(message) => {
                eprintln!("{message}");
                return ExitCode::FAILURE;
            }
        }
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, _) in programs().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|want| want == name)) {
        let outcome = run(library, name);
        match &outcome {
            Ok(()) => println!("{name}: ok"),
            Err(reason) => println!("{name}: FAILED ({reason})"),
        }
        failed += usize::from(outcome.is_err());
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
