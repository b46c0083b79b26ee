"""Valid labels, slices and superclasses: cost at the size of ImageNet's validation set, and false alarms of slices.

python benchmarks/labels.py
"""

import time
from typing import Any

import numpy as np

from classgap.audit import Audit
from classgap.audit.io.slice_columns import check_slices
from classgap.audit.metrics.slices import slice_result

SAMPLES, CLASSES = 50_000, 1_000
REPEATS = 4
DATA_SETS = 1_000
SIZES = ((2, 60), (5, 40), (12, 25), (8, 80))  # number of slices, samples per class


def measure_cost() -> None:
    """Print the time that each input adds to an audit of predicted labels."""
    rng = np.random.default_rng(0)
    targets = np.arange(SAMPLES) % CLASSES
    predictions = np.where(rng.random(SAMPLES) < 0.25, rng.integers(0, CLASSES, SAMPLES), targets)
    sets = [[int(t), int(p)] if rng.random() < 0.3 else [int(t)] for t, p in zip(targets, predictions, strict=True)]
    tree = {str(k): f"parent {k // 10}" for k in range(CLASSES)}
    tree |= {f"parent {k}": f"grandparent {k // 10}" for k in range(CLASSES // 10)}
    cases: dict[str, dict[str, Any]] = {
        "plain audit": {},
        "valid labels": {"valid_labels": sets},
        "slices": {"slices": rng.integers(0, 50, SAMPLES)},
        "hierarchy": {"hierarchy": tree},
    }
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(REPEATS):
        for name, given in cases.items():
            start = time.perf_counter()
            Audit.from_predictions(targets=targets, predictions=predictions, **given)
            best[name] = min(best[name], time.perf_counter() - start)
    plain = best.pop("plain audit")
    print(f"{SAMPLES:,} samples, {CLASSES:,} classes: plain audit {plain:.2f} s")
    for name, seconds in best.items():
        print(f"  {name}: {seconds - plain:+.2f} s")


def measure_alarms() -> None:
    """Print how often a slice is named although slices do not matter."""
    print(f"False alarms of slices at 5 %, {DATA_SETS:,} datasets of 6 classes each")
    for values, each in SIZES:
        rng = np.random.default_rng(values)
        alarms = 0
        for _ in range(DATA_SETS):
            targets = np.repeat(np.arange(6), each)
            correct = rng.random(len(targets)) >= np.linspace(0.1, 0.5, 6)[targets]
            accuracy = np.array([correct[targets == k].mean() for k in range(6)])
            columns = check_slices(rng.integers(0, values, len(targets)), len(targets))
            failing = np.flatnonzero(accuracy < accuracy.mean())
            found = slice_result(targets, correct, columns, list("abcdef"), failing, 0.95)
            alarms += any(entry.significant for entry in found.classes)
        print(f"  {values} slices, {each} samples per class: {100 * alarms / DATA_SETS:.1f} %")


if __name__ == "__main__":
    measure_cost()
    measure_alarms()
