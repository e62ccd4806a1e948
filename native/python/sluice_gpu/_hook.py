"""Start-up hook: every Python process of a workspace finds our CUDA libraries before anything asks for CUDA.

Run by `sluice_gpu.pth` only where a broker is configured. It must stay cheap (a few milliseconds) and may not fail:
a broken hook would break every Python of the environment.
"""

import os
import sys

# Written by the first process of a workspace, for programs whose environment was cleared (`env -i`, sudo).
VARIABLES = "/run/sluice/variables"

CONFIG = os.path.join(os.path.expanduser("~"), ".config", "sluice", "config.json")

# Keys of the configuration file and the variables that they stand for.
_SETTINGS = {
    "brokerUrl": "SLUICE_BROKER_URL",
    "credentialFile": "SLUICE_CREDENTIAL_FILE",
    "gpuType": "SLUICE_GPU_TYPE",
    "portalUrl": "SLUICE_PORTAL_URL",
}

_installed = False

# Order matters: the shims need the client. The libraries beside the driver (libcublas.so.13, …) follow.
LIBRARIES = (
    "libsluice_client.so",
    "libcuda.so.1",
    "libcudart.so.13",
    "libcudart.so.12",
    "libnvidia-ml.so.1",
)


def _restore_variables():
    """The client reads the file, and finds the process whose lease this one uses."""
    from . import _client

    for name, value in _client.request("variables")["variables"].items():
        os.environ.setdefault(name, value)


def _read_config():
    import json

    with open(CONFIG, encoding="utf-8") as file:
        settings = json.load(file)
    for key, variable in _SETTINGS.items():
        if isinstance(settings.get(key), str):
            os.environ.setdefault(variable, settings[key])


def _join_site_packages():
    """Where this environment lies under a workspace's own one, CUDA's packages look for one another's libraries by
    `site.getsitepackages()`, which knows only the upper one."""
    site = sys.modules.get("site")
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    prefix = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    standard = os.path.join(prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
    if site is not None and folder == standard and folder not in site.getsitepackages():
        site.PREFIXES.append(prefix)


def _preload():
    # The C function behind ctypes.CDLL: ctypes itself costs three times as much to import.
    import _ctypes

    folder = os.environ.get("SLUICE_LIBRARY_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    there = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    beside = sorted(name for name in there - set(LIBRARIES) if name.startswith("lib") and ".so." in name)
    for name in (*LIBRARIES, *beside):
        if name in there:
            _ctypes.dlopen(os.path.join(folder, name), os.RTLD_NOW | os.RTLD_GLOBAL)


class _WatchesImports:
    """Import hook: what a framework needs is done when it is imported, so that other processes pay nothing for it.

    - A framework with settings of its own (`frameworks/`) gets them before it is loaded.
    - cuda.pathfinder, by which CUDA's packages find one another's libraries, learns where this environment lies, and
      for the software GPU that there is no nvJitLink: with that linker numba-cuda turns kernels into machine code of
      one GPU model, which the software GPU cannot execute; without it, the driver (us) gets PTX. Packages that link to
      nvJitLink themselves are not touched.
    - JAX learns that there is a GPU where there is no device file.
    """

    def __init__(self):
        self._before = {"cupy", "jax", "tensorflow", "triton"}
        self._after = {"cuda.pathfinder": _change_pathfinder, "jax._src.hardware_utils": _show_gpu_to_jax}

    def find_spec(self, name, path=None, target=None):
        if name in self._before:
            self._before.discard(name)
            try:
                from . import _frameworks

                _frameworks.prepare(name)
            except Exception as error:  # noqa: BLE001 - the framework loads whatever is wrong with its settings
                print(f"sluice: {name} is not set up for a borrowed GPU: {error}", file=sys.stderr)
        change = self._after.pop(name, None)
        return None if change is None else _changed(name, change)


def _changed(name, change):
    """The module's own spec, with `change(module)` after its code has run."""
    import importlib.util

    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return spec
    loader, execute = spec.loader, spec.loader.exec_module

    def exec_module(module):
        execute(module)
        change(module)

    loader.exec_module = exec_module
    return spec


def _change_pathfinder(module):
    # Not earlier: site sets its prefixes after it has run the .pth files of a virtual environment.
    _join_site_packages()
    if os.environ.get("SLUICE_GPU_TYPE", "soft") == "soft":
        _hide(module)


def _show_gpu_to_jax(module):
    """JAX takes the CPU, without a word, where none of a list of device files exists; a workspace has one of them."""
    files = getattr(module, "_NVIDIA_GPU_DEVICES", None)
    if isinstance(files, list) and not any(os.path.exists(file) for file in files):
        files.append(os.path.abspath(__file__))


def _hide(pathfinder):
    """Let cuda.pathfinder find no nvJitLink, without the warning that cuda.core shows then."""
    import warnings

    # cuda.core says once that it falls back to the driver's linker; here that is what is wanted.
    warnings.filterwarnings("ignore", message=r"(cuda\.bindings\.)?nvjitlink\*? ", category=RuntimeWarning)
    original = getattr(pathfinder, "load_nvidia_dynamic_lib", None)
    if original is None:
        return

    def load_nvidia_dynamic_lib(libname):
        if libname == "nvJitLink":
            raise pathfinder.DynamicLibNotFoundError("hidden by sluice: kernels travel as PTX")
        return original(libname)

    pathfinder.load_nvidia_dynamic_lib = load_nvidia_dynamic_lib


def install():
    """What the `.pth` file runs; problems are told on stderr and leave Python as it was."""
    global _installed
    if _installed:
        # Environments that are laid over one another run the same .pth file more than once.
        return
    _installed = True
    try:
        if "SLUICE_BROKER_URL" in os.environ:
            _preload()
        elif os.path.exists(VARIABLES):
            _preload()
            _restore_variables()
        else:
            _read_config()
            _preload()
        sys.meta_path.insert(0, _WatchesImports())
    except Exception as error:  # noqa: BLE001 - see the module's docstring
        print(f"sluice: no GPU can be attached in this process: {error}", file=sys.stderr)
