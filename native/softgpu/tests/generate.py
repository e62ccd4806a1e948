"""Writes the PTX inputs of the tests: `python generate.py` (numba-cuda without nvidia-nvjitlink; no GPU needed).

Every kernel here is our own. Beside each `<name>.ptx` the kernel's parameter layout is noted in
`layouts.txt`: numba passes an array as meminfo, parent, nitems, itemsize, data, shape..., strides...,
each a parameter of its own of 8 bytes.  With nvcc on the path the C++ samples of `samples.cu` and
`lines.cu` are compiled as well.
"""

import math
import pathlib
import re
import shutil
import subprocess
import types as pytypes
import zlib

import numpy as np
from numba import cuda
from numba.cuda.cudadrv import devices
from numba.types import (
    Array,
    boolean,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    int64,
    uint32,
    void,
)

# Device functions ask the current device for its compute capability; there need not be one.
devices._runtime.get_or_create_context = lambda devnum=None: pytypes.SimpleNamespace(
    device=pytypes.SimpleNamespace(compute_capability=(7, 5))
)

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "ptx"
LAYOUTS = []


def arr(dtype, ndim=1):
    return Array(dtype, ndim, "C")


def describe(name, kind):
    if isinstance(kind, Array):
        inner = ["meminfo", "parent", "nitems", "itemsize", "data"]
        inner += [f"shape{i}" for i in range(kind.ndim)]
        inner += [f"stride{i}" for i in range(kind.ndim)]
        return f"{name}: {kind.dtype}[{kind.ndim}] = " + " ".join(inner)
    return f"{name}: {kind}"


def emit(function, *signature, debug=False, name=None):
    options = {"debug": True, "opt": False} if debug else {}
    ptx, _ = cuda.compile(
        function, void(*signature), device=False, abi="numba", cc=(7, 5), output="ptx", **options
    )
    name = name or function.__name__
    # The mangled names are hundreds of characters long.
    entry = re.search(r"\.entry (\w+)", ptx).group(1)
    ptx = ptx.replace(entry, name)
    ptx = re.sub(r"_ZN08NumbaEnv\w+", lambda m: f"env_{zlib.crc32(m.group(0).encode()):08x}", ptx)
    (OUT / f"{name}.ptx").write_text(ptx.replace(f"{HERE}/", ""))
    names = function.__code__.co_varnames
    LAYOUTS.append(name + "\n" + "\n".join("  " + describe(n, t) for n, t in zip(names, signature)))


def vector_add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


def mandelbrot(out, x0, y0, dx, dy, limit):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        cr = x0 + x * dx
        ci = y0 + y * dy
        zr = 0.0
        zi = 0.0
        n = limit
        for k in range(limit):
            t = zr * zr - zi * zi + cr
            zi = 2.0 * zr * zi + ci
            zr = t
            if zr * zr + zi * zi > 4.0:
                n = k
                break
        out[y, x] = n


def kmeans_assign(points, centres, labels):
    i = cuda.grid(1)
    if i < points.shape[0]:
        best = 0
        distance = np.inf
        for k in range(centres.shape[0]):
            d = 0.0
            for j in range(points.shape[1]):
                t = points[i, j] - centres[k, j]
                d += t * t
            if d < distance:
                distance = d
                best = k
        labels[i] = best


def kmeans_update(points, labels, sums, counts):
    i = cuda.grid(1)
    if i < points.shape[0]:
        k = labels[i]
        cuda.atomic.add(counts, k, 1)
        for j in range(points.shape[1]):
            cuda.atomic.add(sums, (k, j), points[i, j])


def atomics_f32(values, total, smallest, largest):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(total, 0, values[i])
        cuda.atomic.min(smallest, 0, values[i])
        cuda.atomic.max(largest, 0, values[i])


TILE = 16


def matmul_shared(a, b, out):
    sa = cuda.shared.array((TILE, TILE), float32)
    sb = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    acc = float32(0.0)
    for t in range((a.shape[1] + TILE - 1) // TILE):
        sa[ty, tx] = 0
        sb[ty, tx] = 0
        if y < a.shape[0] and tx + t * TILE < a.shape[1]:
            sa[ty, tx] = a[y, tx + t * TILE]
        if x < b.shape[1] and ty + t * TILE < b.shape[0]:
            sb[ty, tx] = b[ty + t * TILE, x]
        cuda.syncthreads()
        for k in range(TILE):
            acc += sa[ty, k] * sb[k, tx]
        cuda.syncthreads()
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = acc


def reduce_shared(values, total):
    part = cuda.shared.array(256, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = values[i] if i < values.size else 0.0
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(total, 0, part[0])


def math_f64(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[i, 0] = math.sin(v)
        out[i, 1] = math.exp(v)
        out[i, 2] = math.sqrt(abs(v))
        out[i, 3] = abs(v) ** 1.7
        out[i, 4] = math.cos(v)
        out[i, 5] = math.log(abs(v) + 1.0)
        out[i, 6] = math.atan2(v, 2.0)
        out[i, 7] = math.tanh(v)
        out[i, 8] = math.erf(v)
        out[i, 9] = math.floor(v)
        out[i, 10] = math.lgamma(abs(v) + 0.5)
        out[i, 11] = math.fmod(v, 0.75)


def math_f32(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[i, 0] = math.sin(v)
        out[i, 1] = math.exp(v)
        out[i, 2] = math.sqrt(abs(v))
        out[i, 3] = math.log(abs(v) + float32(1.0))
        out[i, 4] = math.pow(abs(v), float32(1.7))
        out[i, 5] = v / float32(3.0)


def complex_square(z, out):
    i = cuda.grid(1)
    if i < z.size:
        out[i] = z[i] * z[i] / (z[i] + 2.0)


def int64_divide(a, b, quotient, remainder):
    i = cuda.grid(1)
    if i < a.size:
        quotient[i] = a[i] // b[i]
        remainder[i] = a[i] % b[i]


@cuda.jit(device=True, inline="never")
def collatz_steps(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def collatz(start, steps):
    i = cuda.grid(1)
    if i < start.size:
        steps[i] = collatz_steps(start[i])


def boolean_logic(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        p = a[i] > 0.5
        q = b[i] < 0.5
        out[i] = (p and not q) or (q and a[i] > 0.9) or (p != q and b[i] > 0.75)


def local_histogram(data, out):
    counts = cuda.local.array(8, int32)
    for k in range(8):
        counts[k] = 0
    i = cuda.grid(1)
    if i < data.shape[0]:
        for j in range(data.shape[1]):
            counts[data[i, j] & 7] += 1
        for k in range(8):
            out[i, k] = counts[k]


def count_positive(values, counts):
    i = cuda.grid(1)
    counts[cuda.blockIdx.x] = cuda.syncthreads_count(int32(values[i] > 0))


def warp_sum(values, out):
    i = cuda.grid(1)
    v = values[i]
    step = 16
    while step > 0:
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, step)
        step //= 2
    ballot = cuda.ballot_sync(0xFFFFFFFF, bool(values[i] > 0))
    if cuda.laneid == 0:
        out[i // 32, 0] = v
        out[i // 32, 1] = cuda.popc(ballot)


def atomic_mix(values, largest, smallest, slots):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.max(largest, 0, values[i])
        cuda.atomic.min(smallest, 0, values[i])
        cuda.atomic.cas(slots, values[i] % slots.size, 0, values[i] + 1)


def spin_lock(lock, total, rounds):
    for _ in range(rounds):
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        total[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


def checked_divide(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] // b[i]


def reduce_warp_f32(values, out):
    i = cuda.grid(1)
    if i < values.size:
        out[i] = math.fabs(values[i]) if values[i] < 0 else float32(2) * values[i]


def print_value(values):
    i = cuda.grid(1)
    if i < values.size:
        print("value", i, values[i])


def main():
    OUT.mkdir(exist_ok=True)
    f32, f64, i32, i64 = arr(float32), arr(float64), arr(int32), arr(int64)
    emit(vector_add, f32, f32, f32)
    emit(mandelbrot, arr(int32, 2), float64, float64, float64, float64, int64)
    emit(kmeans_assign, arr(float64, 2), arr(float64, 2), i32)
    emit(kmeans_update, arr(float64, 2), i32, arr(float64, 2), i32)
    emit(atomics_f32, f32, f32, f32, f32)
    emit(matmul_shared, arr(float32, 2), arr(float32, 2), arr(float32, 2))
    emit(reduce_shared, f64, f64)
    emit(math_f64, f64, arr(float64, 2))
    emit(math_f32, f32, arr(float32, 2))
    emit(complex_square, arr(complex128), arr(complex128))
    emit(complex_square, arr(complex64), arr(complex64), name="complex_square_c64")
    emit(int64_divide, i64, i64, i64, i64)
    emit(collatz, i64, i64)
    emit(boolean_logic, f64, f64, arr(boolean))
    emit(local_histogram, arr(int32, 2), arr(int32, 2))
    emit(count_positive, f32, i32)
    emit(warp_sum, arr(int32), arr(int32, 2))
    emit(atomic_mix, i64, i64, i64, i64)
    emit(spin_lock, i32, i32, int32)
    emit(checked_divide, i64, i64, i64, debug=True)
    emit(print_value, i64)
    (OUT / "layouts.txt").write_text("\n".join(LAYOUTS) + "\n")
    nvcc = shutil.which("nvcc")
    if nvcc:
        subprocess.run(
            [nvcc, "-ptx", "-arch=compute_75", "-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK", "-o", "ptx/samples.ptx", "samples.cu"],
            check=True,
            cwd=HERE,
        )
        subprocess.run([nvcc, "-ptx", "-arch=compute_75", "-lineinfo", "-o", "ptx/lines.ptx", "lines.cu"], check=True, cwd=HERE)
        lines = OUT / "lines.ptx"
        lines.write_text(lines.read_text().replace(f"{HERE}/", ""))


if __name__ == "__main__":
    main()
