"""The table of per-class metrics: one row per field of :class:`ClassResult`.

A row states how the metric is computed, what it is called, its unit, and where reports show it. JSON, CSV,
``to_pandas``, the terminal, the HTML pages and the notes on computation read this table. To add a metric, add a field
here and compute its values in :class:`classgap.audit.per_class.ClassInputs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from classgap.audit._types import SampleId
from classgap.audit.geometry.class_clouds import OUTERMOST
from classgap.audit.metrics.calibration import BINS
from classgap.audit.results import STRICT, Cause, Confusion, Distribution, ErrorBudget, Interval

if TYPE_CHECKING:
    from classgap.audit.per_class import ClassInputs

TEST, TRAINING, MARGINS, FEATURES = "Test set", "Training set", "Margins", "Features and head"
ACCURACY, SIGNIFICANCE = "Accuracy", "Significance"
VALID, SUPERCLASS = "Valid labels", "Superclass"
SECTIONS = (TEST, VALID, SUPERCLASS, TRAINING, MARGINS, FEATURES, ACCURACY, SIGNIFICANCE)


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    Attributes:
        name: field of the record, key in JSON, and column in CSV and pandas.
        label: name in a class's details and in the notes; "" leaves it out of both. "{level}" is the confidence level.
        unit: "fraction", "points" (a difference of fractions), "count", "number", "p-value", "group" or "text".
        section: section of a class's details, one of ``SECTIONS``.
        header: header in the table of classes on the HTML page; "" leaves it out.
        terminal: header in the table of the worst classes on the terminal; "" leaves it out.
        note: how the values are computed.
        compute: values of all classes from the inputs of an audit: an array (NaN is unknown), a sequence, or ``None``.
        columns: CSV and pandas columns of a field that is not a single value: name → function of the field.
    """

    name: str = ""
    label: str = ""
    unit: str = "text"
    section: str = ""
    header: str = ""
    terminal: str = ""
    note: str = ""
    compute: Callable[[ClassInputs], Any] | None = None
    columns: Mapping[str, Callable[[Any], Any]] | None = None


def _join_ids(samples: Sequence[SampleId]) -> str:
    """Ids in one cell, separated by spaces, or by bars if an id has a space.

    >>> _join_ids([3, "a.png"]), _join_ids(["my cat.png", "a.png"])
    ('3 a.png', 'my cat.png|a.png')
    """
    texts = [str(sample) for sample in samples]
    return ("|" if any(" " in text for text in texts) else " ").join(texts)


def row(**entries: Any) -> dict[str, Figure]:
    """Return the metadata that makes a dataclass field a row of the table."""
    return {"figure": Figure(**entries)}


def table_of(record: type) -> tuple[Figure, ...]:
    """Return the rows of a record type, in the order of its fields."""
    return tuple(replace(entry.metadata["figure"], name=entry.name) for entry in fields(record))


def column_names(table: Iterable[Figure]) -> tuple[str, ...]:
    """Names of the CSV and pandas columns of a table."""
    return tuple(name for figure in table for name in ([figure.name] if figure.columns is None else figure.columns))


def column_values(table: Iterable[Figure], record: Any) -> dict[str, Any]:
    """Return column → value for one record; fields that are not single values are split into several columns."""
    values: dict[str, Any] = {}
    for figure in table:
        value = getattr(record, figure.name)
        if figure.columns is None:
            values[figure.name] = value
        else:
            unknown = value is None or value == ()  # 0 is known
            values |= {name: None if unknown else pick(value) for name, pick in figure.columns.items()}
    return values


INTERVAL_COLUMNS: Mapping[str, Callable[[Any], Any]] = {
    "interval_low": lambda interval: interval.low,
    "interval_high": lambda interval: interval.high,
}


@dataclass(frozen=True)
class ClassResult:
    """Metrics of one class; ``FIGURES`` describes every field."""

    __pydantic_config__ = STRICT

    index: int = field(metadata=row(compute=lambda of: range(of.data.num_classes)))
    name: str = field(metadata=row(compute=lambda of: of.data.class_names))
    status: str = field(  # "ok" or "unseen"
        metadata=row(compute=lambda of: ["ok" if seen else "unseen" for seen in of.counts.seen_K])
    )
    group: str | None = field(metadata=row(unit="group", header="Third", compute=lambda of: of.thirds))
    accuracy: float | None = field(
        metadata=row(
            label="Accuracy (recall)",
            unit="fraction",
            section=TEST,
            header="Accuracy, %",
            terminal="accuracy",
            note="Fraction of samples whose predicted label is correct. Ties go to the lowest class index.",
            compute=lambda of: of.counts.accuracy_K,
        )
    )
    interval: Interval | None = field(
        metadata=row(
            label="{level} CI",
            unit="fraction",
            section=TEST,
            header="{level} CI",
            terminal="0 to 100 %",
            note="Wilson score interval, {level}.",
            compute=lambda of: of.intervals,
            columns=INTERVAL_COLUMNS,
        )
    )
    support: int = field(
        metadata=row(
            label="Support",
            unit="count",
            section=TEST,
            header="Support",
            terminal="support",
            compute=lambda of: of.counts.support_K,
        )
    )
    precision: float | None = field(  # None if never predicted
        metadata=row(
            label="Precision",
            unit="fraction",
            section=TEST,
            note="Fraction of the samples predicted as the class that have its label.",
            compute=lambda of: of.counts.precision_K,
        )
    )
    recall: float | None = field(  # equals the accuracy; scikit-learn's name
        metadata=row(unit="fraction", compute=lambda of: of.counts.accuracy_K)
    )
    f1: float | None = field(
        metadata=row(
            label="F1",
            unit="fraction",
            section=TEST,
            note="2 · correct / (support + predictions) of the class; 0 if no sample of it is correct.",
            compute=lambda of: of.counts.f1_K,
        )
    )
    predicted: int = field(
        metadata=row(
            label="Predicted as this class", unit="count", section=TEST, compute=lambda of: of.counts.predicted_K
        )
    )
    calibration_error: float | None = field(
        metadata=row(
            label="Calibration error",
            unit="fraction",
            section=TEST,
            note=f"Expected calibration error with {BINS} equal-width bins of the predicted label's probability. For a "
            "class: over the samples predicted as it.",
            compute=lambda of: of.calibration_errors,
        )
    )
    label_issues: int | None = field(
        metadata=row(
            label="Labels in doubt",
            unit="count",
            section=TEST,
            note="Errors that look like ordinary samples of the class they are predicted as, with calibrated "
            "probabilities that rule the label out. With valid labels: errors whose prediction is valid.",
            compute=lambda of: of.label_issues,
        )
    )
    groups: tuple[str, ...] = field(
        metadata=row(
            label="Groups",
            section=TEST,
            compute=lambda of: of.group_names,
            columns={},  # their number varies
        )
    )
    train_count: float | None = field(
        metadata=row(
            label="Training samples",
            unit="count",
            section=TRAINING,
            header="Training samples",
            compute=lambda of: of.data.train_counts_K,
        )
    )
    train_accuracy: float | None = field(
        metadata=row(
            label="Training accuracy",
            unit="fraction",
            section=TRAINING,
            compute=lambda of: of.evidence.train_accuracy_K,
        )
    )
    confusions: tuple[Confusion, ...] = field(  # most frequent first
        metadata=row(
            header="Most confused with",
            terminal="confused with",
            compute=lambda of: of.evidence.confusions,
            columns={"top_confusion": lambda found: found[0].name, "top_confusion_rate": lambda found: found[0].rate},
        )
    )
    diagnosis: tuple[Cause, ...] = field(  # strongest first; empty for a class that does not fail
        metadata=row(
            header="Likely cause",
            compute=lambda of: [of.causes.get(k, ()) for k in range(of.data.num_classes)],
            columns={"cause": lambda found: found[0].name},
        )
    )
    error_budget: ErrorBudget | None = field(
        metadata=row(
            note="Errors by the change that would remove them: label doubts, class offsets, a refitted head; the rest "
            "is in the representation. Each change is fitted and evaluated on different samples.",
            compute=lambda of: of.budgets,
            columns={
                f"errors_{part}": lambda budget, part=part: (share := getattr(budget, part)) and share.removed
                for part in ("labels", "decision", "head", "representation")
            },
        )
    )
    doubted_samples: tuple[SampleId, ...] = field(  # test samples, most doubtful first
        metadata=row(
            compute=lambda of: of.doubted_samples,
            columns={"doubted_samples": lambda found: _join_ids(found)},
        )
    )
    confident_errors: tuple[SampleId, ...] = field(  # test samples, most confident first
        metadata=row(
            compute=lambda of: of.confident_errors,
            columns={"confident_errors": lambda found: _join_ids(found)},
        )
    )
    margin: float | None = field(
        metadata=row(
            label="Output margin m_o",
            unit="number",
            section=MARGINS,
            header="Margin",
            note="m_o = P(true class) - max other P (MR² Table 4). Groups: mean of the class means.",
            compute=lambda of: of.output_margins,
        )
    )
    logit_margin: Distribution | None = field(
        metadata=row(
            label="Mean logit margin",
            unit="number",
            section=MARGINS,
            note="z_true - max other z over the samples of the class (ELM Fig. 3 and 6). Computed from log "
            "probabilities if no logits were given; omitted if a probability in a margin is exactly 0.",
            compute=lambda of: of.logit_margins,
            columns={
                "logit_margin_mean": lambda margins: margins.mean,
                "logit_margin_median": lambda margins: margins.median,
            },
        )
    )
    class_margin: float | None = field(
        metadata=row(
            label="Smallest distance to a decision boundary",
            unit="number",
            section=MARGINS,
            note="Smallest distance from a sample of the class to its nearest decision boundary (LMDL Def. 4.2).",
            compute=lambda of: of.edges and of.edges.class_margin_K,
        )
    )
    centroid_margin: float | None = field(  # negative if the mean is on the wrong side
        metadata=row(
            label="Class mean to nearest decision boundary",
            unit="number",
            section=MARGINS,
            note="Signed distance from the class mean to its nearest decision boundary (LMDL Eq. 4.6).",
            compute=lambda of: of.edges and of.edges.centroid_margin_K,
        )
    )
    spread: float | None = field(
        metadata=row(
            label="Spread ‖ŝ‖",
            unit="number",
            section=FEATURES,
            header="Spread",
            note="‖ŝ_k‖ = √(Σ‖f - μ̂_k‖² / (n - 1)) over the test features of the class (MR² Table 6).",
            compute=lambda of: of.clouds and of.clouds.spread_K,
        )
    )
    mean_norm: float | None = field(
        metadata=row(
            label="Norm of the class mean ‖μ̂‖",
            unit="number",
            section=FEATURES,
            note="‖μ̂_k‖, norm of the mean test feature of the class (MR² Table 6).",
            compute=lambda of: of.clouds and of.clouds.mean_norm_K,
        )
    )
    spread_to_norm: float | None = field(
        metadata=row(
            label="Spread / norm of the class mean",
            unit="number",
            section=FEATURES,
            note="‖ŝ_k‖ / ‖μ̂_k‖; 0 is complete variability collapse (MR² Discussion 3).",
            compute=lambda of: of.clouds and of.clouds.spread_to_norm_K,
        )
    )
    gamma: float | None = field(
        metadata=row(
            label="Margin γ that MR² would assign",
            unit="number",
            section=FEATURES,
            note="γ_k, proportional to the cube root of the mean ‖f‖² of the class in the test set, mean 1 "
            "(MR² Eq. 1).",
            compute=lambda of: of.clouds and of.clouds.gamma_K,
        )
    )
    complexity_fraction: float | None = field(
        metadata=row(
            label="Fraction of the complexity term",
            unit="fraction",
            section=FEATURES,
            note="Fraction of Σ_k N_k r_k² / γ_k², the sum under the root of the complexity term of MR² Eq. 13, for "
            "the test samples and equal γ_k; r_k² is the mean of ‖f‖² (of ‖f‖² + 1 if a head with a bias is given).",
            compute=lambda of: of.complexity_fractions,
        )
    )
    weight_norm: float | None = field(
        metadata=row(
            label="Weight norm ‖w‖",
            unit="number",
            section=FEATURES,
            note="‖w_k‖, norm of the class's weights in the head (MR² Fig. 3).",
            compute=lambda of: of.features.head and of.features.head.weight_norm_K,
        )
    )
    dispersion: float | None = field(
        metadata=row(
            label="Largest distance between two samples",
            unit="number",
            section=FEATURES,
            note=f"Largest distance between two samples of the class (LMDL Def. 4.1), among its {OUTERMOST} outermost "
            "samples.",
            compute=lambda of: of.clouds and of.clouds.dispersion_K,
        )
    )
    max_intra_distance: float | None = field(
        metadata=row(
            label="Mean distance to the farthest sample",
            unit="number",
            section=FEATURES,
            note="Distance to the farthest sample of the class, averaged over its samples, divided by the largest "
            "feature norm (ELM Fig. 4).",
            compute=lambda of: of.clouds and of.clouds.max_intra_distance_K,
        )
    )
    nearest_class: str | None = field(
        metadata=row(
            label="Class with the nearest mean",
            section=FEATURES,
            note="The class with the nearest mean feature.",
            compute=lambda of: of.nearest_classes,
        )
    )
    nearest_distance: float | None = field(
        metadata=row(
            label="Distance to that mean", unit="number", section=FEATURES, compute=lambda of: of.nearest_distances
        )
    )

    @property
    def top_confusion(self) -> Confusion | None:
        """The class that its samples are most often confused with, if any."""
        return self.confusions[0] if self.confusions else None


FIGURES = table_of(ClassResult)
