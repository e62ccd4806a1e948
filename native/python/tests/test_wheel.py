"""The wheel: what lies in it, and that the same inputs give the same bytes."""

import base64
import csv
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import build_wheel

HERE = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def native_dir(tmp_path_factory):
    """The built native libraries, or any shared libraries under their names: here only the packing is tested."""
    if os.environ.get("SLUICE_NATIVE_DIR"):
        return pathlib.Path(os.environ["SLUICE_NATIVE_DIR"])
    folder = tmp_path_factory.mktemp("native")
    import _ctypes

    built = ("libcuda.so", "libcudart12.so", "libcudart13.so", "libnvidia_ml.so")
    for name in ("libsluice_client.so", "libsluice_opencl.so", *built, "sluice"):
        shutil.copy(_ctypes.__file__, folder / name)
    (folder / "libraries").mkdir()
    shutil.copy(_ctypes.__file__, folder / "libraries" / "libcublas.so.13")
    return folder


@pytest.fixture(scope="session")
def wheel(native_dir, tmp_path_factory):
    return pathlib.Path(build_wheel.build(str(native_dir), str(tmp_path_factory.mktemp("wheel"))))


def test_the_wheel_holds_package_libraries_command_and_settings(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    number = build_wheel.version()
    assert {
        "sluice_gpu/__init__.py",
        "sluice_gpu/server.py",
        "sluice_gpu/lib/libsluice_client.so",
        "sluice_gpu/lib/libcuda.so.1",
        "sluice_gpu/lib/libnvidia-ml.so.1",
        "sluice_gpu/frameworks/triton.json",
        "sluice_gpu/tools/ptxas",
        "sluice_gpu/lib/libsluice_opencl.so",
        "sluice_gpu/lib/libcudart.so.12",
        "sluice_gpu/lib/libcudart.so.13",
        "sluice_gpu/lib/libcublas.so.13",
        "sluice_gpu.pth",
        f"sluice_gpu-{number}.data/scripts/nvidia-smi",
        f"sluice_gpu-{number}.data/scripts/sluice",
        f"sluice_gpu-{number}.data/data/etc/jupyter/jupyter_server_config.d/sluice_gpu.json",
        f"sluice_gpu-{number}.data/data/share/jupyter/labextensions/sluice-gpu/package.json",
        f"sluice_gpu-{number}.dist-info/METADATA",
    } <= names
    assert not [name for name in names if "test" in name or name.endswith(".pyc")]


def test_each_version_of_the_labs_extension_has_addresses_of_its_own(wheel):
    extension = f"sluice_gpu-{build_wheel.version()}.data/data/share/jupyter/labextensions/sluice-gpu/"

    def load(files):
        build = json.loads(files[f"{extension}package.json"][0])["jupyterlab"]["_build"]
        assert f"{extension}{build['load']}" in files
        return build["load"]

    archive = zipfile.ZipFile(wheel)
    packed = {name: (archive.read(name), False) for name in archive.namelist() if name.startswith(extension)}
    assert re.fullmatch(r"static/[0-9a-f]{16}/remoteEntry\.js", load(packed))
    # It imports the others from its own folder.
    assert {path.rpartition("/")[0] for path in packed if "/static/" in path} == {f"{extension}{load(packed)}".rpartition("/")[0]}
    source = {
        **{f"{extension}static/{name}": (name.encode(), False) for name in ("remoteEntry.js", "portal.js")},
        f"{extension}package.json": (b'{"jupyterlab": {"_build": {"load": "static/remoteEntry.js"}}}', False),
    }
    before = load(build_wheel.named_by_content(source, extension))
    assert load(build_wheel.named_by_content(source, extension)) == before
    changed = {**source, f"{extension}static/portal.js": (b"changed", False)}
    assert load(build_wheel.named_by_content(changed, extension)) != before


def test_the_record_names_every_file_with_its_hash(wheel):
    archive = zipfile.ZipFile(wheel)
    record = f"sluice_gpu-{build_wheel.version()}.dist-info/RECORD"
    rows = {row[0]: row[1] for row in csv.reader(io.StringIO(archive.read(record).decode()))}
    assert set(rows) == set(archive.namelist())
    for name, digest in rows.items():
        if name != record:
            expected = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=").decode()
            assert digest == f"sha256={expected}"


def test_two_builds_are_the_same_bytes(wheel, native_dir, tmp_path):
    again = pathlib.Path(build_wheel.build(str(native_dir), str(tmp_path)))
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_the_platform_tag_names_the_glibc_that_is_needed():
    assert build_wheel.glibc_needed([b"\0GLIBC_2.17\0x\0GLIBC_2.2.5\0GLIBC_2.34\0"]) == (2, 34)
    assert build_wheel.glibc_needed([b"nothing"]) == (2, 17)


def test_a_missing_library_is_named(tmp_path):
    with pytest.raises(build_wheel.BuildProblem, match="libsluice_client.so"):
        build_wheel.build(str(tmp_path), str(tmp_path))


def test_it_installs_with_its_hook_and_does_no_work_where_no_broker_is_configured(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    probe = "import sys; print(sorted(m for m in sys.modules if m.startswith('sluice')), '_ctypes' in sys.modules)"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    idle = subprocess.run([python, "-c", probe], check=True, capture_output=True, text=True, env=env)
    assert idle.stdout.strip() == "[] False"
    busy = subprocess.run(
        [python, "-c", probe + "; print([line for line in open('/proc/self/maps') if 'libcuda' in line] != [])"],
        check=True,
        capture_output=True,
        text=True,
        env={**env, "SLUICE_BROKER_URL": "http://127.0.0.1:9"},
    )
    assert busy.stdout.splitlines() == ["['sluice_gpu', 'sluice_gpu._hook', 'sluice_gpu._version'] True", "True"]
    assert busy.stderr == ""


def test_an_environment_laid_under_another_is_found_by_cudas_packages(wheel, tmp_path):
    """As workspaces are made: a virtual environment whose .pth file adds the shared one below it."""
    for name in ("above", "below"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / name], check=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    above, below = (tmp_path / name / "lib" / version / "site-packages" for name in ("above", "below"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(below)
    (above / "shared.pth").write_text(f"import site; site.addsitedir({str(below)!r})\n")
    package = below / "cuda" / "pathfinder"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("class DynamicLibNotFoundError(Exception): pass\n")
    code = f"import cuda.pathfinder, site; print({str(below)!r} in site.getsitepackages())"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SLUICE_BROKER_URL": "http://127.0.0.1:9"}
    found = subprocess.run(
        [tmp_path / "above" / "bin" / "python", "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=env,
        cwd=tmp_path,
    )
    assert found.stdout.strip() == "True", found.stderr
