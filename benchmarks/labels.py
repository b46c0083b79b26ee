"""Valid labels, slices and superclasses: cost at the size of ImageNet's validation set, and false alarms of slices.

python benchmarks/labels.py            # about two minutes; stores results/labels.json
python benchmarks/labels.py --quick    # a tenth of the samples, no false alarms; stores nothing
python benchmarks/labels.py docs       # writes the stored cost into docs/labels.md
"""

from __future__ import annotations

from typing import Any

import numpy as np
import stored
import timing

from classgap.audit import Audit
from classgap.audit.io.slice_columns import check_slices
from classgap.audit.metrics.slices import slice_result

RESULTS = stored.RESULTS / "labels.json"
SECTION = stored.Section("docs/labels.md", "cost of labels")
SAMPLES, CLASSES = 50_000, 1_000
ROUNDS = 4
DATA_SETS = 1_000
SIZES = ((2, 60), (5, 40), (12, 25), (8, 80))  # number of slices, samples per class


def compare(samples: int, classes: int, repeats: int) -> dict[str, list[float]]:
    """Seconds of an audit of predicted labels, alone and with each input."""
    rng = np.random.default_rng(0)
    targets = np.arange(samples) % classes
    predictions = np.where(rng.random(samples) < 0.25, rng.integers(0, classes, samples), targets)
    sets = [[int(t), int(p)] if rng.random() < 0.3 else [int(t)] for t, p in zip(targets, predictions, strict=True)]
    tree = {str(k): f"parent {k // 10}" for k in range(classes)}
    tree |= {f"parent {k}": f"grandparent {k // 10}" for k in range(classes // 10)}
    cases: dict[str, dict[str, Any]] = {
        "plain": {},
        "valid labels": {"valid_labels": sets},
        "slices": {"slices": rng.integers(0, 50, samples)},
        "hierarchy": {"hierarchy": tree},
    }
    jobs = {
        name: lambda given=given: Audit.from_predictions(targets=targets, predictions=predictions, **given)
        for name, given in cases.items()
    }
    return timing.repeat(repeats, lambda: timing.fastest(jobs, ROUNDS))


def measure_alarms() -> list[dict[str, float]]:
    """Count how often a slice is named although slices do not matter, at 5 %."""
    found = []
    for values, each in SIZES:
        rng = np.random.default_rng(values)
        alarms = 0
        for _ in range(DATA_SETS):
            targets = np.repeat(np.arange(6), each)
            correct = rng.random(len(targets)) >= np.linspace(0.1, 0.5, 6)[targets]
            accuracy = np.array([correct[targets == k].mean() for k in range(6)])
            columns = check_slices(rng.integers(0, values, len(targets)), len(targets))
            failing = np.flatnonzero(accuracy < accuracy.mean())
            result = slice_result(targets, correct, columns, list("abcdef"), failing, 0.95)
            alarms += any(entry.significant for entry in result.classes)
        found.append({"slices": values, "samples per class": each, "data sets": DATA_SETS, "alarms": alarms})
        print(
            f"{values} slices, {each} samples per class: false alarms in {100 * alarms / DATA_SETS:.1f} % of the data"
        )
    return found


def measure(repeats: int, quick: bool) -> timing.Results:
    timing.use_one_thread()
    samples, classes = (SAMPLES // 10, CLASSES // 10) if quick else (SAMPLES, CLASSES)
    cost = {"samples": samples, "classes": classes, "seconds": compare(samples, classes, repeats)}
    return cost if quick else cost | {"false alarms": measure_alarms()}


def describe(results: timing.Results) -> str:
    """Return the section of docs/labels.md."""
    seconds, names = results["seconds"], ("valid labels", "slices", "hierarchy")
    plain = seconds["plain"]
    valid, slices, tree = (f"{timing.describe_ratio(seconds[name], plain)} times" for name in names)
    times = [timing.describe_seconds(seconds[name]) for name in names]
    size = f"{results['samples']:,} predicted labels of {results['classes']:,} classes"
    return timing.paragraph(
        f"`python benchmarks/labels.py`: an audit of {size} takes {valid} as long with valid labels, {slices} with 50 "
        f"slices and {tree} with a hierarchy: {times[0]}, {times[1]} and {times[2]} instead of "
        f"{timing.describe_seconds(plain)}. {timing.describe_conditions(results)}"
    )


if __name__ == "__main__":
    timing.main(__doc__, measure, describe, RESULTS, SECTION)
