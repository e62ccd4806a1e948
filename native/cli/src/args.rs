//! What can be typed.

use clap::{Arg, ArgAction, Command};

/// The `sluice` command.
pub fn command() -> Command {
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the broker's answer as JSON");
    let run = Command::new("run")
        .about("Run a program with a GPU borrowed for as long as it runs")
        .arg(
            Arg::new("gpu")
                .long("gpu")
                .value_name("AMOUNT")
                .default_value("")
                .help("0.5 (of a GPU), 2 (GPUs) or 4G (GPU memory); nothing means the workspace's default"),
        )
        .arg(
            Arg::new("mem")
                .long("mem")
                .value_name("BYTES")
                .help("GPU memory, e.g. 4G: the compute follows it, unless --gpu names that"),
        )
        .arg(Arg::new("type").long("type").value_name("TYPE").help("GPU type, e.g. soft"))
        .arg(
            Arg::new("wait")
                .long("wait")
                .value_name("TIME")
                .default_value("2m")
                .value_parser(crate::text::parse_duration)
                .help("How long to wait in the queue; 0 = now or not at all"),
        )
        .arg(
            Arg::new("for")
                .long("for")
                .value_name("TIME")
                .value_parser(crate::text::parse_duration)
                .help("How long the GPU is wanted, e.g. 1h"),
        )
        .arg(
            Arg::new("guaranteed")
                .long("guaranteed")
                .action(ArgAction::SetTrue)
                .help("Inside the team's guaranteed quota only; never taken back"),
        )
        .arg(
            Arg::new("priority")
                .long("priority")
                .value_name("PRIORITY")
                .value_parser(["low", "normal", "high"])
                .help("The place among the team's requests: a higher one comes first"),
        )
        .arg(
            Arg::new("command")
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true)
                .value_parser(clap::value_parser!(std::ffi::OsString))
                .help("The program and its arguments"),
        );
    Command::new("sluice")
        .about("Borrow a slice of a pooled GPU")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run)
        .subcommand(Command::new("gpu").about("What this workspace has, what is free, the team's quota").arg(json()))
        .subcommand(Command::new("smi").about("The workspace's borrowed GPUs, one line each").arg(json()))
        .subcommand(pod())
}

/// What Sluice's own containers in a pod run; people do not.
fn pod() -> Command {
    let asking = |name: &'static str, about: &'static str| {
        let text = |name: &'static str| Arg::new(name).long(name).default_value("");
        Command::new(name)
            .about(about)
            .args(["gpu", "team"].map(text))
            .args(["type", "token"].map(|name| Arg::new(name).long(name).required(true)))
            .arg(
                Arg::new("wait")
                    .long("wait")
                    .required(true)
                    .value_parser(crate::text::parse_duration)
                    .value_name("TIME"),
            )
    };
    Command::new("pod")
        .about("What borrows for a Kubernetes pod")
        .hide(true)
        .subcommand_required(true)
        .subcommand(
            Command::new("check")
                .about("Whether this image can use a borrowed GPU")
                .arg(Arg::new("container").required(true)),
        )
        .subcommand(asking("wait", "Ask for the pod's GPU and wait for it"))
        .subcommand(asking("hold", "Have the pod's GPU until this is told to end"))
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn the_commands_are_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn what_follows_the_dashes_is_the_programs_own() {
        let matches = command()
            .try_get_matches_from(["sluice", "run", "--gpu", "0.5", "--", "python", "-c", "--gpu"])
            .expect("read");
        let run = matches.subcommand_matches("run").expect("run");
        let words: Vec<_> = run.get_many::<std::ffi::OsString>("command").expect("command").collect();
        assert_eq!(words, ["python", "-c", "--gpu"]);
    }

    #[test]
    fn a_slip_is_answered_with_what_was_meant() {
        let error = command().try_get_matches_from(["sluice", "runn"]).expect_err("no such command");
        assert!(error.to_string().contains("'run'"), "{error}");
        let error = command().try_get_matches_from(["sluice", "run", "--guarantee", "x"]).expect_err("no such flag");
        assert!(error.to_string().contains("--guaranteed"), "{error}");
        let error =
            command().try_get_matches_from(["sluice", "run", "--priority", "hihg", "x"]).expect_err("no such priority");
        assert!(error.to_string().contains("'high'"), "{error}");
    }
}
