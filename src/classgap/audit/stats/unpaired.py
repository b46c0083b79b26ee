"""Counts of two sides whose test samples are different: tests, intervals and resamples for independent samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.audit import Audit
from classgap.audit.stats.intervals import resample_accuracies, wilson_bounds
from classgap.audit.stats.matching import ClassMatch
from classgap.audit.stats.paired_tests import ROUNDING


@dataclass(frozen=True)
class UnpairedCounts:
    """Correct predictions and samples of each class on two sides with different samples.

    Attributes:
        names: names of the U classes with samples on both sides.
        before_right_U: correct predictions before.
        before_support_U: samples before.
        after_right_U: correct predictions after.
        after_support_U: samples after.
    """

    names: tuple[str, ...]
    before_right_U: Integers
    before_support_U: Integers
    after_right_U: Integers
    after_support_U: Integers

    @property
    def n_runs(self) -> int:
        """Number of runs on each side."""
        return 1

    @property
    def support_U(self) -> Integers:
        """Number of samples of each class before."""
        return self.before_support_U

    @property
    def before_SU(self) -> Floats:
        """Accuracies before, (1, U)."""
        return (self.before_right_U / self.before_support_U)[None]

    @property
    def after_SU(self) -> Floats:
        """Accuracies after, (1, U)."""
        return (self.after_right_U / self.after_support_U)[None]

    def resample(self, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw bootstrap accuracies of both sides independently, (R, U) each."""
        return (
            resample_accuracies(self.before_right_U, self.before_support_U, n_resamples, rng),
            resample_accuracies(self.after_right_U, self.after_support_U, n_resamples, rng),
        )

    def swap_sides(self, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw accuracies with the samples of each class assigned to the two sides at random, (R, U) each.

        This is the null distribution of two equally good sides. The number of correct samples assigned to the first
        side is hypergeometric.
        """
        right_U = self.before_right_U + self.after_right_U
        wrong_U = self.before_support_U + self.after_support_U - right_U
        drawn_RU = rng.hypergeometric(right_U, wrong_U, self.before_support_U, size=(n_resamples, len(right_U)))
        return drawn_RU / self.before_support_U, (right_U - drawn_RU) / self.after_support_U

    def swap_classes(self, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw as :meth:`swap_sides`: sides of different sizes cannot be swapped as a whole."""
        return self.swap_sides(n_resamples, rng)

    def change_bounds(self, confidence_level: float) -> tuple[Floats, Floats]:
        """Newcombe's interval of after - before, for independent proportions, (U,) each."""
        before_U, after_U = self.before_SU[0], self.after_SU[0]
        low_before, high_before = wilson_bounds(self.before_right_U, self.before_support_U, confidence_level)
        low_after, high_after = wilson_bounds(self.after_right_U, self.after_support_U, confidence_level)
        change_U = after_U - before_U
        return (
            change_U - np.hypot(after_U - low_after, high_before - before_U),
            change_U + np.hypot(high_after - after_U, before_U - low_before),
        )

    def class_tests(self, below: float = 0.0) -> tuple[Floats, Floats]:
        """Fisher's exact test of each class; see :func:`fisher_test`."""
        found = [
            fisher_test((int(a), int(n)), (int(b), int(m)), below)
            for a, n, b, m in zip(
                self.before_right_U, self.before_support_U, self.after_right_U, self.after_support_U, strict=True
            )
        ]
        return np.array([p for p, _ in found]), np.array([largest for _, largest in found])


def fisher_test(first: tuple[int, int], second: tuple[int, int], below: float = 0.0) -> tuple[float, float]:
    """Two-sided p-value of Fisher's exact test, and the largest attainable p-value of at most ``below``.

    Given the number of correct samples of both sides together, that of the first is hypergeometric if both are equally
    good. The p-value sums the probabilities of all tables that are at most as probable as the observed one.

    Args:
        first: successes and total of the first side.
        second: successes and total of the second side.
        below: threshold of the second value, 0 if no p-value is that small.

    >>> p, largest = fisher_test((8, 10), (1, 6), below=0.5)
    >>> round(p, 4), round(largest, 4)
    (0.035, 0.3024)
    """
    from scipy.special import gammaln

    (a, n), (b, m) = first, second
    right = a + b
    low, high = max(0, right - m), min(n, right)
    k = np.arange(low, high + 1)
    log_chance = -(gammaln(k + 1) + gammaln(n - k + 1) + gammaln(right - k + 1) + gammaln(m - right + k + 1))
    chance = np.exp(log_chance - log_chance.max())
    chance /= chance.sum()
    order = np.argsort(chance, kind="stable")
    sums = np.cumsum(chance[order])
    last = np.searchsorted(chance[order], chance * (1 + 1e-7), side="right") - 1  # ties are equally probable
    p_k = np.minimum(sums[last], 1.0)
    attainable = p_k[p_k <= below + ROUNDING]
    return float(p_k[a - low]), float(attainable.max(initial=0.0))


def count_unpaired(before: Audit, after: Audit, classes: ClassMatch) -> UnpairedCounts:
    """Count both sides, for the classes that have samples on both.

    Raises:
        ValueError: if no class has samples on both sides.
    """
    found = [_class_counts(audit, classes, first_side=first) for audit, first in ((before, True), (after, False))]
    seen = np.flatnonzero((found[0][1] > 0) & (found[1][1] > 0))
    if not len(seen):
        raise ValueError(f"{before.name!r} and {after.name!r} cannot be compared: no class has samples on both sides.")
    names = tuple(classes.names[k] for k in seen)
    return UnpairedCounts(names, found[0][0][seen], found[0][1][seen], found[1][0][seen], found[1][1][seen])


def _class_counts(audit: Audit, classes: ClassMatch, *, first_side: bool) -> tuple[Integers, Integers]:
    """Correct samples and samples of each matched class; 0 where the audit has no samples of it."""
    rename = classes.renamed if first_side else {}
    entries = {rename.get(entry.name, entry.name): entry for entry in audit.classes}
    support_K = np.array([entries[name].support for name in classes.names])
    accuracy_K = np.array([entries[name].accuracy or 0.0 for name in classes.names])
    return np.rint(accuracy_K * support_K).astype(np.int64), support_K
