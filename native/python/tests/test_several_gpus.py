"""`%gpu attach 2` in a real IPython, through the real library to a real gpud of two software GPUs."""

import os
import pathlib
import subprocess
import sys

import pytest

native = os.environ.get("SLUICE_NATIVE_DIR")

KERNEL = r"""
.version 6.4
.target sm_75
.address_size 64
.visible .entry mark(.param .u64 data, .param .u32 value)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [value];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}
"""

# What a cell or a script does: as many devices as there are, each with memory and a kernel of its own.
PROGRAM = f"""
import ctypes

KERNEL = {KERNEL.encode()!r}
"""
PROGRAM += """
cuda = ctypes.CDLL("libcuda.so.1")


def check(code):
    assert code == 0, code


def mark_all():
    count, found = ctypes.c_int(), []
    check(cuda.cuInit(0))
    check(cuda.cuDeviceGetCount(ctypes.byref(count)))
    for ordinal in range(count.value):
        context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        address, words = ctypes.c_uint64(), (ctypes.c_uint32 * 32)()
        check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal))
        check(cuda.cuCtxSetCurrent(context))
        check(cuda.cuModuleLoadData(ctypes.byref(module), KERNEL))
        check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"mark"))
        check(cuda.cuMemAlloc_v2(ctypes.byref(address), 128))
        value = ctypes.c_uint32(7 + ordinal)
        pointers = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(value))
        check(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, pointers, None))
        check(cuda.cuMemcpyDtoH_v2(words, address, 128))
        assert set(words) == {7 + ordinal}, list(words)
        found.append((function, address))
    for ordinal in range(len(found)):
        # A kernel of this device on memory of the next one.
        other, possible = (ordinal + 1) % len(found), ctypes.c_int()
        if other == ordinal:
            break
        context, words = ctypes.c_void_p(), (ctypes.c_uint32 * 32)()
        check(cuda.cuDeviceCanAccessPeer(ctypes.byref(possible), ordinal, other))
        assert possible.value == 1
        check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), other))
        own = ctypes.c_void_p()
        check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(own), ordinal))
        check(cuda.cuCtxSetCurrent(own))
        check(cuda.cuCtxEnablePeerAccess(context, 0))
        value = ctypes.c_uint32(70 + ordinal)
        pointers = (ctypes.c_void_p * 2)(ctypes.addressof(found[other][1]), ctypes.addressof(value))
        check(cuda.cuLaunchKernel(found[ordinal][0], 1, 1, 1, 32, 1, 1, 0, None, pointers, None))
        check(cuda.cuCtxSynchronize())
        check(cuda.cuMemcpyDtoH_v2(words, found[other][1], 128))
        assert set(words) == {70 + ordinal}, list(words)
    return [7 + ordinal for ordinal in range(len(found))]
"""

NOTEBOOK = """
import ctypes
import os
import subprocess
import sys

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.history_manager.enabled = False
shell.run_line_magic("load_ext", "sluice_gpu")
shell.run_cell("%gpu attach 2")
shell.run_cell(open(sys.argv[1]).read()).raise_error()
print("here", shell.run_cell("mark_all()").result)
nvml, count = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint()
nvml.nvmlInit_v2()
nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
print("nvml", count.value)
script = open(sys.argv[1]).read() + "print(mark_all())"
for visible in (None, "1", "1,0"):
    chosen = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    child = subprocess.run([sys.executable, "-c", script], env={**os.environ, **chosen}, capture_output=True, text=True)
    print("child", visible, child.stdout.strip() or child.stderr[-500:])
from sluice_gpu import _lease

print("parked", _lease.give_back()["parkedBytes"])
"""


@pytest.mark.skipif(not native, reason="SLUICE_NATIVE_DIR is not set")
def test_two_gpus_are_two_devices_in_the_notebook_and_its_children(tmp_path):
    program, notebook = tmp_path / "program.py", tmp_path / "notebook.py"
    program.write_text(PROGRAM)
    notebook.write_text(NOTEBOOK)
    loopback = pathlib.Path(native).resolve() / "sluice-loopback"
    command = [loopback, "--gpud=--soft-devices=2", "--joined", "--no-attach", "--", sys.executable, notebook, program]
    package = pathlib.Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": str(package), "IPYTHONDIR": str(tmp_path), "HOME": str(tmp_path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    lines = ran.stdout
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "Attached 2 GPUs (gpu-0 and gpu-1 on conformance, 4.0 GiB each)" in lines
    assert "here [7, 8]" in lines
    assert "nvml 2" in lines
    # A child has the same devices, as many as it wants to see.
    assert "child None [7, 8]" in lines
    assert "child 1 [7]" in lines
    assert "child 1,0 [7, 8]" in lines
    assert "parked 256" in lines
