"""100 batches through a network; the results are read together at the end."""

import torch
from torch import nn

ITERATIONS = 100


def program():
    """Yields after each batch, the last time after the results were read."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 10), nn.Softmax(dim=1))
    model = model.to("cuda").eval()
    batches = torch.rand(ITERATIONS, 32, 64)
    results = []
    with torch.inference_mode():
        for number, batch in enumerate(batches):
            results.append(model(batch.pin_memory().to("cuda", non_blocking=True)))
            if number == ITERATIONS - 1:
                torch.cat(results).cpu()
            yield
