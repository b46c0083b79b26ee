"""Thirds of classes with every sample judged in thirds that other samples ranked."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.metrics.groups import thirds

FOLDS = 5


def crossfit_gap(
    targets_N: Integers,
    before_N: NDArray[np.bool_],
    after_N: NDArray[np.bool_],
    classes: int,
    *,
    alpha: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Gap of the second side in thirds that the first side ranks, and its lower confidence bound.

    Both sides fail on similar samples. A class that has many of them by bad luck would be ranked hard by the first side
    and have a low accuracy on the second. So samples are split into five folds: for each fold, the first side ranks the
    classes on the other folds, and the second side is judged on the fold. The gap is the mean over folds.

    Args:
        targets_N: class of each sample.
        before_N: whether the first side is right.
        after_N: whether the second side is right.
        classes: number of classes.
        alpha: level of the one-sided bound.
        rng: deals the samples.

    Raises:
        ValueError: if fewer than two classes have two samples.

    >>> targets = np.repeat([0, 1], 50)
    >>> right = np.concatenate([np.ones(50, bool), np.arange(50) % 2 == 0])
    >>> gap, bound = crossfit_gap(targets, right, right, 2, alpha=0.05, rng=np.random.default_rng(0))
    >>> round(gap, 2), round(bound, 2)
    (0.5, 0.38)
    """
    fold_N = assign_folds(targets_N, FOLDS, rng)
    support_K = np.bincount(targets_N, minlength=classes)
    rate_K = (np.bincount(targets_N, weights=after_N, minlength=classes) + 0.5) / (support_K + 1)
    gaps, variance = [], 0.0
    for fold in range(FOLDS):
        inside = fold_N == fold
        size_K = np.bincount(targets_N[inside], minlength=classes)
        judged = (size_K > 0) & (support_K > size_K)
        if judged.sum() < 2:
            continue
        ranking_K = _accuracy(targets_N[~inside], before_N[~inside], classes)
        parts = thirds(ranking_K, judged)
        judged_K = _accuracy(targets_N[inside], after_N[inside], classes)
        gaps.append(float(judged_K[parts["easy"]].mean() - judged_K[parts["hard"]].mean()))
        ends = np.concatenate([parts["easy"], parts["hard"]])
        variance += float((rate_K[ends] * (1 - rate_K[ends]) / size_K[ends]).sum()) / len(parts["easy"]) ** 2
    if not gaps:
        raise ValueError("max_gap needs at least two classes with two or more samples.")
    gap = float(np.mean(gaps))
    return gap, gap - NormalDist().inv_cdf(1 - alpha) * float(np.sqrt(variance)) / len(gaps)


def crossfit_drops(
    targets_N: Integers,
    before_N: NDArray[np.bool_],
    after_N: NDArray[np.bool_],
    classes: int,
    rng: np.random.Generator,
) -> dict[str, tuple[float, float]]:
    """Drop of each third, and its standard error, with the thirds of each fold ranked by the other folds.

    No sample takes part in the ranking that it is judged in, so that there is no regression to the mean, whatever the
    true drop is. The standard error uses second moments, and is not too small if the drop is 0.

    Args:
        targets_N: class of each sample.
        before_N: whether the first side is right; ranks the classes.
        after_N: whether the second side is right.
        classes: number of classes.
        rng: deals the samples.

    >>> targets, right = np.repeat([0, 1], 50), np.concatenate([np.ones(50, bool), np.arange(50) % 2 == 0])
    >>> drops = crossfit_drops(targets, right, right & (targets == 1), 2, np.random.default_rng(0))
    >>> {name: drop for name, (drop, _) in drops.items()}
    {'easy': 1.0, 'hard': 0.0}
    """
    fold_N = assign_folds(targets_N, FOLDS, rng)
    support_K = np.bincount(targets_N, minlength=classes)
    drop_N = before_N.astype(np.int64) - after_N
    drops: dict[str, list[float]] = {}
    variances: dict[str, float] = {}
    for fold in range(FOLDS):
        inside = fold_N == fold
        size_K = np.bincount(targets_N[inside], minlength=classes)
        judged = (size_K > 0) & (support_K > size_K)
        sum_K = np.bincount(targets_N[inside], weights=drop_N[inside], minlength=classes)
        squares_K = np.bincount(targets_N[inside], weights=np.abs(drop_N[inside]), minlength=classes)
        for name, part in thirds(_accuracy(targets_N[~inside], before_N[~inside], classes), judged).items():
            if len(part):
                drops.setdefault(name, []).append(float((sum_K[part] / size_K[part]).mean()))
                variance = float((squares_K[part] / size_K[part] ** 2).sum()) / len(part) ** 2
                variances[name] = variances.get(name, 0.0) + variance
    return {name: (float(np.mean(some)), float(np.sqrt(variances[name])) / len(some)) for name, some in drops.items()}


def unpaired_crossfit_drops(
    targets_N: Integers,
    before_N: NDArray[np.bool_],
    after_right_K: Integers,
    after_support_K: Integers,
    rng: np.random.Generator,
) -> dict[str, tuple[float, float]]:
    """Drop of each third and its standard error, if the second side has other samples.

    For each fold, the first side ranks the classes on its other folds and is judged on the fold. No sample of the
    second side takes part in a ranking, so that all of them judge every fold. The drop is the mean over folds.

    Args:
        targets_N: class of each sample of the first side.
        before_N: whether the first side is right.
        after_right_K: correct samples of the second side.
        after_support_K: samples of the second side, at least one of each class.
        rng: deals the samples of the first side.

    >>> targets, right = np.repeat([0, 1], 50), np.concatenate([np.ones(50, bool), np.arange(50) % 2 == 0])
    >>> drops = unpaired_crossfit_drops(
    ...     targets, right, np.array([0, 20]), np.array([40, 40]), np.random.default_rng(0)
    ... )
    >>> {name: drop for name, (drop, _) in drops.items()}
    {'easy': 1.0, 'hard': 0.0}
    """
    classes = len(after_support_K)
    fold_N = assign_folds(targets_N, FOLDS, rng)
    support_K = np.bincount(targets_N, minlength=classes)
    rate_K = (np.bincount(targets_N, weights=before_N, minlength=classes) + 0.5) / (support_K + 1)
    after_rate_K = (after_right_K + 0.5) / (after_support_K + 1)
    accuracies: dict[str, list[float]] = {}
    variances: dict[str, float] = {}
    weights: dict[str, Floats] = {}
    for fold in range(FOLDS):
        inside = fold_N == fold
        size_K = np.bincount(targets_N[inside], minlength=classes)
        judged = (size_K > 0) & (support_K > size_K)
        judged_K = _accuracy(targets_N[inside], before_N[inside], classes)
        for name, part in thirds(_accuracy(targets_N[~inside], before_N[~inside], classes), judged).items():
            if len(part):
                accuracies.setdefault(name, []).append(float(judged_K[part].mean()))
                variance = float((rate_K[part] * (1 - rate_K[part]) / size_K[part]).sum()) / len(part) ** 2
                variances[name] = variances.get(name, 0.0) + variance
                weights.setdefault(name, np.zeros(classes))[part] += 1 / len(part)
    found = {}
    for name, some in accuracies.items():
        weight_K = weights[name] / len(some)
        variance = variances[name] / len(some) ** 2
        variance += float((weight_K**2 * after_rate_K * (1 - after_rate_K) / after_support_K).sum())
        drop = float(np.mean(some)) - float(weight_K @ (after_right_K / after_support_K))
        found[name] = drop, float(np.sqrt(variance))
    return found


def fixed_gap(
    easy: Integers, hard: Integers, accuracy_U: Floats, support_U: Integers, alpha: float
) -> tuple[float, float]:
    """Gap between thirds that were not ranked on these samples, and its lower confidence bound."""
    rate_U = (accuracy_U * support_U + 0.5) / (support_U + 1)
    variance = sum(
        float((rate_U[part] * (1 - rate_U[part]) / support_U[part]).sum()) / len(part) ** 2 for part in (easy, hard)
    )
    gap = float(accuracy_U[easy].mean() - accuracy_U[hard].mean())
    return gap, gap - NormalDist().inv_cdf(1 - alpha) * float(np.sqrt(variance))


def assign_folds(targets_N: Integers, folds: int, rng: np.random.Generator) -> Integers:
    """Deal the samples of each class to folds whose sizes differ by at most one; return the fold of each sample.

    >>> np.bincount(assign_folds(np.zeros(7, dtype=np.int64), 5, np.random.default_rng(0))).tolist()
    [2, 2, 1, 1, 1]
    """
    order = np.lexsort((rng.random(len(targets_N)), targets_N))
    starts = np.searchsorted(targets_N[order], targets_N[order])
    fold_N = np.empty(len(targets_N), dtype=np.int64)
    fold_N[order] = (np.arange(len(targets_N)) - starts) % folds
    return fold_N


def _accuracy(targets_N: Integers, right_N: NDArray[np.bool_], classes: int) -> Floats:
    support_K = np.bincount(targets_N, minlength=classes)
    right_K = np.bincount(targets_N, weights=right_N, minlength=classes)
    return np.where(support_K > 0, right_K / np.maximum(support_K, 1), np.nan)
