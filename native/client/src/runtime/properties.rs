//! cudaDeviceProp: one table of fields from which the layouts of CUDA 11, 12 and 13 follow.

use super::context::check_device;
use crate::driver;
use crate::error::{CudaResult, INVALID_VALUE};
use std::ffi::c_char;

/// Where a field's value comes from.
enum Value {
    Name,
    Uuid,
    Memory,
    /// Bytes that stay zero.
    Nothing(usize),
    /// `int`s, one for each device attribute.
    Int(&'static [i32]),
    /// `size_t` of a device attribute.
    Size(i32),
}

/// Versions that have the field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    All,
    /// Gone in 13.
    Until12,
    /// New in 12.
    From12,
    /// New in 13.
    From13,
}

use In::{All, From12, From13, Until12};
use Value::{Int, Memory, Name, Nothing, Size, Uuid};

/// Fields in the order of `driver_types.h`; numbers are those of cudaDeviceAttr.
#[rustfmt::skip]
const FIELDS: &[(In, Value)] = &[
    (All, Name), (All, Uuid),
    // luid, luidDeviceNodeMask
    (All, Nothing(8)), (All, Int(&[0])),
    (All, Memory), (All, Size(8)), (All, Int(&[12])), (All, Int(&[10])), (All, Size(11)), (All, Int(&[1])),
    (All, Int(&[2, 3, 4])), (All, Int(&[5, 6, 7])),
    // clockRate
    (Until12, Int(&[13])),
    (All, Size(9)), (All, Int(&[75])), (All, Int(&[76])), (All, Size(14)), (All, Size(51)),
    // deviceOverlap
    (Until12, Int(&[15])),
    (All, Int(&[16])),
    // kernelExecTimeoutEnabled
    (Until12, Int(&[17])),
    (All, Int(&[18])), (All, Int(&[19])),
    // computeMode
    (Until12, Int(&[20])),
    // Textures and surfaces
    (All, Int(&[21])), (All, Int(&[77])), (Until12, Int(&[69])), (All, Int(&[22, 23])), (All, Int(&[73, 74])),
    (All, Int(&[70, 71, 72])), (All, Int(&[45, 46])), (All, Int(&[24, 25, 26])), (All, Int(&[47, 48, 49])),
    (All, Int(&[52])), (All, Int(&[42, 43])), (All, Int(&[27, 28, 29])), (All, Int(&[53, 54])), (All, Int(&[55])),
    (All, Int(&[56, 57])), (All, Int(&[58, 59, 60])), (All, Int(&[61, 62])), (All, Int(&[63, 64, 65])),
    (All, Int(&[66])), (All, Int(&[67, 68])), (All, Size(30)),
    // concurrentKernels, ECCEnabled, PCI bus, device and domain, tccDriver, asyncEngineCount, unifiedAddressing
    (All, Int(&[31])), (All, Int(&[32])), (All, Int(&[33])), (All, Int(&[34])), (All, Int(&[50])), (All, Int(&[35])),
    (All, Int(&[40])), (All, Int(&[41])),
    // memoryClockRate
    (Until12, Int(&[36])),
    (All, Int(&[37])), (All, Int(&[38])), (All, Int(&[108])), (All, Int(&[39])), (All, Int(&[78])), (All, Int(&[79])),
    (All, Int(&[80])), (All, Size(81)), (All, Int(&[82])), (All, Int(&[83])), (All, Int(&[84])), (All, Int(&[85])),
    (All, Int(&[86])),
    // singleToDoublePrecisionPerfRatio
    (Until12, Int(&[87])),
    (All, Int(&[88])), (All, Int(&[89])), (All, Int(&[90])), (All, Int(&[91])), (All, Int(&[95])),
    // cooperativeMultiDeviceLaunch
    (Until12, Int(&[96])),
    (All, Size(97)), (All, Int(&[100])), (All, Int(&[101])), (All, Int(&[106])), (All, Int(&[109])),
    (All, Size(111)),
    // hostRegisterSupported and later
    (From12, Int(&[99])), (From12, Int(&[112])), (From12, Int(&[113])), (From12, Int(&[114])), (From12, Int(&[115])),
    (From12, Int(&[116])), (From12, Int(&[117])), (From12, Int(&[118])), (From12, Int(&[119])),
    (From12, Int(&[121])), (From12, Int(&[125])), (From12, Int(&[120])), (From12, Int(&[129])),
    // deviceNumaConfig and later
    (From13, Int(&[130])), (From13, Int(&[131])), (From13, Int(&[133])), (From13, Int(&[134])),
    (From13, Int(&[139])), (From13, Int(&[140])), (From13, Int(&[143])),
];

/// Bytes of the structure in each version, reserved end included.
const BYTES: [(u32, usize); 3] = [(11, 728), (12, 1032), (13, 1008)];

const NAME_BYTES: usize = 256;

impl In {
    fn has(self, version: u32) -> bool {
        match self {
            All => true,
            Until12 => version <= 12,
            From12 => version >= 12,
            From13 => version >= 13,
        }
    }
}

/// The structure in a version's layout, up to its reserved end.
fn fill(version: u32, device: i32, attribute: &dyn Fn(i32) -> i32) -> CudaResult<Vec<u8>> {
    let mut out = Vec::new();
    let aligned = |out: &mut Vec<u8>, bytes: usize| out.resize(out.len().next_multiple_of(bytes), 0);
    for (versions, value) in FIELDS {
        if !versions.has(version) {
            continue;
        }
        match value {
            Name => {
                let mut name = [0u8; NAME_BYTES];
                // SAFETY: a live local with room for what is said.
                unsafe {
                    driver::cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), NAME_BYTES as i32, device)?;
                }
                out.extend(name);
            }
            Uuid => {
                let mut uuid = [0; 16];
                // SAFETY: a live local.
                unsafe { driver::cuDeviceGetUuid(&raw mut uuid, device)? };
                out.extend(uuid);
            }
            Memory => {
                let mut bytes = 0;
                // SAFETY: a live local.
                unsafe { driver::cuDeviceTotalMem_v2(&raw mut bytes, device)? };
                aligned(&mut out, 8);
                out.extend(bytes.to_ne_bytes());
            }
            Nothing(bytes) => out.resize(out.len() + bytes, 0),
            Int(attributes) => {
                aligned(&mut out, 4);
                for number in *attributes {
                    out.extend(attribute(*number).to_ne_bytes());
                }
            }
            Size(number) => {
                aligned(&mut out, 8);
                out.extend((attribute(*number).max(0) as usize).to_ne_bytes());
            }
        }
    }
    Ok(out)
}

unsafe fn properties(target: *mut u8, device: i32, version: u32) -> CudaResult {
    check_device(device)?;
    if target.is_null() {
        return Err(INVALID_VALUE);
    }
    let attribute = |number: i32| {
        let mut value = 0;
        // SAFETY: a live local. An attribute that the driver does not know is 0.
        let _ = unsafe { driver::cuDeviceGetAttribute(&raw mut value, number, device) };
        value
    };
    let mut found = fill(version, device, &attribute)?;
    found.resize(BYTES.iter().find(|entry| entry.0 == version).map_or(0, |entry| entry.1), 0);
    // SAFETY: the caller's structure in this version's layout.
    unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), target, found.len()) };
    Ok(())
}

/// Programs compiled for CUDA 11 reach this one.
pub unsafe fn cudaGetDeviceProperties_12(target: *mut u8, device: i32) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { properties(target, device, 11) }
}

pub unsafe fn cudaGetDeviceProperties_v2(target: *mut u8, device: i32) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { properties(target, device, 12) }
}

pub unsafe fn cudaGetDeviceProperties_13(target: *mut u8, device: i32) -> CudaResult {
    // SAFETY: as the caller's.
    unsafe { properties(target, device, 13) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset_of(version: u32, first: i32) -> usize {
        // SAFETY: no pointers go in.
        unsafe { driver::cuInit(0) }.expect("initialises");
        let mark = |number| if number == first { 0x7eed_beef } else { 0 };
        let found = fill(version, 0, &mark).expect("one device");
        found.windows(4).position(|window| window == 0x7eed_beefu32.to_ne_bytes()).expect("has the field")
    }

    #[test]
    fn fields_lie_where_the_headers_put_them() {
        // Offsets of major and hostRegisterSupported in nvidia-cuda-runtime 12.9.79 and 13.5.37.
        assert_eq!((offset_of(12, 75), offset_of(13, 75)), (360, 360));
        assert_eq!((offset_of(12, 99), offset_of(13, 99)), (728, 704));
        assert_eq!(offset_of(11, 75), 360);
    }

    #[test]
    fn what_is_left_is_the_reserved_end() {
        // SAFETY: no pointers go in.
        unsafe { driver::cuInit(0) }.expect("initialises");
        // int reserved[63] in 12, int reserved[56] in 13.
        for ((version, bytes), reserved) in BYTES.into_iter().zip([0, 63, 56]) {
            assert_eq!(bytes - fill(version, 0, &|_| 0).expect("one device").len(), reserved * 4, "{version}");
        }
    }
}
