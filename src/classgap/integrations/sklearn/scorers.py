"""Scores of hard classes for ``GridSearchCV``, ``cross_val_score`` and ``make_scorer``.

All are functions of true and predicted labels and average over classes: each class counts the same, regardless of its
number of samples. Classes without true samples are left out.

**Ranking.** By default, the thirds are formed from the same predictions that are scored. With few samples per
class, this selects classes that were unlucky in the sample, and the hard third looks worse than it is; on other samples
these classes do better without any change of the model (regression to the mean). The score is still fair between models
that are each ranked by their own predictions, but it rewards equal luck, and it covers different classes for each
model. ``rank_by`` fixes the classes beforehand: pass accuracies from other samples, such as out-of-fold predictions of
a baseline on the training set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import make_scorer
from sklearn.utils.validation import check_consistent_length, column_or_1d

from classgap.audit._types import Floats
from classgap.audit.metrics.groups import thirds

RankBy = Mapping[Any, float]


def class_accuracies(y_true: Any, y_pred: Any) -> dict[Any, float]:
    """Return the accuracy of each class in ``y_true``, for ``rank_by``.

    >>> class_accuracies(["cat", "cat", "dog"], ["cat", "dog", "dog"])
    {'cat': 0.5, 'dog': 1.0}
    """
    classes, accuracy_K = _accuracies(y_true, y_pred)
    return dict(zip(classes.tolist(), accuracy_K.tolist(), strict=True))


def hard_third_score(y_true: Any, y_pred: Any, *, rank_by: RankBy | None = None) -> float:
    """Return the mean accuracy of the hard third of the classes.

    Args:
        y_true: true labels (N,).
        y_pred: predicted labels (N,).
        rank_by: accuracies by which the classes are ranked, from :func:`class_accuracies`; by default those of
            ``y_pred``.

    >>> hard_third_score([0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 0, 0])
    0.0
    >>> hard_third_score([0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 0, 0], rank_by={0: 0.9, 1: 0.2, 2: 0.7})
    0.5
    """
    accuracy_K, parts = _ranked(y_true, y_pred, rank_by)
    return float(accuracy_K[parts["hard"]].mean())


def gap_score(y_true: Any, y_pred: Any, *, rank_by: RankBy | None = None) -> float:
    """Return the mean accuracy of the easy third minus that of the hard third; lower is better.

    Args:
        y_true: true labels (N,).
        y_pred: predicted labels (N,).
        rank_by: as in :func:`hard_third_score`.

    >>> gap_score([0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 0, 0])
    1.0
    """
    accuracy_K, parts = _ranked(y_true, y_pred, rank_by)
    return float(accuracy_K[parts["easy"]].mean() - accuracy_K[parts["hard"]].mean())


def worst_class_score(y_true: Any, y_pred: Any) -> float:
    """Return the lowest class accuracy. It is noisy: the minimum over many classes follows the unluckiest one.

    >>> worst_class_score([0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 2, 2])
    0.5
    """
    return float(_accuracies(y_true, y_pred)[1].min())


hard_third_scorer = make_scorer(hard_third_score)
worst_class_scorer = make_scorer(worst_class_score)
neg_gap_scorer = make_scorer(gap_score, greater_is_better=False)


def _accuracies(y_true: Any, y_pred: Any) -> tuple[NDArray[Any], Floats]:
    y_true, y_pred = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y_true, y_pred)
    if not len(y_true):
        raise ValueError("y_true must have at least one sample, got none.")
    classes, labels_N = np.unique(y_true, return_inverse=True)
    right_K = np.bincount(labels_N, weights=y_true == y_pred, minlength=len(classes))
    return classes, right_K / np.bincount(labels_N)


def _ranked(y_true: Any, y_pred: Any, rank_by: RankBy | None) -> tuple[Floats, dict[str, NDArray[Any]]]:
    classes, accuracy_K = _accuracies(y_true, y_pred)
    if len(classes) < 2:
        raise ValueError(f"y_true must have at least 2 classes to rank, got {classes.tolist()}.")
    ranking_K = accuracy_K
    if rank_by is not None:
        missing = [each for each in classes.tolist() if each not in rank_by]
        if missing:
            raise ValueError(f"rank_by must have every class of y_true, but class {missing[0]!r} is missing.")
        ranking_K = np.array([rank_by[each] for each in classes.tolist()], dtype=np.float64)
    return accuracy_K, thirds(ranking_K, np.ones(len(classes), dtype=bool))
