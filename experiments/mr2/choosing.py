"""The best setting of a method, by the hard third on the samples that choices are made on."""

from __future__ import annotations

from typing import Any

import numpy as np
import plans
import yaml


def choose(name: str) -> None:
    """Print the best setting of each method, for each problem, as a plan has them."""
    chosen = {problem: chosen_settings(name, problem) for problem in plans.read_plan(name)["problems"]}
    print(yaml.safe_dump({"methods": chosen}, sort_keys=False, allow_unicode=True, width=120))


def chosen_settings(name: str, problem: str) -> dict[str, dict[str, Any]]:
    """The best setting of each method, under its name."""
    plan, runs = plans.read_plan(name), plans.runs_of(name, problem)
    methods = dict.fromkeys(map(plans.method_of, runs))
    best = [
        best_of({each: runs[each] for each in runs if plans.method_of(each) == kind}, plan.get("fitted", 0.0))
        for kind in methods
    ]
    return {setting: plans.methods_of(plan, problem)[setting] for setting, _ in best}


def best_of(runs: dict[str, list[dict[str, Any]]], fitted: float) -> tuple[str, float]:
    """Of the settings that fit this share of the training samples, the one with the best mean over the hard third; and
    this mean, in percent."""
    able = [each for each in runs if mean(runs[each], "train") >= fitted]
    if not able:
        reached = max(mean(each, "train") for each in runs.values())
        raise SystemExit(f"none of {', '.join(runs)} fits {fitted:.0%} of the training samples; the best {reached:.1%}")
    best = max(able, key=lambda each: (mean(runs[each], "hard"), each))
    return best, 100 * mean(runs[best], "hard")


def mean(lines: list[dict[str, Any]], figure: str) -> float:
    """Over trainings, of which one that failed has 0."""
    return float(np.mean([line.get(figure, 0.0) for line in lines]))
