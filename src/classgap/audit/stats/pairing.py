"""Audits of the same test samples, side by side: refused unless they are, then counted and resampled together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.audit import Audit
from classgap.audit.stats.intervals import bessel_factor

CHUNK_DRAWS = 8_000_000


@dataclass(frozen=True)
class PairedCounts:
    """Of each seen class, how many samples were right how often on each side.

    With S seeds a sample is right 0 … S times before and 0 … S times after.

    Attributes:
        names: the seen classes, U of them.
        cells_UBA: number of samples, by times right before and times right after, (U, S+1, S+1).
        before_SU: accuracies of each run before.
        after_SU: accuracies of each run after.
    """

    names: tuple[str, ...]
    cells_UBA: Integers
    before_SU: Floats
    after_SU: Floats

    @property
    def runs_per_side(self) -> int:
        """S, the number of pairs of runs."""
        return len(self.before_SU)

    @property
    def support_U(self) -> Integers:
        """Samples of each class."""
        return self.cells_UBA.sum(axis=(1, 2))

    @property
    def fixed_U(self) -> Integers:
        """Samples that are right more often after."""
        return np.triu(self.cells_UBA, k=1).sum(axis=(1, 2))

    @property
    def broken_U(self) -> Integers:
        """Samples that are right less often after."""
        return np.tril(self.cells_UBA, k=-1).sum(axis=(1, 2))

    @property
    def steps_BA(self) -> Integers:
        """How many times more a sample of each cell is right after than before, -S … S."""
        times = np.arange(self.runs_per_side + 1)
        return times - times[:, None]

    def moments(self) -> tuple[Floats, Floats]:
        """Σd and Σd² over each class's samples, d the change of a sample's share of runs that are right, (U,) each."""
        share_BA = self.steps_BA / self.runs_per_side
        return (self.cells_UBA * share_BA).sum(axis=(1, 2)), (self.cells_UBA * share_BA**2).sum(axis=(1, 2))

    def moves_US(self) -> Integers:
        """How many samples of each class are right 1 … S times more, or less, on one side than on the other."""
        distance_BA = np.abs(self.steps_BA)
        return np.stack(
            [self.cells_UBA[:, distance_BA == k].sum(axis=1) for k in range(1, self.runs_per_side + 1)], axis=1
        )

    def resample(self, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Mean accuracies before and after in each bootstrap replicate, (R, U) each.

        Samples are drawn within their class, each with its results on both sides; how many fall into each cell has
        the multinomial distribution, which is drawn directly. Deviations are stretched, and a single sample drawn
        from all classes, as in :func:`~classgap.audit.stats.intervals.resample_accuracies`.
        """
        classes, cells = len(self.names), (self.runs_per_side + 1) ** 2
        shares_UC = self.cells_UBA.reshape(classes, cells) / self.support_U[:, None]
        shares_UC = np.where(self.support_U[:, None] > 1, shares_UC, shares_UC.mean(axis=0))

        def draw(size: int) -> Integers:
            return rng.multinomial(self.support_U, shares_UC, size=(size, classes)).reshape(size, *self.cells_UBA.shape)

        before_RU, after_RU = self._accuracies(draw, n_resamples)
        times, shares_UBA = (
            np.arange(self.runs_per_side + 1) / self.runs_per_side,
            shares_UC.reshape(self.cells_UBA.shape),
        )
        stretch_U = bessel_factor(self.support_U)
        return (
            self.before_SU.mean(axis=0) + stretch_U * (before_RU - shares_UBA.sum(axis=2) @ times),
            self.after_SU.mean(axis=0) + stretch_U * (after_RU - shares_UBA.sum(axis=1) @ times),
        )

    def swap_sides(self, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Mean accuracies before and after if the two sides of each sample are swapped at random, (R, U) each.

        Both sides are then equally good, with as many samples that differ between them as there really are. Of the
        samples in a cell and its mirror image, half are in either on average: a binomial draw.
        """
        mirrored_UBA = self.cells_UBA.transpose(0, 2, 1)
        upper_UBA = np.triu(self.cells_UBA + mirrored_UBA, k=1)
        equal_UBA = np.tril(np.triu(self.cells_UBA))

        def draw(size: int) -> Integers:
            drawn = rng.binomial(upper_UBA, 0.5, size=(size, *upper_UBA.shape))
            return drawn + (upper_UBA - drawn).transpose(0, 1, 3, 2) + equal_UBA

        return self._accuracies(draw, n_resamples)

    def _accuracies(self, draw: Callable[[int], Integers], n_resamples: int) -> tuple[Floats, Floats]:
        times, trials_U = np.arange(self.runs_per_side + 1), self.support_U * self.runs_per_side
        before, after = [], []
        step = max(1, CHUNK_DRAWS // self.cells_UBA.size)
        for start in range(0, n_resamples, step):
            cells_RUBA = draw(min(step, n_resamples - start))
            before.append(cells_RUBA.sum(axis=3) @ times / trials_U)
            after.append(cells_RUBA.sum(axis=2) @ times / trials_U)
        return np.concatenate(before), np.concatenate(after)


def pair_audits(befores: Sequence[Audit], afters: Sequence[Audit]) -> PairedCounts:
    """Count two sides together.

    Raises:
        ValueError: with the reason, if the audits are not of the same classes and test samples.
    """
    if not befores or len(befores) != len(afters):
        raise ValueError(
            f"each run before needs its run after (same seed); got {len(befores)} before and {len(afters)} after."
        )
    first = befores[0]
    names = _seen(first)
    targets_N = _common_targets(first, names)
    for other in (*befores[1:], *afters):
        _check_same(first, other, names, targets_N)
    right_before = np.sum([audit.samples.correct for audit in befores], axis=0)
    right_after = np.sum([audit.samples.correct for audit in afters], axis=0)
    return PairedCounts(
        names=names,
        cells_UBA=count_outcomes(targets_N, right_before, right_after, classes=len(names), runs_per_side=len(befores)),
        before_SU=np.array([_accuracies(audit) for audit in befores]),
        after_SU=np.array([_accuracies(audit) for audit in afters]),
    )


def count_outcomes(
    targets_N: Integers, before_N: NDArray[Any], after_N: NDArray[Any], *, classes: int, runs_per_side: int = 1
) -> Integers:
    """How many samples of each class are right how often on each side, (K, S+1, S+1).

    >>> count_outcomes(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1, 1, 0]), classes=2).tolist()
    [[[0, 1], [0, 1]], [[0, 0], [1, 0]]]
    """
    times = runs_per_side + 1
    cell_N = (targets_N * times + before_N) * times + after_N
    return np.bincount(cell_N, minlength=classes * times * times).reshape(classes, times, times)


def _seen(audit: Audit) -> tuple[str, ...]:
    return tuple(entry.name for entry in audit.classes if entry.support)


def _accuracies(audit: Audit) -> list[float]:
    return [entry.accuracy for entry in audit.classes if entry.accuracy is not None]


def _common_targets(audit: Audit, names: tuple[str, ...]) -> Integers:
    """Each sample's class as a position in ``names``: two files may number the same classes differently."""
    position = {name: i for i, name in enumerate(names)}
    return np.array([position.get(entry.name, -1) for entry in audit.classes])[audit.samples.targets]


def _check_same(first: Audit, other: Audit, names: tuple[str, ...], targets_N: Integers) -> None:
    between = f"{first.name!r} and {other.name!r} cannot be compared"
    theirs = _seen(other)
    if theirs != names:
        extra = sorted(set(names) ^ set(theirs))
        detail = f"{extra[0]!r} is in only one of them" if extra else "they come in a different order"
        raise ValueError(f"{between}: the class names of the test samples do not match, {detail}.")
    if len(other.samples.targets) != len(targets_N):
        raise ValueError(f"{between}: the test sets differ, {len(targets_N)} and {len(other.samples.targets)} samples.")
    mine, yours = first.samples.index, other.samples.index
    if mine is not None and yours is not None and not np.array_equal(mine, yours):
        raise ValueError(f"{between}: the test sets differ, their sample numbers are not the same.")
    differ = np.flatnonzero(_common_targets(other, names) != targets_N)
    if len(differ):
        raise ValueError(
            f"{between}: the test sets differ, {len(differ)} samples have other labels, the first is number "
            f"{differ[0]}; the same samples in the same order are needed."
        )
