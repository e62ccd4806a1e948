#!/usr/bin/env python3
"""CUDA's compiler and headers from PyPI, kept in a folder of this user's cache: prints that folder.

It holds cu13/ (nvcc with its parts, headers, CUB and Thrust in cu13/include/cccl, cuRAND's device generators) and
cuda_runtime/ (the headers of CUDA 12). Nothing of it goes into the repository.
"""

import fcntl
import os
import shutil
import subprocess
import sys

PACKAGES = (
    "nvidia-cuda-nvcc==13.5.37",
    "nvidia-cuda-crt==13.5.37",
    "nvidia-nvvm==13.5.37",
    "nvidia-cuda-runtime==13.5.37",
    "nvidia-cuda-runtime-cu12==12.9.79",
    "nvidia-cuda-cccl==13.3.5.0.6",
    "nvidia-curand==10.4.5.25",
)


def install(folder):
    """Put the packages' files into `folder`; it is there whole or not at all."""
    aside = f"{folder}.part"
    shutil.rmtree(aside, ignore_errors=True)
    environment = os.path.join(aside, "venv")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, stdout=sys.stderr)
    command = [os.path.join(environment, "bin", "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--no-compile", "--disable-pip-version-check", "--target", os.path.join(aside, "packages"), *PACKAGES]
    subprocess.run(command, check=True, stdout=sys.stderr)
    packages = os.path.join(aside, "packages", "nvidia")
    # Of cuRAND only the headers are used: programs link our library.
    os.remove(os.path.join(packages, "cu13", "lib", "libcurand.so.10"))
    os.rename(packages, folder)
    shutil.rmtree(aside)


def main():
    """Install what is missing and print the folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(cache, "sluice", "cuda-13.5.37-12.9.79-cccl-13.3.5")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    # Two test runs at once: the second waits for what the first installs.
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder):
            install(folder)
    print(folder)


if __name__ == "__main__":
    main()
