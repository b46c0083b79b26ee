"""Stress test: train every cell of a grid with cross-entropy and with a method, to find settings where it fails.

    python benchmarks/stress_strength.py                       # MR² with its defaults, about ten minutes on one core
    python benchmarks/stress_strength.py --methods mr2 spread-out --seeds 0 1
    python benchmarks/stress_strength.py --store benchmarks/results/stress_strength.jsonl    # resumes what is stored

Two problems (MNIST-1D with a convolution; 150 Gaussian classes with a hidden layer). Starting from a default setting,
the grid changes one factor at a time, then several: learning rate × {0.3, 1, 3}, epochs {5, 40, 200}, batch size
{16, 128, 512}, feature scale × {0.1, 1, 10} (the last layer is scaled inversely, so the function is the same), batch
norm or none, bf16. With features × 10 the last layer learns a hundred times as fast, so the learning rate is a tenth.
The table shows the accuracy of the hard third and the change by the method. Changes below −2 points are marked, except
in cells where cross-entropy itself fails.
"""

from __future__ import annotations

import argparse
import functools
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from classgap.data import Dataset, Split, load
from classgap.engine import RunDirectory, TrainConfig, train
from classgap.models import MODELS, build
from classgap.registry import Entry

TOLERATED = 2.0  # percentage points of the hard third
MEANINGFUL = 20.0  # below this accuracy of cross-entropy a cell is not judged
MNIST1D, GAUSSIAN = "mnist1d:seed=7", "gaussian"


@dataclass(frozen=True)
class Cell:
    """One setting of the grid."""

    data: str = MNIST1D
    rate: float = 1.0
    epochs: int = 40
    batch_size: int = 128
    scale: float = 1.0
    batch_norm: bool = True
    precision: str = "fp32"

    def __str__(self) -> str:
        usual = asdict(Cell())
        classes = "150 classes" if self.data == GAUSSIAN else "10 classes"
        changed = {name: value for name, value in asdict(self).items() if name != "data" and value != usual[name]}
        names = {"rate": "rate × {}", "epochs": "{} epochs", "batch_size": "batch {}", "scale": "features × {}"}
        names |= {"batch_norm": "no batch norm", "precision": "{}"}
        return ", ".join([classes, *(names[name].format(value) for name, value in changed.items())])


def cells() -> Iterator[Cell]:
    """Generate the grid: the default, single changes, and the worst combinations."""
    for data in (MNIST1D, GAUSSIAN):
        usual = Cell(data)
        changes: list[dict[str, Any]] = [{}]
        changes += [{"rate": rate} for rate in (0.3, 3.0)] + [{"epochs": epochs} for epochs in (5, 200)]
        changes += [{"batch_size": batch} for batch in (16, 512)] + [{"scale": 0.1}, {"scale": 10.0, "rate": 0.1}]
        changes += [{"batch_norm": False}, {"precision": "bf16"}]
        changes += [{"rate": 3.0, "batch_size": 16}, {"rate": 0.1, "scale": 10.0, "epochs": 200}]
        changes += [{"rate": 0.1, "scale": 10.0, "batch_norm": False}, {"scale": 0.1, "batch_size": 512, "epochs": 200}]
        changes += [{"rate": 0.3, "epochs": 5, "batch_size": 512}, {"precision": "bf16", "batch_size": 16}]
        yield from (replace(usual, **change) for change in changes)


class Scaled(nn.Module):
    """Multiply features by a constant."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, features_BD: Tensor) -> Tensor:
        return self.scale * features_BD


def stressed(
    *, num_classes: int, input_shape: tuple[int, ...], scale: float = 1.0, batch_norm: bool = True
) -> nn.Module:
    """Build the small default network of a problem with scaled features, with or without batch norm."""
    if len(input_shape) == 2:
        *layers, head = build("conv1d", num_classes=num_classes, input_shape=input_shape)
        layers = [layer for layer in layers if batch_norm or not isinstance(layer, nn.BatchNorm1d)]
    else:
        flatten, hidden, relu, head = build("mlp", num_classes=num_classes, input_shape=input_shape)
        layers = [flatten, hidden, *([nn.BatchNorm1d(hidden.out_features)] if batch_norm else []), relu]
    with torch.no_grad():
        head.weight /= scale
    return nn.Sequential(*layers, Scaled(scale), head)


MODELS.entries["stressed"] = Entry(
    "stressed", "A small network under stress.", stressed, given=("num_classes", "input_shape")
)


def gaussian(classes: int = 150, width: int = 64, train_each: int = 20, test_each: int = 40) -> Dataset:
    """Generate Gaussian classes of different spread, with samples normalized to length 1."""
    generator = torch.Generator().manual_seed(0)
    centers_KD = torch.randn(classes, width, generator=generator)
    spread_K = torch.linspace(1.0, 2.6, classes)

    def draw(each: int) -> Split:
        targets = torch.arange(classes).repeat(each)
        noise = torch.randn(len(targets), width, generator=generator)
        return Split.from_arrays(F.normalize(centers_KD[targets] + spread_K[targets, None] * noise), targets)

    return Dataset(GAUSSIAN, draw(train_each), draw(test_each), tuple(map(str, range(classes))), "features", (width,))


@functools.cache
def load_data(name: str) -> Dataset:
    return gaussian() if name == GAUSSIAN else load(name)


def hard_third(cell: Cell, method: str, seed: int) -> float:
    """Accuracy of the hard third in percent; 0 if training failed."""
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(
            data=cell.data,
            model=f"stressed:scale={cell.scale}:batch_norm={str(cell.batch_norm).lower()}",
            method=method,
            lr=0.1 * cell.rate,
            epochs=cell.epochs,
            batch_size=cell.batch_size,
            precision=cell.precision,
            seed=seed,
            out=Path(folder) / "run",
            audit=False,
        )
        try:
            directory = train(config, data=load_data(cell.data), quiet=True).run_dir
        except ArithmeticError:
            return 0.0
        return 100 * float(RunDirectory(directory).read_metrics()[-1]["test_hard"])


class Store:
    """Results by cell, method and seed, optionally stored in a file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.known = {tuple(key): value for key, value in map(json.loads, lines)}

    def hard_third(self, cell: Cell, method: str, seed: int) -> float:
        """Return the hard third of a run, and train if it is not stored."""
        key = (str(cell), method, seed)
        if key not in self.known:
            self.known[key] = round(hard_third(cell, method, seed), 3)
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["mr2"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    store = Store(options.store)
    print("| cell | erm | " + " | ".join(options.methods) + " |\n|---|---|" + "---|" * len(options.methods), flush=True)
    below = dict.fromkeys(options.methods, 0)
    for cell in cells():
        plain = np.mean([store.hard_third(cell, "erm", seed) for seed in options.seeds])
        shown = [f"{plain:.1f}"]
        for method in options.methods:
            change = np.mean([store.hard_third(cell, method, seed) for seed in options.seeds]) - plain
            marked = change < -TOLERATED and plain >= MEANINGFUL
            below[method] += marked
            shown.append(f"{change:+.1f}{' **below**' if marked else ''}")
        print(f"| {cell} | {' | '.join(shown)} |", flush=True)
    for method, count in below.items():
        print(f"\n{method}: {count} cells more than {TOLERATED:g} points below cross-entropy.")


if __name__ == "__main__":
    main()
