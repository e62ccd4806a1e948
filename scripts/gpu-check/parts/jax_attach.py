"""JAX trains while its GPU goes and comes back: one JSON line with the losses and how long giving and taking took.

    python3 jax_attach.py            natively, without a pause
    python3 jax_attach.py remoted    in a workspace where nothing is attached
"""

import json
import sys

import jax
import jax.numpy as jnp
from samples import timed

STEPS = 50
remoted = sys.argv[1:] == ["remoted"]


def loss(parameters, x, y):
    """Of a network with one layer inside."""
    first, second = parameters
    return jnp.mean((jnp.tanh(x @ first) @ second - y) ** 2)


@jax.jit
def step(parameters, x, y):
    """A step downhill."""
    value, slopes = jax.value_and_grad(loss)(parameters, x, y)
    return [one - 0.05 * slope for one, slope in zip(parameters, slopes)], value


def learn(parameters, x, y):
    """The parameters after some steps, and the losses."""
    losses = []
    for _ in range(STEPS):
        parameters, value = step(parameters, x, y)
        losses.append(float(value))
    return parameters, losses


if remoted:
    import sluice_gpu

    lease, attach_s = timed(lambda: sluice_gpu.attach("0.5"))
if jax.default_backend() != "gpu":
    raise SystemExit(f"JAX computes on {jax.default_backend()}, not on a GPU")
keys = jax.random.split(jax.random.key(0), 4)
x, y = jax.random.normal(keys[0], (512, 256)), jax.random.normal(keys[1], (512, 16))
parameters = [jax.random.normal(keys[2], (256, 1024)) / 16, jax.random.normal(keys[3], (1024, 16)) / 32]
parameters, losses = learn(parameters, x, y)
found = {"name": "jax"}
if remoted:
    _, detach_s = timed(lease.detach)
    try:
        step(parameters, x, y)[1].block_until_ready()
        without = "works"
    except Exception as error:  # noqa: BLE001 - whatever JAX makes of it
        without = str(error).splitlines()[0]
    _, attach_again_s = timed(lambda: sluice_gpu.attach("0.5"))
    (parameters, more), first_steps_s = timed(lambda: learn(parameters, x, y))
    losses += more
    found |= {
        "attach_s": attach_s, "detach_s": detach_s, "without_a_gpu": without, "attach_again_s": attach_again_s,
        "first_steps_s": first_steps_s,
    }
else:
    losses += learn(parameters, x, y)[1]
print(json.dumps({**found, "losses": losses}))
