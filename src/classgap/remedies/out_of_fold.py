"""Out-of-fold scores of scikit-learn classifiers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from classgap.audit._types import Floats, Integers
from classgap.audit.io.probabilities import log_probabilities

Splits = list[tuple[Integers, Integers]]


def response_scores(estimator: Any, X: Any, classes: Any) -> Floats:
    """Return log-probabilities, or else decision values, with one column per class of ``classes``.

    A class that the estimator does not know has probability 0, or the lowest decision value of the sample. Binary
    decision values d become the columns 0 and d, whose softmax is the logistic function of d.

    Raises:
        ValueError: if the number of columns is not the number of classes.
    """
    if hasattr(estimator, "predict_proba"):
        name, lowest = "predict_proba", 0.0
        values = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    else:
        name, lowest = "decision_function", np.inf
        values = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if values.ndim == 1:
            values = np.stack([np.zeros_like(values), values], axis=1)
    known = np.asarray(estimator.classes_)
    if values.ndim != 2 or values.shape[1] != len(known):
        raise ValueError(
            f"{name} of the estimator must return one score per class, {len(known)}; got shape {values.shape}. "
            "For SVC, set decision_function_shape='ovr'."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} of the estimator must return finite scores, but returned NaN or infinity.")
    if len(known) < len(classes):
        absent = values.min(axis=1, initial=lowest) if len(values) else np.zeros(0)
        spread = np.repeat(absent[:, None], len(classes), axis=1)
        spread[:, np.searchsorted(classes, known)] = values
        values = spread
    if name == "decision_function":
        return values
    # Probabilities of 0 become the smallest normal float32, as in prediction files.
    floored = np.maximum(values, np.finfo(np.float32).tiny)
    return log_probabilities(torch.from_numpy(floored / floored.sum(axis=1, keepdims=True))).numpy()


def make_splits(cv: Any, X: Any, y: Any, rng: np.random.RandomState | int | None, params: Mapping[str, Any]) -> Splits:
    """Return train and test rows for an integer, a fraction, a splitter or an iterable.

    Raises:
        ValueError: if a sample is in several test sets: its scores would be fitted and judged by.
    """
    if isinstance(cv, float):
        if not 0 < cv < 1:
            raise ValueError(f"cv must be between 0 and 1 if it is a fraction of the samples, got {cv}.")
        cv = StratifiedShuffleSplit(n_splits=1, test_size=cv, random_state=rng)
    splits = [
        (np.asarray(train), np.asarray(test))
        for train, test in check_cv(cv, y=y, classifier=True).split(X, y, **params)
    ]
    counts = np.bincount(np.concatenate([test for _, test in splits]), minlength=len(y))
    if counts.max() > 1:
        raise ValueError(
            f"cv must put each sample into at most one test set, but sample {counts.argmax()} is in {counts.max()}: "
            "use a partition such as StratifiedKFold."
        )
    return splits


def out_of_fold_scores(
    estimator: Any,
    X: Any,
    y: Any,
    classes: Any,
    splits: Splits,
    *,
    fit_params: Mapping[str, Any],
    n_jobs: int | None = None,
) -> tuple[Floats, Integers]:
    """Fit a clone per split and return the scores of all test samples, with their rows in ``X``."""
    parts: Iterable[Floats] = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_score)(clone(estimator), X, y, classes, train, test, fit_params) for train, test in splits
    )
    rows = np.concatenate([test for _, test in splits])
    return np.concatenate(list(parts)), rows


def _fit_and_score(
    estimator: Any, X: Any, y: Any, classes: Any, train: Integers, test: Integers, fit_params: Mapping[str, Any]
) -> Floats:
    params = {name: _take(value, train, len(y)) for name, value in fit_params.items()}
    estimator.fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
    return response_scores(estimator, _safe_indexing(X, test), classes)


def _take(value: Any, rows: Integers, n_samples: int) -> Any:
    """Return the rows of a parameter that has one value per sample; other parameters as they are."""
    per_sample = not isinstance(value, str | Mapping) and hasattr(value, "__len__") and len(value) == n_samples
    return _safe_indexing(value, rows) if per_sample else value
