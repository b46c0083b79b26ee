"""Images per second: BatchLoader against torchvision with a DataLoader of two workers.

    python benchmarks/data_cost.py            # about four minutes; stores results/data_cost.json
    python benchmarks/data_cost.py --quick    # fewer images and rounds; stores nothing
    python benchmarks/data_cost.py docs       # writes the stored figures into docs/training.md

Random data of CIFAR's size: 50,000 images of 3 × 32 × 32 in memory, batches of 128. The baseline is the usual training
script: a map-style dataset over an array of bytes, Pillow transforms, `DataLoader(num_workers=2)`. A second baseline
uses torchvision's transforms v2 on tensors. classgap uses no workers, and one of the two threads of this process to
build batches. Competitors take turns, and their best rounds of a repeat are compared. The clock starts with the second
batch, when the workers are running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from statistics import median

import numpy as np
import stored
import timing
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as v1
from torchvision.transforms import v2

from classgap.data.dataset import Split
from classgap.data.loader import BatchLoader
from classgap.data.sampling.orders import RandomOrder

RESULTS = stored.RESULTS / "data_cost.json"
SECTION = stored.Section("docs/training.md", "cost of augmented batches")
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
BATCH, CLASSES, WORKERS, THREADS = 128, 10, 2, 2
NAMES = {"crop-flip": "crop and flip", "auto-augment": "AutoAugment", "rand-augment": "RandAugment"}


class ArrayDataset(Dataset[tuple[Tensor, int]]):
    """Images stored as in torchvision's CIFAR10, (N, H, W, C), transformed one by one."""

    def __init__(self, images_NHWC: np.ndarray, targets: list[int], transform: Callable[[np.ndarray], Tensor]) -> None:
        self.images_NHWC, self.targets, self.transform = images_NHWC, targets, transform

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        return self.transform(self.images_NHWC[row]), self.targets[row]


def pillow(name: str) -> Callable[[np.ndarray], Tensor]:
    policy = {"auto-augment": [v1.AutoAugment(v1.AutoAugmentPolicy.CIFAR10)], "rand-augment": [v1.RandAugment()]}
    crop = [v1.ToPILImage(), v1.RandomCrop(32, padding=4), v1.RandomHorizontalFlip()]
    return v1.Compose([*crop, *policy.get(name, []), v1.ToTensor(), v1.Normalize(MEAN, STD)])


def tensors(name: str) -> Callable[[np.ndarray], Tensor]:
    policy = {"auto-augment": [v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10)], "rand-augment": [v2.RandAugment()]}
    crop = [v2.ToImage(), v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip()]
    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    return v2.Compose([*crop, *policy.get(name, []), *last])


def rate(batches: Iterable[object], limit: float) -> float:
    """Images per second from the second batch on, measured for at most ``limit`` seconds."""
    stream: Iterator[object] = iter(batches)
    next(stream)  # starts the workers, fills caches
    start, steps = time.perf_counter(), 0
    for _ in stream:
        steps += 1
        if time.perf_counter() - start > limit:
            break
    return steps * BATCH / (time.perf_counter() - start)


def best(jobs: dict[str, Callable[[], Iterable[object]]], rounds: int, limit: float) -> dict[str, float]:
    """Highest rate of each job, taking turns."""
    found = dict.fromkeys(jobs, 0.0)
    for _ in range(rounds):
        for name, job in jobs.items():
            found[name] = max(found[name], rate(job(), limit))
    return found


def measure(repeats: int, quick: bool) -> timing.Results:
    samples, rounds, limit = (10_000, 1, 0.7) if quick else (50_000, 2, 1.5)
    torch.set_num_threads(THREADS)
    images = torch.randint(0, 256, (samples, 3, 32, 32), dtype=torch.uint8)
    targets = torch.randint(CLASSES, (samples,))
    split, array = Split.from_arrays(images, targets), images.permute(0, 2, 3, 1).contiguous().numpy()

    def loader(transform: Callable[[np.ndarray], Tensor]) -> Iterable[object]:
        dataset = ArrayDataset(array, targets.tolist(), transform)
        return DataLoader(dataset, BATCH, shuffle=True, num_workers=WORKERS, drop_last=True)

    def ours(name: str) -> Iterable[object]:
        options = {"batch_size": BATCH, "num_classes": CLASSES, "mean": MEAN, "std": STD}
        return BatchLoader(split, RandomOrder(samples), augment=name, **options).epoch(0)

    def compare(name: str) -> dict[str, float]:
        jobs = {
            "pillow": lambda: loader(pillow(name)),
            "v2": lambda: loader(tensors(name)),
            "classgap": lambda: ours(name),
        }
        return best(jobs, rounds, limit)

    return {"images per second": {name: timing.repeat(repeats, lambda name=name: compare(name)) for name in NAMES}}


def describe(results: timing.Results) -> str:
    """Return the section of docs/training.md."""
    rows = [["images per second", "classgap / Pillow", "classgap / v2", "classgap", "Pillow", "v2"]]
    for name, rates in results["images per second"].items():
        ratios = [timing.describe_ratio(rates["classgap"], rates[other]) for other in ("pillow", "v2")]
        rows.append([NAMES[name], *ratios, *(f"{median(rates[each]):,.0f}" for each in ("classgap", "pillow", "v2"))])
    intro = (
        "`python benchmarks/data_cost.py` compares augmented batches of 128 images of 32×32 pixels with torchvision's "
        "transforms on Pillow images and its transforms v2 on tensors, in a `DataLoader` with two workers. classgap "
        "uses no workers."
    )
    return "\n\n".join(
        [timing.paragraph(intro), timing.table(rows), timing.paragraph(timing.describe_conditions(results, "Figures"))]
    )


if __name__ == "__main__":
    timing.main(__doc__, measure, describe, RESULTS, SECTION)
