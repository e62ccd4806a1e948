//! `nvidia-smi` in a workspace: the calls that tools and people make of it, answered with the lease and not the card.
//! Where there is no workspace, the machine's own `nvidia-smi` is run.

use crate::ask;
use crate::text::{amount, columns, list, number, string, time_left};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

/// As `nvidia-smi` ends when it is asked for what there is not.
const INVALID: u8 = 2;
/// What it writes for a value that a device does not have.
const NOT_AVAILABLE: &str = "[N/A]";

/// What can be typed.
pub fn command() -> Command {
    let text = |name: &'static str| Arg::new(name).long(name);
    let list = |name: &'static str| text(name).value_delimiter(',').value_name("FIELDS");
    Command::new("nvidia-smi")
        .hide(true)
        .about("The borrowed GPUs, in the words of nvidia-smi")
        .arg(text("list-gpus").short('L').action(ArgAction::SetTrue).help("One line a GPU, with its UUID"))
        .arg(list("query-gpu").conflicts_with("query-compute-apps").help("Fields of the GPU, with --format=csv"))
        .arg(list("query-compute-apps").help("Fields of each process that uses the GPU, with --format=csv"))
        .arg(list("format").help("csv[,noheader][,nounits]"))
        .arg(text("id").short('i').value_name("GPU").help("Index, UUID or PCI bus id"))
}

/// Runs it.
pub fn run(options: &ArgMatches, arguments: &[std::ffi::OsString]) -> ExitCode {
    if std::env::var_os("SLUICE_BROKER_URL").is_none() {
        return elsewhere(arguments);
    }
    let view = ask(&json!({"op": "devices"}));
    let mut gpus = indexed(&view);
    if let Some(id) = options.get_one::<String>("id") {
        gpus.retain(|gpu| {
            let index = number(gpu, "/index").to_string();
            [&index, string(gpu, "/device/uuid"), string(gpu, "/device/busId")].contains(&id.as_str())
        });
        if gpus.is_empty() {
            eprintln!("No devices were found");
            return ExitCode::from(6);
        }
    }
    let words = |name: &str| options.get_many::<String>(name).map(|words| words.cloned().collect::<Vec<_>>());
    let format = words("format").unwrap_or_default();
    let shown = if options.get_flag("list-gpus") {
        Ok(gpus.iter().map(one_line).collect::<Vec<_>>().join("\n"))
    } else if let Some(fields) = words("query-gpu") {
        csv(&fields, &format, &gpus, gpu_field)
    } else if let Some(fields) = words("query-compute-apps") {
        csv(&fields, &format, &processes(&gpus), process_field)
    } else {
        Ok(table(&view["lease"], &gpus, SystemTime::now()))
    };
    match shown {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(INVALID)
        }
    }
}

/// The GPUs of the client's answer, each with its index and how many there are.
fn indexed(view: &Value) -> Vec<Value> {
    let all = list(view, "/devices");
    let with = |(index, gpu): (usize, &Value)| {
        let mut gpu = gpu.clone();
        (gpu["index"], gpu["count"]) = (json!(index), json!(all.len()));
        gpu
    };
    all.iter().enumerate().map(with).collect()
}

/// `GPU 0: name (UUID: …)`.
fn one_line(gpu: &Value) -> String {
    let (name, uuid) = (string(gpu, "/device/name"), string(gpu, "/device/uuid"));
    format!("GPU {}: {name} (UUID: {uuid})", number(gpu, "/index"))
}

/// Each process on each GPU that it uses, with that GPU.
fn processes(gpus: &[Value]) -> Vec<Value> {
    let of = |gpu: &Value| {
        let row = |process: &Value| json!({"process": process, "device": gpu["device"], "index": gpu["index"]});
        list(gpu, "/processes").iter().map(row).collect::<Vec<_>>()
    };
    gpus.iter().flat_map(of).collect()
}

/// Becomes the next `nvidia-smi` on the path that is not ours.
fn elsewhere(arguments: &[std::ffi::OsString]) -> ExitCode {
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
    ExitCode::from(9)
}

/// One answer: the value and its unit.
type Cell = Option<(String, &'static str)>;

fn mib(bytes: i64) -> Cell {
    Some(((bytes >> 20).to_string(), "MiB"))
}

/// A field of `--query-gpu`; None when there is no such field.
fn gpu_field(view: &Value, name: &str) -> Option<(&'static str, Cell)> {
    let text = |pointer: &str| Some((string(view, pointer).to_owned(), ""));
    let plain = |value: &str| Some((value.to_owned(), ""));
    let (total, used) = (number(view, "/memory/totalBytes"), number(view, "/memory/usedBytes"));
    let attribute =
        |name: &str| view.pointer("/device/attributes").and_then(|all| all.get(name)).and_then(Value::as_i64);
    let clock = |name: &str| attribute(name).map(|khz| ((khz / 1000).to_string(), "MHz"));
    Some(match name {
        "name" | "gpu_name" => ("", text("/device/name")),
        "uuid" | "gpu_uuid" => ("", text("/device/uuid")),
        "index" | "gpu_index" => ("", plain(&number(view, "/index").to_string())),
        "count" => ("", plain(&number(view, "/count").to_string())),
        "pci.bus_id" | "gpu_bus_id" => ("", Some((format!("0000{}", string(view, "/device/busId")), ""))),
        "driver_version" => ("", text("/device/driver")),
        "timestamp" => ("", plain(&timestamp())),
        "memory.total" => ("[MiB]", mib(total)),
        "memory.used" => ("[MiB]", mib(used)),
        "memory.free" => ("[MiB]", mib(total - used)),
        "memory.reserved" => ("[MiB]", mib(0)),
        "utilization.gpu" => ("[%]", Some((number(view, "/computePercent").to_string(), "%"))),
        "utilization.memory" => ("[%]", None),
        "compute_cap" => {
            let part = |name: &str| number(view, &format!("/device/computeCapability{name}"));
            ("", plain(&format!("{}.{}", part("Major"), part("Minor"))))
        }
        "compute_mode" => ("", plain("Default")),
        "persistence_mode" => ("", plain("Enabled")),
        "display_mode" | "display_active" => ("", plain("Disabled")),
        "clocks.max.graphics" | "clocks.max.gr" | "clocks.max.sm" => ("[MHz]", clock("13")),
        "clocks.max.memory" | "clocks.max.mem" => ("[MHz]", clock("36")),
        // About the card itself, which a lease does not show.
        "pstate" | "serial" | "gpu_serial" | "vbios_version" | "fan.speed" => ("", None),
        _ => {
            let card = ["temperature.", "power.", "clocks.", "ecc.", "mig.", "pcie.", "inforom.", "pci.", "encoder."];
            let card = card.iter().chain(&["clocks_", "enforced.", "retired_pages.", "fabric.", "accounting.", "gom."]);
            card.into_iter().any(|family| name.starts_with(family)).then_some(("", None))?
        }
    })
}

/// A field of `--query-compute-apps`.
fn process_field(row: &Value, name: &str) -> Option<(&'static str, Cell)> {
    let pid = number(row, "/process/pid");
    Some(match name {
        "pid" => ("", Some((pid.to_string(), ""))),
        "process_name" | "name" => ("", Some((program(pid), ""))),
        "used_memory" | "used_gpu_memory" => ("[MiB]", mib(number(row, "/process/usedBytes"))),
        "gpu_name" | "gpu_uuid" | "gpu_bus_id" | "gpu_index" | "timestamp" => gpu_field(row, name)?,
        "gpu_serial" => ("", None),
        _ => return None,
    })
}

/// The first word of a process's command line.
fn program(pid: i64) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    match String::from_utf8_lossy(words.split(|byte| *byte == 0).next().unwrap_or(&[])).into_owned() {
        name if name.is_empty() => "[Not Found]".to_owned(),
        name => name,
    }
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

/// Rows as comma-separated values.
fn csv(
    fields: &[String],
    format: &[String],
    rows: &[Value],
    field: fn(&Value, &str) -> Option<(&'static str, Cell)>,
) -> Result<String, String> {
    let has = |word: &str| format.iter().any(|part| part.trim() == word);
    if !has("csv") {
        return Err("\"--format=csv\" is needed with a query.".to_owned());
    }
    let empty = json!({});
    let mut lines = Vec::new();
    let mut header = Vec::new();
    for name in fields.iter().map(|name| name.trim()) {
        let (unit, _) = field(rows.first().unwrap_or(&empty), name)
            .ok_or_else(|| format!("Field \"{name}\" is not a valid field to query."))?;
        let unit = if has("nounits") || unit.is_empty() { unit.to_owned() } else { format!(" {unit}") };
        header.push(match unit.trim() {
            "" => name.to_owned(),
            unit => format!("{name} {unit}"),
        });
    }
    if !has("noheader") {
        lines.push(header.join(", "));
    }
    for row in rows {
        let cells = fields.iter().map(|name| match field(row, name.trim()).and_then(|(_, cell)| cell) {
            None => NOT_AVAILABLE.to_owned(),
            Some((value, unit)) if unit.is_empty() || has("nounits") => value,
            Some((value, unit)) => format!("{value} {unit}"),
        });
        lines.push(cells.collect::<Vec<_>>().join(", "));
    }
    Ok(lines.join("\n"))
}

/// Without arguments: the lease, and who uses it.
fn table(lease: &Value, gpus: &[Value], now: SystemTime) -> String {
    let first = gpus.first().unwrap_or(&Value::Null);
    let cuda = number(first, "/device/cudaVersion");
    let mut out = format!(
        "Sluice: a borrowed GPU      CUDA {}.{}      Driver {}\n\n",
        cuda / 1000,
        cuda % 1000 / 10,
        string(first, "/device/driver")
    );
    let mut rows = vec![["GPU", "Name", "Memory used / total", "Compute", "Lease", "Time limit in"].map(str::to_owned)];
    for gpu in gpus {
        let size = |pointer: &str| format!("{} MiB", number(gpu, pointer) >> 20);
        let index = number(gpu, "/index");
        // Of a lease of several GPUs each has a place of its own.
        let place = lease.pointer(&format!("/devices/{index}")).unwrap_or(lease);
        let (held, ends) = if lease.is_object() {
            let (milli, device) = (amount(number(place, "/milli")), string(place, "/deviceName"));
            (
                format!("{milli} of {device} on {}", string(place, "/serverName")),
                time_left(string(lease, "/expiresAt"), now),
            )
        } else {
            ("none attached: %gpu attach".to_owned(), String::new())
        };
        rows.push([
            index.to_string(),
            string(gpu, "/device/name").to_owned(),
            format!("{} / {}", size("/memory/usedBytes"), size("/memory/totalBytes")),
            format!("{} %", number(gpu, "/computePercent")),
            held,
            ends,
        ]);
    }
    out += &columns(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>());
    out += "\n\n";
    let processes = processes(gpus);
    if processes.is_empty() {
        return out + "No process uses it.";
    }
    let mut rows = vec![["GPU", "PID", "Memory", "Process"].map(str::to_owned).to_vec()];
    for row in &processes {
        let pid = number(row, "/process/pid");
        let used = format!("{} MiB", number(row, "/process/usedBytes") >> 20);
        rows.push(vec![number(row, "/index").to_string(), pid.to_string(), used, program(pid)]);
    }
    out + &columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> Value {
        json!({
            "lease": {
                "milli": 500, "deviceName": "soft-0", "serverName": "gpu-1", "expiresAt": "1970-01-01T00:48:00Z",
            },
            "devices": [gpu()],
        })
    }

    fn gpu() -> Value {
        json!({
            "device": {
                "name": "Sluice Software GPU", "uuid": "GPU-1", "busId": "0000:00:00.0", "driver": "580.65.06",
                "cudaVersion": 13050, "computeCapabilityMajor": 7, "computeCapabilityMinor": 5,
                "attributes": {"13": 1_000_000},
            },
            "memory": {"totalBytes": 4i64 << 30, "usedBytes": 64 << 20},
            "computePercent": 38,
            "processes": [{"pid": std::process::id(), "usedBytes": 64 << 20}],
        })
    }

    fn query(fields: &str, format: &str) -> Result<String, String> {
        let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        csv(&words(fields), &words(format), &indexed(&view()), gpu_field)
    }

    #[test]
    fn the_query_of_most_tools_is_answered() {
        let fields = "name,memory.total,memory.used,utilization.gpu,driver_version";
        assert_eq!(
            query(fields, "csv").as_deref(),
            Ok("name, memory.total [MiB], memory.used [MiB], utilization.gpu [%], driver_version\n\
                Sluice Software GPU, 4096 MiB, 64 MiB, 38 %, 580.65.06")
        );
        assert_eq!(
            query(fields, "csv,noheader,nounits").as_deref(),
            Ok("Sluice Software GPU, 4096, 64, 38, 580.65.06")
        );
    }

    #[test]
    fn what_a_lease_does_not_show_is_not_available_and_what_is_unknown_is_refused() {
        assert_eq!(
            query("temperature.gpu,clocks.max.sm,compute_cap", "csv,noheader").as_deref(),
            Ok("[N/A], 1000 MHz, 7.5")
        );
        assert!(query("mood", "csv").is_err_and(|problem| problem.contains("\"mood\"")));
        assert!(query("name", "xml").is_err());
    }

    #[test]
    fn the_table_names_the_lease_and_its_processes() {
        let shown = |view: &Value| table(&view["lease"], &indexed(view), SystemTime::UNIX_EPOCH);
        let text = shown(&view());
        let pid = std::process::id().to_string();
        for part in ["CUDA 13.5", "64 MiB / 4096 MiB", "38 %", "0.5 of soft-0 on gpu-1", "48 min", &pid] {
            assert!(text.contains(part), "{text}");
        }
        let mut none = view();
        (none["lease"], none["devices"][0]["processes"]) = (Value::Null, json!([]));
        let text = shown(&none);
        assert!(text.contains("none attached") && text.contains("No process uses it."), "{text}");
    }
    #[test]
    fn each_gpu_of_a_lease_has_a_row_of_its_own() {
        let mut view = view();
        view["devices"] = json!([gpu(), gpu()]);
        let place = |name: &str| json!({"milli": 1000, "deviceName": name, "serverName": "gpu-1"});
        view["lease"]["devices"] = json!([place("soft-0"), place("soft-1")]);
        let gpus = indexed(&view);
        let text = table(&view["lease"], &gpus, SystemTime::UNIX_EPOCH);
        for part in ["1 of soft-0 on gpu-1", "1 of soft-1 on gpu-1"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(gpus.iter().map(one_line).collect::<Vec<_>>()[1], "GPU 1: Sluice Software GPU (UUID: GPU-1)");
        let fields = ["index", "count"].map(str::to_owned);
        let format = ["csv", "noheader"].map(str::to_owned);
        assert_eq!(csv(&fields, &format, &gpus, gpu_field).as_deref(), Ok("0, 2\n1, 2"));
        assert_eq!(processes(&gpus).len(), 2);
    }
}
