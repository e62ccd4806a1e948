"""JAX on the GPU."""

import jax
import jax.numpy as jnp
from samples import show

if jax.default_backend() != "gpu":
    raise SystemExit(f"JAX computes on {jax.default_backend()}, not on a GPU")
KEY = jax.random.key(0)


def elementwise():
    return jax.jit(lambda x: jnp.tanh(x) * 2 + x**2)(jnp.linspace(-3, 3, 10_000))


def gradient():
    return jax.grad(lambda w: jnp.sum(jnp.sin(w @ w.T)))(jax.random.normal(KEY, (64, 64)))


def matmul():
    return jax.random.normal(KEY, (256, 128)) @ jax.random.normal(KEY, (128, 192))


def vmapped():
    return jax.vmap(lambda x: jnp.cumsum(jnp.sort(x)))(jax.random.normal(KEY, (32, 500)))


def fft():
    return jnp.abs(jnp.fft.fft2(jax.random.normal(KEY, (64, 96))))


def svd():
    return jnp.linalg.svd(jax.random.normal(KEY, (48, 32)), compute_uv=False)


def random_numbers():
    return jax.random.uniform(KEY, (50_000,))


def half_products():
    x = jax.random.normal(KEY, (4, 256, 512), jnp.bfloat16)
    return jnp.einsum("bij,bkj->bik", x, x).astype(jnp.float32)


def convolution():
    x, w = jax.random.normal(KEY, (8, 16, 32, 32)), jax.random.normal(KEY, (32, 16, 3, 3))
    return jax.lax.conv(x, w, (1, 1), "SAME")


def cholesky():
    x = jax.random.normal(KEY, (96, 96))
    return jnp.linalg.cholesky(x @ x.T + 96 * jnp.eye(96))


def digits():
    """The losses of a small network that learns scikit-learn's digits."""
    from sklearn.datasets import load_digits

    pixels, wanted = load_digits(return_X_y=True)
    x, y = jnp.asarray(pixels / 16, jnp.float32), jnp.asarray(wanted)
    keys = jax.random.split(KEY, 2)
    parameters = [jax.random.normal(keys[0], (64, 64)) * 0.1, jax.random.normal(keys[1], (64, 10)) * 0.1]

    def loss(parameters):
        scores = jax.nn.log_softmax(jax.nn.relu(x @ parameters[0]) @ parameters[1])
        return -jnp.mean(jnp.take_along_axis(scores, y[:, None], axis=1))

    @jax.jit
    def step(parameters):
        value, slopes = jax.value_and_grad(loss)(parameters)
        return [one - 0.5 * slope for one, slope in zip(parameters, slopes)], value

    losses = []
    for _ in range(100):
        parameters, value = step(parameters)
        losses.append(value)
    return jnp.stack(losses)


show(
    elementwise, gradient, matmul, vmapped, fft, svd, random_numbers, half_products, convolution, cholesky, digits,
)
