"""Drops of groups of classes, compared with random swaps of the two sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.metrics.gaps import sums_by_third
from classgap.audit.stats.drop_test import POWER

SWAPS = 2000
LEAST_DROP = -1.0  # from accuracy 0 to 1
EPSILON = 1e-12  # of rounding


@dataclass(frozen=True)
class GroupNull:
    """Drops of a group if both sides are equally good.

    Attributes:
        drop: observed drop, as a fraction.
        null_R: drops over random swaps, sorted.
        step: difference between neighboring values of the drop. With fixed members, a swap breaks a sample instead of
            fixing it and moves the drop by two samples; ranked again, the number of changed samples varies as well.
        spread: variance of the drop of a group in which every sample changed.
        crossfit: drop and standard error with thirds ranked by other samples; ``None`` for fixed members.
    """

    drop: float
    null_R: Floats
    step: float
    spread: float
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
        two values would otherwise be exceeded as often as the lower value.

        The swaps describe thirds that the first side ranks only if the true drop is 0. For other limits the bound is
        also at most that of thirds ranked by other samples, which is approximate in small groups but unbiased.
        """
        bound = max(self.drop - _quantile(self.null_R, alpha) - self.step + EPSILON, LEAST_DROP)
        if self.crossfit is None:
            return bound
        drop, error = self.crossfit
        return min(bound, drop - NormalDist().inv_cdf(1 - alpha) * error)

    def detectable(self, limit: float, alpha: float) -> float:
        """Smallest true drop that is found with probability ``POWER``, by a normal approximation.

        The random swaps show the spread of the drop from the samples that changed. A drop d changes a fraction of at
        least d, even if few samples or none have changed, and has a variance of at least d times ``spread``.
        """
        reach = _quantile(self.null_R, alpha) - self.expected_by_chance
        z_alpha, z_power = (NormalDist().inv_cdf(level) for level in (1 - alpha, POWER))
        least, z = limit + self.step, z_alpha + z_power
        half = z**2 * self.spread / 2
        own = least + half + float(np.sqrt(half**2 + 2 * half * least))  # solves d = least + z √(d · spread)
        found = max(least + reach + z_power * float(self.null_R.std()), own)
        return found if self.crossfit is None else max(found, limit + z * self.crossfit[1])


def _quantile(null_R: Floats, alpha: float) -> float:
    rank = int(np.ceil((1 - alpha) * (len(null_R) + 1)))
    return float(null_R[rank - 1]) if rank <= len(null_R) else float("inf")


@dataclass(frozen=True)
class Swaps:
    """Accuracies and drops of classes after random swaps of the two sides.

    Attributes:
        before_RU: accuracies of the first side.
        drops_RU: drops.
        step_U: difference between neighboring values of the drop of each class, twice its variance if every sample
            changed.
    """

    before_RU: Floats
    drops_RU: Floats
    step_U: Floats


def group_nulls(
    observed_U: Floats,
    swaps: Swaps,
    weights: Mapping[str, Floats],
    thirds: Mapping[str, Integers],
    *,
    crossfit: Mapping[str, tuple[float, float]] | None,
) -> dict[str, GroupNull]:
    """Measure the drop of each group, observed and after random swaps of the two sides.

    Thirds that the first side ranks on these samples are ranked again after each swap: a class that is ranked easy by
    luck drops even if nothing changed (regression to the mean), and the swapped sides show by how much.

    Args:
        observed_U: observed drop of each class.
        swaps: the swaps.
        weights: weight of each class in each group with fixed members.
        thirds: members of the thirds.
        crossfit: drops of the thirds that are ranked by other samples, with their standard errors; ``None`` if the
            first side does not rank the thirds on these samples.
    """
    fixed = dict(weights)
    found = {}
    if crossfit is not None:
        for name, sums_R in sums_by_third(swaps.before_RU, swaps.drops_RU).items():
            size = len(thirds[name])
            step_U = swaps.step_U[thirds[name]]
            found[name] = GroupNull(
                drop=float(observed_U[thirds[name]].mean()),
                null_R=np.sort(sums_R / size),
                step=float(np.median(step_U)) / (2 * size),
                spread=float(step_U.sum()) / (2 * size**2),
                crossfit=crossfit[name],
            )
    else:
        for name, members in thirds.items():
            fixed[name] = np.bincount(members, minlength=len(observed_U)) / len(members)
    for name, weight_U in fixed.items():
        member = weight_U > 0
        found[name] = GroupNull(
            drop=float(observed_U @ weight_U),
            null_R=np.sort(swaps.drops_RU @ weight_U),
            step=float(np.median((weight_U * swaps.step_U)[member])),
            spread=float(weight_U**2 @ swaps.step_U) / 2,
        )
    return found
