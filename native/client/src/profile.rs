//! What is known of a GPU type before anything is attached.

use sluice_protocol::handshake::DeviceProfile;
use std::path::PathBuf;

/// The software GPU, as its gpud reports it.
const SOFT: &str = include_str!("../profiles/soft.json");

/// The GPU type that this process is bound to, and its recorded profile.
#[derive(Clone, Debug)]
pub struct Profile {
    pub gpu_type: String,
    pub device: DeviceProfile,
    /// The program asked not to see devices (`CUDA_VISIBLE_DEVICES` empty or -1).
    pub hidden: bool,
    /// Largest block (x, y, z) and grid (x, y, z): every launch is checked against them.
    pub launch_limits: [u32; 6],
}

impl Profile {
    /// From the environment: `SLUICE_GPU_TYPE`, and `profile-<type>.json` in `SLUICE_RUNTIME_DIR`.
    pub fn load() -> Self {
        let gpu_type = std::env::var("SLUICE_GPU_TYPE").ok().filter(|name| !name.is_empty()).unwrap_or("soft".into());
        let recorded = std::env::var_os("SLUICE_RUNTIME_DIR")
            .map(|folder| PathBuf::from(folder).join(format!("profile-{gpu_type}.json")))
            .and_then(|path| std::fs::read(path).ok())
            .and_then(|text| serde_json::from_slice(&text).ok());
        let device = recorded.or_else(|| serde_json::from_str(SOFT).ok()).unwrap_or_default();
        let mut profile = Self { gpu_type, device, hidden: hidden(), launch_limits: [0; 6] };
        // CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X to MAX_GRID_DIM_Z.
        profile.launch_limits =
            [2, 3, 4, 5, 6, 7].map(|number| profile.attribute(number).unwrap_or(i32::MAX).max(1) as u32);
        profile
    }

    /// Whether kernels run on a CPU: from PTX alone.
    pub fn is_software(&self) -> bool {
        self.gpu_type == "soft" || self.device.name.contains("Software GPU")
    }

    /// One device attribute; None when the number is not a CUdevice_attribute.
    pub fn attribute(&self, number: i32) -> Option<i32> {
        // Kernels on a remote GPU cannot reach host memory, whatever the device could do locally.
        const NOT_HERE: [i32; 12] = [19, 83, 88, 89, 91, 92, 100, 101, 103, 110, 116, 119];
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

fn hidden() -> bool {
    match std::env::var("CUDA_VISIBLE_DEVICES") {
        Err(_) => false,
        // One device: the list is cut at the first entry that names none.
        Ok(list) => {
            let first = list.split(',').next().unwrap_or("").trim();
            !(first == "0" || first.starts_with("GPU-"))
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_compiled_in_profile_is_compute_capability_7_5() {
        let profile: sluice_protocol::handshake::DeviceProfile = serde_json::from_str(super::SOFT).expect("valid");
        assert_eq!((profile.compute_capability_major, profile.compute_capability_minor), (7, 5));
        assert_eq!(profile.attributes.get("75"), Some(&7));
        assert_eq!(profile.attributes.get("76"), Some(&5));
    }
}
