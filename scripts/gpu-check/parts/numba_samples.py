"""Numba on the GPU."""

import numpy
from numba import cuda, float32
from samples import show

TILE = 16


@cuda.jit
def add_kernel(out, x, y):
    at = cuda.grid(1)
    if at < out.size:
        out[at] = x[at] + y[at]


@cuda.jit
def product_kernel(out, x, y):
    left, right = cuda.shared.array((TILE, TILE), float32), cuda.shared.array((TILE, TILE), float32)
    row, column = cuda.grid(2)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for step in range(x.shape[1] // TILE):
        left[i, j], right[i, j] = x[row, step * TILE + j], y[step * TILE + i, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[i, k] * right[k, j]
        cuda.syncthreads()
    out[row, column] = total


@cuda.jit
def histogram_kernel(out, values):
    at = cuda.grid(1)
    if at < values.size:
        cuda.atomic.add(out, values[at], 1)


def add():
    x = numpy.arange(100_000, dtype=numpy.float32)
    out = cuda.device_array_like(x)
    add_kernel[400, 256](out, cuda.to_device(x), cuda.to_device(x[::-1].copy()))
    return out.copy_to_host()


def product():
    rng = numpy.random.default_rng(0)
    x, y = (rng.random((256, 256), dtype=numpy.float32) for _ in range(2))
    out = cuda.device_array((256, 256), dtype=numpy.float32)
    product_kernel[(16, 16), (TILE, TILE)](out, cuda.to_device(x), cuda.to_device(y))
    return out.copy_to_host()


def histogram():
    out = cuda.to_device(numpy.zeros(64, dtype=numpy.int32))
    histogram_kernel[400, 256](out, cuda.to_device(numpy.random.default_rng(0).integers(0, 64, 100_000)))
    return out.copy_to_host()


show(add, product, histogram)
