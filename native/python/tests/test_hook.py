"""The start-up hook, in processes of their own."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent.parent
PTH = (HERE / "sluice_gpu.pth").read_text()


def run(code, tmp_path, **env):
    """Run `code` after the hook's line, as site does at the start of Python."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(HERE), **env}
    return subprocess.run(
        [sys.executable, "-c", PTH + "\n" + code], capture_output=True, text=True, env=environment, check=True
    )


def test_without_a_broker_nothing_is_imported(tmp_path):
    assert run("import sys; print('sluice_gpu' in sys.modules)", tmp_path).stdout.strip() == "False"


def test_a_configuration_file_stands_for_the_variables(tmp_path):
    config = tmp_path / ".config" / "sluice" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"brokerUrl": "http://127.0.0.1:9", "gpuType": "soft"}))
    code = "import os; print(os.environ['SLUICE_BROKER_URL'], os.environ['SLUICE_GPU_TYPE'])"
    assert run(code, tmp_path).stdout.strip() == "http://127.0.0.1:9 soft"


def test_a_broken_configuration_is_told_and_python_starts(tmp_path):
    config = tmp_path / ".config" / "sluice" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text("{")
    result = run("print('alive')", tmp_path)
    assert result.stdout.strip() == "alive"
    assert "no GPU can be attached" in result.stderr


def test_a_library_that_cannot_be_loaded_is_told_and_python_starts(tmp_path):
    (tmp_path / "libcuda.so.1").write_text("no library")
    result = run("print('alive')", tmp_path, SLUICE_BROKER_URL="http://127.0.0.1:9", SLUICE_LIBRARY_DIR=str(tmp_path))
    assert result.stdout.strip() == "alive"
    assert "no GPU can be attached" in result.stderr


def test_the_hook_takes_less_than_five_milliseconds(tmp_path):
    code = (
        "import time; start = time.perf_counter(); "
        "import sluice_gpu._hook as hook; hook.install(); print((time.perf_counter() - start) * 1000)"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(HERE)}
    environment |= {"SLUICE_BROKER_URL": "http://127.0.0.1:9", "SLUICE_LIBRARY_DIR": str(tmp_path)}
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment).stdout)
        for _ in range(9)
    ]
    # The best of several: a busy machine is not what is measured.
    assert min(times) < 5


NUMBA = """
import warnings
warnings.simplefilter("always") if {always} else None
from numba.cuda.cudadrv import driver
from cuda.core import _linker
print(driver._have_nvjitlink(), _linker._decide_nvjitlink_or_driver())
"""


def test_numba_cuda_sees_no_nvjitlink_and_says_nothing_about_it(tmp_path):
    pytest.importorskip("numba_cuda")
    result = run(NUMBA.format(always=False), tmp_path, SLUICE_BROKER_URL="http://127.0.0.1:9", SLUICE_GPU_TYPE="soft")
    assert result.stdout.strip() == "False True"
    assert "RuntimeWarning" not in result.stderr


@pytest.mark.skipif(not os.environ.get("SLUICE_NATIVE_DIR"), reason="SLUICE_NATIVE_DIR is not set")
def test_with_the_real_libraries_cuda_is_found_by_name_and_has_no_gpu_yet(tmp_path):
    import build_wheel

    native = os.environ["SLUICE_NATIVE_DIR"]
    for name, candidates in build_wheel.LIBRARIES.items():
        (tmp_path / name).symlink_to(os.path.abspath(build_wheel.find(native, candidates)))
    for name, path in build_wheel.beside(native).items():
        (tmp_path / name).symlink_to(os.path.abspath(path))
    (tmp_path / "credential").write_text("slw_" + "a" * 43)
    code = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
print(cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
for major in (12, 13):
    runtime, version = ctypes.CDLL(f"libcudart.so.{major}"), ctypes.c_int()
    print(runtime.cudaRuntimeGetVersion(ctypes.byref(version)), version.value // 1000)
    runtime.cudaGetErrorString.restype = ctypes.c_char_p
    print(runtime.cudaGetErrorString(runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 4)).decode())
for major in (12, 13):
    blas = ctypes.CDLL(f"libcublas.so.{major}")
    blas.cublasGetStatusName.restype = ctypes.c_char_p
    status = blas.cublasCreate_v2(ctypes.byref(ctypes.c_void_p()))
    print(blas.cublasGetCudartVersion() // 1000, blas.cublasGetStatusName(status).decode())
"""
    result = run(
        code,
        tmp_path,
        SLUICE_BROKER_URL="http://127.0.0.1:9",
        SLUICE_CREDENTIAL_FILE=str(tmp_path / "credential"),
        SLUICE_RUNTIME_DIR=str(tmp_path),
        SLUICE_GPU_TYPE="soft",
        SLUICE_LIBRARY_DIR=str(tmp_path),
    )
    first, *runtimes = result.stdout.splitlines()
    runtimes, libraries = runtimes[:4], runtimes[4:]
    assert first == "0 0 1", result.stderr
    assert runtimes[::2] == ["0 12", "0 13"]
    assert all("%gpu attach" in text for text in runtimes[1::2]), runtimes
    assert libraries == ["12 CUBLAS_STATUS_NOT_INITIALIZED", "13 CUBLAS_STATUS_NOT_INITIALIZED"]
