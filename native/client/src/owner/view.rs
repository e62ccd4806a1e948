//! The device and the lease as this process sees them, for NVML and `nvidia-smi`. Starts nothing: a process that only
//! looks has no session and no CUDA afterwards.

use super::broker::{Method, ask};
use super::socket;
use crate::driver::device::{BUS_ID, uuid};
use crate::process::Process;
use serde_json::{Value, json};
use sluice_protocol::messages::MemInfo;

/// CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED.
const VIRTUAL_MEMORY: i32 = 102;

/// The lowest driver that NVIDIA lists for each CUDA version (CUDA release notes, table "CUDA Toolkit and Corresponding
/// Driver Versions"). A profile records the CUDA version of its driver and not the driver's own.
const DRIVERS: [(i32, &str); 11] = [
    (11080, "520.61.05"),
    (12000, "525.60.13"),
    (12010, "530.30.02"),
    (12020, "535.54.03"),
    (12030, "545.23.06"),
    (12040, "550.54.14"),
    (12050, "555.42.02"),
    (12060, "560.28.03"),
    (12080, "570.26"),
    (12090, "575.51.03"),
    (13000, "580.65.06"),
];

/// The lowest driver that serves this CUDA version; for a newer one than is listed, the newest that is.
fn driver(cuda: i32) -> &'static str {
    DRIVERS.iter().rev().find(|(version, _)| *version <= cuda).map_or(DRIVERS[0].1, |(_, driver)| driver)
}

/// `profile`: what is recorded of this process's GPU type. Asks nobody.
pub fn profile(process: &Process) -> Value {
    let profile = process.profile();
    let device = &profile.device;
    json!({
        "gpuType": profile.gpu_type,
        "name": device.name,
        "uuid": uuid_text(uuid(process)),
        "busId": BUS_ID,
        "totalMemoryBytes": device.total_memory_bytes,
        "computeCapabilityMajor": device.compute_capability_major,
        "computeCapabilityMinor": device.compute_capability_minor,
        "cudaVersion": device.driver_version,
        "driver": driver(device.driver_version),
        "attributes": device.attributes,
        "virtualMemory": profile.attribute(VIRTUAL_MEMORY) == Some(1),
    })
}

/// `device`: the profile as `device`, and the lease that this process would use (null when there is none) with its
/// memory in bytes, the compute used of its own part in the last minute, and the processes known to use it.
pub fn device(process: &Process) -> Value {
    let mut answer = seen(process);
    answer["device"] = profile(process);
    if let Some(session) = process.session_now() {
        // The lease's own count, of all its processes, as gpud has it at this moment.
        if let Ok(info) = session.connection.call(&MemInfo) {
            answer["memory"] = json!({ "totalBytes": info.total, "usedBytes": info.total.saturating_sub(info.free) });
        }
        add_process(&mut answer, std::process::id(), session.used_bytes());
    }
    answer
}

/// The lease of this process, else of its owner, else the first of the workspace (a tool in a terminal).
fn seen(process: &Process) -> Value {
    let own = process.owner.state().lease.clone().filter(|_| process.session_now().is_some());
    if own.is_none()
        && !process.owner.is_owner()
        && let Some(path) = std::env::var_os("SLUICE_OWNER_SOCKET")
        && let Ok(answer) = socket::ask(&path, &json!({ "op": "device" }))
        && answer.get("memory").is_some()
    {
        return answer;
    }
    let status = ask(Method::Get, "/v1/status").unwrap_or(Value::Null);
    let leases = status.get("leases").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let id = |entry: &Value| entry.pointer("/lease/id").cloned();
    let entry = match &own {
        Some(lease) => leases.iter().find(|entry| id(entry).as_ref() == lease.get("id")),
        None if process.owner.is_owner() => None,
        None => leases.first(),
    };
    let lease = own.or_else(|| entry.and_then(|entry| entry.get("lease").cloned()));
    let number = |value: Option<&Value>, field: &str| value.and_then(|value| value.get(field)).and_then(Value::as_f64);
    let total = number(lease.as_ref(), "memoryBytes").map(|bytes| bytes as u64);
    // The default amount, half of a device, as cuMemGetInfo answers it.
    let total = total.unwrap_or(process.profile().device.total_memory_bytes / 2);
    let used = number(entry, "usedMemoryBytes").unwrap_or(0.0) as u64;
    let mut answer = json!({
        "lease": lease,
        "memory": { "totalBytes": total, "usedBytes": used.min(total) },
        "computePercent": number(entry, "computePercent").unwrap_or(0.0).round() as u64,
        "processes": [],
    });
    if let Some(pid) = entry.and_then(|entry| entry.pointer("/owner/pid")).and_then(Value::as_u64) {
        add_process(&mut answer, pid as u32, used);
    }
    answer
}

/// Notes a process; what it knows of itself replaces what others said.
fn add_process(answer: &mut Value, pid: u32, used_bytes: u64) {
    if let Some(list) = answer["processes"].as_array_mut() {
        list.retain(|entry| entry["pid"] != json!(pid));
        list.push(json!({ "pid": pid, "usedBytes": used_bytes }));
    }
}

/// As NVIDIA's tools write it: `GPU-` and the bytes in groups.
fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::from("GPU");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    for group in [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]] {
        text.push('-');
        text.push_str(group);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_in_groups() {
        let bytes = std::array::from_fn(|index| index as u8);
        assert_eq!(uuid_text(bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn a_cuda_version_names_the_lowest_driver_that_serves_it() {
        assert_eq!([driver(12080), driver(12070), driver(13050)], ["570.26", "560.28.03", "580.65.06"]);
        assert_eq!(driver(0), "520.61.05");
    }

    #[test]
    fn a_process_is_listed_once() {
        let mut answer = json!({ "processes": [] });
        add_process(&mut answer, 7, 10);
        add_process(&mut answer, 7, 20);
        assert_eq!(answer["processes"], json!([{ "pid": 7, "usedBytes": 20 }]));
    }
}
