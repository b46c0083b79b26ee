"""Count and resample the joint outcomes of two sides on the same test samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.audit import Audit
from classgap.audit.stats.intervals import agresti_min_bounds, bessel_factor
from classgap.audit.stats.matching import MatchedSamples
from classgap.audit.stats.multiple_tests import attainable_mcnemar
from classgap.audit.stats.paired_tests import mcnemar_test, pooled_t_test, sign_flip_test

CHUNK_DRAWS = 8_000_000


@dataclass(frozen=True)
class PairedCounts:
    """Joint counts of correct predictions before and after, for each seen class.

    With S runs per side, a sample is right 0 … S times before and 0 … S times after.

    Attributes:
        names: names of the U seen classes.
        cells_UBA: number of samples by times right before and times right after, (U, S+1, S+1).
        before_SU: accuracies of each run before.
        after_SU: accuracies of each run after.
    """

    names: tuple[str, ...]
    cells_UBA: Integers
    before_SU: Floats
    after_SU: Floats

    @property
    def n_runs(self) -> int:
        """S, the number of runs before, and after."""
        return len(self.before_SU)

    @property
    def support_U(self) -> Integers:
        """Number of samples of each class."""
        return self.cells_UBA.sum(axis=(1, 2))

    @property
    def fixed_U(self) -> Integers:
        """Number of samples of each class that are right more often after."""
        return np.triu(self.cells_UBA, k=1).sum(axis=(1, 2))

    @property
    def broken_U(self) -> Integers:
        """Number of samples of each class that are right less often after."""
        return np.tril(self.cells_UBA, k=-1).sum(axis=(1, 2))

    @property
    def steps_BA(self) -> Integers:
        """Times right after minus times right before in each cell, -S … S."""
        times = np.arange(self.n_runs + 1)
        return times - times[:, None]

    def moments(self) -> tuple[Floats, Floats]:
        """Return Σd and Σd² of each class, (U,) each; d is the change in a sample's fraction of correct runs."""
        change_BA = self.steps_BA / self.n_runs
        return (self.cells_UBA * change_BA).sum(axis=(1, 2)), (self.cells_UBA * change_BA**2).sum(axis=(1, 2))

    def moves_US(self) -> Integers:
        """Count the samples of each class whose times right change by 1 … S, in either direction, (U, S)."""
        distance_BA = np.abs(self.steps_BA)
        return np.stack([self.cells_UBA[:, distance_BA == k].sum(axis=1) for k in range(1, self.n_runs + 1)], axis=1)

    def resample(self, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw bootstrap accuracies before and after, averaged over runs, (R, U) each.

        Samples are resampled within their class, in pairs. The counts of the cells have a multinomial distribution and
        are drawn directly. Deviations are scaled, and classes of one sample are drawn from all classes, as in
        :func:`~classgap.audit.stats.intervals.resample_accuracies`.
        """
        classes, cells = len(self.names), (self.n_runs + 1) ** 2
        probabilities_UC = self.cells_UBA.reshape(classes, cells) / self.support_U[:, None]
        probabilities_UC = np.where(self.support_U[:, None] > 1, probabilities_UC, probabilities_UC.mean(axis=0))

        def draw(size: int) -> Integers:
            return rng.multinomial(self.support_U, probabilities_UC, size=(size, classes)).reshape(
                size, *self.cells_UBA.shape
            )

        before_RU, after_RU = self._accuracies(draw, n_resamples)
        times, probabilities_UBA = (
            np.arange(self.n_runs + 1) / self.n_runs,
            probabilities_UC.reshape(self.cells_UBA.shape),
        )
        factor_U = bessel_factor(self.support_U)
        return (
            self.before_SU.mean(axis=0) + factor_U * (before_RU - probabilities_UBA.sum(axis=2) @ times),
            self.after_SU.mean(axis=0) + factor_U * (after_RU - probabilities_UBA.sum(axis=1) @ times),
        )

    def swap_sides(self, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw mean accuracies before and after with the sides of each sample swapped at random, (R, U) each.

        This is the null distribution of two equally good sides that disagree on as many samples. The samples of a cell
        and its mirror image are split by a binomial draw.
        """
        mirrored_UBA = self.cells_UBA.transpose(0, 2, 1)
        upper_UBA = np.triu(self.cells_UBA + mirrored_UBA, k=1)
        equal_UBA = np.tril(np.triu(self.cells_UBA))

        def draw(size: int) -> Integers:
            drawn = rng.binomial(upper_UBA, 0.5, size=(size, *upper_UBA.shape))
            return drawn + (upper_UBA - drawn).transpose(0, 1, 3, 2) + equal_UBA

        return self._accuracies(draw, n_resamples)

    def swap_classes(self, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw mean accuracies before and after with the sides of each class swapped at random, (R, U) each.

        This is the null distribution of sides on which each class is as likely to rise as to fall, by any amount.
        """
        swapped_RU = rng.random((n_resamples, len(self.names))) < 0.5
        before_U, after_U = self.before_SU.mean(axis=0), self.after_SU.mean(axis=0)
        return np.where(swapped_RU, after_U, before_U), np.where(swapped_RU, before_U, after_U)

    def change_bounds(self, confidence_level: float) -> tuple[Floats, Floats]:
        """Agresti-Min interval of the change of each class, (U,) each."""
        return agresti_min_bounds(*self.moments(), self.support_U, confidence_level)

    def class_tests(self, below: float = 0.0) -> tuple[Floats, Floats | None]:
        """McNemar's p-value of each class, and the largest attainable p-value of at most ``below``.

        With several runs, the larger of the p-values over samples and over runs; attainable values are not known.
        """
        if self.n_runs == 1:
            return mcnemar_test(self.fixed_U, self.broken_U), attainable_mcnemar(self.fixed_U + self.broken_U, below)
        total_U = (self.cells_UBA * self.steps_BA).sum(axis=(1, 2))
        by_samples_U = sign_flip_test(self.moves_US(), total_U)
        return np.maximum(by_samples_U, pooled_t_test(self.before_SU, self.after_SU, self.support_U)), None

    def _accuracies(self, draw: Callable[[int], Integers], n_resamples: int) -> tuple[Floats, Floats]:
        times, trials_U = np.arange(self.n_runs + 1), self.support_U * self.n_runs
        before, after = [], []
        step = max(1, CHUNK_DRAWS // self.cells_UBA.size)
        for start in range(0, n_resamples, step):
            cells_RUBA = draw(min(step, n_resamples - start))
            before.append(cells_RUBA.sum(axis=3) @ times / trials_U)
            after.append(cells_RUBA.sum(axis=2) @ times / trials_U)
        return np.concatenate(before), np.concatenate(after)


def check_runs(befores: Sequence[Audit], afters: Sequence[Audit], *, hint: str = "") -> None:
    """Check that both sides have the same number of runs, whose samples can be paired.

    Args:
        befores: runs of the first side.
        afters: runs of the second side.
        hint: other advice for audits without samples.

    Raises:
        ValueError: if the numbers differ or are 0, or an audit has no samples.
    """
    for audit in (*befores, *afters):
        if not audit.has_samples:
            raise ValueError(
                f"{audit.name!r} was accumulated and has no samples to pair: audit its predictions to compare it{hint}."
            )
    check_number_of_runs(befores, afters)


def check_number_of_runs(befores: Sequence[Audit], afters: Sequence[Audit]) -> None:
    """Check that both sides have the same number of runs.

    Raises:
        ValueError: if the numbers differ or are 0.
    """
    if not befores or len(befores) != len(afters):
        raise ValueError(
            f"both sides must have the same number of runs, paired by seed, got {len(befores)} and {len(afters)}."
        )


def count_pairs(matched: MatchedSamples) -> PairedCounts:
    """Count the joint outcomes of matched samples, for the classes that have any."""
    support_K = np.bincount(matched.targets_N, minlength=len(matched.classes.names))
    seen = np.flatnonzero(support_K)
    cells_KBA = count_outcomes(
        matched.targets_N,
        matched.before_SN.sum(axis=0),
        matched.after_SN.sum(axis=0),
        classes=len(support_K),
        n_runs=len(matched.before_SN),
    )
    before_SU, after_SU = (
        np.stack([np.bincount(matched.targets_N, weights=run, minlength=len(support_K))[seen] for run in side])
        / support_K[seen]
        for side in (matched.before_SN, matched.after_SN)
    )
    return PairedCounts(tuple(matched.classes.names[k] for k in seen), cells_KBA[seen], before_SU, after_SU)


def count_outcomes(
    targets_N: Integers, before_N: NDArray[Any], after_N: NDArray[Any], *, classes: int, n_runs: int = 1
) -> Integers:
    """Count the samples of each class by times right before and times right after, (K, S+1, S+1).

    >>> count_outcomes(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1, 1, 0]), classes=2).tolist()
    [[[0, 1], [0, 1]], [[0, 0], [1, 0]]]
    """
    times = n_runs + 1
    cell_N = (targets_N * times + before_N) * times + after_N
    return np.bincount(cell_N, minlength=classes * times * times).reshape(classes, times, times)
