"""Every method on two small problems, in one table a problem: about four minutes on one core.

    python examples/compare_methods.py                                  # all methods, one seed, 30 epochs
    python examples/compare_methods.py --methods erm mr2 sam+mr2 --seeds 5 --epochs 200

MNIST-1D has as many samples of each class, the digits have a long tail. All methods see the same samples: a tenth of
each class is held out, as some methods choose something by it. Stages count: a method of two stages trains twice as
long, which the last column shows. Defaults are used throughout, so this is a tour, not a ranking: a fair one tunes
each method. Runs are kept and go on where they stopped; run it again with more seeds and only those are trained.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from classgap import methods
from classgap.data import load
from classgap.engine import RunDirectory, TrainConfig, train
from classgap.engine.nonfinite import NonFiniteLoss

PROBLEMS: dict[str, dict[str, Any]] = {
    "mnist1d": {"data": "mnist1d:test=2000", "model": "conv1d", "batch": 100, "lr": 0.1},
    "digits": {"data": "digits:lt=20", "model": "mlp:width=64", "batch": 50, "lr": 0.05},
}
COMPOSITIONS = ("mr2+logit-adjustment", "sam+mr2", "mr2+tau-norm", "mr2+crt")
FIGURES = {"overall": "test_accuracy", "easy": "test_easy", "hard": "test_hard", "worst": "test_worst"}

loaded = functools.cache(load)


def trained(problem: str, method: str, seed: int, epochs: int, out: Path) -> dict[str, float] | None:
    """Figures of one run, trained now or before; nothing if its loss became infinite."""
    name = re.sub(r"[^\w.+-]+", "-", method)
    config = TrainConfig(
        **PROBLEMS[problem],
        method=method,
        seed=seed,
        epochs=epochs,
        validation=0.1,
        report=False,
        out=out / problem / f"{name}-{epochs}-epochs-seed{seed}",
    )
    try:
        directory = RunDirectory(train(config, data=loaded(config.data), quiet=True).directory)
    except NonFiniteLoss:
        return None
    lines = [json.loads(line) for line in directory.metrics.read_text().splitlines()]
    seconds = sum(line["timing"]["seconds"] for line in lines if "timing" in line)
    return {name: 100 * lines[-1][key] for name, key in FIGURES.items()} | {"seconds": seconds}


def show(problem: str, results: dict[str, list[dict[str, float] | None]], epochs: int, console: Console) -> None:
    seeds = max(map(len, results.values()))
    setting = PROBLEMS[problem]
    table = Table(
        title=f"{setting['data']}, {setting['model']}, {epochs} epochs a stage, {seeds} seed(s): accuracy in %"
    )
    for column in ("method", *FIGURES, "time / erm"):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    plain = np.mean([each["seconds"] for each in results["erm"] if each])
    for method, runs in results.items():
        done = [each for each in runs if each]
        if not done:
            table.add_row(method, "not finite")
            continue
        cells = [shown(np.array([each[figure] for each in done])) for figure in FIGURES]
        table.add_row(method, *cells, f"{np.mean([each['seconds'] for each in done]) / plain:.1f}")
    console.print(table)


def shown(values: np.ndarray) -> str:
    """The mean, and the standard deviation over seeds if there are several."""
    return f"{values.mean():.1f}" + (f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=[*methods.names(), *COMPOSITIONS])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/compare"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = list(dict.fromkeys(["erm", *options.methods]))  # what the others are compared with comes first
    console = Console()
    for problem in options.problems:
        results: dict[str, list[dict[str, float] | None]] = {name: [] for name in names}
        with Progress(transient=True, console=console) as progress:
            task = progress.add_task("", total=len(names) * options.seeds)
            for seed in range(options.seeds):
                for name in names:
                    progress.update(task, description=f"{problem}: {name}, seed {seed}")
                    results[name].append(trained(problem, name, seed, options.epochs, options.out))
                    progress.advance(task)
        show(problem, results, options.epochs, console)


if __name__ == "__main__":
    main()
