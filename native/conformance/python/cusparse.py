"""A program that factors and multiplies sparse matrices with cuSPARSE on a GPU server whose cuSPARSE is the stand-in of
standins/cusparse.c.

    sluice-loopback --no-attach ... -- python3 cusparse.py
"""

import ctypes
from ctypes import byref, c_double, c_float, c_int, c_int64, c_size_t, c_void_p

from remoted import attach, blocking, cuda, download, introduce, ok, upload

sparse = ctypes.CDLL("libcusparse.so.12")


class Single(ctypes.Structure):
    """A cuComplex."""

    _fields_ = [("real", c_float), ("imaginary", c_float)]


class Double(ctypes.Structure):
    """A cuDoubleComplex."""

    _fields_ = [("real", c_double), ("imaginary", c_double)]


def made(function, *arguments):
    """The object that a function makes."""
    object_ = c_void_p()
    ok(function(byref(object_), *arguments))
    return object_


def factors(handle, descriptor):
    """An incomplete factorisation: each step finds what the one before left in the info."""
    info, size, position = made(sparse.cusparseCreateCsrilu02Info), c_int(), c_int()
    values, offsets, indices = upload([1, 2, 3]), upload([0, 2, 3], c_int), upload([0, 1, 1], c_int)
    matrix = (2, 3, descriptor, values, offsets, indices, info)
    ok(sparse.cusparseScsrilu02_bufferSize(handle, *matrix, byref(size)))
    assert size.value == 48
    buffer = upload([0] * 12)
    ok(sparse.cusparseScsrilu02_numericBoost(handle, info, 1, byref(c_double(0.125)), byref(c_float(3))))
    ok(sparse.cusparseScsrilu02_analysis(handle, *matrix, 1, buffer))
    for turn in range(2):
        assert blocking(lambda: ok(sparse.cusparseScsrilu02(handle, *matrix, 1, buffer))) == (turn == 0)
    assert download(values, 3) == [4, 8, 12]
    # Where the pivot is, is told beside the status.
    assert (sparse.cusparseXcsrilu02_zeroPivot(handle, info, byref(position)), position.value) == (9, 2)
    ok(sparse.cusparseDestroyCsrilu02Info(info))
    assert sparse.cusparseDestroyCsrilu02Info(info) != 0


def products(handle):
    """A product of two sparse matrices: work areas as long as the library says, factors where the mode says."""

    def matrix(count):
        places = upload([0] * 3, c_int), upload([0] * count, c_int)
        values = upload([0] * count)
        return made(sparse.cusparseCreateCsr, *map(c_int64, (2, 2, count)), *places, values, 2, 2, 0, 0), values

    (a, _), (b, _), (c, values) = matrix(3), matrix(4), matrix(1)
    work, zero = made(sparse.cusparseSpGEMM_createDescr), c_float(0)
    for mode, alpha, beta in ((0, byref(c_float(5)), byref(zero)), (1, upload([7]), upload([0]))):
        ok(sparse.cusparseSetPointerMode(handle, mode))
        call = (handle, 0, 0, alpha, a, b, beta, c, 0, 0, work)
        for function, wanted in ((sparse.cusparseSpGEMM_workEstimation, 48), (sparse.cusparseSpGEMM_compute, 96)):
            size = c_size_t(1)
            ok(function(*call, byref(size), None))
            assert size.value == wanted
            ok(function(*call, byref(size), upload([0] * wanted)))
        ok(sparse.cusparseSpGEMM_copy(*call))
        assert download(values, 1) == [5 if mode == 0 else 7]
        sizes = [c_int64() for _ in range(3)]
        ok(sparse.cusparseSpMatGetSize(c, *map(byref, sizes)))
        assert [size.value for size in sizes] == [2, 2, 7]
    ok(sparse.cusparseSetPointerMode(handle, 0))
    ok(sparse.cusparseSpGEMM_destroyDescr(work))
    for one in (a, b, c):
        ok(sparse.cusparseDestroySpMat(one))


def tolerances(handle, descriptor):
    """Numbers that are passed by value in one register, in half of one, and in two."""
    counts = upload([0, 0], c_int)
    for function, tolerance, wanted in (
        (sparse.cusparseSnnz_compress, c_float(1.5), [15, 0]),
        (sparse.cusparseCnnz_compress, Single(1.5, -2.5), [15, -25]),
        (sparse.cusparseZnnz_compress, Double(2.5, 0.5), [25, 5]),
    ):
        for mode, total in ((0, c_int()), (1, upload([0], c_int))):
            ok(sparse.cusparseSetPointerMode(handle, mode))
            place = total if mode else byref(total)
            ok(function(handle, 2, descriptor, upload([1]), upload([0]), counts, place, tolerance))
            assert download(counts, 2, c_int) == wanted
            told = download(total, 1, c_int)[0] if mode else total.value
            assert told == sum(wanted), told
    ok(sparse.cusparseSetPointerMode(handle, 0))


def main():
    """See the module."""
    introduce()
    version, stream = c_int(), c_void_p()
    ok(sparse.cusparseGetVersion(None, byref(version)))
    assert version.value == 12900, version
    attach()
    handle = made(sparse.cusparseCreate)
    ok(sparse.cusparseGetVersion(handle, byref(version)))
    assert version.value == 12703, version
    ok(cuda.cuStreamCreate(byref(stream), 0))
    ok(sparse.cusparseSetStream(handle, stream))
    descriptor = made(sparse.cusparseCreateMatDescr)
    factors(handle, descriptor)
    products(handle)
    tolerances(handle, descriptor)
    # What this server's library lacks is refused by name.
    assert sparse.cusparseSpSV_createDescr(byref(c_void_p())) == 10
    ok(sparse.cusparseDestroy(handle))
    print("ok")


main()
