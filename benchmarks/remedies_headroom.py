"""How much averaging five runs could gain at most: errors of the hard third that not all of the runs make.

python benchmarks/remedies_headroom.py RUNS --problems digits mnist1d
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
from remedies_runs import BASELINE, SEEDS, run_path

from classgap.audit import read_predictions
from classgap.remedies.evaluation import Ranking
from remedies import FIT, random_split


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="runs of remedies_runs.py")
    parser.add_argument("--problems", nargs="*", default=["digits"])
    parser.add_argument("--splits", type=int, default=50)
    options = parser.parse_args()
    for problem in options.problems:
        models = [read_predictions(run_path(options.runs, problem, BASELINE, seed)) for seed in SEEDS]
        targets_N, num_classes = models[0].targets_N, models[0].num_classes
        predictions_MN = np.stack([each.predictions_N for each in models])
        wrong_MN = predictions_MN != targets_N
        counts = []
        for split in range(options.splits):
            fit, test = random_split(targets_N, FIT[problem], split)
            best = int(np.argmin(wrong_MN[:, fit].mean(axis=1)))  # as classgap fix chooses its baseline
            ranking = Ranking.from_predictions(predictions_MN[best, fit], targets_N[fit], num_classes)
            hard = test[np.isin(targets_N[test], ranking.members["hard"])]
            counts.append((len(hard), wrong_MN[best, hard].sum(), wrong_MN[:, hard].all(axis=0).sum()))
        samples, errors, shared = np.mean(counts, axis=0)
        disagree = np.mean([np.mean(mine != other) for mine, other in combinations(predictions_MN, 2)])
        print(
            f"{problem}: two runs disagree on {100 * disagree:.1f} % of the samples. Hard third: {samples:.0f} test "
            f"samples, {errors:.1f} errors, {shared:.1f} of them in all runs; repairing the others gains "
            f"{100 * (errors - shared) / samples:.1f} points."
        )


if __name__ == "__main__":
    main()
