"""Overhead of the engine over a hand-written training loop.

    python benchmarks/train_cost.py            # two networks, about four minutes; stores results/train_cost.json
    python benchmarks/train_cost.py --quick    # fewer samples; stores nothing
    python benchmarks/train_cost.py docs       # writes the stored figures into docs/training.md

Each round times one epoch of a bare loop and one of the engine, in rotating order. Both do the same arithmetic on the
same batches of classgap.data. The bare loop uses PyTorch's default optimizer, the engine the fused one. The engine's
epoch includes metrics, the check for non-finite losses, progress and signal handling. The smallest times of a repeat
are compared. The bound is 3 % for images. With steps of a few milliseconds the fixed cost matters, including the input
checks of the losses; a second bare loop therefore uses the engine's loss.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import stored
import timing
import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.data import Dataset, Split, load
from classgap.engine import Run, RunDirectory, TrainConfig
from classgap.engine.defaults import resolve_config
from classgap.engine.logging.progress import Display
from classgap.engine.signals import StopRequest
from classgap.engine.trainer import Trainer

RESULTS = stored.RESULTS / "train_cost.json"
SECTION = stored.Section("docs/training.md", "cost of an epoch")
PROBLEMS = {  # network, samples, rounds of a repeat
    "ResNet-20, 32×32 images": ("resnet20", 1280, 3),
    "1-D convolution, MNIST-1D": ("conv1d", 4000, 12),  # its epochs are shorter
}


def images(samples: int) -> Dataset:
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


def compare(model: str, samples: int, rounds: int, repeats: int) -> timing.Results:
    """Seconds of an epoch: bare loop, bare loop with the engine's loss, engine."""
    source = images(samples) if model == "resnet20" else load(f"mnist1d:n_train={samples}")
    config = resolve_config(TrainConfig(data=source.name, model=model, epochs=10_000), source)
    by_hand, engine = [Run(config, source, torch.device("cpu")) for _ in range(2)]
    bare = BareLoop(by_hand)
    with ExitStack() as stack:
        directory = RunDirectory(Path(stack.enter_context(tempfile.TemporaryDirectory())) / model)
        directory.begin(config, {})
        stack.callback(directory.close)
        trainer = Trainer(engine, directory, quiet=True)
        stop = stack.enter_context(StopRequest())
        display = stack.enter_context(Display("", engine.updates, quiet=True))
        loops = {
            "bare": lambda: bare.epoch(0, F.cross_entropy),
            "same loss": lambda: bare.epoch(0, by_hand.method.loss),
            "engine": lambda: trainer.fit_epoch(stop, display),
        }
        seconds = timing.repeat(repeats, lambda: timing.fastest(loops, rounds, time.perf_counter))
    return {"steps": len(by_hand.batches), "seconds": seconds}


def measure(repeats: int, quick: bool) -> timing.Results:
    torch.set_num_threads(2)
    return {
        "problems": {
            name: compare(model, samples // 5 if quick else samples, 3 if quick else rounds, repeats)
            for name, (model, samples, rounds) in PROBLEMS.items()
        }
    }


def describe(results: timing.Results) -> str:
    """Return the section of docs/training.md."""
    rows = [
        ["an epoch", "engine / bare loop", "engine / bare loop with the same loss", "step of the engine", "bare step"]
    ]
    for name, found in results["problems"].items():
        bare, same, engine = (found["seconds"][each] for each in ("bare", "same loss", "engine"))
        steps = [timing.describe_seconds([each / found["steps"] for each in seconds]) for seconds in (engine, bare)]
        rows.append([name, timing.describe_ratio(engine, bare), timing.describe_ratio(engine, same), *steps])
    intro = (
        "`python benchmarks/train_cost.py` compares an epoch of the engine with one of a hand-written loop over the "
        "same batches. The engine uses a fused optimizer and frees old gradients before the forward pass. Its loss "
        "checks its inputs and computes per-sample terms, which matters only if a step takes a few milliseconds."
    )
    return "\n\n".join(
        [
            timing.paragraph(intro),
            timing.table(rows),
            timing.paragraph(timing.describe_conditions(results, "Ratios and times")),
        ]
    )


if __name__ == "__main__":
    timing.main(__doc__, measure, describe, RESULTS, SECTION)
