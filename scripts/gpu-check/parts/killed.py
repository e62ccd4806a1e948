"""A framework trains until the process that serves it is killed: one JSON line that says after how many seconds it had
an error, and whether it trains on another lease.

    python3 killed.py torch|jax|numba    in a workspace where nothing is attached
"""

import json
import os
import random
import sys
import time

import fresh
import numpy
import sluice_gpu
from samples import timed

# Three programs share the card; natively JAX takes most of it when it begins.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
SOURCE = numpy.random.default_rng(3)
INPUTS = SOURCE.standard_normal((64, 8), dtype=numpy.float32)
WANTED = INPUTS @ numpy.arange(8, dtype=numpy.float32)


def with_torch():
    """A step of training, which gives the loss; all that it needs is made anew."""
    import torch

    x, y = torch.from_numpy(INPUTS).cuda(), torch.from_numpy(WANTED).cuda()
    w = torch.zeros(8, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)

    def step():
        loss = ((x @ w - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def with_jax():
    """As above."""
    import jax
    import jax.numpy as jnp

    x, y, kept = jnp.asarray(INPUTS), jnp.asarray(WANTED), [jnp.zeros(8)]
    slope = jax.jit(jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2)))

    def step():
        loss, downhill = slope(kept[0])
        kept[0] = kept[0] - 0.1 * downhill
        return float(loss)

    return step


def with_numba():
    """As above."""
    from numba import cuda

    @cuda.jit
    def descend(x, y, w, losses):
        row = cuda.threadIdx.x
        error = -y[row]
        for k in range(x.shape[1]):
            error += x[row, k] * w[k]
        cuda.syncthreads()
        losses[row] = error * error
        for k in range(x.shape[1]):
            cuda.atomic.add(w, k, -0.2 * error * x[row, k] / x.shape[0])

    x, y = cuda.to_device(INPUTS), cuda.to_device(WANTED)
    w, losses = cuda.to_device(numpy.zeros(8, numpy.float32)), cuda.device_array(64, numpy.float32)

    def step():
        descend[1, 64](x, y, w, losses)
        return float(losses.copy_to_host().mean())

    return step


def learns(begin):
    """Whether the loss becomes small."""
    step = begin()
    losses = [step() for _ in range(60)]
    return losses[-1] < losses[0] / 10


begin = {"torch": with_torch, "jax": with_jax, "numba": with_numba}[sys.argv[1]]
sluice_gpu.attach("0.5")
if not learns(begin):
    raise SystemExit("it does not learn before anything is killed")
step = begin()
killed = fresh.kill_own_worker(random.uniform(0.1, 0.5))
try:
    while True:
        step()
except Exception as error:  # noqa: BLE001 - whatever the framework makes of it
    error_after_s, said = time.monotonic() - killed[0], f"{type(error).__name__}: {str(error).splitlines()[0]}"
_, attach_again_s = timed(lambda: sluice_gpu.attach("0.5"))
print(json.dumps({
    "name": sys.argv[1], "error_after_s": error_after_s, "error": said, "attach_again_s": attach_again_s,
    "learns_again": learns(begin),
}))
