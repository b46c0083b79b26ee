"""Stored results as Markdown tables: thirds of the classes, and changes from a plan's first method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from plans import form_of, methods_of, read_plan, refuse_gaps, results_of, stored
from scipy import stats

FIGURES = ("accuracy", "easy", "medium", "hard", "worst")
NOTHING = ["", "", ""]  # the cells of ``hard`` for a method that a problem has no results of


def table(name: str) -> None:
    plan = read_plan(name)
    for problem in plan["problems"]:
        here = results_of(name, problem)
        seeds = sorted({line["seed"] for line in here})
        print(f"\n**{problem}** ({len(seeds)} seeds; mean ± standard deviation, %)\n")
        print("| method | overall | easy | medium | hard | worst | hard: gain, p |\n|---|---|---|---|---|---|---|")
        for method in methods_of(plan, problem):
            rows = [line for line in here if line["method"] == method]
            figures = [np.array([100 * row.get(figure, 0.0) for row in rows]) for figure in FIGURES]  # 0 if it failed
            if rows:
                spread = [cell.std(ddof=1) if len(cell) > 1 else 0.0 for cell in figures]
                shown = [f"{cell.mean():.2f} ± {sd:.2f}" for cell, sd in zip(figures, spread, strict=True)]
                print(
                    f"| {method} | {' | '.join(shown)} | {gain(here, method, next(iter(methods_of(plan, problem))))} |"
                )


def gain(lines: list[dict[str, Any]], method: str, first: str) -> str:
    """The mean gain on the hard third over the first method, seed by seed, and a paired t-test's p."""
    values = differences(lines, method, first, "hard")
    if method == first or len(values) < 2:
        return ""
    return f"{values.mean():+.2f}, {stats.ttest_1samp(values, 0).pvalue:.3f}"


def hard(name: str) -> None:
    """Hard thirds, and changes of the hard and the easy third from the first method with 95 % intervals, by problem."""
    plan = read_plan(name)
    problems = [each for each in plan["problems"] if results_of(name, each)]
    print("| method |" + "".join(f" {each}: hard | change | easy, change |" for each in problems))
    print("|---|" + "---|---|---|" * len(problems))
    rows: dict[str, dict[str, list[str]]] = {}
    for problem in problems:
        here, methods = results_of(name, problem), list(methods_of(plan, problem))
        count = Counter(map(form_of, methods))
        for method in methods:
            row = form_of(method) if count[form_of(method)] == 1 else method  # several settings: a row for each
            rows.setdefault(row, {})[problem] = cells(here, method, methods[0])
    for row, found in rows.items():
        shown = [cell for problem in problems for cell in found.get(problem, NOTHING)]
        if any(shown):
            print(f"| {row} | {' | '.join(shown)} |")


def cells(lines: list[dict[str, Any]], method: str, first: str) -> list[str]:
    """What ``hard`` shows of a method on one problem; nothing if nothing is stored."""
    values = [100 * line.get("hard", 0.0) for line in lines if line["method"] == method]
    if not values:
        return NOTHING
    parts = ("hard", "easy")
    changes = ["" if method == first else interval(differences(lines, method, first, part)) for part in parts]
    return [f"{np.mean(values):.1f}", *changes]


def summary(names: Sequence[str]) -> None:
    """Of each problem of several plans what ``hard`` shows, in a row, for the forms that all of them have."""
    rows = [(name, problem) for name in names for problem in read_plan(name)["problems"] if results_of(name, problem)]
    methods = {row: {form_of(method): method for method in methods_of(read_plan(row[0]), row[1])} for row in rows}
    first, *others = [form for form in methods[rows[0]] if all(form in here for here in methods.values())]
    print(f"| problem | seeds | fitted | {first}: hard |" + "".join(f" {form}: change | easy |" for form in others))
    print("|---|---|---|---|" + "---|---|" * len(others))
    for row in rows:
        lines, named = results_of(*row), methods[row]
        runs = [[line for line in lines if line["method"] == named[form]] for form in (first, *others)]
        shown = [cell for form in others for cell in cells(lines, named[form], named[first])[1:]]
        fitted = span([round(100 * mean(each, "train")) for each in runs])
        begin = [row[1], str(len(runs[0])), f"{fitted} %", f"{100 * mean(runs[0], 'hard'):.1f}"]
        print(f"| {' | '.join(begin + shown)} |")


def span(values: list[int]) -> str:
    """From the smallest to the largest."""
    return f"{min(values)} to {max(values)}" if len(set(values)) > 1 else str(values[0])


def decay(name: str) -> None:
    """Changes of the hard third from the first form at the same setting: means by weight decay, how often better."""
    plan = read_plan(name)
    refuse_gaps(name, plan, {(line["problem"], line["method"], line["seed"]) for line in stored(name)})
    columns = {
        f"{problem}: {form}": changes
        for problem in plan["problems"]
        for form, changes in changes_at_settings(methods_of(plan, problem), results_of(name, problem)).items()
    }
    print("| weight decay |" + "".join(f" {column} |" for column in columns))
    print("|---|" + "---|" * len(columns))
    for weight in sorted({weight for changes in columns.values() for weight, _ in changes}):
        means = [np.mean([change for here, change in changes if here == weight]) for changes in columns.values()]
        print(f"| {weight:g} |" + "".join(f" {signed(each)} |" for each in means))
    largest = [f" {signed(max(change for _, change in changes))} |" for changes in columns.values()]
    print("| the largest at one setting |" + "".join(largest))
    better = [f" {sum(change > 0 for _, change in changes)} of {len(changes)} |" for changes in columns.values()]
    print("| settings at which it is better |" + "".join(better))


def changes_at_settings(
    settings: dict[str, dict[str, Any]], lines: list[dict[str, Any]]
) -> dict[str, list[tuple[float, float]]]:
    """Weight decay and change from the first form, for each form that was run at all settings of the first."""
    first, *others = dict.fromkeys(map(form_of, settings))
    pairs = {
        form: [(each, first + each.removeprefix(form)) for each in settings if form_of(each) == form] for form in others
    }
    return {
        form: [(settings[new]["weight_decay"], differences(lines, new, old, "hard").mean()) for new, old in here]
        for form, here in pairs.items()
        if len(here) == sum(form_of(each) == first for each in settings)
    }


def differences(lines: list[dict[str, Any]], method: str, first: str, part: str) -> np.ndarray:
    """Points of a third over the first method, a number a seed; a run that failed has 0."""
    found = {(line["method"], line["seed"]): 100 * line.get(part, 0.0) for line in lines}
    seeds = [seed for name, seed in found if name == method and (first, seed) in found]
    return np.array([found[method, seed] - found[first, seed] for seed in seeds])


def interval(values: np.ndarray) -> str:
    """Mean and 95 % interval; a mean alone, or nothing, where there are too few."""
    if len(values) < 2:
        return signed(values.mean()) if len(values) else ""
    return f"{signed(values.mean())} ± {half_width(values):.1f}"


def signed(value: float) -> str:
    """With its sign and one digit; what rounds to nothing is +0.0."""
    return f"{round(value, 1) + 0.0:+.1f}"


def half_width(values: np.ndarray) -> float:
    """Of the 95 % interval of a mean of two or more, by Student's t."""
    return stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5


def mean(lines: list[dict[str, Any]], figure: str) -> float:
    """Over trainings, of which one that failed has 0."""
    return float(np.mean([line.get(figure, 0.0) for line in lines]))
