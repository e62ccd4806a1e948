#!/usr/bin/env python3
"""Measure attach cycles in a real notebook kernel of a running installation.

    python measure_attach.py --portal http://localhost:3000 --email admin@example.test --cycles 200

One cycle is: enter `%gpu attach 0.5`, launch a kernel on memory that was parked, read its result back. The module is
loaded and 64 MiB are allocated before. The password comes from SLUICE_ADMIN_PASSWORD.
The last line is a JSON list of seconds, one a cycle.
"""

import argparse
import asyncio
import json
import os
import sys

from live import LiveProblem, Portal

PREPARE = """
import contextlib, io, json, time
import numpy as np
from numba import cuda

@cuda.jit
def increment(x):
    i = cuda.grid(1)
    if i < 256:
        x[i] += 1

get_ipython().run_line_magic("gpu", "attach 0.5")
data = cuda.device_array(64 * 1024 * 1024 // 8, dtype=np.int64)
data[:256] = np.zeros(256, dtype=np.int64)
increment[2, 128](data)
assert data[:256].copy_to_host().sum() == 256
get_ipython().run_line_magic("gpu", "detach")
"""

CYCLES = """
seconds = []
for cycle in range({cycles}):
    with contextlib.redirect_stdout(io.StringIO()):
        began = time.perf_counter()
        get_ipython().run_line_magic("gpu", "attach 0.5")
        increment[2, 128](data)
        value = data[0]
        seconds.append(time.perf_counter() - began)
        get_ipython().run_line_magic("gpu", "detach")
    assert value == cycle + 2, (value, cycle)
print(json.dumps(seconds))
"""


async def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--portal", default=os.environ.get("SLUICE_PORTAL_URL", "http://localhost:3000"))
    parser.add_argument("--email", default=os.environ.get("SLUICE_ADMIN_EMAIL"))
    parser.add_argument("--cycles", type=int, default=200)
    options = parser.parse_args()
    portal = Portal(options.portal)
    await portal.sign_in(options.email, os.environ["SLUICE_ADMIN_PASSWORD"])
    workspace = await portal.launch("bench")
    jupyter = await portal.open(workspace["id"])
    kernel = await jupyter.kernel("attach.ipynb")
    try:
        for code in (PREPARE, CYCLES.format(cycles=options.cycles)):
            result = await kernel.run(code, timeout=300)
            if not result.ok:
                raise LiveProblem(result.text)
    finally:
        await kernel.close()
        await portal.stop(workspace["id"])
    seconds = json.loads(result.text.strip().splitlines()[-1])
    if len(seconds) != options.cycles:
        raise LiveProblem(f"{len(seconds)} cycles were measured, not {options.cycles}")
    print(json.dumps(seconds))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except LiveProblem as problem:
        sys.exit(f"measure_attach: {problem}")
