"""The benchmark's kernels by NumPy and Numba on the CPU (`cpu`), or by Numba's CUDA simulator (`simulator`).

Prints one line of JSON with milliseconds, the best of a few runs.
"""

import json
import sys
import time

import numpy as np

if sys.argv[1] == "simulator":
    # The simulator puts its own module in the place of this one while a kernel runs.
    from numba import cuda, float32


def best(runs, work):
    work()
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times) * 1e3


def on_the_cpu():
    import numba

    @numba.njit(parallel=True, fastmath=False)
    def mandelbrot(out, x0, y0, dx, dy, limit):
        for y in numba.prange(out.shape[0]):
            for x in range(out.shape[1]):
                cr, ci, zr, zi, n = x0 + x * dx, y0 + y * dy, 0.0, 0.0, limit
                for k in range(limit):
                    t = zr * zr - zi * zi + cr
                    zi = 2.0 * zr * zi + ci
                    zr = t
                    if zr * zr + zi * zi > 4.0:
                        n = k
                        break
                out[y, x] = n

    @numba.njit(parallel=True)
    def kmeans(points, centres, labels):
        for i in numba.prange(points.shape[0]):
            best_centre, distance = 0, np.inf
            for k in range(centres.shape[0]):
                d = 0.0
                for j in range(points.shape[1]):
                    t = points[i, j] - centres[k, j]
                    d += t * t
                if d < distance:
                    distance, best_centre = d, k
            labels[i] = best_centre

    random = np.random.default_rng(7)
    x, y = np.ones(16 << 20, np.float32), np.ones(16 << 20, np.float32)
    image = np.zeros((2048, 2048), np.int32)
    step = 2.5 / 2048
    points, centres, labels = random.random((1 << 20, 16)), random.random((16, 16)), np.zeros(1 << 20, np.int32)
    a = np.float32(2)
    return {
        "saxpy_ms": best(20, lambda: a * x + y),
        "mandelbrot_ms": best(3, lambda: mandelbrot(image, -2.0, -1.25, step, step, 200)),
        "kmeans_ms": best(3, lambda: kmeans(points, centres, labels)),
    }


def in_the_simulator():
    @cuda.jit
    def mandelbrot(out, x0, y0, dx, dy, limit):
        x, y = cuda.grid(2)
        if y < out.shape[0] and x < out.shape[1]:
            cr, ci, zr, zi, n = x0 + x * dx, y0 + y * dy, 0.0, 0.0, limit
            for k in range(limit):
                t = zr * zr - zi * zi + cr
                zi = 2.0 * zr * zi + ci
                zr = t
                if zr * zr + zi * zi > 4.0:
                    n = k
                    break
            out[y, x] = n

    @cuda.jit
    def kmeans(points, centres, labels):
        i = cuda.grid(1)
        if i < points.shape[0]:
            best_centre, distance = 0, np.inf
            for k in range(centres.shape[0]):
                d = 0.0
                for j in range(points.shape[1]):
                    t = points[i, j] - centres[k, j]
                    d += t * t
                if d < distance:
                    distance, best_centre = d, k
            labels[i] = best_centre

    @cuda.jit
    def matmul(a, b, out):
        sa = cuda.shared.array((16, 16), float32)
        sb = cuda.shared.array((16, 16), float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0.0)
        for t in range(a.shape[1] // 16):
            sa[ty, tx] = a[y, tx + t * 16]
            sb[ty, tx] = b[ty + t * 16, x]
            cuda.syncthreads()
            for k in range(16):
                total += sa[ty, k] * sb[k, tx]
            cuda.syncthreads()
        out[y, x] = total

    random = np.random.default_rng(7)
    image = np.zeros((32, 32), np.int32)
    step = 2.5 / 32
    points, centres, labels = random.random((512, 16)), random.random((16, 16)), np.zeros(512, np.int32)
    a, b, c = (random.random((32, 32)).astype(np.float32) for _ in range(3))
    return {
        "small_mandelbrot_ms": best(1, lambda: mandelbrot[(2, 2), (16, 16)](image, -2.0, -1.25, step, step, 200)),
        "small_kmeans_ms": best(1, lambda: kmeans[4, 128](points, centres, labels)),
        "small_matmul_ms": best(1, lambda: matmul[(2, 2), (16, 16)](a, b, c)),
    }


print(json.dumps(on_the_cpu() if sys.argv[1] == "cpu" else in_the_simulator()))
