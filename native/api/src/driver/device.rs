//! Devices.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Local cuDeviceGet 2000 (device: output *mut i32, ordinal: input i32);
    Local cuDeviceGetCount 2000 (count: output *mut i32);
    Local cuDeviceGetName 2000 (name: output *mut c_char, length: input i32, device: input i32);
    Local cuDeviceGetUuid 9020 (uuid: output *mut [u8; 16], device: input i32);
    Local cuDeviceGetUuid_v2 = cuDeviceGetUuid 11040 (uuid: output *mut [u8; 16], device: input i32);
    Local cuDeviceTotalMem_v2 3020 (bytes: output *mut usize, device: input i32);
    Local cuDeviceGetAttribute 2000 (value: output *mut i32, attribute: input i32, device: input i32);
    Local cuDeviceComputeCapability 2000 (major: output *mut i32, minor: output *mut i32, device: input i32);
    Local cuDeviceGetPCIBusId 4010 (id: output *mut c_char, length: input i32, device: input i32);
    Local cuDeviceGetByPCIBusId 4010 (device: output *mut i32, id: input *const c_char);
    Local cuDeviceCanAccessPeer 4000 (possible: output *mut i32, device: input i32, peer: input i32);
    Local cuDeviceGetP2PAttribute 8000
        (value: output *mut i32, attribute: input i32, source: input i32, target: input i32);
};

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "not served yet" {
        cuDeviceGetCliqueCount 13040,
        cuDeviceGetCliqueInfo 13040,
        cuDeviceGetFabricClusterUuid 13040,
        cuDeviceGetHostAtomicCapabilities 13000,
        cuDeviceGetLuid 10000,
        cuDeviceGetP2PAtomicCapabilities 13000,
        cuDeviceGetProperties 2000,
        cuDeviceRegisterAsyncNotification 12040,
        cuDeviceUnregisterAsyncNotification 12040,
        cuFlushGPUDirectRDMAWrites 11030,
    }
    "the 32-bit ABI of CUDA 3.1 and older cannot hold this device's addresses and sizes; use the _v2 function" {
        cuDeviceTotalMem 2000,
    }
};
