"""Audits of the same test samples, side by side: refused unless they are, then counted and resampled together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from classgap.audit.audit import Audit
from classgap.audit.intervals import Floats
from classgap.audit.samples import Integers

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
    def seeds(self) -> int:
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

    def resampled(self, replicates: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Mean accuracies before and after in each bootstrap replicate, (R, U) each.

        Samples are drawn within their class, each with its results on both sides; how many fall into each cell has
        the multinomial distribution, which is drawn directly.
        """
        support_U, times = self.support_U, np.arange(self.seeds + 1)
        classes, cells = len(support_U), (self.seeds + 1) ** 2
        shares_UC = self.cells_UBA.reshape(classes, cells) / support_U[:, None]
        before, after = [], []
        step = max(1, CHUNK_DRAWS // (classes * cells))
        for start in range(0, replicates, step):
            size = (min(step, replicates - start), classes)
            draws = rng.multinomial(support_U, shares_UC, size=size).reshape(*size, *self.cells_UBA.shape[1:])
            before.append(draws.sum(axis=3) @ times / (support_U * self.seeds))
            after.append(draws.sum(axis=2) @ times / (support_U * self.seeds))
        return np.concatenate(before), np.concatenate(after)


def pair(befores: Sequence[Audit], afters: Sequence[Audit]) -> PairedCounts:
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
    times = len(befores) + 1
    cell_N = (targets_N * times + right_before) * times + right_after
    cells = np.bincount(cell_N, minlength=len(names) * times * times).reshape(len(names), times, times)
    return PairedCounts(
        names=names,
        cells_UBA=cells,
        before_SU=np.array([_accuracies(audit) for audit in befores]),
        after_SU=np.array([_accuracies(audit) for audit in afters]),
    )


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
