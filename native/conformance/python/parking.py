"""Give a lease back with MIB of live memory, borrow again, and find everything as it was. Prints one line of JSON.

    sluice-loopback --joined --no-attach -- python3 parking.py MIB [MAPPED]

MAPPED MiB more, a multiple of 6, are memory that the program maps itself: a third of it at two addresses, a third that is
mapped and not accessible, and a third that is mapped nowhere.
"""

import ctypes
import json
import os
import sys
import time

OUT_OF_MEMORY, UNAVAILABLE = 2, 46
MIB = 1 << 20
PIECE = 64 * MIB
PROBE = 1 << 12

folder = os.environ["SLUICE_LIBRARY_DIR"]
client = ctypes.CDLL(os.path.join(folder, "libsluice_client.so"), mode=ctypes.RTLD_GLOBAL)
client.sluice_request.argtypes, client.sluice_request.restype = [ctypes.c_char_p], ctypes.c_void_p
cuda = ctypes.CDLL(os.path.join(folder, "libcuda.so.1"))


def request(**fields):
    """Ask the native client; ends the program when it refuses."""
    answer = json.loads(ctypes.string_at(client.sluice_request(json.dumps(fields).encode())))
    if answer.get("error"):
        sys.exit(f"{fields['op']}: {answer['error']}")
    return answer


def attach(number):
    """Borrow half of the device; seconds it took."""
    began = time.monotonic()
    request(op="attach", requestId=f"00000000-0000-4000-8000-{number:012}", amount="0.5", waitSeconds=0)
    return time.monotonic() - began


def check(name, *arguments, expected=0):
    """Call the driver."""
    code = getattr(cuda, name)(*arguments)
    if code != expected:
        sys.exit(f"{name} answers {code}, not {expected}")


def probes(start, length):
    """Where a piece is looked at: its ends and its middle."""
    return [start, start + length // 2 // PROBE * PROBE, start + length - PROBE]


def place(length):
    """Addresses without memory."""
    address = ctypes.c_uint64()
    check("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(length), ctypes.c_size_t(0), ctypes.c_uint64(0),
          ctypes.c_uint64(0))
    return address.value


def open_at(address, length, handle, map_it=True):
    """Memory of the program's own at an address, accessible."""
    if map_it:
        check("cuMemMap", ctypes.c_uint64(address), ctypes.c_size_t(length), ctypes.c_size_t(0), handle,
              ctypes.c_uint64(0))
    access = (ctypes.c_uint32 * 3)(1, 0, 3)
    check("cuMemSetAccess", ctypes.c_uint64(address), ctypes.c_size_t(length), access, ctypes.c_size_t(1))


class Mapped:
    """Three pieces of memory that the program maps itself."""

    def __init__(self, length):
        self.length, self.handles = length, [ctypes.c_uint64() for _ in range(3)]
        self.places = [place(length) for _ in range(4)]
        self.data = [os.urandom(PROBE) for _ in range(3)]
        properties = (ctypes.c_uint32 * 8)(1, 0, 1, 0)
        for number, handle in enumerate(self.handles):
            check("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(length), properties, ctypes.c_uint64(0))
            open_at(self.places[number], length, handle)
            for at in probes(self.places[number], length):
                check("cuMemcpyHtoD_v2", ctypes.c_uint64(at), self.data[number], ctypes.c_size_t(PROBE))
        open_at(self.places[3], length, self.handles[0])
        nothing = (ctypes.c_uint32 * 3)(1, 0, 0)
        check("cuMemSetAccess", ctypes.c_uint64(self.places[1]), ctypes.c_size_t(length), nothing, ctypes.c_size_t(1))
        check("cuMemUnmap", ctypes.c_uint64(self.places[2]), ctypes.c_size_t(length))

    def look(self):
        """Everything is as it was, and what could not be accessed still cannot."""
        room = ctypes.create_string_buffer(PROBE)
        check("cuMemcpyDtoH_v2", room, ctypes.c_uint64(self.places[1]), ctypes.c_size_t(PROBE), expected=1)
        open_at(self.places[1], self.length, self.handles[1], map_it=False)
        open_at(self.places[2], self.length, self.handles[2])
        for number, start in enumerate(self.places):
            for at in probes(start, self.length):
                check("cuMemcpyDtoH_v2", room, ctypes.c_uint64(at), ctypes.c_size_t(PROBE))
                if room.raw != self.data[number % 3]:
                    sys.exit(f"what was mapped at {at:#x} has changed")
        # The two addresses are still of one memory.
        check("cuMemcpyHtoD_v2", ctypes.c_uint64(self.places[0]), self.data[1], ctypes.c_size_t(PROBE))
        check("cuMemcpyDtoH_v2", room, ctypes.c_uint64(self.places[3]), ctypes.c_size_t(PROBE))
        if room.raw != self.data[1]:
            sys.exit("memory that was mapped twice has come apart")

    def end(self):
        """Give it back."""
        for start in self.places:
            check("cuMemUnmap", ctypes.c_uint64(start), ctypes.c_size_t(self.length))
            check("cuMemAddressFree", ctypes.c_uint64(start), ctypes.c_size_t(self.length))
        for handle in self.handles:
            check("cuMemRelease", handle)


def main():
    """See the module."""
    wanted = int(sys.argv[1]) * MIB
    with open("/proc/self/stat", "rb") as file:
        started = int(file.read().rpartition(b")")[2].split()[19])
    request(op="init", owner={"kind": "process", "pid": os.getpid(), "startTime": started})
    attach_s = attach(1)
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    check("cuInit", 0)
    check("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    check("cuCtxSetCurrent", context)
    check("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    address = ctypes.c_uint64()
    check("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(total.value + MIB), expected=OUT_OF_MEMORY)
    pieces = []
    while (held := sum(length for _, length in pieces)) < wanted:
        length = min(PIECE, wanted - held)
        check("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(length))
        pieces.append((address.value, length))
    written = {}
    for start, length in pieces:
        check("cuMemsetD32_v2", ctypes.c_uint64(start), ctypes.c_uint(len(written)), ctypes.c_size_t(length // 4))
        for at in probes(start, length):
            written[at] = os.urandom(PROBE)
            check("cuMemcpyHtoD_v2", ctypes.c_uint64(at), written[at], ctypes.c_size_t(PROBE))
    mapped = Mapped(int(sys.argv[2]) * MIB // 3) if len(sys.argv) > 2 else None
    began = time.monotonic()
    parked = request(op="detach")["parkedBytes"]
    park_s = time.monotonic() - began
    check("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(MIB), expected=UNAVAILABLE)
    attach_again_s = attach(2)
    room = ctypes.create_string_buffer(PROBE)
    for at, data in written.items():
        check("cuMemcpyDtoH_v2", room, ctypes.c_uint64(at), ctypes.c_size_t(PROBE))
        if room.raw != data:
            sys.exit(f"what was parked at {at:#x} has changed")
    resume_s = time.monotonic() - began - park_s
    if mapped:
        mapped.look()
        mapped.end()
    for start, _ in pieces:
        check("cuMemFree_v2", ctypes.c_uint64(start))
    check("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    figures = {
        "parked_bytes": parked, "free_bytes": free.value, "total_bytes": total.value, "attach_s": attach_s,
        "park_s": park_s, "attach_again_s": attach_again_s, "resume_s": resume_s,
    }
    print(json.dumps(figures))


main()
