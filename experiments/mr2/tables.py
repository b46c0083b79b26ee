"""Stored results as Markdown tables: thirds of the classes, and changes from a plan's first method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from choosing import best_of, mean
from plans import form_of, methods_of, read_plan, refuse_gaps, results_of, runs_of
from scipy import stats

FIGURES = ("accuracy", "easy", "medium", "hard", "worst")
USUAL = 0.0005  # the weight decay of ``classgap train`` unless told otherwise
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
    if np.ptp(values) == 0:  # of equal changes a test says nothing
        return f"{values.mean():+.2f}"
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
    """Of each problem of several plans what ``hard`` shows, in a row, for the forms that all of them have; and the hard
    third of the first form that is compared against the others."""
    for name in names:
        refuse_gaps(name)
    rows = [(name, problem) for name in names for problem in read_plan(name)["problems"]]
    methods = {row: by_form(*row) for row in rows}
    first, *others = [form for form in methods[rows[0]] if all(form in here for here in methods.values())]
    heads = [head for form in others for head in (f"{form}: change", "easy")]
    heads += [f"{others[0]} against {form}" for form in others[1:]]
    print(f"| problem | seeds | fitted | {first}: hard | {' | '.join(heads)} |")
    print("|---|---|---|---|" + "---|" * len(heads))
    for row in rows:
        lines, named = results_of(*row), methods[row]
        runs = [[line for line in lines if line["method"] == named[form]] for form in (first, *others)]
        shown = [cell for form in others for cell in cells(lines, named[form], named[first])[1:]]
        shown += [cells(lines, named[others[0]], named[form])[1] for form in others[1:]]
        fitted = span([round(100 * mean(each, "train")) for each in runs])
        begin = [row[1], str(len(runs[0])), f"{fitted} %", f"{100 * mean(runs[0], 'hard'):.1f}"]
        print(f"| {' | '.join(begin + shown)} |")


def by_form(name: str, problem: str) -> dict[str, str]:
    """The one setting of each form that a plan has for a problem."""
    methods = methods_of(read_plan(name), problem)
    found = {form_of(method): method for method in methods}
    if len(found) < len(methods):
        raise SystemExit(f"{name} has several settings of a form for {problem}, and a row of a summary can show one")
    return found


def span(values: list[int]) -> str:
    """From the smallest to the largest."""
    return f"{min(values)} to {max(values)}" if len(set(values)) > 1 else str(values[0])


def worth(names: Sequence[str]) -> None:
    """What tuning the weight decay is worth to the first form, and what the others add before and after it: hard thirds
    at the best of the settings, on the samples that settings are chosen on."""
    rows = [(problem, best_hards(name, problem)) for name in names for problem in read_plan(name)["problems"]]
    first, *others = [form for form in rows[0][1] if all(form in found for _, found in rows)]
    heads = [f"{first}, decay {USUAL:g}", "any decay", *(f"{form}: at {USUAL:g} | any" for form in others)]
    print(f"| problem | {' | '.join(heads)} |")
    print("|---|---|---|" + "---|---|" * len(others))
    for problem, found in rows:
        reached = [f"{hard:.1f}" for hard in found[first]]
        gains = [signed(new - old) for form in others for new, old in zip(found[form], found[first], strict=True)]
        print(f"| {' | '.join([problem, *reached, *gains])} |")


def best_hards(name: str, problem: str) -> dict[str, tuple[float, float]]:
    """The best hard third at the usual weight decay and at any, for the forms that were run at the usual one."""
    plan, runs = read_plan(name), runs_of(name, problem)
    settings = methods_of(plan, problem)
    usual = {each: runs[each] for each in runs if settings[each].get("weight_decay", USUAL) == USUAL}
    if not usual:
        raise SystemExit(f"{name} has no setting of {problem} with weight decay {USUAL:g}")

    def best(form: str, some: dict[str, list[dict[str, Any]]]) -> float:
        return best_of({each: some[each] for each in some if form_of(each) == form}, plan.get("fitted", 0.0))[1]

    return {form: (best(form, usual), best(form, runs)) for form in dict.fromkeys(map(form_of, usual))}


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
