//! `--query-gpu` and `--query-compute-apps`: rows as comma-separated values.

use super::gpu::{Gpu, GpuProcess};
use super::timestamp;

/// What `nvidia-smi` writes for a value that a device does not have.
const NOT_AVAILABLE: &str = "[N/A]";

/// One answer: the value and its unit.
type Cell = Option<(String, &'static str)>;

/// A column: the unit in its heading, and the value.
type Field = Option<(&'static str, Cell)>;

fn mib(size: i64) -> Cell {
    Some((size.to_string(), "MiB"))
}

/// A field of `--query-gpu`; None when there is no such field.
pub fn gpu_field(gpu: &Gpu, name: &str) -> Field {
    let plain = |value: &str| Some((value.to_owned(), ""));
    let clock = |mhz: Option<i64>| mhz.map(|mhz| (mhz.to_string(), "MHz"));
    Some(match name {
        "name" | "gpu_name" => ("", plain(&gpu.name)),
        "uuid" | "gpu_uuid" => ("", plain(&gpu.uuid)),
        "index" | "gpu_index" => ("", plain(&gpu.index.to_string())),
        "count" => ("", plain(&gpu.count.to_string())),
        "pci.bus_id" | "gpu_bus_id" => ("", plain(&gpu.bus_id)),
        "driver_version" => ("", plain(&gpu.driver)),
        "timestamp" => ("", plain(&timestamp())),
        "memory.total" => ("[MiB]", mib(gpu.total_mib)),
        "memory.used" => ("[MiB]", mib(gpu.used_mib)),
        "memory.free" => ("[MiB]", mib(gpu.total_mib - gpu.used_mib)),
        "memory.reserved" => ("[MiB]", mib(0)),
        "utilization.gpu" => ("[%]", Some((gpu.compute_percent.to_string(), "%"))),
        "utilization.memory" => ("[%]", None),
        "compute_cap" => ("", plain(&gpu.compute_capability)),
        "compute_mode" => ("", plain("Default")),
        "persistence_mode" => ("", plain("Enabled")),
        "display_mode" | "display_active" => ("", plain("Disabled")),
        "clocks.max.graphics" | "clocks.max.gr" | "clocks.max.sm" => ("[MHz]", clock(gpu.graphics_clock)),
        "clocks.max.memory" | "clocks.max.mem" => ("[MHz]", clock(gpu.memory_clock)),
        // About the card itself, which a lease does not show.
        "pstate" | "serial" | "gpu_serial" | "vbios_version" | "fan.speed" => ("", None),
        _ => {
            let card = ["temperature.", "power.", "clocks.", "ecc.", "mig.", "pcie.", "inforom.", "pci.", "encoder."];
            let card = card.iter().chain(&["clocks_", "enforced.", "retired_pages.", "fabric.", "accounting.", "gom."]);
            card.into_iter().any(|family| name.starts_with(family)).then_some(("", None))?
        }
    })
}

/// A field of `--query-compute-apps`, of each process on each GPU.
pub fn process_field((gpu, process): &(Gpu, GpuProcess), name: &str) -> Field {
    Some(match name {
        "pid" => ("", Some((process.pid.to_string(), ""))),
        "process_name" | "name" => ("", Some((process.name.clone(), ""))),
        "used_memory" | "used_gpu_memory" => ("[MiB]", mib(process.used_mib)),
        "gpu_name" | "gpu_uuid" | "gpu_bus_id" | "gpu_index" | "timestamp" => gpu_field(gpu, name)?,
        "gpu_serial" => ("", None),
        _ => return None,
    })
}

/// The rows as text. `empty` stands for a row where there is none, so that headings and refusals are the same.
pub fn csv<Row>(
    fields: &[String],
    format: &[String],
    rows: &[Row],
    empty: &Row,
    field: fn(&Row, &str) -> Field,
) -> Result<String, String> {
    let has = |word: &str| format.iter().any(|part| part.trim() == word);
    if !has("csv") {
        return Err("\"--format=csv\" is needed with a query.".to_owned());
    }
    if let Some(unknown) = format.iter().find(|part| !["csv", "noheader", "nounits"].contains(&part.trim())) {
        return Err(format!("Format \"{unknown}\" is not known. Use csv, noheader and nounits."));
    }
    let fields: Vec<&str> = fields.iter().map(|name| name.trim()).collect();
    let mut lines = Vec::new();
    let mut header = Vec::new();
    for name in &fields {
        let (unit, _) = field(empty, name).ok_or_else(|| format!("Field \"{name}\" is not a valid field to query."))?;
        header.push(format!("{name} {unit}").trim_end().to_owned());
    }
    if !has("noheader") {
        lines.push(header.join(", "));
    }
    for row in rows {
        let cells = fields.iter().map(|name| match field(row, name).and_then(|(_, cell)| cell) {
            None => NOT_AVAILABLE.to_owned(),
            Some((value, unit)) if unit.is_empty() || has("nounits") => value,
            Some((value, unit)) => format!("{value} {unit}"),
        });
        lines.push(cells.collect::<Vec<_>>().join(", "));
    }
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::view;
    use super::*;
    use crate::nvidia_smi::gpu::gpus;

    fn query(fields: &str, format: &str) -> Result<String, String> {
        let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        csv(&words(fields), &words(format), &gpus(&view()), &Gpu::default(), gpu_field)
    }

    #[test]
    fn answers_the_queries_of_most_tools() {
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
        // As GPUtil asks.
        let fields = "index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,gpu_serial,\
                      display_active,display_mode,temperature.gpu";
        assert_eq!(
            query(fields, "csv,noheader,nounits").as_deref(),
            Ok("0, GPU-1, 38, 4096, 64, 4032, 580.65.06, Sluice Software GPU, [N/A], Disabled, Disabled, [N/A]")
        );
    }

    #[test]
    fn values_of_the_card_are_not_available_and_unknown_fields_are_refused() {
        assert_eq!(
            query("temperature.gpu,clocks.max.sm,compute_cap", "csv,noheader").as_deref(),
            Ok("[N/A], 1000 MHz, 7.5")
        );
        assert!(query("mood", "csv").is_err_and(|problem| problem.contains("\"mood\"")));
        assert!(query("name", "xml").is_err());
        assert!(query("name", "csv,nohaeder").is_err_and(|problem| problem.contains("\"nohaeder\"")));
    }
}
