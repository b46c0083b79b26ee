"""Records of an audit as valid: a prediction is correct if it is one of the sample's valid labels.

Samples without a valid label are left out. Groups keep their classes, so thirds are those of the labeled ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from classgap.audit.figures import VALID, row, table_of
from classgap.audit.results import STRICT, Gap, Interval


@dataclass(frozen=True)
class ValidOverall:
    """Metrics over all samples with a valid label.

    Attributes:
        n_samples: number of samples with a valid label.
        left_out: number of samples without one.
        accuracy: fraction of samples whose predicted label is valid.
        interval: Wilson interval of ``accuracy``.
        balanced_accuracy: mean accuracy of the classes.
        balanced_interval: bootstrap interval of ``balanced_accuracy``.
        label_validity: fraction of samples whose own label is valid.
        label_validity_interval: Wilson interval of ``label_validity``.
        valid_errors: errors as labeled whose prediction is valid.
        top_k: k → fraction of samples with a valid label among the k highest scores; only k = 1 without scores.
        calibration_error: expected calibration error of the predicted label's probability of being valid.
    """

    __pydantic_config__ = STRICT

    n_samples: int
    left_out: int
    accuracy: float
    interval: Interval
    balanced_accuracy: float
    balanced_interval: Interval
    label_validity: float
    label_validity_interval: Interval
    valid_errors: int
    top_k: Mapping[int, float]
    calibration_error: float | None


@dataclass(frozen=True)
class ValidGroup:
    """A group of classes.

    Attributes:
        name: name of the group.
        support: number of samples with a valid label.
        left_out: number of samples without one.
        accuracy: mean accuracy of its classes; ``None`` if no sample has a valid label.
        interval: bootstrap interval of ``accuracy``.
        label_validity: mean over its classes of the fraction of samples whose own label is valid.
        label_validity_interval: bootstrap interval of ``label_validity``.
    """

    __pydantic_config__ = STRICT

    name: str
    support: int
    left_out: int
    accuracy: float | None
    interval: Interval | None
    label_validity: float | None
    label_validity_interval: Interval | None


def _as(name: str) -> Mapping[str, Callable[[Any], Any]]:
    """Column name of a field that the table of classes contains under its own name already."""
    return {name: lambda value: value}


@dataclass(frozen=True)
class ValidClass:
    """Metrics of one class; ``VALID_FIGURES`` describes every field."""

    __pydantic_config__ = STRICT

    name: str = field(metadata=row(columns={}))
    accuracy: float | None = field(  # None without a sample that has a valid label
        metadata=row(
            label="Valid-label accuracy",
            unit="fraction",
            section=VALID,
            header="Valid-label accuracy, %",
            note="Fraction of samples whose predicted label is one of the sample's valid labels. Samples without a "
            "valid label are left out.",
            columns=_as("valid_accuracy"),
        )
    )
    interval: Interval | None = field(
        metadata=row(
            label="{level} CI of the valid-label accuracy",
            unit="fraction",
            section=VALID,
            note="Wilson score interval, {level}.",
            columns={
                "valid_interval_low": lambda interval: interval.low,
                "valid_interval_high": lambda interval: interval.high,
            },
        )
    )
    support: int = field(
        metadata=row(label="Samples with a valid label", unit="count", section=VALID, columns=_as("valid_support"))
    )
    left_out: int = field(
        metadata=row(label="Samples without a valid label", unit="count", section=VALID, columns=_as("left_out"))
    )
    label_validity: float | None = field(
        metadata=row(
            label="Own label is valid",
            unit="fraction",
            section=VALID,
            header="Own label valid, %",
            note="Fraction of the samples with a valid label whose own label is one of them.",
        )
    )
    label_validity_interval: Interval | None = field(
        metadata=row(
            unit="fraction",
            columns={
                "label_validity_low": lambda interval: interval.low,
                "label_validity_high": lambda interval: interval.high,
            },
        )
    )
    valid_errors: int = field(
        metadata=row(
            label="Errors whose prediction is valid",
            unit="count",
            section=VALID,
            note="Errors as labeled whose predicted label is valid.",
        )
    )


VALID_FIGURES = table_of(ValidClass)


@dataclass(frozen=True)
class ValidResult:
    """An audit as valid.

    Attributes:
        overall: metrics over all samples with a valid label.
        groups: name → group, with the classes of the audit's groups.
        gap: measures of how unequal the class accuracies are; ``easy_hard`` is over the audit's thirds.
        gap_change: ``gap.easy_hard`` minus that of the audit; negative if labels explain part of the gap.
        gap_change_interval: normal interval of ``gap_change`` from paired samples.
        reranked_easy_hard: gap between thirds ranked by the accuracies as valid. Thirds ranked by the labels they were
            judged by exaggerate the change.
        reranked_interval: bootstrap interval of ``reranked_easy_hard``.
        classes: one entry per class, in the order of the class indices.
    """

    __pydantic_config__ = STRICT

    overall: ValidOverall
    groups: Mapping[str, ValidGroup]
    gap: Gap
    gap_change: float | None
    gap_change_interval: Interval | None
    reranked_easy_hard: float | None
    reranked_interval: Interval | None
    classes: tuple[ValidClass, ...]
