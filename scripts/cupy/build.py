"""Builds CuPy against the shared CUDA runtime: `python scripts/cupy/build.py --version 14.2.0 --cache DIR`.

CuPy's wheels contain NVIDIA's static runtime in five modules, and a static runtime cannot be remoted. This compiles
those five from the source distribution of the same version, linked with `libcudart.so.13`, puts them into the wheel,
checks that no static runtime is left, and prints the new wheel's path. It is kept for each version and interpreter.

All five change together: with an own runtime module and the wheel's `cub`, sums would be uninitialised memory.
Device code is compiled to PTX 7.5, which every later GPU and the software GPU take. Takes six minutes on an idle core.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

# nvcc, its headers and NVIDIA's shared runtime to link with, and what compiles Cython. The oldest CUDA 13: a driver takes
# PTX of its own CUDA version and older ones.
TOOLS = [
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-nvrtc==13.0.88",
    "nvidia-cuda-cccl==13.0.85",
    "nvidia-cuda-profiler-api==13.0.85",
    "nvidia-curand==10.4.0.35",
    "cython==3.2.9",
    "numpy==2.2.6",
    "setuptools==84.2.1",
    "wheel==0.48.0",
]
# Module, its Cython file, and CUDA source.
MODULES = [
    ("cupy_backends/cuda/api/runtime", None),
    ("cupy/cuda/jitify", None),
    ("cupy/random/_generator_api", "cupy/random/cupy_distributions.cu"),
    ("cupy/cuda/cub", "cupy/cuda/cupy_cub.cu"),
    ("cupy/cuda/thrust", "cupy/cuda/cupy_thrust.cu"),
]
# What CuPy 14's wheels for CUDA 13 are built for, as its version macro writes it.
CUDA_VERSION = 13020
# What a static runtime has and programs with the shared one have not.
STATIC_MARK = b"cudart.shm"
BUILD_TAG = "1sluice"


def run(*words, **options):
    """A step; its output goes to our standard error."""
    subprocess.run([str(word) for word in words], check=True, stdout=sys.stderr, **options)


def prepare_tools(folder):
    """A virtual environment with the compilers, made once; returns its interpreter."""
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        run(python, "-m", "pip", "install", "-q", *TOOLS)
        (folder / "complete").touch()
    return python


def fetch(python, version, folder):
    """The source distribution, unpacked, and the stock wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"cupy-{version}"
    if not source.exists():
        # pip asks a source distribution for its metadata even when it only fetches it; this way it needs no CUDA.
        stub = {**os.environ, "CUPY_INSTALL_USE_STUB": "1"}
        plain = ["--no-deps", "--no-binary", "cupy", "--no-build-isolation"]
        run(python, "-m", "pip", "download", "-q", *plain, f"cupy=={version}", "-d", folder, env=stub)
        with tarfile.open(folder / f"cupy-{version}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    run(python, "-m", "pip", "download", "-q", "--no-deps", f"cupy-cuda13x=={version}", "-d", folder)
    return source, next(folder.glob(f"cupy_cuda13x-{version}-*.whl"))


def translate(python, source):
    """Cython's C++ of the five modules, with the settings of CuPy's own build."""
    names = [str(Path(module).with_suffix(".pyx")) for module, _ in MODULES]
    constants = {
        "CUPY_USE_CUDA_PYTHON": False,
        "CUPY_CUFFT_STATIC": False,
        "CUPY_CUDA_VERSION": CUDA_VERSION,
        "CUPY_HIP_VERSION": 0,
    }
    program = (
        "import sys, Cython, Cython.Build\n"
        f"constants = {constants!r} | {{'CUPY_CYTHON_VERSION': Cython.__version__}}\n"
        "directives = {'embedsignature': True, 'c_api_binop_methods': True, 'binding': False,\n"
        "    'warn.deprecated.IF': False, 'freethreading_compatible': True}\n"
        "from setuptools import Extension\n"
        f"names = {names!r}\n"
        "extensions = [Extension(name[:-4].replace('/', '.'), [name], language='c++') for name in names]\n"
        "Cython.Build.cythonize(extensions, language_level=3, compiler_directives=directives,\n"
        "    compile_time_env=constants)\n"
    )
    run(python, "-c", program, cwd=source)


def compile_modules(python, source, out):
    """Compiles and links the five; returns {place in the wheel: file}."""
    asked = "import sysconfig, numpy; print(sysconfig.get_paths()['purelib']); print(numpy.get_include())"
    answer = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    packages, numpy_headers = Path(answer[0]), answer[1]
    toolkit = packages / "nvidia" / "cu13"
    own = source / "cupy" / "_core" / "include"
    headers = [own / "cupy" / "_cccl" / part for part in ("libcudacxx", "thrust", "cub")]
    headers += [own, own / "cupy" / "_jitify", numpy_headers, sysconfig.get_path("include"), toolkit / "include"]
    macros = {
        "_FORCE_INLINES": "1",
        "CYTHON_EXTERN_C": 'extern "C"',
        "NPY_TARGET_VERSION": "NPY_2_0_API_VERSION",
        "CUPY_CACHE_KEY": "shared_runtime",
        "CUPY_JITIFY_VERSION_CODE": "-1",
    }
    common = [f"-I{header}" for header in headers] + [f"-D{name}={value}" for name, value in macros.items()]
    library = toolkit / "lib"
    runtime = ["-L", library, "-l:libcudart.so.13"]
    more = {"cupy/cuda/jitify": ["-l:libnvrtc.so.13"]}
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    built = {}
    for module, device_source in MODULES:
        stem = out / module.replace("/", ".")
        target = stem.with_name(stem.name + suffix)
        if not target.exists():
            objects = []
            if device_source is not None:
                objects.append(f"{stem}.device.o")
                arch = ["-gencode=arch=compute_75,code=compute_75", "-Xfatbin=-compress-all", "-O2", "--std=c++17"]
                words = ["-Xcompiler", "-fPIC", "--expt-relaxed-constexpr", "--cudart=none", "-c"]
                nvcc = toolkit / "bin" / "nvcc"
                run(nvcc, *arch, *words, *common, source / device_source, "-o", objects[0], cwd=source)
            objects.append(f"{stem}.o")
            host = ["g++", "-O2", "-fPIC", "-fwrapv", "-DNDEBUG", "-w", "-std=c++17", "-c"]
            run(*host, *common, source / f"{module}.cpp", "-o", objects[-1], cwd=source)
            # The driver's library is there on the machine that runs it; symbols of it stay open here.
            link = ["g++", "-shared", *objects, *runtime, *more.get(module, []), "-lpthread", "-lrt", "-ldl"]
            run(*link, "-o", f"{target}.part")
            os.replace(f"{target}.part", target)
        built[f"{module}{suffix}"] = target
    return built


def assemble(python, wheel, built, folder, out):
    """The wheel with the built modules; refused when a static runtime is left anywhere in it."""
    unpacked = folder / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    run(python, "-m", "wheel", "unpack", wheel, "-d", unpacked)
    content = next(unpacked.iterdir())
    for place, file in built.items():
        if not (content / place).exists():
            raise SystemExit(f"{wheel.name} has no {place}: this CuPy is built otherwise than the ones known here")
        shutil.copyfile(file, content / place)
    left = [str(file.relative_to(content)) for file in content.rglob("*.so") if STATIC_MARK in file.read_bytes()]
    if left:
        raise SystemExit(f"a static CUDA runtime is left in {', '.join(left)}")
    out.mkdir(parents=True, exist_ok=True)
    run(python, "-m", "wheel", "pack", content, "-d", out, "--build-number", BUILD_TAG)
    shutil.rmtree(unpacked)


def main():
    """The wheel's path on standard output."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--version", default="14.2.0", help="CuPy's version")
    parser.add_argument("--cache", type=Path, required=True, help="folder for the wheels and what is needed for them")
    options = parser.parse_args()
    cache = options.cache.resolve()
    wheels = cache / f"cp{sys.version_info.major}{sys.version_info.minor}"
    pattern = f"cupy_cuda13x-{options.version}-{BUILD_TAG}-*.whl"
    if not list(wheels.glob(pattern)):
        work = cache / f"work-{options.version}-{wheels.name}"
        work.mkdir(parents=True, exist_ok=True)
        python = prepare_tools(cache / f"tools-{wheels.name}")
        source, wheel = fetch(python, options.version, work)
        translate(python, source)
        assemble(python, wheel, compile_modules(python, source, work), work, wheels)
    print(next(wheels.glob(pattern)))


if __name__ == "__main__":
    main()
