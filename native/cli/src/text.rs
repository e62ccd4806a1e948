//! What people read and type: the same words as `%gpu` uses.

use serde_json::Value;

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

fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// One line for a granted lease.
pub fn attached(answer: &Value) -> String {
    format!(
        "Attached {} GPU ({} on {}, {}).",
        amount(number(answer, "/lease/milli")),
        string(answer, "/lease/deviceName"),
        string(answer, "/lease/serverName"),
        memory(number(answer, "/lease/memoryBytes"))
    )
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
        text += &format!("\n  Fits now  --gpu {}", amount(fits));
    }
    if let Some(largest) = answer.pointer("/reason/largestMilli").and_then(Value::as_i64).filter(|most| *most > 0) {
        text += &format!("\n  Largest possible  {}", amount(largest));
    }
    text
}

/// `sluice gpu`.
pub fn overview(status: &Value) -> String {
    let gpu_type = string(status, "/workspace/gpuType");
    let leases = list(status, "/leases");
    let mut lines = Vec::new();
    if leases.is_empty() {
        let default = amount(number(status, "/workspace/defaultMilli"));
        lines.push(format!("GPU     none attached.  Borrow one: sluice run --gpu {default} -- COMMAND"));
    }
    for entry in leases {
        lines.push(format!(
            "GPU     {} of {} on {}, {}: {}",
            amount(number(entry, "/lease/milli")),
            string(entry, "/lease/deviceName"),
            string(entry, "/lease/serverName"),
            if entry.pointer("/lease/borrowed") == Some(&Value::Bool(true)) { "borrowed" } else { "guaranteed" },
            holder(entry)
        ));
        lines.push(format!(
            "Memory  {} of {}      Compute  {} % (last minute)",
            memory(number(entry, "/usedMemoryBytes")),
            memory(number(entry, "/lease/memoryBytes")),
            entry.pointer("/computePercent").and_then(Value::as_f64).unwrap_or_default().round()
        ));
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

fn holder(entry: &Value) -> String {
    match string(entry, "/owner/label") {
        "" => format!("process {}", number(entry, "/owner/pid")),
        label => label.to_owned(),
    }
}

/// `sluice smi`: a table of leases.
pub fn table(status: &Value) -> String {
    let header = ["Device", "Server", "Amount", "Memory", "Compute", "GPU time", "Holder", "Ends"].map(str::to_owned);
    let mut rows = vec![header];
    for entry in list(status, "/leases") {
        rows.push([
            string(entry, "/lease/deviceName").to_owned(),
            string(entry, "/lease/serverName").to_owned(),
            amount(number(entry, "/lease/milli")),
            format!("{} / {}", memory(number(entry, "/usedMemoryBytes")), memory(number(entry, "/lease/memoryBytes"))),
            format!("{} %", entry.pointer("/computePercent").and_then(Value::as_f64).unwrap_or_default().round()),
            format!("{:.1} s", number(entry, "/gpuTimeUs") as f64 / 1e6),
            holder(entry),
            string(entry, "/lease/expiresAt").to_owned(),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let line = |row: &[String; 8]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
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
    fn a_lease_is_one_row() {
        let status = json!({"leases": [{
            "lease": {"deviceName": "soft-0", "serverName": "gpu-1", "milli": 500, "memoryBytes": 4i64 << 30,
                      "expiresAt": "2026-01-01T00:00:00Z"},
            "owner": {"pid": 7, "label": "train.py"}, "usedMemoryBytes": 1 << 20, "computePercent": 37.6,
            "gpuTimeUs": 1_500_000,
        }]});
        let text = table(&status);
        let row = text.lines().nth(1).expect("a row");
        for part in ["soft-0", "gpu-1", "0.5", "1.0 MiB / 4.0 GiB", "38 %", "1.5 s", "train.py"] {
            assert!(row.contains(part), "{row}");
        }
    }

    #[test]
    fn a_refusal_says_what_would_fit() {
        let text = refused(&json!({"reason": {"message": "too much.", "fitsNowMilli": 500, "largestMilli": 1000}}));
        assert_eq!(text, "too much.\n  Fits now  --gpu 0.5\n  Largest possible  1");
    }
}
