"""A fresh workspace, for tests of what a framework does before a GPU is attached and afterwards."""

import os
import pathlib
import subprocess
import sys
import tempfile

# `cell` is what a person runs; it is there before this.
BEFORE_AND_AFTER = """
import sluice_gpu

try:
    cell()
except Exception as error:
    print(type(error).__name__, error)
else:
    raise SystemExit("it worked without a GPU")
with sluice_gpu.attach("0.5"):
    cell()
    print("works when attached")
"""


# As above, until the process that serves it is killed, and then on another GPU.
UNTIL_KILLED = """
import random, time
import fresh, sluice_gpu

sluice_gpu.attach("0.5")
cell()
killed = fresh.kill_own_worker(random.uniform(0.1, 0.5))
try:
    while True:
        cell()
except Exception as error:
    print("failed after", time.monotonic() - killed[0], type(error).__name__, str(error).splitlines()[:1])
sluice_gpu.attach("0.5")
cell()
print("works again")
"""


def run(program, *options):
    """Run a program in a workspace of its own where nothing is attached, its packages those of this one and its modules
    those of the current folder; what it printed, and said on stderr."""
    loopback = os.path.join(os.environ["SLUICE_NATIVE_DIR"], "sluice-loopback")
    environment = {name: value for name, value in os.environ.items() if name != "SLUICE_OWNER_SOCKET"}
    environment["PYTHONPATH"] = f"{os.getcwd()}:{environment.get('PYTHONPATH', '')}"
    with tempfile.TemporaryDirectory() as folder:
        # A file: Triton reads its kernels' source.
        file = pathlib.Path(folder) / "program.py"
        file.write_text(program)
        command = [loopback, "--no-attach", *options, "--", sys.executable, file]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    return ran.stdout, ran.stderr


def fails_then_works(program):
    """Run a program that defines `cell()`: it has to fail with the sentence that says what to do, and to work in the same
    process when a GPU is attached."""
    said, errors = run(program + BEFORE_AND_AFTER)
    assert said.splitlines()[-1] == "works when attached"
    assert "this notebook has no GPU. Run %gpu attach 0.5" in said + errors


def fails_when_its_worker_is_killed(program, within=5):
    """Run a program that defines `cell()` again and again, and kill its worker meanwhile: an error within so many seconds,
    and the same process works when it has attached another GPU."""
    said, _ = run(program + UNTIL_KILLED)
    failed, again = said.splitlines()[-2:]
    _, _, seconds, *error = failed.split()
    assert float(seconds) < within, error
    assert again == "works again"


def kill_own_worker(after):
    """In a program that :func:`run` runs and that has attached: ends the process that serves it, as many seconds from
    now; the time of that is in the list that is returned."""
    import signal
    import threading
    import time

    def children(parent):
        found = []
        # Not every kernel lists a process's children.
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(stat.parent.name))
            except OSError:
                continue
        return found

    # A worker without a client has fewer threads, with NVIDIA's driver too.
    workers = [child for pid in children(os.getppid()) for child in children(pid)]
    own = max(workers, key=lambda pid: len(list(pathlib.Path(f"/proc/{pid}/task").iterdir())))
    times = []

    def kill():
        os.kill(own, signal.SIGKILL)
        times.append(time.monotonic())

    threading.Timer(after, kill).start()
    return times
