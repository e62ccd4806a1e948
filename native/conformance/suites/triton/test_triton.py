"""Triton programs against NumPy: elementwise, reductions, softmax, layer norm, matrix products, atomics, scans."""

import fresh
import numpy as np
import pytest
import triton
import triton.language as tl
from device_array import DeviceArray
from triton.runtime import driver


@pytest.fixture(scope="session", autouse=True)
def device():
    """Triton makes the primary context current when it asks for the device."""
    return driver.active.get_current_device()


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_vector_add(rng, dtype):
    n = 10_007
    x, y = ((rng.random(n) * 100).astype(dtype) for _ in range(2))
    out = DeviceArray(np.zeros(n, dtype))
    add_kernel[(triton.cdiv(n, 256),)](DeviceArray(x), DeviceArray(y), out, n, BLOCK=256)
    np.testing.assert_array_equal(out.numpy(), x + y)


PROGRAM = """
import numpy as np, triton, triton.language as tl
from device_array import DeviceArray
from triton.runtime import driver

@triton.jit
def double_kernel(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2)

assert driver.active.get_current_target().backend == "cuda"

def cell():
    driver.active.get_current_device()
    x = DeviceArray(np.arange(64, dtype=np.float32))
    double_kernel[(1,)](x, BLOCK=64)
    assert (x.numpy() == 2 * np.arange(64)).all()
"""


def test_the_device_is_there_before_a_gpu_is_attached_and_works_afterwards():
    fresh.fails_then_works(PROGRAM)


def test_a_killed_worker_is_an_error_within_five_seconds():
    fresh.fails_when_its_worker_is_killed(PROGRAM)


@triton.jit
def unary_kernel(x, out, n, WHICH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=1.0)
    if WHICH == "exp":
        value = tl.exp(value)
    elif WHICH == "log":
        value = tl.log(value)
    elif WHICH == "sqrt":
        value = tl.sqrt(value)
    elif WHICH == "sin":
        value = tl.sin(value)
    elif WHICH == "sigmoid":
        value = tl.sigmoid(value)
    elif WHICH == "where":
        value = tl.where(value > 0.5, value * 2, -value)
    tl.store(out + i, value, mask=i < n)


REFERENCES = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "where": lambda x: np.where(x > 0.5, x * 2, -x),
}


@pytest.mark.parametrize("which", sorted(REFERENCES))
def test_elementwise_functions(rng, which):
    x = (rng.random(1000) + 0.01).astype(np.float32)
    out = DeviceArray(np.zeros_like(x))
    unary_kernel[(4,)](DeviceArray(x), out, x.size, WHICH=which, BLOCK=256)
    np.testing.assert_allclose(out.numpy(), REFERENCES[which](x), rtol=3e-6, atol=1e-6)


@triton.jit
def reduce_kernel(x, out, COLUMNS: tl.constexpr, WHICH: tl.constexpr):
    row = tl.program_id(0)
    values = tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS))
    if WHICH == "sum":
        result = tl.sum(values, axis=0)
    elif WHICH == "max":
        result = tl.max(values, axis=0)
    else:
        result = tl.min(values, axis=0)
    tl.store(out + row, result)


@pytest.mark.parametrize("columns", [32, 128, 1024])
@pytest.mark.parametrize("which", ["sum", "max", "min"])
def test_row_reductions(rng, which, columns):
    x = rng.random((13, columns), dtype=np.float32)
    out = DeviceArray(np.zeros(13, np.float32))
    reduce_kernel[(13,)](DeviceArray(x), out, COLUMNS=columns, WHICH=which)
    np.testing.assert_allclose(out.numpy(), getattr(x, which)(axis=1), rtol=1e-5)


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    top = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + i, top / tl.sum(top, axis=0), mask=i < columns)


def softmax(x):
    top = np.exp(x - x.max(axis=1, keepdims=True))
    return top / top.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("columns", [100, 781])
def test_softmax(rng, columns):
    x = rng.standard_normal((64, columns), dtype=np.float32) * 4
    out = DeviceArray(np.zeros_like(x))
    softmax_kernel[(64,)](DeviceArray(x), out, columns, BLOCK=1024)
    np.testing.assert_allclose(out.numpy(), softmax(x), rtol=1e-5, atol=1e-7)


@triton.jit
def layer_norm_kernel(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < columns
    values = tl.load(x + row * columns + i, mask=mask, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(mask, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    shown = centred * scale * tl.load(weight + i, mask=mask) + tl.load(bias + i, mask=mask)
    tl.store(out + row * columns + i, shown, mask=mask)


def test_layer_norm(rng):
    x = rng.standard_normal((33, 300), dtype=np.float32)
    weight, bias = (rng.standard_normal(300, dtype=np.float32) for _ in range(2))
    out = DeviceArray(np.zeros_like(x))
    layer_norm_kernel[(33,)](*map(DeviceArray, (x, weight, bias)), out, 300, 1e-5, BLOCK=512)
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(b + k[:, None] * N + columns[None, :], mask=(k[:, None] < K) & (columns[None, :] < N), other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    where = c + rows[:, None] * N + columns[None, :]
    tl.store(where, total, mask=(rows[:, None] < M) & (columns[None, :] < N))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float16", 2e-3)])
def test_matmul(rng, dtype, tolerance):
    m, n, k = 96, 80, 112
    a, b = rng.random((m, k)).astype(dtype), rng.random((k, n)).astype(dtype)
    c = DeviceArray(np.zeros((m, n), np.float32))
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    matmul_kernel[grid](DeviceArray(a), DeviceArray(b), c, m, n, k, BM=32, BN=32, BK=16, PRECISION="ieee")
    np.testing.assert_allclose(c.numpy(), a.astype(np.float32) @ b.astype(np.float32), rtol=tolerance)


@triton.jit
def histogram_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.atomic_add(out + tl.load(x + i, mask=mask, other=0), 1, mask=mask)


def test_atomic_histogram(rng):
    x = rng.integers(0, 16, 5000).astype(np.int32)
    out = DeviceArray(np.zeros(16, np.int32))
    histogram_kernel[(triton.cdiv(x.size, 512),)](DeviceArray(x), out, x.size, BLOCK=512)
    np.testing.assert_array_equal(out.numpy(), np.bincount(x, minlength=16))


@triton.jit
def cumsum_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), axis=0))


def test_cumulative_sum(rng):
    x = rng.integers(-9, 9, 1024).astype(np.int32)
    out = DeviceArray(np.zeros_like(x))
    cumsum_kernel[(1,)](DeviceArray(x), out, BLOCK=1024)
    np.testing.assert_array_equal(out.numpy(), np.cumsum(x))


@triton.jit
def transpose_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(out + columns[:, None] * M + rows[None, :], tl.trans(tile))


def test_transpose(rng):
    x = rng.random((64, 32), dtype=np.float32)
    out = DeviceArray(np.zeros((32, 64), np.float32))
    transpose_kernel[(1,)](DeviceArray(x), out, M=64, N=32)
    np.testing.assert_array_equal(out.numpy(), x.T)


@triton.jit
def sort_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i)))


def test_sort(rng):
    x = rng.random(256, dtype=np.float32)
    out = DeviceArray(np.zeros_like(x))
    sort_kernel[(1,)](DeviceArray(x), out, BLOCK=256)
    np.testing.assert_array_equal(out.numpy(), np.sort(x))


@triton.jit
def random_kernel(out, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.rand(seed, i))


def test_random_numbers_are_uniform():
    out = DeviceArray(np.zeros(8192, np.float32))
    random_kernel[(16,)](out, 42, BLOCK=512)
    values = out.numpy()
    assert values.min() >= 0 and values.max() < 1
    assert abs(values.mean() - 0.5) < 0.02
    assert len(np.unique(values)) > 8000
