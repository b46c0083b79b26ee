"""How much the remedies for several runs could gain at most, and store it for docs/remedies.md.

    python benchmarks/remedies_headroom.py RUNS --problems digits mnist1d

Two bounds, on the test samples of the splits that remedies.py measures: repairing every error of the hard third that
not all of the runs make, and the adjustment of one run or of their average that is best on the test samples
themselves, within the limits of ``classgap fix``. No rule that chooses on other samples can be expected to reach them.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import stored
from remedies_runs import BASELINE, PROBLEMS, SEEDS, run_path

from classgap.audit import read_predictions
from classgap.audit.diagnosis.counterfactuals import TopScores
from classgap.audit.io.predictions import Predictions
from classgap.remedies.adjustments import Calibrated, Context, adjustments
from classgap.remedies.evaluation import Measured, Ranking, group_weights, measure
from classgap.remedies.modules import mean_probability
from classgap.remedies.selection import Limits, predict

RESULTS = stored.RESULTS / "remedies_headroom.json"


def read_bounds() -> dict[str, dict[str, float]]:
    """Problem → bounds."""
    return stored.read(RESULTS) if RESULTS.exists() else {}


def best_adjustment(
    logits: list[Any],
    before_N: np.ndarray[Any, Any],
    targets_N: np.ndarray[Any, Any],
    ranking: Ranking,
    num_classes: int,
) -> float:
    """Largest gain of the hard third, within the limits, that an adjustment fitted to the same samples makes."""
    weights, limits = group_weights(targets_N, ranking, num_classes), Limits()

    def gain(after_N: np.ndarray[Any, Any]) -> float:
        change: dict[str, Measured] = measure(before_N, after_N, targets_N, weights)
        return change["hard"].change if limits.excess(change) == 0 else 0.0

    found = [0.0]
    for logits_NK in logits:
        found.append(gain(logits_NK.argmax(dim=1).numpy()))
        data = Calibrated.from_scores(TopScores.from_logits(logits_NK, targets_N))
        for family in adjustments(Context(num_classes)):
            found += [gain(predict(each.module, logits_NK)) for each in family.fit(data, ranking)]
    return max(found)


def headroom(models: list[Predictions], fraction: float, splits: int) -> dict[str, float]:
    """Bounds of one problem, as means over splits. Rates are fractions."""
    from remedies import random_split, take

    targets_N, num_classes = models[0].targets_N, models[0].num_classes
    predictions_MN = np.stack([each.predictions_N for each in models])
    wrong_MN = predictions_MN != targets_N
    rows = []
    for split in range(splits):
        fit, test = random_split(targets_N, fraction, split)
        best = int(np.argmin(wrong_MN[:, fit].mean(axis=1)))  # as classgap fix chooses its baseline
        ranking = Ranking.from_predictions(predictions_MN[best, fit], targets_N[fit], num_classes)
        hard = test[np.isin(targets_N[test], ranking.members["hard"])]
        errors, shared = wrong_MN[best, hard].sum(), wrong_MN[:, hard].all(axis=0).sum()
        logits = [take(each, test, "").logits_NK.float() for each in models]  # type: ignore[union-attr]
        sources = [logits[best], mean_probability(logits)]
        adjusted = best_adjustment(sources, predictions_MN[best, test], targets_N[test], ranking, num_classes)
        rows.append((len(hard), errors, shared, (errors - shared) / len(hard), adjusted, len(fit) / num_classes))
    names = ("n_hard", "n_errors", "n_shared", "repairable", "adjusted", "n_fit_per_class")
    found = {name: round(float(each), 4) for name, each in zip(names, np.mean(rows, axis=0), strict=True)}
    disagree = np.mean([np.mean(mine != other) for mine, other in combinations(predictions_MN, 2)])
    return found | {"n_runs": len(models), "disagree": round(float(disagree), 4)}


def describe(bounds: dict[str, float]) -> str:
    """Explain the bounds in a sentence or two."""
    repairable, adjusted = (f"{100 * bounds[name]:.1f}" for name in ("repairable", "adjusted"))
    return (
        f"Two runs disagree on {100 * bounds['disagree']:.1f} % of the samples on average. The hard third has "
        f"{bounds['n_hard']:.0f} test samples. The baseline misclassifies {bounds['n_errors']:.1f} of them (mean over "
        f"splits), and {bounds['n_shared']:.1f} are misclassified by all {bounds['n_runs']} runs. Correcting every "
        f"error that at least one run avoids would gain {repairable} points. The best adjustment of the baseline or of "
        f"the ensemble, fitted and chosen on the test samples themselves, would gain {adjusted} points, but `classgap "
        f"fix` has only {bounds['n_fit_per_class']:.0f} fitting samples per class to find one."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="runs of remedies_runs.py")
    parser.add_argument("--problems", nargs="*", default=["digits"])
    parser.add_argument("--splits", type=int, default=50)
    options = parser.parse_args()
    from remedies import FIT

    for problem in options.problems:
        models = [
            read_predictions(run_path(options.runs, problem, BASELINE, seed))
            for seed in PROBLEMS[problem].get("seeds", SEEDS)
        ]
        bounds = headroom(models, FIT[problem], options.splits)
        stored.write(RESULTS, read_bounds() | {f"{problem} × {len(models)}": bounds})
        print(f"{problem}: {describe(bounds)}")


if __name__ == "__main__":
    main()
