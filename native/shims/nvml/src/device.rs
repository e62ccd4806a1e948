//! The devices of the lease by index, UUID or PCI bus id, and what their recorded profile says.

use crate::client::{Device, FIRST, count as devices, device, number, text};
use crate::guard;
use crate::output::{field, put, put_text};
use crate::status::{ARGUMENT_VERSION_MISMATCH, Answer, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlReturn};
use serde_json::Value;
use std::ffi::{CStr, c_char};

/// `nvmlPciInfoExt_v1_t` with its version.
const PCI_EXT_V1: u32 = size_of::<PciInfoExt>() as u32 | 1 << 24;
/// Vendor NVIDIA; the device part of the number is not recorded.
const PCI_VENDOR: u32 = 0x10de;

/// The handle is a device's.
pub fn check(handle: usize) -> Answer {
    device(handle).map(drop)
}

/// The handle of the first device that is meant.
fn find(is_it: impl Fn(&Device) -> bool) -> Result<usize, NvmlReturn> {
    for handle in FIRST..FIRST + devices()? {
        if is_it(&device(handle)?) {
            return Ok(handle);
        }
    }
    Err(NOT_FOUND)
}

/// An attribute of the profile, by its CUdevice_attribute number.
fn attribute(view: &Value, number: u32) -> Option<u32> {
    let value = view.pointer("/device/attributes")?.get(number.to_string())?;
    value.as_u64().filter(|value| *value > 0).and_then(|value| u32::try_from(value).ok())
}

/// # Safety
/// `value` is null or ends with NUL.
unsafe fn read<'a>(value: *const c_char) -> Result<&'a str, NvmlReturn> {
    if value.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the caller answers for the NUL.
    unsafe { CStr::from_ptr(value) }.to_str().map_err(|_| INVALID_ARGUMENT)
}

/// `00000000:00:00.0`: NVML writes the domain with eight digits, CUDA with four.
fn long_bus_id(view: &Value) -> String {
    format!("0000{}", text(view, "/device/busId"))
}

/// Domain, bus and device of a bus id, however many digits it is written with.
fn bus_parts(id: &str) -> Option<(u32, u32, u32)> {
    let mut parts = id.rsplit(':');
    let device = parts.next()?.split('.').next()?;
    let (bus, domain) = (parts.next()?, parts.next().unwrap_or("0"));
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    Some((hex(domain)?, hex(bus)?, hex(device)?))
}

// -- Count and handles

macro_rules! aliases {
    ($($doc:literal $($name:ident),+ = $parameters:tt $body:block)*) => {$($(
        #[doc = $doc]
        ///
        /// # Safety
        /// As NVML's: outputs and texts are null or valid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name $parameters -> NvmlReturn {
            guard(|| $body)
        }
    )+)*};
}

aliases! {
    "The lease's devices, whatever CUDA_VISIBLE_DEVICES says: NVML does not know it."
    nvmlDeviceGetCount, nvmlDeviceGetCount_v2 = (count: *mut u32) {
        // SAFETY: the caller's output.
        unsafe { put(count, devices()? as u32) }
    }
    "The handle by index."
    nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2 = (index: u32, handle: *mut usize) {
        let found = FIRST + index as usize;
        check(found)?;
        // SAFETY: the caller's output.
        unsafe { put(handle, found) }
    }
    "The handle by UUID, as text."
    nvmlDeviceGetHandleByUUID = (uuid: *const c_char, handle: *mut usize) {
        // SAFETY: the caller's text.
        let uuid = unsafe { read(uuid)? };
        let found = find(|device| text(device, "/device/uuid") == uuid)?;
        // SAFETY: the caller's output.
        unsafe { put(handle, found) }
    }
    "The handle by PCI bus id, with four or eight digits of domain, or none."
    nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2 = (id: *const c_char, handle: *mut usize) {
        // SAFETY: the caller's text.
        let asked = bus_parts(unsafe { read(id)? }).ok_or(INVALID_ARGUMENT)?;
        let found = find(|device| bus_parts(text(device, "/device/busId")) == Some(asked))?;
        // SAFETY: the caller's output.
        unsafe { put(handle, found) }
    }
    "The index, which is the minor number too."
    nvmlDeviceGetIndex, nvmlDeviceGetMinorNumber = (handle: usize, index: *mut u32) {
        check(handle)?;
        // SAFETY: the caller's output.
        unsafe { put(index, (handle - FIRST) as u32) }
    }
    "The name of the device, as `cuDeviceGetName`."
    nvmlDeviceGetName = (handle: usize, name: *mut c_char, length: u32) {
        // SAFETY: the caller's buffer.
        unsafe { put_text(name, length, text(&*device(handle)?, "/device/name")) }
    }
    "The UUID, as `cuDeviceGetUuid` in text."
    nvmlDeviceGetUUID = (handle: usize, uuid: *mut c_char, length: u32) {
        // SAFETY: the caller's buffer.
        unsafe { put_text(uuid, length, text(&*device(handle)?, "/device/uuid")) }
    }
    "nvmlBrandType_t: NVIDIA (14), or unknown (0) for the software GPU."
    nvmlDeviceGetBrand = (handle: usize, brand: *mut u32) {
        let known = text(&*device(handle)?, "/device/name").starts_with("NVIDIA");
        // SAFETY: the caller's output.
        unsafe { put(brand, if known { 14 } else { 0 }) }
    }
}

// -- What the profile says

/// `nvmlDeviceArchitecture_t` of a compute capability.
fn architecture(major: u64, minor: u64) -> u32 {
    match (major, minor) {
        (5, _) => 3,
        (6, _) => 4,
        (7, 5..) => 6,
        (7, _) => 5,
        (8, 9) => 8,
        (8, _) => 7,
        (9, _) => 9,
        (10..=12, _) => 10,
        _ => u32::MAX,
    }
}

aliases! {
    "The compute capability."
    nvmlDeviceGetCudaComputeCapability = (handle: usize, major: *mut i32, minor: *mut i32) {
        let view = device(handle)?;
        // SAFETY: the caller's outputs.
        unsafe {
            put(major, number(&view, "/device/computeCapabilityMajor") as i32)?;
            put(minor, number(&view, "/device/computeCapabilityMinor") as i32)
        }
    }
    "nvmlDeviceArchitecture_t, from the compute capability."
    nvmlDeviceGetArchitecture = (handle: usize, architecture_out: *mut u32) {
        let view = device(handle)?;
        let (major, minor) =
            (number(&view, "/device/computeCapabilityMajor"), number(&view, "/device/computeCapabilityMinor"));
        // SAFETY: the caller's output.
        unsafe { put(architecture_out, architecture(major, minor)) }
    }
    "The highest clock, MHz, as far as the profile knows it: graphics and SM (0, 1), memory (2)."
    nvmlDeviceGetMaxClockInfo = (handle: usize, kind: u32, clock: *mut u32) {
        let known = match kind {
            0 | 1 => attribute(&*device(handle)?, 13),
            2 => attribute(&*device(handle)?, 36),
            _ => None,
        };
        // SAFETY: the caller's output.
        unsafe { put(clock, known.ok_or(NOT_SUPPORTED)? / 1000) }
    }
    "The width of the memory's bus, bits."
    nvmlDeviceGetMemoryBusWidth = (handle: usize, bits: *mut u32) {
        let known = attribute(&*device(handle)?, 37).ok_or(NOT_SUPPORTED)?;
        // SAFETY: the caller's output.
        unsafe { put(bits, known) }
    }
    "Compute mode (default), display (none), persistence (on: gpud holds the device), boards with several GPUs (no), \
     virtualisation (none): each as its number."
    nvmlDeviceGetComputeMode, nvmlDeviceGetDisplayMode, nvmlDeviceGetDisplayActive, nvmlDeviceGetMultiGpuBoard, nvmlDeviceGetVirtualizationMode, nvmlDeviceGetMaxMigDeviceCount, nvmlDeviceIsMigDeviceHandle = (handle: usize, value: *mut u32) {
        check(handle)?;
        // SAFETY: the caller's output.
        unsafe { put(value, 0) }
    }
    "Persistence mode: gpud keeps the device open."
    nvmlDeviceGetPersistenceMode = (handle: usize, value: *mut u32) {
        check(handle)?;
        // SAFETY: the caller's output.
        unsafe { put(value, 1) }
    }
    "A lease has no MIG mode of its own."
    nvmlDeviceGetMigMode = (handle: usize, _current: *mut u32, _pending: *mut u32) {
        check(handle)?;
        Err(NOT_SUPPORTED)
    }
    "A device is on its own board; of two it is not told."
    nvmlDeviceOnSameBoard = (first: usize, second: usize, same: *mut i32) {
        check(first)?;
        check(second)?;
        // SAFETY: the caller's output.
        unsafe { put(same, i32::from(first == second)) }
    }
}

// -- PCI

/// `nvmlPciInfo_t`.
#[repr(C)]
pub struct PciInfo {
    bus_id_legacy: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    pci_device_id: u32,
    pci_subsystem_id: u32,
    bus_id: [u8; 32],
}

/// `nvmlPciInfoExt_v1_t`.
#[repr(C)]
pub struct PciInfoExt {
    version: u32,
    domain: u32,
    bus: u32,
    device: u32,
    pci_device_id: u32,
    pci_subsystem_id: u32,
    base_class: u32,
    sub_class: u32,
    bus_id: [u8; 32],
}

/// The same before the long bus id: its first 52 bytes, and 16 bytes of room at the end.
#[repr(C)]
pub struct PciInfoV2 {
    bus_id: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    pci_device_id: u32,
    pci_subsystem_id: u32,
    reserved: [u32; 4],
}

/// The first form of all.
#[repr(C)]
pub struct PciInfoV1 {
    bus_id: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    pci_device_id: u32,
}

/// Where the device sits in its server is not told: the bus id is the one that `cuDeviceGetPCIBusId` gives.
fn pci_info(handle: usize) -> Result<PciInfo, NvmlReturn> {
    let view = device(handle)?;
    let id = text(&view, "/device/busId");
    let (domain, bus, device) = bus_parts(id).ok_or(NOT_SUPPORTED)?;
    Ok(PciInfo {
        bus_id_legacy: field(id),
        domain,
        bus,
        device,
        pci_device_id: PCI_VENDOR,
        pci_subsystem_id: 0,
        bus_id: field(&long_bus_id(&view)),
    })
}

aliases! {
    "The PCI ids, with the short bus id alone."
    nvmlDeviceGetPciInfo = (handle: usize, info: *mut PciInfoV1) {
        let PciInfo { bus_id_legacy: bus_id, domain, bus, device, pci_device_id, .. } = pci_info(handle)?;
        // SAFETY: the caller's output.
        unsafe { put(info, PciInfoV1 { bus_id, domain, bus, device, pci_device_id }) }
    }
    "The PCI ids, with the subsystem."
    nvmlDeviceGetPciInfo_v2 = (handle: usize, info: *mut PciInfoV2) {
        let PciInfo { bus_id_legacy: bus_id, domain, bus, device, pci_device_id, pci_subsystem_id, .. } = pci_info(handle)?;
        let reserved = [0; 4];
        // SAFETY: the caller's output.
        unsafe { put(info, PciInfoV2 { bus_id, domain, bus, device, pci_device_id, pci_subsystem_id, reserved }) }
    }
    "The PCI ids, with the long bus id too."
    nvmlDeviceGetPciInfo_v3 = (handle: usize, info: *mut PciInfo) {
        // SAFETY: the caller's output.
        unsafe { put(info, pci_info(handle)?) }
    }
    "The same with the PCI class: 3D controller."
    nvmlDeviceGetPciInfoExt = (handle: usize, info: *mut PciInfoExt) {
        check(handle)?;
        if info.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not null; the caller has set the version.
        let version = unsafe { (&raw const (*info).version).read_unaligned() };
        if version != PCI_EXT_V1 {
            return Err(ARGUMENT_VERSION_MISMATCH);
        }
        let PciInfo { domain, bus, device, pci_device_id, pci_subsystem_id, bus_id, .. } = pci_info(handle)?;
        let found = PciInfoExt {
            version,
            domain,
            bus,
            device,
            pci_device_id,
            pci_subsystem_id,
            base_class: 3,
            sub_class: 2,
            bus_id,
        };
        // SAFETY: the caller's output, of the version checked.
        unsafe { put(info, found) }
    }
}

// -- Fields

/// `nvmlFieldValue_t`.
#[repr(C)]
pub struct FieldValue {
    field: u32,
    scope: u32,
    timestamp: i64,
    latency_us: i64,
    value_type: u32,
    result: NvmlReturn,
    value: u64,
}

aliases! {
    "Each field has an answer of its own: they are counters of the card, which a lease does not have."
    nvmlDeviceGetFieldValues = (handle: usize, count: i32, values: *mut FieldValue) {
        check(handle)?;
        let count = usize::try_from(count).map_err(|_| INVALID_ARGUMENT)?;
        if values.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        for index in 0..count {
            // SAFETY: the caller's array has `count` entries.
            unsafe { (&raw mut (*values.add(index)).result).write_unaligned(NOT_SUPPORTED) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_ids_are_read_in_every_form() {
        assert_eq!(bus_parts("0000:3b:00.0"), Some((0, 0x3b, 0)));
        assert_eq!(bus_parts("00000000:3B:00.0"), Some((0, 0x3b, 0)));
        assert_eq!(bus_parts("3b:00"), Some((0, 0x3b, 0)));
        assert_eq!(bus_parts("here"), None);
    }

    #[test]
    fn structs_have_the_sizes_of_the_header() {
        assert_eq!([size_of::<PciInfo>(), size_of::<PciInfoV2>(), size_of::<PciInfoV1>()], [68, 52, 32]);
        assert_eq!(PCI_EXT_V1, 0x0100_0040);
        assert_eq!(size_of::<FieldValue>(), 40);
    }

    #[test]
    fn architectures_follow_the_compute_capability() {
        assert_eq!([architecture(7, 5), architecture(9, 0), architecture(12, 0)], [6, 9, 10]);
        assert_eq!(architecture(3, 5), u32::MAX);
    }
}
