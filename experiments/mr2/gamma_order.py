"""Variation of MR²'s margins γ between classes, and their correlation with class error.

    python experiments/mr2/gamma_order.py --clinc FILE.npz > experiments/mr2/gamma_order.md    # a minute on one core

On the search samples. For each problem and seed: standard deviation / mean of γ, largest / smallest γ, and
Spearman's correlation of γ with the class error; 1 means that harder classes have larger margins.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from plans import problem_settings
from scipy.stats import spearmanr
from training import temporary_run

from classgap import Audit
from classgap.audit import read_predictions
from classgap.engine.storage.checkpoint import load_checkpoint
from classgap.functional import class_margins

PROBLEMS = {
    "mnist1d-40": {"lr": 0.3, "weight_decay": 0.01},
    "mnist1d-200": {"lr": 0.3, "weight_decay": 0.005},
    "clinc150-mlp": {"lr": 0.3, "weight_decay": 0.0005},
}


def run_one(settings: dict[str, object], seed: int) -> tuple[float, float, float]:
    """Return deviation / mean, largest / smallest, and the correlation with the error."""
    with temporary_run(settings, seed) as run:
        gamma_K = class_margins(load_checkpoint(run.last)["method"]["loss.stats.size"])
        classes = Audit.from_checked(read_predictions(run.path)).classes
    errors = [1 - each.accuracy for each in classes]
    return (
        (gamma_K.std() / gamma_K.mean()).item(),
        (gamma_K.max() / gamma_K.min()).item(),
        spearmanr(gamma_K, errors)[0],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clinc", type=Path)
    parser.add_argument("--seeds", nargs="*", type=int, default=[110, 111, 112])
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| problem | deviation / mean | largest / smallest | correlation with the error |\n|---|---|---|---|")
    for problem, tuned in PROBLEMS.items():
        settings = problem_settings(problem, "choice", {"clinc": options.clinc}) | tuned | {"method": "mr2:strength=0"}
        columns = zip(*(run_one(settings, seed) for seed in options.seeds), strict=True)
        shown = [", ".join(f"{value:.2f}" for value in column) for column in columns]
        print(f"| {problem} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
