#!/usr/bin/env python3
"""Run the example notebooks in a real kernel of a running installation.

    python run_notebooks.py --portal http://localhost:3000 --email admin@example.test [NOTEBOOK...]

The password comes from SLUICE_ADMIN_PASSWORD. Needs tornado, so the Python of a built environment will do.
Prints a line a notebook and ends with `N passed, N failed`.
"""

import argparse
import asyncio
import json
import os
import pathlib
import sys
import time

from live import LiveProblem, Portal

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"
PICTURES = {"mandelbrot.ipynb", "kmeans-digits.ipynb"}


async def run_notebook(jupyter, path):
    """Every code cell in order, in one new kernel. Returns the seconds; raises LiveProblem at a failing cell."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    kernel = await jupyter.kernel()
    began = time.monotonic()
    mimes = set()
    try:
        for cell in cells:
            result = await kernel.run("".join(cell["source"]), timeout=180)
            mimes |= result.mimes
            if not result.ok:
                raise LiveProblem(f"cell {cell['id']}:\n{result.text}")
    finally:
        await kernel.close()
    if path.name in PICTURES and "image/png" not in mimes:
        raise LiveProblem("no picture was drawn")
    return time.monotonic() - began


async def main():
    """Command line; the exit status is the number of failed notebooks, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--portal", default=os.environ.get("SLUICE_PORTAL_URL", "http://localhost:3000"))
    parser.add_argument("--email", default=os.environ.get("SLUICE_ADMIN_EMAIL"))
    parser.add_argument("--workspace", default="examples")
    parser.add_argument("notebooks", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    portal = Portal(options.portal)
    await portal.sign_in(options.email, os.environ["SLUICE_ADMIN_PASSWORD"])
    workspace = await portal.launch(options.workspace)
    jupyter = await portal.open(workspace["id"])
    passed = failed = 0
    for path in options.notebooks or sorted(EXAMPLES.glob("*.ipynb")):
        try:
            seconds = await run_notebook(jupyter, path)
        except LiveProblem as problem:
            failed += 1
            print(f"FAILED  {path.name}: {problem}", flush=True)
        else:
            passed += 1
            print(f"passed  {path.name} in {seconds:.1f} s", flush=True)
    await portal.stop(workspace["id"])
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except LiveProblem as problem:
        sys.exit(f"run_notebooks: {problem}")
