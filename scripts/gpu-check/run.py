#!/usr/bin/env python3
"""Native against remoted on one card: runs on any machine with an NVIDIA GPU, offline.

    python3 run.py --out DIR [--parts training,4,5,attach,killed,share,1,cuda,operations,3] [--limit 480] [--log FILE]

Needs Python's standard library and what lies beside this file; frameworks are used where they are installed, and a
part that cannot run says why, one that is cut what was cut. Every part is processes of its own with a time limit, and
all of them together end within it. Writes gpu-MODEL-DATE.json and a table of the same name. What is measured runs alone
and first, what is compared side by side behind it. Programs run natively and through a gpud of their own by each way: a
Unix socket, TCP with TLS, and TCP with TLS and 1 ms added to each round trip; and natively again, where it is asked how
far native runs differ.
"""

import argparse
import concurrent.futures
import copy
import ctypes
import datetime
import glob
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

from compare import (
    COMPARED, ENDING, LIMIT, PARTS, WAYS, compare_outcomes, compare_training, compare_values, differ, off, part_ends,
    together,
)

HERE = os.path.dirname(os.path.abspath(__file__))
NATIVE = os.path.join(HERE, "native")
MIB = 1 << 20
# Where drivers lie that the dynamic linker does not find.
DRIVER_PLACES = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
                 "/usr/lib/wsl/lib")
# Options and further files of single CUDA C++ programs.
CUDA_OPTIONS = {"several_files": ["several_files_other.cu"], "per_thread_stream": ["--default-stream", "per-thread"]}
# Of the shares of a card: percentage points that one is off at most, and what is left of all at least.
SHARES = {"max_deviation_pp": 3.0, "total_vs_solo": 0.97, "idle_neighbour": 0.98}


# Seconds in which a program has to have its error when the process that serves it is killed. XLA asks every five
# whether its streams have failed, and raises it a moment later.
KILLED_WITHIN = {"torch": 5, "jax": 5.5, "numba": 5}


class Problem(Exception):
    """Why something cannot be measured here; for a person."""


def tail(text, lines=6):
    """The end of what a program said."""
    return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:])[-600:]


class Bench:
    """The machine, the options, and how programs are started."""

    def __init__(self, options):
        self.options = options
        # The last seconds are for ending what is cut and for writing.
        self.end = time.monotonic() + options.limit - ENDING
        self.part_end = self.end
        self.cut, self.beside = [], []
        # Of the parts that run side by side, which has ended; and the groups behind them.
        self.ended, self.behind = {}, []
        self.python_path = None
        self.folder = tempfile.mkdtemp(prefix="gpu-check-")
        # gpud's workers are nobody where it runs as root; the socket lies here.
        os.chmod(self.folder, 0o755)
        self.library_path = self.find_libraries()
        self.driver = options.driver or self.find_driver()
        self.device = self.ask_gpud()
        self.memory = options.memory or int(self.device["memoryBytes"] * 0.9) // (64 * MIB) * (64 * MIB)

    def find_libraries(self):
        """The folders of CUDA's libraries among Python's packages, and what the environment says already."""
        roots = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
        found = [folder for root in sorted(roots) for folder in sorted(glob.glob(f"{root}/nvidia/*/lib"))]
        given = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
        return ":".join([*given, *found, *glob.glob("/usr/local/cuda/lib64")])

    def find_driver(self):
        """The driver's library."""
        for name in ("libcuda.so.1", *(os.path.join(place, "libcuda.so.1") for place in DRIVER_PLACES)):
            try:
                ctypes.CDLL(name)
                return name
            except OSError:
                continue
        raise Problem("no NVIDIA driver is installed here (libcuda.so.1); name its library with --driver")

    def environment(self):
        """For programs that run natively, and for gpud."""
        found = {**os.environ, "SLUICE_NATIVE_DIR": NATIVE, "LD_LIBRARY_PATH": self.library_path,
                 "PYTHONUNBUFFERED": "1"}
        if self.python_path:
            given = os.environ.get("PYTHONPATH")
            found["PYTHONPATH"] = self.python_path + (f":{given}" if given else "")
        return found

    def ask_gpud(self):
        """The first device, as gpud sees it."""
        state = os.path.join(self.folder, "state")
        command = [os.path.join(NATIVE, "gpud"), "devices", "--backend", "cuda", "--driver", self.driver,
                   "--state", state]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise Problem(f"gpud finds no device: {tail(done.stderr)}")
        return json.loads(done.stdout)[0]

    def begin(self, part):
        """The same with a time of its own, which begins now."""
        begun = copy.copy(self)
        begun.part_end = part_ends(part, time.monotonic(), self.end, self.behind)
        begun.cut = []
        begun.beside = [ended for name, ended in self.ended.items() if name != part]
        return begun

    def wait_for_quiet(self, seconds):
        """Waits until what runs beside has ended, and leaves so many seconds of the part's time."""
        for ended in self.beside:
            ended.wait(max(0, self.left() - seconds))

    def left(self):
        """Seconds until the part has to end."""
        return self.part_end - time.monotonic()

    def native(self, command, limit):
        """Runs a program on the driver itself."""
        return self.execute(command, self.environment(), limit)

    def remoted(self, command, way, limit, options=()):
        """Runs a program through a gpud of its own."""
        ways = {
            "tcp": [],
            "unix": [f"--gpud=--listen=unix://{self.folder}/gpud-{time.monotonic_ns()}.sock"],
            "tls": ["--gpud=--listen=tls://127.0.0.1:0"],
            "rtt1": ["--gpud=--listen=tls://127.0.0.1:0", "--round-trip", "1"],
        }
        park = int(max(self.options.park_mib * MIB * 1.2, 4 << 30))
        loopback = [os.path.join(NATIVE, "sluice-loopback"), "--backend", "cuda", "--memory", str(self.memory),
                    f"--gpud=--driver={self.driver}", f"--gpud=--park-limit={park}", *ways[way], *options]
        loopback += [f"--gpud=--worker-env={name}" for name in self.options.worker_env]
        environment = self.environment()
        # Python programs find the package, whose hook loads our libraries before a framework asks for NVIDIA's.
        given = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.path.join(HERE, "python") + (f":{given}" if given else "")
        return self.execute([*loopback, "--", *command], environment, limit)

    def execute(self, command, environment, limit):
        """What a program printed; its end or the time limit's."""
        limit = min(limit, self.left())
        if limit < 2:
            self.cut.append(f"not begun: {self.words(command)}")
            return "", "no time was left", 124
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            # The group is this program's own: its gpud and its children.
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err = f"{err}\nno end within {limit:.0f} s"
            self.cut.append(f"after {limit:.0f} s: {self.words(command)}")
            self.note(command, out, err, 124)
            return out, err, 124
        self.note(command, out, err, process.returncode)
        return out, err, process.returncode

    @staticmethod
    def words(command):
        """What a command runs and by which way, without folders."""
        remoted = "--" in command
        listens = next((word for word in command if word.startswith("--gpud=--listen=")), "tcp").split("=")[-1]
        way = "rtt1" if "--round-trip" in command else listens.split(":")[0]
        inner = command[command.index("--") + 1:] if remoted else command
        names = [os.path.basename(word) for word in inner if word != sys.executable]
        return f"{' '.join(names)[:60]} ({way if remoted else 'native'})"

    def note(self, command, out, err, code):
        """Keeps all that a program and its gpud said, where that is wanted."""
        if self.options.log:
            with open(self.options.log, "a", encoding="utf-8") as file:
                file.write(f"\n$ {' '.join(command)}\n{out[-20000:]}{err[-20000:]}\nexit status {code}\n")

    def lines(self, outcome):
        """The JSON lines among what a program printed; what went wrong as one more."""
        out, err, code = outcome
        found = []
        for line in out.splitlines():
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                found.append(value)
        if code != 0:
            found.append({"name": "failed", "error": tail(err) or f"exit status {code}"})
        return found

    def part(self, name):
        """The path of a program of ours."""
        return os.path.join(HERE, "parts", name)


def conformance(bench):
    """1: the conformance programs, natively and remoted."""
    skipped = set(bench.options.skip)
    program = os.path.join(NATIVE, "sluice-programs")
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in listed if name not in skipped]

    def passed(outcome):
        return {line[0]: line[1].startswith("ok") for line in re.findall(r"^(\w+): (ok|FAILED)", outcome[0], re.M)}

    native = bench.native([program, bench.driver, *names], 60)
    first, why = passed(native), dict(re.findall(r"^(\w+): FAILED \((.*)\)$", native[0], re.M))
    outcomes = {}
    for way in ("unix",) if bench.options.short else ("unix", "tls"):
        outcomes[way] = bench.remoted([program, "libcuda.so.1", *names], way, 90)
    remoted = {way: passed(outcome) for way, outcome in outcomes.items()}
    # How steady a program is natively matters only where ours has another outcome. Natively nothing keeps what runs
    # beside from the card, and some programs look at how much memory is free.
    unlike = sorted({name for way in remoted for name in compare_outcomes(names, first, {}, remoted[way])[0]})
    again = {}
    if unlike:
        bench.wait_for_quiet(20)
        # Named twice: one name alone is the program itself, which does not say how it ended.
        again = passed(bench.native([program, bench.driver, *unlike, unlike[0]], 60))
    result = {"programs": len(names), "native_passed": sum(first.values()), "skipped": sorted(skipped)}
    for way, outcome in outcomes.items():
        differing, result["unsteady"] = compare_outcomes(names, first, again, remoted[way])
        result[way] = {"passed": sum(remoted[way].values()), "differ": differing}
        if differing:
            result[way]["error"] = tail(outcome[1])
    result["native_failed"] = {name: why.get(name, "") for name in names if first.get(name) is False}
    if why:
        result["native_error"] = tail(native[1], 12)
    result["native_cut"] = [name for name in names if name not in first]
    result["ok"] = not result["native_cut"] and not any(result[way]["differ"] for way in outcomes)
    return result


def built_here(bench, nvcc, source):
    """A CUDA C++ program, compiled for the card of this machine by the nvcc that is here; why not, else."""
    folder = os.path.join(HERE, "cuda")
    program = os.path.join(bench.folder, os.path.splitext(os.path.basename(source))[0])
    command = [nvcc, "-std=c++17", "--cudart=shared", "-arch=native", "-o", program, source]
    command += CUDA_OPTIONS.get(os.path.basename(program), [])
    with open(os.path.join(folder, source), encoding="utf-8") as file:
        if "int main()" not in file.read():
            return None, None
    try:
        limit = max(1, bench.left())
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        bench.cut.append(f"nvcc {source}")
        return program, "no time was left"
    return program, None if done.returncode == 0 else tail(done.stdout + done.stderr, 4)


def cuda_programs(bench):
    """CUDA C++ programs, compiled here, natively and remoted."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        raise Problem("no nvcc is installed here")
    folder = os.path.join(HERE, "cuda")
    sources = [os.path.relpath(path, folder) for path in glob.glob(os.path.join(folder, "**", "*.cu"), recursive=True)]
    # What takes longest to compile comes first.
    sources.sort(key=lambda source: (not source.startswith(("cub", "thrust")), source))

    def outcome(source):
        program, problem = built_here(bench, nvcc, source)
        if program is None:
            return None
        if problem:
            return os.path.basename(program), f"does not compile: {problem}", None
        said = []
        for out, err, code in (bench.native([program], 60), bench.remoted([program], "unix", 60)):
            said.append(None if code == 0 and out.endswith("ok\n") else tail(out + err, 4))
        return os.path.basename(program), *said

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        outcomes = [found for found in pool.map(outcome, sources) if found]
    native = {name: text for name, text, _ in outcomes if text}
    remoted = {name: text for name, _, text in outcomes if text}
    differ = {name: text for name, text in remoted.items() if name not in native}
    return {"programs": len(outcomes), "native_failed": native, "remoted_failed": remoted, "ok": not differ}


def copies(bench):
    """4: copies, launches, waiting, the first kernel."""
    program, mib = os.path.join(NATIVE, "sluice-driver-bench"), str(bench.options.copy_mib)
    measured = {"native": bench.lines(bench.native([program, bench.driver, mib], 60))[-1]}
    for way in ("unix", "tls") if bench.options.short else ("unix", "tcp", "tls", "rtt1"):
        measured[way] = bench.lines(bench.remoted([program, "libcuda.so.1", mib], way, 60))[-1]
    result = dict(measured)
    native = measured["native"]
    for way, figures in measured.items():
        if way != "native" and "error" not in native and "error" not in figures:
            result[f"{way}_share"] = {
                name: round(figures[name] / native[name], 4) for name in native if name.endswith("_gb_s")
            }
    result["ok"] = all("error" not in figures for figures in measured.values())
    return result


def parking(bench):
    """5: the lease's view and its limit; memory that is given back and lies at its addresses again."""
    command = [sys.executable, bench.part("parking.py"), str(bench.options.park_mib)]
    found = bench.lines(bench.remoted(command, "unix", 120, ("--joined", "--no-attach")))[-1]
    found["ok"] = "error" not in found and found["total_bytes"] == bench.memory
    found["ok"] = found["ok"] and found["parked_bytes"] == bench.options.park_mib * MIB
    return found


def share(bench):
    """Whether leases get their shares of the card."""
    program = os.path.join(NATIVE, "sluice-share-bench")
    seconds = max(0.3, min(1.5, (bench.left() - 20) / 40))
    options = [f"--driver={bench.driver}", *(f"--worker-env={name}" for name in bench.options.worker_env)]
    figures = bench.lines(bench.native([program, f"{seconds:.2f}", "cuda", *options], 150))[-1]
    figures["measured_s"] = round(seconds, 2)
    figures["reach"] = SHARES
    # Without the arbiter they must not hold, or nothing was measured.
    figures["ok"] = (
        "error" not in figures
        and figures["max_deviation_pp"] <= SHARES["max_deviation_pp"] < figures["off_max_deviation_pp"]
        and all(figures[name] >= SHARES[name] for name in ("total_vs_solo", "idle_neighbour"))
    )
    return figures


def installed(*modules):
    """Refuses where a package is missing."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise Problem(f"not installed here: {', '.join(missing)}")


def samples(bench, program, ways):
    """Runs a program of samples natively, once by each way, and natively again where a result differs in a bit: only
    then it matters how far native runs differ."""

    def values(outcome):
        return {line["name"]: line for line in bench.lines(outcome) if "name" in line}

    command = [sys.executable, bench.part(program)]
    native = values(bench.native(command, 60))
    if native and all("error" in line for line in native.values()):
        raise Problem(f"it does not work natively either: {next(iter(native.values()))['error']}")
    remoted = {way: values(bench.remoted(command, way, 90)) for way in ways}
    again = values(bench.native(command, 60)) if any(differ(native, found) for found in remoted.values()) else {}
    result = {}
    for way in ways:
        result[way] = compare_values({k: v for k, v in native.items() if k != "failed"}, again, remoted[way])
        for kind, found in (("failed", remoted[way]), ("native_failed", native)):
            if "failed" in found:
                result[way][kind] = found["failed"]["error"]
    compared = [value for way in ways for value in result[way].values() if isinstance(value, dict)]
    compared = [value for value in compared if not {"native", "skipped"} & value.keys()]
    result["ok"] = bool(compared) and all(value.get("ok") for value in compared)
    return result


def operations(bench):
    """2: results of PyTorch's operations."""
    installed("torch")
    return samples(bench, "torch_operations.py", ("unix",))


def attach(bench):
    """A GPU that comes and goes: losses are those of a run without a pause, and arrays lie where they were."""
    result, within, ran = {}, True, False
    for name in ("torch", "jax"):
        try:
            installed(name)
        except Problem as problem:
            result[name] = {"cannot": str(problem)}
            continue
        command = [sys.executable, bench.part(f"{name}_attach.py")]
        native = bench.lines(bench.native(command, 40))[-1]
        mine = bench.lines(bench.remoted([*command, "remoted"], "unix", 60, ("--joined", "--no-attach")))[-1]
        if "losses" not in native:
            result[name] = {"cannot": f"it does not work natively either: {native.get('error')}"}
            continue
        ran = True
        losses_off = off(mine, native)
        # How far native runs differ matters only where ours does.
        losses_off_natively = off(bench.lines(bench.native(command, 40))[-1], native) if losses_off else None
        result[name] = {**mine, "losses_off": losses_off, "losses_off_natively": losses_off_natively}
        paused = mine.get("without_a_gpu", "works") != "works"
        within = within and paused and losses_off is not None and losses_off <= max(losses_off_natively or 0, 1e-6)
    try:
        installed("numba")
        command = [sys.executable, bench.part("numba_attach.py")]
        mine = bench.lines(bench.remoted(command, "unix", 40, ("--joined", "--no-attach")))[-1]
        result["numba"] = mine
        paused = mine.get("without_a_gpu", "works") != "works"
        within, ran = within and paused and mine.get("as_they_were") and mine.get("works_on"), True
    except Problem as problem:
        result["numba"] = {"cannot": str(problem)}
    if not ran:
        raise Problem("none of PyTorch, JAX and Numba runs here")
    result["ok"] = bool(within)
    return result


def killed(bench):
    """What serves a program that trains is killed: an error soon, no hang, and it trains on another lease."""

    def outcome(name):
        try:
            installed(name)
        except Problem as problem:
            return {"cannot": str(problem)}
        command = [sys.executable, bench.part("killed.py"), name]
        found = bench.lines(bench.remoted(command, "unix", 60, ("--no-attach",)))[-1]
        soon = found.get("error_after_s", float("inf")) <= KILLED_WITHIN[name]
        return {**found, "reach_s": KILLED_WITHIN[name], "ok": soon and found.get("learns_again", False)}

    with concurrent.futures.ThreadPoolExecutor(len(KILLED_WITHIN)) as pool:
        result = dict(zip(KILLED_WITHIN, pool.map(outcome, KILLED_WITHIN)))
    oks = [found["ok"] for found in result.values() if "ok" in found]
    if not oks:
        raise Problem("none of PyTorch, JAX and Numba is installed here")
    return {**result, "ok": all(oks)}


def training(bench):
    """2: PyTorch's training steps."""
    installed("torch")
    runs = {}
    command = [sys.executable, bench.part("torch_training.py")]
    order = ("native", *WAYS, "again")
    for number, way in enumerate(order):
        # Each gets as much of what is left as those behind it: a slow one does not cost another its figures.
        limit = bench.left() / (len(order) - number)
        native = way in ("native", "again")
        outcome = bench.native(command, limit) if native else bench.remoted(command, way, limit)
        runs[way] = {line["name"]: line for line in bench.lines(outcome)}
    ratios, within = compare_training(runs)
    return {"ratios": ratios, "training": runs, "ok": within}


def with_our_cupy(bench):
    """Puts the modules of our build into a copy of the CuPy that is installed: its own hold a static runtime."""
    installed("cupy")
    try:
        version = importlib.metadata.version("cupy-cuda13x")
    except importlib.metadata.PackageNotFoundError:
        raise Problem("CuPy is installed here, but not by its package for CUDA 13") from None
    ours = os.path.join(HERE, "cupy-build", f"cp{sys.version_info.major}{sys.version_info.minor}-{version}")
    if not os.path.isdir(ours):
        raise Problem(f"our build of CuPy {version} for Python {platform.python_version()} is not carried")
    ours_in = os.path.join(bench.folder, "cupy")
    packages = os.path.dirname(importlib.util.find_spec("cupy").submodule_search_locations[0])
    for name in ("cupy", "cupy_backends"):
        shutil.copytree(os.path.join(packages, name), os.path.join(ours_in, name), copy_function=os.symlink)
    for folder, _, files in os.walk(ours):
        for file in files:
            target = os.path.join(ours_in, os.path.relpath(folder, ours), file)
            os.unlink(target)
            shutil.copyfile(os.path.join(folder, file), target)
    bench.python_path = ours_in


def frameworks(bench):
    """3: samples of JAX, Numba, Triton and TensorFlow, and of CuPy with the modules of our build."""
    result, oks = {}, []
    for name, also in (("jax", []), ("numba", []), ("triton", ["torch"]), ("tensorflow", [])):
        try:
            installed(name, *also)
            result[name] = samples(bench, f"{name}_samples.py", ("unix",))
            oks.append(result[name]["ok"])
        except Problem as problem:
            result[name] = {"cannot": str(problem)}
    try:
        with_our_cupy(bench)
        result["cupy"] = samples(bench, "cupy_samples.py", ("unix",))
        oks.append(result["cupy"]["ok"])
    except Problem as problem:
        result["cupy"] = {"cannot": str(problem)}
    if not oks:
        result["cannot"] = "none of JAX, Numba, Triton, TensorFlow and CuPy is installed here"
    result["ok"] = bool(oks) and all(oks)
    return result


RUNS = {
    "training": training, "4": copies, "5": parking, "attach": attach, "killed": killed, "share": share,
    "1": conformance, "cuda": cuda_programs, "operations": operations, "3": frameworks,
}


def table(report):
    """The report for people."""
    lines = [f"{report['device']} · driver {report['driver_version']} · {report['date']}", ""]

    def walk(value, path):
        if isinstance(value, dict):
            for name, inner in value.items():
                if name not in ("name", "losses", "samples", "digest"):
                    walk(inner, [*path, str(name)])
        else:
            text = f"{value:.4g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
            lines.append(f"{'  ' + ' · '.join(path):<64} {text}")

    for name, part in report["parts"].items():
        lines.append(f"part {name}: {RUNS[name].__doc__.split(':')[-1].strip()}  [{part['seconds']} s]")
        walk({key: value for key, value in part.items() if key != "seconds"}, [])
        lines.append("")
    return "\n".join(lines)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="folder for the results")
    parser.add_argument("--parts", default=",".join(PARTS), help="which, in this order (default: all)")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for all of it")
    parser.add_argument("--driver", help="the driver's library, where the dynamic linker does not find it")
    parser.add_argument("--memory", type=int, help="bytes of the lease (default: nine tenths of the card)")
    parser.add_argument("--copy-mib", type=int, default=512)
    parser.add_argument("--park-mib", type=int, default=10 * 1024)
    parser.add_argument("--worker-env", action="append", default=[], help="passed on to gpud")
    parser.add_argument("--skip", action="append", default=[], help="a conformance program that is left out")
    parser.add_argument("--log", help="a file for all that programs and gpud say")
    parser.add_argument("--short", action="store_true", help="fewer repetitions and ways")
    options = parser.parse_args()
    names = [name.strip() for name in options.parts.split(",")]
    unknown = [name for name in names if name not in RUNS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for file in glob.glob(f"{NATIVE}/**", recursive=True):
        os.chmod(file, 0o755)
    began = time.monotonic()
    try:
        bench = Bench(options)
    except (Problem, OSError, subprocess.SubprocessError) as problem:
        sys.exit(f"gpu-check: {problem}")
    profile = bench.device["profile"]
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    model = re.sub(r"[^a-z0-9]+", "-", bench.device["gpuType"].lower()).strip("-")
    base = os.path.join(options.out, f"gpu-{model}-{date}")
    report = {
        "name": "gpu-check", "date": date, "device": bench.device["model"], "memory_bytes": bench.memory,
        "compute_capability": f"{profile['computeCapabilityMajor']}.{profile['computeCapabilityMinor']}",
        "driver_version": profile["driverVersion"], "cores": os.cpu_count(), "kernel": platform.release(),
        "python": platform.python_version(), "parts": {},
    }
    os.makedirs(options.out, exist_ok=True)
    files = threading.Lock()

    def run(name):
        started = time.monotonic()
        begun = bench.begin(name)
        try:
            if begun.left() > 2:
                found = RUNS[name](begun)
            else:
                found, begun.cut = {"ok": False}, ["no time was left"]
        except Problem as problem:
            found = {"cannot": str(problem)}
        except Exception as error:  # noqa: BLE001 - a part that breaks does not stop the rest
            found = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        if begun.cut:
            found["cut"] = begun.cut
        if name in bench.ended:
            bench.ended[name].set()
        with files:
            report["parts"][name] = {**found, "seconds": round(time.monotonic() - started, 1)}
            report["seconds"] = round(time.monotonic() - began, 1)
            # After each part: what is done is kept, whatever becomes of the rest.
            for path, text in ((f"{base}.json", json.dumps(report, indent=1)), (f"{base}.txt", table(report))):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text + "\n")
            words = "cannot run: " + found["cannot"] if "cannot" in found else "ok" if found.get("ok") else "NOT ok"
            words += f", cut: {'; '.join(found['cut'])}" if "cut" in found else ""
            print(f"part {name}: {words} ({report['parts'][name]['seconds']} s)", flush=True)

    with concurrent.futures.ThreadPoolExecutor(len(COMPARED)) as pool:
        groups = together(names)
        for number, group in enumerate(groups):
            bench.behind = groups[number + 1:]
            bench.ended = {name: threading.Event() for name in group}
            list(pool.map(run, group))
    shutil.rmtree(bench.folder, ignore_errors=True)
    print(table(report))
    print(f"{base}.json")


if __name__ == "__main__":
    main()
