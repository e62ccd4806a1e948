"""A script that uses the notebook's GPU: attach in a notebook, then run `!python script.py` in a cell.

It is a process of its own with its own connection, but the same lease: both together stay within its memory.
Outside a notebook: `sluice run --gpu 0.5 -- python script.py`.
"""

import numpy as np
from numba import cuda


@cuda.jit
def scale_and_add(factor, x, y):
    """y = factor * x + y, one element a thread."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = factor * x[i] + y[i]


def main():
    """Run the kernel and compare with NumPy."""
    x = np.arange(20_000, dtype=np.float64)
    y = np.ones_like(x)
    y_device = cuda.to_device(y)
    scale_and_add[(x.size + 127) // 128, 128](2.0, cuda.to_device(x), y_device)
    np.testing.assert_allclose(y_device.copy_to_host(), 2.0 * x + y, rtol=1e-15)
    free, total = cuda.current_context().get_memory_info()
    print(f"correct; {free >> 20} of {total >> 20} MiB of GPU memory are free")


if __name__ == "__main__":
    main()
