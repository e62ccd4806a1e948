"""A program that multiplies by a sparse matrix with cuSPARSELt, as PyTorch does, on a GPU server whose cuSPARSELt is
the stand-in of standins/cusparselt.c.

    sluice-loopback --no-attach ... -- python3 cusparselt.py
"""

import ctypes
from ctypes import byref, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from remoted import attach, blocking, cuda, download, introduce, ok, upload

lt = ctypes.CDLL("libcusparseLt.so.0")
Structure = ctypes.c_uint8 * 512
M, K, N = 2, 3, 2
A, B = [1, 2, 0, 0, -3, 4], [1, 2, 3, 4, 5, 6]
PRODUCT = [sum(A[row * K + i] * B[i * N + column] for i in range(K)) for row in range(M) for column in range(N)]


def version():
    """What the library says that it is."""
    value, parts = c_int(), []
    for part in range(3):
        ok(lt.cusparseLtGetProperty(part, byref(value)))
        parts.append(value.value)
    ok(lt.cusparseLtGetVersion(None, byref(value)))
    assert value.value == parts[0] * 1000 + parts[1] * 100 + parts[2]
    return parts


def matrix(handle, rows, columns, sparse=False):
    """A descriptor of floats by rows."""
    made = Structure()
    arguments = (handle, made, c_int64(rows), c_int64(columns), c_int64(columns), c_uint32(16), 0, 2)
    ok(lt.cusparseLtStructuredDescriptorInit(*arguments, 0) if sparse else lt.cusparseLtDenseDescriptorInit(*arguments))
    return made


class Multiplication:
    """A product with its plan; the structures are used again for each."""

    a, b, c, product, selection, plan = (Structure() for _ in range(6))

    def __init__(self, handle, bias=None, by_vector=False):
        self.handle = handle
        self.a = matrix(handle, M, K, sparse=True)
        self.b, self.c = matrix(handle, K, N), matrix(handle, M, N)
        arguments = (handle, self.product, 0, 0, self.a, self.b, self.c, self.c)
        ok(lt.cusparseLtMatmulDescriptorInit(*arguments, 2))
        if bias:
            self.set(0, c_int(1))
            self.set(8, bias)
        if by_vector:
            self.set(5, c_int(1))
        ok(lt.cusparseLtMatmulAlgSelectionInit(handle, self.selection, self.product, 0))

    def set(self, attribute, value):
        """Write an attribute of the product."""
        size = c_size_t(ctypes.sizeof(value))
        ok(lt.cusparseLtMatmulDescSetAttribute(self.handle, self.product, attribute, byref(value), size))

    def ready(self):
        """Make the plan, and answer the bytes of its work area."""
        ok(lt.cusparseLtMatmulPlanInit(self.handle, self.plan, self.product, self.selection))
        size = c_size_t()
        ok(lt.cusparseLtMatmulGetWorkspace(self.handle, self.plan, byref(size)))
        return size.value

    def run(self, function, alpha, a, b, beta, d, work, stream):
        """Multiply."""
        return function(self.handle, self.plan, alpha, a, b, byref(beta), d, d, work, byref(stream), 1)

    def end(self):
        """End what has an end."""
        ok(lt.cusparseLtMatmulPlanDestroy(self.plan))
        for one in (self.a, self.b, self.c):
            ok(lt.cusparseLtMatDescriptorDestroy(one))


def compressed(handle, stream):
    """The sparse matrix as products want it."""
    one, size, room = matrix(handle, M, K, sparse=True), c_size_t(), c_size_t()
    batches, told = c_int(3), c_int()
    ok(lt.cusparseLtMatDescSetAttribute(handle, one, 0, byref(batches), c_size_t(4)))
    ok(lt.cusparseLtMatDescGetAttribute(handle, one, 0, byref(told), c_size_t(4)))
    assert told.value == 3
    ok(lt.cusparseLtSpMMACompressedSize2(handle, one, byref(size), byref(room)))
    assert (size.value, room.value) == (4 * M * K, 32)
    target, buffer = upload([0] * (M * K)), upload([0] * 8)
    ok(lt.cusparseLtSpMMACompress2(handle, one, 1, 0, upload(A), target, buffer, stream))
    ok(lt.cusparseLtMatDescriptorDestroy(one))
    return target


def main():
    """See the module."""
    introduce()
    assert version() == [0, 8, 0], version()
    attach()
    handle, stream = Structure(), c_void_p()
    assert lt.cusparseLtDestroy(handle) == 1, "nothing was made there"
    ok(lt.cusparseLtInit(handle))
    assert version() == [0, 9, 2], version()
    ok(cuda.cuStreamCreate(byref(stream), 0))
    a, b, d, work = compressed(handle, stream), upload(B), upload([0] * (M * N)), upload([0] * 64)
    zero, two = c_float(0), c_float(2)

    plain = Multiplication(handle)
    assert plain.ready() == 64
    for turn in range(2):
        waited = blocking(lambda: ok(plain.run(lt.cusparseLtMatmul, byref(two), a, b, zero, d, work, stream)))
        assert waited == (turn == 0), waited
        assert download(d, M * N) == [2 * value for value in PRODUCT]
    ok(plain.run(lt.cusparseLtMatmulSearch, byref(two), a, b, two, d, work, stream))
    assert download(d, M * N) == [6 * value for value in PRODUCT]
    size = c_size_t()
    ok(lt.cusparseLtMatmulGetWorkspace(handle, plain.plan, byref(size)))
    assert size.value == 128, "the search has changed the plan"
    several = (c_void_p * 2)(stream, stream)
    assert lt.cusparseLtMatmul(handle, plain.plan, byref(two), a, b, byref(zero), d, d, work, several, 2) == 10
    # What is not valid is told at the call, and does no harm.
    split = c_int(9)
    assert lt.cusparseLtMatmulAlgSetAttribute(handle, plain.selection, 3, byref(split), c_size_t(4)) == 10
    split.value = 4
    ok(lt.cusparseLtMatmulAlgSetAttribute(handle, plain.selection, 3, byref(split), c_size_t(4)))
    most = c_int()
    ok(lt.cusparseLtMatmulAlgGetAttribute(handle, plain.selection, 1, byref(most), c_size_t(4)))
    assert most.value == 5
    plain.end()

    # The same structures again, with a bias and a factor for each row in device memory.
    scaled = Multiplication(handle, bias=upload([10, -100]), by_vector=True)
    factors = upload([1, -1])
    assert scaled.ready() == 64
    ok(scaled.run(lt.cusparseLtMatmul, factors, a, b, zero, d, work, stream))
    assert download(d, M * N) == [PRODUCT[0] + 10, PRODUCT[1] + 10, 0, 0], download(d, M * N)
    scaled.end()
    copy = Structure.from_buffer_copy(handle)
    ok(lt.cusparseLtDestroy(copy))
    assert lt.cusparseLtDestroy(handle) == 1
    print("ok")


main()
