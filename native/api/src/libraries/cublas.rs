//! cuBLAS.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 1,
    title: "cuBLAS",
    name: "cublas",
    shims: &[
        Shim { soname: "libcublas.so.12", version: 120_900, node: "libcublas.so.12" },
        Shim { soname: "libcublas.so.13", version: 131_000, node: "libcublas.so.13" },
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
    set_pointer_mode: "cublasSetPointerMode_v2",
    functions: "
make cublasCreate_v2(new handle)
end cublasDestroy_v2(end handle)
set cublasSetStream_v2(object handle, stream stream)
get cublasGetStream_v2(object handle, any stream) = cublasSetStream_v2
set cublasSetWorkspace_v2(object handle, device workspace, u64 bytes)
set cublasSetPointerMode_v2(object handle, enum mode)
get cublasGetPointerMode_v2(object handle, any mode) = cublasSetPointerMode_v2
set cublasSetAtomicsMode(object handle, enum mode)
get cublasGetAtomicsMode(object handle, any mode) = cublasSetAtomicsMode
set cublasSetMathMode(object handle, enum mode)
get cublasGetMathMode(object handle, any mode) = cublasSetMathMode
set cublasSetSmCountTarget(object handle, i32 count)
get cublasGetSmCountTarget(object handle, any count) = cublasSetSmCountTarget
local cublasGetVersion_v2(any handle, any version)
local cublasGetProperty(enum property, any value)
local cublasGetCudartVersion()
local cublasGetStatusName(enum status)
local cublasGetStatusString(enum status)
local cublasSetVector(dim n, i32 element, any x, i32 incx, any y, i32 incy)
local cublasGetVector(dim n, i32 element, any x, i32 incx, any y, i32 incy)
local cublasSetMatrix(dim rows, dim cols, i32 element, any a, i32 lda, any b, i32 ldb)
local cublasGetMatrix(dim rows, dim cols, i32 element, any a, i32 lda, any b, i32 ldb)
local cublasSetVectorAsync(dim n, i32 element, any x, i32 incx, any y, i32 incy, any stream)
local cublasGetVectorAsync(dim n, i32 element, any x, i32 incx, any y, i32 incy, any stream)
local cublasSetMatrixAsync(dim rows, dim cols, i32 element, any a, i32 lda, any b, i32 ldb, any stream)
local cublasGetMatrixAsync(dim rows, dim cols, i32 element, any a, i32 lda, any b, i32 ldb, any stream)

# Level 1
run cublasI{s,d,c,z}amax_v2(object handle, dim n, device x, i32 incx, result:4 result)
run cublasI{s,d,c,z}amin_v2(object handle, dim n, device x, i32 incx, result:4 result)
run cublas{S,D,Sc,Dz}asum_v2(object handle, dim n, device x, i32 incx, result:R result)
run cublas{S,D,Sc,Dz}nrm2_v2(object handle, dim n, device x, i32 incx, result:R result)
run cublas{S,D,C,Z}axpy_v2(object handle, dim n, scalar:T alpha, device x, i32 incx, device y, i32 incy)
run cublas{S,D,C,Z}copy_v2(object handle, dim n, device x, i32 incx, device y, i32 incy)
run cublas{S,D,C,Z}swap_v2(object handle, dim n, device x, i32 incx, device y, i32 incy)
run cublas{S,D}dot_v2(object handle, dim n, device x, i32 incx, device y, i32 incy, result:T result)
run cublas{C,Z}dotu_v2(object handle, dim n, device x, i32 incx, device y, i32 incy, result:T result)
run cublas{C,Z}dotc_v2(object handle, dim n, device x, i32 incx, device y, i32 incy, result:T result)
run cublas{S,D,C,Z}scal_v2(object handle, dim n, scalar:T alpha, device x, i32 incx)
run cublas{Cs,Zd}scal_v2(object handle, dim n, scalar:R alpha, device x, i32 incx)
run cublas{S,D}rot_v2(object handle, dim n, device x, i32 incx, device y, i32 incy, scalar:T c, scalar:T s)
run cublas{C,Z}rot_v2(object handle, dim n, device x, i32 incx, device y, i32 incy, scalar:R c, scalar:T s)
run cublas{Cs,Zd}rot_v2(object handle, dim n, device x, i32 incx, device y, i32 incy, scalar:R c, scalar:R s)
run cublas{S,D,C,Z}rotg_v2(object handle, both:T a, both:T b, result:R c, result:T s)
run cublas{S,D}rotm_v2(object handle, dim n, device x, i32 incx, device y, i32 incy, scalar:T*5 param)
run cublas{S,D}rotmg_v2(object handle, both:T d1, both:T d2, both:T x1, scalar:T y1, result:T*5 param)
run cublasDotEx(object handle, dim n, device x, enum xtype, i32 incx, device y, enum ytype, i32 incy, result:data(rtype) result, enum rtype, enum etype)
run cublasDotcEx(object handle, dim n, device x, enum xtype, i32 incx, device y, enum ytype, i32 incy, result:data(rtype) result, enum rtype, enum etype)
run cublasNrm2Ex(object handle, dim n, device x, enum xtype, i32 incx, result:data(rtype) result, enum rtype, enum etype)
run cublasAxpyEx(object handle, dim n, scalar:data(atype) alpha, enum atype, device x, enum xtype, i32 incx, device y, enum ytype, i32 incy, enum etype)
run cublasScalEx(object handle, dim n, scalar:data(atype) alpha, enum atype, device x, enum xtype, i32 incx, enum etype)

# Level 2
run cublas{S,D,C,Z}gemv_v2(object handle, enum trans, dim m, dim n, scalar:T alpha, device a, i32 lda, device x, i32 incx, scalar:T beta, device y, i32 incy)
run cublas{S,D,C,Z}gbmv_v2(object handle, enum trans, dim m, dim n, dim kl, dim ku, scalar:T alpha, device a, i32 lda, device x, i32 incx, scalar:T beta, device y, i32 incy)
run cublas{S,D}ger_v2(object handle, dim m, dim n, scalar:T alpha, device x, i32 incx, device y, i32 incy, device a, i32 lda)
run cublas{C,Z}geru_v2(object handle, dim m, dim n, scalar:T alpha, device x, i32 incx, device y, i32 incy, device a, i32 lda)
run cublas{C,Z}gerc_v2(object handle, dim m, dim n, scalar:T alpha, device x, i32 incx, device y, i32 incy, device a, i32 lda)
run cublas{S,D,C,Z}symv_v2(object handle, enum uplo, dim n, scalar:T alpha, device a, i32 lda, device x, i32 incx, scalar:T beta, device y, i32 incy)
run cublas{C,Z}hemv_v2(object handle, enum uplo, dim n, scalar:T alpha, device a, i32 lda, device x, i32 incx, scalar:T beta, device y, i32 incy)
run cublas{S,D}sbmv_v2(object handle, enum uplo, dim n, dim k, scalar:T alpha, device a, i32 lda, device x, i32 incx, scalar:T beta, device y, i32 incy)
run cublas{S,D,C,Z}syr_v2(object handle, enum uplo, dim n, scalar:T alpha, device x, i32 incx, device a, i32 lda)
run cublas{C,Z}her_v2(object handle, enum uplo, dim n, scalar:R alpha, device x, i32 incx, device a, i32 lda)
run cublas{S,D,C,Z}syr2_v2(object handle, enum uplo, dim n, scalar:T alpha, device x, i32 incx, device y, i32 incy, device a, i32 lda)
run cublas{C,Z}her2_v2(object handle, enum uplo, dim n, scalar:T alpha, device x, i32 incx, device y, i32 incy, device a, i32 lda)
run cublas{S,D,C,Z}trmv_v2(object handle, enum uplo, enum trans, enum diag, dim n, device a, i32 lda, device x, i32 incx)
run cublas{S,D,C,Z}trsv_v2(object handle, enum uplo, enum trans, enum diag, dim n, device a, i32 lda, device x, i32 incx)
run cublas{S,D,C,Z}tbmv_v2(object handle, enum uplo, enum trans, enum diag, dim n, dim k, device a, i32 lda, device x, i32 incx)
run cublas{S,D,C,Z}tbsv_v2(object handle, enum uplo, enum trans, enum diag, dim n, dim k, device a, i32 lda, device x, i32 incx)
run cublas{S,D,C,Z}tpmv_v2(object handle, enum uplo, enum trans, enum diag, dim n, device ap, device x, i32 incx)
run cublas{S,D,C,Z}tpsv_v2(object handle, enum uplo, enum trans, enum diag, dim n, device ap, device x, i32 incx)
run cublas{C,Z}hbmv_v2(object handle, enum uplo, dim n, dim k, scalar:T alpha, device a, i32 lda, device x, i32 incx, scalar:T beta, device y, i32 incy)
run cublas{S,D}spmv_v2(object handle, enum uplo, dim n, scalar:T alpha, device ap, device x, i32 incx, scalar:T beta, device y, i32 incy)
run cublas{C,Z}hpmv_v2(object handle, enum uplo, dim n, scalar:T alpha, device ap, device x, i32 incx, scalar:T beta, device y, i32 incy)
run cublas{S,D}spr_v2(object handle, enum uplo, dim n, scalar:T alpha, device x, i32 incx, device ap)
run cublas{C,Z}hpr_v2(object handle, enum uplo, dim n, scalar:R alpha, device x, i32 incx, device ap)
run cublas{S,D}spr2_v2(object handle, enum uplo, dim n, scalar:T alpha, device x, i32 incx, device y, i32 incy, device ap)
run cublas{C,Z}hpr2_v2(object handle, enum uplo, dim n, scalar:T alpha, device x, i32 incx, device y, i32 incy, device ap)

# Level 3
run cublas{S,D,C,Z}gemm_v2(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:T alpha, device a, i32 lda, device b, i32 ldb, scalar:T beta, device c, i32 ldc)
run cublas{C,Z}gemm3m(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:T alpha, device a, i32 lda, device b, i32 ldb, scalar:T beta, device c, i32 ldc)
run cublasHgemm(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:2 alpha, device a, i32 lda, device b, i32 ldb, scalar:2 beta, device c, i32 ldc)
run cublasSgemmEx(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:4 alpha, device a, enum atype, i32 lda, device b, enum btype, i32 ldb, scalar:4 beta, device c, enum ctype, i32 ldc)
run cublasCgemmEx(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:8 alpha, device a, enum atype, i32 lda, device b, enum btype, i32 ldb, scalar:8 beta, device c, enum ctype, i32 ldc)
run cublasGemmEx(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:compute(compute) alpha, device a, enum atype, i32 lda, device b, enum btype, i32 ldb, scalar:compute(compute) beta, device c, enum ctype, i32 ldc, enum compute, enum algo)
run cublas{S,D,C,Z}gemmBatched(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:T alpha, device aarray, i32 lda, device barray, i32 ldb, scalar:T beta, device carray, i32 ldc, dim batch)
run cublasHgemmBatched(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:2 alpha, device aarray, i32 lda, device barray, i32 ldb, scalar:2 beta, device carray, i32 ldc, dim batch)
run cublasGemmBatchedEx(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:compute(compute) alpha, device aarray, enum atype, i32 lda, device barray, enum btype, i32 ldb, scalar:compute(compute) beta, device carray, enum ctype, i32 ldc, dim batch, enum compute, enum algo)
run cublas{S,D,C,Z}gemmStridedBatched(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:T alpha, device a, i32 lda, i64 stridea, device b, i32 ldb, i64 strideb, scalar:T beta, device c, i32 ldc, i64 stridec, dim batch)
run cublasHgemmStridedBatched(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:2 alpha, device a, i32 lda, i64 stridea, device b, i32 ldb, i64 strideb, scalar:2 beta, device c, i32 ldc, i64 stridec, dim batch)
run cublasGemmStridedBatchedEx(object handle, enum transa, enum transb, dim m, dim n, dim k, scalar:compute(compute) alpha, device a, enum atype, i32 lda, i64 stridea, device b, enum btype, i32 ldb, i64 strideb, scalar:compute(compute) beta, device c, enum ctype, i32 ldc, i64 stridec, dim batch, enum compute, enum algo)
run cublas{S,D,C,Z}symm_v2(object handle, enum side, enum uplo, dim m, dim n, scalar:T alpha, device a, i32 lda, device b, i32 ldb, scalar:T beta, device c, i32 ldc)
run cublas{C,Z}hemm_v2(object handle, enum side, enum uplo, dim m, dim n, scalar:T alpha, device a, i32 lda, device b, i32 ldb, scalar:T beta, device c, i32 ldc)
run cublas{S,D,C,Z}syrk_v2(object handle, enum uplo, enum trans, dim n, dim k, scalar:T alpha, device a, i32 lda, scalar:T beta, device c, i32 ldc)
run cublas{C,Z}herk_v2(object handle, enum uplo, enum trans, dim n, dim k, scalar:R alpha, device a, i32 lda, scalar:R beta, device c, i32 ldc)
run cublas{S,D,C,Z}syr2k_v2(object handle, enum uplo, enum trans, dim n, dim k, scalar:T alpha, device a, i32 lda, device b, i32 ldb, scalar:T beta, device c, i32 ldc)
run cublas{C,Z}her2k_v2(object handle, enum uplo, enum trans, dim n, dim k, scalar:T alpha, device a, i32 lda, device b, i32 ldb, scalar:R beta, device c, i32 ldc)
run cublas{S,D,C,Z}syrkx(object handle, enum uplo, enum trans, dim n, dim k, scalar:T alpha, device a, i32 lda, device b, i32 ldb, scalar:T beta, device c, i32 ldc)
run cublas{C,Z}herkx(object handle, enum uplo, enum trans, dim n, dim k, scalar:T alpha, device a, i32 lda, device b, i32 ldb, scalar:R beta, device c, i32 ldc)
run cublas{S,D,C,Z}trmm_v2(object handle, enum side, enum uplo, enum trans, enum diag, dim m, dim n, scalar:T alpha, device a, i32 lda, device b, i32 ldb, device c, i32 ldc)
run cublas{S,D,C,Z}trsm_v2(object handle, enum side, enum uplo, enum trans, enum diag, dim m, dim n, scalar:T alpha, device a, i32 lda, device b, i32 ldb)
run cublas{S,D,C,Z}trsmBatched(object handle, enum side, enum uplo, enum trans, enum diag, dim m, dim n, scalar:T alpha, device aarray, i32 lda, device barray, i32 ldb, dim batch)

# Extensions
run cublas{S,D,C,Z}geam(object handle, enum transa, enum transb, dim m, dim n, scalar:T alpha, device a, i32 lda, scalar:T beta, device b, i32 ldb, device c, i32 ldc)
run cublas{S,D,C,Z}dgmm(object handle, enum mode, dim m, dim n, device a, i32 lda, device x, i32 incx, device c, i32 ldc)
run cublas{S,D,C,Z}tpttr(object handle, enum uplo, dim n, device ap, device a, i32 lda)
run cublas{S,D,C,Z}trttp(object handle, enum uplo, dim n, device a, i32 lda, device ap)
run cublas{S,D,C,Z}getrfBatched(object handle, dim n, device aarray, i32 lda, device pivots, device info, dim batch)
run cublas{S,D,C,Z}getrsBatched(object handle, enum trans, dim n, dim nrhs, device aarray, i32 lda, device pivots, device barray, i32 ldb, out:4 info, dim batch)
run cublas{S,D,C,Z}getriBatched(object handle, dim n, device aarray, i32 lda, device pivots, device carray, i32 ldc, device info, dim batch)
run cublas{S,D,C,Z}matinvBatched(object handle, dim n, device aarray, i32 lda, device inverse, i32 ldinv, device info, dim batch)
run cublas{S,D,C,Z}geqrfBatched(object handle, dim m, dim n, device aarray, i32 lda, device tauarray, out:4 info, dim batch)
run cublas{S,D,C,Z}gelsBatched(object handle, enum trans, dim m, dim n, dim nrhs, device aarray, i32 lda, device carray, i32 ldc, out:4 info, device infos, dim batch)
",
};
