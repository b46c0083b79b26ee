"""Feature size under weight decay, MR² and a penalty on the feature norm, with the hard third.

    python experiments/mr2/feature_size.py > experiments/mr2/feature_size.md    # three minutes on one core

On MNIST-1D with another generator seed, 40 epochs, at the best learning rate. For each weight decay: the mean of ‖f‖²
over test samples and the accuracy of the hard third, averaged over seeds.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from plans import problem_settings
from training import temporary_run

from classgap import Audit
from classgap.audit import read_predictions

METHODS = {"erm": "cross-entropy", "mr2": "MR²", "feature-norm": "feature norm auto"}
DECAYS = (0.0005, 0.002, 0.005, 0.01)


def run_one(settings: dict[str, object], seed: int) -> tuple[float, float]:
    """Return the mean ‖f‖² and the accuracy of the hard third."""
    with temporary_run(settings, seed) as run:
        predictions = read_predictions(run.path)
    size = np.square(np.asarray(predictions.features_ND, dtype=np.float64)).sum(axis=1).mean()
    return float(size), 100 * Audit.from_checked(predictions).groups["hard"].accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="*", type=int, default=[110, 111, 112])
    options = parser.parse_args()
    torch.set_num_threads(1)
    base = problem_settings("mnist1d-40", "choice", {}) | {"lr": 0.3, "save_features": True}
    print("| weight decay |" + "".join(f" {name}: ‖f‖² | hard |" for name in METHODS.values()))
    print("|---|" + "---|---|" * len(METHODS))
    for weight_decay in DECAYS:
        cells = []
        for method in METHODS:
            settings = base | {"method": method, "weight_decay": weight_decay}
            size, hard = np.mean([run_one(settings, seed) for seed in options.seeds], axis=0)
            cells += [f"{size:.2f}", f"{hard:.1f}"]
        print(f"| {weight_decay:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
