"""scikit-learn: ``GapClassifier``, and scores of hard classes for model selection."""

from classgap.integrations.sklearn.classifier import GapClassifier
from classgap.integrations.sklearn.scorers import (
    class_accuracies,
    gap_score,
    hard_third_score,
    hard_third_scorer,
    neg_gap_scorer,
    worst_class_score,
    worst_class_scorer,
)

__all__ = [
    "GapClassifier",
    "class_accuracies",
    "gap_score",
    "hard_third_score",
    "hard_third_scorer",
    "neg_gap_scorer",
    "worst_class_score",
    "worst_class_scorer",
]
