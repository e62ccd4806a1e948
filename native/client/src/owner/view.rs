//! The devices and the lease as this process sees them, for NVML and `nvidia-smi`. Starts nothing: a process that only
//! looks has no session and no CUDA afterwards.

use super::broker::{Method, ask};
use super::lease::parts_of;
use super::socket;
use crate::process::Process;
use crate::profile::{bus_id, uuid_text};
use serde_json::{Value, json};
use sluice_protocol::LeaseProcess;
use sluice_protocol::messages::MemInfo;
use std::collections::BTreeMap;
use std::time::Duration;

/// CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED.
const VIRTUAL_MEMORY: i32 = 102;

/// A tool in a terminal waits so long for a lease's owner.
const OWNER_WITHIN: Duration = Duration::from_secs(2);

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

/// `profile`: what is recorded of this process's GPU type, as its first device has it. Asks nobody.
pub fn profile(process: &Process) -> Value {
    described(process, 0)
}

/// A GPU of the lease, whichever the program sees.
fn described(process: &Process, part: usize) -> Value {
    let profile = process.profile();
    let device = &profile.device;
    json!({
        "gpuType": profile.gpu_type,
        "name": device.name,
        "uuid": uuid_text(profile.uuid(part)),
        "busId": bus_id(part),
        "totalMemoryBytes": device.total_memory_bytes,
        "computeCapabilityMajor": device.compute_capability_major,
        "computeCapabilityMinor": device.compute_capability_minor,
        "cudaVersion": device.driver_version,
        "driver": device.driver.as_deref().unwrap_or_else(|| driver(device.driver_version)),
        "attributes": device.attributes,
        "virtualMemory": profile.attribute(VIRTUAL_MEMORY) == Some(1),
    })
}

/// `devices`: the lease that this process would use (null when there is none), and each of its GPUs: its profile as
/// `device`, the lease's memory there in bytes, the compute used of the lease's own part in the last minute, and the
/// processes that use it. Without a lease there is one GPU.
pub fn devices(process: &'static Process) -> Value {
    let mut answer = seen(process);
    for device in process.devices() {
        let row = &mut answer["devices"][device.part()];
        let (Some(session), true) = (device.session_now(), row.is_object()) else { continue };
        // The lease's own count, of all its processes, as gpud has it at this moment.
        if let Ok(info) = session.connection.call(&MemInfo) {
            row["memory"] = json!({ "totalBytes": info.total, "usedBytes": info.total.saturating_sub(info.free) });
        }
        match session.processes() {
            Some(processes) => row["processes"] = listed(processes),
            // An older gpud: this process knows of itself alone.
            None => add_process(row, std::process::id(), session.used_bytes()),
        }
    }
    answer
}

/// The lease of this process, else of its owner, else the first of the workspace (a tool in a terminal).
fn seen(process: &'static Process) -> Value {
    let own = process.owner.state().lease.clone().filter(|_| process.attached() > 0);
    if own.is_none()
        && !process.owner.is_owner()
        && let Some(path) = socket::of_owner()
        && let Ok(answer) = socket::ask(&path, &json!({ "op": "devices" }))
        && answer.get("devices").is_some_and(Value::is_array)
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
    if own.is_none()
        && let Some(answer) = entry.and_then(of_owner)
    {
        return answer;
    }
    let lease = own.or_else(|| entry.and_then(|entry| entry.get("lease").cloned()));
    let count = lease.as_ref().map_or(1, |lease| parts_of(lease).len().max(1));
    let rows: Vec<Value> = (0..count).map(|part| row(process, part, lease.as_ref(), entry)).collect();
    json!({ "lease": lease, "devices": rows })
}

/// What the owner of a workspace's lease says: it has the lease's account from gpud. None: the broker's word has to do.
fn of_owner(entry: &Value) -> Option<Value> {
    let pid = entry.pointer("/owner/pid").and_then(Value::as_u64)?;
    let path = socket::path_of(u32::try_from(pid).ok()?);
    let answer = socket::ask_within(path.as_os_str(), &json!({ "op": "devices" }), OWNER_WITHIN).ok()?;
    // The number may be another process's by now, which has another lease or none.
    let is_its = answer.pointer("/lease/id") == entry.pointer("/lease/id") && answer["devices"].is_array();
    is_its.then_some(answer)
}

/// One GPU of a lease, as the broker's status tells it.
fn row(process: &Process, part: usize, lease: Option<&Value>, entry: Option<&Value>) -> Value {
    let number = |value: Option<&Value>, field: &str| value.and_then(|value| value.get(field)).and_then(Value::as_f64);
    // Of several GPUs each has a row of its own.
    let own = |value: Option<&Value>| {
        value.and_then(|value| value.pointer(&format!("/devices/{part}")).or(Some(value)).cloned())
    };
    let (held, used) = (own(lease), own(entry));
    // The default amount, half of a device, as cuMemGetInfo answers it.
    let total = number(held.as_ref(), "memoryBytes").map(|bytes| bytes as u64);
    let total = total.unwrap_or(process.profile().device.total_memory_bytes / 2);
    let bytes = number(used.as_ref(), "usedMemoryBytes").unwrap_or(0.0) as u64;
    let mut row = json!({
        "device": described(process, part),
        "memory": { "totalBytes": total, "usedBytes": bytes.min(total) },
        "computePercent": number(used.as_ref(), "computePercent").unwrap_or(0.0).round() as u64,
        "processes": [],
    });
    if let Some(pid) = entry.and_then(|entry| entry.pointer("/owner/pid")).and_then(Value::as_u64) {
        add_process(&mut row, pid as u32, bytes);
    }
    row
}

/// The processes of a lease, each number once: a process may be here as two clients, and those of a pod's containers may
/// be called alike.
fn listed(processes: Vec<LeaseProcess>) -> Value {
    let mut bytes = BTreeMap::<u32, u64>::new();
    for process in processes {
        let all = bytes.entry(process.pid).or_default();
        *all = all.saturating_add(process.bytes);
    }
    bytes.into_iter().map(|(pid, bytes)| json!({ "pid": pid, "usedBytes": bytes })).collect()
}

/// Notes a process; what it knows of itself replaces what others said.
fn add_process(answer: &mut Value, pid: u32, used_bytes: u64) {
    if let Some(list) = answer["processes"].as_array_mut() {
        list.retain(|entry| entry["pid"] != json!(pid));
        list.push(json!({ "pid": pid, "usedBytes": used_bytes }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cuda_version_names_the_lowest_driver_that_serves_it() {
        assert_eq!([driver(12080), driver(12070), driver(13050)], ["570.26", "560.28.03", "580.65.06"]);
        assert_eq!(driver(0), "520.61.05");
    }

    #[test]
    fn processes_that_are_called_alike_are_one_with_what_they_have_together() {
        let told = [(9, 5), (7, 10), (9, 6)].map(|(pid, bytes)| LeaseProcess { pid, bytes });
        let expected = json!([{ "pid": 7, "usedBytes": 10 }, { "pid": 9, "usedBytes": 11 }]);
        assert_eq!(listed(told.to_vec()), expected);
        assert_eq!(listed(Vec::new()), json!([]));
    }

    #[test]
    fn a_process_is_listed_once() {
        let mut answer = json!({ "processes": [] });
        add_process(&mut answer, 7, 10);
        add_process(&mut answer, 7, 20);
        assert_eq!(answer["processes"], json!([{ "pid": 7, "usedBytes": 20 }]));
    }
}
