//! A borrowed GPU, as `nvidia-smi` reports it: the lease's share and not the card.

use crate::text::{list, number, string};
use serde_json::Value;

/// One GPU of the workspace.
#[derive(Clone, Debug, Default)]
pub struct Gpu {
    pub index: usize,
    /// How many GPUs there are.
    pub count: usize,
    pub name: String,
    pub uuid: String,
    /// With eight digits of domain: `00000000:00:00.0`.
    pub bus_id: String,
    pub driver: String,
    /// `13.0`.
    pub cuda: String,
    /// `7.5`.
    pub compute_capability: String,
    pub total_mib: i64,
    pub used_mib: i64,
    pub compute_percent: i64,
    /// MHz, where the profile records them.
    pub graphics_clock: Option<i64>,
    pub memory_clock: Option<i64>,
    /// The server of the lease; empty without one.
    pub server: String,
    pub processes: Vec<GpuProcess>,
}

/// A process that uses a GPU.
#[derive(Clone, Debug)]
pub struct GpuProcess {
    pub pid: i64,
    pub used_mib: i64,
    pub name: String,
}

/// CU_DEVICE_ATTRIBUTE_CLOCK_RATE and CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, kHz.
const CLOCKS: [&str; 2] = ["13", "36"];

/// The GPUs of the client's answer to `devices`.
pub fn gpus(view: &Value) -> Vec<Gpu> {
    let rows = list(view, "/devices");
    let lease = &view["lease"];
    let gpu = |(index, row): (usize, &Value)| {
        let text = |pointer: &str| string(row, pointer).to_owned();
        let [graphics_clock, memory_clock] = CLOCKS.map(|attribute| {
            let khz = row.pointer("/device/attributes").and_then(|all| all.get(attribute)).and_then(Value::as_i64);
            khz.map(|khz| khz / 1000)
        });
        let cuda = number(row, "/device/cudaVersion");
        let capability = ["Major", "Minor"].map(|part| number(row, &format!("/device/computeCapability{part}")));
        Gpu {
            index,
            count: rows.len(),
            name: text("/device/name"),
            uuid: text("/device/uuid"),
            bus_id: format!("0000{}", string(row, "/device/busId")),
            driver: text("/device/driver"),
            cuda: format!("{}.{}", cuda / 1000, cuda % 1000 / 10),
            compute_capability: format!("{}.{}", capability[0], capability[1]),
            total_mib: number(row, "/memory/totalBytes") >> 20,
            used_mib: number(row, "/memory/usedBytes") >> 20,
            compute_percent: number(row, "/computePercent"),
            graphics_clock,
            memory_clock,
            server: string(place(lease, index), "/serverName").to_owned(),
            processes: list(row, "/processes").iter().map(process).collect(),
        }
    };
    rows.iter().enumerate().map(gpu).collect()
}

/// The part of a lease on its GPU `index`; a lease on one GPU is its own part.
pub fn place(lease: &Value, index: usize) -> &Value {
    lease.pointer(&format!("/devices/{index}")).unwrap_or(lease)
}

fn process(row: &Value) -> GpuProcess {
    let pid = number(row, "/pid");
    GpuProcess { pid, used_mib: number(row, "/usedBytes") >> 20, name: program(pid) }
}

/// The first word of a process's command line.
fn program(pid: i64) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    match String::from_utf8_lossy(words.split(|byte| *byte == 0).next().unwrap_or(&[])).into_owned() {
        name if name.is_empty() => "[Not Found]".to_owned(),
        name => name,
    }
}

impl Gpu {
    /// Whether a person means this GPU: by index, UUID, or PCI bus id with four or eight digits of domain.
    pub fn is_called(&self, id: &str) -> bool {
        let id = id.trim();
        id == self.index.to_string()
            || id.eq_ignore_ascii_case(&self.uuid)
            || [self.bus_id.as_str(), self.bus_id.get(4..).unwrap_or_default()]
                .iter()
                .any(|bus| id.eq_ignore_ascii_case(bus))
    }
}
