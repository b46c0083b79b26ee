"""Stored results as Markdown tables: thirds of the classes, and changes from a plan's first method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from plans import by_run, form_of, methods_of, read_plan, refuse_gaps, results_of
from scipy import stats

FIGURES = ("accuracy", "easy", "medium", "hard", "worst")
USUAL = 0.0005  # the weight decay that people take unless they tune it
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
    """Of each problem of several plans what ``hard`` shows, in a row, for the forms that all of them have; and the hard
    third of the first form that is compared against the others."""
    rows = [(name, problem) for name in names for problem in read_plan(name)["problems"] if results_of(name, problem)]
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
    rows: dict[str, list[dict[str, float]]] = {}
    for name in names:
        refuse_gaps(name)
        for problem in read_plan(name)["problems"]:
            tried = {each["weight_decay"] for each in methods_of(read_plan(name), problem).values()}
            rows[problem] = [best_hard(name, problem, decays) for decays in ({USUAL}, tried)]
    first, *others = [form for form in rows[next(iter(rows))][0] if all(form in usual for usual, _ in rows.values())]
    heads = [f"{first}, decay {USUAL:g}", "any decay", *(f"{form}: at {USUAL:g} | any" for form in others)]
    print(f"| problem | {' | '.join(heads)} |")
    print("|---|---|---|" + "---|---|" * len(others))
    for problem, bests in rows.items():
        reached = [f"{best[first]:.1f}" for best in bests]
        gains = [signed(best[form] - best[first]) for form in others for best in bests]
        print(f"| {' | '.join([problem, *reached, *gains])} |")


def best_hard(name: str, problem: str, decays: Collection[float]) -> dict[str, float]:
    """The best mean over the hard third at one of these weight decays, by form."""
    plan, found = read_plan(name), by_run(name)
    best: dict[str, float] = {}
    for each, settings in methods_of(plan, problem).items():
        if settings["weight_decay"] in decays:
            reached = 100 * mean([found[problem, each, seed] for seed in plan["seeds"]], "hard")
            best[form_of(each)] = max(reached, best.get(form_of(each), 0.0))
    return best


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
