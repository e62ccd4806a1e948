"""PyTorch trains while its GPU goes and comes back: one JSON line with the losses and how long giving and taking took.

    python3 torch_attach.py            natively, without a pause
    python3 torch_attach.py remoted    in a workspace where nothing is attached
"""

import json
import sys

import torch
import torch.nn.functional as F
from samples import timed
from torch_training import Gpt, text

STEPS = 6
remoted = sys.argv[1:] == ["remoted"]


def begin():
    """A model with its optimizer and its batch."""
    torch.manual_seed(0)
    model = Gpt().to("cuda")
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4), *text(1, 128)


def learn(model, optimizer, inputs, wanted):
    """The losses of some steps."""
    losses = []
    for _ in range(STEPS):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            output = model(inputs)
            loss = F.cross_entropy(output.reshape(-1, output.shape[-1]).float(), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if remoted:
    import sluice_gpu

    lease, attach_s = timed(lambda: sluice_gpu.attach("0.5"))
state = begin()
losses = learn(*state)
found = {"name": "torch"}
if remoted:
    held = torch.cuda.memory_allocated()
    _, detach_s = timed(lease.detach)
    try:
        torch.ones(8, device="cuda").sum().item()
        without = "works"
    except Exception as error:  # noqa: BLE001 - whatever PyTorch makes of it
        without = str(error).splitlines()[0]
    _, attach_again_s = timed(lambda: sluice_gpu.attach("0.5"))
    more, first_steps_s = timed(lambda: learn(*state))
    losses += more
    found |= {
        "held_bytes": held, "attach_s": attach_s, "detach_s": detach_s, "without_a_gpu": without,
        "attach_again_s": attach_again_s, "first_steps_s": first_steps_s,
    }
else:
    losses += learn(*state)
print(json.dumps({**found, "losses": losses}))
