//! `nvidia-smi` without options: NVIDIA's table, whose columns scripts cut out, and below it the lease.

use super::gpu::{Gpu, place};
use super::long_timestamp;
use crate::text::{amount, string, time_left};
use serde_json::Value;
use std::time::SystemTime;

/// Columns between the outer borders, and of the three cells of a GPU.
const WIDTH: usize = 89;
const CELLS: [usize; 3] = [41, 24, 22];
/// Columns of a process's name.
const NAME: usize = 35;

/// The table, with `notes` below it.
pub fn table(gpus: &[Gpu], notes: &[String]) -> String {
    let unknown = Gpu::default();
    let first = gpus.first().unwrap_or(&unknown);
    let whole = format!("+{}+", "-".repeat(WIDTH));
    let three = |line: &str| format!("+{}+", CELLS.map(|width| line.repeat(width)).join("+"));
    let mut lines = vec![
        long_timestamp(),
        whole.clone(),
        format!("| NVIDIA-SMI {0:<23}Driver Version: {0:<15}CUDA Version: {1:<8} |", first.driver, first.cuda),
        three("-"),
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |".to_owned(),
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |".to_owned(),
        format!("|{:41}|{:24}|{:>21} |", "", "", "MIG M."),
        format!("|{}|", CELLS.map(|width| "=".repeat(width)).join("+")),
    ];
    for gpu in gpus {
        lines.extend(rows(gpu));
        lines.push(three("-"));
    }
    lines.extend([
        " ".repeat(WIDTH + 2),
        whole.clone(),
        format!("| {:<88}|", "Processes:"),
        "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |".to_owned(),
        format!("|{:<WIDTH$}|", "        ID   ID                                                               Usage"),
        format!("|{}|", "=".repeat(WIDTH)),
    ]);
    for gpu in gpus {
        for process in &gpu.processes {
            lines.push(format!(
                "|  {:>3}   N/A  N/A{:>16}   {:>4}   {:<NAME$} {:>10} |",
                gpu.index,
                process.pid,
                "C",
                shortened(&process.name),
                format!("{}MiB", process.used_mib)
            ));
        }
    }
    if gpus.iter().all(|gpu| gpu.processes.is_empty()) {
        lines.push(format!("|{:<WIDTH$}|", "  No running processes found"));
    }
    lines.push(whole);
    lines.extend(notes.iter().cloned());
    lines.join("\n")
}

/// The three lines of a GPU. Fan, temperature and power are the card's, which a lease does not show.
fn rows(gpu: &Gpu) -> [String; 3] {
    let name: String = gpu.name.chars().take(30).collect();
    [
        format!("| {:>3}  {name:<30} On  |   {:>16} Off | {:>20} |", gpu.index, gpu.bus_id, "N/A"),
        format!(
            "| {0:<3}  {0:>4}  {0:>4}  {0:>14} / {0:>5} |{1:>8}MiB / {2:>6}MiB |{3:>7}% {4:>12} |",
            "N/A", gpu.used_mib, gpu.total_mib, gpu.compute_percent, "Default"
        ),
        format!("|{:41}|{:24}| {:>20} |", "", "", "N/A"),
    ]
}

/// The end of a long name: there stands the program.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME {
        name.to_owned()
    } else {
        format!("...{}", name.chars().skip(length + 3 - NAME).collect::<String>())
    }
}

/// The lease: a line for each GPU.
pub fn lease_lines(lease: &Value, gpus: &[Gpu], now: SystemTime) -> Vec<String> {
    let ends = match time_left(string(lease, "/expiresAt"), now) {
        left if left.is_empty() => String::new(),
        left => format!(" The time limit is in {left}."),
    };
    let line = |gpu: &Gpu| {
        let place = place(lease, gpu.index);
        let milli = amount(place["milli"].as_i64().unwrap_or_default());
        let (device, server) = (string(place, "/deviceName"), string(place, "/serverName"));
        format!("Sluice: GPU {} is {milli} of {device} on {server}.{ends}", gpu.index)
    };
    gpus.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::view;
    use super::*;
    use crate::nvidia_smi::gpu::gpus;
    use serde_json::json;

    fn shown(view: &Value) -> String {
        let gpus = gpus(view);
        table(&gpus, &lease_lines(&view["lease"], &gpus, SystemTime::UNIX_EPOCH))
    }

    #[test]
    fn prints_the_columns_of_nvidias_table() {
        let mut view = view();
        view["devices"][0]["processes"] = json!([]);
        let text = shown(&view);
        let expected = "\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.65.06              Driver Version: 580.65.06      CUDA Version: 13.5     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  Sluice Software GPU            On  |   00000000:00:00.0 Off |                  N/A |
| N/A   N/A   N/A             N/A /   N/A |      64MiB /   4096MiB |     38%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
                                                                                           
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
Sluice: GPU 0 is 0.5 of soft-0 on gpu-1. The time limit is in 48 min.";
        let (_, below_the_time) = text.split_once('\n').expect("several lines");
        assert_eq!(below_the_time, expected);
    }

    #[test]
    fn lists_the_processes_of_each_gpu() {
        let mut view = view();
        view["devices"] = json!([view["devices"][0], view["devices"][0]]);
        view["lease"]["devices"] = json!([
            {"milli": 1000, "deviceName": "soft-0", "serverName": "gpu-1"},
            {"milli": 1000, "deviceName": "soft-1", "serverName": "gpu-1"},
        ]);
        let text = shown(&view);
        for index in [0, 1] {
            let row = format!("|    {index}   N/A  N/A{:>16}      C   ", std::process::id());
            assert!(text.contains(&row), "{text}");
            assert!(text.contains(&format!("GPU {index} is 1 of soft-{index} on gpu-1.")), "{text}");
        }
        assert!(
            text.lines().skip(1).filter(|line| line.starts_with('|')).all(|line| line.chars().count() == WIDTH + 2)
        );
        assert!(!text.contains("No running processes"), "{text}");
    }

    #[test]
    fn keeps_the_end_of_a_long_name() {
        let name = format!("/home/user/{}/bin/python", "x".repeat(40));
        let short = shortened(&name);
        assert!(short.chars().count() == NAME && short.starts_with("...") && short.ends_with("/bin/python"), "{short}");
        assert_eq!(shortened("python"), "python");
    }
}
