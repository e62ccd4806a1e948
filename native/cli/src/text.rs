//! What people read and type: the same words as `%gpu` uses.

use crate::smi::holder;
use serde_json::Value;
use std::time::SystemTime;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Seconds from `90`, `90s`, `2m`, `2min`, `1h`, `1h30m`.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no length of time; write 90s, 2m or 1h30m");
    let mut total = 0u64;
    let mut rest = text.trim();
    let mut last_unit = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest.get(..digits).unwrap_or_default().parse().map_err(|_| wrong())?;
        let after = rest.get(digits..).unwrap_or_default();
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let unit = match after.get(..letters).unwrap_or_default() {
            "" | "s" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            _ => return Err(wrong()),
        };
        if unit >= last_unit {
            return Err(wrong());
        }
        last_unit = unit;
        total = number.checked_mul(unit).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = after.get(letters..).unwrap_or_default();
    }
    if last_unit == u64::MAX { Err(wrong()) } else { Ok(total) }
}

/// 500 is `0.5`, 2000 is `2`.
pub fn amount(milli: i64) -> String {
    let text = format!("{}.{:03}", milli / 1000, milli % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An amount beside others in a sum: 1000 is `1.0`.
fn quota(milli: i64) -> String {
    let text = amount(milli);
    if text.contains('.') { text } else { text + ".0" }
}

/// Bytes in the unit that reads best.
pub fn memory(bytes: i64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    for unit in ["KiB", "MiB", "GiB"] {
        if size < 1000.0 {
            return format!("{size:.1} {unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

/// A running time: `0:14`.
pub fn clock(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn ordinal(number: i64) -> String {
    let suffix = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

/// A text field, or nothing.
pub fn string<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number, or 0.
pub fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// A list, or nothing.
pub fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// One line for a granted lease.
pub fn attached(answer: &Value) -> String {
    let milli = lease_milli(&answer["lease"]);
    let each = if milli > 1000 { " each" } else { "" };
    format!(
        "Attached {} GPU{} ({}, {}{each}).",
        amount(milli),
        if milli > 1000 { "s" } else { "" },
        places(&answer["lease"]),
        memory(number(answer, "/lease/memoryBytes"))
    )
}

/// What a lease has in all.
pub fn lease_milli(lease: &Value) -> i64 {
    match list(lease, "/devices") {
        [] => number(lease, "/milli"),
        devices => devices.iter().map(|device| number(device, "/milli")).sum(),
    }
}

/// What a lease has of memory in all.
pub fn lease_memory(lease: &Value) -> i64 {
    match list(lease, "/devices") {
        [] => number(lease, "/memoryBytes"),
        devices => devices.iter().map(|device| number(device, "/memoryBytes")).sum(),
    }
}

/// Where a lease is: `soft-0 on gpu-1`, of several GPUs `soft-0 and soft-1 on gpu-1`.
pub fn places(lease: &Value) -> String {
    let devices = match list(lease, "/devices") {
        [] => std::slice::from_ref(lease),
        devices => devices,
    };
    let mut servers: Vec<(&str, Vec<&str>)> = Vec::new();
    for device in devices {
        let (name, server) = (string(device, "/deviceName"), string(device, "/serverName"));
        match servers.iter_mut().find(|(other, _)| *other == server) {
            Some((_, names)) => names.push(name),
            None => servers.push((server, vec![name])),
        }
    }
    let place = |(server, names): &(&str, Vec<&str>)| format!("{} on {server}", names.join(" and "));
    servers.iter().map(place).collect::<Vec<_>>().join(", ")
}

/// One line for the queue.
pub fn queued(answer: &Value, waited: u64, wait: u64) -> String {
    format!(
        "Queued {} of {} for {} {}, {} of {}: {}",
        ordinal(number(answer, "/position")),
        number(answer, "/of"),
        amount(number(answer, "/milli")),
        string(answer, "/gpuType"),
        clock(waited),
        clock(wait),
        string(answer, "/reason/message")
    )
}

/// Why there is no GPU, and what to do.
pub fn refused(answer: &Value) -> String {
    let mut text = match string(answer, "/reason/message") {
        "" => "the GPU was not granted".to_owned(),
        message => message.to_owned(),
    };
    if let Some(fits) = answer.pointer("/reason/fitsNowMilli").and_then(Value::as_i64).filter(|fits| *fits > 0) {
        let gpu_type = string(answer, "/reason/gpuType");
        let of_type = if gpu_type.is_empty() { String::new() } else { format!(" --type {gpu_type}") };
        text += &format!("\n  Fits now  --gpu {}{of_type}", amount(fits));
    }
    if let Some(largest) = answer.pointer("/reason/largestMilli").and_then(Value::as_i64).filter(|most| *most > 0) {
        text += &format!("\n  Largest possible  {}", amount(largest));
    }
    text
}

/// How one comes to a GPU here, by the workspace's policy; `command` is what borrows an amount.
pub fn way_to_one(status: &Value, command: impl Fn(&str) -> String) -> String {
    let size = string(status, "/workspace/defaultAmount");
    match string(status, "/workspace/gpuPolicy") {
        "never" => "This workspace borrows none (GPU policy: never)".to_owned(),
        "first-use" => format!("The first GPU work attaches {size} by itself, or now: {}", command(size)),
        _ => format!("Borrow one: {}", command(size)),
    }
}

/// `sluice gpu`.
pub fn overview(status: &Value) -> String {
    let gpu_type = string(status, "/workspace/gpuType");
    let leases = list(status, "/leases");
    let mut lines = Vec::new();
    if leases.is_empty() {
        let way = way_to_one(status, |size| format!("sluice run --gpu {size} -- COMMAND"));
        lines.push(format!("GPU     none attached.  {way}"));
    }
    for entry in leases {
        lines.push(format!(
            "GPU     {} of {}, {}: {}",
            amount(lease_milli(&entry["lease"])),
            places(&entry["lease"]),
            if entry.pointer("/lease/borrowed") == Some(&Value::Bool(true)) { "borrowed" } else { "guaranteed" },
            holder(entry)
        ));
        lines.push(format!(
            "Memory  {} of {}      Compute  {} % (last minute)",
            memory(number(entry, "/usedMemoryBytes")),
            memory(lease_memory(&entry["lease"])),
            entry.pointer("/computePercent").and_then(Value::as_f64).unwrap_or_default().round()
        ));
        lines.extend(progress(&entry["running"]).map(|working| format!("Running {working}")));
    }
    for row in list(status, "/team/quotas").iter().filter(|row| string(row, "/gpuType") == gpu_type) {
        lines.push(format!(
            "Team    {}: {} of {} {gpu_type} in use ({} guaranteed)",
            string(status, "/team/name"),
            quota(number(row, "/usedMilli")),
            quota(number(row, "/limitMilli")),
            quota(number(row, "/guaranteedMilli"))
        ));
    }
    for row in list(status, "/free") {
        lines.push(format!(
            "Free    {} {}, granted at once",
            amount(number(row, "/grantedAtOnceMilli")),
            string(row, "/gpuType")
        ));
    }
    lines.join("\n")
}

/// How far a kernel has come: `kernel matmul: 1,204 of 16,384 blocks`, `kernel matmul` where the device does not tell;
/// nothing when none runs long.
fn progress(running: &Value) -> Option<String> {
    let kernel = running.get("kernel")?.as_str()?;
    // "a graph with matmul" is no kernel's name.
    let what = if kernel.contains(' ') { kernel.to_owned() } else { format!("kernel {kernel}") };
    match number(running, "/blocks") {
        0 => Some(what),
        blocks => {
            Some(format!("{what}: {} of {} blocks", thousands(number(running, "/blocksDone")), thousands(blocks)))
        }
    }
}

/// 16384 is `16,384`.
fn thousands(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rows in columns of their own width.
pub fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|column| widest(column).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// From now until an instant (ISO 8601); None when it cannot be read.
pub fn seconds_left(until: &str, now: SystemTime) -> Option<i64> {
    let until = OffsetDateTime::parse(until, &Rfc3339).ok()?;
    Some((until - OffsetDateTime::from(now)).whole_seconds().max(0))
}

/// From now until an instant (ISO 8601): `48 min`, `1 h 05 min`; empty when it cannot be read.
pub fn time_left(until: &str, now: SystemTime) -> String {
    let Some(seconds) = seconds_left(until, now) else { return String::new() };
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes if minutes < 60 => format!("{minutes} min"),
        minutes => format!("{} h {:02} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lengths_of_time_are_read() {
        assert_eq!(parse_duration("90"), Ok(90));
        assert_eq!(parse_duration("2m"), Ok(120));
        assert_eq!(parse_duration("1h30m"), Ok(5400));
        assert_eq!(parse_duration("0"), Ok(0));
        for text in ["", "m", "1d", "1m1h", "-5", "1.5h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_and_memory_read_as_everywhere() {
        assert_eq!((amount(500), amount(2000), amount(1250)), ("0.5".to_owned(), "2".to_owned(), "1.25".to_owned()));
        assert_eq!((memory(4 << 30), memory(64 << 20), memory(5)), ("4.0 GiB".into(), "64.0 MiB".into(), "5 B".into()));
    }

    #[test]
    fn the_time_that_is_left_has_one_unit() {
        let left = |until| time_left(until, SystemTime::UNIX_EPOCH);
        assert_eq!(left("1970-01-01T00:00:30Z"), "30 s");
        assert_eq!(left("1970-01-01T00:48:59.000Z"), "48 min");
        assert_eq!(left("1970-01-01T01:05:00Z"), "1 h 05 min");
        assert_eq!(left("1969-12-31T23:00:00Z"), "0 s");
        assert_eq!(left("soon"), "");
    }

    #[test]
    fn a_kernel_that_runs_long_is_told_with_its_blocks() {
        let running = json!({"kernel": "matmul", "blocksDone": 204, "blocks": 16_384});
        assert_eq!(progress(&running).as_deref(), Some("kernel matmul: 204 of 16,384 blocks"));
        let told = |kernel: &str| progress(&json!({"kernel": kernel, "blocksDone": 0, "blocks": 0}));
        assert_eq!(told("matmul").as_deref(), Some("kernel matmul"));
        assert_eq!(told("a graph with matmul").as_deref(), Some("a graph with matmul"));
        assert_eq!(progress(&Value::Null), None);
        assert_eq!(
            (thousands(999), thousands(1_000), thousands(1_234_567)),
            ("999".into(), "1,000".into(), "1,234,567".into())
        );
    }

    #[test]
    fn without_a_gpu_the_workspaces_own_amount_is_suggested() {
        let first = |policy: &str| {
            let workspace = json!({"gpuType": "soft", "defaultAmount": "2G", "defaultMilli": 250, "gpuPolicy": policy});
            overview(&json!({ "workspace": workspace }))
        };
        assert_eq!(first("ask"), "GPU     none attached.  Borrow one: sluice run --gpu 2G -- COMMAND");
        assert_eq!(
            first("first-use"),
            "GPU     none attached.  The first GPU work attaches 2G by itself, or now: sluice run --gpu 2G -- COMMAND"
        );
        assert_eq!(first("never"), "GPU     none attached.  This workspace borrows none (GPU policy: never)");
    }

    #[test]
    fn a_refusal_says_what_would_fit() {
        let text = refused(&json!({"reason": {"message": "too much.", "fitsNowMilli": 500, "largestMilli": 1000}}));
        assert_eq!(text, "too much.\n  Fits now  --gpu 0.5\n  Largest possible  1");
        let text = refused(&json!({"reason": {"message": "too much.", "fitsNowMilli": 500, "gpuType": "soft"}}));
        assert_eq!(text, "too much.\n  Fits now  --gpu 0.5 --type soft");
    }
}
