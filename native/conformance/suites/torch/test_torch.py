"""PyTorch on the software GPU: what NVIDIA's libraries do for it works, against the CPU; its own kernels are machine code
for NVIDIA GPUs, and the error says so."""

import fresh
import pytest
import torch
from torch.nn import functional

TYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
NARROW = [torch.float16, torch.bfloat16]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def values(*shape, dtype=torch.float32):
    """Random numbers on the CPU."""
    return torch.randn(*shape, dtype=dtype)


def check(result, wanted):
    """Fails when a tensor of the device differs from one of the CPU by more than its type explains."""
    torch.testing.assert_close(result.cpu(), wanted)


def test_ours_is_used_before_the_installed_one():
    torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda()
    with open("/proc/self/maps", encoding="utf-8") as file:
        used = {line.split()[-1] for line in file if line.rstrip().endswith("libcublas.so.13")}
    assert len(used) == 1 and "nvidia" not in used.pop()


def test_the_device_is_there():
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert torch.cuda.get_device_capability() == (7, 5)


@pytest.mark.parametrize("dtype", [*TYPES, *NARROW])
def test_copies_bring_back_what_they_took(dtype):
    x = values(1000).to(dtype)
    assert torch.equal(x.cuda().cpu(), x)
    assert torch.equal(x.cuda().clone().cpu(), x)


@pytest.mark.parametrize("dtype", [*TYPES, *NARROW])
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_matrices(dtype, turned):
    a, b = values(37, 19).to(dtype), values(*((23, 19) if turned else (19, 23))).to(dtype)
    result = a.cuda() @ (b.cuda().t() if turned else b.cuda())
    wide = torch.float32 if dtype in NARROW else dtype
    check(result, (a.to(wide) @ (b.t() if turned else b).to(wide)).to(dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_batches_of_products(dtype):
    a, b = values(5, 7, 3, dtype=dtype), values(5, 3, 4, dtype=dtype)
    check(torch.bmm(a.cuda(), b.cuda()), torch.bmm(a, b))


def test_a_linear_layer_with_its_bias():
    x, weight, bias = values(8, 32), values(16, 32), values(16)
    check(functional.linear(x.cuda(), weight.cuda(), bias.cuda()), functional.linear(x, weight, bias))


@pytest.mark.parametrize("dtype", TYPES)
def test_vectors(dtype):
    a, x, y = values(9, 6, dtype=dtype), values(6, dtype=dtype), values(6, dtype=dtype)
    check(torch.mv(a.cuda(), x.cuda()), torch.mv(a, x))
    check(torch.dot(x.cuda(), y.cuda()), torch.dot(x, y))
    if dtype.is_complex:
        check(torch.vdot(x.cuda(), y.cuda()), torch.vdot(x, y))


def test_the_result_of_a_product_is_an_input_of_the_next():
    a, b = values(256, 256), values(256, 256)
    x, y, wanted = a.cuda(), b.cuda(), a
    for _ in range(3):
        x, wanted = x @ y, wanted @ b
    torch.testing.assert_close(x.cpu(), wanted, rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("shape", [(8,), (3, 15), (4, 6, 5)])
def test_transforms(shape):
    x = values(*shape, dtype=torch.complex64)
    dims = tuple(range(len(shape)))
    check(torch.fft.fftn(x.cuda(), dim=dims), torch.fft.fftn(x, dim=dims))
    real = values(*shape, dtype=torch.float64)
    check(torch.fft.rfftn(real.cuda(), dim=dims), torch.fft.rfftn(real, dim=dims))


@pytest.mark.parametrize("work", [lambda x: x + x, torch.relu, torch.sum, lambda x: torch.zeros(4, device="cuda")])
def test_pytorchs_own_kernels_fail_with_the_reason(work):
    x = torch.ones(4).cuda()
    with pytest.raises(RuntimeError, match="machine code for NVIDIA GPUs and no PTX; .*%gpu attach --type h200"):
        work(x)
    check(x, torch.ones(4))


PROGRAM = """
import torch

assert torch.cuda.is_available() and torch.cuda.device_count() == 1
assert torch.cuda.get_device_capability() == (7, 5)
a = torch.randn(64, 64)

def cell():
    b = a.cuda()
    torch.testing.assert_close((b @ b).cpu(), a @ a)
"""


def test_the_device_is_there_before_a_gpu_is_attached_and_works_afterwards():
    fresh.fails_then_works(PROGRAM)


def test_a_killed_worker_is_an_error_within_five_seconds():
    fresh.fails_when_its_worker_is_killed(PROGRAM)


# Batches that forked workers make come in pinned memory and are used on the GPU.
LOADS = """
import json
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        return torch.full((64, 64), index % 7.0)

kept = torch.empty(96 << 20, dtype=torch.uint8, device="cuda")
weight = torch.eye(64).cuda()
batches = iter(DataLoader(Numbers(), 4, num_workers=2, pin_memory=True, multiprocessing_context="fork"))
use = lambda batch: (batch.cuda(non_blocking=True) @ weight).cpu()

def learn(steps):
    for batch in (next(batches) for _ in range(steps)):
        assert batch.is_pinned() and torch.equal(use(batch), batch)

learn(8)
print(json.dumps([worker.pid for worker in batches._workers]), flush=True)
"""

LOADS_UNTIL_KILLED = LOADS + """
learn(1 << 40)
"""

LOADER_IS_KILLED = """
import json, os, signal, subprocess, sys, time
import torch, sluice_gpu

sluice_gpu.attach("0.5")
free = lambda: torch.cuda.mem_get_info()[0]
before = free()
loader = subprocess.Popen([sys.executable, "-c", os.environ["LOADS"]], stdout=subprocess.PIPE, text=True)
workers = json.loads(loader.stdout.readline())
print("holds", before - free() >= 96 << 20)
loader.send_signal(signal.SIGKILL)
loader.wait()
until = time.monotonic() + 20
ended = lambda pid: not os.path.exists(f"/proc/{pid}") or open(f"/proc/{pid}/stat").read().rsplit(") ")[1][0] == "Z"
while time.monotonic() < until and not (all(map(ended, workers)) and free() == before):
    time.sleep(0.05)
print("gone", all(map(ended, workers)), "free again", free() == before)
"""


def test_nothing_stays_of_a_data_loader_whose_parent_is_killed(monkeypatch):
    monkeypatch.setenv("LOADS", LOADS_UNTIL_KILLED)
    said, _ = fresh.run(LOADER_IS_KILLED, "--memory=268435456", "--gpud=--return-time=2")
    assert said.splitlines() == ["holds True", "gone True free again True"]


WORKER_IS_KILLED = """
import os, signal
import sluice_gpu

sluice_gpu.attach("0.5")
""" + LOADS + """
os.kill(batches._workers[0].pid, signal.SIGKILL)
try:
    learn(1 << 40)
except RuntimeError as error:
    print(error)
x = torch.full((64, 64), 5.0)
print("works", torch.equal(use(x), x))
"""


def test_a_data_loaders_killed_worker_is_pytorchs_error_and_the_gpu_works_on():
    said, _ = fresh.run(WORKER_IS_KILLED)
    assert "DataLoader worker (pid" in said
    assert said.splitlines()[-1] == "works True"
