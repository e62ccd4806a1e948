//! `sluice smi`: the workspace's borrowed GPUs as a table.

use crate::text::{
    amount, columns, lease_memory, lease_milli, list, memory, number, places, string, time_left, way_to_one,
};
use serde_json::Value;
use std::time::SystemTime;

/// The table, or what to do when there is none.
pub fn table(status: &Value, now: SystemTime) -> String {
    let leases = list(status, "/leases");
    if leases.is_empty() {
        return none_attached(status);
    }
    let header = ["GPU", "Amount", "Memory", "Compute", "GPU time", "Idle limit in", "Time limit in", "Used by"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for entry in leases {
        let percent = entry.pointer("/computePercent").and_then(Value::as_f64).unwrap_or_default().round();
        let share = amount(lease_milli(&entry["lease"]));
        rows.push(vec![
            places(&entry["lease"]),
            share.clone(),
            format!("{} / {}", memory(number(entry, "/usedMemoryBytes")), memory(lease_memory(&entry["lease"]))),
            format!("{percent} % of {share}"),
            format!("{:.1} s", number(entry, "/gpuTimeUs") as f64 / 1e6),
            time_left(string(entry, "/idleEndsAt"), now),
            time_left(string(entry, "/lease/expiresAt"), now),
            format!("{} (pid {})", holder(entry), number(entry, "/owner/pid")),
        ]);
    }
    columns(&rows)
}

/// That there is no lease, and how to borrow a GPU.
pub fn none_attached(status: &Value) -> String {
    let way =
        way_to_one(status, |size| format!("%gpu attach {size} in a notebook, or sluice run --gpu {size} -- COMMAND"));
    format!("No GPU is attached in this workspace.\n{way}")
}

/// Who holds a lease, for people.
pub fn holder(entry: &Value) -> String {
    match string(entry, "/owner/label") {
        "" => string(entry, "/owner/kind").to_owned(),
        label => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_lease_is_one_row_with_the_time_to_each_limit() {
        let status = json!({"leases": [{
            "lease": {"deviceName": "soft-0", "serverName": "gpu-1", "milli": 500, "memoryBytes": 4i64 << 30,
                      "expiresAt": "1970-01-01T01:00:00.000Z"},
            "owner": {"kind": "process", "pid": 7, "label": "train.py"}, "usedMemoryBytes": 1 << 20,
            "idleEndsAt": "1970-01-01T00:20:00.000Z",
            "computePercent": 37.6, "gpuTimeUs": 1_500_000,
        }]});
        let text = table(&status, SystemTime::UNIX_EPOCH);
        let row = text.lines().nth(1).expect("a row");
        for part in [
            "soft-0 on gpu-1",
            "0.5",
            "1.0 MiB / 4.0 GiB",
            "38 % of 0.5",
            "1.5 s",
            "20 min",
            "1 h 00 min",
            "train.py (pid 7)",
        ] {
            assert!(row.contains(part), "{row}");
        }
    }

    #[test]
    fn without_a_lease_it_says_how_to_get_one() {
        let status = json!({"workspace": {"defaultAmount": "2G", "gpuPolicy": "ask"}, "leases": []});
        let text = table(&status, SystemTime::UNIX_EPOCH);
        assert!(text.contains("%gpu attach 2G in a notebook, or sluice run --gpu 2G"), "{text}");
    }
}
