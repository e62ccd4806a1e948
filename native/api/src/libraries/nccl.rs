//! NCCL. A communicator belongs to the device on which it was made, and calls go there; those of a group travel together.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 9,
    title: "NCCL",
    name: "nccl",
    shims: &[Shim { soname: "libnccl.so.2", version: 22803, node: "" }],
    status: Status { not_initialized: 3, alloc_failed: 2, invalid_value: 4, execution_failed: 1, not_supported: 5 },
    small_handles: false,
    in_place: false,
    probed: false,
    set_pointer_mode: "",
    functions: "
local ncclGetErrorString(enum status)
local ncclGetLastError(any comm)
local ncclGetVersion(any version)
local ncclGroupStart()
local ncclGroupEnd()
local ncclMemAlloc(any address, u64 bytes)
local ncclMemFree(any address)

# Communicators
read ncclGetUniqueId(out:128 id)
join ncclCommInitRank(new comm, i32 ranks, block:128 id, i32 rank)
join ncclCommInitRankConfig(new comm, i32 ranks, block:128 id, i32 rank, config config)
join ncclCommInitRankScalable(new comm, i32 ranks, i32 rank, dim ids, in:128*ids id, config config)
join ncclCommSplit(object comm, i32 colour, i32 key, new newcomm, config config)
join ncclCommShrink(object comm, in:4*excluded ranks, dim excluded, new newcomm, config config, enum flags)
local ncclCommInitAll(any comms, i32 count, any ordinals)
local ncclCommCuDevice(any comm, any device)
read ncclCommCount(object comm, out:4 count)
read ncclCommUserRank(object comm, out:4 rank)
read ncclCommGetAsyncError(object comm, out:4 error)
read ncclCommFinalize(object comm)
read ncclComm{Revoke,Suspend}(object comm, enum flags)
read ncclCommResume(object comm)
read ncclCommMemStats(object comm, enum statistic, out:8 value)
end ncclCommDestroy(end comm)
end ncclCommAbort(end comm)
read ncclCommRegister(object comm, device buffer, u64 bytes, out:8 handle)
read ncclCommDeregister(object comm, u64 handle)
read ncclRedOpCreatePreMulSum(out:4 operation, scalar:reduced(type) scalar, enum type, enum residence, object comm)
read ncclRedOpDestroy(i32 operation, object comm)

# Collectives
run ncclAllReduce(device source, device target, u64 count, enum type, enum operation, object comm, stream stream)
run ncclReduce(device source, device target, u64 count, enum type, enum operation, i32 root, object comm, stream stream)
run ncclReduceScatter(device source, device target, u64 count, enum type, enum operation, object comm, stream stream)
run ncclBroadcast(device source, device target, u64 count, enum type, i32 root, object comm, stream stream)
run ncclBcast(device buffer, u64 count, enum type, i32 root, object comm, stream stream)
run nccl{AllGather,AlltoAll}(device source, device target, u64 count, enum type, object comm, stream stream)
run nccl{Gather,Scatter}(device source, device target, u64 count, enum type, i32 root, object comm, stream stream)
run nccl{Send,Recv}(device buffer, u64 count, enum type, i32 peer, object comm, stream stream)
refused windows, signals and what kernels do with communicators need memory that GPUs share, and communicators that grow are not served yet:
ncclCommGetUniqueId ncclCommGrow ncclCommQueryProperties
ncclCommWindowDeregister ncclCommWindowRegister ncclDevCommCreate ncclDevCommDestroy
ncclGetLsaMultimemDevicePointer ncclGetPeerDevicePointer ncclGroupSimulateEnd ncclPutSignal ncclSignal
ncclWaitSignal ncclWinGetUserPtr
",
};
