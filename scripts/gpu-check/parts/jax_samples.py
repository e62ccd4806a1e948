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


show(elementwise, gradient, matmul, vmapped, fft, svd, random_numbers)
