"""A program whose communicator spans two processes with a worker each, on a GPU server whose NCCL is the stand-in of
standins/nccl.c.

    sluice-loopback --no-attach ... -- python3 nccl.py
"""

import ctypes
import json
import os
import subprocess
import sys
from ctypes import POINTER, Structure, byref, c_char, c_double, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

FLOAT, DOUBLE, SUM = 7, 8, 0
INVALID_ARGUMENT, INVALID_USAGE = 4, 5


class UniqueId(Structure):
    """ncclUniqueId, which is passed by value."""

    _fields_ = [("internal", c_char * 128)]


class Config(Structure):
    """The beginning of ncclConfig_t."""

    _fields_ = [
        ("size", c_size_t), ("magic", c_uint), ("version", c_uint), ("blocking", c_int), ("cluster", c_int),
        ("least", c_int), ("most", c_int), ("network", ctypes.c_char_p), ("share", c_int), ("traffic", c_int),
    ]  # fmt: skip


folder = os.environ["SLUICE_LIBRARY_DIR"]
client = ctypes.CDLL(os.path.join(folder, "libsluice_client.so"), mode=ctypes.RTLD_GLOBAL)
client.sluice_request.argtypes, client.sluice_request.restype = [ctypes.c_char_p], ctypes.c_void_p
cuda = ctypes.CDLL("libcuda.so.1")
nccl = ctypes.CDLL("libnccl.so.2")
nccl.ncclGetErrorString.restype = nccl.ncclGetLastError.restype = ctypes.c_char_p
nccl.ncclCommInitRank.argtypes = [POINTER(c_void_p), c_int, UniqueId, c_int]
nccl.ncclCommInitRankConfig.argtypes = [POINTER(c_void_p), c_int, UniqueId, c_int, POINTER(Config)]


def request(**fields):
    """Ask the native client."""
    answer = json.loads(ctypes.string_at(client.sluice_request(json.dumps(fields).encode())))
    assert not answer.get("error"), answer
    return answer


def ok(status):
    """Ends the program when a call failed."""
    assert status == 0, (status, nccl.ncclGetLastError(None))


class Device:
    """A device with its primary context and a stream."""

    def __init__(self, ordinal):
        self.context, self.stream = c_void_p(), c_void_p()
        ok(cuda.cuDevicePrimaryCtxRetain(byref(self.context), ordinal))
        self.make_current()
        ok(cuda.cuStreamCreate(byref(self.stream), 0))

    def make_current(self):
        """What is made next is made on this device."""
        ok(cuda.cuCtxSetCurrent(self.context))

    def upload(self, values):
        """Its memory with these numbers."""
        self.make_current()
        address, data = c_uint64(), (c_float * len(values))(*values)
        ok(cuda.cuMemAlloc_v2(byref(address), c_size_t(ctypes.sizeof(data))))
        ok(cuda.cuMemcpyHtoD_v2(address, data, c_size_t(ctypes.sizeof(data))))
        return address

    def download(self, address, length):
        """Numbers from its memory."""
        self.make_current()
        data = (c_float * length)()
        ok(cuda.cuMemcpyDtoH_v2(data, address, c_size_t(ctypes.sizeof(data))))
        return list(data)


def reduce(comm, device, source, target, count, kind=FLOAT):
    """A sum over all ranks."""
    return nccl.ncclAllReduce(source, target, c_size_t(count), kind, SUM, comm, device.stream)


def one_rank(device, identity, rank):
    """One rank of a communicator of two processes."""
    comm, number = c_void_p(), c_int()
    config = Config(ctypes.sizeof(Config), 0xCAFEBEEF, 22803, 0, -1, -1, 77, b"a network of the client's", -1, -1)
    ok(nccl.ncclGroupStart())
    ok(nccl.ncclCommInitRankConfig(byref(comm), 2, identity, rank, byref(config)))
    assert not comm.value
    # What was given is copied by then.
    ctypes.memset(byref(config), 0, ctypes.sizeof(config))
    ok(nccl.ncclGroupEnd())
    for asked, answer in ((nccl.ncclCommCount, 2), (nccl.ncclCommUserRank, rank), (nccl.ncclCommCuDevice, 0)):
        ok(asked(comm, byref(number)))
        assert number.value == answer
    ok(nccl.ncclCommGetAsyncError(comm, byref(number)))
    assert number.value == 0
    value = device.upload([rank + 1])
    for turn in range(3):
        request(op="trace", on=True)
        ok(reduce(comm, device, value, value, 1))
        assert request(op="trace", on=False)["blocking"] == (turn == 0)
    assert device.download(value, 1) == [12]
    # Groups in groups end with the outermost; what is received may be named before what is sent.
    mine, theirs, sums = device.upload([rank, rank + 5]), device.upload([-1, -1]), device.upload([1, rank])
    for turn in range(2):
        request(op="trace", on=True)
        ok(nccl.ncclGroupStart())
        ok(nccl.ncclRecv(theirs, c_size_t(2), FLOAT, 1 - rank, comm, device.stream))
        ok(nccl.ncclGroupStart())
        ok(nccl.ncclSend(mine, c_size_t(2), FLOAT, 1 - rank, comm, device.stream))
        ok(reduce(comm, device, sums, sums, 2))
        ok(nccl.ncclGroupEnd())
        assert request(op="trace", on=False)["blocking"] == 0
        assert device.download(theirs, 2) == ([-1, -1] if turn == 0 else [1 - rank, 6 - rank])
        request(op="trace", on=True)
        ok(nccl.ncclGroupEnd())
        assert request(op="trace", on=False)["blocking"] == (turn == 0)
    assert device.download(theirs, 2) == [1 - rank, 6 - rank]
    assert device.download(sums, 2) == [4, 2]
    ok(nccl.ncclBroadcast(mine, theirs, c_size_t(2), FLOAT, 0, comm, device.stream))
    assert device.download(theirs, 2) == [0, 5]
    # A group's refusal is told at its end, and the next one is none the worse.
    ok(nccl.ncclGroupStart())
    ok(reduce(comm, device, sums, sums, 2, DOUBLE))
    assert nccl.ncclGroupEnd() == INVALID_ARGUMENT
    assert nccl.ncclGroupEnd() == INVALID_USAGE
    ok(reduce(comm, device, sums, sums, 2))
    assert device.download(sums, 2) == [8, 4]
    factor = c_double(42)
    ok(nccl.ncclRedOpCreatePreMulSum(byref(number), byref(factor), DOUBLE, 1, comm))
    assert number.value == 42
    other = c_void_p()
    assert nccl.ncclCommSplit(comm, 0, 0, byref(other), None) == INVALID_USAGE
    # It gives its memory back for a while.
    held = c_uint64()
    for told in (2 << 20, 0, 2 << 20):
        ok(nccl.ncclCommMemStats(comm, 3, byref(held)))
        assert held.value == told, (held.value, told)
        if told:
            assert nccl.ncclCommResume(comm) == INVALID_USAGE
            ok(nccl.ncclCommSuspend(comm, 1))
        else:
            ok(nccl.ncclCommResume(comm))
    ok(nccl.ncclCommResume(comm))
    assert nccl.ncclCommRevoke(comm, 7) == INVALID_ARGUMENT
    # What is left without the other rank, which it is told by its own.
    one = (c_int * 1)(rank)
    assert nccl.ncclCommShrink(comm, one, 1, byref(other), None, 0) == INVALID_ARGUMENT
    one[0] = 1 - rank
    ok(nccl.ncclCommShrink(comm, one, 1, byref(other), None, 1))
    for asked, answer in ((nccl.ncclCommCount, 1), (nccl.ncclCommUserRank, 0)):
        ok(asked(other, byref(number)))
        assert number.value == answer
    ok(reduce(other, device, sums, sums, 2))
    assert device.download(sums, 2) == [8, 4]
    ok(nccl.ncclCommDestroy(other))
    ok(nccl.ncclCommDestroy(comm))
    assert reduce(comm, device, sums, sums, 2) != 0


def alone(device):
    """A communicator of the process's own devices."""
    comms, value = (c_void_p * 1)(), device.upload([3])
    ok(nccl.ncclCommInitAll(comms, 1, (c_int * 1)(0)))
    ok(reduce(c_void_p(comms[0]), device, value, value, 1))
    assert device.download(value, 1) == [3]
    assert nccl.ncclCommInitAll(comms, 1, (c_int * 1)(7)) == INVALID_ARGUMENT
    ok(nccl.ncclCommDestroy(c_void_p(comms[0])))


def main():
    """See the module."""
    if len(sys.argv) > 1:
        ok(cuda.cuInit(0))
        one_rank(Device(0), UniqueId.from_buffer_copy(bytes.fromhex(sys.argv[1])), 1)
        return
    with open("/proc/self/stat", "rb") as file:
        started = int(file.read().rpartition(b")")[2].split()[19])
    ready = request(op="init", owner={"kind": "process", "pid": os.getpid(), "startTime": started})
    request(op="attach", requestId="00000000-0000-4000-8000-000000000001", amount="0.5", waitSeconds=0)
    ok(cuda.cuInit(0))
    device, identity = Device(0), UniqueId()
    ok(nccl.ncclGetUniqueId(byref(identity)))
    command = [sys.executable, __file__, bytes(identity).hex()]
    with subprocess.Popen(command, env={**os.environ, "SLUICE_OWNER_SOCKET": ready["socket"]}) as other:
        one_rank(device, identity, 0)
        assert other.wait(30) == 0
    alone(device)
    print("ok")


main()
