"""Records of superclasses: mistakes within a superclass, and mistakes outside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from classgap.audit.figures import SUPERCLASS, row, table_of
from classgap.audit.results import STRICT, Interval


@dataclass(frozen=True)
class SuperclassGroup:
    """One superclass.

    Attributes:
        name: name of the superclass.
        classes: number of its classes.
        support: number of test samples.
        errors: number of errors.
        within: errors that stay within the superclass.
        accuracy: fraction of samples that are predicted as a class of the superclass; ``None`` without samples.
        interval: Wilson interval of ``accuracy``.
    """

    __pydantic_config__ = STRICT

    name: str
    classes: int
    support: int
    errors: int
    within: int
    accuracy: float | None
    interval: Interval | None


@dataclass(frozen=True)
class SuperclassOfClass:
    """Mistakes of one class; ``SUPERCLASS_FIGURES`` describes every field."""

    __pydantic_config__ = STRICT

    name: str = field(metadata=row(columns={}))
    superclass: str | None = field(metadata=row(label="Superclass", section=SUPERCLASS))
    within: int = field(
        metadata=row(
            label="Errors within the superclass",
            unit="count",
            section=SUPERCLASS,
            columns={"errors_within_superclass": lambda count: count},
        )
    )
    outside: int = field(
        metadata=row(
            label="Errors outside the superclass",
            unit="count",
            section=SUPERCLASS,
            header="Errors outside superclass",
            columns={"errors_outside_superclass": lambda count: count},
        )
    )
    accuracy: float | None = field(
        metadata=row(
            label="Accuracy of the superclass",
            unit="fraction",
            section=SUPERCLASS,
            header="Superclass accuracy, %",
            note="Fraction of samples that are predicted as any class of the superclass.",
            columns={"superclass_accuracy": lambda value: value},
        )
    )
    interval: Interval | None = field(
        metadata=row(
            label="{level} CI of the superclass accuracy",
            unit="fraction",
            section=SUPERCLASS,
            note="Wilson score interval, {level}.",
            columns={
                "superclass_interval_low": lambda interval: interval.low,
                "superclass_interval_high": lambda interval: interval.high,
            },
        )
    )
    mean_level: float | None = field(  # None without errors, or without a hierarchy
        metadata=row(
            label="Mean level of the errors",
            unit="number",
            section=SUPERCLASS,
            note="Levels to climb in the hierarchy from the true class to an ancestor of the predicted class, averaged "
            "over errors; 1 is a mistake among classes under the same parent.",
            columns={"mean_error_level": lambda value: value},
        )
    )


SUPERCLASS_FIGURES = table_of(SuperclassOfClass)


@dataclass(frozen=True)
class SuperclassResult:
    """Mistakes by superclass.

    Attributes:
        errors: number of errors.
        within: errors that stay within the superclass of the true class.
        within_fraction: ``within`` / ``errors``; ``None`` without errors.
        interval: Wilson interval of ``within_fraction``.
        expected_by_chance: ``within_fraction`` if the errors of each class were spread evenly over the other classes.
        accuracy: fraction of samples that are predicted as a class of their superclass.
        accuracy_interval: Wilson interval of ``accuracy``.
        groups: the superclasses.
        classes: one entry per class, in the order of the class indices.
        levels: level in the hierarchy → number of errors; ``None`` without a hierarchy. Errors between classes without
            a common ancestor count one level above the last ancestor.
        mean_level: mean level of the errors.
    """

    __pydantic_config__ = STRICT

    errors: int
    within: int
    within_fraction: float | None
    interval: Interval | None
    expected_by_chance: float | None
    accuracy: float
    accuracy_interval: Interval
    groups: tuple[SuperclassGroup, ...]
    classes: tuple[SuperclassOfClass, ...]
    levels: Mapping[int, int] | None
    mean_level: float | None
