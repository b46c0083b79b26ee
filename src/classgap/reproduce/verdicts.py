"""Verdicts: does a result agree with the paper?

Data, networks and epochs of a smaller scale differ from the paper's, so that accuracies cannot be compared. Verdicts
compare *differences from the baseline*. Let d_i be the difference of seed i between a method and the baseline with the
same seed, and P the difference in the paper.

1. ``not run``: no seed has both the result and its baseline. ``cannot be run here``: data, weights or a package are
   missing. ``smoke``: the scale only shows that the recipe runs.
2. One seed: ``same direction`` if d_1 and P have the same sign, otherwise ``not reproduced``. One seed is never
   ``reproduced``.
3. Several seeds: a two-sided paired t-test of d_i (level 0.05).
   - ``reproduced``: mean d has the sign of P and p < 0.05. At a full scale, mean d must also be at least half of P.
   - ``same direction``: mean d has the sign of P, but one of the other conditions fails.
   - ``not reproduced``: mean d is 0 or has the other sign.
4. The paper shows no difference (|P| of at most 0.3 points, the standard deviation over seeds in MR² Table 15):
   ``reproduced`` if the 95 % interval of mean d lies within ±1 point, ``same direction`` if it contains 0, otherwise
   ``not reproduced``. One seed: ``same direction`` if |d_1| is at most 1 point.
5. A run that diverged counts as ``not reproduced``.
6. Standard deviations over seeds have no baseline. ``reproduced`` if the paper's value lies in the 95 % interval of
   ours (χ² distribution), otherwise ``not reproduced``; below 3 seeds ``not run``.
7. Settings are compared as they are: ``reproduced`` if equal.
8. ``not testable``: the runs of both sides are identical in all metrics and classes (for example, a method for
   long-tailed data on balanced data), or both accuracies are 100.0 %, or both are 0.0 %. Whatever the paper claims,
   such runs cannot show it; they decide nothing.

The verdict of a recipe is that of its claims: ``reproduced`` if all are, ``same direction`` if all have at least the
paper's direction, ``not reproduced`` if more than half are not, otherwise ``mixed``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Verdict = Literal[
    "reproduced",
    "same direction",
    "mixed",  # of a recipe
    "not reproduced",
    "not testable",
    "not run",
    "cannot be run here",
    "smoke",
    "baseline",
    "no claim",
]

JUDGED: tuple[Verdict, ...] = ("not reproduced", "same direction", "reproduced")  # from the least favorable
LEVEL = 0.05
TIE = 0.3  # points: the standard deviation over seeds in MR² Table 15
EQUIVALENT = 1.0  # points
ROUNDING = 0.05  # points: accuracies above 100 - 0.05 print as 100.0
MIN_SEEDS_FOR_DEVIATION = 3


@dataclass(frozen=True)
class Comparison:
    """Differences from the baseline over seeds.

    Attributes:
        n: Number of seeds.
        mean: Mean difference.
        low: Lower end of the 95 % interval of the mean; NaN with one seed.
        high: Upper end.
        p_value: p of the two-sided paired t-test; NaN with one seed, 0 if all differences are equal and not 0.
    """

    n: int
    mean: float
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan


def compare_paired(values: Sequence[float], baseline: Sequence[float]) -> Comparison:
    """Compare results with those of the baseline, seed by seed.

    Args:
        values: Results by seed.
        baseline: Results of the baseline with the same seeds.

    >>> compare_paired([3.0, 4.5, 5.0], [1.0, 2.0, 3.0]).p_value < 0.01
    True
    """
    from scipy import stats

    differences = np.asarray(values, dtype=float) - np.asarray(baseline, dtype=float)
    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return Comparison(n, mean)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    if error == 0:
        return Comparison(n, mean, mean, mean, 1.0 if mean == 0 else 0.0)
    half = float(stats.t.ppf(1 - LEVEL / 2, n - 1)) * error
    p_value = float(2 * stats.t.sf(abs(mean) / error, n - 1))
    return Comparison(n, mean, mean - half, mean + half, p_value)


def judge(comparison: Comparison | None, expected: float, *, full: bool, percent: bool) -> Verdict:
    """Return the verdict on a difference; see the rules of this module.

    Args:
        comparison: Differences from the baseline, in the unit of the paper; ``None`` without results.
        expected: Difference in the paper; ±inf if only its direction is known.
        full: Whether data, network and epochs are those of the paper.
        percent: Whether the unit is percentage points; other units have no rule for ties.

    >>> judge(Comparison(1, 2.0), 3.0, full=False, percent=True)
    'same direction'
    >>> judge(Comparison(5, 2.0, 1.0, 3.0, 0.003), 3.0, full=False, percent=True)
    'reproduced'
    """
    if comparison is None or comparison.n == 0:
        return "not run"
    if math.isnan(comparison.mean):
        return "not reproduced"
    if percent and abs(expected) <= TIE + 1e-9:
        return _judge_tie(comparison)
    if comparison.mean * math.copysign(1.0, expected) <= 0 or expected == 0:
        return "not reproduced"
    if comparison.n < 2 or not comparison.p_value < LEVEL:
        return "same direction"
    if full and math.isfinite(expected) and abs(comparison.mean) < abs(expected) / 2:
        return "same direction"
    return "reproduced"


def _judge_tie(comparison: Comparison) -> Verdict:
    if comparison.n < 2:
        return "same direction" if abs(comparison.mean) <= EQUIVALENT else "not reproduced"
    if comparison.low >= -EQUIVALENT and comparison.high <= EQUIVALENT:
        return "reproduced"
    return "same direction" if comparison.low <= 0 <= comparison.high else "not reproduced"


def is_saturated(values: Sequence[float], baseline: Sequence[float]) -> bool:
    """Whether the mean accuracies of both sides are 100.0 %, or both 0.0 %, so that no difference can show.

    >>> is_saturated([100.0, 99.98], [100.0, 100.0]), is_saturated([100.0, 100.0], [99.9, 99.9])
    (True, False)
    """
    means = [float(np.mean(each)) for each in (values, baseline)]
    return min(means) > 100 - ROUNDING or max(means) < ROUNDING


def deviation_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the standard deviation of normal values.

    >>> low, high = deviation_interval([1.0, 2.0, 3.0])
    >>> round(low, 2), round(high, 2)
    (0.52, 6.28)
    """
    from scipy import stats

    n = len(values)
    squares = (n - 1) * float(np.var(values, ddof=1))
    low, high = (squares / float(stats.chi2.ppf(level, n - 1)) for level in (1 - LEVEL / 2, LEVEL / 2))
    return math.sqrt(low), math.sqrt(high)


def judge_deviation(values: Sequence[float], expected: float) -> Verdict:
    """Return the verdict on a standard deviation over seeds; see the rules of this module."""
    if len(values) < MIN_SEEDS_FOR_DEVIATION:
        return "not run"
    low, high = deviation_interval(values)
    return "reproduced" if low <= expected <= high else "not reproduced"


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of a recipe from those of its claims.

    >>> combine(["reproduced", "same direction"]), combine(["not reproduced", "reproduced", "not reproduced"])
    ('same direction', 'not reproduced')
    >>> combine(["same direction", "not reproduced"])
    'mixed'
    >>> combine(["not run", "not run"]), combine([])
    ('not run', 'no claim')
    """
    for only in ("smoke", "cannot be run here", "not run"):
        if verdicts and all(each == only for each in verdicts):
            return only
    judged = [each for each in verdicts if each in JUDGED]
    if not judged:
        others: tuple[Verdict, ...] = ("cannot be run here", "smoke", "not run", "not testable")
        return next((each for each in others if each in verdicts), "no claim")
    if all(each == "reproduced" for each in judged):
        return "reproduced"
    failed = judged.count("not reproduced")
    return "same direction" if not failed else "not reproduced" if 2 * failed > len(judged) else "mixed"
