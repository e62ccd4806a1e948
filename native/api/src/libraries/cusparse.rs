//! cuSPARSE. Matrices and vectors are objects at the server, because work changes what they say.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 6,
    title: "cuSPARSE",
    name: "cusparse",
    shims: &[Shim { soname: "libcusparse.so.12", version: 12_900, node: "libcusparse.so.12" }],
    status: Status { not_initialized: 1, alloc_failed: 2, invalid_value: 3, execution_failed: 6, not_supported: 10 },
    small_handles: false,
    in_place: false,
    probed: false,
    set_pointer_mode: "cusparseSetPointerMode",
    functions: "
local cusparseGetErrorName(enum status)
local cusparseGetErrorString(enum status)
local cusparseGetVersion(any handle, any version)
local cusparseGetProperty(enum property, any value)
make cusparseCreate(new handle)
end cusparseDestroy(end handle)
set cusparseSetStream(object handle, stream stream)
get cusparseGetStream(object handle, any stream) = cusparseSetStream
set cusparseSetPointerMode(object handle, enum mode)
get cusparseGetPointerMode(object handle, any mode) = cusparseSetPointerMode

# Matrices and vectors
make cusparseCreate{,Const}Csr(new object, i64 rows, i64 cols, i64 nnz, device offsets, device indices, device values, enum offsetstype, enum indextype, enum base, enum type)
make cusparseCreate{,Const}Csc(new object, i64 rows, i64 cols, i64 nnz, device offsets, device indices, device values, enum offsetstype, enum indextype, enum base, enum type)
make cusparseCreate{,Const}Coo(new object, i64 rows, i64 cols, i64 nnz, device rowindices, device indices, device values, enum indextype, enum base, enum type)
make cusparseCreate{,Const}SpVec(new object, i64 size, i64 nnz, device indices, device values, enum indextype, enum base, enum type)
make cusparseCreate{,Const}DnVec(new object, i64 size, device values, enum type)
make cusparseCreate{,Const}DnMat(new object, i64 rows, i64 cols, i64 ld, device values, enum type, enum order)
end cusparseDestroy{SpMat,SpVec,DnVec,DnMat}(end object)
set cusparse{Csr,Csc}SetPointers(object object, device offsets, device indices, device values)
set cusparseCooSetPointers(object object, device rowindices, device indices, device values)
set cusparse{SpMat,SpVec,DnVec,DnMat}SetValues(object object, device values)
set cusparseCsrSetStridedBatch(object object, i32 batch, i64 offsetsstride, i64 stride)
set cusparse{Coo,DnMat}SetStridedBatch(object object, i32 batch, i64 stride)
set cusparseSpMatSetAttribute(object object, enum attribute, in:bytes data, u64 bytes)
run cusparse{Csr,Csc}Get(object object, out:8 rows, out:8 cols, out:8 nnz, out:8 offsets, out:8 indices, out:8 values, out:4 offsetstype, out:4 indextype, out:4 base, out:4 type)
run cusparseCooGet(object object, out:8 rows, out:8 cols, out:8 nnz, out:8 rowindices, out:8 indices, out:8 values, out:4 indextype, out:4 base, out:4 type)
run cusparseSpMatGetSize(object object, out:8 rows, out:8 cols, out:8 nnz)
run cusparseSpMatGetFormat(object object, out:4 format)
run cusparse{SpMat,SpVec}GetIndexBase(object object, out:4 base)
run cusparse{SpMat,SpVec,DnVec,DnMat}GetValues(object object, out:8 values)
run cusparseSpMatGetStridedBatch(object object, out:4 batch)
run cusparseSpVecGet(object object, out:8 size, out:8 nnz, out:8 indices, out:8 values, out:4 indextype, out:4 base, out:4 type)
run cusparseDnVecGet(object object, out:8 size, out:8 values, out:4 type)
run cusparseDnMatGet(object object, out:8 rows, out:8 cols, out:8 ld, out:8 values, out:4 type, out:4 order)
run cusparseDnMatGetStridedBatch(object object, out:4 batch, out:8 stride)
make cusparseCreateMatDescr(new object)
end cusparseDestroyMatDescr(end object)
set cusparseSetMatType(object object, enum type)
set cusparseSetMatFillMode(object object, enum fill)
set cusparseSetMatDiagType(object object, enum diagonal)
set cusparseSetMatIndexBase(object object, enum base)

# Products
ask cusparseSpMV_bufferSize(object handle, enum opa, scalar:data(compute) alpha, object a, object x, scalar:data(compute) beta, object y, enum compute, enum algorithm, out:8 bytes)
run cusparseSpMV{_preprocess,}(object handle, enum opa, scalar:data(compute) alpha, object a, object x, scalar:data(compute) beta, object y, enum compute, enum algorithm, device buffer)
ask cusparseSpMM_bufferSize(object handle, enum opa, enum opb, scalar:data(compute) alpha, object a, object b, scalar:data(compute) beta, object c, enum compute, enum algorithm, out:8 bytes)
run cusparseSpMM{_preprocess,}(object handle, enum opa, enum opb, scalar:data(compute) alpha, object a, object b, scalar:data(compute) beta, object c, enum compute, enum algorithm, device buffer)
ask cusparseSDDMM_bufferSize(object handle, enum opa, enum opb, scalar:data(compute) alpha, object a, object b, scalar:data(compute) beta, object c, enum compute, enum algorithm, out:8 bytes)
run cusparseSDDMM{_preprocess,}(object handle, enum opa, enum opb, scalar:data(compute) alpha, object a, object b, scalar:data(compute) beta, object c, enum compute, enum algorithm, device buffer)

# Conversions
ask cusparseSparseToDense_bufferSize(object handle, object a, object b, enum algorithm, out:8 bytes)
run cusparseSparseToDense(object handle, object a, object b, enum algorithm, device buffer)
run cusparseGather(object handle, object y, object x)
run cusparseCreateIdentityPermutation(object handle, dim n, device permutation)
run cusparseXcoo2csr(object handle, device rowindices, dim nnz, dim m, device offsets, enum base)
run cusparseXcsr2coo(object handle, device offsets, dim nnz, dim m, device rowindices, enum base)
ask cusparseCsr2cscEx2_bufferSize(object handle, dim m, dim n, dim nnz, device values, device offsets, device indices, device newvalues, device newoffsets, device newindices, enum type, enum action, enum base, enum algorithm, out:8 bytes)
run cusparseCsr2cscEx2(object handle, dim m, dim n, dim nnz, device values, device offsets, device indices, device newvalues, device newoffsets, device newindices, enum type, enum action, enum base, enum algorithm, device buffer)
ask cusparseXcoosort_bufferSizeExt(object handle, dim m, dim n, dim nnz, device rowindices, device indices, out:8 bytes)
run cusparseXcoosort{ByRow,ByColumn}(object handle, dim m, dim n, dim nnz, device rowindices, device indices, device permutation, device buffer)
ask cusparseX{csr,csc}sort_bufferSizeExt(object handle, dim m, dim n, dim nnz, device offsets, device indices, out:8 bytes)
run cusparseX{csr,csc}sort(object handle, dim m, dim n, dim nnz, object descriptor, device offsets, device indices, device permutation, device buffer)

# Dense matrices become sparse; only what is not nearly zero stays
ask cusparseDenseToSparse_bufferSize(object handle, object a, object b, enum algorithm, out:8 bytes)
run cusparseDenseToSparse_{analysis,convert}(object handle, object a, object b, enum algorithm, device buffer)
run cusparse{S,D,C,Z}nnz(object handle, enum direction, dim m, dim n, object descriptor, device a, i32 lda, device counts, result:4 total)
run cusparseSnnz_compress(object handle, dim m, object descriptor, device values, device offsets, device counts, result:4 total, f32 tolerance)
run cusparseDnnz_compress(object handle, dim m, object descriptor, device values, device offsets, device counts, result:4 total, f64 tolerance)
run cusparseCnnz_compress(object handle, dim m, object descriptor, device values, device offsets, device counts, result:4 total, complex tolerance)
run cusparseZnnz_compress(object handle, dim m, object descriptor, device values, device offsets, device counts, result:4 total, f64 tolerance, f64 imaginary)
run cusparseScsr2csr_compress(object handle, dim m, dim n, object descriptor, device values, device indices, device offsets, dim nnz, device counts, device newvalues, device newindices, device newoffsets, f32 tolerance)
run cusparseDcsr2csr_compress(object handle, dim m, dim n, object descriptor, device values, device indices, device offsets, dim nnz, device counts, device newvalues, device newindices, device newoffsets, f64 tolerance)
run cusparseCcsr2csr_compress(object handle, dim m, dim n, object descriptor, device values, device indices, device offsets, dim nnz, device counts, device newvalues, device newindices, device newoffsets, complex tolerance)
run cusparseZcsr2csr_compress(object handle, dim m, dim n, object descriptor, device values, device indices, device offsets, dim nnz, device counts, device newvalues, device newindices, device newoffsets, f64 tolerance, f64 imaginary)

# Sums and products of two sparse matrices. How long a work area must be may follow from what the matrices hold
ask cusparseSpVV_bufferSize(object handle, enum opx, object x, object y, both:data(compute) result, enum compute, out:8 bytes)
run cusparseSpVV(object handle, enum opx, object x, object y, result:data(compute) result, enum compute, device buffer)
run cusparse{S,D,C,Z}csrgeam2_bufferSizeExt(object handle, dim m, dim n, scalar:T alpha, object adescriptor, dim annz, device avalues, device aoffsets, device aindices, scalar:T beta, object bdescriptor, dim bnnz, device bvalues, device boffsets, device bindices, object cdescriptor, device cvalues, device coffsets, device cindices, out:8 bytes)
run cusparseXcsrgeam2Nnz(object handle, dim m, dim n, object adescriptor, dim annz, device aoffsets, device aindices, object bdescriptor, dim bnnz, device boffsets, device bindices, object cdescriptor, device coffsets, result:4 total, device buffer)
run cusparse{S,D,C,Z}csrgeam2(object handle, dim m, dim n, scalar:T alpha, object adescriptor, dim annz, device avalues, device aoffsets, device aindices, scalar:T beta, object bdescriptor, dim bnnz, device bvalues, device boffsets, device bindices, object cdescriptor, device cvalues, device coffsets, device cindices, device buffer)
make cusparseSpGEMM_createDescr(new work)
end cusparseSpGEMM_destroyDescr(end work)
run cusparseSpGEMM_{workEstimation,compute}(object handle, enum opa, enum opb, scalar:data(compute) alpha, object a, object b, scalar:data(compute) beta, object c, enum compute, enum algorithm, object work, inout:8 bytes, device buffer)
run cusparseSpGEMM_copy(object handle, enum opa, enum opb, scalar:data(compute) alpha, object a, object b, scalar:data(compute) beta, object c, enum compute, enum algorithm, object work)

# Triangular systems
make cusparseSpSV_createDescr(new work)
end cusparseSpSV_destroyDescr(end work)
run cusparseSpSV_bufferSize(object handle, enum opa, scalar:data(compute) alpha, object a, object x, object y, enum compute, enum algorithm, object work, out:8 bytes)
run cusparseSpSV_analysis(object handle, enum opa, scalar:data(compute) alpha, object a, object x, object y, enum compute, enum algorithm, object work, device buffer)
run cusparseSpSV_solve(object handle, enum opa, scalar:data(compute) alpha, object a, object x, object y, enum compute, enum algorithm, object work)
make cusparseSpSM_createDescr(new work)
end cusparseSpSM_destroyDescr(end work)
run cusparseSpSM_bufferSize(object handle, enum opa, enum opb, scalar:data(compute) alpha, object a, object b, object c, enum compute, enum algorithm, object work, out:8 bytes)
run cusparseSpSM_analysis(object handle, enum opa, enum opb, scalar:data(compute) alpha, object a, object b, object c, enum compute, enum algorithm, object work, device buffer)
run cusparseSpSM_solve(object handle, enum opa, enum opb, scalar:data(compute) alpha, object a, object b, object c, enum compute, enum algorithm, object work)

# Tridiagonal and pentadiagonal systems
ask cusparse{S,D,C,Z}gtsv2{,_nopivot}_bufferSizeExt(object handle, dim m, dim n, device lower, device diagonal, device upper, device b, i32 ldb, out:8 bytes)
run cusparse{S,D,C,Z}gtsv2{,_nopivot}(object handle, dim m, dim n, device lower, device diagonal, device upper, device b, i32 ldb, device buffer)
ask cusparse{S,D,C,Z}gtsv2StridedBatch_bufferSizeExt(object handle, dim m, device lower, device diagonal, device upper, device x, dim batch, i32 stride, out:8 bytes)
run cusparse{S,D,C,Z}gtsv2StridedBatch(object handle, dim m, device lower, device diagonal, device upper, device x, dim batch, i32 stride, device buffer)
ask cusparse{S,D,C,Z}gtsvInterleavedBatch_bufferSizeExt(object handle, i32 algorithm, dim m, device lower, device diagonal, device upper, device x, dim batch, out:8 bytes)
run cusparse{S,D,C,Z}gtsvInterleavedBatch(object handle, i32 algorithm, dim m, device lower, device diagonal, device upper, device x, dim batch, device buffer)
ask cusparse{S,D,C,Z}gpsvInterleavedBatch_bufferSizeExt(object handle, i32 algorithm, dim m, device lowest, device lower, device diagonal, device upper, device uppest, device x, dim batch, out:8 bytes)
run cusparse{S,D,C,Z}gpsvInterleavedBatch(object handle, i32 algorithm, dim m, device lowest, device lower, device diagonal, device upper, device uppest, device x, dim batch, device buffer)

# Incomplete factorisations; an info holds what an analysis found
make cusparseCreate{Csric02,Csrilu02,Bsric02,Bsrilu02,Bsrsv2,Bsrsm2,Csru2csr}Info(new info)
end cusparseDestroy{Csric02,Csrilu02,Bsric02,Bsrilu02,Bsrsv2,Bsrsm2,Csru2csr}Info(end info)
run cusparseX{csric02,csrilu02,bsric02,bsrilu02,bsrsv2,bsrsm2}_zeroPivot(object handle, object info, result:4 position)
run cusparse{S,D,C,Z}csrilu02_numericBoost(object handle, object info, i32 enable, scalar:8 tolerance, scalar:T value)
run cusparse{S,D,C,Z}bsrilu02_numericBoost(object handle, object info, i32 enable, scalar:8 tolerance, scalar:T value)
run cusparse{S,D,C,Z}{csric02,csrilu02}_bufferSize(object handle, dim m, dim nnz, object descriptor, device values, device offsets, device indices, object info, out:4 bytes)
run cusparse{S,D,C,Z}{csric02,csrilu02}{_analysis,}(object handle, dim m, dim nnz, object descriptor, device values, device offsets, device indices, object info, enum policy, device buffer)
run cusparse{S,D,C,Z}{bsric02,bsrilu02}_bufferSize(object handle, enum direction, dim m, dim nnz, object descriptor, device values, device offsets, device indices, dim block, object info, out:4 bytes)
run cusparse{S,D,C,Z}{bsric02,bsrilu02}{_analysis,}(object handle, enum direction, dim m, dim nnz, object descriptor, device values, device offsets, device indices, dim block, object info, enum policy, device buffer)
run cusparse{S,D,C,Z}csru2csr_bufferSizeExt(object handle, dim m, dim n, dim nnz, device values, device offsets, device indices, object info, out:8 bytes)
run cusparse{S,D,C,Z}csru2csr(object handle, dim m, dim n, dim nnz, object descriptor, device values, device offsets, device indices, object info, device buffer)

# Matrices of blocks
run cusparse{S,D,C,Z}bsrmv(object handle, enum direction, enum opa, dim m, dim n, dim nnz, scalar:T alpha, object descriptor, device values, device offsets, device indices, dim block, device x, scalar:T beta, device y)
run cusparse{S,D,C,Z}bsrmm(object handle, enum direction, enum opa, enum opb, dim m, dim n, dim k, dim nnz, scalar:T alpha, object descriptor, device values, device offsets, device indices, dim block, device b, i32 ldb, scalar:T beta, device c, i32 ldc)
run cusparse{S,D,C,Z}bsrsv2_bufferSize(object handle, enum direction, enum opa, dim m, dim nnz, object descriptor, device values, device offsets, device indices, dim block, object info, out:4 bytes)
run cusparse{S,D,C,Z}bsrsv2_analysis(object handle, enum direction, enum opa, dim m, dim nnz, object descriptor, device values, device offsets, device indices, dim block, object info, enum policy, device buffer)
run cusparse{S,D,C,Z}bsrsv2_solve(object handle, enum direction, enum opa, dim m, dim nnz, scalar:T alpha, object descriptor, device values, device offsets, device indices, dim block, object info, device b, device x, enum policy, device buffer)
run cusparse{S,D,C,Z}bsrsm2_bufferSize(object handle, enum direction, enum opa, enum opx, dim m, dim n, dim nnz, object descriptor, device values, device offsets, device indices, dim block, object info, out:4 bytes)
run cusparse{S,D,C,Z}bsrsm2_analysis(object handle, enum direction, enum opa, enum opx, dim m, dim n, dim nnz, object descriptor, device values, device offsets, device indices, dim block, object info, enum policy, device buffer)
run cusparse{S,D,C,Z}bsrsm2_solve(object handle, enum direction, enum opa, enum opx, dim m, dim n, dim nnz, scalar:T alpha, object descriptor, device values, device offsets, device indices, dim block, object info, device b, i32 ldb, device x, i32 ldx, enum policy, device buffer)
",
};
