"""TensorFlow on the GPU."""

import numpy
import tensorflow as tf
from samples import show

GPUS = tf.config.list_physical_devices("GPU")
if not GPUS:
    raise SystemExit("TensorFlow finds no GPU")
# Else it takes all of the card, also from the programs that run beside it.
tf.config.experimental.set_memory_growth(GPUS[0], True)


def random(*shape, seed=1):
    """The same numbers in every run."""
    return tf.constant(numpy.random.default_rng(seed).standard_normal(shape, dtype=numpy.float32))


def computed(result):
    """A result, if the GPU has computed it: TensorFlow takes the processor where it cannot."""
    if "GPU" not in result.device:
        raise RuntimeError(f"computed on {result.device}")
    return result


def elementwise():
    return computed(tf.tanh(random(300, 400)) * 2 + random(300, 400, seed=2) ** 2)


def matmul():
    return computed(random(256, 128) @ random(128, 192, seed=2))


def half_products():
    x = tf.cast(random(4, 256, 512), tf.bfloat16)
    return computed(tf.cast(tf.matmul(x, x, transpose_b=True), tf.float32))


def convolution():
    x, w = random(8, 32, 32, 16), random(3, 3, 16, 32, seed=2)
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = tf.nn.conv2d(x, w, strides=1, padding="SAME")
        total = tf.reduce_sum(y**2)
    slopes = tape.gradient(total, [x, w])
    return computed(tf.concat([tf.reshape(part, [-1]) for part in (y, *slopes)], 0))


def reductions():
    x = random(200, 300)
    return computed(tf.concat([tf.reduce_sum(x, 0), tf.reduce_max(x, 1), tf.cumsum(x[0])], 0))


def fft():
    return computed(tf.abs(tf.signal.rfft2d(random(4, 64, 96))))


def cholesky():
    x = random(96, 96)
    return computed(tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True) + 96 * tf.eye(96)))


def random_numbers():
    return computed(tf.random.stateless_normal((50_000,), seed=(7, 8)))


def training():
    """The losses of a small network."""
    x, y = random(256, 64), tf.constant(numpy.random.default_rng(3).integers(0, 10, 256))
    parameters = [tf.Variable(random(64, 128, seed=4) / 8), tf.Variable(random(128, 10, seed=5) / 8)]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            scores = tf.nn.relu(x @ parameters[0]) @ parameters[1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=scores))
        for parameter, slope in zip(parameters, tape.gradient(loss, parameters)):
            parameter.assign_sub(0.1 * slope)
        return loss

    return computed(tf.stack([step() for _ in range(100)]))


show(elementwise, matmul, half_products, convolution, reductions, fft, cholesky, random_numbers, training)
