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
    Local cuDeviceGetProperties 2000 (properties: output *mut Properties, device: input i32);
    Local cuDeviceGetP2PAtomicCapabilities 13000
        (capabilities: output *mut u32, operations: input *const u32, count: input u32, source: input i32,
         target: input i32);
};

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "a lease has no access to the fabric between GPUs" {
        cuDeviceGetCliqueCount 13040,
        cuDeviceGetCliqueInfo 13040,
        cuDeviceGetFabricClusterUuid 13040,
        cuFlushGPUDirectRDMAWrites 11030,
    }
    "kernels on a remote GPU cannot reach host memory" {
        cuDeviceGetHostAtomicCapabilities 13000,
    }
    "locally unique ids of devices are known on Windows alone" {
        cuDeviceGetLuid 10000,
    }
    "a lease's memory is not taken back while it is used: there is nothing to be notified of" {
        cuDeviceRegisterAsyncNotification 12040,
        cuDeviceUnregisterAsyncNotification 12040,
    }
    "the 32-bit ABI of CUDA 3.1 and older cannot hold this device's addresses and sizes; use the _v2 function" {
        cuDeviceTotalMem 2000,
    }
};
