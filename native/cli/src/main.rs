//! The `sluice` command.

mod args;
mod nvidia_smi;
mod pod;
mod run;
mod smi;
mod text;

use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::SystemTime;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|first| first == "nvidia-smi") {
        end_with_the_reader();
        return nvidia_smi::run(&words.collect::<Vec<_>>());
    }
    let matches = args::command().get_matches();
    if !matches!(matches.subcommand_name(), Some("run" | "pod")) {
        end_with_the_reader();
    }
    match matches.subcommand() {
        Some(("run", options)) => run::run(options),
        Some(("pod", options)) => pod::run(options),
        Some(("gpu", options)) => show(options.get_flag("json"), text::overview),
        Some(("smi", options)) => show(options.get_flag("json"), |status| smi::table(status, SystemTime::now())),
        _ => ExitCode::from(2),
    }
}

/// Ends the process without a message when the reader of its output leaves, as `head` does. `run` and `pod` go on: they
/// hold a lease.
fn end_with_the_reader() {
    // SAFETY: SIG_DFL installs no handler, and this process has no other thread yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Asks the client library.
fn ask(request: &Value) -> Value {
    sluice_client::request::answer(sluice_client::process::get(), request)
}

/// The sentence of an answer that is an error.
fn problem(answer: &Value) -> Option<String> {
    let error = answer.get("error")?;
    Some(match text::string(error, "/message") {
        "" => error.to_string(),
        message => message.to_owned(),
    })
}

fn show(as_json: bool, render: fn(&Value) -> String) -> ExitCode {
    let status = ask(&json!({"op": "status"}));
    if let Some(problem) = problem(&status) {
        eprintln!("sluice: {problem}");
        return ExitCode::FAILURE;
    }
    println!("{}", if as_json { status.to_string() } else { render(&status) });
    ExitCode::SUCCESS
}
