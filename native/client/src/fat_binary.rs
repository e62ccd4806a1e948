//! Fat binaries, as nvcc embeds them: images of one program for several devices. Only what a device can use travels.
//!
//! A header { magic u32, version u16, header bytes u16, body bytes u64 } is followed by entries, each with a header of
//! its own { kind u16, …, header bytes u32 at 4, payload bytes u64 at 8, architecture u32 at 28 }.

use crate::profile::Profile;

/// First word of a fat binary.
pub const MAGIC: u32 = 0xba55_ed50;
const HEADER: usize = 16;
const KIND_PTX: u16 = 1;
const KIND_MACHINE_CODE: u16 = 2;

/// One image, with its header.
struct Entry<'a> {
    kind: u16,
    /// Compute capability, e.g. 75.
    arch: u32,
    bytes: &'a [u8],
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn entries(mut body: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut found = Vec::new();
    while body.len() >= 32 {
        let kind = u16::from_le_bytes(number(body, 0)?);
        let header = u32::from_le_bytes(number(body, 4)?) as usize;
        let payload = usize::try_from(u64::from_le_bytes(number(body, 8)?)).ok()?;
        let (bytes, rest) = body.split_at_checked(header.checked_add(payload)?)?;
        found.push(Entry { kind, arch: u32::from_le_bytes(number(body, 28)?), bytes });
        body = rest;
    }
    Some(found)
}

/// A fat binary with the images alone that this device can use: machine code for it, else PTX for it to compile. One
/// that cannot be read comes back as it is; gpud says what is wrong with it.
pub fn for_device(image: &[u8], profile: &Profile) -> Vec<u8> {
    let header = number(image, 6).map_or(HEADER, |bytes| usize::from(u16::from_le_bytes(bytes)).max(HEADER));
    let Some(entries) = image.get(header..).and_then(entries) else { return image.to_vec() };
    let major = profile.device.compute_capability_major as u32;
    let device = major * 10 + profile.device.compute_capability_minor as u32;
    // Machine code runs on its own generation, from its revision on.
    let runs = |entry: &&Entry<'_>| {
        entry.kind == KIND_MACHINE_CODE && entry.arch / 10 == major && entry.arch <= device && !profile.is_software()
    };
    let mut chosen: Vec<&Entry<'_>> = entries.iter().filter(runs).collect();
    if chosen.is_empty() {
        let ptx = || entries.iter().filter(|entry| entry.kind == KIND_PTX);
        // The software GPU also takes newer PTX, as long as it knows the instructions.
        let newest = ptx().map(|entry| entry.arch).filter(|arch| *arch <= device).max();
        let arch = newest.or_else(|| ptx().map(|entry| entry.arch).min().filter(|_| profile.is_software()));
        chosen.extend(ptx().filter(|entry| Some(entry.arch) == arch));
    }
    let mut out = image[..header].to_vec();
    for entry in chosen {
        out.extend(entry.bytes);
    }
    let bytes = (out.len() - header) as u64;
    out[8..HEADER].copy_from_slice(&bytes.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

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
