"""Numba and cuda.core in a workspace where nothing is attached yet: the device is there, work says what to do, and works
in the same process once a GPU is attached."""

import os
import pathlib
import re
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PACKAGE.parent / "conformance" / "plugins"))

import fresh  # noqa: E402 - its folder is named above

pytestmark = pytest.mark.skipif(not os.environ.get("SLUICE_NATIVE_DIR"), reason="SLUICE_NATIVE_DIR is not set")

# As the .pth file of the installed package does.
HOOK = "from sluice_gpu import _hook; _hook.install()"

NUMBA = """
import numpy as np
from numba import cuda

assert cuda.is_available() and len(cuda.gpus) == 1

@cuda.jit
def double(data):
    data[cuda.grid(1)] *= 2

def cell():
    data = np.arange(32.0)
    double[1, 32](data)
    assert data.tolist() == list(range(0, 64, 2))
"""

CORE = r'''
import ctypes
from cuda.core import Device, LaunchConfig, ObjectCode, launch

PTX = rb"""
.version 6.4
.target sm_75
.address_size 64
.visible .entry mark(.param .u64 data, .param .u32 value)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
device = Device()
device.set_current()
assert device.compute_capability == (7, 5)
stream = device.create_stream()

def cell():
    kernel = ObjectCode.from_ptx(PTX).get_kernel("mark")
    memory = device.allocate(4, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=1), kernel, memory, ctypes.c_uint32(7))
    stream.sync()
    found = ctypes.c_uint32()
    assert ctypes.CDLL("libcuda.so.1").cuMemcpyDtoH_v2(ctypes.byref(found), ctypes.c_uint64(int(memory.handle)), 4) == 0
    assert found.value == 7
'''


@pytest.mark.parametrize("program", [NUMBA, CORE], ids=["numba", "cuda.core"])
def test_what_fails_without_a_gpu_works_when_one_is_attached(program, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE))
    monkeypatch.setenv("HOME", str(tmp_path))
    fresh.fails_then_works(f"{HOOK}\n{program}")


IN_CELLS = f"""
from IPython.core.interactiveshell import InteractiveShell
from sluice_gpu import _magics

shell = InteractiveShell.instance(history_load_length=0)
_magics.load(shell)
shell.run_cell({NUMBA!r})
for cell in ("cell()", "%tb", "1 / 0", "import json; json.loads('x')"):
    print("CELL", flush=True)
    shell.run_cell(cell)
"""


def test_frames_inside_libraries_are_folded_when_no_gpu_is_attached(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    said, errors = fresh.run(f"{HOOK}\n{IN_CELLS}")
    _, failed, whole, *others = re.sub(r"\x1b\[[0-9;]*m", "", said).split("CELL\n")
    assert "double[1, 32](data)" in failed
    assert re.search(r"^\d+ frames inside libraries folded. Show all: %tb$", failed, re.MULTILINE)
    assert "site-packages" not in failed
    assert "site-packages/numba" in whole
    assert "ZeroDivisionError" in others[0]
    assert "decoder.py" in others[1]
    assert errors.count("NoGpuAttached: this notebook has no GPU. Run %gpu attach 0.5") == 1
