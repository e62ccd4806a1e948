"""TensorFlow on the software GPU, against NumPy and against TensorFlow on the CPU."""

import fresh
import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def agrees(function, *arguments, rtol=1e-5, atol=1e-5):
    """Runs a function on the device and compares what it gives with the CPU's."""
    with tf.device("/GPU:0"):
        result = function(*[tf.constant(argument) for argument in arguments])
    assert all(tensor.device.endswith("GPU:0") for tensor in tf.nest.flatten(result))
    with tf.device("/CPU:0"):
        wanted = function(*[tf.constant(argument) for argument in arguments])
    for one, other in zip(tf.nest.flatten(result), tf.nest.flatten(wanted)):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=rtol, atol=atol)


def test_the_device_is_there_without_a_line_from_the_user():
    assert [device.name for device in tf.config.list_physical_devices("GPU")] == ["/physical_device:GPU:0"]


FAILS_THEN_WORKS = """
import sluice_gpu, tensorflow as tf

assert len(tf.config.list_physical_devices("GPU")) == 1
def cell():
    with tf.device("/GPU:0"):
        return tf.reduce_sum(tf.tanh(tf.random.normal((64, 64)) @ tf.zeros((64, 64))) + 1)
try:
    cell()
except Exception as error:
    print(type(error).__name__, error)
else:
    raise SystemExit("it worked without a GPU")
sluice_gpu.attach("0.5")
assert float(cell()) == 4096
"""


def test_the_device_is_there_before_a_gpu_is_attached_and_works_afterwards():
    said, errors = fresh.run(FAILS_THEN_WORKS)
    assert "this notebook has no GPU. Run %gpu attach 0.5" in said + errors


COMES_BACK = """
import sluice_gpu, tensorflow as tf

lease = sluice_gpu.attach("0.5")
with tf.device("/GPU:0"):
    kept = tf.range(1000, dtype=tf.float32) * 2
lease.detach()
sluice_gpu.attach("0.5")
with tf.device("/GPU:0"):
    assert float(tf.reduce_sum(kept)) == 999000
    assert float(tf.reduce_sum(tf.ones((30, 30)) @ tf.ones((30, 30)))) == 27000
"""


def test_tensors_are_there_again_after_detach_and_attach():
    fresh.run(COMES_BACK, "--joined")


KILLED = """
import random, time
import fresh, sluice_gpu, tensorflow as tf

sluice_gpu.attach("0.5")
killed = fresh.kill_own_worker(random.uniform(0.1, 0.5))
try:
    with tf.device("/GPU:0"):
        while True:
            (tf.random.normal((64, 64)) @ tf.zeros((64, 64))).numpy()
except Exception as error:
    assert time.monotonic() - killed[0] < 5, error
    print(error)
"""


def test_a_killed_worker_is_an_error():
    # Not at every operation: where a reduction to one number cannot be launched, TensorFlow ends the process.
    said, errors = fresh.run(KILLED)
    assert "The connection to your GPU was lost" in said + errors


@pytest.mark.parametrize("name", ["tanh", "exp", "sqrt", "log1p", "sigmoid", "sin", "rsqrt", "erf", "softplus"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions(rng, name, dtype):
    agrees(getattr(tf.math, name), rng.random((50, 30)).astype(dtype) + 0.1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "complex64"])
def test_elementwise(rng, dtype):
    x, y = ((rng.random((50, 30)) * 20).astype(dtype) for _ in range(2))
    agrees(lambda x, y: (x + y) * x - y, x, y)


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_max", "reduce_mean", "reduce_prod", "cumsum", "argmax"])
def test_reductions_and_scans(rng, name):
    x = rng.random((40, 200)).astype(np.float32)
    agrees(getattr(tf, name, None) or getattr(tf.math, name), x, rtol=1e-4)
    if name != "cumsum":
        agrees(lambda x: (getattr(tf, name, None) or getattr(tf.math, name))(x, axis=1), x, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16", "bfloat16"])
def test_products_of_matrices(rng, dtype):
    a, b = (tf.cast(rng.random((60, 60)) - 0.5, dtype).numpy() for _ in range(2))
    loose = dtype in ("float16", "bfloat16")
    agrees(lambda a, b: tf.cast(a @ b, "float32") if loose else a @ b, a, b, atol=0.1 if loose else 1e-4)


def test_a_batch_of_products_with_bias_and_activation(rng):
    x, w, bias = ((rng.random(shape) - 0.5).astype(np.float32) for shape in ((4, 64, 96), (96, 80), (80,)))
    agrees(lambda x, w, bias: tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), bias)), x, w, bias, rtol=1e-4)


def test_softmax_and_layer_norm(rng):
    x = rng.random((32, 100)).astype(np.float32)
    agrees(tf.nn.softmax, x)

    def normed(x):
        mean, variance = tf.nn.moments(x, axes=[1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5)

    agrees(normed, x, rtol=1e-4, atol=1e-4)


def test_shapes(rng):
    x = rng.random((12, 34, 5)).astype(np.float32)
    agrees(lambda x: tf.transpose(x, (2, 0, 1)), x)
    agrees(lambda x: tf.concat([x, x[:, ::-1]], 1), x)
    agrees(lambda x: tf.gather(x, [3, 1, 3]), x)
    agrees(lambda x: tf.where(x > 0.5, x, -x), x)
    agrees(lambda x: tf.one_hot(tf.cast(x * 10, tf.int32), 10), x)
    agrees(lambda x: tf.pad(x, [[1, 2], [0, 0], [3, 0]]), x)


def test_sort_and_top_k(rng):
    x = rng.random((20, 500)).astype(np.float32)
    agrees(tf.sort, x)
    agrees(lambda x: tf.math.top_k(x, 7), x)


@pytest.mark.parametrize("shape", [(16,), (6, 15), (3, 4, 5)])
def test_transforms(rng, shape):
    x = (rng.random(shape) + 1j * rng.random(shape)).astype(np.complex64)
    transform = {1: tf.signal.fft, 2: tf.signal.fft2d, 3: tf.signal.fft3d}[len(shape)]
    agrees(transform, x, rtol=1e-4, atol=1e-4)


def test_decompositions(rng):
    a = rng.random((30, 30)).astype(np.float64)
    a = a @ a.T + 30 * np.eye(30)
    agrees(tf.linalg.cholesky, a)
    agrees(lambda a: tf.linalg.solve(a, a[:, :2]), a)
    agrees(tf.linalg.inv, a)
    agrees(tf.linalg.det, a, rtol=1e-8)
    agrees(lambda a: tf.linalg.svd(a, compute_uv=False), a)


def test_random_numbers_are_those_of_the_cpu():
    agrees(lambda: tf.random.stateless_normal((100, 7), seed=(1, 2)), rtol=1e-4)
    agrees(lambda: tf.random.stateless_uniform((100,), seed=(1, 2), maxval=1000, dtype=tf.int32))


def test_gradients(rng):
    x, w = rng.random((10, 4)).astype(np.float32), rng.random((4, 3)).astype(np.float32)

    def slope(x, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            value = tf.reduce_sum(tf.tanh(x @ w))
        return tape.gradient(value, w)

    agrees(slope, x, w)


@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "xla"])
def test_functions_that_are_traced_and_compiled(rng, compiled):
    @tf.function(jit_compile=compiled)
    def function(x):
        total = tf.zeros_like(x)
        for step in tf.range(5):
            total += tf.tanh(x @ x) * tf.cast(step, tf.float32)
        return total

    agrees(function, (rng.random((48, 48)) - 0.5).astype(np.float32), rtol=1e-4, atol=1e-4)


def trained(compiled):
    """The losses of a small network on scikit-learn's digits, made and trained on the device in force."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(10)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"], jit_compile=compiled)
    history = model.fit((images / 16).astype(np.float32), labels, epochs=12, batch_size=64, shuffle=False, verbose=0)
    return history.history


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "xla"])
def test_keras_learns_digits_with_the_losses_of_the_cpu(compiled):
    with tf.device("/GPU:0"):
        here = trained(compiled)
    with tf.device("/CPU:0"):
        there = trained(compiled)
    np.testing.assert_allclose(here["loss"], there["loss"], rtol=1e-3)
    assert here["accuracy"][-1] > 0.9


def test_a_convolution_is_refused_by_name(rng, capfd):
    image = tf.constant(rng.random((1, 16, 16, 1)).astype(np.float32))
    with tf.device("/GPU:0"), pytest.raises(tf.errors.OpError):
        tf.nn.conv2d(image, tf.ones((3, 3, 1, 4)), 1, "SAME")
    assert "cudnn" in capfd.readouterr().err
