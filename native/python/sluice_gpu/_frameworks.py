"""What each framework must be told to find and use a borrowed GPU: environment variables, each with its reason, in
`frameworks/<name>.json`. The local launcher sets them for every process of a workspace, and the start-up hook here
in every other Jupyter, when the framework is imported. What the user has set stays.
"""

import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "frameworks")


def known():
    """The names of the frameworks with settings."""
    return sorted(name[: -len(".json")] for name in os.listdir(FOLDER) if name.endswith(".json"))


def settings(name):
    """The variables of a framework as its file declares them."""
    with open(os.path.join(FOLDER, name + ".json"), encoding="utf-8") as file:
        return json.load(file)["variables"]


def holds(condition, facts):
    """Whether one condition of a setting is true; `package>=version` is true where that version is installed."""
    name, comparison, version = condition.partition(">=")
    if not comparison:
        return bool(facts["conditions"].get(condition, False))
    installed = facts["version"](name)
    return installed is not None and _numbers(installed) >= _numbers(version)


def _numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def variables(entries, facts, environ):
    """`{name: value}` of what has to be set. A flag is added to what the variable holds; another value of the user's,
    or the same flag with another value, stays as it is.

    `facts` has `conditions` {name: bool}, `version(package)` -> text or None, and `places` {name: path}.
    """
    found = {}
    for entry in entries:
        name = entry["name"]
        if not all(holds(condition, facts) for condition in entry.get("when", ())):
            continue
        # What needs a place that is not there is left out.
        try:
            text = entry.get("flag", entry.get("value")).format(**facts["places"])
        except KeyError:
            continue
        if "flag" in entry:
            flags = found.get(name, environ.get(name, ""))
            if text.partition("=")[0] not in flags:
                found[name] = f"{flags} {text}".strip()
        elif name not in environ:
            found[name] = text
    return found


def installed_version(package):
    """The version of an installed distribution, or None."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def facts_here(libraries, profile, nvidia):
    """The facts of this process. `profile` is the client's answer about the GPU type, `nvidia` the folder of the
    installed CUDA compiler's files (with bin/ptxas and nvvm/libdevice) or None."""
    software = profile.get("gpuType", "soft") == "soft"
    places = {"libraries": libraries, "tools": os.path.join(HERE, "tools")}
    root = cuda_root(nvidia, places["tools"]) if software and nvidia else None
    if root:
        places["cudaRoot"] = root
    return {
        "conditions": {
            "process": True,
            "software": software,
            "no-vmm": not profile.get("virtualMemory", False),
            "no-cupti": not any(name.startswith("libcupti.so") for name in os.listdir(libraries)),
        },
        "version": installed_version,
        "places": places,
    }


def cuda_root(nvidia, tools):
    """A folder that JAX and TensorFlow take for a CUDA installation: the installed libdevice, and our ptxas before the real one.
    None where it cannot be made."""
    base = os.environ.get("SLUICE_RUNTIME_DIR") or os.path.join(os.path.expanduser("~"), ".cache", "sluice")
    root = os.path.join(base, "cuda-root")
    links = {
        "bin/ptxas": os.path.join(tools, "ptxas"),
        "bin/ptxas.real": os.path.join(nvidia, "bin", "ptxas"),
        "nvvm": os.path.join(nvidia, "nvvm"),
    }
    try:
        os.makedirs(os.path.join(root, "bin"), exist_ok=True)
        for name, target in links.items():
            link = os.path.join(root, name)
            if os.path.lexists(link) and os.readlink(link) == target:
                continue
            # Made aside and renamed: processes start together.
            made = f"{link}.{os.getpid()}"
            os.symlink(target, made)
            os.replace(made, link)
    except OSError:
        return None
    return root


def nvidia_folder():
    """Where the CUDA compiler's wheels have put their files, or None."""
    import sys

    for folder in sys.path:
        for name in ("cu13", "cuda_nvcc"):
            found = os.path.join(folder, "nvidia", name)
            if os.path.isfile(os.path.join(found, "bin", "ptxas")):
                return found
    return None


def prepare(name):
    """Set what the framework needs, in this process and its children."""
    from . import _client

    try:
        profile = _client.request("profile")
    except _client.ClientProblem:
        profile = {"gpuType": os.environ.get("SLUICE_GPU_TYPE") or "soft"}
    entries = settings(name)
    os.environ.update(variables(entries, facts_here(_client.library_dir(), profile, nvidia_folder()), os.environ))
