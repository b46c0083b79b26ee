"""Compute the per-class metrics of :data:`classgap.audit.figures.FIGURES`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from classgap.audit._types import Floats, Integers, SampleId
from classgap.audit.diagnosis.budget import Assignment
from classgap.audit.diagnosis.evidence import Evidence
from classgap.audit.figures import FIGURES, ClassResult
from classgap.audit.geometry.boundaries import Boundaries
from classgap.audit.geometry.class_clouds import ClassClouds
from classgap.audit.geometry.features import FeatureMetrics
from classgap.audit.io.predictions import Predictions
from classgap.audit.metrics.accuracy import ClassCounts
from classgap.audit.metrics.class_order import ClassOrder
from classgap.audit.metrics.groups import Grouping
from classgap.audit.metrics.score_summary import ScoreSummary
from classgap.audit.results import Cause, Distribution, ErrorBudget, Interval
from classgap.audit.stats.intervals import wilson_bounds


@dataclass(frozen=True)
class ClassInputs:
    """Inputs of the per-class metrics; properties are columns with one entry per class, or ``None`` if unknown."""

    data: Predictions
    counts: ClassCounts
    order: ClassOrder
    summary: ScoreSummary | None
    features: FeatureMetrics
    groupings: Sequence[Grouping]
    evidence: Evidence
    causes: Mapping[int, tuple[Cause, ...]]
    assignment: Assignment | None

    @property
    def clouds(self) -> ClassClouds | None:
        """Statistics of each class's features."""
        return self.features.clouds

    @property
    def edges(self) -> Boundaries | None:
        """Distances to decision boundaries."""
        return self.features.edges

    @property
    def intervals(self) -> list[Interval | None]:
        """Wilson intervals of the accuracies."""
        low_K, high_K = wilson_bounds(self.counts.correct_K, self.counts.support_K, self.evidence.confidence_level)
        ends = zip(low_K.tolist(), high_K.tolist(), self.counts.seen_K.tolist(), strict=True)
        return [Interval(low, high) if seen else None for low, high, seen in ends]

    @property
    def thirds(self) -> list[str | None]:
        """The third that each class is in."""
        names: list[str | None] = [None] * self.data.num_classes
        for group in self.groupings:
            if group.kind == "thirds":
                for k in group.members.tolist():
                    names[k] = group.name
        return names

    @property
    def group_names(self) -> list[tuple[str, ...]]:
        """All groups of each class."""
        names: list[list[str]] = [[] for _ in range(self.data.num_classes)]
        for group in self.groupings:
            for k in group.members.tolist():
                names[k].append(group.name)
        return [tuple(found) for found in names]

    @property
    def calibration_errors(self) -> Floats | None:
        """Calibration error by predicted class."""
        return None if self.summary is None else self.summary.calibration_K

    @property
    def label_issues(self) -> list[int | None] | None:
        """Number of doubtful labels."""
        doubtful_K = self.evidence.doubted_K
        if doubtful_K is None:
            return None
        seen_K = self.counts.seen_K
        return [count if seen else None for count, seen in zip(doubtful_K.tolist(), seen_K.tolist(), strict=True)]

    @property
    def budgets(self) -> list[ErrorBudget | None] | None:
        """Error budget of each class."""
        return None if self.assignment is None else self.assignment.budgets(self.evidence.confidence_level)

    @property
    def doubted_samples(self) -> list[tuple[SampleId, ...]]:
        """Test samples whose labels are in doubt."""
        if self.assignment is None:
            return [()] * self.data.num_classes
        return self.assignment.listed(self.assignment.doubted_N)

    @property
    def confident_errors(self) -> list[tuple[SampleId, ...]]:
        """Test samples that are predicted wrongly with the highest confidence."""
        return [()] * self.data.num_classes if self.assignment is None else self.assignment.confident_errors()

    @property
    def output_margins(self) -> Floats | None:
        """Mean output margin m_o."""
        return None if self.summary is None else self.summary.margin_K

    @property
    def logit_margins(self) -> list[Distribution | None] | None:
        """Distribution of the logit margins."""
        return None if self.summary is None else self.summary.logit_margins

    @property
    def complexity_fractions(self) -> Floats | None:
        """Fractions of Σ_k N_k r_k² / γ_k² of MR² Eq. (13) with equal γ_k; see ``theory.rademacher_bound``."""
        if self.clouds is None:
            return None
        size_K = self.clouds.size_K + (self.data.bias_K is not None)  # a bias is the weight of a feature that is 1
        terms_K = self.counts.support_K * size_K
        total = float(np.nansum(terms_K))
        return terms_K / total if total > 0 else None

    @property
    def nearest_classes(self) -> list[str | None] | None:
        """Name of the class with the nearest mean."""
        nearest_Km: Integers | None = self.features.nearest_Km
        if nearest_Km is None:
            return None
        return [self.data.class_names[k] if k >= 0 else None for k in nearest_Km[:, 0].tolist()]

    @property
    def nearest_distances(self) -> Floats | None:
        """Distance to the nearest mean."""
        distance_Km = self.features.nearest_distance_Km
        return None if distance_Km is None else distance_Km[:, 0]


def class_results(inputs: ClassInputs) -> tuple[ClassResult, ...]:
    """Compute every metric of every class."""
    count = inputs.data.num_classes
    columns = {figure.name: _column(figure.compute and figure.compute(inputs), count) for figure in FIGURES}
    return tuple(ClassResult(**{name: values[k] for name, values in columns.items()}) for k in range(count))


def _column(values: Any, count: int) -> Sequence[Any]:
    """Values as Python objects; NaN becomes ``None``."""
    if values is None:
        return [None] * count
    plain = values.tolist() if isinstance(values, np.ndarray) else values
    return [None if isinstance(value, float) and not math.isfinite(value) else value for value in plain]
