"""Cost of ``GapClassifier`` with a linear model: time against scikit-learn's ``LogisticRegression``, and accuracies.

    python benchmarks/sklearn_cost.py                      # 15,000 generated samples, 384 features, 150 classes
    python benchmarks/sklearn_cost.py --features FILE.npz  # train_x, train_y, test_x, test_y
    python benchmarks/sklearn_cost.py --features FILE.npz --store benchmarks/results/sklearn_cost.jsonl
    python benchmarks/sklearn_cost.py docs                 # writes the stored figures into docs/trainers/sklearn.md

The competitors take turns in one process; their minima of processor time are compared. Both minimize to the same
tolerance with the same penalty. ``--store`` adds a measurement; the page shows the range of those of CLINC150.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import stored
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from timing import paragraph

from classgap.integrations.sklearn import GapClassifier, hard_third_score

RESULTS = stored.RESULTS / "sklearn_cost.jsonl"
SECTION = stored.Section("docs/trainers/sklearn.md", "cost of the classifier")
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


def describe(lines: list[dict[str, Any]]) -> str:
    """Return the section of docs/trainers/sklearn.md."""
    samples, features, classes = (lines[0][name] for name in ("samples", "features", "classes"))

    def span(value: str, *names: str, scale: float = 1.0) -> str:
        found = [f"{scale * line['classifiers'][name][value]:.1f}" for line in lines for name in names]
        low, high = min(found, key=float), max(found, key=float)
        return low if low == high else f"{low} to {high}"

    mr2, elm, group = (f'`"{name}"` takes {span("ratio", name)} times' for name in ("mr2", "elm", "group-dro"))
    linear = span("accuracy", "LogisticRegression", "mr2", "elm", scale=100)
    command = f"python benchmarks/sklearn_cost.py --features FILE.npz --store {RESULTS.relative_to(stored.ROOT)}"
    return paragraph(
        f"On CLINC150 ({samples:,} sentence embeddings with {features} features, {classes} classes), {mr2} the CPU "
        f"time of `LogisticRegression`, and {elm}; all three have an accuracy of {linear} %. With mini-batches, "
        f"{group}, with {span('accuracy', 'group-dro', scale=100)} %. The ranges are those of {len(lines)} "
        f"measurements: `{command}`."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=("measure", "docs"), default="measure")
    parser.add_argument("--features", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    if options.command == "docs":
        SECTION.write(describe(stored.read_lines(RESULTS)))
        return
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
        stored.append_line(options.store, shape | {"environment": stored.environment(), "classifiers": found})


if __name__ == "__main__":
    main()
