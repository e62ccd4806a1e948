"""What PyTorch computes: one JSON line for each operation, with samples and a digest of its result."""

import ctypes
import datetime
import hashlib
import json

import torch
import torch.distributed as dist
import torch.nn.functional as F

torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False
DEVICE = "cuda"
# curandRngType_t
CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161


class Skipped(Exception):
    """Why this card or this build of PyTorch cannot do it."""


def random(*shape, dtype=torch.float32, seed=1):
    """The same numbers in every run."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def matmul():
    return random(512, 384) @ random(384, 640, seed=2)


def matmul_bf16():
    return random(1024, 1024, dtype=torch.bfloat16) @ random(1024, 1024, dtype=torch.bfloat16, seed=2)


def matmul_f64_batched():
    return torch.bmm(random(8, 64, 32, dtype=torch.float64), random(8, 32, 48, dtype=torch.float64, seed=2))


def convolution():
    x, w = random(4, 16, 32, 32).requires_grad_(), random(24, 16, 3, 3, seed=2).requires_grad_()
    y = F.conv2d(x, w, padding=1)
    y.square().sum().backward()
    return torch.cat([y.flatten(), x.grad.flatten(), w.grad.flatten()])


def attention():
    q, k, v = (random(2, 8, 256, 64, dtype=torch.bfloat16, seed=seed) for seed in (1, 2, 3))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def ctc_loss():
    # By cuDNN: labels of 32 bits, and inputs of one length.
    scores = random(20, 4, 8).requires_grad_()
    labels = torch.tensor([1, 2, 3, 4, 5, 6, 7, 1, 3], dtype=torch.int32)
    lengths = torch.full((4,), 20, dtype=torch.int32), torch.tensor([2, 3, 1, 3], dtype=torch.int32)
    loss = F.ctc_loss(F.log_softmax(scores, dim=2), labels, *lengths, reduction="none")
    loss.sum().backward()
    return torch.cat([loss.detach(), scores.grad.flatten()])


def fft():
    return torch.view_as_real(torch.fft.rfft2(random(4, 128, 96)))


def svd():
    return torch.linalg.svdvals(random(96, 64))


def solve():
    a = random(128, 128)
    return torch.linalg.solve(a @ a.T + 128 * torch.eye(128, device=DEVICE), random(128, 8, seed=2))


def eigen():
    a = random(64, 64)
    return torch.linalg.eigvalsh(a + a.T)


def sort():
    return torch.sort(random(200_000)).values


def random_numbers():
    torch.cuda.manual_seed(7)
    return torch.rand(100_000, device=DEVICE)


def random_normal():
    torch.cuda.manual_seed(7)
    return torch.cat([torch.randn(100_000, device=DEVICE), torch.empty(10_000, device=DEVICE).exponential_()])


def curand():
    # By the library itself: the generators above are PyTorch's own kernels.
    try:
        library = ctypes.CDLL("libcurand.so.10")
    except OSError as error:
        raise Skipped(f"no cuRAND is installed here: {error}") from None
    numbers, generator = torch.empty(100_000, device=DEVICE), ctypes.c_void_p()

    def ok(status):
        if status != 0:
            raise RuntimeError(f"cuRAND answers {status}")

    ok(library.curandCreateGenerator(ctypes.byref(generator), CURAND_RNG_PSEUDO_PHILOX4_32_10))
    ok(library.curandSetPseudoRandomGeneratorSeed(generator, ctypes.c_ulonglong(7)))
    ok(library.curandGenerateNormal(generator, ctypes.c_void_p(numbers.data_ptr()), ctypes.c_size_t(numbers.numel()),
                                    ctypes.c_float(1), ctypes.c_float(2)))
    ok(library.curandDestroyGenerator(generator))
    return numbers


def sparse():
    dense = random(256, 256)
    return torch.sparse.mm(torch.where(dense.abs() > 1.5, dense, 0).to_sparse_csr(), random(256, 32, seed=2))


def cusparselt():
    if torch.cuda.get_device_capability() < (8, 0):
        raise Skipped("cuSPARSELt needs compute capability 8.0")
    if not torch.backends.cusparselt.is_available():
        raise Skipped("this build of PyTorch has no cuSPARSELt")
    dense = random(256, 256, dtype=torch.float16) * torch.tensor([0, 1, 0, 1], device=DEVICE).half().tile(256, 64)
    halved = torch.sparse.SparseSemiStructuredTensorCUSPARSELT.from_dense(dense)
    return torch.mm(halved, random(256, 128, dtype=torch.float16, seed=2))


def nccl():
    # Of one rank: each of these leaves its numbers or copies them, by way of a communicator.
    if not dist.is_available() or not dist.is_nccl_available():
        raise Skipped("this build of PyTorch has no NCCL")
    if not dist.is_initialized():
        patience = datetime.timedelta(seconds=20)
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, timeout=patience)
    x = random(4096)
    summed, gathered, scattered = x.clone(), torch.empty_like(x), torch.empty_like(x)
    dist.all_reduce(summed)
    dist.all_gather_into_tensor(gathered, x)
    dist.reduce_scatter_tensor(scattered, x)
    dist.broadcast(x, 0)
    return torch.cat([summed, gathered, scattered, x])


def mixed_precision():
    x, w = random(64, 256), random(128, 256, seed=2).requires_grad_()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.layer_norm(F.gelu(F.linear(x, w)), (128,)).float().square().mean()
    loss.backward()
    return w.grad


def graph():
    x, w = random(256, 256), random(256, 256, seed=2)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            y = torch.relu(x @ w) * 0.5
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = torch.relu(x @ w) * 0.5
    for step in range(4):
        x.add_(step)
        captured.replay()
    return y


def compiled():
    @torch.compile
    def body(x, y):
        return torch.softmax(x * 2 + y.sin(), dim=-1).cumsum(-1)

    return body(random(256, 512), random(256, 512, seed=2))


# NCCL comes last: where it waits for what does not come, PyTorch ends the process.
OPERATIONS = (
    matmul, matmul_bf16, matmul_f64_batched, convolution, attention, ctc_loss, fft, svd, solve, eigen, sort,
    random_numbers, random_normal, curand, sparse, cusparselt, mixed_precision, graph, compiled, nccl,
)


def show(operation):
    """One operation, whatever becomes of it; and how far it is off when it is done again, of its largest number."""
    try:
        result, *others = (operation().detach().double().cpu().flatten() for _ in range(4))
        step = max(1, result.numel() // 64)
        scale = result.abs().max().item() or 1.0
        print(json.dumps({
            "name": operation.__name__, "samples": result[::step].tolist(),
            "digest": hashlib.sha256(result.numpy().tobytes()).hexdigest(),
            "noise": max((result - other).abs().max().item() for other in others) / scale,
        }), flush=True)
    except Skipped as why:
        print(json.dumps({"name": operation.__name__, "skipped": str(why)}), flush=True)
    except Exception as error:  # noqa: BLE001 - the others are asked too
        text = f"{type(error).__name__}: {' | '.join(str(error).strip().splitlines()[:3])}"
        print(json.dumps({"name": operation.__name__, "error": text[:500]}), flush=True)


for one in OPERATIONS:
    show(one)
if dist.is_available() and dist.is_initialized():
    dist.destroy_process_group()
