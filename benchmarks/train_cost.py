"""Overhead of the engine over a hand-written training loop.

    python benchmarks/train_cost.py            # two networks, about three minutes on two cores
    python benchmarks/train_cost.py --rounds 9

Each round times one epoch of a bare loop and one of the engine, in rotating order. Both do the same arithmetic on the
same batches of classgap.data. The bare loop uses PyTorch's default optimizer, the engine the fused one. The engine's
epoch includes metrics, the check for non-finite losses, progress and signal handling. The smallest time of each counts.
The bound is 3 % for images. With steps of a few milliseconds the fixed cost matters, including the input checks
of the losses; a second bare loop therefore uses the engine's loss.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor

from classgap.data import Dataset, Split, load
from classgap.engine import Run, RunDirectory, TrainConfig
from classgap.engine.defaults import resolve_config
from classgap.engine.logging.progress import Display
from classgap.engine.signals import StopRequest
from classgap.engine.trainer import Trainer

PROBLEMS = {
    "ResNet-20, 32×32 images": ("images", "resnet20", 1),
    "1-D convolution, MNIST-1D": ("mnist1d:n_train=4000", "conv1d", 12),  # its epochs are shorter
}


def images(samples: int = 1280) -> Dataset:
    """Random images of CIFAR's size."""
    pixels = torch.randint(256, (samples, 3, 32, 32), dtype=torch.uint8)
    split = Split.from_arrays(pixels, torch.arange(samples) % 100)
    names = tuple(map(str, range(100)))
    return Dataset("images", split, split, names, "image", (3, 32, 32), (0.5,) * 3, (0.25,) * 3)


class BareLoop:
    """A hand-written training loop."""

    def __init__(self, run: Run) -> None:
        config = run.config
        assert config.lr is not None
        assert config.weight_decay is not None
        self.model, self.batches = run.model, run.batches
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=config.lr, momentum=config.momentum, weight_decay=config.weight_decay
        )

    def epoch(self, number: int, criterion: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.model.train()
        for batch in self.batches.epoch(number):
            loss = criterion(self.model(batch.inputs), batch.targets)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def seconds(action: Callable[[], None]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(data: str, model: str, rounds: int, folder: Path) -> list[float]:
    """Minimum seconds of an epoch: bare loop, bare loop with the engine's loss, engine."""
    source = images() if data == "images" else load(data)
    config = resolve_config(TrainConfig(data=data, model=model, epochs=10_000), source)
    by_hand, engine = [Run(config, source, torch.device("cpu")) for _ in range(2)]
    bare = BareLoop(by_hand)
    directory = RunDirectory(folder / model)
    directory.begin(config, {})
    trainer = Trainer(engine, directory, quiet=True)
    smallest = [math.inf] * 3
    with StopRequest() as stop, Display("", engine.updates, quiet=True) as display:
        for epoch in range(rounds):
            loops = [
                lambda epoch=epoch: bare.epoch(epoch, F.cross_entropy),
                lambda epoch=epoch: bare.epoch(epoch, by_hand.method.loss),
                lambda: trainer.fit_epoch(stop, display),
            ]
            for i in range(len(loops)):  # rotate the order: the previous job affects caches and clock speed
                which = (epoch + i) % len(loops)
                smallest[which] = min(smallest[which], seconds(loops[which]))
    directory.close()
    return smallest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(2)
    table = Table(title="An epoch of training")
    for column in ("problem", "bare loop", "with our loss", "engine", "engine / bare", "engine / with our loss"):
        table.add_column(column, justify="left" if column == "problem" else "right")
    with tempfile.TemporaryDirectory() as folder:
        for name, (data, model, times) in PROBLEMS.items():
            bare, same, engine = measure(data, model, times * options.rounds, Path(folder))
            shown = [f"{each:.3f} s" for each in (bare, same, engine)]
            table.add_row(name, *shown, f"{engine / bare:.3f}", f"{engine / same:.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
