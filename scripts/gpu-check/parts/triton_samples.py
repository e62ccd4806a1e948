"""Triton on the GPU, with PyTorch's tensors."""

import torch
import triton
import triton.language as tl
from samples import show


@triton.jit
def softmax_kernel(out, x, columns, WIDTH: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, WIDTH)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, values / tl.sum(values, axis=0), mask=at < columns)


@triton.jit
def product_kernel(out, x, y, n, SIZE: tl.constexpr):
    rows = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    columns = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for start in range(0, n, SIZE):
        inner = start + tl.arange(0, SIZE)
        left = tl.load(x + rows[:, None] * n + inner[None, :])
        right = tl.load(y + inner[:, None] * n + columns[None, :])
        total += tl.dot(left, right)
    tl.store(out + rows[:, None] * n + columns[None, :], total)


def random(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).cuda()


def softmax():
    x = random(300, 781)
    out = torch.empty_like(x)
    softmax_kernel[(300,)](out, x, 781, WIDTH=1024)
    return out.cpu()


def product():
    x, y = random(256, 256).half(), random(256, 256, seed=2).half()
    out = torch.empty(256, 256, device="cuda")
    product_kernel[(8, 8)](out, x, y, 256, SIZE=32)
    return out.cpu()


show(softmax, product)
