"""Inputs about the training set: counts of classes, labels, predictions and features."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from classgap.audit._types import Floats, Integers
from classgap.audit.io.arrays import to_matrix, to_tensor
from classgap.audit.io.labels import encode, is_text
from classgap.audit.io.rows import Matrix, Rows, predict_labels


def check_train_counts(given: Tensor | None, train_truth: Integers | None, names: tuple[str, ...]) -> Floats | None:
    """Return the number of training samples of each class; by default, count the training labels.

    Raises:
        ValueError: if there is not one number per class, or one is negative or not finite.
    """
    if given is None:
        return None if train_truth is None else np.bincount(train_truth, minlength=len(names)).astype(np.float64)
    counts = given.double().numpy()
    wanted = f"train_counts must be {len(names)} non-negative numbers, one per class"
    if counts.shape != (len(names),):
        raise ValueError(f"{wanted}, got shape {counts.shape}.")
    bad = np.flatnonzero(~(np.isfinite(counts) & (counts >= 0)))
    if len(bad):
        raise ValueError(f"{wanted}, got {counts[bad[0]]:g} for class {names[bad[0]]!r}.")
    return counts


def check_train_labels(
    predictions: Any, targets: Any, names: tuple[str, ...]
) -> tuple[Integers | None, Integers | None]:
    """Return predicted and true classes of the training samples; predictions may be scores.

    Raises:
        ValueError: if predictions have no targets, another length or another number of classes, or a label is unknown.
    """
    if targets is None and predictions is None:
        return None, None
    if targets is None:
        raise ValueError("train_predictions requires train_targets: pass the true labels of the training samples.")
    truth = encode("train_targets", targets, names)
    if predictions is None:
        return None, truth
    if isinstance(predictions, Rows) or (
        not is_text(predictions) and to_tensor("train_predictions", predictions).dim() == 2
    ):
        scores = to_matrix("train_predictions", predictions)
        if scores.shape[1] != len(names):
            raise ValueError(f"train_predictions must have {len(names)} columns, one per class, got {scores.shape[1]}.")
        predictions = predict_labels(scores)
    labels = encode("train_predictions", predictions, names)
    if len(labels) != len(truth):
        raise ValueError(
            f"train_predictions and train_targets must have the same length, got {len(labels)} and {len(truth)}."
        )
    return labels, truth


def check_train_features(values: Any, targets_M: Integers | None, features_ND: Matrix | None) -> Matrix | None:
    """Return the features of the training samples.

    Raises:
        ValueError: if labels of these samples or features of the test samples are missing, or the shape is wrong.
    """
    if values is None:
        return None
    if targets_M is None:
        raise ValueError("train_features requires train_targets: pass the true labels of the training samples.")
    if features_ND is None:
        raise ValueError("train_features requires features: pass the features of the test samples too.")
    features_MD = to_matrix("train_features", values)
    if features_MD.shape != (len(targets_M), features_ND.shape[1]):
        raise ValueError(
            f"train_features must have shape ({len(targets_M)}, {features_ND.shape[1]}), one row per training sample "
            f"and the columns of features, got {tuple(features_MD.shape)}."
        )
    return features_MD
