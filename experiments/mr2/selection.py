"""Choose the best setting of each method by the hard third on the search samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import plans
import yaml


def print_chosen(name: str) -> None:
    """Print the best setting of each method and problem, in the format of a plan."""
    chosen = {problem: choose_settings(name, problem) for problem in plans.read_plan(name)["problems"]}
    print(yaml.safe_dump({"methods": chosen}, sort_keys=False, allow_unicode=True, width=120))


def choose_settings(name: str, problem: str) -> dict[str, dict[str, Any]]:
    """Return the best setting of each method by name."""
    plan, runs = plans.read_plan(name), plans.runs_by_method(name, problem)
    methods = dict.fromkeys(map(plans.method_of, runs))
    best = [
        find_best({each: runs[each] for each in runs if plans.method_of(each) == kind}, plan.get("fitted", 0.0))
        for kind in methods
    ]
    return {setting: plans.plan_methods(plan, problem)[setting] for setting, _ in best}


def find_best(runs: dict[str, list[dict[str, Any]]], fitted: float) -> tuple[str, float]:
    """Return the setting with the best mean hard third, in percent, among those with enough training accuracy."""
    able = [each for each in runs if mean(runs[each], "train") >= fitted]
    if not able:
        reached = max(mean(each, "train") for each in runs.values())
        raise SystemExit(
            f"none of {', '.join(runs)} fits {fitted:.0%} of the training samples; the best fits {reached:.1%}"
        )
    best = max(able, key=lambda each: (mean(runs[each], "hard"), each))
    return best, 100 * mean(runs[best], "hard")


def mean(lines: list[dict[str, Any]], metric: str) -> float:
    """Mean over runs; a failed run counts as 0."""
    return float(np.mean([line.get(metric, 0.0) for line in lines]))
