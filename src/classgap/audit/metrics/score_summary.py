"""Calibration, margins and top-k accuracy of all samples and of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.metrics.accuracy import top_k_accuracy
from classgap.audit.metrics.calibration import calibration_errors
from classgap.audit.metrics.class_order import ClassOrder, class_distributions
from classgap.audit.metrics.scores import SampleScores
from classgap.audit.results import Distribution


@dataclass(frozen=True)
class ScoreSummary:
    """Metrics of scores; NaN where undefined.

    Attributes:
        calibration_error: expected calibration error of all samples.
        calibration_K: calibration error by predicted class: on samples *of* a hard class a calibrated model is
            overconfident.
        margin: mean output margin of all samples.
        margin_K: mean output margin of each class.
        top_k: k → top-k accuracy.
        logit_margins: distribution of the logit margins of each class; ``None`` if unknown.
    """

    calibration_error: float
    calibration_K: Floats
    margin: float
    margin_K: Floats
    top_k: Mapping[int, float]
    logit_margins: list[Distribution | None] | None = None

    @classmethod
    def from_samples(
        cls,
        scores: SampleScores,
        targets_N: Integers,
        predictions_N: Integers,
        order: ClassOrder,
        top_k: Sequence[int],
        *,
        logit_margins: bool,
    ) -> ScoreSummary:
        """Summarize the scores of all samples; ``logit_margins`` says whether these are defined."""
        classes, correct_N = len(order.support_K), targets_N == predictions_N
        everything = np.zeros(len(targets_N), dtype=np.int64)
        return cls(
            calibration_error=float(calibration_errors(scores.confidence_N, correct_N, everything, 1)[0]),
            calibration_K=calibration_errors(scores.confidence_N, correct_N, predictions_N, classes),
            margin=float(scores.output_margin_N.mean()),
            margin_K=order.mean(scores.output_margin_N),
            top_k=top_k_accuracy(scores.rank_N, top_k, classes),
            logit_margins=class_distributions(scores.logit_margin_N, order) if logit_margins and classes > 1 else None,
        )
