"""Figures of ``classgap demo`` in the README: store them after a demo, and write the table.

make demo                                        # about three minutes on two cores
python benchmarks/demo.py measure classgap-demo  # writes results/demo.json
python benchmarks/demo.py docs                   # writes the table and its note in README.md
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import stored

from classgap.audit import Audit
from classgap.remedies import fix

RESULTS = stored.RESULTS / "demo.json"
SECTION = stored.Section("README.md", "demo")
PARTS = ("overall", "easy", "hard")
LABELS = {"erm": "cross-entropy", "mr2": "`MR2Loss`"}


def measure(folder: Path) -> dict[str, Any]:
    """Read the accuracies of the runs of a demo, and repeat its fix, which is quick and always chooses the same."""
    runs = {method: sorted(folder.glob(f"{method}-seed*")) for method in LABELS}
    accuracies = {method: [part_accuracies(Audit.load(run / "audit.json")) for run in runs[method]] for method in runs}
    result = fix(runs["erm"])
    if result.proof is None:
        raise ValueError(f"the fix of {folder} found no remedy, so the README has nothing to report.")
    proof = {
        part: {"before": change.before, "after": change.after, "interval": list(change.interval)}
        for part in PARTS
        for change in [result.proof[part]]
    }
    epochs = {len((run / "metrics.jsonl").read_text().splitlines()) - 1 for runs_ in runs.values() for run in runs_}
    return {"epochs": epochs.pop(), "accuracy": accuracies, "fix": {"chosen": result.chosen, "proof": proof}}


def part_accuracies(audit: Audit) -> dict[str, float]:
    """Return the accuracies of a run, over all samples and in the thirds of its own ranking."""
    thirds = {name: audit.groups[name].accuracy for name in PARTS[1:]}
    return {"overall": audit.overall.accuracy} | {
        name: float(value) for name, value in thirds.items() if value is not None
    }


def table(results: dict[str, Any]) -> str:
    """Return the table and its note as Markdown."""
    proof = results["fix"]["proof"]
    before, change, low, high = (
        100 * value
        for hard in [proof["hard"]]
        for value in (hard["before"], hard["after"] - hard["before"], *hard["interval"])
    )
    seeds = len(results["accuracy"]["erm"])
    remedies = results["fix"]["chosen"].replace("class-offsets", "class offsets").replace("+", " and ")
    rows = [
        f"| test accuracy in %, MNIST-1D, {results['epochs']} epochs (`make demo`) "
        "| overall | easy third | hard third |",
        "|---|---|---|---|",
        _row("erm", results, seeds),
        f"| `classgap fix` on these {seeds} runs: {remedies}, no training | "
        + " | ".join(f"{100 * proof[part]['after']:.1f}" for part in PARTS)
        + " |",
        _row("mr2", results, seeds),
    ]
    note = (
        "Mean ± standard deviation over seeds; each run ranks its own classes. The fix is compared with the best "
        "single run, in thirds\nformed from validation accuracies: the hard third rises from "
        f"{before:.1f} by {change:.1f} points (95 % CI {low:.1f} to {high:.1f}). Measured\nwith two threads; with "
        "another number of threads, the last digits can differ."
    )
    return "\n".join(rows) + "\n\n" + note + "\n"


def _row(method: str, results: dict[str, Any], seeds: int) -> str:
    values = np.array([[run[part] for part in PARTS] for run in results["accuracy"][method]]) * 100
    cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(values.mean(axis=0), values.std(axis=0, ddof=1), strict=True)]
    return f"| {LABELS[method]}, {seeds} seeds | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("measure").add_argument("folder", type=Path)
    commands.add_parser("docs")
    options = parser.parse_args()
    if options.command == "docs":
        SECTION.write(table(stored.read(RESULTS)))
    else:
        stored.write(RESULTS, measure(options.folder))


if __name__ == "__main__":
    main()
