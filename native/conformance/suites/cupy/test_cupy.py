"""CuPy, built against the shared runtime, on the software GPU, against NumPy."""

import cupy as cp
import cupyx
import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def agrees(on_device, wanted, rtol=1e-5, atol=1e-6):
    np.testing.assert_allclose(cp.asnumpy(on_device), wanted, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_elementwise(rng, dtype):
    x, y = (rng.random((50, 30)).astype(dtype) for _ in range(2))
    a, b = cp.asarray(x), cp.asarray(y)
    agrees((a + b) * a - 2, (x + y) * x - 2)


@pytest.mark.parametrize("name", ["sin", "exp", "sqrt", "tanh", "floor", "isnan"])
def test_functions(rng, name):
    x = rng.random(1000).astype(np.float32)
    agrees(getattr(cp, name)(cp.asarray(x)), getattr(np, name)(x))


@pytest.mark.parametrize("name", ["sum", "max", "min", "argmax", "mean", "std", "prod", "any", "cumsum", "cumprod"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_and_scans(rng, name, axis):
    x = rng.random((40, 50)) + 0.5
    agrees(getattr(cp, name)(cp.asarray(x), axis=axis), getattr(np, name)(x, axis=axis))


@pytest.mark.parametrize("size", [1, 31, 1000, 100_000])
def test_large_and_small_sums(rng, size):
    x = rng.integers(-1000, 1000, size)
    assert int(cp.asarray(x).sum()) == int(x.sum())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int32", "uint64"])
def test_sort(rng, dtype):
    x = (rng.random(5000) * 1000).astype(dtype)
    a = cp.asarray(x)
    assert np.array_equal(cp.sort(a).get(), np.sort(x))
    assert np.array_equal(x[cp.argsort(a).get()], np.sort(x))


def test_sort_of_rows_and_partition(rng):
    x = rng.random((30, 70))
    assert np.array_equal(cp.sort(cp.asarray(x), axis=1).get(), np.sort(x, axis=1))
    assert np.array_equal(np.sort(cp.partition(cp.asarray(x[0]), 10).get()[:10]), np.sort(x[0])[:10])


def test_sets_and_counts(rng):
    x = rng.integers(0, 50, 2000)
    a = cp.asarray(x)
    for got, wanted in zip(cp.unique(a, return_counts=True), np.unique(x, return_counts=True)):
        assert np.array_equal(got.get(), wanted)
    assert np.array_equal(cp.bincount(a).get(), np.bincount(x))
    assert np.array_equal(cp.histogram(a, bins=7)[0].get(), np.histogram(x, bins=7)[0])
    assert np.array_equal(cp.nonzero(a > 25)[0].get(), np.nonzero(x > 25)[0])


def test_raw_kernel():
    source = r"""
    extern "C" __global__ void scaled(const float* x, float* y, float factor, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = factor * x[i];
    }"""
    x = cp.arange(1000, dtype=cp.float32)
    y = cp.empty_like(x)
    cp.RawKernel(source, "scaled")((4,), (256,), (x, y, np.float32(3), np.int32(1000)))
    agrees(y, 3 * np.arange(1000))


def test_own_elementwise_and_reduction_kernels(rng):
    x, y = rng.random(500), rng.random(500)
    distance = cp.ElementwiseKernel("float64 x, float64 y", "float64 z", "z = (x - y) * (x - y)", "distance")
    agrees(distance(cp.asarray(x), cp.asarray(y)), (x - y) ** 2)
    norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    agrees(norm(cp.asarray(x)), np.linalg.norm(x))


def test_fused(rng):
    @cp.fuse()
    def both(x, y):
        return cp.sqrt(x * x + y * y)

    x, y = rng.random(300), rng.random(300)
    agrees(both(cp.asarray(x), cp.asarray(y)), np.hypot(x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_of_matrices(rng, dtype):
    a, b = rng.random((60, 70)).astype(dtype), rng.random((70, 50)).astype(dtype)
    agrees(cp.asarray(a) @ cp.asarray(b), a @ b, rtol=1e-4)


def test_batches_and_einsum(rng):
    a, b = rng.random((5, 20, 30)), rng.random((5, 30, 10))
    agrees(cp.matmul(cp.asarray(a), cp.asarray(b)), a @ b)
    agrees(cp.einsum("bij,bjk->bk", cp.asarray(a), cp.asarray(b)), np.einsum("bij,bjk->bk", a, b))


@pytest.mark.parametrize("shape", [(64,), (12, 15), (4, 6, 10)])
def test_transforms(rng, shape):
    x = rng.random(shape)
    agrees(cp.fft.fftn(cp.asarray(x)), np.fft.fftn(x))
    agrees(cp.fft.irfft(cp.fft.rfft(cp.asarray(x)), n=shape[-1]), x)


def test_random_numbers():
    x = cp.random.default_rng(1).random(100_000)
    assert abs(float(x.mean()) - 0.5) < 0.01
    assert 0 <= float(x.min()) and float(x.max()) < 1
    normal = cp.random.default_rng(1).standard_normal(100_000)
    assert abs(float(normal.mean())) < 0.02 and abs(float(normal.std()) - 1) < 0.02
    cp.random.seed(3)
    first = cp.random.rand(10)
    cp.random.seed(3)
    assert np.array_equal(first.get(), cp.random.rand(10).get())


def test_indexing_and_scatter(rng):
    x = rng.random((20, 30))
    index = rng.integers(0, 20, 8)
    a = cp.asarray(x)
    agrees(a[cp.asarray(index)], x[index])
    agrees(a[a > 0.5], x[x > 0.5])
    counts = cp.zeros(20)
    cp.add.at(counts, cp.asarray(index), 1)
    wanted = np.zeros(20)
    np.add.at(wanted, index, 1)
    agrees(counts, wanted)


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "qr", "svd", "eigh"])
def test_linear_algebra(rng, name):
    x = rng.random((12, 12))
    x = x @ x.T + 12 * np.eye(12)
    got, wanted = getattr(cp.linalg, name)(cp.asarray(x)), getattr(np.linalg, name)(x)
    # Of a decomposition, the part without a free sign: R's absolute values, singular values, eigenvalues.
    part = {"qr": 1, "svd": 1, "eigh": 0}.get(name)
    if part is None:
        agrees(got, wanted, rtol=1e-8)
    else:
        agrees(abs(got[part]), abs(wanted[part]), rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(15, 15), (20, 12), (12, 20), (4, 9, 6)])
def test_decompositions_multiply_to_what_was_decomposed(rng, dtype, shape):
    x = rng.random(shape).astype(dtype) - (0.5j * rng.random(shape) if dtype.startswith("complex") else 0.5)
    x = x.astype(dtype)
    near = {"rtol": 1e-3, "atol": 1e-4} if dtype in ("float32", "complex64") else {"rtol": 1e-9, "atol": 1e-10}
    a = cp.asarray(x)
    u, s, v = cp.linalg.svd(a, full_matrices=False)
    agrees((u * s[..., None, :]) @ v, x, **near)
    q, r = cp.linalg.qr(a)
    agrees(q @ r, x, **near)
    square = x @ x.conj().swapaxes(-1, -2)
    values, vectors = cp.linalg.eigh(cp.asarray(square))
    agrees((vectors * values[..., None, :]) @ vectors.conj().swapaxes(-1, -2), square, **near)
    definite = square + shape[-2] * np.eye(shape[-2], dtype=dtype)
    factor = cp.linalg.cholesky(cp.asarray(definite))
    agrees(factor @ factor.conj().swapaxes(-1, -2), definite, **near)
    b = rng.random((*shape[:-1], 2)).astype(dtype)
    agrees(cp.asarray(definite) @ cp.linalg.solve(cp.asarray(definite), cp.asarray(b)), b, **near)


def test_what_cannot_be_decomposed_is_said():
    with cupyx.errstate(linalg="raise"):
        with pytest.raises(np.linalg.LinAlgError):
            cp.linalg.cholesky(cp.asarray([[1.0, 2.0], [2.0, 1.0]]))
        with pytest.raises(np.linalg.LinAlgError):
            cp.linalg.inv(cp.zeros((3, 3)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_sparse_matrices(rng, dtype):
    from cupyx.scipy import sparse

    x = (rng.random((30, 20)) * (rng.random((30, 20)) < 0.2)).astype(dtype)
    rows, columns = np.nonzero(x)
    shuffled = rng.permutation(len(rows))
    parts = (cp.asarray(part[shuffled]) for part in (x[rows, columns], rows, columns))
    values, rows, columns = parts
    matrix = sparse.coo_matrix((values, (rows, columns)), shape=x.shape).tocsr()
    vector, dense = rng.random(20).astype(dtype), rng.random((20, 7)).astype(dtype)
    agrees(matrix @ cp.asarray(vector), x @ vector, rtol=1e-4)
    agrees(matrix @ cp.asarray(dense), x @ dense, rtol=1e-4)
    agrees(matrix.T @ cp.asarray(x[:, 0].copy()), x.T @ x[:, 0], rtol=1e-4)
    agrees(matrix.toarray(), x)
    agrees(matrix.tocsc().toarray(), x)
    agrees(matrix.tocoo().toarray(), x)


def test_streams_and_events():
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        x = cp.arange(100_000) * 2
        done = stream.record()
    done.synchronize()
    assert int(x[-1]) == 199_998


def test_memory_of_the_lease_has_an_end():
    with pytest.raises(cp.cuda.memory.OutOfMemoryError):
        cp.empty(2**31, dtype=cp.uint8)
    assert int(cp.ones(10).sum()) == 10
