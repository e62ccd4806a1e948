"""A program that builds and runs graphs by cuDNN's backend API, as cudnn-frontend does, on a GPU server whose cuDNN is the
stand-in of standins/cudnn.c.

    sluice-loopback --no-attach ... -- python3 cudnn.py
"""

import ctypes
from ctypes import byref, c_bool, c_double, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p

from remoted import cuda, download, introduce, request, upload

HANDLE, DATA_TYPE, BOOLEAN, INT64, DOUBLE, POINTER, HEUR_MODE, MODE, DESCRIPTOR = 0, 1, 2, 3, 5, 6, 8, 14, 15
OPERATION, GRAPH, PACK, TENSOR = 13, 15, 16, 17
POINTWISE, ENGINE, ENGINECFG, HEURISTICS, PLAN = 0, 2, 3, 4, 5
ELEMENT = {HANDLE: c_void_p, BOOLEAN: c_bool, INT64: c_int64, DOUBLE: c_double, POINTER: c_void_p, DESCRIPTOR: c_void_p}

dnn = ctypes.CDLL("libcudnn.so.9")
dnn.cudnnGetErrorString.restype = ctypes.c_char_p
seen = set()


def attach(number):
    """Borrow half of the device."""
    request(op="attach", requestId=f"00000000-0000-4000-8000-{number:012}", amount="0.5", waitSeconds=0)


def ok(status):
    """Ends the program when a call failed."""
    assert status == 0, (status, reason())


def reason():
    """Why the last call failed."""
    text = ctypes.create_string_buffer(256)
    dnn.cudnnGetLastErrorString(text, c_size_t(len(text)))
    return text.value.decode()


def create(kind):
    """An empty descriptor."""
    descriptor = c_void_p()
    ok(dnn.cudnnBackendCreateDescriptor(kind, byref(descriptor)))
    return descriptor


def write(descriptor, name, kind, *values):
    """Set an attribute from an array that is gone when the call returns."""
    array = (ELEMENT.get(kind, c_int) * len(values))(*(value.value if hasattr(value, "value") else value for value in values))
    status = dnn.cudnnBackendSetAttribute(descriptor, name, kind, c_int64(len(values)), array)
    ctypes.memset(array, 0xEE, ctypes.sizeof(array))
    return status


def described(kind, *attributes):
    """A finalized descriptor."""
    descriptor = create(kind)
    for name, of, *values in attributes:
        ok(write(descriptor, name, of, *values))
    ok(dnn.cudnnBackendFinalize(descriptor))
    return descriptor


def tensor(number, length, by_value=False):
    """A tensor of single precision."""
    return described(
        TENSOR, (906, INT64, number), (901, DATA_TYPE, 0), (902, INT64, 1, length), (903, INT64, length, 1),
        (908, BOOLEAN, by_value),
    )  # fmt: skip


def plans(handle, length):
    """The plan that runs, of those for y = 2 * x * b that the heuristics name."""
    x, b, y = tensor(1, length), tensor(2, 1, by_value=True), tensor(-3 & 0x7FFF, length)
    mode = described(POINTWISE, (0, MODE, 1))
    operation = create(OPERATION)
    for name, part in ((750, mode), (751, x), (752, b), (753, y)):
        ok(write(operation, name, DESCRIPTOR, part))
        # The operation keeps what it was told.
        ok(dnn.cudnnBackendDestroyDescriptor(part))
    ok(write(operation, 754, DOUBLE, 2.0))
    ok(dnn.cudnnBackendFinalize(operation))
    graph = described(GRAPH, (800, HANDLE, handle), (801, DESCRIPTOR, operation))
    heuristics = described(HEURISTICS, (201, DESCRIPTOR, graph), (200, HEUR_MODE, 0))
    count = c_int64()
    ok(dnn.cudnnBackendGetAttribute(heuristics, 202, DESCRIPTOR, c_int64(0), byref(count), None))
    assert count.value == 2
    configs = (c_void_p * 3)(*(create(ENGINECFG).value for _ in range(3)))
    ok(dnn.cudnnBackendGetAttribute(heuristics, 202, DESCRIPTOR, c_int64(3), byref(count), configs))
    assert count.value == 2
    index = (c_int64 * 3)(-1, -1, -1)
    ok(dnn.cudnnBackendGetAttribute(c_void_p(configs[1]), 1301, INT64, c_int64(3), byref(count), index))
    assert (count.value, list(index)) == (1, [8, -1, -1])
    found = []
    for config in configs[1::-1]:
        plan = create(PLAN)
        ok(write(plan, 400, HANDLE, handle))
        ok(write(plan, 401, DESCRIPTOR, config))
        status = dnn.cudnnBackendFinalize(plan)
        if status:
            assert (status, reason()) == (3000, "this engine does not run here")
            assert dnn.cudnnGetErrorString(status) == b"CUDNN_STATUS_NOT_SUPPORTED"
            ok(dnn.cudnnBackendDestroyDescriptor(plan))
        else:
            found.append(plan)
    for descriptor in (*configs, heuristics, graph, operation):
        ok(dnn.cudnnBackendDestroyDescriptor(c_void_p(getattr(descriptor, "value", descriptor))))
    (plan,) = found
    workspace = c_int64()
    ok(dnn.cudnnBackendGetAttribute(plan, 402, INT64, c_int64(1), byref(count), byref(workspace)))
    assert workspace.value == 64
    return plan


def pack(x, factor, y, workspace):
    """The pointers of one execution; the factor lies in host memory."""
    pointers = (x.value, ctypes.addressof(factor), y.value)
    return described(
        PACK, (1000, INT64, 1, 2, -3 & 0x7FFF), (1001, POINTER, *pointers), (1003, POINTER, workspace.value)
    )


def computes(handle, plan):
    """Executions with new packs cost no round trip once one has been accepted."""
    x, y, workspace = upload([1, 2, 3]), upload([0, 0, 0]), upload([0] * 16)
    for turn, factor in enumerate((c_float(1), c_float(10), c_float(-4))):
        request(op="trace", on=True)
        variants = pack(x, factor, y, workspace)
        ok(dnn.cudnnBackendExecute(handle, plan, variants))
        trace = request(op="trace", on=False)
        assert trace["blocking"] == (turn == 0), trace
        assert download(y, 3) == [2 * factor.value * value for value in (1, 2, 3)]
        # The pack holds addresses: what lies there counts when it is executed.
        factor.value += 1
        ok(dnn.cudnnBackendExecute(handle, plan, variants))
        assert download(y, 3) == [2 * factor.value * value for value in (1, 2, 3)]
        ok(dnn.cudnnBackendDestroyDescriptor(variants))
    one = c_float(1)
    ok(dnn.cudnnBackendExecute(handle, plan, pack(x, one, x, workspace)))
    assert download(x, 3) == [2, 4, 6]


def refused(handle):
    """What the server's library refuses while nobody waits is told by the call that waits."""
    engine = create(ENGINE)
    ok(write(engine, 1301, INT64, 99))
    assert (dnn.cudnnBackendFinalize(engine), reason()) == (3000, "there is no engine 99")
    ok(write(engine, 1301, INT64, 1))
    ok(dnn.cudnnBackendFinalize(engine))
    assert write(engine, 1301, INT64, 2) == 1001
    ok(dnn.cudnnBackendDestroyDescriptor(engine))
    assert dnn.cudnnBackendDestroyDescriptor(engine) != 0
    nothing = create(77)
    assert (dnn.cudnnBackendFinalize(nothing), reason()) == (3000, "no such type of descriptor")
    ok(dnn.cudnnBackendDestroyDescriptor(nothing))
    assert write(create(TENSOR), 906, 99, 1) == 3000
    assert dnn.cudnnBackendExecute(handle, None, None) == 1001


def legacy(handle):
    """Functions of one call: scalars by the tensors' type, arguments in registers of both kinds and on the stack."""
    tensor = c_void_p()
    ok(dnn.cudnnCreateTensorDescriptor(byref(tensor)))
    for kind, real in ((0, c_float), (1, c_double), (0, c_float)):
        # What was said last counts, also by another function.
        ok(dnn.cudnnSetTensor4dDescriptor(tensor, 0, kind, 9, 9, 9, 9))
        dims, strides = (c_int * 4)(1, 1, 1, 3), (c_int * 4)(3, 3, 3, 1)
        ok(dnn.cudnnSetTensorNdDescriptor(tensor, kind, 4, dims, strides))
        dims[3] = 1000
        x, y = upload([1, 2, 3], real), upload([10, 20, 30], real)
        for turn in range(2):
            request(op="trace", on=True)
            ok(dnn.cudnnAddTensor(handle, byref(real(2)), tensor, x, byref(real(0.5)), tensor, y))
            # What the tensor is decides whether it is accepted.
            assert request(op="trace", on=False)["blocking"] == (turn == 0 and real not in seen)
        seen.add(real)
        assert download(y, 3, real) == [5.5, 11, 16.5]
        found, count, told = c_int(), c_int(), (c_int * 5)(*[-1] * 5)
        ok(dnn.cudnnGetTensorNdDescriptor(tensor, 5, byref(found), byref(count), told, (c_int * 5)()))
        assert (found.value, count.value, list(told)) == (kind, 4, [1, 1, 1, 3, -1])
    one = c_void_p()
    ok(dnn.cudnnCreateTensorDescriptor(byref(one)))
    ok(dnn.cudnnSetTensor4dDescriptor(one, 0, 0, 1, 1, 1, 1))
    scale, bias, mean, variance = (upload([value]) for value in (3, 1, 2, 0.5))
    normalize = dnn.cudnnBatchNormalizationForwardInference
    alpha, beta, half = byref(c_float(2)), byref(c_float(0)), c_double(0.5)
    ok(normalize(handle, 1, alpha, beta, tensor, x, tensor, y, one, scale, bias, mean, variance, half))
    assert download(y, 3) == [-4, 2, 8]
    dropout, size, states = c_void_p(), c_size_t(), upload([0, 0])
    ok(dnn.cudnnCreateDropoutDescriptor(byref(dropout)))
    ok(dnn.cudnnDropoutGetStatesSize(handle, byref(size)))
    ok(dnn.cudnnSetDropoutDescriptor(dropout, handle, c_float(0.25), states, size, c_uint64(1 << 40)))
    assert download(states, 1, c_uint64) == [(1 << 40) + 250]
    for end, descriptor in ((dnn.cudnnDestroyDropoutDescriptor, dropout), (dnn.cudnnDestroyTensorDescriptor, tensor)):
        ok(end(descriptor))
    # A tensor of two dimensions is refused; who uses it hears so.
    ok(dnn.cudnnSetTensorNdDescriptor(one, 0, 2, dims, strides))
    status = dnn.cudnnGetTensorNdDescriptor(one, 5, byref(found), byref(count), told, (c_int * 5)())
    assert (status, reason()) == (2000, "a tensor has three to eight dimensions")
    ok(dnn.cudnnDestroyTensorDescriptor(one))


def labels_lie_in_host_memory(handle):
    """How long the arrays of a loss are stands in a tensor, and in one of them; they may change when it returns."""
    loss, steps = c_void_p(), c_void_p()
    ok(dnn.cudnnCreateCTCLossDescriptor(byref(loss)))
    ok(dnn.cudnnSetCTCLossDescriptorEx(loss, 0, 1, 3))
    ok(dnn.cudnnCreateTensorDescriptor(byref(steps)))
    shape = (c_int * 3)(7, 3, 5)
    labels, lengths, inputs = (c_int * 4)(1, 4, 2, 3), (c_int * 3)(1, 0, 3), (c_int * 3)(5, 6, 7)
    probabilities, costs, work, size = upload([0] * 105), upload([0] * 3), upload([0]), c_size_t()
    ask, run = dnn.cudnnGetCTCLossWorkspaceSize, dnn.cudnnCTCLoss
    # A tensor of which nothing is known.
    assert ask(handle, steps, None, labels, lengths, inputs, 1, loss, byref(size)) == 2000
    ok(dnn.cudnnSetTensorNdDescriptor(steps, 0, 3, shape, (c_int * 3)(15, 5, 1)))
    ok(ask(handle, steps, None, labels, lengths, inputs, 1, loss, byref(size)))
    assert size.value == 7003
    for turn in range(2):
        request(op="trace", on=True)
        ok(run(handle, steps, probabilities, labels, lengths, inputs, costs, None, None, 1, loss, work, size))
        # Whether it is accepted stands in its arrays.
        assert request(op="trace", on=False)["blocking"] == 1
        labels[0] += 10
        assert download(costs, 3) == [501 + 10 * turn, 600, 709]
    # A graph would read them at each launch.
    stream, graph = c_void_p(), c_void_p()
    ok(dnn.cudnnGetStream(handle, byref(stream)))
    ok(cuda.cuStreamBeginCapture_v2(stream, 0))
    status = run(handle, steps, probabilities, labels, lengths, inputs, costs, None, None, 1, loss, work, size)
    assert status == 5000 and reason().startswith("it reads host memory, which a captured graph"), (status, reason())
    assert cuda.cuStreamEndCapture(stream, byref(graph)) == 901
    inputs[2] = 2
    status = run(handle, steps, probabilities, labels, lengths, inputs, costs, None, None, 1, loss, work, size)
    assert (status, reason()) == (2000, "more labels than inputs")
    assert download(costs, 3) == [511, 600, 709]
    lengths[1] = -1
    status = run(handle, steps, probabilities, labels, lengths, inputs, costs, None, None, 1, loss, work, size)
    assert (status, reason()) == (2000, "labellengths is not valid")
    ok(dnn.cudnnDestroyCTCLossDescriptor(loss))
    ok(dnn.cudnnDestroyTensorDescriptor(steps))


def main():
    """See the module."""
    introduce()
    attach(1)
    handle, stream, context = c_void_p(), c_void_p(), c_void_p()
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))
    ok(dnn.cudnnCreate(byref(handle)))
    ok(cuda.cuStreamCreate(byref(stream), 0))
    ok(dnn.cudnnSetStream(handle, stream))
    plan = plans(handle, 3)
    computes(handle, plan)
    legacy(handle)
    labels_lie_in_host_memory(handle)
    refused(handle)
    print("ok")


main()
