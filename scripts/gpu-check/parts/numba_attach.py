"""Numba's arrays while their GPU goes and comes back: one JSON line that says whether they were found as they were, at
the addresses that they had, and how long giving and taking took.

    python3 numba_attach.py    in a workspace where nothing is attached
"""

import json

import numpy
import sluice_gpu
from numba import cuda
from samples import timed

COUNT, ARRAYS = 1 << 20, 4


@cuda.jit
def double(values):
    """In place."""
    at = cuda.grid(1)
    if at < values.size:
        values[at] *= 2


def at_address(address):
    """The numbers that lie there, whatever array was made for them."""
    described = {"data": (address, False), "shape": (COUNT,), "typestr": "<f8", "version": 3}
    return cuda.as_cuda_array(type("Memory", (), {"__cuda_array_interface__": described})()).copy_to_host()


lease, attach_s = timed(lambda: sluice_gpu.attach("0.5"))
random = numpy.random.default_rng(0)
wanted = [2 * random.random(COUNT) for _ in range(ARRAYS)]
arrays = [cuda.to_device(numbers / 2) for numbers in wanted]
addresses = [array.__cuda_array_interface__["data"][0] for array in arrays]
for array in arrays:
    double[COUNT // 256, 256](array)
cuda.synchronize()
_, detach_s = timed(lease.detach)
try:
    arrays[0].copy_to_host()
    without = "works"
except Exception as error:  # noqa: BLE001 - whatever Numba makes of it
    without = str(error).splitlines()[0]
_, attach_again_s = timed(lambda: sluice_gpu.attach("0.5"))
found = [numpy.array_equal(at_address(address), numbers) for address, numbers in zip(addresses, wanted)]
for array in arrays:
    double[COUNT // 256, 256](array)
works_on = [numpy.array_equal(array.copy_to_host(), 2 * numbers) for array, numbers in zip(arrays, wanted)]
print(json.dumps({
    "name": "numba", "held_bytes": 8 * COUNT * ARRAYS, "attach_s": attach_s, "detach_s": detach_s,
    "without_a_gpu": without, "attach_again_s": attach_again_s, "as_they_were": all(found), "works_on": all(works_on),
}))
