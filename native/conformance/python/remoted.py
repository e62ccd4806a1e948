"""What programs on a GPU server with a stand-in share: the native client's requests, and device memory."""

import ctypes
import json
import os
from ctypes import byref, c_float, c_size_t, c_uint64, c_void_p

folder = os.environ["SLUICE_LIBRARY_DIR"]
client = ctypes.CDLL(os.path.join(folder, "libsluice_client.so"), mode=ctypes.RTLD_GLOBAL)
client.sluice_request.argtypes, client.sluice_request.restype = [ctypes.c_char_p], ctypes.c_void_p
cuda = ctypes.CDLL("libcuda.so.1")


def request(**fields):
    """Ask the native client."""
    answer = json.loads(ctypes.string_at(client.sluice_request(json.dumps(fields).encode())))
    assert not answer.get("error"), answer
    return answer


def introduce():
    """Tell the client who owns the lease."""
    with open("/proc/self/stat", "rb") as file:
        started = int(file.read().rpartition(b")")[2].split()[19])
    request(op="init", owner={"kind": "process", "pid": os.getpid(), "startTime": started})


def attach():
    """Borrow half of the device and make its context current."""
    request(op="attach", requestId="00000000-0000-4000-8000-000000000001", amount="0.5", waitSeconds=0)
    context = c_void_p()
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))


def ok(status):
    """End the program when a call failed."""
    assert status == 0, status


def blocking(body):
    """How often a call of this function waited."""
    request(op="trace", on=True)
    body()
    return request(op="trace", on=False)["blocking"]


def upload(values, real=c_float):
    """Device memory with these numbers."""
    address, data = c_uint64(), (real * len(values))(*values)
    ok(cuda.cuMemAlloc_v2(byref(address), c_size_t(ctypes.sizeof(data))))
    ok(cuda.cuMemcpyHtoD_v2(address, data, c_size_t(ctypes.sizeof(data))))
    return address


def download(address, length, real=c_float):
    """Numbers from device memory."""
    data = (real * length)()
    ok(cuda.cuMemcpyDtoH_v2(data, address, c_size_t(ctypes.sizeof(data))))
    return list(data)
