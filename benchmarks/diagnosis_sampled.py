"""Is the diagnosis right as often if the error budget examines a part of a large test set?

    OMP_NUM_THREADS=1 python benchmarks/diagnosis_sampled.py

Audits each problem twice: with a part of the test samples examined, and with all of them. The small problems are those
of ``diagnosis.py`` that examine two fifths of the test set. The large ones, one seed each, have 150,000 test samples;
an audit examines 50,000 of them by default.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import diagnosis
from diagnosis_grid import CONFIGURATIONS
from diagnosis_problems import Configuration

SMALL = [c for c in CONFIGURATIONS if c.examined is not None]
LARGE = [
    Configuration(cause, model, inputs, test_each=15_000)
    for cause, model, inputs in (
        ("labels", "logreg", "scores"),
        ("labels-several", "nb", "scores+valid"),
        ("twins", "logreg", "all"),
        ("near", "nb", "features"),
        ("bias", "nb", "scores"),
    )
]
ALL = 10**9


def audit_twice(chosen: Sequence[Configuration], seeds: Sequence[int]) -> tuple[list[diagnosis.Result], ...]:
    """Audit each problem with a part of the samples examined, and with all."""
    part, whole = [], []
    for configuration in chosen:
        for seed in seeds:
            part.append(diagnosis.run(configuration, seed))
            whole.append(diagnosis.run(configuration, seed, examined=ALL))
    return part, whole


def table(part: list[diagnosis.Result], whole: list[diagnosis.Result]) -> list[list[str]]:
    """Return the rates of both, and how often they name the same first cause."""
    named = [[first for _, first in diagnosis.judged(results)] for results in (part, whole)]
    same = [a == b for a, b in zip(*named, strict=True)]
    rows = [["", "a part examined", "all examined"]]
    for title, rate in (
        ("first-named cause is right", diagnosis.right_causes),
        ("“wrong-labels” on clean labels", diagnosis.false_label_claims),
        ("no cause named where none was constructed", diagnosis.quiet_problems),
    ):
        rows.append([title, str(rate(part)), str(rate(whole))])
    return [*rows, ["same first-named cause", str(diagnosis.Rate(sum(same), len(same))), ""]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare diagnoses of a part of the test set with those of all.")
    parser.add_argument("--seeds", type=diagnosis.parse_seeds, default=diagnosis.parse_seeds("0-4"))
    seeds = parser.parse_args().seeds
    diagnosis.use_one_thread()
    for title, chosen, several in (("Small test sets", SMALL, seeds), ("Large test sets", LARGE, seeds[:1])):
        part, whole = audit_twice(chosen, several)
        examined = sorted({result["examined"] for result in part})
        print(f"{title}: {len(chosen)} configurations, {len(part)} problems, {examined} samples examined\n")
        print(diagnosis.format_table(table(part, whole), markdown=True), end="\n\n")


if __name__ == "__main__":
    main()
