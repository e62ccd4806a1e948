"""A program that describes tensors for kernels to copy tiles of, on a GPU server whose driver is the stand-in of
standins/driver.c, which puts into a map what it is told.

    sluice-loopback --no-attach ... -- python3 tensor_maps.py
"""

import ctypes
import struct
from ctypes import byref, c_int, c_uint64, c_void_p

from remoted import attach, blocking, cuda, introduce, ok, request, upload

INVALID_VALUE, NOT_SUPPORTED, NO_DEVICE = 1, 801, 46


class Map:
    """A CUtensorMap, which lies at a multiple of 64."""

    def __init__(self, shift=0):
        self.room = ctypes.create_string_buffer(128 + 64 + shift)
        self.place = c_void_p((ctypes.addressof(self.room) + 63) // 64 * 64 + shift)

    def content(self):
        """What the stand-in has written."""
        data = ctypes.string_at(self.place.value, 128)
        kind, data_type, rank, *modes = struct.unpack_from("<3B4B", data)
        address, *numbers = struct.unpack_from("<Q5Q4Q", data, 8)
        *window, channels, pixels = struct.unpack_from("<5I2I", data, 88)
        steps = struct.unpack_from("<5B", data, 116)
        return kind, data_type, rank, modes, address, numbers[:5], numbers[5:], window, channels, pixels, list(steps)


def list_of(kind, values):
    """A C array, or none."""
    return None if values is None else (kind * len(values))(*values)


def tiled(to, address, data_type=7, rank=2, sizes=(64, 32), strides=(256,), box=(16, 8), steps=(1, 2), modes=(0, 1, 2, 1)):
    """Encode by tiles."""
    lists = list_of(c_uint64, sizes), list_of(c_uint64, strides), list_of(c_int, box), list_of(c_int, steps)
    return cuda.cuTensorMapEncodeTiled(to.place, data_type, rank, address, *lists, *modes)


def columns(to, address, rank=4, lower=(-1, -2), upper=(1, 3)):
    """Encode by columns of an image."""
    sizes, strides = list_of(c_uint64, [8, 9, 10, 11, 12][:rank]), list_of(c_uint64, [64, 576, 5760, 63360][: rank - 1])
    corners, steps = [list_of(c_int, corner) for corner in (lower, upper)], list_of(c_int, [1] * rank)
    return cuda.cuTensorMapEncodeIm2col(to.place, 6, rank, address, sizes, strides, *corners, 8, 64, steps, 0, 0, 0, 0)


def main():
    """Encode maps, and ask for what is refused."""
    introduce()
    attach()
    attribute = c_int()
    ok(cuda.cuDeviceGetAttribute(byref(attribute), 127, 0))
    assert attribute.value == 1, "the device's attribute"
    address, other = upload([0.0] * 4096), upload([0.0] * 4096)
    made = Map()

    assert blocking(lambda: ok(tiled(made, address))) == 1
    expected = (1, 7, 2, [0, 1, 2, 1], address.value, [64, 32, 0, 0, 0], [256, 0, 0, 0], [16, 8, 0, 0, 0], 0, 0, [1, 2, 0, 0, 0])
    assert made.content() == expected, made.content()
    # Frameworks encode the same map at each launch.
    again = Map()
    assert blocking(lambda: ok(tiled(again, address))) == 0
    assert again.content() == expected
    assert blocking(lambda: ok(tiled(again, other))) == 1
    assert again.content()[4] == other.value
    ok(tiled(made, address, rank=5, sizes=range(1, 6), strides=range(16, 80, 16), box=range(5, 0, -1), steps=[1] * 5))
    assert made.content()[5:8] == ([1, 2, 3, 4, 5], [16, 32, 48, 64], [5, 4, 3, 2, 1])
    ok(tiled(made, address, rank=1, sizes=[4096], strides=None, box=[256], steps=[1]))
    assert made.content()[5:7] == ([4096, 0, 0, 0, 0], [0] * 4)

    assert blocking(lambda: ok(cuda.cuTensorMapReplaceAddress(made.place, other))) == 1
    assert made.content()[4:6] == (other.value, [4096, 0, 0, 0, 0])
    ok(cuda.cuTensorMapReplaceAddress(made.place, address))
    assert blocking(lambda: ok(cuda.cuTensorMapReplaceAddress(made.place, other))) == 0

    ok(columns(made, address))
    assert made.content()[:3] == (2, 6, 4)
    corners = [(-1 & 0xFFFF) << 16 | 1, (-2 & 0xFFFF) << 16 | 3, 0, 0, 0]
    assert made.content()[6:] == ([64, 576, 5760, 0], corners, 8, 64, [1, 1, 1, 1, 0]), made.content()
    ok(columns(made, address, rank=3, lower=[0], upper=[2]))

    for status in (
        tiled(Map(shift=32), address),
        tiled(made, address, rank=0),
        tiled(made, address, rank=6),
        tiled(made, address, sizes=None),
        tiled(made, address, strides=None),
        tiled(made, address, box=None),
        tiled(made, address, steps=None),
        tiled(made, address, data_type=99),
        tiled(made, c_uint64(address.value + 4)),
        columns(made, address, rank=2),
        columns(made, address, lower=None),
        cuda.cuTensorMapEncodeTiled(None, 7, 1, address, None, None, None, None, 0, 0, 0, 0),
        cuda.cuTensorMapReplaceAddress(None, address),
        cuda.cuTensorMapReplaceAddress(Map().place, address),
    ):
        assert status == INVALID_VALUE, status
    assert cuda.cuTensorMapEncodeIm2colWide() == NOT_SUPPORTED

    request(op="detach")
    assert tiled(made, address) == NO_DEVICE
    print("ok")


main()
