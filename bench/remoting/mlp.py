"""One training step of a small network: batches from pinned memory, SGD with momentum, the loss read after each."""

import torch
from torch import nn
from torch.nn import functional

ITERATIONS = 8


def program():
    """Yields after each step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs, labels = torch.rand(ITERATIONS, 32, 64).pin_memory(), torch.randint(0, 10, (ITERATIONS, 32)).pin_memory()
    for batch, wanted in zip(inputs, labels):
        batch, wanted = batch.to("cuda", non_blocking=True), wanted.to("cuda", non_blocking=True)
        loss = functional.cross_entropy(model(batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        yield
