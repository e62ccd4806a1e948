#!/usr/bin/env python3
"""Build the sluice-gpu wheel: thin Python around the native libraries.

    python3 build_wheel.py --native-dir native/target/release --out DIR

Needs nothing but the standard library. The same inputs give the same bytes. Prints the wheel's path.
"""

import argparse
import base64
import hashlib
import json
import os
import platform
import re
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))

# name inside the wheel -> names that the Rust build may give the file
LIBRARIES = {
    "libsluice_client.so": ("libsluice_client.so",),
    "libcuda.so.1": ("libcuda.so.1", "libcuda.so", "libsluice_shim_cuda.so"),
    "libnvidia-ml.so.1": ("libnvidia-ml.so.1", "libnvidia_ml.so"),
    "libcudart.so.12": ("libcudart.so.12", "libcudart12.so"),
    "libcudart.so.13": ("libcudart.so.13", "libcudart13.so"),
    "libsluice_opencl.so": ("libsluice_opencl.so",),
}
# Folder of the Rust build with the libraries beside the driver (libcublas.so.13, …), under their own names
BESIDE = "libraries"
COMMANDS = {"sluice": ("sluice",)}

METADATA = """\
Metadata-Version: 2.1
Name: sluice-gpu
Version: {version}
Summary: Borrow a part of a pooled remote GPU from a notebook or a script
License: Apache-2.0
Requires-Python: >=3.10
Description-Content-Type: text/markdown

In a notebook:

    %load_ext sluice_gpu
    %gpu attach 0.5

In a script:

    import sluice_gpu
    with sluice_gpu.attach("0.5"):
        ...
"""


class BuildProblem(Exception):
    """Why no wheel was built."""


def find(native_dir, names):
    """The first of `names` that lies in `native_dir`."""
    for name in names:
        path = os.path.join(native_dir, name)
        if os.path.isfile(path):
            return path
    raise BuildProblem(f"{native_dir} holds none of {', '.join(names)}; build the native workspace first")


def beside(native_dir):
    """The libraries beside the driver that were built: {name: path}."""
    folder = os.path.join(native_dir, BESIDE)
    if not os.path.isdir(folder):
        raise BuildProblem(f"{folder} is missing; build the native workspace first")
    return {name: os.path.join(folder, name) for name in sorted(os.listdir(folder)) if not name.endswith(".part")}


def glibc_needed(blobs):
    """The newest glibc whose symbols the files import, as (2, minor); read from their version names."""
    minors = {int(minor) for blob in blobs for minor in re.findall(rb"(?<=\0)GLIBC_2\.(\d+)(?:\.\d+)?(?=\0)", blob)}
    return 2, max(minors | {17})


def platform_tag(blobs):
    """`manylinux_2_XX_<machine>` for what the files import."""
    major, minor = glibc_needed(blobs)
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def version():
    """The version in sluice_gpu/_version.py."""
    with open(os.path.join(HERE, "sluice_gpu", "_version.py"), encoding="utf-8") as file:
        return re.search(r'__version__ = "([^"]+)"', file.read()).group(1)


def read(path):
    """A file's bytes."""
    with open(path, "rb") as file:
        return file.read()


def contents(native_dir, number):
    """What the wheel holds besides its own papers: {path: (bytes, executable)}."""
    files = {}
    package = os.path.join(HERE, "sluice_gpu")
    for name in sorted(os.listdir(package)):
        if name.endswith(".py"):
            files[f"sluice_gpu/{name}"] = (read(os.path.join(package, name)), False)
    for folder, executable in (("frameworks", False), ("tools", True)):
        for name in sorted(os.listdir(os.path.join(package, folder))):
            files[f"sluice_gpu/{folder}/{name}"] = (read(os.path.join(package, folder, name)), executable)
    files["sluice_gpu.pth"] = (read(os.path.join(HERE, "sluice_gpu.pth")), False)
    for name, candidates in LIBRARIES.items():
        files[f"sluice_gpu/lib/{name}"] = (read(find(native_dir, candidates)), True)
    for name, path in beside(native_dir).items():
        files[f"sluice_gpu/lib/{name}"] = (read(path), True)
    for name, candidates in COMMANDS.items():
        files[f"sluice_gpu-{number}.data/scripts/{name}"] = (read(find(native_dir, candidates)), True)
    for name in sorted(os.listdir(os.path.join(HERE, "scripts"))):
        files[f"sluice_gpu-{number}.data/scripts/{name}"] = (read(os.path.join(HERE, "scripts", name)), True)
    data = os.path.join(HERE, "data")
    for folder, _, names in sorted(os.walk(data)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            files[f"sluice_gpu-{number}.data/data/{os.path.relpath(path, data)}"] = (read(path), False)
    return named_by_content(files, f"sluice_gpu-{number}.data/data/share/jupyter/labextensions/sluice-gpu/")


def named_by_content(files, extension):
    """The files with those of JupyterLab's extension in a folder that is named by their content.

    The server lets browsers keep what lies below `static` for a year, so a new version needs new addresses.
    """
    static = f"{extension}static/"
    scripts = {path.removeprefix(static): file for path, file in sorted(files.items()) if path.startswith(static)}
    folder = hashlib.sha256(repr(scripts).encode()).hexdigest()[:16]
    package = json.loads(files[f"{extension}package.json"][0])
    load = package["jupyterlab"]["_build"]["load"].removeprefix("static/")
    package["jupyterlab"]["_build"]["load"] = f"static/{folder}/{load}"
    return {
        **{path: file for path, file in files.items() if not path.startswith(static)},
        **{f"{static}{folder}/{name}": file for name, file in scripts.items()},
        f"{extension}package.json": (json.dumps(package, indent=2).encode(), False),
    }


def build(native_dir, out):
    """Write the wheel into `out` and return its path."""
    number = version()
    files = contents(native_dir, number)
    tag = f"py3-none-{platform_tag([blob for path, (blob, executable) in files.items() if executable])}"
    info = f"sluice_gpu-{number}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: sluice build_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info}/METADATA"] = (METADATA.format(version=number).encode(), False)
    files[f"{info}/WHEEL"] = (wheel.encode(), False)
    record = ""
    for path, (blob, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(blob).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(blob)}\n"
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), False)
    os.makedirs(out, exist_ok=True)
    target = os.path.join(out, f"sluice_gpu-{number}-{tag}.whl")
    # Written aside and renamed: nobody ever installs half a wheel.
    with zipfile.ZipFile(target + ".part", "w", zipfile.ZIP_DEFLATED) as archive:
        for path, (blob, executable) in sorted(files.items()):
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            archive.writestr(entry, blob)
    os.replace(target + ".part", target)
    return target


def main():
    """Command line; prints the path of the wheel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--native-dir", required=True, help="folder of the built libraries and the sluice command")
    parser.add_argument("--out", required=True, help="folder that receives the wheel")
    options = parser.parse_args()
    try:
        print(build(options.native_dir, options.out))
    except BuildProblem as problem:
        sys.exit(f"build_wheel: {problem}")


if __name__ == "__main__":
    main()
