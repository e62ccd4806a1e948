//! What is known of a GPU type before anything is attached.

use crate::device::MOST_DEVICES;
use sluice_protocol::handshake::DeviceProfile;
use sluice_transport::variables;
use std::path::PathBuf;

/// The software GPU, as its gpud reports it.
const SOFT: &str = include_str!("../profiles/soft.json");

/// Attributes of what is not served here, whatever the card could do for a program beside it: such a program asks before
/// it uses them, and takes another way when the answer is 0.
const NOT_HERE: &[i32] = &[
    // Kernels on a remote GPU cannot reach host memory: mapped, managed, pageable and registered memory.
    19, 83, 88, 89, 91, 92, 100, 101,
    // Handles for other processes and machines: of memory, of pools, fabric handles, events.
    103, 119, 125, 128,
    // Other devices on the card's bus: GPUDirect RDMA with its flushes and order, dma_buf.
    110, 116, 117, 118, 124, // The multicast of a switch.
    132,
];

/// The GPU type that this process is bound to, and its recorded profile.
#[derive(Clone, Debug)]
pub struct Profile {
    pub gpu_type: String,
    pub device: DeviceProfile,
    /// Which GPUs of its lease the program sees, in its order (`CUDA_VISIBLE_DEVICES`); None is all.
    pub visible: Option<Vec<usize>>,
    /// Largest block (x, y, z) and grid (x, y, z): every launch is checked against them.
    pub launch_limits: [u32; 6],
}

impl Profile {
    /// From the environment: `SLUICE_GPU_TYPE`, and `profile-<type>.json` in `SLUICE_RUNTIME_DIR`.
    pub fn load() -> Self {
        let gpu_type = variables::text("SLUICE_GPU_TYPE").unwrap_or("soft".into());
        let recorded = variables::var("SLUICE_RUNTIME_DIR")
            .map(|folder| PathBuf::from(folder).join(format!("profile-{gpu_type}.json")))
            .and_then(|path| std::fs::read(path).ok())
            .and_then(|text| serde_json::from_slice(&text).ok());
        let device = recorded.or_else(|| serde_json::from_str(SOFT).ok()).unwrap_or_default();
        let mut profile = Self { gpu_type, device, visible: None, launch_limits: [0; 6] };
        profile.visible = std::env::var("CUDA_VISIBLE_DEVICES").ok().map(|list| profile.named_by(&list));
        // CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X to MAX_GRID_DIM_Z.
        profile.launch_limits =
            [2, 3, 4, 5, 6, 7].map(|number| profile.attribute(number).unwrap_or(i32::MAX).max(1) as u32);
        profile
    }

    /// The GPUs that a list names, by number or by UUID. It is cut at the first entry that names none; a list that names
    /// one twice names none. A number is read as `strtoul` does: what follows its digits is ignored.
    fn named_by(&self, list: &str) -> Vec<usize> {
        let mut named = Vec::new();
        for entry in list.split(',').map(str::trim) {
            let digits = entry.strip_prefix('+').unwrap_or(entry);
            let digits = &digits[..digits.bytes().take_while(u8::is_ascii_digit).count()];
            let found = match digits.parse() {
                Ok(number) => Some(number).filter(|number| *number < MOST_DEVICES),
                Err(_) if !entry.starts_with("GPU-") => None,
                Err(_) => (0..MOST_DEVICES).find(|part| uuid_text(self.uuid(*part)).starts_with(entry)),
            };
            match found {
                Some(part) if named.contains(&part) => return Vec::new(),
                Some(part) => named.push(part),
                None => break,
            }
        }
        named
    }

    /// How many devices the program sees of a lease of `parts` GPUs.
    pub fn seen_of(&self, parts: usize) -> usize {
        match &self.visible {
            None => parts,
            Some(visible) => visible.iter().take_while(|part| **part < parts).count(),
        }
    }

    /// The GPU of the lease that the program sees as device `ordinal`.
    pub fn part(&self, ordinal: usize) -> usize {
        let visible = self.visible.as_ref().and_then(|visible| visible.get(ordinal));
        visible.copied().unwrap_or(ordinal)
    }

    /// Frameworks keep the first answer: it names the type and the place in the lease, not the GPU that is borrowed at
    /// the moment.
    pub fn uuid(&self, part: usize) -> [u8; 16] {
        let name = if part == 0 { self.gpu_type.clone() } else { format!("{} {part}", self.gpu_type) };
        let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&digest.as_ref()[..16]);
        uuid
    }

    /// Whether kernels run on a CPU: from PTX alone.
    pub fn is_software(&self) -> bool {
        self.gpu_type == "soft" || self.device.name.contains("Software GPU")
    }

    /// One device attribute; None when the number is not a CUdevice_attribute.
    pub fn attribute(&self, number: i32) -> Option<i32> {
        if NOT_HERE.contains(&number) {
            return Some(0);
        }
        match number {
            // Virtual memory management and memory pools work inside the client's arena.
            102 | 115 => Some(1),
            _ => match self.device.attributes.get(&number.to_string()) {
                Some(value) => Some(*value),
                None if (1..200).contains(&number) => Some(0),
                None => None,
            },
        }
    }
}

/// As NVIDIA's tools write it: `GPU-` and the bytes in groups.
pub fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::from("GPU");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    for group in [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]] {
        text.push('-');
        text.push_str(group);
    }
    text
}

/// Where a device sits in its server is not told: its place in the lease instead.
pub fn bus_id(part: usize) -> String {
    format!("0000:{part:02x}:00.0")
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
    fn the_list_of_visible_devices_is_cut_at_the_first_that_names_none() {
        let profile = Profile { gpu_type: "soft".into(), ..Profile::load() };
        let seen = |list: &str| profile.named_by(list);
        assert_eq!(
            (seen("1,0"), seen("0, 3,x,2"), seen("-1"), seen(""), seen("no")),
            (vec![1, 0], vec![0, 3], vec![], vec![], vec![])
        );
        assert_eq!((seen("1,1,0"), seen("0,2,0"), seen("1,x,1")), (vec![], vec![], vec![1]));
        assert_eq!((seen("0gpu"), seen("2gpus,1"), seen("+1")), (vec![0], vec![2, 1], vec![1]));
        assert_eq!(seen(&uuid_text(profile.uuid(2))[..12]), [2]);
        assert_eq!(seen("GPU-no"), [0usize; 0]);
        let profile = Profile { visible: Some(vec![1, 0]), ..profile };
        assert_eq!((profile.seen_of(1), profile.seen_of(2), profile.part(0)), (0, 2, 1));
    }

    #[test]
    fn what_is_refused_is_not_promised_by_an_attribute_of_the_card() {
        let mut profile = Profile { gpu_type: "h100".into(), ..Profile::load() };
        profile.device.attributes = (1..162).map(|number| (number.to_string(), 1)).collect();
        let refused = |symbol: &str| {
            let found = sluice_api::driver::functions().find(|function| function.symbol == symbol).expect(symbol);
            matches!(found.way, sluice_api::Way::Refused(_))
        };
        let promises: [(&[i32], &[&str]); 6] = [
            (&[83, 89, 101], &["cuMemAllocManaged", "cuMemPrefetchAsync"]),
            (&[88, 91, 92, 100], &["cuMemHostGetDevicePointer_v2"]),
            (&[103, 119, 128], &["cuMemExportToShareableHandle", "cuMemPoolExportToShareableHandle"]),
            (&[125], &["cuIpcGetEventHandle"]),
            (&[110, 116, 117, 118, 124], &["cuMemGetHandleForAddressRange", "cuFlushGPUDirectRDMAWrites"]),
            (&[132], &["cuMulticastCreate"]),
        ];
        for (attributes, functions) in promises {
            for symbol in functions {
                assert!(refused(symbol), "{symbol} is served: its attributes {attributes:?} may be the card's");
            }
            for number in attributes {
                assert_eq!(profile.attribute(*number), Some(0), "{number}, but {functions:?}");
            }
        }
        assert_eq!(profile.attribute(120), Some(1), "cluster launches are the card's");
        assert_eq!(profile.attribute(127), Some(1), "tensor maps are the card's");
    }

    #[test]
    fn the_compiled_in_profile_is_compute_capability_7_5() {
        let profile: sluice_protocol::handshake::DeviceProfile = serde_json::from_str(super::SOFT).expect("valid");
        assert_eq!((profile.compute_capability_major, profile.compute_capability_minor), (7, 5));
        assert_eq!(profile.attributes.get("75"), Some(&7));
        assert_eq!(profile.attributes.get("76"), Some(&5));
    }
}
