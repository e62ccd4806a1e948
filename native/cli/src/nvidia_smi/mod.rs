//! `nvidia-smi` in a workspace, with NVIDIA's options, layout and exit codes. It reports the lease and not the card.
//! Outside of a workspace the machine's own `nvidia-smi` runs.

mod gpu;
mod query;
mod report;
mod table;
mod topology;

use crate::{ask, problem, smi};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use gpu::{Gpu, GpuProcess, gpus};
use serde_json::{Value, json};
use sluice_client::variables;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// The exit codes that NVIDIA documents ("Return value" of its manual page).
const INVALID_ARGUMENT: u8 = 2;
const NO_PERMISSION: u8 = 4;
const NOT_FOUND: u8 = 6;
const DRIVER_NOT_LOADED: u8 = 9;

/// Options that change a card. A lease has no right to that.
const SETTINGS: [&str; 30] = [
    "-pm",
    "--persistence-mode",
    "-e",
    "--ecc-config",
    "-p",
    "--reset-ecc-errors",
    "-c",
    "--compute-mode",
    "--gom",
    "-r",
    "--gpu-reset",
    "-vm",
    "--virt-mode",
    "-lgc",
    "--lock-gpu-clocks",
    "-rgc",
    "--reset-gpu-clocks",
    "-lmc",
    "--lock-memory-clocks",
    "-rmc",
    "--reset-memory-clocks",
    "-ac",
    "--applications-clocks",
    "-rac",
    "--reset-applications-clocks",
    "-pl",
    "--power-limit",
    "-am",
    "--accounting-mode",
    "-mig",
];

/// A refusal: the exit code, and the sentences for stdout (NVIDIA's, which scripts look for) and stderr.
struct Refusal {
    code: u8,
    out: &'static str,
    error: String,
}

impl Refusal {
    fn invalid(error: String) -> Refusal {
        Refusal { code: INVALID_ARGUMENT, out: "", error }
    }

    fn end(self) -> ExitCode {
        if !self.out.is_empty() {
            println!("{}", self.out);
        }
        if !self.error.is_empty() {
            eprintln!("{}", self.error);
        }
        ExitCode::from(self.code)
    }
}

/// The options.
fn command() -> Command {
    let text = |name: &'static str| Arg::new(name).long(name);
    let list = |name: &'static str| text(name).value_delimiter(',');
    let flag = |name: &'static str| text(name).action(ArgAction::SetTrue);
    let topology = Command::new("topo")
        .about("How the GPUs reach each other")
        .arg(flag("matrix").short('m').required(true).help("As a matrix"));
    Command::new("nvidia-smi")
        .about("The borrowed GPUs, as NVIDIA's nvidia-smi shows GPUs")
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .arg(flag("list-gpus").short('L').help("One line for each GPU, with its UUID"))
        .arg(flag("query").short('q').help("Everything about each GPU"))
        .arg(list("display").short('d').value_name("SECTIONS").requires("query").help(report::SECTIONS.join(", ")))
        .arg(list("query-gpu").value_name("FIELDS").requires("format").help("Fields of each GPU"))
        .arg(
            list("query-compute-apps")
                .value_name("FIELDS")
                .requires("format")
                .help("Fields of each process that uses a GPU"),
        )
        .arg(list("format").help("csv[,noheader][,nounits], for fields"))
        .arg(flag("version").help("The versions of driver and CUDA"))
        .group(ArgGroup::new("report").args(["list-gpus", "query", "query-gpu", "query-compute-apps", "version"]))
        .arg(list("id").short('i').value_name("GPUS").help("These GPUs alone, by index, UUID or PCI bus id"))
        .arg(
            text("filename")
                .short('f')
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Write there"),
        )
        .arg(
            text("loop")
                .short('l')
                .value_name("SECONDS")
                .num_args(0..=1)
                .default_missing_value("5")
                .value_parser(clap::value_parser!(u64).range(1..))
                .conflicts_with("loop-ms")
                .help("Repeat until Ctrl-C"),
        )
        .arg(
            text("loop-ms")
                .value_name("MILLISECONDS")
                .value_parser(clap::value_parser!(u64).range(1..))
                .help("Repeat after a shorter pause; also -lms"),
        )
        .subcommand(topology)
}

/// Parses the arguments.
fn parse(arguments: &[OsString]) -> Result<ArgMatches, Refusal> {
    let mut words = vec![OsString::from("nvidia-smi")];
    for argument in arguments {
        let text = argument.to_string_lossy();
        let option = text.split('=').next().unwrap_or_default();
        if SETTINGS.contains(&option) {
            let error = format!("{option}: Insufficient Permissions. Settings of a GPU belong to its server.");
            return Err(Refusal { code: NO_PERMISSION, out: "", error });
        }
        // One letter is all that short options have elsewhere.
        words.push(match text.strip_prefix("-lms") {
            Some(rest) => OsString::from(format!("--loop-ms{rest}")),
            None => argument.clone(),
        });
    }
    command().try_get_matches_from(words).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp => {
            let _ = error.print();
            Refusal { code: 0, out: "", error: String::new() }
        }
        _ => {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Refusal {
                code: INVALID_ARGUMENT,
                out: "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.",
                error: format!("nvidia-smi: {reason}"),
            }
        }
    })
}

/// Runs it.
pub fn run(arguments: &[OsString]) -> ExitCode {
    if variables::var("SLUICE_BROKER_URL").is_none() {
        return elsewhere(arguments);
    }
    match parse(arguments).and_then(|options| show(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => refusal.end(),
    }
}

/// Prints what is asked for, once or in a loop.
fn show(options: &ArgMatches) -> Result<(), Refusal> {
    let number = |name: &str| options.get_one::<u64>(name).copied();
    let pause = number("loop").map(Duration::from_secs).or(number("loop-ms").map(Duration::from_millis));
    let mut out: Box<dyn Write> = match options.get_one::<PathBuf>("filename") {
        None => Box::new(std::io::stdout()),
        Some(path) => {
            let file = std::fs::File::create(path);
            Box::new(file.map_err(|error| Refusal::invalid(format!("{}: {error}", path.display())))?)
        }
    };
    let mut is_first = true;
    loop {
        let text = text(options, is_first)?;
        writeln!(out, "{text}").map_err(|error| Refusal { code: u8::MAX, out: "", error: error.to_string() })?;
        let Some(pause) = pause else { return Ok(()) };
        is_first = false;
        std::thread::sleep(pause);
    }
}

/// The words of a list option.
fn words(options: &ArgMatches, name: &str) -> Option<Vec<String>> {
    options.get_many::<String>(name).map(|words| words.cloned().collect())
}

/// One report; headings of columns only `with_heading`.
fn text(options: &ArgMatches, with_heading: bool) -> Result<String, Refusal> {
    let sections = report::sections(&words(options, "display").unwrap_or_default()).map_err(Refusal::invalid)?;
    let view = ask(&json!({"op": "devices"}));
    if options.get_flag("version") {
        return Ok(versions(gpus(&view).first().unwrap_or(&Gpu::default())));
    }
    let notes = notes(&view)?;
    let mut gpus = gpus(&view);
    if let Some(ids) = words(options, "id") {
        gpus.retain(|gpu| ids.iter().any(|id| gpu.is_called(id)));
        if gpus.is_empty() {
            return Err(Refusal { code: NOT_FOUND, out: "No devices were found", error: String::new() });
        }
    }
    let mut format = words(options, "format").unwrap_or_default();
    if !with_heading {
        format.push("noheader".to_owned());
    }
    if options.get_flag("list-gpus") {
        let line = |gpu: &Gpu| format!("GPU {}: {} (UUID: {})", gpu.index, gpu.name, gpu.uuid);
        Ok(gpus.iter().map(line).collect::<Vec<_>>().join("\n"))
    } else if let Some(fields) = words(options, "query-gpu") {
        query::csv(&fields, &format, &gpus, &Gpu::default(), query::gpu_field).map_err(Refusal::invalid)
    } else if let Some(fields) = words(options, "query-compute-apps") {
        let no_process = GpuProcess { pid: 0, used_mib: 0, name: String::new() };
        let row = |gpu: &Gpu| gpu.processes.iter().map(|process| (gpu.clone(), process.clone())).collect::<Vec<_>>();
        let rows: Vec<_> = gpus.iter().flat_map(row).collect();
        query::csv(&fields, &format, &rows, &(Gpu::default(), no_process), query::process_field)
            .map_err(Refusal::invalid)
    } else if options.get_flag("query") {
        Ok(report::report(&gpus, &sections))
    } else if options.subcommand_name() == Some("topo") {
        Ok(topology::matrix(&gpus))
    } else {
        let lease = table::lease_lines(&view["lease"], &gpus, SystemTime::now());
        Ok(table::table(&gpus, if notes.is_empty() { &lease } else { &notes }))
    }
}

/// Without a lease: the refusal, or what to say below the GPU that the first GPU work attaches by itself.
fn notes(view: &Value) -> Result<Vec<String>, Refusal> {
    if view["lease"].is_object() {
        return Ok(Vec::new());
    }
    let status = ask(&json!({"op": "status"}));
    if let Some(problem) = problem(&status) {
        return Err(Refusal { code: DRIVER_NOT_LOADED, out: "", error: format!("nvidia-smi: {problem}") });
    }
    let error = smi::none_attached(&status);
    match status["workspace"]["gpuPolicy"].as_str() {
        Some("first-use") => Ok(vec![error]),
        _ => Err(Refusal { code: NOT_FOUND, out: "No devices were found", error }),
    }
}

fn versions(gpu: &Gpu) -> String {
    let rows = [
        ("NVIDIA-SMI version", &gpu.driver),
        ("NVML version", &gpu.driver),
        ("DRIVER version", &gpu.driver),
        ("CUDA Version", &gpu.cuda),
    ];
    rows.map(|(key, value)| format!("{key:<20}: {value}")).join("\n")
}

/// Becomes the next `nvidia-smi` on the path that is not ours.
fn elsewhere(arguments: &[OsString]) -> ExitCode {
    let own = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).filter(|folder| Some(folder) != own.as_ref()).collect();
    let found = folders.iter().map(|folder| folder.join("nvidia-smi")).find(|program| program.is_file());
    match found {
        Some(program) => {
            eprintln!("{}: {}", program.display(), std::process::Command::new(&program).args(arguments).exec())
        }
        None => eprintln!("nvidia-smi: this is no Sluice workspace, and this machine has no nvidia-smi of its own"),
    }
    ExitCode::from(DRIVER_NOT_LOADED)
}

/// `2026/11/21 20:16:00.000`, in UTC: a workspace knows no other zone for sure.
fn timestamp() -> String {
    let now = time::OffsetDateTime::now_utc();
    format!(
        "{:04}/{:02}/{:02} {:02}:{:02}:{:02}.{:03}",
        now.year(),
        u8::from(now.month()),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        now.millisecond()
    )
}

/// `Sat Nov 21 20:16:00 2026`, in UTC.
fn long_timestamp() -> String {
    let now = time::OffsetDateTime::now_utc();
    let short = |name: String| name.chars().take(3).collect::<String>();
    let (weekday, month) = (short(now.weekday().to_string()), short(now.month().to_string()));
    let (hour, minute, second) = now.to_hms();
    format!("{weekday} {month} {:>2} {hour:02}:{minute:02}:{second:02} {}", now.day(), now.year())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client's answer to `devices`: half a software GPU, used by this process.
    pub fn view() -> Value {
        json!({
            "lease": {
                "milli": 500, "deviceName": "soft-0", "serverName": "gpu-1", "expiresAt": "1970-01-01T00:48:00Z",
            },
            "devices": [{
                "device": {
                    "name": "Sluice Software GPU", "uuid": "GPU-1", "busId": "0000:00:00.0", "driver": "580.65.06",
                    "cudaVersion": 13050, "computeCapabilityMajor": 7, "computeCapabilityMinor": 5,
                    "attributes": {"13": 1_000_000},
                },
                "memory": {"totalBytes": 4i64 << 30, "usedBytes": 64 << 20},
                "computePercent": 38,
                "processes": [{"pid": std::process::id(), "usedBytes": 64 << 20}],
            }],
        })
    }

    fn parsed(line: &str) -> Result<ArgMatches, Refusal> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_options_are_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn takes_the_options_that_scripts_use() {
        for line in [
            "",
            "-L",
            "-q",
            "-q -d MEMORY,UTILIZATION -i 0",
            "--query-gpu=name,memory.total --format=csv,noheader,nounits",
            "--query-gpu name --format csv -l 1",
            "--query-gpu=name --format=csv -lms 500 -f log.csv",
            "--query-compute-apps=pid,used_memory --format=csv",
            "topo -m",
            "--version",
        ] {
            assert!(parsed(line).is_ok(), "{line}");
        }
        let number = |line: &str, name: &str| parsed(line).ok().and_then(|found| found.get_one::<u64>(name).copied());
        assert_eq!([number("-l", "loop"), number("--loop=2", "loop")], [Some(5), Some(2)]);
        assert_eq!([number("-lms=20", "loop-ms"), number("--loop-ms=30", "loop-ms")], [Some(20), Some(30)]);
    }

    #[test]
    fn refuses_as_nvidia_does() {
        let refused = |line: &str| parsed(line).err().map(|refusal| (refusal.code, refusal.out, refusal.error));
        for line in ["--mood", "-L -q", "--query-gpu=name", "-d MEMORY", "topo", "dmon", "-l 0", "-q topo -m"] {
            let (code, out, error) = refused(line).expect(line);
            assert_eq!((code, out.starts_with("Invalid combination of input arguments.")), (2, true), "{line}");
            assert!(error.starts_with("nvidia-smi: ") && error.len() > 20, "{line}: {error}");
        }
        let (code, _, error) = refused("-pm 1").expect("refused");
        assert!(code == 4 && error.contains("-pm: Insufficient Permissions"), "{error}");
        assert_eq!(refused("--power-limit=300").map(|(code, ..)| code), Some(4));
        assert_eq!(refused("-h").map(|(code, ..)| code), Some(0));
    }

    #[test]
    fn a_gpu_is_found_by_each_of_its_names() {
        let gpu = gpus(&view()).remove(0);
        for id in ["0", "gpu-1", "0000:00:00.0", "00000000:00:00.0", " 0 "] {
            assert!(gpu.is_called(id), "{id}");
        }
        assert!(!gpu.is_called("1") && !gpu.is_called(""));
    }
}
