"""Tests of a gate, for sides with the same samples (:class:`PairedTests`) and with different ones.

Both offer the same methods, so that rules do not depend on how samples were compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.audit import Audit
from classgap.audit.stats.crossfit import crossfit_drops, crossfit_gap, fixed_gap, unpaired_crossfit_drops
from classgap.audit.stats.drop_test import detectable_drops, drop_bounds, drop_p_values
from classgap.audit.stats.group_drops import LEAST_DROP, SWAPS, Swaps
from classgap.audit.stats.matching import ClassMatch, MatchedSamples, class_positions, match_classes, match_samples
from classgap.audit.stats.pairing import PairedCounts, check_runs, count_pairs
from classgap.audit.stats.unpaired import UnpairedCounts, count_unpaired
from classgap.audit.stats.unpaired_drop_test import unpaired_bounds, unpaired_detectable, unpaired_p_values

UNPAIRED_HINT = "; gate them with unpaired=True (--unpaired)"
NO_DROP = (LEAST_DROP, 0.0)  # no class has two samples: no drop can be shown


@dataclass(frozen=True)
class PairedTests:
    """Tests on samples that both sides have."""

    matched: MatchedSamples
    counts: PairedCounts

    @classmethod
    def from_audits(cls, before: Audit, after: Audit, rename: Mapping[str, str] | None) -> PairedTests:
        """Match the samples of two audits.

        Raises:
            ValueError: if they do not match.
        """
        check_runs([before], [after])
        matched = match_samples([before], [after], rename, hint=UNPAIRED_HINT)
        return cls(matched, count_pairs(matched))

    @property
    def classes(self) -> ClassMatch:
        """Classes of both sides."""
        return self.matched.classes

    @property
    def left_out(self) -> tuple[int, int]:
        """Number of samples of each side that were left out."""
        return self.matched.only_before, self.matched.only_after

    def p_values(self, chosen: Integers, limit: float) -> Floats:
        """P-values of the chosen classes that their drop is at most ``limit``."""
        counts = self.counts
        return drop_p_values(counts.broken_U[chosen], counts.fixed_U[chosen], counts.support_U[chosen], limit)

    def bounds(self, alpha: float) -> Floats:
        """Lower confidence bounds of the drops of all classes."""
        return drop_bounds(self.counts.broken_U, self.counts.fixed_U, self.counts.support_U, alpha)

    def detectable(self, limit: float, alpha: float) -> Floats:
        """Smallest drop of each class that is found with a probability of 80 %."""
        counts = self.counts
        fixed_rate = (float(counts.fixed_U.sum()) + 0.5) / (float(counts.support_U.sum()) + 1)
        return detectable_drops(counts.support_U, min(fixed_rate, 0.45), limit, alpha)

    def swaps(self, rng: np.random.Generator) -> Swaps:
        """Swap the sides of each sample at random.

        If both classifiers are equally good, a sample on which they differ is as likely to be broken as fixed.
        """
        counts = self.counts
        changed_U = counts.fixed_U + counts.broken_U
        broken_RU = rng.binomial(changed_U, 0.5, size=(SWAPS, len(changed_U)))
        before_RU = (counts.cells_UBA[:, 1, 1] + broken_RU) / counts.support_U
        return Swaps(before_RU, (2 * broken_RU - changed_U) / counts.support_U, 2 / counts.support_U)

    def crossfit_drops(self, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
        """Drop and standard error of each third, ranked by other samples."""
        matched = self.matched
        samples = matched.targets_N, matched.before_SN[0], matched.after_SN[0]
        return crossfit_drops(*samples, len(matched.classes.names), rng)

    def ranked_gap(self, thirds: Mapping[str, Integers], alpha: float, rng: np.random.Generator) -> tuple[float, float]:
        """Gap after and its lower bound, in thirds that the first side ranks."""
        matched = self.matched
        samples = matched.targets_N, matched.before_SN[0], matched.after_SN[0]
        return crossfit_gap(*samples, len(matched.classes.names), alpha=alpha, rng=rng)

    def fixed_gap(self, thirds: Mapping[str, Integers], alpha: float) -> tuple[float, float]:
        """Gap after and its lower bound, in thirds that are ranked elsewhere."""
        return fixed_gap(thirds["easy"], thirds["hard"], self.counts.after_SU[0], self.counts.support_U, alpha)


@dataclass(frozen=True)
class UnpairedTests:
    """Tests on two test sets with different samples."""

    classes: ClassMatch
    counts: UnpairedCounts
    before: Audit
    after: Audit

    @classmethod
    def from_audits(cls, before: Audit, after: Audit, rename: Mapping[str, str] | None) -> UnpairedTests:
        """Match the classes of two audits.

        Raises:
            ValueError: if no class has samples on both sides.
        """
        check_runs([before], [after])
        classes = match_classes(before, after, rename)
        return cls(classes, count_unpaired(before, after, classes), before, after)

    @property
    def left_out(self) -> tuple[int, int]:
        """Number of samples of each side that were left out, those of classes that one side lacks."""
        used = self.counts.before_support_U, self.counts.after_support_U
        sides = self.before, self.after
        first, second = (
            len(side.samples.targets) - int(support_U.sum()) for side, support_U in zip(sides, used, strict=True)
        )
        return first, second

    @property
    def _table(self) -> tuple[Integers, Integers, Integers, Integers]:
        counts = self.counts
        return counts.before_right_U, counts.before_support_U, counts.after_right_U, counts.after_support_U

    def p_values(self, chosen: Integers, limit: float) -> Floats:
        """P-values of the chosen classes that their drop is at most ``limit``."""
        before_right_U, before_n_U, after_right_U, after_n_U = (column[chosen] for column in self._table)
        return unpaired_p_values(before_right_U, before_n_U, after_right_U, after_n_U, limit)

    def bounds(self, alpha: float) -> Floats:
        """Lower confidence bounds of the drops of all classes."""
        return unpaired_bounds(*self._table, alpha)

    def detectable(self, limit: float, alpha: float) -> Floats:
        """Smallest drop of each class that is found with a probability of 80 %."""
        counts = self.counts
        accuracy = (float(counts.before_right_U.sum()) + 0.5) / (float(counts.before_support_U.sum()) + 1)
        return unpaired_detectable(counts.before_support_U, counts.after_support_U, accuracy, limit, alpha)

    def swaps(self, rng: np.random.Generator) -> Swaps:
        """Assign the samples of each class to the two sides at random."""
        before_RU, after_RU = self.counts.swap_sides(SWAPS, rng)
        step_U = 1 / self.counts.before_support_U + 1 / self.counts.after_support_U
        return Swaps(before_RU, before_RU - after_RU, step_U)

    def crossfit_drops(self, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
        """Drop and standard error of each third, ranked by other samples."""
        position_N = class_positions(self.before, self.classes, first_side=True)
        at = {name: i for i, name in enumerate(self.counts.names)}
        seen_K = np.array([at.get(name, -1) for name in self.classes.names] + [-1])
        targets_N = seen_K[position_N]
        kept_N = targets_N >= 0
        return unpaired_crossfit_drops(
            targets_N[kept_N],
            self.before.samples.correct[kept_N],
            self.counts.after_right_U,
            self.counts.after_support_U,
            rng,
        )

    def ranked_gap(self, thirds: Mapping[str, Integers], alpha: float, rng: np.random.Generator) -> tuple[float, float]:
        """Gap after and its lower bound, in thirds that the first side ranks, on other samples."""
        return self.fixed_gap(thirds, alpha)

    def fixed_gap(self, thirds: Mapping[str, Integers], alpha: float) -> tuple[float, float]:
        """Gap after and its lower bound, in thirds that are ranked elsewhere."""
        counts = self.counts
        return fixed_gap(thirds["easy"], thirds["hard"], counts.after_SU[0], counts.after_support_U, alpha)


GateTests = PairedTests | UnpairedTests
