//! NCCL.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 9,
    title: "NCCL",
    name: "nccl",
    shims: &[Shim { soname: "libnccl.so.2", version: 22803, node: "" }],
    status: Status { not_initialized: 3, alloc_failed: 2, invalid_value: 4, execution_failed: 1, not_supported: 5 },
    small_handles: false,
    probed: false,
    set_stream: "",
    set_pointer_mode: "",
    functions: "
local ncclGetErrorString(enum status)
local ncclGetLastError(any comm)
local ncclGetVersion(any version)
refused NCCL is not served yet:
ncclAllGather ncclAllReduce ncclAlltoAll ncclBcast ncclBroadcast ncclCommAbort ncclCommCount ncclCommCuDevice
ncclCommDeregister ncclCommDestroy ncclCommFinalize ncclCommGetAsyncError ncclCommGetUniqueId ncclCommGrow
ncclCommInitAll ncclCommInitRank ncclCommInitRankConfig ncclCommInitRankScalable ncclCommMemStats
ncclCommRegister ncclCommResume ncclCommRevoke ncclCommShrink ncclCommSplit ncclCommSuspend ncclCommUserRank
ncclCommWindowDeregister ncclCommWindowRegister ncclDevCommCreate ncclDevCommDestroy ncclGather
ncclGetLsaMultimemDevicePointer ncclGetPeerDevicePointer ncclGetUniqueId
ncclGroupEnd ncclGroupSimulateEnd ncclGroupStart ncclMemAlloc ncclMemFree ncclPutSignal
ncclRecv ncclRedOpCreatePreMulSum ncclRedOpDestroy ncclReduce ncclReduceScatter ncclSend ncclSignal
ncclWaitSignal ncclWinGetUserPtr
",
};
