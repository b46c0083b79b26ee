"""False-alarm rate and power of ``classgap gate`` on simulated pairs of models.

    python benchmarks/gate.py                # simulates what is not stored yet, then writes the tables of docs/gate.md
    python benchmarks/gate.py --markdown     # prints the tables of the stored results

A sample is right if a Gaussian variable is below the quantile of its class's accuracy; the two models' variables are
correlated, as models fail on similar samples, or the models have different samples (``--unpaired``). Three scenarios
lie exactly on the limits, so that every alarm is false:

- equal: both models have the same accuracies. Limits of 0 points for classes, overall, the easy and the hard third.
- limit: every class falls by 3 points. The same rules with limits of 3 points.
- floor: thirds at 90, 80 and 70 %. A lowest accuracy of 70 % and a gap of at most 20 points.

Two scenarios measure power: one class falls by 30 points (limit 3), or the hard third by 3 points (limit 0.5).
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import stored

import classgap as cg
from classgap.audit.gate import GateChecks
from classgap.audit.io.sources import ACCURACIES_ONLY

RESULTS = stored.RESULTS / "gate.jsonl"
SECTION = stored.Section("docs/gate.md", "gate results")

QUICK = replace(ACCURACIES_ONLY, n_resamples=2)
SIZES = ((10, 20), (10, 200), (100, 20), (100, 50), (1000, 50))  # classes, samples per class
CORRELATIONS = (0.0, 0.8, None)  # None for different test samples
FALSE_ALARMS = ("equal", "limit", "floor")
POWERS = ("class", "hard")
GROUPS = ("overall", "easy", "hard")


def trials(scenario: str, classes: int) -> int:
    """Number of simulated pairs; a gate of 1,000 classes takes a second."""
    many, few = (200, 40) if scenario in FALSE_ALARMS else (60, 20)
    return few if classes >= 1000 else many


def accuracies(scenario: str, classes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """True accuracies before and after."""
    if scenario == "floor":
        outer = classes // 3 + (classes % 3 == 2)
        before_K = np.repeat([0.9, 0.8, 0.7], [outer, classes - 2 * outer, outer])
        return before_K, before_K
    before_K = rng.permutation(np.linspace(0.6, 0.9, classes))
    after_K = before_K.copy()
    if scenario == "limit":
        after_K -= 0.03
    elif scenario == "class":
        after_K[0] -= 0.3
    elif scenario == "hard":
        after_K[np.argsort(before_K)[: classes // 3 + (classes % 3 == 2)]] -= 0.03
    return before_K, after_K


def rules(scenario: str) -> cg.GateRules:
    """Rules of a scenario."""
    if scenario == "floor":
        return cg.GateRules(min_class_accuracy=70, max_gap=20)
    if scenario == "class":
        return cg.GateRules(max_class_drop=3)
    if scenario == "hard":
        return cg.GateRules(max_group_drop={"hard": 0.5})
    limit = 0 if scenario == "equal" else 3
    return cg.GateRules(max_class_drop=limit, max_group_drop=dict.fromkeys(GROUPS, limit))


def draw(
    before_K: np.ndarray, after_K: np.ndarray, samples: int, correlation: float | None, rng: np.random.Generator
) -> tuple[cg.Audit, cg.Audit]:
    """Draw the predictions of both models on one test set, or on one each."""
    classes = len(before_K)
    targets_N = np.repeat(np.arange(classes), samples)
    shared_N = rng.standard_normal(len(targets_N))
    audits = []
    for side, rates_K in enumerate((before_K, after_K)):
        index_N = None if correlation is not None else np.arange(len(targets_N)) + side * len(targets_N)
        weight = correlation or 0.0
        own_N = np.sqrt(weight) * shared_N + np.sqrt(1 - weight) * rng.standard_normal(len(targets_N))
        cut_K = np.array([NormalDist().inv_cdf(rate) for rate in rates_K])
        predictions_N = np.where(own_N < cut_K[targets_N], targets_N, (targets_N + 1) % classes)
        audits.append(
            cg.Audit.from_predictions(predictions=predictions_N, targets=targets_N, index=index_N, settings=QUICK)
        )
    return audits[0], audits[1]


def simulate(scenario: str, classes: int, samples: int, correlation: float | None) -> dict[str, Any]:
    """Count how often the gate fails, and each rule."""
    sides = 101 if correlation is None else round(100 * correlation)
    rng = np.random.default_rng([classes, samples, sides, (*FALSE_ALARMS, *POWERS).index(scenario)])
    failed, broken, predicted = 0, defaultdict(int), []
    n_trials = trials(scenario, classes)
    for trial in range(n_trials):
        before_K, after_K = accuracies(scenario, classes, rng)
        checks = GateChecks.from_audits(
            *draw(before_K, after_K, samples, correlation, rng),
            rules(scenario),
            rename=None,
            seed=trial,
            unpaired=correlation is None,
        )
        results = checks.rule_results()
        if scenario == "class":
            failed += any(violation.name == "0" for rule in results for violation in rule.violations)
        else:
            failed += not all(rule.passed for rule in results)
        for rule in results:
            if not rule.passed:
                broken[rule.rule + (f" {rule.group}" if rule.group else "")] += 1
        if scenario in POWERS and trial < 10:
            result = checks.result()
            found = result.power.median if scenario == "class" else result.groups["hard"].detectable
            predicted.append(float("nan") if found is None else found)
    setting = {"scenario": scenario, "classes": classes, "samples": samples, "correlation": correlation}
    detectable = round(float(np.mean(predicted)), 2) if scenario in POWERS and not np.isnan(predicted).any() else None
    return setting | {"trials": n_trials, "failed": failed, "broken": dict(broken), "detectable": detectable}


def settings() -> Iterator[tuple[str, int, int, float | None]]:
    """Generate all settings."""
    for scenario in (*FALSE_ALARMS, *POWERS):
        for classes, samples in SIZES:
            for correlation in CORRELATIONS:
                yield scenario, classes, samples, correlation


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    """Setting of a stored line."""
    return line["scenario"], line["classes"], line["samples"], line["correlation"]


def tables() -> str:
    """Return the tables of the page."""
    lines = {key(line): line for line in stored.read_lines(RESULTS)}
    first = [
        "classes × samples",
        "correlation",
        "equal models",
        "every class at the limit",
        "accuracies and gap at the limit",
    ]
    second = [
        "classes × samples",
        "correlation",
        "one class − 30 points",
        "detectable",
        "hard third − 3 points",
        "detectable",
    ]
    alarms, powers = [first, ["---", "--:", "--:", "--:", "--:"]], [second, ["---", "--:", "--:", "--:", "--:", "--:"]]
    for classes, samples in SIZES:
        for correlation in CORRELATIONS:
            head = [f"{classes:,} × {samples}", "unpaired" if correlation is None else f"{correlation:g}"]
            cells = [_rate(lines[each, classes, samples, correlation]) for each in FALSE_ALARMS]
            alarms.append([*head, *cells])
            both = [lines[each, classes, samples, correlation] for each in POWERS]
            powers.append([*head, *(cell for line in both for cell in (_rate(line), _points(line["detectable"])))])
    pooled = [
        f"{100 * sum(line['failed'] for line in some) / sum(line['trials'] for line in some):.1f} %"
        for some in ([line for line in lines.values() if line["scenario"] == each] for each in FALSE_ALARMS)
    ]
    alarms.append(["all", "", *pooled])
    return "\n\n".join(
        f"{title}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in table)
        for title, table in (
            ("False alarms (nominal 5 %):", alarms),
            (
                "Power (fraction of drops detected), and the smallest drop that the gate reports as detectable with a "
                "probability of 80 %:",
                powers,
            ),
        )
    )


def _rate(line: dict[str, Any]) -> str:
    return f"{100 * line['failed'] / line['trials']:.1f} %"


def _points(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print the tables of the stored results")
    parser.add_argument("--scenarios", nargs="+", default=[*FALSE_ALARMS, *POWERS], help="simulate only these")
    arguments = parser.parse_args()
    if not arguments.markdown:
        known = {key(line) for line in stored.read_lines(RESULTS)}
        for setting in settings():
            if setting not in known and setting[0] in arguments.scenarios:
                line = simulate(*setting)
                stored.append_line(RESULTS, line)
                print(json.dumps(line), flush=True)
        if len(stored.read_lines(RESULTS)) < len(list(settings())):
            return
        SECTION.write(tables())
    print(tables())


if __name__ == "__main__":
    main()
