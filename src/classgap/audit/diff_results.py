"""Records of a comparison. "Before" and "after" are its two sides."""

from __future__ import annotations

from dataclasses import dataclass, field

from classgap.audit.figures import ACCURACY, INTERVAL_COLUMNS, SIGNIFICANCE, row, table_of
from classgap.audit.results import STRICT, Interval

F1_NOTE = "2 · correct / (support + predictions) of the class, in the compared samples; mean over runs."


@dataclass(frozen=True)
class Change:
    """A metric on both sides; means over runs if each side has several.

    Attributes:
        before: value before.
        after: value after.
        change: after - before.
        interval: paired bootstrap interval of ``change`` over test samples.
        expected_by_chance: expected change if neither side is better, where that is not 0. Classes ranked hard for
            their low accuracy on these samples improve by chance, and easy ones get worse.
        runs_agree: whether a paired t-test over runs is significant as well; the interval reflects test samples only.
            True with one run per side.
    """

    __pydantic_config__ = STRICT

    before: float
    after: float
    change: float
    interval: Interval
    expected_by_chance: float | None = None
    runs_agree: bool = True

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 0 and the change expected by chance, and runs agree."""
        chance = self.expected_by_chance or 0.0
        beyond = self.interval.low > max(0.0, chance) or self.interval.high < min(0.0, chance)
        return beyond and self.runs_agree


@dataclass(frozen=True)
class ClassChange:
    """Change of one class; ``CLASS_CHANGES`` describes every field."""

    __pydantic_config__ = STRICT

    index: int = field(metadata=row())
    name: str = field(metadata=row())
    status: str = field(metadata=row())  # "ok", or "unseen": then metrics are None and counts 0
    verdict: str = field(
        metadata=row(
            label="Verdict",
            unit="group",
            section=SIGNIFICANCE,
            header="Verdict",
            note="Gained or regressed if the adjusted p-value is below {alpha}; otherwise unclear. Unchanged if no "
            "sample changed.",
        )
    )
    group: str | None = field(metadata=row(label="Third before", unit="group", section=ACCURACY, header="Third before"))
    before: float | None = field(metadata=row(label="Before", unit="fraction", section=ACCURACY, header="Before, %"))
    after: float | None = field(metadata=row(label="After", unit="fraction", section=ACCURACY, header="After, %"))
    change: float | None = field(metadata=row(label="Change", unit="points", section=ACCURACY, header="Change, points"))
    interval: Interval | None = field(
        metadata=row(
            label="{level} CI of the change",
            unit="points",
            section=ACCURACY,
            header="{level} CI",
            columns=INTERVAL_COLUMNS,
        )
    )
    support: int = field(metadata=row(label="Support", unit="count", section=ACCURACY, header="Support"))
    fixed: int | None = field(  # with several runs: correct more often after; None if samples are not paired
        metadata=row(label="Samples fixed", unit="count", section=SIGNIFICANCE, header="Fixed")
    )
    broken: int | None = field(
        metadata=row(label="Samples broken", unit="count", section=SIGNIFICANCE, header="Broken")
    )
    p_value: float | None = field(
        metadata=row(
            label="p-value",
            unit="p-value",
            section=SIGNIFICANCE,
            note="Exact McNemar test: two-sided binomial test of the samples fixed against the samples broken. With "
            "several runs, the larger of two p-values: a sign-flip test of the changes summed over runs for each "
            "sample, and a t-test of the mean change over runs with variances pooled over classes in proportion to "
            "p(1 - p)/n. If samples are not paired, Fisher's exact test of the two accuracies.",
        )
    )
    p_adjusted: float | None = field(
        metadata=row(
            label="Adjusted p-value",
            unit="p-value",
            section=SIGNIFICANCE,
            header="Adjusted p",
            note="Corrected over all compared classes by the method named on this page.",
        )
    )
    support_after: int | None = field(  # if it differs: samples are not paired
        default=None,
        metadata=row(label="Support after", unit="count", section=ACCURACY, header="Support after"),
    )
    f1_before: float | None = field(
        default=None, metadata=row(label="F1 before", unit="fraction", section=ACCURACY, note=F1_NOTE)
    )
    f1_after: float | None = field(
        default=None, metadata=row(label="F1 after", unit="fraction", section=ACCURACY, note=F1_NOTE)
    )


CLASS_CHANGES = table_of(ClassChange)


@dataclass(frozen=True)
class GroupChange:
    """Change of a group of classes.

    Attributes:
        name: name of the group.
        kind: "thirds", "frequency" or "given".
        change: mean class accuracy on both sides.
        gained: number of its classes with a higher accuracy after.
        regressed: number of its classes with a lower accuracy after.
        members: its classes; where each side ranks its own thirds, those before.
        sign_p_value: sign test that its classes rise and fall equally often, an exact binomial test. For thirds that
            the first side ranks on these samples, the larger of its p-value and that of a randomization test, which
            swaps the sides of classes at random and ranks the thirds again. ``None`` if no class changed, or each side
            ranks its own thirds.
    """

    __pydantic_config__ = STRICT

    name: str
    kind: str
    change: Change
    gained: int
    regressed: int
    members: tuple[str, ...]
    sign_p_value: float | None = None


@dataclass(frozen=True)
class ChangedClasses:
    """Number of classes whose accuracy changed, including changes too small for a single test.

    Attributes:
        estimate: estimated number.
        at_least: lower confidence bound of the number.
    """

    __pydantic_config__ = STRICT

    estimate: float
    at_least: int


@dataclass(frozen=True)
class RunsChange:
    """A metric over several runs, the i-th run before paired with the i-th run after.

    Attributes:
        before_mean: mean over runs before.
        before_std: sample standard deviation over runs before.
        after_mean: mean over runs after.
        after_std: sample standard deviation over runs after.
        change_mean: mean of the paired changes.
        change_std: sample standard deviation of the paired changes.
        p_value: paired t-test over runs; ``None`` if all changes are equal.
        n_runs: number of pairs.
    """

    __pydantic_config__ = STRICT

    before_mean: float
    before_std: float
    after_mean: float
    after_std: float
    change_mean: float
    change_std: float
    p_value: float | None
    n_runs: int
