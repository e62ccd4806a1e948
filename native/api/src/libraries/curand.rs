//! cuRAND's host interface: generators that fill device memory.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 4,
    title: "cuRAND",
    name: "curand",
    shims: &[Shim { soname: "libcurand.so.10", version: 10_400, node: "libcurand.so.10" }],
    status: Status {
        not_initialized: 101,
        alloc_failed: 102,
        invalid_value: 104,
        execution_failed: 201,
        not_supported: 103,
    },
    small_handles: false,
    in_place: false,
    probed: false,
    set_pointer_mode: "",
    functions: "
make curandCreateGenerator(new generator, enum type)
end curandDestroyGenerator(end generator)
set curandSetStream(object generator, stream stream)
set curandSetPseudoRandomGeneratorSeed(object generator, u64 seed)
set curandSetGeneratorOffset(object generator, u64 offset)
set curandSetGeneratorOrdering(object generator, enum order)
set curandSetQuasiRandomGeneratorDimensions(object generator, u32 dimensions)
local curandGetVersion(any version)
local curandGetProperty(enum property, any value)
run curandGenerateSeeds(object generator)
run curandGenerate(object generator, device target, u64 count)
run curandGenerateLongLong(object generator, device target, u64 count)
run curandGenerateUniform(object generator, device target, u64 count)
run curandGenerateUniformDouble(object generator, device target, u64 count)
run curandGenerateNormal(object generator, device target, u64 count, f32 mean, f32 deviation)
run curandGenerateNormalDouble(object generator, device target, u64 count, f64 mean, f64 deviation)
run curandGenerateLogNormal(object generator, device target, u64 count, f32 mean, f32 deviation)
run curandGenerateLogNormalDouble(object generator, device target, u64 count, f64 mean, f64 deviation)
run curandGeneratePoisson(object generator, device target, u64 count, f64 lambda)
refused a generator in host memory needs no GPU; use the CPU's library:
curandCreateGeneratorHost
",
};
