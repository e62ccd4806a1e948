//! Handles, addresses and descriptions that cross the backend's border.

use std::collections::BTreeMap;
use std::time::Duration;

/// A stream's handle, chosen by the client; never used twice in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The legacy default stream, which orders itself with every blocking stream.
    pub const LEGACY: StreamId = StreamId(0);

    /// The stream that a wire handle names: CUDA's `CU_STREAM_LEGACY` (1) is the stream 0.
    pub fn from_wire(handle: u64) -> StreamId {
        if handle <= 1 { StreamId::LEGACY } else { StreamId(handle) }
    }
}

/// An event's handle, chosen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId(pub u64);

/// A module's handle, chosen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleId(pub u64);

/// A function of a module: its place in [`ModuleInfo::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionRef {
    pub module: ModuleId,
    pub index: u32,
}

/// One kernel launch.
#[derive(Clone, Debug)]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes a block.
    pub shared_bytes: u32,
    /// All blocks must be resident at once.
    pub cooperative: bool,
    /// The parameters, laid out as [`FunctionInfo::params`] says.
    pub params: Vec<u8>,
    /// What `cuLaunchKernelEx` was given besides.
    pub attributes: Vec<LaunchAttribute>,
}

/// A launch attribute: `CUlaunchAttributeID` and the 64 bytes of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchAttribute {
    pub id: u32,
    pub value: [u8; 64],
}

impl LaunchAttribute {
    /// The value's word at a place.
    pub fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(self.value.get(at * 4..at * 4 + 4).unwrap_or(&[0; 4]));
        u32::from_le_bytes(word)
    }

    /// CU_LAUNCH_ATTRIBUTE_COOPERATIVE, set.
    pub fn is_cooperative(&self) -> bool {
        self.id == 2 && self.word(0) != 0
    }

    /// CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION of more than one block.
    pub fn is_cluster(&self) -> bool {
        self.id == 4 && (0..3).any(|axis| self.word(axis) > 1)
    }
}

/// A two-dimensional copy inside the device, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Copy2D {
    pub dst: u64,
    pub dst_pitch: u64,
    pub src: u64,
    pub src_pitch: u64,
    pub width: u64,
    pub height: u64,
}

/// A fill of `height` rows of `width` elements of `element` (1, 2 or 4) bytes.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    pub dst: u64,
    /// Bytes from row to row; not read when `height` is 1.
    pub pitch: u64,
    pub value: u32,
    pub element: u32,
    pub width: u64,
    pub height: u64,
}

/// What `cuFuncGetAttribute` answers for one kernel, and how its parameters lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionInfo {
    pub name: String,
    /// Offset and size of every parameter in the parameter buffer, bytes.
    pub params: Vec<(u32, u32)>,
    pub max_threads_per_block: u32,
    pub static_shared_bytes: u32,
    pub const_bytes: u32,
    pub local_bytes: u32,
    pub registers: u32,
    /// As CUDA gives it: 75 for 7.5.
    pub ptx_version: u32,
    pub binary_version: u32,
    pub max_dynamic_shared_bytes: u32,
}

/// A module's global variable at its device address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalInfo {
    pub name: String,
    pub address: u64,
    pub bytes: u64,
}

/// What a loaded module holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleInfo {
    pub functions: Vec<FunctionInfo>,
    pub globals: Vec<GlobalInfo>,
    /// Device memory the module takes itself, bytes.
    pub bytes: u64,
    /// Bytes of the device's heap for `malloc` in kernels, which stays when the module is unloaded; 0: there is none.
    pub heap: u64,
}

/// What is known of a device before and after attaching; the broker keeps it as the type's profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProfile {
    pub name: String,
    pub compute_capability: (u32, u32),
    pub total_memory_bytes: u64,
    /// As `cuDriverGetVersion` gives it: 13000 for 13.0.
    pub driver_version: i32,
    /// The driver's own version, e.g. `580.65.06`; the software GPU has none.
    pub driver: Option<String>,
    /// `CUdevice_attribute` number to value.
    pub attributes: BTreeMap<u32, i32>,
}

/// A device that gpud offers to the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// `GPU-…`, stable for this device on this host.
    pub uuid: String,
    pub index: u32,
    pub gpu_type: String,
    pub model: String,
    /// Memory that leases may use, bytes.
    pub memory_bytes: u64,
    pub profile: DeviceProfile,
}

/// A call to a library that runs beside the driver.
#[derive(Clone, Copy, Debug)]
pub struct LibraryCall<'a> {
    /// The library's number and, above bit 16 of its own, that of its SONAME: as `sluice-api` and the wire have it.
    pub library: u32,
    /// The hash of the function's name.
    pub function: u32,
    /// The stream in which it works.
    pub stream: StreamId,
    /// As `sluice_protocol::library` writes them.
    pub arguments: &'a [u8],
    /// Whether the client waits for the answer.
    pub waits: bool,
}

/// What runs long, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The kernel's name as people know it.
    pub kernel: String,
    /// Blocks that have ended.
    pub done: u64,
    /// Blocks of the grid; 0 where the device does not tell how many have ended.
    pub blocks: u64,
    /// How long it has worked.
    pub worked: Duration,
}

/// What a library answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryAnswer {
    /// The library's own status, 0 for success.
    pub status: u32,
    /// What a status means for a person; may be empty.
    pub text: String,
    /// Outputs for the host, one after the other.
    pub outputs: Vec<u8>,
}
