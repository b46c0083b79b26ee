"""Drops of groups of classes against what random swaps of the two sides produce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.metrics.gaps import sums_by_third
from classgap.audit.stats.pairing import PairedCounts

SWAPS = 2000
EPSILON = 1e-12  # of rounding


@dataclass(frozen=True)
class GroupNull:
    """Drops of a group if both sides are equally good.

    Attributes:
        drop: observed drop, as a fraction.
        null_R: drops over random swaps, sorted.
        step: difference between neighboring values of the drop. With fixed members, a swap breaks a sample instead of
            fixing it and moves the drop by two samples; ranked again, the number of changed samples varies as well.
        crossfit: drop and standard error with thirds ranked by other samples; ``None`` for fixed members.
    """

    drop: float
    null_R: Floats
    step: float
    crossfit: tuple[float, float] | None = None

    @property
    def expected_by_chance(self) -> float:
        """Mean drop over random swaps."""
        return float(self.null_R.mean())

    def bound(self, alpha: float) -> float:
        """Lower confidence bound of the drop beyond chance; a limit is exceeded if the bound reaches it.

        If both sides are equally good, the observed drop and the swaps are exchangeable, and the drop exceeds the
        quantile of R + 1 equally probable values with probability at most ``alpha``. Drops have discrete values: above
        the quantile, the next one is a step higher. The bound is one step below the excess, because a limit between
        two values would else be exceeded as often as the lower value.

        The swaps describe thirds that the first side ranks only if the true drop is 0. For other limits the bound is
        also at most that of thirds ranked by other samples, which is approximate in small groups but unbiased.
        """
        bound = self.drop - _quantile(self.null_R, alpha) - self.step + EPSILON
        if self.crossfit is None:
            return bound
        drop, error = self.crossfit
        return min(bound, drop - NormalDist().inv_cdf(1 - alpha) * error)

    def detectable(self, limit: float, alpha: float, power: float = 0.8) -> float:
        """Smallest true drop that is found with probability ``power``, by a normal approximation."""
        reach = _quantile(self.null_R, alpha) - self.expected_by_chance
        z_power, error = NormalDist().inv_cdf(power), float(self.null_R.std())
        found = limit + self.step + reach + z_power * error
        if self.crossfit is None:
            return found
        return max(found, limit + (NormalDist().inv_cdf(1 - alpha) + z_power) * self.crossfit[1])


def _quantile(null_R: Floats, alpha: float) -> float:
    rank = int(np.ceil((1 - alpha) * (len(null_R) + 1)))
    return float(null_R[rank - 1]) if rank <= len(null_R) else float("inf")


def group_nulls(
    counts: PairedCounts,
    weights: Mapping[str, Floats],
    thirds: Mapping[str, Integers],
    *,
    crossfit: Mapping[str, tuple[float, float]] | None,
    rng: np.random.Generator,
    n_swaps: int = SWAPS,
) -> dict[str, GroupNull]:
    """Swap the sides of each sample at random and measure the drop of each group.

    If both classifiers are equally good, a sample on which they differ is as likely to be broken as fixed. Thirds that
    the first side ranks on these samples are ranked again after each swap: a class that ranks easy by good luck falls
    without a cause (regression to the mean), and the swapped sides show by how much.

    Args:
        counts: outcomes of one run per side.
        weights: weight of each class in each group with fixed members.
        thirds: members of the thirds.
        crossfit: drops of the thirds by :func:`~classgap.audit.stats.crossfit.crossfit_drops`; ``None`` if the first
            side does not rank the thirds on these samples.
        rng: draws the swaps.
        n_swaps: number of swaps.
    """
    changed_U = counts.fixed_U + counts.broken_U
    broken_RU = rng.binomial(changed_U, 0.5, size=(n_swaps, len(changed_U)))
    before_RU = (counts.cells_UBA[:, 1, 1] + broken_RU) / counts.support_U
    drops_RU = (2 * broken_RU - changed_U) / counts.support_U
    observed_U = counts.before_SU[0] - counts.after_SU[0]
    fixed = dict(weights)
    found = {}
    if crossfit is not None:
        for name, sums_R in sums_by_third(before_RU, drops_RU).items():
            size = len(thirds[name])
            step = 1 / (size * float(np.median(counts.support_U[thirds[name]])))
            found[name] = GroupNull(
                float(observed_U[thirds[name]].mean()), np.sort(sums_R / size), step, crossfit[name]
            )
    else:
        for name, members in thirds.items():
            fixed[name] = np.bincount(members, minlength=len(observed_U)) / len(members)
    for name, weight_U in fixed.items():
        member = weight_U > 0
        step = 2 * float(np.median(weight_U[member] / counts.support_U[member]))
        found[name] = GroupNull(float(observed_U @ weight_U), np.sort(drops_RU @ weight_U), step)
    return found
