//! `sluice-programs LIBCUDA [PROGRAM…]`: runs the programs, each in a process of its own.

use sluice_conformance::driver::Driver;
use sluice_conformance::programs::programs;
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((library, wanted)) = arguments.split_first() else {
        eprintln!("use: sluice-programs LIBCUDA [PROGRAM…]");
        return ExitCode::from(2);
    };
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
        let program = std::env::current_exe().unwrap_or_default();
        let ok = Command::new(program).args([library, *name]).status().is_ok_and(|status| status.success());
        println!("{name}: {}", if ok { "ok" } else { "FAILED" });
        failed += usize::from(!ok);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
