# One turn of a notebook in the soak: borrows a share, computes on it for a while, and gives it back. The soak runs this
# as one cell, after a line that sets AMOUNT, HOLD_SECONDS, WAIT_SECONDS and RECORD.
import ctypes
import json
import os
import random
import time

import sluice_gpu
from cuda.bindings import driver

WORDS = 1 << 18


def checked(answer):
    code, *values = answer
    if int(code) != 0:
        raise RuntimeError(f"the GPU answered {code!r}")
    return values[0] if values else None


def compute(address, words):
    value = random.getrandbits(32)
    checked(driver.cuMemsetD32(address, value, WORDS))
    checked(driver.cuMemcpyDtoH(ctypes.addressof(words), address, ctypes.sizeof(words)))
    if any(word != value for word in words[::997]):
        raise RuntimeError("WRONG WORDS came back from the GPU")


def hold(record):
    checked(driver.cuInit(0))
    device = checked(driver.cuDeviceGet(0))
    checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))
    words = (ctypes.c_uint32 * WORDS)()
    address = checked(driver.cuMemAlloc(ctypes.sizeof(words)))
    end = time.monotonic() + HOLD_SECONDS  # noqa: F821
    while True:
        compute(address, words)
        # The clock is that of the whole machine.
        record["to"] = time.monotonic_ns()
        record.setdefault("from", record["to"])
        if time.monotonic() >= end:
            break
        time.sleep(0.02)
    checked(driver.cuMemFree(address))
    checked(driver.cuDevicePrimaryCtxRelease(device))


def turn():
    with sluice_gpu.attach(AMOUNT, wait=WAIT_SECONDS) as borrowed:  # noqa: F821
        record = {"lease": borrowed.lease["id"]}
        try:
            hold(record)
        finally:
            if "from" in record:
                file = os.open(os.path.expanduser(f"~/{RECORD}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)  # noqa: F821
                try:
                    os.write(file, json.dumps(record).encode() + b"\n")
                finally:
                    os.close(file)


turn()
print("turn done")
