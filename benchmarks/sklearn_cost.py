"""Cost of ``GapClassifier`` with a linear model: time against scikit-learn's ``LogisticRegression``, and accuracies.

    python benchmarks/sklearn_cost.py                      # 15,000 generated samples, 384 features, 150 classes
    python benchmarks/sklearn_cost.py --features FILE.npz  # train_x, train_y, test_x, test_y
    python benchmarks/sklearn_cost.py --features FILE.npz --store benchmarks/results/sklearn_cost.jsonl

The competitors take turns in one process; their minima of processor time are compared. Both minimize to the same
tolerance with the same penalty. ``--store`` adds a measurement; docs/trainers/sklearn.md shows their range.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression

from classgap.integrations.sklearn import GapClassifier, hard_third_score

COMPETITORS: dict[str, Any] = {
    "LogisticRegression": LogisticRegression(max_iter=1000),
    **{name: GapClassifier(name, max_iter=1000) for name in ("erm", "mr2", "elm", "logit-adjustment")},
    "group-dro": GapClassifier("group-dro", random_state=0),  # mini-batches
}


def generated() -> dict[str, np.ndarray]:
    """Samples around class centers, with enough noise that classes overlap."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(150, 384)) * 0.3
    data = {}
    for part, n in (("train", 15_000), ("test", 4500)):
        labels = np.arange(n) % 150
        data[f"{part}_x"] = centers[labels] + rng.normal(size=(n, 384)) * 1.8
        data[f"{part}_y"] = labels
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    data = generated() if options.features is None else dict(np.load(options.features))
    X, X_test = (data[name].astype(np.float32) for name in ("train_x", "test_x"))
    y, y_test = data["train_y"], data["test_y"]
    seconds = dict.fromkeys(COMPETITORS, math.inf)
    for _ in range(options.rounds):
        for name, model in COMPETITORS.items():
            start = time.process_time()
            model.fit(X, y)
            seconds[name] = min(seconds[name], time.process_time() - start)
    table = Table(title=f"{len(X)} samples, {X.shape[1]} features, {len(np.unique(y))} classes")
    for column in ("classifier", "seconds", "ratio", "iterations", "accuracy, %", "hard third, %"):
        table.add_column(column, justify="left" if column == "classifier" else "right")
    found = {}
    for name, model in COMPETITORS.items():
        predicted = model.predict(X_test)
        ratio, accuracy = seconds[name] / seconds["LogisticRegression"], float(np.mean(predicted == y_test))
        found[name] = {"ratio": round(ratio, 3), "accuracy": round(accuracy, 5)}
        table.add_row(
            name,
            f"{seconds[name]:.2f}",
            f"{ratio:.2f}",
            str(int(np.max(model.n_iter_))),
            f"{100 * accuracy:.2f}",
            f"{100 * hard_third_score(y_test, predicted):.2f}",
        )
    Console().print(table)
    if options.store is not None:
        shape = {"samples": len(X), "features": X.shape[1], "classes": len(np.unique(y)), "rounds": options.rounds}
        with options.store.open("a", encoding="utf-8") as file:
            file.write(json.dumps(shape | {"classifiers": found}) + "\n")


if __name__ == "__main__":
    main()
