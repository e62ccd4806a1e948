//! The recorded profile of the software GPU: what clients answer from before anything is attached is the same file.

use crate::types::DeviceProfile;
use serde_json::Value;

const RECORDED: &str = include_str!("../../client/profiles/soft.json");

/// The software GPU's profile, for a device with this much memory.
pub fn software_gpu(memory_bytes: u64) -> DeviceProfile {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap_or_default();
    let number = |name: &str| recorded.get(name).and_then(Value::as_i64).unwrap_or_default();
    let attributes = recorded.get("attributes").and_then(Value::as_object).into_iter().flatten();
    let attributes = attributes.filter_map(|(key, value)| Some((key.parse().ok()?, value.as_i64()? as i32)));
    DeviceProfile {
        name: recorded.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        compute_capability: (number("computeCapabilityMajor") as u32, number("computeCapabilityMinor") as u32),
        total_memory_bytes: memory_bytes,
        driver_version: number("driverVersion") as i32,
        driver: None,
        attributes: attributes.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_profile_is_whole_and_true() {
        let profile = software_gpu(8 << 30);
        assert_eq!(profile.compute_capability, (7, 5));
        assert!(!profile.name.is_empty() && profile.driver_version >= 12_000);
        // Compute capability, no mapped host memory, no addresses in common, no managed memory.
        let of = |number: u32| profile.attributes.get(&number).copied();
        assert_eq!([of(75), of(76), of(19), of(41), of(83)], [7, 5, 0, 0, 0].map(Some));
        assert_eq!(of(10), Some(32));
    }
}
