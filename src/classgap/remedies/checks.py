"""Checks of the samples of a fix, before anything is fitted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from classgap.audit._types import Integers
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.probabilities import probability_rows
from classgap.audit.io.rows import as_tensor, row_chunks
from classgap.remedies.duplicates import SharedRows, count_near_copies, rows_in, shared_samples

MIN_SAMPLES = 2  # of each class: one to fit on and one to judge by
SAME_MODEL = 1e-3  # largest difference of a probability: half precision stays below
ROWS = 65_536  # compared at a time
CLEAR_LEAD = 4.0  # standard errors
AMBIGUOUS = 0.01  # of the rows
ROUNDED_HEAD = 2**-8  # relative difference of a weight; bfloat16 stays below


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
        ValueError: if two models have equal scores, or nearly equal ones.
    """
    for place, model in enumerate(models):
        for earlier in models[:place]:
            if _have_equal_scores(earlier, model):
                raise ValueError(f"{earlier.name} and {model.name} have equal scores: pass each model only once.")


def _have_equal_scores(first: Predictions, second: Predictions) -> bool:
    parts = [as_tensor(each.logits_NK) for each in (first, second) if each.logits_NK is not None]
    for rows in zip(*(each.split(ROWS) for each in parts), strict=True):
        mine, theirs = (each.float().softmax(dim=1) for each in rows)
        if (mine - theirs).abs().max() > SAME_MODEL:
            return False
    return True


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


def find_ambiguous(models: Sequence[Predictions]) -> tuple[list[bool], tuple[str, ...]]:
    """Return which models have logits that a saved fix would take for probabilities in many rows, and notices.

    Independent scores of each class from 0 to 1 sum to about 1 for some samples only. A few rows are a coincidence.
    """
    flags, notices = [], []
    for model in models:
        assert model.logits_NK is not None
        chunks = row_chunks(len(model), model.num_classes)
        count = sum(int(probability_rows(model.logits_NK[rows]).sum()) for rows in chunks)
        flags.append(count > AMBIGUOUS * len(model))
        if flags[-1]:
            notices.append(
                f"The scores of {count} of the {len(model)} samples of {model.name} look like probabilities, the "
                "others do not, so all are read as logits. The saved fix takes such scores only; it converts no "
                "probabilities."
            )
    return flags, tuple(notices)


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


def check_same_models(fit: Sequence[Predictions], test: Sequence[Predictions]) -> None:
    """Check that the heads and features of fitting and test files can be those of the same models.

    Without heads and features, nothing can be known.

    Raises:
        ValueError: with the difference.
    """
    for mine, theirs in zip(fit, test, strict=True):
        difference = _model_difference(mine, theirs)
        if difference:
            raise ValueError(
                f"{mine.name} and {theirs.name} are predictions of different models: {difference}. Pass test files of "
                "the models of the fitting files, in the same order."
            )


def _model_difference(first: Predictions, second: Predictions) -> str:
    widths = [
        next((each.shape[1] for each in (data.features_ND, data.weight_KD) if each is not None), None)
        for data in (first, second)
    ]
    if None not in widths and widths[0] != widths[1]:
        return f"their features have {widths[0]} and {widths[1]} columns"
    pairs = {"weights": (first.weight_KD, second.weight_KD), "biases": (first.bias_K, second.bias_K)}
    for name, (mine, theirs) in pairs.items():
        if mine is not None and theirs is not None:
            scale = float(mine.abs().max())
            if not torch.allclose(mine.float(), theirs.float(), rtol=ROUNDED_HEAD, atol=ROUNDED_HEAD * scale):
                return f"their head {name} differ by up to {float((mine - theirs).abs().max()):.2g}"
    return ""


def check_support(data: Predictions, test: Predictions | None, left_out: int = 0) -> None:
    """Check that each class has enough fitting samples once shared samples are left out.

    Raises:
        ValueError: if a class has one fitting sample only, or test samples but no fitting samples.
    """
    support_K = np.bincount(data.targets_N, minlength=data.num_classes)
    name = data.name
    if left_out:
        are = "sample that is" if left_out == 1 else "samples that are"
        name += f" without its {left_out} {are} also in the test file"
    few = np.flatnonzero((support_K > 0) & (support_K < MIN_SAMPLES))
    if len(few):
        others = "1 other class" if len(few) == 2 else f"{len(few) - 1} other classes"
        more = f" and {others} have" if len(few) > 1 else " has"
        raise ValueError(
            f"{name}: class {data.class_names[few[0]]!r}{more} 1 sample; fix needs at least {MIN_SAMPLES} per "
            "class, to fit on some and evaluate on others. Collect more, or remove the class."
        )
    if (support_K > 0).sum() < 2:
        raise ValueError(f"{name} has samples of {int((support_K > 0).sum())} class; fix needs at least 2.")
    if test is not None:
        missing = np.flatnonzero((support_K == 0) & (np.bincount(test.targets_N, minlength=data.num_classes) > 0))
        if len(missing):
            raise ValueError(
                f"class {data.class_names[missing[0]]!r} has samples in {test.name} but none in {name}: fix "
                "cannot adjust a class without fitting samples."
            )


def check_disjoint(fit: Sequence[Predictions], test: Sequence[Predictions]) -> tuple[Integers, tuple[str, ...]]:
    """Check that fitting samples are no test samples; return the rows of those to leave out, and notices.

    Rows are the same sample if the label and the scores of all models are equal. A few are left out. Many are refused,
    unless repeated rows within the files explain them: rounded scores, or duplicates in the data.

    Args:
        fit: predictions of one model or several for the fitting samples.
        test: predictions of the same models for the test samples.

    Raises:
        ValueError: if many fitting samples are test samples, with their number.
    """
    shared = shared_samples(fit, test)
    count = len(shared.first_N)
    if shared.action == "refuse":
        assert shared.pair is not None
        raise ValueError(
            f"{count} samples of {fit[0].name} are also in {test[0].name}, first row {shared.pair[0]} and row "
            f"{shared.pair[1]}: a fix tested on samples it was fitted to proves nothing. Pass different samples, "
            "or one file without --test."
        )
    for mine, theirs in zip(fit, test, strict=True):
        _check_near_copies(mine, theirs, shared)
    if not count:
        return shared.first_N, ()
    if shared.action == "keep":
        notice = (
            f"{count} fitting samples have the scores and labels of test samples. About as many repeat within the "
            "files, because scores are rounded or the data has duplicates, so they were kept."
        )
        return np.array([], dtype=np.int64), (notice,)
    were = "sample that is also a test sample was" if count == 1 else "samples that are also test samples were"
    return shared.first_N, (f"{count} fitting {were} left out.",)


def _check_near_copies(fit: Predictions, test: Predictions, shared: SharedRows) -> None:
    parts = []
    for data, rows in ((fit, shared.first_N), (test, shared.second_M)):
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


def check_training_rows(fit: Predictions, *others: Predictions) -> tuple[Integers, tuple[str, ...]]:
    """Return the rows of the training features that no sample has, and a notice about the others.

    A head trained on a sample has seen its label, so its accuracy on the sample proves nothing.

    Args:
        fit: predictions with features of its samples and of the training samples.
        others: predictions of other samples, with features.

    Raises:
        ValueError: if features have different widths, or all training samples are samples of a file.

    >>> train = {"train_features": [[3.0], [4.0]], "train_targets": [0, 1]}
    >>> data = Predictions.from_arrays([0, 1], logits=[[1.0, 0.0]] * 2, features=[[1.0], [2.0]], **train)
    >>> check_training_rows(data)
    (array([0, 1]), ())
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
        shared_M[rows_in(features_ND, train_MD)[1]] = True
    count = int(shared_M.sum())
    if count == len(train_MD):
        raise ValueError(
            f"all {count} rows of train_features of {fit.name} are features of fitting or test samples: heads trained "
            "on them have seen the labels, so the test proves nothing. Pass features of other training samples, or "
            "leave out train_features."
        )
    if not count:
        return np.arange(len(train_MD)), ()
    were = "sample that is also a fitting or test sample was"
    if count > 1:
        were = "samples that are also fitting or test samples were"
    return np.flatnonzero(~shared_M), (f"{count} training {were} left out of the refitted heads.",)
