"""Images per second: BatchLoader against torchvision with a DataLoader of two workers.

    python benchmarks/data_cost.py            # about four minutes
    python benchmarks/data_cost.py --quick    # fewer images and rounds

Random data of CIFAR's size: 50,000 images of 3 × 32 × 32 in memory, batches of 128. The baseline is the usual training
script: a map-style dataset over an array of bytes, Pillow transforms, `DataLoader(num_workers=2)`. A second baseline
uses torchvision's transforms v2 on tensors. classgap uses no workers, and one of the two threads of this process to
build batches. Competitors take turns, and the best of several rounds counts. The clock starts with the second batch,
when the workers are running.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as v1
from torchvision.transforms import v2

from classgap.data.dataset import Split
from classgap.data.loader import BatchLoader
from classgap.data.sampling.orders import RandomOrder

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
BATCH, CLASSES, WORKERS, THREADS = 128, 10, 2, 2
NAMES = ("crop-flip", "auto-augment", "rand-augment")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    samples, rounds, limit = (10_000, 3, 0.7) if quick else (50_000, 10, 1.5)
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

    table = Table(title=f"Images per second, batches of {BATCH}, best of {rounds} interleaved rounds")
    table.add_column("augmentation")
    for column in ("Pillow\n2 workers", "v2\n2 workers", "classgap\nno workers", "against\nPillow", "against\nv2"):
        table.add_column(column, justify="right")
    for name in NAMES:
        jobs = {
            "Pillow": lambda n=name: loader(pillow(n)),
            "v2": lambda n=name: loader(tensors(n)),
            "classgap": lambda n=name: ours(n),
        }
        found = best(jobs, rounds, limit)
        ratios = [f"× {found['classgap'] / found[other]:.1f}" for other in ("Pillow", "v2")]
        table.add_row(name, *(f"{found[each]:,.0f}" for each in jobs), *ratios)
    console = Console()
    console.print(f"torch {torch.__version__}, {samples:,} images, {torch.get_num_threads()} threads")
    console.print(table)


if __name__ == "__main__":
    main()
