"""What a comparison of audits holds: plain frozen records. "Before" and "after" are its two sides."""

from __future__ import annotations

from dataclasses import dataclass

from classgap.audit.results import Interval


@dataclass(frozen=True)
class Change:
    """A figure on both sides; over several seeds the figures are means over seeds.

    Attributes:
        before: the figure before.
        after: the figure after.
        change: after - before.
        interval: paired bootstrap interval of ``change``, over test samples.
        by_chance: the change to expect if neither side is better, where that is not 0: classes that were picked as
            hard for their low accuracy on these very samples rise, and easy ones fall, by chance alone.
        seeds_agree: whether over several seeds the change differs from 0, too (paired t-test over runs at the level):
            the interval says nothing of what other runs would do. True for one pair.
    """

    before: float
    after: float
    change: float
    interval: Interval
    expected_by_chance: float | None = None
    runs_agree: bool = True

    @property
    def significant(self) -> bool:
        """Whether the interval lies on one side of no change, and of what chance alone would do, and seeds agree."""
        chance = self.expected_by_chance or 0.0
        beyond = self.interval.low > max(0.0, chance) or self.interval.high < min(0.0, chance)
        return beyond and self.runs_agree


@dataclass(frozen=True)
class ClassChange:
    """What happened to one class.

    Attributes:
        index: the class's number.
        name: its name.
        status: "ok", or "unseen" (then every figure below is ``None`` or 0).
        support: test samples.
        before: accuracy before (mean over seeds).
        after: accuracy after (mean over seeds).
        change: after - before.
        interval: of ``change``, over test samples (Agresti and Min).
        fixed: samples that were right more often after than before (with one seed: wrong before, right after).
        broken: samples that were right less often after than before.
        p_value: exact McNemar test, that is the two-sided binomial test of ``fixed`` against ``broken``. Over several
            seeds the larger of two: random signs of the samples' changes, and a t-test over the runs.
        p_adjusted: ``p_value`` after Holm's correction over all seen classes.
        verdict: "gained" or "regressed" if ``p_adjusted`` is below the level, else "unclear"; "unchanged" if no
            sample moved.
        group: its third by the first audit's ranking.
    """

    index: int
    name: str
    status: str
    support: int
    before: float | None
    after: float | None
    change: float | None
    interval: Interval | None
    fixed: int
    broken: int
    p_value: float | None
    p_adjusted: float | None
    verdict: str
    group: str | None


@dataclass(frozen=True)
class GroupChange:
    """What happened to a group of classes.

    Attributes:
        name: the group's name.
        kind: "thirds", "frequency" or "given".
        change: its mean class accuracy on both sides.
        gained: how many of its classes have a higher accuracy after.
        paid: how many have a lower one.
        members: its classes; for thirds by each own ranking, those of the first side.
    """

    name: str
    kind: str
    change: Change
    gained: int
    regressed: int
    members: tuple[str, ...]


@dataclass(frozen=True)
class RunsChange:
    """One figure over several seeds, the i-th run before paired with the i-th run after.

    Attributes:
        before_mean: mean over seeds before.
        before_std: standard deviation over seeds (by n - 1) before.
        after_mean: mean over seeds after.
        after_std: standard deviation over seeds after.
        change_mean: mean of the paired changes.
        change_std: standard deviation of the paired changes.
        p_value: paired t-test over seeds; ``None`` if all changes are equal.
        seeds: number of pairs.
    """

    before_mean: float
    before_std: float
    after_mean: float
    after_std: float
    change_mean: float
    change_std: float
    p_value: float | None
    runs_per_side: int
