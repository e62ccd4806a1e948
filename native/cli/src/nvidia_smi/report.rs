//! `nvidia-smi -q`: everything as indented lines, all of it or the sections named by `-d`.

use super::gpu::Gpu;
use super::long_timestamp;

const NOT_AVAILABLE: &str = "N/A";
/// Columns before the colon.
const KEYS: usize = 42;

/// The sections that `-d` selects. The others of NVIDIA's are about the card and its driver.
pub const SECTIONS: [&str; 9] =
    ["MEMORY", "UTILIZATION", "ECC", "TEMPERATURE", "POWER", "CLOCK", "COMPUTE", "PIDS", "PERFORMANCE"];

/// A line with what lies below it.
struct Entry {
    /// The section that shows it; empty for what only the whole report has.
    section: &'static str,
    key: &'static str,
    value: Option<String>,
    below: Vec<Entry>,
}

fn value(key: &'static str, value: impl Into<String>) -> Entry {
    Entry { section: "", key, value: Some(value.into()), below: Vec::new() }
}

fn group(section: &'static str, key: &'static str, below: Vec<Entry>) -> Entry {
    Entry { section, key, value: None, below }
}

/// Values of the card, which a lease does not show.
fn of_the_card(section: &'static str, key: &'static str, keys: &[&'static str]) -> Entry {
    group(section, key, keys.iter().map(|key| value(key, NOT_AVAILABLE)).collect())
}

/// Splits `-d`'s list; refuses an unknown section.
pub fn sections(words: &[String]) -> Result<Vec<String>, String> {
    let asked: Vec<String> = words.iter().map(|word| word.trim().to_uppercase()).collect();
    match asked.iter().find(|word| !SECTIONS.contains(&word.as_str())) {
        Some(word) => Err(format!("Section \"{word}\" is not available. Use one or more of {}.", SECTIONS.join(", "))),
        None => Ok(asked),
    }
}

/// The report; an empty list of sections is all of them.
pub fn report(gpus: &[Gpu], sections: &[String]) -> String {
    let unknown = Gpu::default();
    let first = gpus.first().unwrap_or(&unknown);
    let mut lines = vec![String::new(), format!("{0}NVSMI LOG{0}", "=".repeat(14)), String::new()];
    let top = [
        value("Timestamp", long_timestamp()),
        value("Driver Version", &first.driver),
        value("CUDA Version", &first.cuda),
    ];
    top.iter().for_each(|entry| write(entry, 0, &mut lines));
    lines.push(String::new());
    write(&value("Attached GPUs", first.count.to_string()), 0, &mut lines);
    for gpu in gpus {
        lines.push(format!("GPU {}", gpu.bus_id));
        let is_shown = |entry: &&Entry| sections.is_empty() || sections.iter().any(|section| section == entry.section);
        entries(gpu).iter().filter(is_shown).for_each(|entry| write(entry, 1, &mut lines));
        lines.push(String::new());
    }
    lines.join("\n")
}

fn write(entry: &Entry, depth: usize, lines: &mut Vec<String>) {
    let key = format!("{}{}", " ".repeat(4 * depth), entry.key);
    lines.push(match &entry.value {
        Some(value) => format!("{key:<KEYS$}: {value}"),
        None => key,
    });
    entry.below.iter().for_each(|entry| write(entry, depth + 1, lines));
}

fn mib(size: i64) -> String {
    format!("{size} MiB")
}

/// The sections of `-q` for one GPU, in NVIDIA's order.
fn entries(gpu: &Gpu) -> Vec<Entry> {
    let clock = |mhz: Option<i64>| mhz.map_or(NOT_AVAILABLE.to_owned(), |mhz| format!("{mhz} MHz"));
    let in_section = |section: &'static str, entry: Entry| Entry { section, ..entry };
    let parts: Vec<&str> = gpu.bus_id.split([':', '.']).collect();
    let part = |at: usize| format!("0x{}", parts.get(at).copied().unwrap_or_default().to_uppercase());
    let processes = gpu.processes.iter().flat_map(|process| {
        [
            value("GPU instance ID", NOT_AVAILABLE),
            value("Compute instance ID", NOT_AVAILABLE),
            Entry {
                below: vec![
                    value("Type", "C"),
                    value("Name", &process.name),
                    value("Used GPU Memory", mib(process.used_mib)),
                ],
                ..value("Process ID", process.pid.to_string())
            },
        ]
    });
    vec![
        value("Product Name", &gpu.name),
        value("Display Mode", "Disabled"),
        value("Display Active", "Disabled"),
        value("Persistence Mode", "Enabled"),
        of_the_card("", "MIG Mode", &["Current", "Pending"]),
        value("Serial Number", NOT_AVAILABLE),
        value("GPU UUID", &gpu.uuid),
        value("Minor Number", gpu.index.to_string()),
        value("VBIOS Version", NOT_AVAILABLE),
        group(
            "",
            "PCI",
            vec![
                value("Bus", part(1)),
                value("Device", part(2)),
                value("Domain", part(0)),
                value("Bus Id", &gpu.bus_id),
            ],
        ),
        value("Fan Speed", NOT_AVAILABLE),
        in_section("PERFORMANCE", value("Performance State", NOT_AVAILABLE)),
        group(
            "MEMORY",
            "FB Memory Usage",
            vec![
                value("Total", mib(gpu.total_mib)),
                value("Reserved", mib(0)),
                value("Used", mib(gpu.used_mib)),
                value("Free", mib(gpu.total_mib - gpu.used_mib)),
            ],
        ),
        of_the_card("MEMORY", "BAR1 Memory Usage", &["Total", "Used", "Free"]),
        in_section("COMPUTE", value("Compute Mode", "Default")),
        group(
            "UTILIZATION",
            "Utilization",
            vec![
                value("GPU", format!("{} %", gpu.compute_percent)),
                value("Memory", NOT_AVAILABLE),
                value("Encoder", NOT_AVAILABLE),
                value("Decoder", NOT_AVAILABLE),
            ],
        ),
        of_the_card("ECC", "ECC Mode", &["Current", "Pending"]),
        of_the_card("TEMPERATURE", "Temperature", &["GPU Current Temp", "Memory Current Temp"]),
        of_the_card("POWER", "GPU Power Readings", &["Average Power Draw", "Current Power Limit"]),
        of_the_card("CLOCK", "Clocks", &["Graphics", "SM", "Memory", "Video"]),
        group(
            "CLOCK",
            "Max Clocks",
            vec![
                value("Graphics", clock(gpu.graphics_clock)),
                value("SM", clock(gpu.graphics_clock)),
                value("Memory", clock(gpu.memory_clock)),
                value("Video", NOT_AVAILABLE),
            ],
        ),
        match gpu.processes.is_empty() {
            true => in_section("PIDS", value("Processes", "None")),
            false => group("PIDS", "Processes", processes.collect()),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tests::view;
    use super::*;
    use crate::nvidia_smi::gpu::gpus;

    fn shown(asked: &[&str]) -> String {
        let asked: Vec<String> = asked.iter().map(|word| (*word).to_owned()).collect();
        report(&gpus(&view()), &sections(&asked).expect("sections"))
    }

    #[test]
    fn reports_everything_by_default() {
        let text = shown(&[]);
        for line in [
            "==============NVSMI LOG==============",
            "Driver Version                            : 580.65.06",
            "CUDA Version                              : 13.5",
            "Attached GPUs                             : 1",
            "GPU 00000000:00:00.0",
            "    Product Name                          : Sluice Software GPU",
            "    GPU UUID                              : GPU-1",
            "        Bus                               : 0x00",
            "        Total                             : 4096 MiB",
            "        GPU                               : 38 %",
            "    Compute Mode                          : Default",
            "        Graphics                          : 1000 MHz",
            "            Used GPU Memory               : 64 MiB",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
        }
    }

    #[test]
    fn reports_the_sections_that_are_asked() {
        let text = shown(&["memory"]);
        assert!(text.contains("    FB Memory Usage\n        Total                             : 4096 MiB\n"), "{text}");
        for other in ["Product Name", "Utilization", "Processes"] {
            assert!(!text.contains(other), "{text}");
        }
        let text = shown(&["UTILIZATION", "COMPUTE"]);
        assert!(text.contains("Compute Mode") && text.contains("Utilization") && !text.contains("FB Memory"), "{text}");
        assert!(sections(&["MOOD".to_owned()]).is_err_and(|problem| problem.contains("\"MOOD\"")));
    }
}
