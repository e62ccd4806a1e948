"""Prints results of samples as JSON lines; and times what is done once."""

import hashlib
import json
import time

import numpy

if not hasattr(numpy, "row_stack"):
    # numba-cuda asks for it at the first kernel; NumPy 2.5 has it by its other name alone.
    numpy.row_stack = numpy.vstack


def timed(action):
    """What an action gives, and its seconds."""
    began = time.monotonic()
    return action(), time.monotonic() - began


def show(*operations):
    """Each operation's result: samples and a digest, or what went wrong."""
    for operation in operations:
        try:
            result = numpy.asarray(operation(), dtype=numpy.float64).ravel()
            step = max(1, result.size // 64)
            line = {"samples": result[::step].tolist(), "digest": hashlib.sha256(result.tobytes()).hexdigest()}
        except Exception as error:  # noqa: BLE001 - the others are asked too
            text = " | ".join(str(error).strip().splitlines()[:3])
            line = {"error": f"{type(error).__name__}: {text}"[:500]}
        print(json.dumps({"name": operation.__name__, **line}), flush=True)
