//! cuBLASLt. Descriptions are values: equal ones travel once, and heuristics are asked once for equal questions.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 2,
    title: "cuBLASLt",
    name: "cublaslt",
    shims: &[
        Shim { soname: "libcublasLt.so.12", version: 120_900, node: "libcublasLt.so.12" },
        Shim { soname: "libcublasLt.so.13", version: 131_000, node: "libcublasLt.so.13" },
    ],
    status: Status {
        not_initialized: 1,
        alloc_failed: 3,
        invalid_value: 7,
        execution_failed: 13,
        not_supported: 15,
    },
    small_handles: false,
    in_place: false,
    probed: false,
    set_pointer_mode: "",
    functions: "
make cublasLtCreate(new handle)
end cublasLtDestroy(end handle)
local cublasLtGetVersion()
local cublasLtGetCudartVersion()
local cublasLtGetProperty(enum property, any value)
local cublasLtGetStatusName(enum status)
local cublasLtGetStatusString(enum status)

describe cublasLtMatmulDescCreate(new desc, enum compute, enum scale)
change cublasLtMatmulDescSetAttribute(value desc, enum attribute, in:bytes data, u64 bytes)
local cublasLtMatmulDescGetAttribute(value desc, enum attribute, any data, u64 bytes, any written)
drop cublasLtMatmulDescDestroy(value desc)
describe cublasLtMatrixLayoutCreate(new layout, enum type, u64 rows, u64 cols, i64 ld)
change cublasLtMatrixLayoutSetAttribute(value layout, enum attribute, in:bytes data, u64 bytes)
local cublasLtMatrixLayoutGetAttribute(value layout, enum attribute, any data, u64 bytes, any written)
drop cublasLtMatrixLayoutDestroy(value layout)
describe cublasLtMatmulPreferenceCreate(new preference)
change cublasLtMatmulPreferenceSetAttribute(value preference, enum attribute, in:bytes data, u64 bytes)
drop cublasLtMatmulPreferenceDestroy(value preference)
describe cublasLtMatrixTransformDescCreate(new transform, enum scale)
change cublasLtMatrixTransformDescSetAttribute(value transform, enum attribute, in:bytes data, u64 bytes)
drop cublasLtMatrixTransformDescDestroy(value transform)

ask cublasLtMatmulAlgoGetHeuristic(object handle, value desc, value a, value b, value c, value d, value preference, i32 wanted, out:96*wanted results, out:4 found)
ask cublasLtMatmulAlgoCheck(object handle, value desc, value a, value b, value c, value d, in:64 algo, out:96 result)
ask cublasLtMatmulAlgoInit(object handle, enum compute, enum scale, enum atype, enum btype, enum ctype, enum dtype, i32 id, out:64 algo)
ask cublasLtMatmulAlgoGetIds(object handle, enum compute, enum scale, enum atype, enum btype, enum ctype, enum dtype, i32 wanted, out:4*wanted ids, out:4 found)
ask cublasLtMatmulAlgoConfigSetAttribute(inout:64 algo, enum attribute, in:bytes data, u64 bytes)
ask cublasLtMatmulAlgoConfigGetAttribute(in:64 algo, enum attribute, out:bytes data, u64 bytes, out:8 written)
run cublasLtMatmul(object handle, value desc, scalar:scale(desc) alpha, device a, value alayout, device b, value blayout, scalar:scale(desc) beta, device c, value clayout, device d, value dlayout, in:64 algo, device workspace, u64 workspace_bytes, stream stream)
run cublasLtMatrixTransform(object handle, value transform, scalar:scale(transform) alpha, device a, value alayout, scalar:scale(transform) beta, device b, value blayout, device c, value clayout, stream stream)
",
};
