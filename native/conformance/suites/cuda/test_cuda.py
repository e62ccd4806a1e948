"""CUDA C++ programs (`native/conformance/cuda`), each built by nvcc with `--cudart=shared` for compute_75 and for
compute_120, through our runtime library. A program checks itself and ends with `ok`.

nvcc, CUB, Thrust and cuRAND's device generators come from PyPI (`toolkit.py`); what nvcc made is kept in this user's
cache until a source changes, because a program of CUB or Thrust takes a minute to build.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "cuda"
ARCHITECTURES = (75, 120)
# Options and further files of single programs.
SPECIAL = {"several_files": ["several_files_other.cu"], "per_thread_stream": ["--default-stream", "per-thread"]}
PROGRAMS = sorted(
    str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.cu") if "int main()" in path.read_text(encoding="utf-8")
)


@pytest.fixture(scope="session")
def toolkit():
    """The folder with nvcc."""
    printed = subprocess.run([sys.executable, SOURCES / "toolkit.py"], check=True, stdout=subprocess.PIPE, text=True)
    return Path(printed.stdout.strip())


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """Our libraries, with the name that `-lcudart` asks for."""
    folder = tmp_path_factory.mktemp("libraries")
    for library in Path(os.environ["LD_LIBRARY_PATH"].split(":")[0]).glob("*.so*"):
        (folder / library.name).symlink_to(library.resolve())
    (folder / "libcudart.so").symlink_to(folder / "libcudart.so.13")
    return folder


def build(name, architecture, toolkit, libraries):
    """The program's path; it is compiled unless its sources are those of the last time."""
    extra = SPECIAL.get(Path(name).stem, [])
    digest = hashlib.sha256(f"{toolkit} {architecture} {extra}".encode())
    headers = sorted(SOURCES.rglob("*.h"))
    for source in [SOURCES / name, *headers, *(SOURCES / part for part in extra if part.endswith(".cu"))]:
        digest.update(source.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sluice" / "cuda-programs"
    cache.mkdir(parents=True, exist_ok=True)
    program = cache / f"{Path(name).stem}-{architecture}-{digest.hexdigest()[:16]}"
    if not program.exists():
        # Compiled aside and renamed: a run that is ended in between leaves no half program.
        aside = program.with_suffix(".part")
        command = [toolkit / "cu13" / "bin" / "nvcc", "-std=c++17", "--cudart=shared", f"-L{libraries}"]
        command += ["-gencode", f"arch=compute_{architecture},code=compute_{architecture}"]
        command += ["-I", toolkit / "cu13" / "include" / "cccl", "-o", aside, name, *extra]
        result = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True)
        assert result.returncode == 0, (result.stdout + result.stderr)[:4000]
        aside.rename(program)
    return program


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, architecture, toolkit, libraries):
    program = build(name, architecture, toolkit, libraries)
    result = subprocess.run([program], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0 and result.stdout.endswith("ok\n"), (result.stdout + result.stderr)[-3000:]
