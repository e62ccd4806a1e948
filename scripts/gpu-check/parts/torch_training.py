"""A launch and the wait for it, and training steps of fixed size: one JSON line for each model, with the median step,
the losses and the peak memory."""

import json
import time

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda"


class Block(nn.Module):
    """A layer of GPT-2."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.mix(self.norm_1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """GPT-2 small."""

    def __init__(self, vocabulary=50304, length=1024, width=768, heads=12, layers=12):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )
        same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet50():
    """ResNet-50."""
    layers, inputs = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for number in range(count):
            layers.append(Bottleneck(inputs, width, stride if number == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def text(batch, length):
    """Tokens and the tokens after them."""
    tokens = torch.randint(0, 50257, (batch, length + 1), generator=torch.Generator().manual_seed(3)).to(DEVICE)
    return tokens[:, :-1], tokens[:, 1:].reshape(-1)


def pictures(batch):
    """Pictures and their classes."""
    source = torch.Generator().manual_seed(3)
    return torch.randn(batch, 3, 224, 224, generator=source).to(DEVICE), torch.randint(
        0, 1000, (batch,), generator=source).to(DEVICE)


def mlp():
    """A toy."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


def toys():
    """Rows and their classes."""
    source = torch.Generator().manual_seed(3)
    return torch.randn(256, 64, generator=source).to(DEVICE), torch.randint(0, 10, (256,), generator=source).to(DEVICE)


# Steps that are not counted, and those that are.
CASES = (
    ("mlp", mlp, toys, 20, 200),
    ("gpt2_8x1024", Gpt, lambda: text(8, 1024), 6, 24),
    ("gpt2_1x128", Gpt, lambda: text(1, 128), 8, 60),
    ("resnet50_64", resnet50, lambda: pictures(64), 6, 24),
)
# A slow card makes fewer steps in so many seconds, but so many at least.
SECONDS, LEAST = 5, 5


def round_trip():
    """How long a launch and the wait for it take: the median."""
    one, times = torch.zeros(1, device=DEVICE), []
    for _ in range(300):
        began = time.perf_counter()
        one.add_(1)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    # The first ones load what they need.
    times = sorted(times[50:])
    print(json.dumps({"name": "round_trip", "launch_and_wait_ms": times[len(times) // 2] * 1e3}), flush=True)


def train(name, make, data, warm, steps):
    """One model; the loss is read at every step, as people do."""
    torch.manual_seed(0)
    torch.cuda.reset_peak_memory_stats()
    # Made on the device: on the host it takes as long as all the steps.
    with torch.device(DEVICE):
        model = make()
    inputs, wanted = data()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    losses, times = [], []
    while len(times) < steps and (len(times) < LEAST or sum(times) < SECONDS):
        began = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=name != "mlp"):
            output = model(inputs)
            loss = F.cross_entropy(output.reshape(-1, output.shape[-1]).float(), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if len(losses) > warm:
            times.append(time.perf_counter() - began)
    times.sort()
    print(json.dumps({
        "name": name, "step_ms": times[len(times) // 2] * 1e3, "best_ms": times[0] * 1e3, "steps": len(times),
        "losses": losses, "peak_bytes": torch.cuda.max_memory_allocated(),
    }), flush=True)


if __name__ == "__main__":
    round_trip()
    for case in CASES:
        try:
            train(*case)
        except Exception as error:  # noqa: BLE001 - the other models are trained too
            print(json.dumps({"name": case[0], "error": f"{type(error).__name__}: {str(error)[:400]}"}), flush=True)
        torch.cuda.empty_cache()
