"""Cost of a training step of each method relative to cross-entropy: ResNet-20, batches of 128 images of 32×32.

    python benchmarks/method_cost.py                                # every method, about ten minutes on one core
    python benchmarks/method_cost.py --methods mr2 sam supcon --rounds 30

All stages of all methods take steps in turn, in one process, through the engine: forward, loss, backward, update. The
smallest CPU time of each counts, which is more robust on a busy machine than wall-clock time. Passes over the training
set between epochs are not included. Methods with more than one pass per step are marked. The bound for all others is
1.1.
"""

from __future__ import annotations

import argparse
import time

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from classgap import methods
from classgap.data.batch import Batch
from classgap.data.dataset import Dataset, Split
from classgap.engine import Run, TrainConfig
from classgap.engine.defaults import resolve_config

BOUND = 1.1
SEVERAL = {"second pass": "two passes", "two views": "two views", "second network": "two networks"}
BATCH = 128


def make_data(classes: int, samples: int = 512) -> Dataset:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (samples, 3, 32, 32), dtype=torch.uint8, generator=generator)
    targets = torch.arange(samples) % classes
    split = Split.from_arrays(images, targets)
    names = tuple(map(str, range(classes)))
    return Dataset("random images", split, split, names, "image", (3, 32, 32), (0.5,) * 3, (0.29,) * 3)


def stages(method: str, data: Dataset) -> dict[str, tuple[Run, Batch]]:
    """Return a run and a batch for each stage of a method."""
    settings = resolve_config(
        TrainConfig(data="random", model="resnet20", method=method, batch_size=BATCH, val_fraction=0.25), data
    )
    found, number = {}, 0
    while True:
        run = Run(settings, data, torch.device("cpu"))
        run.position.stage = number
        run.begin_stage()
        run.method.epoch_start(run)
        run.model.train()
        found[f"{method}, {run.stage.name}" if len(run.stages) > 1 else method] = (run, next(run.batches.epoch(0)))
        number += 1
        if number == len(run.stages):
            return found


def seconds(run: Run, batch: Batch) -> float:
    run.model.train()
    began = time.process_time()
    run.method.step(run, batch)
    return time.process_time() - began


def passes(name: str) -> str:
    """Why a method may cost more, if it may."""
    required_inputs = methods.METHODS.entry(name.partition(":")[0].partition(",")[0]).required_inputs
    return next((word for need, word in SEVERAL.items() if need in required_inputs), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=methods.names())
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = make_data(options.classes)
    cases: dict[str, tuple[Run, Batch]] = {}
    for name in dict.fromkeys(["erm", *options.methods]):
        cases |= stages(name, data)
    best = {name: seconds(*case) for name, case in cases.items()}
    for _ in track(range(options.rounds), transient=True):
        for name, case in cases.items():
            best[name] = min(best[name], seconds(*case))
    table = Table(
        title=f"A step; cross-entropy {best['erm'] * 1e3:.0f} ms, K = {options.classes}, best of {options.rounds}"
    )
    for column in ("method, stage", "ratio", ""):
        table.add_column(column, justify="right" if column == "ratio" else "left", no_wrap=True)
    for name, value in best.items():
        ratio = value / best["erm"]
        table.add_row(name, f"{ratio:.2f}", (passes(name) or "over the bound") if ratio > BOUND else "")
    Console().print(table)


if __name__ == "__main__":
    main()
