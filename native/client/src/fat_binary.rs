//! What of a fat binary a device can use: that alone travels, or is linked.

use crate::profile::Profile;
use sluice_protocol::fat_binary::{Entry, Kind, entries, extent};

/// Compute capability of the profile's device, e.g. 75.
fn capability(profile: &Profile) -> u32 {
    profile.device.compute_capability_major as u32 * 10 + profile.device.compute_capability_minor as u32
}

/// Machine code that runs on the device: that of its own generation, from its revision on.
fn machine_code<'a, 'b>(entries: &'a [Entry<'b>], profile: &Profile) -> Vec<&'a Entry<'b>> {
    let device = capability(profile);
    let runs =
        |entry: &&Entry<'_>| entry.kind == Kind::MachineCode && entry.arch / 10 == device / 10 && entry.arch <= device;
    if profile.is_software() { Vec::new() } else { entries.iter().filter(runs).collect() }
}

/// The newest PTX that the device can compile. The software GPU also takes newer PTX, as long as it knows the
/// instructions.
fn ptx<'a, 'b>(entries: &'a [Entry<'b>], profile: &Profile) -> Vec<&'a Entry<'b>> {
    let device = capability(profile);
    let all = || entries.iter().filter(|entry| entry.kind == Kind::Ptx);
    let newest = all().map(|entry| entry.arch).filter(|arch| *arch <= device).max();
    let arch = newest.or_else(|| all().map(|entry| entry.arch).min().filter(|_| profile.is_software()));
    all().filter(|entry| Some(entry.arch) == arch).collect()
}

/// A fat binary with the images alone that this device can use: machine code for it, else PTX for it to compile. One
/// that cannot be read comes back as it is; gpud says what is wrong with it.
pub fn for_device(image: &[u8], profile: &Profile) -> Vec<u8> {
    let Some(((header, _), entries)) = extent(image).zip(entries(image)) else { return image.to_vec() };
    let mut chosen = machine_code(&entries, profile);
    if chosen.is_empty() {
        chosen = ptx(&entries, profile);
    }
    let mut out = image[..header].to_vec();
    for entry in chosen {
        out.extend(entry.whole);
    }
    let bytes = (out.len() - header) as u64;
    out[8..16].copy_from_slice(&bytes.to_le_bytes());
    out
}

/// The PTX of a fat binary that this device can compile, as text; None when there is none.
pub fn ptx_for_device(image: &[u8], profile: &Profile) -> Option<Vec<u8>> {
    let entries = entries(image)?;
    let mut text = ptx(&entries, profile).first()?.unpacked()?.into_owned();
    text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_protocol::fat_binary::MAGIC;

    fn entry(kind: u16, arch: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[0..2].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&64u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes[28..32].copy_from_slice(&arch.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn fat(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut image = MAGIC.to_le_bytes().to_vec();
        image.extend(1u16.to_le_bytes());
        image.extend(16u16.to_le_bytes());
        image.extend((body.len() as u64).to_le_bytes());
        image.extend(body);
        image
    }

    fn profile(major: i32, minor: i32, gpu_type: &str) -> Profile {
        let mut profile = Profile { gpu_type: gpu_type.into(), device: Default::default(), ..Profile::load() };
        profile.device.compute_capability_major = major;
        profile.device.compute_capability_minor = minor;
        profile
    }

    fn sample() -> [Vec<u8>; 5] {
        [
            entry(2, 75, b"sm_75"),
            entry(2, 80, b"sm_80"),
            entry(2, 86, b"sm_86"),
            entry(1, 75, b"old"),
            entry(1, 90, b"new"),
        ]
    }

    #[test]
    fn machine_code_of_the_devices_generation_travels_alone() {
        let [sm_75, sm_80, sm_86, ..] = sample();
        let image = fat(&sample());
        assert_eq!(for_device(&image, &profile(7, 5, "t4")), fat(&[sm_75]));
        assert_eq!(for_device(&image, &profile(8, 0, "a100")), fat(std::slice::from_ref(&sm_80)));
        assert_eq!(for_device(&image, &profile(8, 9, "l4")), fat(&[sm_80, sm_86]));
    }

    #[test]
    fn ptx_travels_where_no_machine_code_fits() {
        let [.., old, new] = sample();
        let image = fat(&sample());
        assert_eq!(for_device(&image, &profile(9, 0, "h100")), fat(&[new]));
        assert_eq!(for_device(&image, &profile(7, 5, "soft")), fat(&[old]));
        assert_eq!(for_device(&fat(&sample()[..3]), &profile(9, 0, "h100")), fat(&[]));
    }

    #[test]
    fn the_software_gpu_gets_newer_ptx_when_there_is_no_other() {
        let [sm_75, .., new] = sample();
        assert_eq!(for_device(&fat(&[sm_75, new.clone()]), &profile(7, 5, "soft")), fat(&[new]));
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_is() {
        let mut image = fat(&sample());
        image.truncate(image.len() - 3);
        assert_eq!(for_device(&image, &profile(7, 5, "t4")), image);
    }
}
