"""JAX on the software GPU, against NumPy and against JAX on the CPU."""

import fresh
import jax
import jax.numpy as jnp
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def on_cpu(function, *arguments):
    """What JAX computes on the CPU."""
    with jax.default_device(jax.devices("cpu")[0]):
        return jax.tree.map(np.asarray, jax.jit(function)(*arguments))


def agrees(function, *arguments, rtol=1e-5, atol=1e-6):
    """Runs a function on the device and compares it with the CPU."""
    result = jax.jit(function)(*arguments)
    assert all(array.devices() == {jax.devices()[0]} for array in jax.tree.leaves(result))
    wanted = on_cpu(function, *arguments)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(np.asarray(a), b, rtol=rtol, atol=atol), result, wanted)


def test_the_device_is_there_without_a_line_from_the_user():
    assert [device.platform for device in jax.devices()] == ["gpu"]


PROGRAM = """
import jax, jax.numpy as jnp
assert [device.platform for device in jax.devices()] == ["gpu"]
step = jax.jit(lambda w: jnp.tanh(w @ w) + 1)
def cell():
    assert float(step(jnp.zeros((64, 64)))[3, 4]) == 1
"""


def test_the_device_is_there_before_a_gpu_is_attached_and_works_afterwards():
    fresh.fails_then_works(PROGRAM)


TRAINS = """
import jax, jax.numpy as jnp, numpy as np

x = np.random.default_rng(3).standard_normal((64, 8)).astype(np.float32)
y = x @ np.arange(8, dtype=np.float32)
loss = lambda w: jnp.mean((x @ w - y) ** 2)
step = jax.jit(lambda w: w - 0.1 * jax.grad(loss)(w))

def cell():
    w = jnp.zeros(8)
    for _ in range(100):
        w = step(w)
    assert float(loss(w)) < 0.01
"""


def test_a_killed_worker_is_an_error_in_a_training_loop_when_xla_looks_next():
    # JAX waits for a host function, and CUDA calls none after an error: it learns of the error when XLA asks its streams
    # for their state, every five seconds, and raises it a moment later.
    fresh.fails_when_its_worker_is_killed(TRAINS, within=5.5)


def placed(kind):
    """On the device, in its own memory or in page-locked memory of the host."""
    return jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind=kind)


@pytest.mark.parametrize("length", [5, 1 << 20], ids=["short", "bulk"])
def test_arrays_move_to_page_locked_memory_of_the_host_and_back(rng, length):
    x = rng.standard_normal(length)
    away = jax.device_put(jnp.asarray(x), placed("pinned_host"))
    assert away.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(np.asarray(away), x)
    back = jax.device_put(away, placed("device"))
    assert back.sharding.memory_kind == "device"
    np.testing.assert_array_equal(np.asarray(back + 1), x + 1)


def test_a_function_leaves_its_result_in_page_locked_memory_and_takes_it_from_there(rng):
    x = rng.standard_normal(1000)
    doubled = jax.jit(lambda x: x * 2, out_shardings=placed("pinned_host"))(x)
    assert doubled.sharding.memory_kind == "pinned_host"
    squared = jax.jit(lambda x: jax.device_put(x, placed("device")) ** 2, out_shardings=placed("device"))(doubled)
    np.testing.assert_allclose(np.asarray(squared), (x * 2) ** 2, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_elementwise(rng, dtype):
    x, y = (rng.random((50, 30)).astype(dtype) for _ in range(2))
    agrees(lambda x, y: (x + y) * x - 2, x, y)


@pytest.mark.parametrize("function", [jnp.sum, jnp.max, jnp.argmin, jnp.cumsum, jnp.mean, jnp.prod])
def test_reductions_and_scans(rng, function):
    agrees(function, rng.random(1000))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("size", [5, 128, 200])
def test_products_of_matrices(rng, dtype, size):
    a, b = (rng.random((size, size + 3)).astype(dtype) for _ in range(2))
    agrees(lambda a, b: a @ b.T, a, b, rtol=1e-4, atol=1e-4)


def test_a_batch_of_products_with_bias_and_activation(rng):
    x, w, bias = rng.random((4, 64, 96)), rng.random((96, 80)), rng.random(80)
    x, w, bias = (array.astype(np.float32) - 0.5 for array in (x, w, bias))
    agrees(lambda x, w, bias: jax.nn.relu(x @ w + bias), x, w, bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(16,), (6, 15), (3, 4, 5)])
def test_transforms(rng, shape):
    x = rng.random(shape)
    agrees(jnp.fft.fftn, x + 1j * x[::-1])
    agrees(jnp.fft.rfftn, x)
    agrees(lambda x: jnp.fft.irfftn(jnp.fft.rfftn(x), s=x.shape), x)


def test_sort(rng):
    agrees(jnp.sort, rng.random(5000))
    agrees(jnp.argsort, rng.random((20, 50)))


def test_random_numbers_are_those_of_the_cpu():
    agrees(lambda: jax.random.normal(jax.random.key(3), (100, 7)))
    agrees(lambda: jax.random.randint(jax.random.key(3), (100,), 0, 1000))


def test_grad_and_vmap(rng):
    x, w = rng.random((10, 4)), rng.random((4, 3))
    agrees(lambda w: jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w), w)
    agrees(lambda x: jax.vmap(lambda row: jnp.dot(row, row))(x), x)


def test_loops(rng):
    agrees(lambda x: jax.lax.fori_loop(0, 10, lambda i, x: x * 0.5 + i, x), rng.random(8))
    agrees(lambda x: jax.lax.scan(lambda c, v: (c + v, c * v), 0.0, x), rng.random(40))


def test_a_small_network_learns_as_on_the_cpu(rng):
    x = rng.random((256, 16)).astype(np.float32)
    y = np.sin(x.sum(1, keepdims=True)).astype(np.float32)
    start = [rng.normal(size=shape).astype(np.float32) * 0.3 for shape in ((16, 32), (32,), (32, 1), (1,))]

    def loss(parameters):
        first, first_bias, second, second_bias = parameters
        return jnp.mean((jnp.tanh(x @ first + first_bias) @ second + second_bias - y) ** 2)

    def train(parameters):
        losses = []
        for _ in range(10):
            value, slopes = jax.value_and_grad(loss)(parameters)
            parameters = [p - 0.1 * slope for p, slope in zip(parameters, slopes)]
            losses.append(value)
        return jnp.stack(losses)

    agrees(train, start, rtol=1e-3)


def test_a_network_learns_handwritten_digits_with_the_losses_of_the_cpu(rng):
    """Mini-batches of scikit-learn's digits; losses within 1 in 1,000 of JAX on the CPU, and it has learnt to read."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype(np.float32)
    batches = rng.permutation(len(pixels))[:1792].reshape(-1, 128)
    start = [rng.normal(size=shape).astype(np.float32) * 0.1 for shape in ((64, 64), (64,), (64, 10), (10,))]

    def logits(parameters, x):
        first, first_bias, second, second_bias = parameters
        return jax.nn.relu(x @ first + first_bias) @ second + second_bias

    def loss(parameters, x, y):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits(parameters, x)), y[:, None], axis=1))

    def train(parameters):
        def step(parameters, batch):
            x, y = jnp.asarray(pixels)[batch], jnp.asarray(digits)[batch]
            value, slopes = jax.value_and_grad(loss)(parameters, x, y)
            return [p - 0.5 * slope for p, slope in zip(parameters, slopes)], value

        parameters, losses = jax.lax.scan(step, parameters, jnp.tile(jnp.asarray(batches), (10, 1)))
        right = jnp.mean(jnp.argmax(logits(parameters, jnp.asarray(pixels)), axis=1) == jnp.asarray(digits))
        return losses, right

    agrees(train, start, rtol=1e-3)
    losses, right = (np.asarray(part) for part in jax.jit(train)(start))
    assert losses[-1] < losses[0] / 10 and right > 0.9


TYPES = ["float32", "float64", "complex64", "complex128"]


def random_of(rng, dtype, *shape):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def precision(dtype):
    return {"rtol": 1e-3, "atol": 1e-3} if dtype in ("float32", "complex64") else {"rtol": 1e-9, "atol": 1e-9}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(6, 6), (50, 40), (40, 60), (5, 7, 4)])
def test_singular_values(rng, dtype, shape):
    x = random_of(rng, dtype, *shape)
    agrees(lambda x: jnp.linalg.svd(x, compute_uv=False), x, **precision(dtype))
    u, s, v = (np.asarray(part) for part in jnp.linalg.svd(x, full_matrices=False))
    np.testing.assert_allclose((u * s[..., None, :]) @ v, x, **precision(dtype))


@pytest.mark.parametrize("algorithm", ["QR", "JACOBI"])
def test_singular_values_by_each_algorithm(rng, algorithm):
    x = rng.random((30, 20))
    u, s, v = jax.lax.linalg.svd(x, full_matrices=True, algorithm=getattr(jax.lax.linalg.SvdAlgorithm, algorithm))
    np.testing.assert_allclose((np.asarray(u)[:, :20] * s) @ np.asarray(v), x, atol=1e-10)
    np.testing.assert_allclose(np.asarray(u).T @ np.asarray(u), np.eye(30), atol=1e-10)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(6, 6), (70, 70), (5, 8, 8)])
def test_eigenvalues_of_hermitian_matrices(rng, dtype, shape):
    x = random_of(rng, dtype, *shape)
    x = x + x.conj().swapaxes(-1, -2)
    agrees(jnp.linalg.eigvalsh, x, **precision(dtype))
    values, vectors = (np.asarray(part) for part in jnp.linalg.eigh(x))
    again = (vectors * values[..., None, :]) @ vectors.conj().swapaxes(-1, -2)
    np.testing.assert_allclose(again, x, **precision(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(6, 6), (70, 70), (5, 8, 8)])
def test_cholesky_and_systems(rng, dtype, shape):
    x = random_of(rng, dtype, *shape)
    x = x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)
    b = random_of(rng, dtype, *shape[:-1], 3)
    agrees(jnp.linalg.cholesky, x, **precision(dtype))
    agrees(jnp.linalg.solve, x, b, **precision(dtype))
    agrees(jnp.linalg.inv, x, **precision(dtype))
    agrees(lambda x: jnp.linalg.slogdet(x)[1], x, **precision(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(6, 6), (50, 40), (30, 45), (5, 8, 6)])
def test_qr(rng, dtype, shape):
    x = random_of(rng, dtype, *shape)
    q, r = (np.asarray(part) for part in jnp.linalg.qr(x))
    np.testing.assert_allclose(q @ r, x, **precision(dtype))
    products = q.conj().swapaxes(-1, -2) @ q
    np.testing.assert_allclose(products, np.broadcast_to(np.eye(q.shape[-1]), products.shape), atol=1e-4)


@pytest.mark.parametrize("shape", [(40, 40), (30, 20), (5, 8, 8)])
def test_lu(rng, shape):
    agrees(jax.lax.linalg.lu, rng.random(shape), rtol=1e-9)


def test_what_is_not_positive_definite_has_no_cholesky_factor():
    factor = jnp.linalg.cholesky(jnp.array([[1.0, 2.0], [2.0, 1.0]]))
    assert np.isnan(np.asarray(factor)).any()
    assert not np.isfinite(np.asarray(jnp.linalg.inv(jnp.zeros((2, 2))))).any()


def test_gradients_of_decompositions(rng):
    x = rng.random((6, 6))
    agrees(jax.grad(lambda x: jnp.sum(jnp.linalg.svd(x, compute_uv=False))), x, rtol=1e-8)
    agrees(jax.grad(lambda x: jnp.linalg.slogdet(x @ x.T + jnp.eye(6))[1]), x, rtol=1e-8)


@pytest.mark.parametrize("dtype", TYPES)
def test_products_of_sparse_matrices(rng, dtype):
    from jax.experimental import sparse

    x = random_of(rng, dtype, 30, 20) * (rng.random((30, 20)) < 0.2)
    rows, columns = np.nonzero(x)
    offsets = np.searchsorted(rows, np.arange(31)).astype(np.int32)
    parts = (x[rows, columns], columns.astype(np.int32), offsets)
    matrix = sparse.CSR(tuple(jnp.asarray(part) for part in parts), shape=x.shape)
    vector, dense = random_of(rng, dtype, 20), random_of(rng, dtype, 20, 7)
    np.testing.assert_allclose(np.asarray(matrix @ vector), x @ vector, **precision(dtype))
    np.testing.assert_allclose(np.asarray(matrix @ dense), x @ dense, **precision(dtype))
    np.testing.assert_allclose(np.asarray(matrix.todense()), x)


def test_what_cusolver_does_not_do_is_refused_by_name(rng):
    with pytest.raises(Exception, match="cuSolver|cusolver"):
        np.asarray(jnp.linalg.eig(rng.random((4, 4)))[0])
