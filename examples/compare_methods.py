"""Compare all methods on MNIST-1D, each tuned with the same small search: about 20 minutes on two cores.

    python examples/compare_methods.py                       # all methods, 5 seeds; resumes
    python examples/compare_methods.py --methods erm mr2 sam+mr2 --seeds 10
    python examples/compare_methods.py --markdown            # the table in docs/methods.md
    python examples/compare_methods.py --choices             # hard third of the three settings of each method

All methods use the same learning rate and weight decay, tuned for cross-entropy (experiments/mr2-search.yaml). Three
settings of each method are tried once, on data with another generator seed; the one with the best hard third is trained
on the final data with every seed. Methods with two stages train twice as long, which the last column shows.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from classgap._atomic_write import atomic_write_text
from classgap.data import load
from classgap.engine import RunDirectory, TrainConfig, train
from classgap.engine.errors import NonFiniteLossError

SETTINGS = {"model": "conv1d", "lr": 0.3, "weight_decay": 5e-3, "val_fraction": 0.1, "audit": False}
CHOICE, END = "mnist1d:seed=7", "mnist1d"  # two generator seeds
DECAYS = ["2e-3", "5e-3", "1e-2"]  # for methods without a strength of their own
METRICS = ("accuracy", "easy", "medium", "hard", "worst")
T_95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}  # Student's t, n - 1 degrees

# Three settings of each method: options, a full method spec, or a weight decay.
SEARCH: dict[str, list[str]] = {
    "erm": DECAYS,
    "mr2": ["mr2", "mr2:strength=0.1", "mr2:margin=2"],
    "mr2-release": ["strength=0.03", "strength=0.1", "strength=0.3"],
    "elm": ["strength=0.003", "strength=0.01", "strength=0.03"],
    "lmdl": ["compact=0.1:separate=0.1", "compact=0.3:separate=0.3", "compact=1:separate=1"],
    "label-smoothing": ["smoothing=0.03", "smoothing=0.1", "smoothing=0.3"],
    "feature-norm": ["strength=0.003", "strength=0.01", "strength=0.03"],
    "logit-adjustment": ["tau=0.5", "tau=1", "tau=2"],
    "balanced-softmax": DECAYS,
    "eql": ["drop=0.5", "drop=0.75", "drop=0.9"],
    "group-dro": ["step=0.003", "step=0.01", "step=0.03"],
    "cmic-dl": ["concentrate=0.03:separate=0.03", "concentrate=0.1:separate=0.1", "concentrate=0.3:separate=0.3"],
    "sam": ["rho=0.02", "rho=0.05", "rho=0.15"],
    "asam": ["rho=0.2", "rho=0.5", "rho=1.5"],
    "post-hoc-logit-adjustment": ["tau=0.5", "tau=1", "tau=2"],
    "focal": ["gamma=0.5", "gamma=1", "gamma=2"],
    "cb-focal": ["gamma=0.5", "gamma=1", "gamma=2"],
    "ldam": ["margin=0.2", "margin=0.5", "margin=1"],
    "ldam-drw": ["margin=0.2", "margin=0.5", "margin=1"],
    "fair-dro": ["radius=0.05", "radius=0.15", "radius=0.5"],
    "csr": ["strength=0.1", "strength=0.3", "strength=1"],
    "jtt": ["copies=2", "copies=5", "copies=20"],
    "lff": ["q=0.3", "q=0.5", "q=0.7"],
    "center": ["strength=0.003", "strength=0.008", "strength=0.03"],
    "lgm": ["margin=0.03", "margin=0.1", "margin=0.3"],
    "triplet": ["strength=0.1", "strength=0.3", "strength=1"],
    "range": ["intra=1e-5", "intra=5e-5", "intra=2e-4"],
    "spread-out": ["strength=0.3", "strength=1", "strength=3"],
    "hybrid": ["strength=0.1", "strength=0.3", "strength=1"],
    "supcon": ["temperature=0.05", "temperature=0.1", "temperature=0.2"],
    "supcon-joint": ["strength=0.3", "strength=1", "strength=3"],
    "dro-lt": ["strength=0.3", "strength=1", "strength=3"],
    "dro-lt-joint": ["strength=0.1", "strength=0.3", "strength=1"],
    "tau-norm": DECAYS,
    "crt": ["fraction=0.05", "fraction=0.11", "fraction=0.3"],
    "lws": ["fraction=0.03", "fraction=0.06", "fraction=0.15"],
    "mr2+logit-adjustment": DECAYS,
    "mr2+tau-norm": DECAYS,
    "sam+mr2": ["sam:rho=0.02+mr2", "sam:rho=0.05+mr2", "sam:rho=0.15+mr2"],
}

load_cached = functools.cache(load)


def settings_of(method: str, choice: str) -> dict[str, Any]:
    """Return the settings of ``classgap train`` for one of a method's three choices."""
    if choice in DECAYS:
        return {"method": method, "weight_decay": float(choice)}
    is_spec = choice.split(":")[0].split("+")[0] in SEARCH
    return {"method": choice if is_spec else f"{method}:{choice}"}


def run_one(data: str, method: str, choice: str, seed: int, epochs: int) -> dict[str, float]:
    """Train once and return test metrics in percent and the seconds; only the seconds if the loss is not finite."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        settings = SETTINGS | settings_of(method, choice)
        config = TrainConfig(data=data, seed=seed, epochs=epochs, out=Path(folder) / "run", **settings)
        try:
            lines = RunDirectory(train(config, data=load_cached(data), quiet=True).run_dir).read_metrics()
        except NonFiniteLossError:
            return {"seconds": 0.0}
    seconds = sum(line["timing"]["seconds"] for line in lines if "timing" in line)
    return {name: 100 * lines[-1][f"test_{name}"] for name in METRICS} | {"seconds": seconds}


class Results:
    """Results in a file, one line per run."""

    def __init__(self, path: Path, epochs: int, jobs: int) -> None:
        self.path, self.epochs, self.jobs = path, epochs, jobs
        path.parent.mkdir(parents=True, exist_ok=True)
        self.known = {tuple(line["job"]): line["metrics"] for line in self._lines() if line["epochs"] == epochs}

    def _lines(self) -> list[dict[str, Any]]:
        """Read the file and remove an incomplete last line, which a killed process may leave."""
        text = self.path.read_text() if self.path.exists() else ""
        complete = text[: text.rfind("\n") + 1]
        if complete != text:
            atomic_write_text(self.path, complete)
        return [json.loads(line) for line in complete.splitlines()]

    def measure(self, jobs: list[tuple[str, str, str, int]], title: str, console: Console) -> None:
        """Run the jobs without results, in processes with one thread each."""
        missing = [job for job in jobs if job not in self.known]
        if not missing:
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.jobs, context) as pool, Progress(transient=True, console=console) as progress:
            task = progress.add_task(title, total=len(missing))
            pending = {pool.submit(run_one, *job, self.epochs): job for job in missing}
            for done in as_completed(pending):
                self.known[pending[done]] = done.result()
                with self.path.open("a") as file:
                    line = {"epochs": self.epochs, "job": pending[done], "metrics": done.result()}
                    file.write(json.dumps(line) + "\n")
                progress.advance(task)

    def hard_by_choice(self, method: str) -> dict[str, float]:
        """Return the hard third of each setting on the tuning data; -1 if the run failed."""
        return {choice: self.known[CHOICE, method, choice, 100].get("hard", -1.0) for choice in SEARCH[method]}

    def best(self, method: str) -> str:
        """Return the setting with the best hard third on the tuning data."""
        reached = self.hard_by_choice(method)
        return max(reached, key=reached.__getitem__)


def interval(values: np.ndarray) -> str:
    """Format the mean and its 95 % interval over seeds."""
    if len(values) < 2:
        return f"{values.mean():.1f}"
    return f"{values.mean():.1f} ± {T_95.get(len(values), 2.0) * values.std(ddof=1) / len(values) ** 0.5:.1f}"


def rows(results: Results, methods: list[str], seeds: int) -> list[list[str]]:
    """Return one row per method, best hard third first. Failed runs are counted in the name, not in the columns."""
    runs = {
        method: [results.known[END, method, results.best(method), seed] for seed in range(seeds)] for method in methods
    }
    finite = {method: [line for line in lines if "hard" in line] for method, lines in runs.items()}
    plain = _mean(finite["erm"], "seconds")
    found = []
    for method, lines in finite.items():
        name = method if len(lines) == seeds else f"{method} ({len(lines)} of {seeds} finite)"
        cells = [interval(np.array([line[metric] for line in lines])) if lines else "" for metric in METRICS]
        slow = f"{_mean(lines, 'seconds') / plain:.1f}" if lines and plain else ""
        found.append((_mean(lines, "hard"), [name, results.best(method), *cells, slow]))
    return [row for _, row in sorted(found, key=lambda each: -each[0])]


def _mean(lines: list[dict[str, float]], metric: str) -> float:
    return float(np.mean([line[metric] for line in lines])) if lines else 0.0


def choices(results: Results, methods: list[str]) -> list[list[str]]:
    """Return one row per tried setting with its hard third; the chosen one is starred."""
    found = []
    for method in methods:
        for choice, hard in results.hard_by_choice(method).items():
            text = f"{hard:.1f}" if hard >= 0 else "not finite"
            found.append([method, choice, f"{text} *" if choice == results.best(method) else text])
    return found


def show(title: str, columns: list[str], lines: list[list[str]], *, markdown: bool, console: Console) -> None:
    """Print a table to the terminal or as Markdown."""
    if markdown:
        print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        for line in lines:
            print(f"| {' | '.join(line)} |")
        return
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="left" if column in ("method", "chosen", "setting") else "right")
    for line in lines:
        table.add_row(*line)
    console.print(table)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=SEARCH, default=list(SEARCH), metavar="METHOD")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("runs/compare_methods.jsonl"))
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--choices", action="store_true", help="print the runs that chose the settings")
    options = parser.parse_args(words)
    methods = list(dict.fromkeys(["erm", *options.methods]))
    console = Console()
    results = Results(options.results, options.epochs, options.jobs)
    tried = [(CHOICE, method, choice, 100) for method in methods for choice in SEARCH[method]]
    results.measure(tried, "choosing", console)
    form = {"markdown": options.markdown, "console": console}
    if options.choices:
        title = f"MNIST-1D, another generator seed, {options.epochs} epochs per stage, one run each"
        show(title, ["method", "setting", "hard third, %"], choices(results, methods), **form)
        return
    ends = [(END, method, results.best(method), seed) for seed in range(options.seeds) for method in methods]
    results.measure(ends, "training", console)
    title = f"MNIST-1D, {options.epochs} epochs per stage, {options.seeds} seeds: accuracy in %, 95 % interval"
    show(title, ["method", "chosen", *METRICS, "time / erm"], rows(results, methods, options.seeds), **form)


if __name__ == "__main__":
    main()
