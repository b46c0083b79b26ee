"""Cost of MR²: time against cross-entropy and a per-class loop, extra memory, fraction of a training step.

    python benchmarks/loss_cost.py            # all tables, about two minutes
    python benchmarks/loss_cost.py --quick    # the three smallest shapes only

Each row interleaves the competitors in one process and compares their minima. The loop computes MR² as most published
code does, with Python loops over all classes and the same 2-norms.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from classgap.losses import MR2Loss

SHAPES = [(10, 128, 64), (100, 128, 64), (1000, 256, 2048), (1000, 1024, 512), (10000, 1024, 512)]
MEMORY_CASES = {"K=1000": 1000, "all one class": 1}


class LoopMR2(nn.Module):
    """Reference MR² with Python loops over all classes, as in the published code."""

    def __init__(self, num_classes: int, decay: float = 0.9) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("mean_norm", torch.zeros(num_classes))
        self.register_buffer("spread", torch.zeros(num_classes))

    def forward(self, logits: Tensor, targets: Tensor, features: Tensor) -> Tensor:
        num_classes = logits.shape[1]
        for k in range(num_classes):
            rows = features[targets == k].detach()
            if len(rows) > 0:
                self.update(k, rows)
        root = (self.mean_norm + self.spread).pow(1 / 3)
        gamma = num_classes * root / root.sum()
        value = F.cross_entropy(logits / gamma[targets, None], targets)
        slack = 2 * self.spread.mean()
        pull = features.new_zeros(())
        for k in range(num_classes):
            rows = features[targets == k]
            if len(rows) > 1:
                distance = (rows[:, None] - rows[None]).norm(dim=2).pow(2)
                itself = torch.eye(len(rows), dtype=torch.bool)
                positives = torch.exp(distance.masked_fill(itself, 0) - slack).masked_fill(itself, 0).sum(dim=1)
                pull = pull + torch.log1p(positives).sum()
        return value + 0.1 * pull / len(targets)

    def update(self, k: int, rows: Tensor) -> None:
        center = rows.mean(dim=0)
        mean_norm, spread = center.norm().pow(2), (rows - center).norm(dim=1).pow(2).mean()
        if torch.isnan(self.mean_norm[k]) or self.mean_norm[k] == 0:
            self.mean_norm[k], self.spread[k] = mean_norm, spread
        else:
            self.mean_norm[k] = self.decay * self.mean_norm[k] + (1 - self.decay) * mean_norm
            self.spread[k] = self.decay * self.spread[k] + (1 - self.decay) * spread


def batch(num_classes: int, size: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(size, num_classes, generator=generator).requires_grad_()
    targets = torch.randint(num_classes, (size,), generator=generator)
    features = (torch.randn(size, width, generator=generator) / width**0.5).requires_grad_()
    return logits, targets, features


def seconds(job: Callable[[], Tensor], leaves: tuple[Tensor, ...]) -> float:
    for leaf in leaves:
        leaf.grad = None
    start = time.perf_counter()
    job().backward()
    return time.perf_counter() - start


def fastest(jobs: dict[str, Callable[[], Tensor]], leaves: tuple[Tensor, ...], budget: float) -> dict[str, float]:
    """Minimum time of each job, taking turns until the budget in seconds is used up."""
    best = {name: min(seconds(job, leaves) for _ in range(2)) for name, job in jobs.items()}
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        for name, job in jobs.items():
            best[name] = min(best[name], seconds(job, leaves))
    return best


def time_table(shapes: list[tuple[int, int, int]], budget: float) -> None:
    print(f"{'K':>6} {'B':>5} {'d':>5} | {'CE ms':>8} {'loop ms':>8} {'MR² ms':>8} | {'loop/MR²':>8} {'MR²/CE':>7}")
    for num_classes, size, width in shapes:
        logits, targets, features = batch(num_classes, size, width)
        loop, ours = LoopMR2(num_classes), MR2Loss(num_classes)
        jobs = {
            "ce": lambda z=logits, y=targets: F.cross_entropy(z, y),
            "loop": lambda m=loop, z=logits, y=targets, f=features: m(z, y, f),
            "ours": lambda m=ours, z=logits, y=targets, f=features: m(z, y, features=f),
        }
        best = fastest(jobs, (logits, features), budget)
        print(
            f"{num_classes:6} {size:5} {width:5} | {best['ce'] * 1e3:8.3f} {best['loop'] * 1e3:8.2f} "
            f"{best['ours'] * 1e3:8.3f} | {best['loop'] / best['ours']:8.1f} {best['ours'] / best['ce']:7.2f}"
        )


def peak_megabytes(num_classes: int, with_loss: bool) -> float:
    """Peak memory of a fresh process that creates the batch, with or without the loss."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (num_classes, with_loss))


def _peak(num_classes: int, with_loss: bool) -> float:
    torch.set_num_threads(1)
    logits, targets, features = batch(1000, 8192, 512)
    targets = targets % num_classes
    logits.grad, features.grad = torch.zeros_like(logits), torch.zeros_like(features)
    if with_loss:
        MR2Loss(1000)(logits, targets, features=features).backward()
    else:
        F.cross_entropy(logits, targets).backward()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory_table() -> None:
    print("\nExtra peak memory over plain cross-entropy at B=8192, d=512, K=1000 logits")
    for name, num_classes in MEMORY_CASES.items():
        extra = peak_megabytes(num_classes, True) - peak_megabytes(num_classes, False)
        print(f"  {name:14} {extra:6.0f} MB")


class _Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Sequential(nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside))
        self.two = nn.Sequential(nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside))
        self.stride, self.grow = stride, outside - inside

    def forward(self, x: Tensor) -> Tensor:
        way = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.grow))
        return F.relu(way + self.two(F.relu(self.one(x))))


def resnet32() -> tuple[nn.Module, nn.Linear]:
    """The CIFAR ResNet-32 without its head, and the head."""
    blocks = [_Block(16, 16, 1) for _ in range(5)]
    blocks += [_Block(16, 32, 2)] + [_Block(32, 32, 1) for _ in range(4)]
    blocks += [_Block(32, 64, 2)] + [_Block(64, 64, 1) for _ in range(4)]
    stem = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten()), nn.Linear(64, 100)


def step_fraction(rounds: int) -> None:
    backbone, head = resnet32()
    images, targets = torch.randn(128, 3, 32, 32), torch.randint(100, (128,))
    loss = MR2Loss(100)
    optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(head(backbone(images)), targets).backward()
        optimizer.step()

    logits, _, features = batch(100, 128, 64)
    jobs = {
        "ce": lambda: F.cross_entropy(logits, targets),
        "ours": lambda: loss(logits, targets, features=features),
    }
    step()
    full, best = float("inf"), {"ce": float("inf"), "ours": float("inf")}
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        full = min(full, time.perf_counter() - start)
        for name, value in fastest(jobs, (logits, features), 0.1).items():
            best[name] = min(best[name], value)
    added = best["ours"] - best["ce"]
    print(f"\nResNet-32, batch 128: step {full * 1e3:.0f} ms, MR² adds {added * 1e3:.2f} ms = {added / full:.2%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.threads} thread(s), forward + backward, minima of interleaved runs\n")
    time_table(SHAPES[:3] if options.quick else SHAPES, budget=2.0 if options.quick else 8.0)
    if not options.quick:
        memory_table()
        step_fraction(rounds=5)


if __name__ == "__main__":
    main()
