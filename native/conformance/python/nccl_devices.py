"""Communicators of one process with two devices, as the servers hear of them: each device's worker gets its own calls, a
group's as one. Argument: the file in which the null backend records what it was asked to do.

    sluice-loopback --backend null --gpud=--soft-devices=2 --gpud=--recording=FILE --no-attach -- python3 nccl_devices.py FILE
"""

import ctypes
import json
import os
import sys
from ctypes import byref, c_char, c_int, c_size_t, c_uint64, c_void_p

FLOAT, SUM = 7, 0

folder = os.environ["SLUICE_LIBRARY_DIR"]
client = ctypes.CDLL(os.path.join(folder, "libsluice_client.so"), mode=ctypes.RTLD_GLOBAL)
client.sluice_request.argtypes, client.sluice_request.restype = [ctypes.c_char_p], ctypes.c_void_p
cuda = ctypes.CDLL("libcuda.so.1")
nccl = ctypes.CDLL("libnccl.so.2")

class UniqueId(ctypes.Structure):
    """ncclUniqueId, which is passed by value."""

    _fields_ = [("internal", c_char * 128)]


nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(c_void_p), c_int, UniqueId, c_int]


def request(**fields):
    """Ask the native client."""
    answer = json.loads(ctypes.string_at(client.sluice_request(json.dumps(fields).encode())))
    assert not answer.get("error"), answer
    return answer


def ok(status):
    """Ends the program when a call failed."""
    assert status == 0, status


def recorded():
    """NCCL's functions that the servers were asked for, with the bytes of their arguments."""
    with open(sys.argv[1]) as file:
        lines = [json.loads(line) for line in file]
    return [(line["call"], line["bytes"]) for line in lines if line["call"].startswith("nccl")]


def main():
    """See the module."""
    with open("/proc/self/stat", "rb") as file:
        started = int(file.read().rpartition(b")")[2].split()[19])
    request(op="init", owner={"kind": "process", "pid": os.getpid(), "startTime": started})
    request(op="attach", requestId="00000000-0000-4000-8000-000000000001", amount="2", waitSeconds=0)
    ok(cuda.cuInit(0))
    contexts, memory, streams = (c_void_p * 2)(), [c_uint64(), c_uint64()], [c_void_p(), c_void_p()]
    for ordinal in (0, 1):
        ok(cuda.cuDevicePrimaryCtxRetain(byref(contexts, 8 * ordinal), ordinal))
        ok(cuda.cuCtxSetCurrent(c_void_p(contexts[ordinal])))
        ok(cuda.cuMemAlloc_v2(byref(memory[ordinal]), c_size_t(64)))
        ok(cuda.cuStreamCreate(byref(streams[ordinal]), 0))
    comms, ordinal = (c_void_p * 2)(), c_int()
    ok(nccl.ncclCommInitAll(comms, 2, (c_int * 2)(1, 0)))
    assert [name for name, _ in recorded()] == ["ncclGetUniqueId", "ncclGroupEnd", "ncclGroupEnd"]
    for rank in (0, 1):
        ok(nccl.ncclCommCuDevice(c_void_p(comms[rank]), byref(ordinal)))
        assert ordinal.value == 1 - rank
    # Three calls of one communicator and one of the other, while one device is current.
    for turn in range(2):
        before = len(recorded())
        request(op="trace", on=True)
        ok(nccl.ncclGroupStart())
        for rank in (0, 0, 1, 0):
            device = 1 - rank
            buffer, stream, comm = memory[device], streams[device], c_void_p(comms[rank])
            ok(nccl.ncclAllReduce(buffer, buffer, c_size_t(4), FLOAT, SUM, comm, stream))
        assert len(recorded()) == before
        ok(nccl.ncclGroupEnd())
        assert request(op="trace", on=False)["blocking"] == (2 if turn == 0 else 0)
        for device in (0, 1):
            ok(cuda.cuCtxSetCurrent(c_void_p(contexts[device])))
            ok(cuda.cuStreamSynchronize(streams[device]))
        (small, one), (large, three) = sorted(recorded()[before:], key=lambda call: call[1])
        # Kind and length of the list, then each call.
        assert small == large == "ncclGroupEnd" and three - 5 == 3 * (one - 5), (one, three)
    # A rank for each device in one group.
    ok(nccl.ncclGroupStart())
    others = [c_void_p(), c_void_p()]
    for device in (0, 1):
        ok(cuda.cuCtxSetCurrent(c_void_p(contexts[device])))
        ok(nccl.ncclCommInitRank(byref(others[device]), 2, UniqueId(), device))
    ok(nccl.ncclGroupEnd())
    for device in (0, 1):
        ok(nccl.ncclCommCuDevice(others[device], byref(ordinal)))
        assert ordinal.value == device
    for comm in (*comms, *(other.value for other in others)):
        ok(nccl.ncclCommDestroy(c_void_p(comm)))
    for device in (0, 1):
        ok(cuda.cuCtxSetCurrent(c_void_p(contexts[device])))
        ok(cuda.cuCtxSynchronize())
    assert [name for name, _ in recorded()[-4:]] == ["ncclCommDestroy"] * 4
    print("ok")


main()
