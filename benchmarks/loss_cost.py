"""Cost of MR²: time against cross-entropy and a per-class loop, extra memory, fraction of a training step.

    python benchmarks/loss_cost.py            # about three minutes; stores results/loss_cost.json
    python benchmarks/loss_cost.py --quick    # the three smallest shapes only; stores nothing
    python benchmarks/loss_cost.py docs       # writes the stored figures into docs/mr2.md

In each repeat, the competitors take turns in one process, and their minima are compared. The loop computes MR² as most
published code does, with Python loops over all classes and the same 2-norms.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable, Mapping

import stored
import timing
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from classgap.losses import MR2Loss

RESULTS = stored.RESULTS / "loss_cost.json"
SECTION = stored.Section("docs/mr2.md", "cost of the loss")
SHAPES = [(10, 128, 64), (100, 128, 64), (1000, 256, 2048), (1000, 1024, 512), (10000, 1024, 512)]


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
    start = time.process_time()
    job().backward()
    return time.process_time() - start


def fastest(jobs: dict[str, Callable[[], Tensor]], leaves: tuple[Tensor, ...], budget: float) -> dict[str, float]:
    """Minimum time of each job, taking turns until the budget in seconds is used up."""
    best = {name: min(seconds(job, leaves) for _ in range(2)) for name, job in jobs.items()}
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        for name, job in jobs.items():
            best[name] = min(best[name], seconds(job, leaves))
    return best


def compare(num_classes: int, size: int, width: int, budget: float) -> dict[str, float]:
    """Seconds of a forward and a backward pass."""
    logits, targets, features = batch(num_classes, size, width)
    loop, ours = LoopMR2(num_classes), MR2Loss(num_classes)
    jobs = {
        "cross-entropy": lambda: F.cross_entropy(logits, targets),
        "loop": lambda: loop(logits, targets, features),
        "mr2": lambda: ours(logits, targets, features=features),
    }
    return fastest(jobs, (logits, features), budget)


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


def extra_megabytes(num_classes: int) -> float:
    """Peak memory on top of cross-entropy, with samples of some of the 1000 classes."""
    return round(peak_megabytes(num_classes, True) - peak_megabytes(num_classes, False), 1)


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


def training_step() -> Callable[[], dict[str, float]]:
    """Return a function that measures a training step of the network, and what the loss adds to it."""
    backbone, head = resnet32()
    images, targets = torch.randn(128, 3, 32, 32), torch.randint(100, (128,))
    loss = MR2Loss(100)
    optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    logits, _, features = batch(100, 128, 64)
    jobs = {
        "cross-entropy": lambda: F.cross_entropy(logits, targets),
        "mr2": lambda: loss(logits, targets, features=features),
    }

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(head(backbone(images)), targets).backward()
        optimizer.step()

    def measure() -> dict[str, float]:
        full = timing.fastest({"step": step}, 3)
        best = fastest(jobs, (logits, features), 0.3)
        return full | {"added": best["mr2"] - best["cross-entropy"]}

    step()
    return measure


def measure(repeats: int, quick: bool) -> timing.Results:
    timing.use_one_thread()
    shapes = [
        {
            "classes": shape[0],
            "batch": shape[1],
            "features": shape[2],
            "seconds": timing.repeat(repeats, lambda shape=shape: compare(*shape, budget=0.5 if quick else 4.0)),
        }
        for shape in (SHAPES[:3] if quick else SHAPES)
    ]
    if quick:
        return {"shapes": shapes}
    memory = {"all classes": extra_megabytes(1000), "one class": extra_megabytes(1)}
    return {"shapes": shapes, "step": timing.repeat(repeats, training_step()), "megabytes": memory}


def describe(results: timing.Results) -> str:
    """Return the section of docs/mr2.md."""
    rows: list[list[object]] = [
        [
            "K",
            "B",
            "d",
            "`MR2Loss` / cross-entropy",
            "loop over classes / `MR2Loss`",
            "`MR2Loss`",
            "cross-entropy",
            "loop",
        ]
    ]
    for each in results["shapes"]:
        plain, loop, ours = (each["seconds"][name] for name in ("cross-entropy", "loop", "mr2"))
        ratios = [timing.describe_ratio(ours, plain), timing.describe_ratio(loop, ours)]
        times = [timing.describe_seconds(seconds) for seconds in (ours, plain, loop)]
        rows.append([each["classes"], each["batch"], each["features"], *ratios, *times])
    intro = timing.paragraph(
        "`python benchmarks/loss_cost.py`: forward and backward pass on a batch of B samples with d features. The loop "
        "computes the same loss class by class, as most published code does."
    )
    parts = [intro, timing.table(rows), timing.paragraph(timing.describe_conditions(results))]
    if "step" in results:
        parts.append(timing.paragraph(f"{_describe_step(results['step'])} {_describe_memory(results['megabytes'])}"))
    return "\n\n".join(parts)


def _describe_step(seconds: Mapping[str, list[float]]) -> str:
    percent = [100 * added / step for added, step in zip(seconds["added"], seconds["step"], strict=True)]
    low, high = timing.format_alike(min(percent), max(percent))
    return (
        f"The loss adds {low} to {high} % to a training step of ResNet-32 with 128 images, which takes "
        f"{timing.describe_seconds(seconds['step'])}."
    )


def _describe_memory(megabytes: Mapping[str, float]) -> str:
    several, one = (f"{megabytes[name]:.0f} MB" for name in ("all classes", "one class"))
    return (
        f"With B = 8192, d = 512 and K = 1000, it needs {several} more memory than cross-entropy, or {one} if all "
        "samples belong to one class."
    )


if __name__ == "__main__":
    timing.main(__doc__, measure, describe, RESULTS, SECTION)
