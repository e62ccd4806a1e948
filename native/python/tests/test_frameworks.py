"""The frameworks' settings: what is set where, and that the user's own stay."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from sluice_gpu import _frameworks

HERE = pathlib.Path(__file__).resolve().parent.parent


def facts(jaxlib="0.12.0.1", **conditions):
    return {
        "conditions": {"process": True, **conditions},
        "version": lambda package: jaxlib if package == "jaxlib" else None,
        "places": {"libraries": "/lib", "tools": "/tools", "cudaRoot": "/root"},
    }


@pytest.mark.parametrize("name", _frameworks.known())
def test_every_setting_has_a_reason_and_a_value(name):
    for entry in _frameworks.settings(name):
        assert set(entry) <= {"name", "value", "flag", "when", "reason"}
        assert ("value" in entry) != ("flag" in entry)
        assert entry["reason"].endswith(".")


def test_triton_finds_our_driver_and_hands_ptx_to_a_software_gpu():
    entries = _frameworks.settings("triton")
    assert _frameworks.variables(entries, facts(), {}) == {"TRITON_LIBCUDA_PATH": "/lib"}
    assert _frameworks.variables(entries, facts(software=True), {}) == {
        "TRITON_LIBCUDA_PATH": "/lib",
        "TRITON_PTXAS_PATH": "/tools/ptxas",
        "TRITON_PTXAS_BLACKWELL_PATH": "/tools/ptxas",
    }


def test_jax_gets_only_the_flags_that_its_version_knows():
    entries = _frameworks.settings("jax")
    soft = _frameworks.variables(entries, facts(software=True, **{"no-vmm": True, "no-cupti": True}), {})
    graphs, timed = "--xla_gpu_enable_command_buffer=FUSION", "--xla_gpu_autotune_level=3"
    assert soft["XLA_FLAGS"].split() == [
        "--xla_gpu_experimental_vmm_disabled=true",
        graphs,
        timed,
        "--xla_gpu_enable_libnvjitlink=false",
    ]
    assert soft["CUDA_ROOT"] == "/root"
    assert soft["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] == "1"
    assert soft["TF_CPP_MIN_LOG_LEVEL"] == "3"
    old = _frameworks.variables(entries, facts("0.10.2", **{"no-vmm": True}), {})
    assert old["XLA_FLAGS"] == f"{graphs} {timed}"
    assert old["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


def test_tensorflow_finds_libdevice_on_a_software_gpu_and_times_nothing_by_mapped_memory():
    entries = _frameworks.settings("tensorflow")
    timed = "--xla_gpu_autotune_level=0 --xla_gpu_enable_command_buffer=FUSION"
    assert _frameworks.variables(entries, facts(), {})["XLA_FLAGS"] == timed
    soft = _frameworks.variables(entries, facts(software=True), {"XLA_FLAGS": "--xla_gpu_autotune_level=4"})
    assert soft["XLA_FLAGS"].split() == [
        "--xla_gpu_autotune_level=4",
        "--xla_gpu_enable_command_buffer=FUSION",
        "--xla_gpu_cuda_data_dir=/root",
    ]
    assert soft["TF_GPU_ALLOCATOR"] == "cuda_malloc_async"


def test_what_the_user_has_set_stays_and_flags_are_added():
    entries = _frameworks.settings("jax")
    own = {"XLA_PYTHON_CLIENT_PREALLOCATE": "true", "TF_CPP_MIN_LOG_LEVEL": "0"}
    assert not own.keys() & _frameworks.variables(entries, facts(), own).keys()
    own = {"XLA_PYTHON_CLIENT_PREALLOCATE": "true", "XLA_FLAGS": "--xla_gpu_enable_libnvjitlink=true --dump"}
    found = _frameworks.variables(entries, facts(software=True, **{"no-vmm": True}), own)
    assert "XLA_PYTHON_CLIENT_PREALLOCATE" not in found
    added = ["--xla_gpu_experimental_vmm_disabled=true", "--xla_gpu_enable_command_buffer=FUSION"]
    assert found["XLA_FLAGS"] == " ".join([own["XLA_FLAGS"], *added, "--xla_gpu_autotune_level=3"])


def test_a_place_that_is_not_there_is_left_out():
    where = facts(software=True)
    del where["places"]["cudaRoot"]
    assert "CUDA_ROOT" not in _frameworks.variables(_frameworks.settings("jax"), where, {})


def test_a_cuda_root_points_at_our_ptxas_and_the_real_one(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_RUNTIME_DIR", str(tmp_path))
    tools = os.path.join(_frameworks.HERE, "tools")
    for _ in range(2):
        root = pathlib.Path(_frameworks.cuda_root("/nvidia", tools))
    assert os.readlink(root / "bin" / "ptxas") == os.path.join(tools, "ptxas")
    assert os.readlink(root / "bin" / "ptxas.real") == "/nvidia/bin/ptxas"
    assert sorted(os.listdir(root)) == ["bin", "nvvm"]


PTXAS = HERE / "sluice_gpu" / "tools" / "ptxas"


def test_ptxas_hands_ptx_on_and_names_a_version_of_its_own(tmp_path):
    source = tmp_path / "kernel.ptx"
    source.write_text(".version 8.8\n")
    words = [PTXAS, "-lineinfo", "-v", "--gpu-name=sm_75", source, "-o", tmp_path / "kernel.cubin"]
    subprocess.run(words, check=True)
    assert (tmp_path / "kernel.cubin").read_bytes() == b".version 8.8\n\0"
    version = subprocess.run([PTXAS, "--version"], check=True, capture_output=True, text=True).stdout
    assert "release 12.9" in version and "sluice" in version
    assert subprocess.run([PTXAS, source], capture_output=True).returncode == 1


def test_ptxas_asks_the_real_one_what_only_that_knows(tmp_path):
    (tmp_path / "ptxas").symlink_to(PTXAS)
    real = tmp_path / "ptxas.real"
    real.write_text('#!/bin/sh\necho "real $*"\n')
    real.chmod(0o755)
    answer = subprocess.run([tmp_path / "ptxas", "--version"], check=True, capture_output=True, text=True).stdout
    assert answer == "real --version\n"


def test_an_import_sets_what_the_framework_needs_and_others_pay_nothing(tmp_path):
    (tmp_path / "triton.py").write_text("import os; FOUND = os.environ['TRITON_LIBCUDA_PATH']\n")
    code = (
        (HERE / "sluice_gpu.pth").read_text()
        + "import sys, os, json\n"
        + "before = 'sluice_gpu._frameworks' in sys.modules\n"
        + "import triton\n"
        + "print(json.dumps([before, triton.FOUND, os.environ['TRITON_PTXAS_PATH']]))"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": f"{HERE}:{tmp_path}",
        "SLUICE_BROKER_URL": "http://127.0.0.1:9",
        "SLUICE_LIBRARY_DIR": str(tmp_path),
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [False, str(tmp_path), str(PTXAS)]
