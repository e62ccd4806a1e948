//! The driver's devices and their recorded profiles.

use super::loader::{Driver, Uuid};
use crate::error::{CudaError, CudaResult, code};
use crate::types::{DeviceDescription, DeviceProfile};
use std::ffi::CStr;

/// Attributes that are asked for: all that CUDA 13 numbers.
const ATTRIBUTES: std::ops::RangeInclusive<u32> = 1..=148;
/// Attributes of what a program elsewhere cannot use: its own memory mapped into the device (CAN_MAP_HOST_MEMORY,
/// UNIFIED_ADDRESSING, by which XLA decides whether a kernel may wait for a word in the program's memory, MANAGED_MEMORY, PAGEABLE_MEMORY_ACCESS, CONCURRENT_MANAGED_ACCESS, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
/// PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST); memory by handles of other
/// processes, of graphics or of the fabric (HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, WIN32_HANDLE and WIN32_KMT_HANDLE,
/// TIMELINE_SEMAPHORE_INTEROP, MEMPOOL_SUPPORTED_HANDLE_TYPES, IPC_EVENT, HANDLE_TYPE_FABRIC, MULTICAST, D3D12_CIG,
/// VULKAN_CIG) or for other devices (GPU_DIRECT_RDMA_WITH_CUDA_VMM, GPU_DIRECT_RDMA, DMA_BUF); arrays in pieces
/// (SPARSE_CUDA_ARRAY, DEFERRED_MAPPING_CUDA_ARRAY); decompression
/// (MEM_DECOMPRESS_ALGORITHM_MASK and _MAXIMUM_LENGTH); and memory of the host made by the device's calls (HOST_NUMA_
/// and HOST_: VIRTUAL_MEMORY_MANAGEMENT, MEMORY_POOLS, MULTINODE_IPC, ALLOC_DMA_BUF).
const NOT_LENT: [u32; 31] = [
    19, 41, 83, 88, 89, 91, 100, 101, 103, 104, 105, 110, 112, 114, 116, 119, 121, 124, 125, 128, 132, 135, 136, 137,
    138, 141, 142, 143, 144, 145, 146,
];
/// What contexts and libraries take of a device besides what programs ask for; not lent.
const RESERVE_BYTES: u64 = 1 << 30;

/// The devices of the driver in this library ([`super::DRIVER`] on most hosts).
pub fn describe(library: &str) -> CudaResult<Vec<DeviceDescription>> {
    let driver = Driver::open(library)?;
    let mut count = 0;
    // SAFETY: the driver writes one int.
    driver.check(unsafe { (driver.device_count)(&mut count) })?;
    (0..count).map(|index| device(driver, index)).collect()
}

/// The number of the device with this UUID.
pub fn find(driver: &Driver, uuid: &str) -> CudaResult<i32> {
    let mut count = 0;
    // SAFETY: the driver writes one int.
    driver.check(unsafe { (driver.device_count)(&mut count) })?;
    for index in 0..count {
        let mut number = 0;
        // SAFETY: the driver writes one int.
        driver.check(unsafe { (driver.device_get)(&mut number, index) })?;
        if uuid_of(driver, number)? == uuid {
            return Ok(number);
        }
    }
    Err(CudaError::new(code::INVALID_DEVICE, format!("{uuid} is not on this host any more")))
}

fn uuid_of(driver: &Driver, number: i32) -> CudaResult<String> {
    let mut uuid = Uuid::default();
    // SAFETY: the driver writes 16 bytes.
    driver.check(unsafe { (driver.device_uuid)(&mut uuid, number) })?;
    let hex: String = uuid.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    Ok(format!("GPU-{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)))
}

fn device(driver: &Driver, index: i32) -> CudaResult<DeviceDescription> {
    let (mut number, mut memory, mut version) = (0, 0, 0);
    let mut name = [0; 128];
    // SAFETY: every pointer refers to a live local of the type that cuda.h names; the name's length is given.
    unsafe {
        driver.check((driver.device_get)(&mut number, index))?;
        driver.check((driver.device_memory)(&mut memory, number))?;
        driver.check((driver.driver_version)(&mut version))?;
        driver.check((driver.device_name)(name.as_mut_ptr(), name.len() as i32, number))?;
    }
    // SAFETY: the driver wrote a NUL-terminated string into the array.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    let attribute = |attribute: u32| {
        let mut value = 0;
        // SAFETY: the driver writes one int.
        (unsafe { (driver.device_attribute)(&mut value, attribute as i32, number) } == 0).then_some(value)
    };
    let mut attributes: std::collections::BTreeMap<u32, i32> =
        ATTRIBUTES.filter_map(|number| Some((number, attribute(number)?))).collect();
    attributes.iter_mut().filter(|(number, _)| NOT_LENT.contains(number)).for_each(|(_, value)| *value = 0);
    Ok(DeviceDescription {
        uuid: uuid_of(driver, number)?,
        index: index as u32,
        gpu_type: type_of(&name),
        model: name.clone(),
        memory_bytes: (memory as u64).saturating_sub(RESERVE_BYTES),
        profile: DeviceProfile {
            name,
            compute_capability: (
                attributes.get(&75).copied().unwrap_or_default() as u32,
                attributes.get(&76).copied().unwrap_or_default() as u32,
            ),
            total_memory_bytes: memory as u64,
            driver_version: version,
            driver: driver_release(),
            attributes,
        },
    })
}

/// The version of the kernel's part of the driver, which the library must be of too; None where there is none.
fn driver_release() -> Option<String> {
    let text = std::fs::read_to_string("/sys/module/nvidia/version").ok()?;
    release(&text)
}

fn release(text: &str) -> Option<String> {
    let version = text.trim();
    let parts = version.split('.').collect::<Vec<_>>();
    let number = |part: &&str| !part.is_empty() && part.len() <= 5 && part.bytes().all(|byte| byte.is_ascii_digit());
    (parts.len() <= 3 && parts.iter().all(number)).then(|| version.to_owned())
}

/// `NVIDIA H200 NVL` is the type `h200`: the first word with a digit, else the whole name.
fn type_of(name: &str) -> String {
    let words = name.split([' ', '-']).filter(|word| word.chars().any(|c| c.is_ascii_digit()));
    let word = words.into_iter().find(|word| !word.ends_with("GB")).unwrap_or(name);
    word.to_ascii_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::{release, type_of};

    #[test]
    fn a_driver_is_told_by_its_numbers() {
        assert_eq!(release("580.65.06\n").as_deref(), Some("580.65.06"));
        assert_eq!(release("575.57\n").as_deref(), Some("575.57"));
        assert_eq!(["", "unknown", "580.65.06.1", "580..1"].map(release), [const { None }; 4]);
    }

    #[test]
    fn a_model_has_the_type_that_people_say() {
        for (name, short) in [
            ("NVIDIA H200", "h200"),
            ("NVIDIA A100-SXM4-80GB", "a100"),
            ("Tesla V100-SXM2-16GB", "v100"),
            ("NVIDIA GeForce RTX 4090", "4090"),
        ] {
            assert_eq!(type_of(name), short);
        }
    }
}
