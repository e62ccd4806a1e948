//! cuSPARSE. Matrices and vectors are objects at the server, because work changes what they say.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 6,
    title: "cuSPARSE",
    name: "cusparse",
    shims: &[Shim { soname: "libcusparse.so.12", version: 12_900, node: "libcusparse.so.12" }],
    status: Status { not_initialized: 1, alloc_failed: 2, invalid_value: 3, execution_failed: 6, not_supported: 10 },
    small_handles: false,
    probed: false,
    set_stream: "cusparseSetStream",
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
refused sparse factorisations, solvers, sums and products of two sparse matrices, and block formats are not served yet:
cusparseCbsric02 cusparseCbsric02_analysis cusparseCbsric02_bufferSize cusparseCbsrilu02
cusparseCbsrilu02_analysis cusparseCbsrilu02_bufferSize cusparseCbsrilu02_numericBoost cusparseCbsrmm
cusparseCbsrmv cusparseCbsrsm2_analysis cusparseCbsrsm2_bufferSize cusparseCbsrsm2_solve cusparseCbsrsv2_analysis
cusparseCbsrsv2_bufferSize cusparseCbsrsv2_solve cusparseCcsr2csr_compress cusparseCcsrgeam2
cusparseCcsrgeam2_bufferSizeExt cusparseCcsric02 cusparseCcsric02_analysis cusparseCcsric02_bufferSize
cusparseCcsrilu02 cusparseCcsrilu02_analysis cusparseCcsrilu02_bufferSize cusparseCcsrilu02_numericBoost
cusparseCcsru2csr cusparseCcsru2csr_bufferSizeExt cusparseCgpsvInterleavedBatch
cusparseCgpsvInterleavedBatch_bufferSizeExt cusparseCgtsv2 cusparseCgtsv2StridedBatch
cusparseCgtsv2StridedBatch_bufferSizeExt cusparseCgtsv2_bufferSizeExt cusparseCgtsv2_nopivot
cusparseCgtsv2_nopivot_bufferSizeExt cusparseCgtsvInterleavedBatch cusparseCgtsvInterleavedBatch_bufferSizeExt
cusparseCnnz cusparseCnnz_compress cusparseCreateBsric02Info cusparseCreateBsrilu02Info cusparseCreateBsrsm2Info
cusparseCreateBsrsv2Info cusparseCreateCsric02Info cusparseCreateCsrilu02Info cusparseCreateCsru2csrInfo
cusparseDbsric02 cusparseDbsric02_analysis cusparseDbsric02_bufferSize cusparseDbsrilu02
cusparseDbsrilu02_analysis cusparseDbsrilu02_bufferSize cusparseDbsrilu02_numericBoost cusparseDbsrmm
cusparseDbsrmv cusparseDbsrsm2_analysis cusparseDbsrsm2_bufferSize cusparseDbsrsm2_solve cusparseDbsrsv2_analysis
cusparseDbsrsv2_bufferSize cusparseDbsrsv2_solve cusparseDcsr2csr_compress cusparseDcsrgeam2
cusparseDcsrgeam2_bufferSizeExt cusparseDcsric02 cusparseDcsric02_analysis cusparseDcsric02_bufferSize
cusparseDcsrilu02 cusparseDcsrilu02_analysis cusparseDcsrilu02_bufferSize cusparseDcsrilu02_numericBoost
cusparseDcsru2csr cusparseDcsru2csr_bufferSizeExt cusparseDestroyBsric02Info cusparseDestroyBsrilu02Info
cusparseDestroyBsrsm2Info cusparseDestroyBsrsv2Info cusparseDestroyCsric02Info cusparseDestroyCsrilu02Info
cusparseDestroyCsru2csrInfo cusparseDgpsvInterleavedBatch cusparseDgpsvInterleavedBatch_bufferSizeExt
cusparseDgtsv2 cusparseDgtsv2StridedBatch cusparseDgtsv2StridedBatch_bufferSizeExt cusparseDgtsv2_bufferSizeExt
cusparseDgtsv2_nopivot cusparseDgtsv2_nopivot_bufferSizeExt cusparseDgtsvInterleavedBatch
cusparseDgtsvInterleavedBatch_bufferSizeExt cusparseDnnz cusparseDnnz_compress cusparseSbsric02
cusparseSbsric02_analysis cusparseSbsric02_bufferSize cusparseSbsrilu02 cusparseSbsrilu02_analysis
cusparseSbsrilu02_bufferSize cusparseSbsrilu02_numericBoost cusparseSbsrmm cusparseSbsrmv cusparseSbsrsm2_analysis
cusparseSbsrsm2_bufferSize cusparseSbsrsm2_solve cusparseSbsrsv2_analysis cusparseSbsrsv2_bufferSize
cusparseSbsrsv2_solve cusparseScsr2csr_compress cusparseScsrgeam2 cusparseScsrgeam2_bufferSizeExt cusparseScsric02
cusparseScsric02_analysis cusparseScsric02_bufferSize cusparseScsrilu02 cusparseScsrilu02_analysis
cusparseScsrilu02_bufferSize cusparseScsrilu02_numericBoost cusparseScsru2csr cusparseScsru2csr_bufferSizeExt
cusparseSgpsvInterleavedBatch cusparseSgpsvInterleavedBatch_bufferSizeExt cusparseSgtsv2
cusparseSgtsv2StridedBatch cusparseSgtsv2StridedBatch_bufferSizeExt cusparseSgtsv2_bufferSizeExt
cusparseSgtsv2_nopivot cusparseSgtsv2_nopivot_bufferSizeExt cusparseSgtsvInterleavedBatch
cusparseSgtsvInterleavedBatch_bufferSizeExt cusparseSnnz cusparseSnnz_compress cusparseSpGEMM_compute
cusparseSpGEMM_copy cusparseSpGEMM_createDescr cusparseSpGEMM_destroyDescr cusparseSpGEMM_workEstimation
cusparseSpSM_analysis cusparseSpSM_bufferSize cusparseSpSM_createDescr cusparseSpSM_destroyDescr
cusparseSpSM_solve cusparseSpSV_analysis cusparseSpSV_bufferSize cusparseSpSV_createDescr
cusparseSpSV_destroyDescr cusparseSpSV_solve cusparseSpVV cusparseSpVV_bufferSize cusparseXbsric02_zeroPivot
cusparseXbsrilu02_zeroPivot cusparseXbsrsm2_zeroPivot cusparseXbsrsv2_zeroPivot cusparseXcsrgeam2Nnz
cusparseXcsric02_zeroPivot cusparseXcsrilu02_zeroPivot cusparseZbsric02 cusparseZbsric02_analysis
cusparseZbsric02_bufferSize cusparseZbsrilu02 cusparseZbsrilu02_analysis cusparseZbsrilu02_bufferSize
cusparseZbsrilu02_numericBoost cusparseZbsrmm cusparseZbsrmv cusparseZbsrsm2_analysis cusparseZbsrsm2_bufferSize
cusparseZbsrsm2_solve cusparseZbsrsv2_analysis cusparseZbsrsv2_bufferSize cusparseZbsrsv2_solve
cusparseZcsr2csr_compress cusparseZcsrgeam2 cusparseZcsrgeam2_bufferSizeExt cusparseZcsric02
cusparseZcsric02_analysis cusparseZcsric02_bufferSize cusparseZcsrilu02 cusparseZcsrilu02_analysis
cusparseZcsrilu02_bufferSize cusparseZcsrilu02_numericBoost cusparseZcsru2csr cusparseZcsru2csr_bufferSizeExt
cusparseZgpsvInterleavedBatch cusparseZgpsvInterleavedBatch_bufferSizeExt cusparseZgtsv2
cusparseZgtsv2StridedBatch cusparseZgtsv2StridedBatch_bufferSizeExt cusparseZgtsv2_bufferSizeExt
cusparseZgtsv2_nopivot cusparseZgtsv2_nopivot_bufferSizeExt cusparseZgtsvInterleavedBatch
cusparseZgtsvInterleavedBatch_bufferSizeExt cusparseZnnz cusparseZnnz_compress
",
};
