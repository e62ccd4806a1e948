"""Calls of cuBLAS in captured graphs, by the driver's and the library's SONAMEs alone: each launch of a graph repeats
them with what their handle said at the capture."""

import ctypes
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

cuda = ctypes.CDLL("libcuda.so.1")
blas = ctypes.CDLL("libcublas.so.12")

SCALE = b"""
.version 6.4
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 place, .param .f32 by)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<2>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [place];
    ld.param.f32 %f1, [by];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f2, [%rd3];
    mul.f32 %f2, %f2, %f1;
    st.global.f32 [%rd3], %f2;
    ret;
}
"""
N = 8
BYTES = c_size_t(4 * N * N)
Matrix = c_float * (N * N)


def ok(status):
    assert status == 0, status


def room():
    address = c_uint64()
    ok(cuda.cuMemAlloc_v2(byref(address), BYTES))
    return address


def put(address, data):
    ok(cuda.cuMemcpyHtoD_v2(address, data, BYTES))


def get(address):
    data = Matrix()
    ok(cuda.cuMemcpyDtoH_v2(data, address, BYTES))
    return list(data)


def matrix(seed):
    return Matrix(*[float((seed * 7 + i * i) % 11 - 5) for i in range(N * N)])


def product(a, b):
    return [sum(a[l * N + i] * b[j * N + l] for l in range(N)) for j in range(N) for i in range(N)]


def new_stream():
    stream = c_void_p()
    ok(cuda.cuStreamCreate(byref(stream), 1))
    return stream


def new_handle(stream):
    handle = c_void_p()
    ok(blas.cublasCreate_v2(byref(handle)))
    ok(blas.cublasSetStream_v2(handle, stream))
    return handle


def multiply(handle, a, b, c, alpha=1.0, beta=0.0):
    """c = alpha a b + beta c, its scalars on the host, where nobody keeps them."""
    return blas.cublasSgemm_v2(handle, 0, 0, N, N, N, byref(c_float(alpha)), a, N, b, N, byref(c_float(beta)), c, N)


def capture(stream, body):
    graph = c_void_p()
    ok(cuda.cuStreamBeginCapture_v2(stream, 0))
    body()
    ok(cuda.cuStreamEndCapture(stream, byref(graph)))
    return graph


def instantiate(graph):
    executable = c_void_p()
    ok(cuda.cuGraphInstantiateWithFlags(byref(executable), graph, c_uint64(0)))
    return executable


def launch(executable, stream):
    ok(cuda.cuGraphLaunch(executable, stream))
    ok(cuda.cuStreamSynchronize(stream))


def nodes_of(graph):
    count = c_size_t()
    ok(cuda.cuGraphGetNodes(graph, None, byref(count)))
    return count.value


def repeated():
    """Three launches with changed inputs, after the handle has gone on to something else."""
    stream, other = new_stream(), new_stream()
    handle = new_handle(stream)
    a, b, c = room(), room(), room()
    put(c, matrix(9))
    graph = capture(stream, lambda: ok(multiply(handle, a, b, c, alpha=2.0)))
    assert nodes_of(graph) == 1
    assert get(c) == list(matrix(9)), "a capture runs nothing"
    executable = instantiate(graph)
    ok(cuda.cuGraphDestroy(graph))
    ok(blas.cublasSetStream_v2(handle, other))
    ok(blas.cublasSetPointerMode_v2(handle, 1))
    for seed in range(3):
        left, right = matrix(seed), matrix(seed + 5)
        put(a, left)
        put(b, right)
        launch(executable, stream)
        assert get(c) == [2 * value for value in product(left, right)], seed
    # What was captured outlives the handle.
    ok(blas.cublasDestroy_v2(handle))
    launch(executable, stream)
    ok(cuda.cuGraphExecDestroy(executable))


def mixed():
    """Fill, copies both ways, kernel and product in one graph, in their order."""
    stream = new_stream()
    handle = new_handle(stream)
    module, function = c_void_p(), c_void_p()
    ok(cuda.cuModuleLoadData(byref(module), SCALE))
    ok(cuda.cuModuleGetFunction(byref(function), module, b"scale"))
    a, b, c, d = room(), room(), room(), room()
    source, result = Matrix(), Matrix()
    by = c_float(3)
    parameters = (c_void_p * 2)(ctypes.addressof(c), ctypes.addressof(by))

    def body():
        ok(cuda.cuMemcpyHtoDAsync_v2(a, source, BYTES, stream))
        ok(cuda.cuMemsetD32Async(c, c_uint(0x3F800000), c_size_t(N * N), stream))
        ok(multiply(handle, a, b, c, beta=1.0))
        ok(cuda.cuLaunchKernel(function, 1, 1, 1, N * N, 1, 1, 0, stream, parameters, None))
        ok(multiply(handle, c, b, d))
        ok(cuda.cuMemcpyDtoHAsync_v2(result, d, BYTES, stream))

    executable = instantiate(capture(stream, body))
    for seed in range(3):
        ctypes.memmove(source, matrix(seed), BYTES.value)
        right = matrix(seed + 3)
        put(b, right)
        launch(executable, stream)
        inner = [3 * (value + 1) for value in product(source, right)]
        assert list(result) == product(inner, right), seed


def branches():
    """Two streams of one capture with a handle each, and a third product that waits for both."""
    left, right = new_stream(), new_stream()
    one, two = new_handle(left), new_handle(right)
    fork, join = c_void_p(), c_void_p()
    ok(cuda.cuEventCreate(byref(fork), 2))
    ok(cuda.cuEventCreate(byref(join), 2))
    a, b, c, d, e = room(), room(), room(), room(), room()

    def body():
        ok(cuda.cuEventRecord(fork, left))
        ok(cuda.cuStreamWaitEvent(right, fork, 0))
        ok(multiply(one, a, b, c))
        ok(multiply(two, b, a, d))
        ok(cuda.cuEventRecord(join, right))
        ok(cuda.cuStreamWaitEvent(left, join, 0))
        ok(multiply(one, c, d, e))

    executable = instantiate(capture(left, body))
    x, y = matrix(1), matrix(2)
    put(a, x)
    put(b, y)
    launch(executable, right)
    assert get(e) == product(product(x, y), product(y, x))


def updated():
    """An executable graph takes over a later capture of the same shape."""
    stream = new_stream()
    handle = new_handle(stream)
    a, b, c, d = room(), room(), room(), room()
    x, y = matrix(3), matrix(4)
    put(a, x)
    put(b, y)
    executable = instantiate(capture(stream, lambda: ok(multiply(handle, a, b, c))))
    launch(executable, stream)
    result = (c_uint64 * 3)()
    other = capture(stream, lambda: ok(multiply(handle, b, a, d, alpha=-1.0)))
    ok(cuda.cuGraphExecUpdate_v2(executable, other, result))
    ok(cuda.cuGraphDestroy(other))
    put(c, x)
    launch(executable, stream)
    assert get(c) == list(x), "it works elsewhere now"
    assert get(d) == [-value for value in product(y, x)]
    one = c_float(2)
    scaled = capture(stream, lambda: ok(blas.cublasSscal_v2(handle, N, byref(one), d, 1)))
    assert cuda.cuGraphExecUpdate_v2(executable, scaled, result) == 910
    # A graph in a graph.
    outer, child = c_void_p(), c_void_p()
    ok(cuda.cuGraphCreate(byref(outer), 0))
    other = capture(stream, lambda: ok(multiply(handle, b, a, d, alpha=-1.0)))
    ok(cuda.cuGraphAddChildGraphNode(byref(child), outer, None, c_size_t(0), other))
    put(d, x)
    launch(instantiate(outer), stream)
    assert get(d) == [-value for value in product(y, x)]


def results():
    """A result for the host ends the capture, one for the device is captured."""
    stream = new_stream()
    handle = new_handle(stream)
    a, b = room(), room()
    host, graph = c_float(), c_void_p()
    put(a, matrix(6))
    ok(cuda.cuStreamBeginCapture_v2(stream, 0))
    assert blas.cublasSdot_v2(handle, N * N, a, 1, a, 1, byref(host)) not in (0, 15)
    assert cuda.cuStreamEndCapture(stream, byref(graph)) == 901
    # The handle and its stream are as good as before.
    ok(blas.cublasSdot_v2(handle, N * N, a, 1, a, 1, byref(host)))
    assert host.value == sum(value * value for value in matrix(6))
    ok(blas.cublasSetPointerMode_v2(handle, 1))
    executable = instantiate(capture(stream, lambda: ok(blas.cublasSdot_v2(handle, N * N, a, 1, a, 1, b))))
    for seed in (1, 2):
        put(a, matrix(seed))
        launch(executable, stream)
        assert get(b)[0] == sum(value * value for value in matrix(seed))
    # What the library refuses ends nothing.
    ok(blas.cublasSetPointerMode_v2(handle, 0))
    zero = c_float()

    def body():
        assert blas.cublasSgemm_v2(handle, 0, 0, -1, N, N, byref(zero), a, N, a, N, byref(zero), b, N) == 7
        ok(multiply(handle, a, a, b))

    launch(instantiate(capture(stream, body)), stream)
    assert get(b) == product(matrix(2), matrix(2))


context, version = c_void_p(), c_int()
ok(cuda.cuInit(0))
ok(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
for check in (repeated, mixed, branches, updated, results):
    check()
print("ok")
