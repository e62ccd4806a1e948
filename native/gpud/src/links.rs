//! Which of this host's devices stand in one link group: they reach each other directly over NVLink.

use crate::control::messages::DeviceReport;
use std::io::{self, Write};
use std::process::Command;

/// Names the link group of each device that has one. Without the management library, or where it does not tell, none
/// has: then nobody's devices are chosen by it.
pub fn find(devices: &mut [DeviceReport], library: &str) {
    if devices.len() > 1
        && let Ok(reached) = ask(devices, library)
    {
        name(devices, &reached);
    }
}

/// The library is asked by a process of its own: what goes wrong in it costs no device its place in the pool.
fn ask(devices: &[DeviceReport], library: &str) -> io::Result<Vec<Vec<bool>>> {
    let uuids = devices.iter().map(|device| &device.uuid);
    let output = Command::new("/proc/self/exe").args(["links", library]).args(uuids).output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Prints for each of these devices which ones it reaches, as JSON: the body of `gpud links`.
pub fn tell(library: &str, uuids: &[String]) -> io::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string(&sluice_backend::cuda::linked(library, uuids)?)?)
}

/// A group has the index of its first device as its name, so that it is the same one after a restart.
fn name(devices: &mut [DeviceReport], reached: &[Vec<bool>]) {
    let indices: Vec<u32> = devices.iter().map(|device| device.index).collect();
    for (device, first) in devices.iter_mut().zip(groups(reached)) {
        device.link_group = first.and_then(|first| indices.get(first)).map(u32::to_string);
    }
}

/// For each device the first one of its group, by place: devices that reach each other, both ways, are in one, and so
/// are those that reach each other over others of it. One that has no such partner is in none.
fn groups(reached: &[Vec<bool>]) -> Vec<Option<usize>> {
    let reaches = |from: usize, to: usize| reached[from].get(to).copied().unwrap_or(false);
    let both = |one: usize, other: usize| one != other && reaches(one, other) && reaches(other, one);
    let mut first: Vec<usize> = (0..reached.len()).collect();
    for one in 0..reached.len() {
        for other in (0..one).filter(|other| both(one, *other)) {
            let (kept, joined) = (first[one].min(first[other]), first[one].max(first[other]));
            first.iter_mut().filter(|first| **first == joined).for_each(|first| *first = kept);
        }
    }
    let partnered = |one: usize| (0..reached.len()).any(|other| both(one, other));
    first.into_iter().enumerate().map(|(one, first)| partnered(one).then_some(first)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::messages::DeviceProfile;
    use std::collections::BTreeMap;

    /// What is reached when these pairs are linked, both ways.
    fn linked(count: usize, pairs: &[(usize, usize)]) -> Vec<Vec<bool>> {
        let is = |one, other| pairs.contains(&(one, other)) || pairs.contains(&(other, one));
        (0..count).map(|one| (0..count).map(|other| is(one, other)).collect()).collect()
    }

    #[test]
    fn devices_that_reach_each_other_are_one_group_and_those_alone_are_in_none() {
        assert_eq!(groups(&linked(4, &[])), [None; 4]);
        assert_eq!(groups(&linked(4, &[(0, 1), (2, 3)])), [Some(0), Some(0), Some(2), Some(2)]);
        assert_eq!(groups(&linked(4, &[(1, 3)])), [None, Some(1), None, Some(1)]);
        let switched: Vec<_> = (0..8).flat_map(|one| (0..one).map(move |other| (one, other))).collect();
        assert_eq!(groups(&linked(8, &switched)), [Some(0); 8]);
        assert_eq!(groups(&[]), []);
    }

    #[test]
    fn a_group_is_one_also_where_some_reach_each_other_over_others() {
        assert_eq!(groups(&linked(5, &[(3, 4), (1, 2), (4, 1)])), [None, Some(1), Some(1), Some(1), Some(1)]);
        assert_eq!(groups(&linked(4, &[(0, 3), (2, 1), (3, 2)])), [Some(0); 4]);
    }

    #[test]
    fn a_device_is_not_its_own_partner_and_a_way_without_one_back_is_no_link() {
        assert_eq!(groups(&linked(2, &[(0, 0), (1, 1)])), [None, None]);
        assert_eq!(groups(&[vec![false, true], vec![false, false]]), [None, None]);
        assert_eq!(groups(&[vec![false, true], vec![]]), [None, None]);
    }

    #[test]
    fn a_group_has_the_index_of_its_first_device_as_its_name() {
        let mut devices: Vec<DeviceReport> = [2, 3, 5].map(device).into();
        name(&mut devices, &linked(3, &[(1, 2)]));
        let names = devices.iter().map(|device| device.link_group.as_deref());
        assert!(names.eq([None, Some("3"), Some("3")]));
        let reported = serde_json::to_value(&devices).expect("JSON");
        assert_eq!((reported[0].get("linkGroup"), &reported[1]["linkGroup"]), (None, &"3".into()));
    }

    fn device(index: u32) -> DeviceReport {
        DeviceReport {
            uuid: format!("GPU-{index}"),
            index,
            gpu_type: "h200".to_owned(),
            model: "NVIDIA H200".to_owned(),
            memory_bytes: 1 << 30,
            link_group: None,
            profile: DeviceProfile {
                name: "NVIDIA H200".to_owned(),
                compute_capability_major: 9,
                compute_capability_minor: 0,
                total_memory_bytes: 1 << 30,
                driver_version: 13000,
                driver: None,
                attributes: BTreeMap::new(),
            },
        }
    }
}
