"""Print stored results as Markdown tables: thirds of the classes, and changes from a plan's first method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from plans import check_complete, form_of, plan_methods, problem_results, read_plan, runs_by_method
from scipy import stats
from selection import find_best, mean

METRICS = ("accuracy", "easy", "medium", "hard", "worst")
DEFAULT_DECAY = 0.0005  # default weight decay of ``classgap train``
EMPTY = ["", "", ""]  # cells of ``hard`` without results


def table(name: str) -> None:
    plan = read_plan(name)
    for problem in plan["problems"]:
        here = problem_results(name, problem)
        seeds = sorted({line["seed"] for line in here})
        print(f"\n**{problem}** ({len(seeds)} seeds; mean ± standard deviation, %)\n")
        print("| method | overall | easy | medium | hard | worst | hard: gain, p |\n|---|---|---|---|---|---|---|")
        first, *_ = methods = list(plan_methods(plan, problem))
        for method in methods:
            rows = [line for line in here if line["method"] == method]
            values = [np.array([100 * row.get(metric, 0.0) for row in rows]) for metric in METRICS]  # 0 if failed
            if rows:
                spread = [cell.std(ddof=1) if len(cell) > 1 else 0.0 for cell in values]
                shown = [f"{cell.mean():.2f} ± {sd:.2f}" for cell, sd in zip(values, spread, strict=True)]
                print(f"| {method} | {' | '.join(shown)} | {gain(here, method, first)} |")


def gain(lines: list[dict[str, Any]], method: str, first: str) -> str:
    """Mean gain on the hard third over the first method, and p of a paired t-test over seeds."""
    values = differences(lines, method, first, "hard")
    if method == first or len(values) < 2:
        return ""
    if np.ptp(values) == 0:  # a t-test of equal changes is undefined
        return f"{values.mean():+.2f}"
    return f"{values.mean():+.2f}, {stats.ttest_1samp(values, 0).pvalue:.3f}"


def hard(name: str) -> None:
    """Print hard thirds, and changes of the hard and easy third from the first method with 95 % intervals."""
    plan = read_plan(name)
    problems = [each for each in plan["problems"] if problem_results(name, each)]
    print("| method |" + "".join(f" {each}: hard | change | easy, change |" for each in problems))
    print("|---|" + "---|---|---|" * len(problems))
    rows: dict[str, dict[str, list[str]]] = {}
    for problem in problems:
        here, methods = problem_results(name, problem), list(plan_methods(plan, problem))
        count = Counter(map(form_of, methods))
        for method in methods:
            row = form_of(method) if count[form_of(method)] == 1 else method  # one row per setting if there are several
            rows.setdefault(row, {})[problem] = cells(here, method, methods[0])
    for row, found in rows.items():
        shown = [cell for problem in problems for cell in found.get(problem, EMPTY)]
        if any(shown):
            print(f"| {row} | {' | '.join(shown)} |")


def cells(lines: list[dict[str, Any]], method: str, first: str) -> list[str]:
    """Cells of ``hard`` for a method on a problem; empty without results."""
    values = [100 * line.get("hard", 0.0) for line in lines if line["method"] == method]
    if not values:
        return EMPTY
    parts = ("hard", "easy")
    changes = ["" if method == first else interval(differences(lines, method, first, part)) for part in parts]
    return [f"{np.mean(values):.1f}", *changes]


def summary(names: Sequence[str]) -> None:
    """Print one row per problem of several plans, for the forms that all plans have."""
    for name in names:
        check_complete(name)
    rows = [(name, problem) for name in names for problem in read_plan(name)["problems"]]
    methods = {row: methods_by_form(*row) for row in rows}
    first, *others = [form for form in methods[rows[0]] if all(form in here for here in methods.values())]
    heads = [head for form in others for head in (f"{form}: change", "easy")]
    heads += [f"{others[0]} against {form}" for form in others[1:]]
    print(f"| problem | seeds | fitted | {first}: hard | {' | '.join(heads)} |")
    print("|---|---|---|---|" + "---|" * len(heads))
    for row in rows:
        lines, named = problem_results(*row), methods[row]
        runs = [[line for line in lines if line["method"] == named[form]] for form in (first, *others)]
        shown = [cell for form in others for cell in cells(lines, named[form], named[first])[1:]]
        shown += [cells(lines, named[others[0]], named[form])[1] for form in others[1:]]
        fitted = format_range([round(100 * mean(each, "train")) for each in runs])
        begin = [row[1], str(len(runs[0])), f"{fitted} %", f"{100 * mean(runs[0], 'hard'):.1f}"]
        print(f"| {' | '.join(begin + shown)} |")


def methods_by_form(name: str, problem: str) -> dict[str, str]:
    """Return the only setting of each form."""
    methods = plan_methods(read_plan(name), problem)
    found = {form_of(method): method for method in methods}
    if len(found) < len(methods):
        raise SystemExit(f"{name} has several settings of a form for {problem}; a summary shows one")
    return found


def format_range(values: list[int]) -> str:
    """Format the smallest and the largest value."""
    return f"{min(values)} to {max(values)}" if len(set(values)) > 1 else str(values[0])


def worth(names: Sequence[str]) -> None:
    """Print the gain from tuning weight decay for the first form, and the gain of the others before and after it.

    Hard thirds are those of the best settings, on the search samples.
    """
    rows = [(problem, best_hards(name, problem)) for name in names for problem in read_plan(name)["problems"]]
    first, *others = [form for form in rows[0][1] if all(form in found for _, found in rows)]
    heads = [
        f"{first}, decay {DEFAULT_DECAY:g}",
        "any decay",
        *(f"{form}: at {DEFAULT_DECAY:g} | any" for form in others),
    ]
    print(f"| problem | {' | '.join(heads)} |")
    print("|---|---|---|" + "---|---|" * len(others))
    for problem, found in rows:
        reached = [f"{hard:.1f}" for hard in found[first]]
        gains = [signed(new - old) for form in others for new, old in zip(found[form], found[first], strict=True)]
        print(f"| {' | '.join([problem, *reached, *gains])} |")


def best_hards(name: str, problem: str) -> dict[str, tuple[float, float]]:
    """Best hard third at the default weight decay and at any, for forms that were run at the default."""
    plan, runs = read_plan(name), runs_by_method(name, problem)
    settings = plan_methods(plan, problem)
    default = {each: runs[each] for each in runs if settings[each].get("weight_decay", DEFAULT_DECAY) == DEFAULT_DECAY}
    if not default:
        raise SystemExit(f"{name} has no {problem} with weight decay {DEFAULT_DECAY:g}")

    def best(form: str, some: dict[str, list[dict[str, Any]]]) -> float:
        return find_best({each: some[each] for each in some if form_of(each) == form}, plan.get("fitted", 0.0))[1]

    return {form: (best(form, default), best(form, runs)) for form in dict.fromkeys(map(form_of, default))}


def differences(lines: list[dict[str, Any]], method: str, first: str, part: str) -> np.ndarray:
    """Differences from the first method in percentage points, one per seed; a failed run counts as 0."""
    found = {(line["method"], line["seed"]): 100 * line.get(part, 0.0) for line in lines}
    seeds = [seed for name, seed in found if name == method and (first, seed) in found]
    return np.array([found[method, seed] - found[first, seed] for seed in seeds])


def interval(values: np.ndarray) -> str:
    """Format the mean and its 95 % interval, the mean alone for one value, and nothing for none."""
    if len(values) < 2:
        return signed(values.mean()) if len(values) else ""
    return f"{signed(values.mean())} ± {half_width(values):.1f}"


def signed(value: float) -> str:
    """Format with sign and one digit; never -0.0."""
    return f"{round(value, 1) + 0.0:+.1f}"


def half_width(values: np.ndarray) -> float:
    """Half width of the 95 % interval of the mean (Student's t)."""
    return stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
