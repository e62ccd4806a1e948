"""What goes wrong while Numba works on a real gpud: its worker is killed, and the parent of a data loader is."""

import os
import pathlib
import subprocess
import sys

import pytest

native = os.environ.get("SLUICE_NATIVE_DIR")
pytestmark = pytest.mark.skipif(not native, reason="SLUICE_NATIVE_DIR is not set")
HERE = pathlib.Path(__file__).resolve().parents[1]

# In a program's first lines: our libraries, as the start-up hook finds them, and kernels.
NUMBA = """
import json, os, sys, time, warnings
sys.path.insert(0, os.environ["PACKAGE"])
from sluice_gpu import _hook
_hook.install()
warnings.simplefilter("ignore")
import numpy as np
from numba import cuda

@cuda.jit
def scale(data, factor):
    i = cuda.grid(1)
    if i < data.size:
        data[i] *= factor

@cuda.jit
def descend(x, y, w, rate):
    j = cuda.threadIdx.x
    gradient = 0.0
    for i in range(x.shape[0]):
        error = -y[i]
        for k in range(x.shape[1]):
            error += x[i, k] * w[k]
        gradient += error * x[i, j]
    cuda.syncthreads()
    w[j] -= rate * gradient / x.shape[0]
"""

# Learns a linear function until it is told to stop; told `again`, it borrows anew after an error and goes on.
TRAINS = NUMBA + """
random = np.random.default_rng(3)
inputs, wanted = random.standard_normal((64, 8)), np.arange(8.0)

def train(until):
    x, y, w = (cuda.to_device(a) for a in (inputs, inputs @ wanted, np.zeros(8)))
    steps = 0
    while True:
        for _ in range(8):
            descend[1, 8](x, y, w, 0.1)
        found = w.copy_to_host()
        steps += 1
        if steps == 1:
            print("works", flush=True)
        if until(found):
            return steps

close = lambda found: bool(np.abs(found - wanted).max() < 0.01)
if os.environ.get("OWN_LEASE"):
    import sluice_gpu
    lease = sluice_gpu.attach("0.5")
if sys.argv[1] == "again":
    for _ in range(int(sys.argv[2])):
        try:
            train(lambda found: False)
        except Exception as error:
            print("failed", json.dumps(f"{type(error).__name__}: {error}"), flush=True)
        lease.lease = None
        lease = sluice_gpu.attach("0.5")
    print("learned", train(close), flush=True)
else:
    train(lambda found: os.path.exists(sys.argv[2]))
    print("learned", train(close), flush=True)
"""

KILLS = """
import json, os, pathlib, random, signal, subprocess, sys, time

program, mark = sys.argv[1], sys.argv[2]

def children(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]

def serving():
    # A worker without a client has one thread.
    return {worker for worker in children(gpud) if len(list(pathlib.Path(f"/proc/{worker}").glob("task/*"))) > 1}

gpud = next(pid for pid in children(os.getppid()) if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "gpud")
own = {**os.environ, "OWN_LEASE": "1"}
start = lambda *words: subprocess.Popen([sys.executable, program, *words], env=own, stdout=subprocess.PIPE, text=True)
heard = lambda process: process.stdout.readline().split(maxsplit=1)

bystander = start("until", mark)
assert heard(bystander) == ["works"]
untouched = serving()
ROUNDS = 3
victim = start("again", str(ROUNDS))
for _ in range(ROUNDS):
    assert heard(victim) == ["works"]
    time.sleep(random.uniform(0, 0.3))
    (worker,) = serving() - untouched
    os.kill(worker, signal.SIGKILL)
    killed = time.monotonic()
    word, error = heard(victim)
    print("after", time.monotonic() - killed, word, json.loads(error))
assert heard(victim) == ["works"]
print("victim", *heard(victim))
print("untouched", untouched <= serving())
pathlib.Path(mark).touch()
assert heard(bystander) == ["works"], "of its second training"
print("bystander", *heard(bystander))
print("ended", victim.wait(), bystander.wait())
"""


def loopback(tmp_path, options, words):
    """Run a Python program beside a gpud and a broker of its own; what it printed."""
    command = [pathlib.Path(native).resolve() / "sluice-loopback", *options, "--", sys.executable, *words]
    environment = {**os.environ, "PACKAGE": str(HERE), "HOME": str(tmp_path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    return ran.stdout


def test_a_killed_worker_is_an_error_within_five_seconds_and_nobody_elses(tmp_path):
    program, kills = tmp_path / "trains.py", tmp_path / "kills.py"
    program.write_text(TRAINS)
    kills.write_text(KILLS)
    lines = loopback(tmp_path, ["--no-attach"], [kills, program, tmp_path / "stop"]).splitlines()
    failures = [line.split(maxsplit=3) for line in lines if line.startswith("after ")]
    assert len(failures) == 3
    for _, seconds, word, error in failures:
        assert word == "failed" and float(seconds) < 5, error
        assert "CUDA_ERROR_DEVICE_UNAVAILABLE" in error or "GPU was lost" in error, error
    # The same program learned with its next GPU, and the other one never noticed.
    assert any(line.startswith("victim learned") for line in lines), lines
    assert any(line.startswith("bystander learned") for line in lines), lines
    assert "untouched True" in lines and "ended 0 0" in lines, lines


# A loader of batches: forked from a program that uses CUDA already, its workers fill pipes; batches travel from pinned
# memory. One worker ends early as a program does, with everything that is registered for the end of a process.
LOADS = NUMBA + """
LENGTH, WORKERS = 1 << 18, 3
kept = cuda.device_array(96 << 20, np.uint8)
scale[1, 32](cuda.to_device(np.ones(32)), 2.0)

def work(number, pipe):
    with os.fdopen(pipe, "wb") as out:
        for batch in range(4 if number == 0 else 1 << 30):
            out.write(np.full(LENGTH, batch * WORKERS + number, np.float64).tobytes())
            out.flush()

pipes, pids = [], []
for number in range(WORKERS):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        for pipe in pipes:
            pipe.close()
        try:
            work(number, writing)
        except BrokenPipeError:
            pass
        sys.exit(0)
    os.close(writing)
    pipes.append(os.fdopen(reading, "rb"))
    pids.append(pid)
pinned, device, stream = cuda.pinned_array(LENGTH), cuda.device_array(LENGTH), cuda.stream()
for batch in range(1 << 30):
    for number, pipe in enumerate(pipes):
        if number == 0 and batch >= 4:
            continue
        pinned[:] = np.frombuffer(pipe.read(LENGTH * 8))
        device.copy_to_device(pinned, stream=stream)
        scale[LENGTH // 256, 256, stream](device, 2.0)
        found = device.copy_to_host(stream=stream)
        stream.synchronize()
        assert (found == 2.0 * (batch * WORKERS + number)).all()
    if batch == 4:
        assert os.waitpid(pids[0], 0) == (pids[0], 0), "the worker that ended early"
    if batch == 8:
        print(json.dumps(pids[1:]), flush=True)
"""

LEAVES = NUMBA + """
import signal, subprocess

free = lambda: cuda.current_context().get_memory_info().free
before = free()
loader = subprocess.Popen([sys.executable, sys.argv[1]], stdout=subprocess.PIPE, text=True)
workers = json.loads(loader.stdout.readline())
during = free()
print("alive", all(os.path.exists(f"/proc/{pid}") for pid in workers), "holds", before - during >= 96 << 20)
loader.send_signal(signal.SIGKILL)
loader.wait()
until = time.monotonic() + 20
ended = lambda pid: not os.path.exists(f"/proc/{pid}") or open(f"/proc/{pid}/stat").read().rsplit(") ")[1][0] == "Z"
while time.monotonic() < until and not (all(map(ended, workers)) and free() == before):
    time.sleep(0.05)
print("gone", all(map(ended, workers)), "free again", free() == before)
"""


def test_a_data_loaders_workers_leave_its_gpu_alone_and_nothing_stays_when_it_is_killed(tmp_path):
    program, leaves = tmp_path / "loads.py", tmp_path / "leaves.py"
    program.write_text(LOADS)
    leaves.write_text(LEAVES)
    lines = loopback(tmp_path, ["--memory=268435456", "--gpud=--return-time=2"], [leaves, program]).splitlines()
    assert lines == ["alive True holds True", "gone True free again True"]
