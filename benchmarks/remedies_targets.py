"""Targets of ``classgap fix`` with default settings, and how far the stored results reach them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import stored

AVERAGED = {"mnist1d × 5": 1.0, "digits × 5": 1.0, "clinc150 × 5": 1.0, "cifar100-10": 2.0, "cifar100": 2.0}
SCORES_ONLY = ("20news", "cifar10", "mnist1d", "digits", "clinc150")
LONG_TAILED = ("mnist1d-lt", "mnist1d-lt × 5")
EASY_LIMIT, SCORES_GAIN, LONG_TAIL_GAIN = -0.3, 0.3, 10.0
TRAINED_GAIN, TRAINED_PROBLEMS = 2.0, 4
N_SPLITS, MAX_WORSE = 50, 3


@dataclass(frozen=True)
class Target:
    """One goal.

    Attributes:
        goal: The goal, with the problem.
        reached: What the stored results say.
        is_met: Whether they reach it.
    """

    goal: str
    reached: str
    is_met: bool


def targets(
    lines: Sequence[Mapping[str, Any]], searches: Sequence[Mapping[str, Any]], titles: Mapping[str, str]
) -> list[Target]:
    """Compare stored results with the targets. Changes are means over splits, 0 where nothing was chosen.

    Args:
        lines: Results of random splits.
        searches: Results of training searches.
        titles: Problem → title.
    """
    by_problem: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        by_problem.setdefault(line["problem"], []).append(line)
    return [*_splits(by_problem, titles), *_robustness(by_problem, titles), _training(searches, titles)]


def _splits(by_problem: Mapping[str, Sequence[Mapping[str, Any]]], titles: Mapping[str, str]) -> Iterator[Target]:
    for name, least in AVERAGED.items():
        goal = f"{titles[name]}: hard third at least {least:+g}, easy third at least {stored.signed(EASY_LIMIT)}"
        if name not in by_problem:
            yield Target(goal, "not measured", False)
            continue
        hard, easy = (_mean(by_problem[name], measure) for measure in ("hard", "easy"))
        yield Target(goal, f"{stored.signed(hard)}, {stored.signed(easy)}", hard >= least and easy >= EASY_LIMIT)
    gains = {name: _mean(by_problem[name], "hard") for name in SCORES_ONLY if name in by_problem}
    reached = f"{stored.signed(fmean(gains.values()))} ({', '.join(stored.signed(each) for each in gains.values())})"
    met = len(gains) == len(SCORES_ONLY) and fmean(gains.values()) >= SCORES_GAIN
    yield Target(f"one run, scores only: hard third at least {SCORES_GAIN:+g} on average", reached, met)
    for name in LONG_TAILED:
        gain = _mean(by_problem.get(name, ()), "hard")
        goal = f"{titles[name]}: hard third at least {LONG_TAIL_GAIN:+g}"
        yield Target(goal, stored.signed(gain), gain >= LONG_TAIL_GAIN)


def _robustness(by_problem: Mapping[str, Sequence[Mapping[str, Any]]], titles: Mapping[str, str]) -> Iterator[Target]:
    """One goal for all problems: enough splits, a positive mean, and few splits that are significantly worse."""
    worst_mean = min((_mean(own, "hard"), name) for name, own in by_problem.items())
    worse = max((sum("interval" in each and each["interval"][1] < 0 for each in own), name)
                for name, own in by_problem.items())  # fmt: skip
    few = {name: len(own) for name, own in by_problem.items() if len(own) < N_SPLITS}
    goal = f"{N_SPLITS} splits of each problem: mean change of the hard third above 0, "
    goal += f"significantly worse in at most {MAX_WORSE}"
    reached = f"lowest mean {stored.signed(worst_mean[0])} ({titles[worst_mean[1]]}), worse in at most {worse[0]}"
    if few:
        reached += "; only " + ", ".join(f"{count} splits of {titles[name]}" for name, count in few.items())
    yield Target(goal, reached, worst_mean[0] > 0 and worse[0] <= MAX_WORSE and not few)


def _training(searches: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> Target:
    """Gains over plain training on all training samples."""
    gains: dict[str, list[float]] = {}
    for line in searches:
        change = 0.0
        if line.get("proof"):
            hard = line["proof"]["hard"]
            change = 100 * (hard["after"] - line.get("plain", {"hard": hard["before"]})["hard"])
        gains.setdefault(line["problem"], []).append(change)
    means = {name: fmean(each) for name, each in gains.items()}
    enough = [name for name, each in means.items() if each >= TRAINED_GAIN]
    shown = {name: titles.get(name, name).partition(", one run")[0] for name in means}
    listed = ", ".join(f"{shown[name]} {stored.signed(each)}" for name, each in means.items())
    goal = f"with training: hard third at least {TRAINED_GAIN:+g} on {TRAINED_PROBLEMS} problems"
    return Target(goal, f"on {len(enough)} ({listed})", len(enough) >= TRAINED_PROBLEMS)


def _mean(lines: Sequence[Mapping[str, Any]], measure: str) -> float:
    return fmean([100 * each.get("proof", {}).get(measure, 0.0) for each in lines]) if lines else 0.0


def to_markdown(found: Sequence[Target]) -> str:
    """One row per target."""
    rows = ["| target | result | met |", "|---|---|---|"]
    return "\n".join(
        [*rows, *(f"| {each.goal} | {each.reached} | {'yes' if each.is_met else 'no'} |" for each in found)]
    )
