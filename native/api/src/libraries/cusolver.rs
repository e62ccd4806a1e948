//! cuSOLVER. Work areas on the host travel as they are: the server's library may write into its copy.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 5,
    title: "cuSOLVER",
    name: "cusolver",
    shims: &[
        Shim { soname: "libcusolver.so.11", version: 11_700, node: "libcusolver.so.11" },
        Shim { soname: "libcusolver.so.12", version: 12_400, node: "libcusolver.so.12" },
    ],
    status: Status { not_initialized: 1, alloc_failed: 2, invalid_value: 3, execution_failed: 6, not_supported: 9 },
    small_handles: false,
    in_place: false,
    probed: false,
    set_pointer_mode: "",
    functions: "
local cusolverGetProperty(enum property, any value)
local cusolverGetVersion(any version)
make cusolverDnCreate(new handle)
end cusolverDnDestroy(end handle)
set cusolverDnSetStream(object handle, stream stream)
get cusolverDnGetStream(object handle, any stream) = cusolverDnSetStream

# What an algorithm is told, and what it says about its last run
make cusolverDnCreateParams(new params)
end cusolverDnDestroyParams(end params)
set cusolverDnSetAdvOptions(object params, enum function, enum algorithm)
make cusolverDnCreateGesvdjInfo(new info)
end cusolverDnDestroyGesvdjInfo(end info)
set cusolverDnXgesvdjSetTolerance(object info, f64 tolerance)
set cusolverDnXgesvdjSetMaxSweeps(object info, i32 sweeps)
set cusolverDnXgesvdjSetSortEig(object info, i32 sorted)
run cusolverDnXgesvdjGetResidual(object handle, object info, out:8 residual)
run cusolverDnXgesvdjGetSweeps(object handle, object info, out:4 sweeps)
make cusolverDnCreateSyevjInfo(new info)
end cusolverDnDestroySyevjInfo(end info)
set cusolverDnXsyevjSetTolerance(object info, f64 tolerance)
set cusolverDnXsyevjSetMaxSweeps(object info, i32 sweeps)
set cusolverDnXsyevjSetSortEig(object info, i32 sorted)
run cusolverDnXsyevjGetResidual(object handle, object info, out:8 residual)
run cusolverDnXsyevjGetSweeps(object handle, object info, out:4 sweeps)

# LU
ask cusolverDn{S,D,C,Z}getrf_bufferSize(object handle, dim m, dim n, device a, i32 lda, out:4 lwork)
run cusolverDn{S,D,C,Z}getrf(object handle, dim m, dim n, device a, i32 lda, device work, device pivots, device info)
run cusolverDn{S,D,C,Z}getrs(object handle, enum trans, dim n, dim nrhs, device a, i32 lda, device pivots, device b, i32 ldb, device info)
ask cusolverDnXgetrf_bufferSize(object handle, object params, dim64 m, dim64 n, enum atype, device a, i64 lda, enum compute, out:8 bytes, out:8 hostbytes)
run cusolverDnXgetrf(object handle, object params, dim64 m, dim64 n, enum atype, device a, i64 lda, device pivots, enum compute, device work, u64 bytes, in:hostbytes hostwork, u64 hostbytes, device info)
run cusolverDnXgetrs(object handle, object params, enum trans, dim64 n, dim64 nrhs, enum atype, device a, i64 lda, device pivots, enum btype, device b, i64 ldb, device info)

# Cholesky
ask cusolverDn{S,D,C,Z}potrf_bufferSize(object handle, enum uplo, dim n, device a, i32 lda, out:4 lwork)
run cusolverDn{S,D,C,Z}potrf(object handle, enum uplo, dim n, device a, i32 lda, device work, i32 lwork, device info)
run cusolverDn{S,D,C,Z}potrs(object handle, enum uplo, dim n, dim nrhs, device a, i32 lda, device b, i32 ldb, device info)
run cusolverDn{S,D,C,Z}potrfBatched(object handle, enum uplo, dim n, device aarray, i32 lda, device info, dim batch)
run cusolverDn{S,D,C,Z}potrsBatched(object handle, enum uplo, dim n, dim nrhs, device aarray, i32 lda, device barray, i32 ldb, device info, dim batch)
ask cusolverDnXpotrf_bufferSize(object handle, object params, enum uplo, dim64 n, enum atype, device a, i64 lda, enum compute, out:8 bytes, out:8 hostbytes)
run cusolverDnXpotrf(object handle, object params, enum uplo, dim64 n, enum atype, device a, i64 lda, enum compute, device work, u64 bytes, in:hostbytes hostwork, u64 hostbytes, device info)
run cusolverDnXpotrs(object handle, object params, enum uplo, dim64 n, dim64 nrhs, enum atype, device a, i64 lda, enum btype, device b, i64 ldb, device info)

# QR
ask cusolverDn{S,D,C,Z}geqrf_bufferSize(object handle, dim m, dim n, device a, i32 lda, out:4 lwork)
run cusolverDn{S,D,C,Z}geqrf(object handle, dim m, dim n, device a, i32 lda, device tau, device work, i32 lwork, device info)
ask cusolverDn{S,D}orgqr_bufferSize(object handle, dim m, dim n, dim k, device a, i32 lda, device tau, out:4 lwork)
ask cusolverDn{C,Z}ungqr_bufferSize(object handle, dim m, dim n, dim k, device a, i32 lda, device tau, out:4 lwork)
run cusolverDn{S,D}orgqr(object handle, dim m, dim n, dim k, device a, i32 lda, device tau, device work, i32 lwork, device info)
run cusolverDn{C,Z}ungqr(object handle, dim m, dim n, dim k, device a, i32 lda, device tau, device work, i32 lwork, device info)
ask cusolverDn{S,D}ormqr_bufferSize(object handle, enum side, enum trans, dim m, dim n, dim k, device a, i32 lda, device tau, device c, i32 ldc, out:4 lwork)
ask cusolverDn{C,Z}unmqr_bufferSize(object handle, enum side, enum trans, dim m, dim n, dim k, device a, i32 lda, device tau, device c, i32 ldc, out:4 lwork)
run cusolverDn{S,D}ormqr(object handle, enum side, enum trans, dim m, dim n, dim k, device a, i32 lda, device tau, device c, i32 ldc, device work, i32 lwork, device info)
run cusolverDn{C,Z}unmqr(object handle, enum side, enum trans, dim m, dim n, dim k, device a, i32 lda, device tau, device c, i32 ldc, device work, i32 lwork, device info)
ask cusolverDnXgeqrf_bufferSize(object handle, object params, dim64 m, dim64 n, enum atype, device a, i64 lda, enum tautype, device tau, enum compute, out:8 bytes, out:8 hostbytes)
run cusolverDnXgeqrf(object handle, object params, dim64 m, dim64 n, enum atype, device a, i64 lda, enum tautype, device tau, enum compute, device work, u64 bytes, in:hostbytes hostwork, u64 hostbytes, device info)

# Eigenvalues of symmetric and Hermitian matrices
ask cusolverDn{S,D}syevd_bufferSize(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, out:4 lwork)
ask cusolverDn{C,Z}heevd_bufferSize(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, out:4 lwork)
run cusolverDn{S,D}syevd(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, device work, i32 lwork, device info)
run cusolverDn{C,Z}heevd(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, device work, i32 lwork, device info)
ask cusolverDn{S,D}sytrd_bufferSize(object handle, enum uplo, dim n, device a, i32 lda, device d, device e, device tau, out:4 lwork)
ask cusolverDn{C,Z}hetrd_bufferSize(object handle, enum uplo, dim n, device a, i32 lda, device d, device e, device tau, out:4 lwork)
run cusolverDn{S,D}sytrd(object handle, enum uplo, dim n, device a, i32 lda, device d, device e, device tau, device work, i32 lwork, device info)
run cusolverDn{C,Z}hetrd(object handle, enum uplo, dim n, device a, i32 lda, device d, device e, device tau, device work, i32 lwork, device info)
ask cusolverDn{S,D}syevj_bufferSize(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, out:4 lwork, object params)
ask cusolverDn{C,Z}heevj_bufferSize(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, out:4 lwork, object params)
run cusolverDn{S,D}syevj(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, device work, i32 lwork, device info, object params)
run cusolverDn{C,Z}heevj(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, device work, i32 lwork, device info, object params)
ask cusolverDn{S,D}syevjBatched_bufferSize(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, out:4 lwork, object params, dim batch)
ask cusolverDn{C,Z}heevjBatched_bufferSize(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, out:4 lwork, object params, dim batch)
run cusolverDn{S,D}syevjBatched(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, device work, i32 lwork, device info, object params, dim batch)
run cusolverDn{C,Z}heevjBatched(object handle, enum jobz, enum uplo, dim n, device a, i32 lda, device w, device work, i32 lwork, device info, object params, dim batch)
ask cusolverDnXsyevd_bufferSize(object handle, object params, enum jobz, enum uplo, dim64 n, enum atype, device a, i64 lda, enum wtype, device w, enum compute, out:8 bytes, out:8 hostbytes)
run cusolverDnXsyevd(object handle, object params, enum jobz, enum uplo, dim64 n, enum atype, device a, i64 lda, enum wtype, device w, enum compute, device work, u64 bytes, in:hostbytes hostwork, u64 hostbytes, device info)
ask cusolverDnXsyevBatched_bufferSize(object handle, object params, enum jobz, enum uplo, dim64 n, enum atype, device a, i64 lda, enum wtype, device w, enum compute, out:8 bytes, out:8 hostbytes, dim64 batch)
run cusolverDnXsyevBatched(object handle, object params, enum jobz, enum uplo, dim64 n, enum atype, device a, i64 lda, enum wtype, device w, enum compute, device work, u64 bytes, in:hostbytes hostwork, u64 hostbytes, device info, dim64 batch)

# Singular values
ask cusolverDn{S,D,C,Z}gesvd_bufferSize(object handle, dim m, dim n, out:4 lwork)
run cusolverDn{S,D,C,Z}gesvd(object handle, enum jobu, enum jobvt, dim m, dim n, device a, i32 lda, device s, device u, i32 ldu, device vt, i32 ldvt, device work, i32 lwork, device rwork, device info)
ask cusolverDn{S,D,C,Z}gesvdj_bufferSize(object handle, enum jobz, i32 econ, dim m, dim n, device a, i32 lda, device s, device u, i32 ldu, device v, i32 ldv, out:4 lwork, object params)
run cusolverDn{S,D,C,Z}gesvdj(object handle, enum jobz, i32 econ, dim m, dim n, device a, i32 lda, device s, device u, i32 ldu, device v, i32 ldv, device work, i32 lwork, device info, object params)
ask cusolverDn{S,D,C,Z}gesvdjBatched_bufferSize(object handle, enum jobz, dim m, dim n, device a, i32 lda, device s, device u, i32 ldu, device v, i32 ldv, out:4 lwork, object params, dim batch)
run cusolverDn{S,D,C,Z}gesvdjBatched(object handle, enum jobz, dim m, dim n, device a, i32 lda, device s, device u, i32 ldu, device v, i32 ldv, device work, i32 lwork, device info, object params, dim batch)
ask cusolverDn{S,D,C,Z}gesvdaStridedBatched_bufferSize(object handle, enum jobz, i32 rank, dim m, dim n, device a, i32 lda, i64 stridea, device s, i64 strides, device u, i32 ldu, i64 strideu, device v, i32 ldv, i64 stridev, out:4 lwork, dim batch)
run cusolverDn{S,D,C,Z}gesvdaStridedBatched(object handle, enum jobz, i32 rank, dim m, dim n, device a, i32 lda, i64 stridea, device s, i64 strides, device u, i32 ldu, i64 strideu, device v, i32 ldv, i64 stridev, device work, i32 lwork, device info, out:8*batch residual, dim batch)
ask cusolverDnXgesvd_bufferSize(object handle, object params, enum jobu, enum jobvt, dim64 m, dim64 n, enum atype, device a, i64 lda, enum stype, device s, enum utype, device u, i64 ldu, enum vtype, device vt, i64 ldvt, enum compute, out:8 bytes, out:8 hostbytes)
run cusolverDnXgesvd(object handle, object params, enum jobu, enum jobvt, dim64 m, dim64 n, enum atype, device a, i64 lda, enum stype, device s, enum utype, device u, i64 ldu, enum vtype, device vt, i64 ldvt, enum compute, device work, u64 bytes, in:hostbytes hostwork, u64 hostbytes, device info)
ask cusolverDnXgesvdp_bufferSize(object handle, object params, enum jobz, i32 econ, dim64 m, dim64 n, enum atype, device a, i64 lda, enum stype, device s, enum utype, device u, i64 ldu, enum vtype, device v, i64 ldv, enum compute, out:8 bytes, out:8 hostbytes)
run cusolverDnXgesvdp(object handle, object params, enum jobz, i32 econ, dim64 m, dim64 n, enum atype, device a, i64 lda, enum stype, device s, enum utype, device u, i64 ldu, enum vtype, device v, i64 ldv, enum compute, device work, u64 bytes, in:hostbytes hostwork, u64 hostbytes, device info, out:8 residual)

# Eigenvalues of any matrix, bidiagonal forms, and symmetric indefinite systems
ask cusolverDnXgeev_bufferSize(object handle, object params, enum jobvl, enum jobvr, dim64 n, enum atype, device a, i64 lda, enum wtype, device w, enum vltype, device vl, i64 ldvl, enum vrtype, device vr, i64 ldvr, enum compute, out:8 bytes, out:8 hostbytes)
run cusolverDnXgeev(object handle, object params, enum jobvl, enum jobvr, dim64 n, enum atype, device a, i64 lda, enum wtype, device w, enum vltype, device vl, i64 ldvl, enum vrtype, device vr, i64 ldvr, enum compute, device work, u64 bytes, in:hostbytes hostwork, u64 hostbytes, device info)
ask cusolverDn{S,D,C,Z}gebrd_bufferSize(object handle, dim m, dim n, out:4 lwork)
run cusolverDn{S,D,C,Z}gebrd(object handle, dim m, dim n, device a, i32 lda, device d, device e, device tauq, device taup, device work, i32 lwork, device info)
ask cusolverDn{S,D,C,Z}sytrf_bufferSize(object handle, dim n, device a, i32 lda, out:4 lwork)
run cusolverDn{S,D,C,Z}sytrf(object handle, enum uplo, dim n, device a, i32 lda, device pivots, device work, i32 lwork, device info)
ask cusolverDnXsytrs_bufferSize(object handle, enum uplo, dim64 n, dim64 nrhs, enum atype, device a, i64 lda, device pivots, enum btype, device b, i64 ldb, out:8 bytes, out:8 hostbytes)
run cusolverDnXsytrs(object handle, enum uplo, dim64 n, dim64 nrhs, enum atype, device a, i64 lda, device pivots, enum btype, device b, i64 ldb, device work, u64 bytes, in:hostbytes hostwork, u64 hostbytes, device info)

# Sparse systems, with descriptors of cuSPARSE
make cusolverSpCreate(new handle)
end cusolverSpDestroy(end handle)
set cusolverSpSetStream(object handle, stream stream)
get cusolverSpGetStream(object handle, any stream) = cusolverSpSetStream
run cusolverSp{S,C}csrlsv{qr,chol}(object handle, dim m, dim nnz, object descriptor, device values, device offsets, device indices, device b, f32 tolerance, i32 reorder, device x, out:4 singularity)
run cusolverSp{D,Z}csrlsv{qr,chol}(object handle, dim m, dim nnz, object descriptor, device values, device offsets, device indices, device b, f64 tolerance, i32 reorder, device x, out:4 singularity)
run cusolverSpScsreigvsi(object handle, dim m, dim nnz, object descriptor, device values, device offsets, device indices, f32 guess, device start, i32 iterations, f32 tolerance, device value, device x)
run cusolverSpDcsreigvsi(object handle, dim m, dim nnz, object descriptor, device values, device offsets, device indices, f64 guess, device start, i32 iterations, f64 tolerance, device value, device x)
run cusolverSpCcsreigvsi(object handle, dim m, dim nnz, object descriptor, device values, device offsets, device indices, complex guess, device start, i32 iterations, f32 tolerance, device value, device x)
run cusolverSpZcsreigvsi(object handle, dim m, dim nnz, object descriptor, device values, device offsets, device indices, f64 guess, f64 imaginary, device start, i32 iterations, f64 tolerance, device value, device x)

# Systems that are solved in lower precision and refined
ask cusolverDn{CC,CK,CY,DD,DH,DS,DX,SH,SS,SX,ZC,ZK,ZY,ZZ}gesv_bufferSize(object handle, dim n, dim nrhs, device a, i32 lda, device pivots, device b, i32 ldb, device x, i32 ldx, device work, out:8 bytes)
run cusolverDn{CC,CK,CY,DD,DH,DS,DX,SH,SS,SX,ZC,ZK,ZY,ZZ}gesv(object handle, dim n, dim nrhs, device a, i32 lda, device pivots, device b, i32 ldb, device x, i32 ldx, device work, u64 bytes, out:4 iterations, device info)
ask cusolverDn{CC,CK,CY,DD,DH,DS,DX,SH,SS,SX,ZC,ZK,ZY,ZZ}gels_bufferSize(object handle, dim m, dim n, dim nrhs, device a, i32 lda, device b, i32 ldb, device x, i32 ldx, device work, out:8 bytes)
run cusolverDn{CC,CK,CY,DD,DH,DS,DX,SH,SS,SX,ZC,ZK,ZY,ZZ}gels(object handle, dim m, dim n, dim nrhs, device a, i32 lda, device b, i32 ldb, device x, i32 ldx, device work, u64 bytes, out:4 iterations, device info)
",
};
