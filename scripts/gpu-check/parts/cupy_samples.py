"""CuPy on the GPU."""

import cupy
from samples import show

RNG = cupy.random.default_rng(0)
X = cupy.asarray(cupy.arange(120_000, dtype=cupy.float32).reshape(300, 400) % 97 - 48)

SQUARES = cupy.RawKernel(
    'extern "C" __global__ void squares(float *out, const float *x, int n) {'
    " int at = blockIdx.x * blockDim.x + threadIdx.x; if (at < n) out[at] = x[at] * x[at] + 1; }",
    "squares",
)


def elementwise():
    return cupy.asnumpy(cupy.tanh(X) * 2 + X**2)


def reduction():
    return cupy.asnumpy(cupy.concatenate([X.sum(axis=0), X.max(axis=1), X.sum()[None]]))


def scan():
    return cupy.asnumpy(cupy.cumsum(X.ravel()[:50_000].astype(cupy.int64)))


def sort():
    return cupy.asnumpy(cupy.sort(X.ravel()))


def matmul():
    return cupy.asnumpy(X @ X.T)


def fft():
    return abs(cupy.asnumpy(cupy.fft.fft2(X)))


def svd():
    return cupy.asnumpy(cupy.linalg.svd(X[:48, :32], compute_uv=False))


def raw_kernel():
    out = cupy.empty_like(X)
    SQUARES((X.size // 256 + 1,), (256,), (out, X, cupy.int32(X.size)))
    return cupy.asnumpy(out)


def random_numbers():
    return cupy.asnumpy(RNG.standard_normal(20_000))


# The driver compiles CuPy's Thrust module at the first sort, which can take longer than all the time there is.
show(elementwise, reduction, scan, matmul, fft, svd, raw_kernel, random_numbers, sort)
