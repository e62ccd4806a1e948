"""JAX on the software GPU, against NumPy and against JAX on the CPU."""

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


def test_what_cusolver_would_do_is_refused_by_name(rng):
    with pytest.raises(Exception, match="cuSolver|cusolver"):
        np.asarray(jnp.linalg.svd(rng.random((4, 4)))[1])
