"""Checks of the samples of a fix, before anything is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from classgap.audit._types import Floats, Integers
from classgap.audit.io.predictions import Predictions, to_tensor
from classgap.audit.io.rows import as_tensor
from classgap.remedies.class_values import costs_from_mapping, priors_from_mapping
from classgap.remedies.duplicates import count_near_copies, rows_in, shared_samples

MIN_SAMPLES = 2  # of each class: one to fit on and one to judge by
DUPLICATES = 0.005  # fraction of samples that may be in both files, as duplicates in the data are
CLEAR_LEAD = 4.0  # standard errors


def check_models(models: Sequence[Predictions]) -> None:
    """Check that several models have scores for the same classes and samples.

    Raises:
        ValueError: if scores are missing, or classes, lengths, labels or sample indices differ.
    """
    first = models[0]
    for model in models:
        if model.logits_NK is None:
            raise ValueError(
                f"{model.name} has predicted labels but no scores: save logits or probabilities, which a fix adjusts."
            )
        if model.num_classes < 2:
            raise ValueError(f"{model.name} has {model.num_classes} class; a fix needs at least 2.")
        check_same_classes(first, model)
        if len(model) != len(first):
            raise ValueError(
                f"{first.name} and {model.name} have {len(first)} and {len(model)} samples: pass the same samples."
            )
        both_indexed = first.index_N is not None and model.index_N is not None
        if both_indexed and not np.array_equal(first.index_N, model.index_N):  # type: ignore[arg-type]
            raise ValueError(f"{first.name} and {model.name} have different index values: pass the same samples.")
        differ = np.flatnonzero(first.targets_N != model.targets_N)
        if len(differ):
            raise ValueError(
                f"{first.name} and {model.name} have different targets, first at row {differ[0]}: pass the same "
                "samples in the same order."
            )


def check_distinct(models: Sequence[Predictions]) -> None:
    """Check that no model is passed twice, whose ensemble would be itself.

    Raises:
        ValueError: if two models have equal scores.
    """
    for place, model in enumerate(models):
        for earlier in models[:place]:
            assert earlier.logits_NK is not None
            assert model.logits_NK is not None
            if torch.equal(as_tensor(earlier.logits_NK), as_tensor(model.logits_NK)):
                raise ValueError(f"{earlier.name} and {model.name} have equal scores: pass each model only once.")


def order_notices(fit: Sequence[Predictions], test: Sequence[Predictions]) -> tuple[str, ...]:
    """Return a remark if the test files seem to be in another order than the fitting files."""
    for place, model in enumerate(fit):
        for earlier in range(place):
            leads = [_lead(each[earlier], each[place]) for each in (fit, test)]
            if min(leads) < -CLEAR_LEAD and max(leads) > CLEAR_LEAD:
                better, worse = (fit[earlier], model) if leads[0] > 0 else (model, fit[earlier])
                return (
                    f"{better.name} is more accurate than {worse.name} on the fitting samples, but less accurate on "
                    "the test samples: check that the test files are in the order of the models.",
                )
    return ()


def _lead(first: Predictions, second: Predictions) -> float:
    """Difference of the accuracies of two models on the same samples, in standard errors."""
    change_N = (first.predictions_N == first.targets_N) * 1.0 - (second.predictions_N == second.targets_N)
    return float(change_N.sum() / max(np.sqrt(np.square(change_N).sum()), 1.0))


def check_same_classes(first: Predictions, other: Predictions) -> None:
    """Check that two files have the same classes in the same order.

    Raises:
        ValueError: with the first difference.
    """
    if first.num_classes != other.num_classes:
        raise ValueError(
            f"{first.name} and {other.name} have {first.num_classes} and {other.num_classes} classes: pass files of "
            "the same classes."
        )
    for k, (mine, theirs) in enumerate(zip(first.class_names, other.class_names, strict=True)):
        if mine != theirs:
            raise ValueError(
                f"{first.name} and {other.name} have different class names, first {mine!r} and {theirs!r} at index "
                f"{k}: pass files of the same classes."
            )


def check_support(data: Predictions, test: Predictions | None) -> None:
    """Check that each class has enough fitting samples.

    Raises:
        ValueError: if a class has one fitting sample only, or test samples but no fitting samples.
    """
    support_K = np.bincount(data.targets_N, minlength=data.num_classes)
    few = np.flatnonzero((support_K > 0) & (support_K < MIN_SAMPLES))
    if len(few):
        others = "1 other class" if len(few) == 2 else f"{len(few) - 1} other classes"
        more = f" and {others} have" if len(few) > 1 else " has"
        raise ValueError(
            f"{data.name}: class {data.class_names[few[0]]!r}{more} 1 sample; fix needs at least {MIN_SAMPLES} per "
            "class, to fit on some and evaluate on others. Collect more, or remove the class."
        )
    if (support_K > 0).sum() < 2:
        raise ValueError(f"{data.name} has samples of {int((support_K > 0).sum())} class; fix needs at least 2.")
    if test is not None:
        missing = np.flatnonzero((support_K == 0) & (np.bincount(test.targets_N, minlength=data.num_classes) > 0))
        if len(missing):
            raise ValueError(
                f"class {data.class_names[missing[0]]!r} has samples in {test.name} but none in {data.name}: fix "
                "cannot adjust a class without fitting samples."
            )


def check_disjoint(fit: Predictions, test: Predictions) -> list[int]:
    """Check that fitting samples are no test samples, and return the rows of the few that are.

    A few are duplicates in the data, which occur in many datasets.

    Raises:
        ValueError: if there are more, with their number.
    """
    shared = shared_samples(fit, test)
    if len(shared) > DUPLICATES * min(len(fit), len(test)):
        raise ValueError(
            f"{len(shared)} samples of {fit.name} are also in {test.name}, first row {shared[0][0]} and row "
            f"{shared[0][1]}: a fix tested on samples it was fitted to proves nothing. Pass different samples, or one "
            "file without --test."
        )
    _check_near_copies(fit, test, shared)
    return [row for row, _ in shared]


def _check_near_copies(fit: Predictions, test: Predictions, shared: Sequence[tuple[int, int]]) -> None:
    parts = []
    for data, rows in zip((fit, test), np.array(shared, dtype=np.int64).reshape(-1, 2).T, strict=True):
        assert data.logits_NK is not None
        kept = np.delete(np.arange(len(data)), rows)
        parts.append((as_tensor(data.logits_NK)[torch.from_numpy(kept)], data.targets_N[kept]))
    copies = count_near_copies(*parts[0], *parts[1])
    if copies:
        raise ValueError(
            f"at least {copies} samples of {test.name} have almost the same scores and the same labels as samples of "
            f"{fit.name}, as after rounding or a change of precision: a fix tested on samples it was fitted to proves "
            "nothing. Pass different samples, or one file without --test."
        )


def check_training_rows(fit: Predictions, *others: Predictions) -> Integers:
    """Check that no sample is a training sample, and return the rows of the training features that no sample has.

    A few are duplicates in the data; heads are not trained on them.

    Args:
        fit: predictions with features of its samples and of the training samples.
        others: predictions of other samples, with features.

    Raises:
        ValueError: if there are more, with their number.

    >>> train = {"train_features": [[3.0], [4.0]], "train_targets": [0, 1]}
    >>> data = Predictions.from_arrays([0, 1], logits=[[1.0, 0.0]] * 2, features=[[1.0], [2.0]], **train)
    >>> check_training_rows(data)
    array([0, 1])
    """
    assert fit.train_features_MD is not None
    train_MD = as_tensor(fit.train_features_MD)
    shared_M = np.zeros(len(train_MD), dtype=bool)
    for data in (fit, *others):
        assert data.features_ND is not None
        features_ND = as_tensor(data.features_ND)
        if features_ND.shape[1] != train_MD.shape[1]:
            raise ValueError(
                f"features of {data.name} have {features_ND.shape[1]} columns, but train_features of {fit.name} have "
                f"{train_MD.shape[1]}: pass features of the same layer of the same network."
            )
        rows_N, rows_M = rows_in(features_ND, train_MD)
        if len(rows_N) > DUPLICATES * len(data):
            raise ValueError(
                f"{len(rows_N)} samples of {data.name} have the features of training samples in train_features of "
                f"{fit.name}: heads trained on them have seen the labels, so the test proves nothing. "
                "Leave them out of train_features and train_targets, or leave out train_features."
            )
        shared_M[rows_M] = True
    return np.flatnonzero(~shared_M)


def check_points(what: str, value: float) -> float:
    """Convert percentage points to a fraction.

    >>> check_points("max_easy_loss", 0.5)
    0.005
    """
    if not 0 <= value <= 100:
        raise ValueError(f"{what} must be in percentage points, from 0 to 100; got {value}.")
    return value / 100


def check_costs(costs: Any, class_names: Sequence[str]) -> Floats | None:
    """Check a cost matrix (K, K), or a mapping from true to predicted classes to costs.

    Raises:
        ValueError: if it has another shape, or an entry is negative or not finite.
    """
    if costs is None:
        return None
    classes = len(class_names)
    if isinstance(costs, Mapping):
        costs = costs_from_mapping(costs, class_names)
    cost_KK = to_tensor("costs", costs).double().numpy()
    if cost_KK.shape != (classes, classes):
        raise ValueError(f"costs must have shape ({classes}, {classes}), rows are true classes; got {cost_KK.shape}.")
    if not np.isfinite(cost_KK).all() or (cost_KK < 0).any():
        row, column = np.argwhere(~(np.isfinite(cost_KK) & (cost_KK >= 0)))[0]
        raise ValueError(f"costs must be finite and not negative, got {cost_KK[row, column]} at [{row}, {column}].")
    return cost_KK


def check_priors(priors: Any, class_names: Sequence[str]) -> Floats | None:
    """Check class frequencies (K,), or a mapping by class name, and scale them to sum to 1.

    >>> check_priors([1, 3], ["a", "b"]).tolist()
    [0.25, 0.75]
    """
    if priors is None:
        return None
    if isinstance(priors, Mapping):
        priors = priors_from_mapping(priors, class_names)
    prior_K = to_tensor("priors", priors).double().numpy()
    if prior_K.shape != (len(class_names),):
        raise ValueError(f"priors must have shape ({len(class_names)},), one per class; got {prior_K.shape}.")
    bad = np.flatnonzero(~(np.isfinite(prior_K) & (prior_K > 0)))
    if len(bad):
        raise ValueError(f"priors must be positive, got {prior_K[bad[0]]} for class {class_names[bad[0]]!r}.")
    return prior_K / prior_K.sum()
