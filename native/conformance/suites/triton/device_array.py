"""The least that Triton needs of an array: memory on the device, by the driver API alone."""

import ctypes

import numpy as np

cuda = ctypes.CDLL("libcuda.so.1")


class CudaProblem(Exception):
    """A driver function answered an error."""


def call(function, *arguments):
    """Call a driver function; its error is an exception."""
    code = getattr(cuda, function)(*arguments)
    if code:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        raise CudaProblem(f"{function}: {code} {(text.value or b'').decode()}")


class DeviceArray:
    """A NumPy array's copy on the device; Triton reads `dtype` and `data_ptr()`."""

    def __init__(self, array):
        self._like = np.ascontiguousarray(array)
        self.dtype = str(self._like.dtype)
        pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(self._like.nbytes))
        self._pointer = pointer.value
        source = self._like.ctypes.data_as(ctypes.c_void_p)
        call("cuMemcpyHtoD_v2", pointer, source, ctypes.c_size_t(self._like.nbytes))

    def data_ptr(self):
        """The device address."""
        return self._pointer

    def numpy(self):
        """What the device holds now."""
        out = np.empty_like(self._like)
        target = out.ctypes.data_as(ctypes.c_void_p)
        call("cuMemcpyDtoH_v2", target, ctypes.c_uint64(self._pointer), ctypes.c_size_t(out.nbytes))
        return out
