//! cuFFT. Plans are small numbers, and making one answers how large its work area is.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 3,
    title: "cuFFT",
    name: "cufft",
    shims: &[
        Shim { soname: "libcufft.so.11", version: 11_400, node: "libcufft.so.11" },
        Shim { soname: "libcufft.so.12", version: 12_500, node: "libcufft.so.12" },
    ],
    status: Status { not_initialized: 1, alloc_failed: 2, invalid_value: 4, execution_failed: 6, not_supported: 16 },
    small_handles: true,
    in_place: false,
    probed: false,
    set_pointer_mode: "",
    functions: "
make cufftCreate(new plan)
end cufftDestroy(end plan)
set cufftSetStream(object plan, stream stream)
set cufftSetAutoAllocation(object plan, i32 automatic)
set cufftSetWorkArea(object plan, device work)
local cufftGetVersion(any version)
local cufftGetProperty(enum property, any value)

make cufftPlan1d(new plan, i32 nx, enum type, i32 batch)
make cufftPlan2d(new plan, i32 nx, i32 ny, enum type)
make cufftPlan3d(new plan, i32 nx, i32 ny, i32 nz, enum type)
make cufftPlanMany(new plan, i32 rank, in:4*rank n, in:4*rank inembed, i32 istride, i32 idist, in:4*rank onembed, i32 ostride, i32 odist, enum type, i32 batch)
set cufftMakePlan1d(object plan, i32 nx, enum type, i32 batch, out:8 bytes)
set cufftMakePlan2d(object plan, i32 nx, i32 ny, enum type, out:8 bytes)
set cufftMakePlan3d(object plan, i32 nx, i32 ny, i32 nz, enum type, out:8 bytes)
set cufftMakePlanMany(object plan, i32 rank, in:4*rank n, in:4*rank inembed, i32 istride, i32 idist, in:4*rank onembed, i32 ostride, i32 odist, enum type, i32 batch, out:8 bytes)
set cufftMakePlanMany64(object plan, i32 rank, in:8*rank n, in:8*rank inembed, i64 istride, i64 idist, in:8*rank onembed, i64 ostride, i64 odist, enum type, i64 batch, out:8 bytes)
set cufftXtMakePlanMany(object plan, i32 rank, in:8*rank n, in:8*rank inembed, i64 istride, i64 idist, enum itype, in:8*rank onembed, i64 ostride, i64 odist, enum otype, i64 batch, out:8 bytes, enum etype)
run cufftGetSize(object plan, out:8 bytes)
run cufftGetSize1d(object plan, i32 nx, enum type, i32 batch, out:8 bytes)
run cufftGetSize2d(object plan, i32 nx, i32 ny, enum type, out:8 bytes)
run cufftGetSize3d(object plan, i32 nx, i32 ny, i32 nz, enum type, out:8 bytes)
run cufftGetSizeMany(object plan, i32 rank, in:4*rank n, in:4*rank inembed, i32 istride, i32 idist, in:4*rank onembed, i32 ostride, i32 odist, enum type, i32 batch, out:8 bytes)
run cufftGetSizeMany64(object plan, i32 rank, in:8*rank n, in:8*rank inembed, i64 istride, i64 idist, in:8*rank onembed, i64 ostride, i64 odist, enum type, i64 batch, out:8 bytes)
run cufftXtGetSizeMany(object plan, i32 rank, in:8*rank n, in:8*rank inembed, i64 istride, i64 idist, enum itype, in:8*rank onembed, i64 ostride, i64 odist, enum otype, i64 batch, out:8 bytes, enum etype)
ask cufftEstimate1d(i32 nx, enum type, i32 batch, out:8 bytes)
ask cufftEstimate2d(i32 nx, i32 ny, enum type, out:8 bytes)
ask cufftEstimate3d(i32 nx, i32 ny, i32 nz, enum type, out:8 bytes)
ask cufftEstimateMany(i32 rank, in:4*rank n, in:4*rank inembed, i32 istride, i32 idist, in:4*rank onembed, i32 ostride, i32 odist, enum type, i32 batch, out:8 bytes)

run cufftExecC2C(which plan, device source, device target, enum direction)
run cufftExecR2C(which plan, device source, device target)
run cufftExecC2R(which plan, device source, device target)
run cufftExecZ2Z(which plan, device source, device target, enum direction)
run cufftExecD2Z(which plan, device source, device target)
run cufftExecZ2D(which plan, device source, device target)
run cufftXtExec(which plan, device source, device target, enum direction)

refused plans over several GPUs are not served: each device of a lease has a worker of its own:
cufftXtExecDescriptor{,C2C,R2C,C2R,Z2Z,D2Z,Z2D} cufftXtMemcpy cufftXtSetGPUs cufftXtSetWorkArea cufftXtSetWorkAreaPolicy
cufftXtMalloc cufftXtFree cufftXtQueryPlan
refused device callbacks cannot be linked into a remote plan:
cufftXtSetCallback cufftXtSetCallbackSharedSize cufftXtClearCallback cufftXtSetJITCallback
",
};
