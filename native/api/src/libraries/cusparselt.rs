//! cuSPARSELt. Its objects are structures of the program, which may say something else the next time they are used: work
//! waits once for each.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 8,
    title: "cuSPARSELt",
    name: "cusparselt",
    shims: &[Shim { soname: "libcusparseLt.so.0", version: 800, node: "" }],
    status: Status { not_initialized: 1, alloc_failed: 2, invalid_value: 3, execution_failed: 6, not_supported: 10 },
    small_handles: false,
    in_place: true,
    probed: false,
    set_pointer_mode: "",
    functions: "
local cusparseLtGetErrorName(enum status)
local cusparseLtGetErrorString(enum status)
local cusparseLtGetVersion(any handle, any version)
local cusparseLtGetProperty(enum property, any value)
make cusparseLtInit(new handle)
end cusparseLtDestroy(end handle)

# Matrices
make cusparseLtDenseDescriptorInit(object handle, new descriptor, i64 rows, i64 cols, i64 ld, u32 alignment, enum type, enum order)
make cusparseLtStructuredDescriptorInit(object handle, new descriptor, i64 rows, i64 cols, i64 ld, u32 alignment, enum type, enum order, enum sparsity)
end cusparseLtMatDescriptorDestroy(end descriptor)
set cusparseLtMatDescSetAttribute(object handle, subject descriptor, enum attribute, in:bytes data, u64 bytes)
read cusparseLtMatDescGetAttribute(object handle, object descriptor, enum attribute, out:bytes data, u64 bytes)

# Products. A search tries algorithms out, so it is waited for
make cusparseLtMatmulDescriptorInit(object handle, new descriptor, enum opa, enum opb, object a, object b, object c, object d, enum compute)
set cusparseLtMatmulDescSetAttribute(object handle, subject descriptor, enum attribute, in:bytes data, u64 bytes)
read cusparseLtMatmulDescGetAttribute(object handle, object descriptor, enum attribute, out:bytes data, u64 bytes)
make cusparseLtMatmulAlgSelectionInit(object handle, new selection, object descriptor, enum algorithm)
end cusparseLtMatmulAlgSelectionDestroy(end selection)
set cusparseLtMatmulAlgSetAttribute(object handle, subject selection, enum attribute, in:bytes data, u64 bytes)
read cusparseLtMatmulAlgGetAttribute(object handle, object selection, enum attribute, out:bytes data, u64 bytes)
make cusparseLtMatmulPlanInit(object handle, new plan, object descriptor, object selection)
end cusparseLtMatmulPlanDestroy(end plan)
read cusparseLtMatmulGetWorkspace(object handle, object plan, out:8 bytes)
run cusparseLtMatmul(object handle, which plan, scalar:anywhere(4) alpha, device a, device b, scalar:anywhere(4) beta, device c, device d, device workspace, streams streams, i32 count)
read cusparseLtMatmulSearch(object handle, object plan, scalar:anywhere(4) alpha, device a, device b, scalar:anywhere(4) beta, device c, device d, device workspace, streams streams, i32 count)

# Pruning and compression
run cusparseLtSpMMAPrune(object handle, which descriptor, device source, device target, enum algorithm, stream stream)
run cusparseLtSpMMAPruneCheck(object handle, which descriptor, device source, device valid, stream stream)
run cusparseLtSpMMAPrune2(object handle, which descriptor, i32 first, enum op, device source, device target, enum algorithm, stream stream)
run cusparseLtSpMMAPruneCheck2(object handle, which descriptor, i32 first, enum op, device source, device valid, stream stream)
read cusparseLtSpMMACompressedSize(object handle, object plan, out:8 bytes, out:8 bufferbytes)
run cusparseLtSpMMACompress(object handle, which plan, device source, device target, device buffer, stream stream)
read cusparseLtSpMMACompressedSize2(object handle, object descriptor, out:8 bytes, out:8 bufferbytes)
run cusparseLtSpMMACompress2(object handle, which descriptor, i32 first, enum op, device source, device target, device buffer, stream stream)
",
};
