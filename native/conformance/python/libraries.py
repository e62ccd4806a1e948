"""A program that knows cuBLAS, cuFFT and cuRAND by their SONAMEs alone, as NVIDIA's headers declare them: arguments in
registers of both kinds and on the stack."""

import cmath
import ctypes
from ctypes import byref, c_double, c_float, c_int, c_longlong, c_size_t, c_uint64, c_ulonglong, c_void_p

cuda = ctypes.CDLL("libcuda.so.1")


def ok(status):
    assert status == 0, status


def upload(data):
    """A copy of a ctypes array in device memory."""
    address = c_uint64()
    ok(cuda.cuMemAlloc_v2(byref(address), c_size_t(ctypes.sizeof(data))))
    ok(cuda.cuMemcpyHtoD_v2(address, data, c_size_t(ctypes.sizeof(data))))
    return address


def download(address, data):
    """Device memory into a ctypes array."""
    ok(cuda.cuMemcpyDtoH_v2(data, address, c_size_t(ctypes.sizeof(data))))
    return list(data)


def products(major):
    """Column-major products: fourteen arguments for one, twenty-one for a strided batch of mixed types."""
    blas = ctypes.CDLL(f"libcublas.so.{major}")
    handle, version = c_void_p(), c_int()
    ok(blas.cublasCreate_v2(byref(handle)))
    ok(blas.cublasGetVersion_v2(handle, byref(version)))
    assert version.value // 10000 == major, version
    m, n, k = 2, 3, 4
    a, b = [float(i) for i in range(m * k)], [float(i - 5) for i in range(k * n)]
    wanted = [sum(a[l * m + i] * b[j * k + l] for l in range(k)) for j in range(n) for i in range(m)]
    for real, gemm in ((c_float, blas.cublasSgemm_v2), (c_double, blas.cublasDgemm_v2)):
        da, db = upload((real * len(a))(*a)), upload((real * len(b))(*b))
        dc = upload((real * (m * n))(*[1.0] * (m * n)))
        ok(gemm(handle, 0, 0, m, n, k, byref(real(2)), da, m, db, k, byref(real(3)), dc, m))
        assert download(dc, (real * (m * n))()) == [2 * value + 3 for value in wanted]
    single = (c_float * len(a))(*a), (c_float * len(b))(*b)
    da, db, dc = upload(single[0]), upload(single[1]), upload((c_float * (2 * m * n))())
    one, zero, none = c_float(1), c_float(0), c_longlong(0)
    ok(
        blas.cublasGemmStridedBatchedEx(
            handle, 0, 0, m, n, k, byref(one), da, 0, m, none, db, 0, k, none, byref(zero), dc, 0, m,
            c_longlong(m * n), 2, 68, -1,
        )
    )  # fmt: skip
    assert download(dc, (c_float * (2 * m * n))()) == wanted * 2
    result = c_float()
    ok(blas.cublasSdot_v2(handle, m * k, da, 1, da, 1, byref(result)))
    assert result.value == sum(value * value for value in a)
    assert blas.cublasSgemm_v2(handle, 0, 0, -1, n, k, byref(one), da, m, db, k, byref(zero), dc, m) == 7
    ok(blas.cublasDestroy_v2(handle))


def transforms(major):
    """A transform against its definition."""
    fft = ctypes.CDLL(f"libcufft.so.{major}")
    plan, n = c_int(), 6
    ok(fft.cufftPlan1d(byref(plan), n, 0x69, 1))
    data = (c_double * (2 * n))(*[float(i * i % 7) for i in range(2 * n)])
    place = upload(data)
    ok(fft.cufftExecZ2Z(plan, place, place, -1))
    got = download(place, (c_double * (2 * n))())
    for to in range(n):
        terms = (complex(*data[2 * at : 2 * at + 2]) * cmath.exp(-2j * cmath.pi * at * to / n) for at in range(n))
        assert abs(sum(terms) - complex(*got[2 * to : 2 * to + 2])) < 1e-9
    ok(fft.cufftDestroy(plan))


def numbers():
    """Random numbers whose mean and deviation are passed in floating-point registers."""
    rand = ctypes.CDLL("libcurand.so.10")
    generator, count = c_void_p(), 20000
    ok(rand.curandCreateGenerator(byref(generator), 161))
    ok(rand.curandSetPseudoRandomGeneratorSeed(generator, c_ulonglong(7)))
    for real, draw in ((c_float, rand.curandGenerateNormal), (c_double, rand.curandGenerateNormalDouble)):
        place = upload((real * count)())
        ok(draw(generator, place, c_size_t(count), real(5), real(0.5)))
        drawn = download(place, (real * count)())
        mean = sum(drawn) / count
        deviation = (sum((value - mean) ** 2 for value in drawn) / count) ** 0.5
        assert abs(mean - 5) < 0.05 and abs(deviation - 0.5) < 0.05, (mean, deviation)
    ok(rand.curandDestroyGenerator(generator))


context = c_void_p()
ok(cuda.cuInit(0))
ok(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
for libraries in (12, 13):
    products(libraries)
for libraries in (11, 12):
    transforms(libraries)
numbers()
print("ok")
