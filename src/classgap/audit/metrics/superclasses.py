"""Mistakes within a superclass, outside it, and by their level in a hierarchy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.io.hierarchy import Superclasses
from classgap.audit.metrics.accuracy import ClassCounts
from classgap.audit.metrics.confusions import count_confusions
from classgap.audit.results import Interval
from classgap.audit.stats.intervals import wilson_bounds, wilson_interval
from classgap.audit.superclass_results import SuperclassGroup, SuperclassOfClass, SuperclassResult


def superclass_result(
    targets_N: Integers,
    predictions_N: Integers,
    counts: ClassCounts,
    names: Sequence[str],
    given: Superclasses,
    confidence_level: float,
) -> SuperclassResult:
    """Count mistakes within and outside the superclass of each class.

    Args:
        targets_N: class of each sample.
        predictions_N: predicted class of each sample.
        counts: counts of each class.
        names: class names.
        given: superclass of each class, and its ancestors.
        confidence_level: level of the intervals.
    """
    classes = len(names)
    code_K, titles = _codes(given.parents)
    true, predicted, count = count_confusions(targets_N, predictions_N, classes)
    inside = (code_K[true] == code_K[predicted]) & (code_K[true] >= 0)
    within_K = np.bincount(true, weights=count * inside, minlength=classes).astype(np.int64)
    errors_K = counts.support_K - counts.correct_K
    reached_K = counts.correct_K + within_K
    errors, within, total = int(errors_K.sum()), int(within_K.sum()), len(targets_N)
    levels, mean_level, mean_level_K = _levels(given.paths, true, predicted, count, classes)
    return SuperclassResult(
        errors=errors,
        within=within,
        within_fraction=within / errors if errors else None,
        interval=wilson_interval(within, errors, confidence_level) if errors else None,
        expected_by_chance=_by_chance(code_K, errors_K),
        accuracy=float(reached_K.sum() / total),
        accuracy_interval=wilson_interval(int(reached_K.sum()), total, confidence_level),
        groups=_groups(code_K, titles, counts.support_K, errors_K, within_K, reached_K, confidence_level),
        classes=_classes(names, given.parents, counts.support_K, errors_K, within_K, mean_level_K, confidence_level),
        levels=levels,
        mean_level=mean_level,
    )


def mistake_level(path: Sequence[str], other: Sequence[str]) -> int:
    """Levels to climb from a class to its first ancestor that the other class has, too; at least 1.

    Without a common ancestor, one level above the last one.

    >>> mistake_level(("cat", "pet", "animal"), ("dog", "pet", "animal")), mistake_level(("cat", "pet"), ("car",))
    (1, 2)
    """
    theirs = set(other)
    return max(1, next((level for level, name in enumerate(path) if name in theirs), len(path)))


def _codes(parents: Sequence[str | None]) -> tuple[Integers, list[str]]:
    """Number the superclasses in the order of their first class; -1 for classes without one."""
    titles = list(dict.fromkeys(parent for parent in parents if parent is not None))
    place = {title: i for i, title in enumerate(titles)}
    return np.array([-1 if parent is None else place[parent] for parent in parents], dtype=np.int64), titles


def _by_chance(code_K: Integers, errors_K: Integers) -> float | None:
    errors = int(errors_K.sum())
    if not errors:
        return None
    size = np.bincount(code_K[code_K >= 0], minlength=1)
    siblings_K = np.where(code_K >= 0, size[code_K] - 1, 0)
    return float((errors_K * siblings_K).sum() / (len(code_K) - 1) / errors)


def _levels(
    paths: Sequence[Sequence[str]] | None, true: Integers, predicted: Integers, count: Integers, classes: int
) -> tuple[dict[int, int] | None, float | None, Floats | None]:
    """Errors by level, their mean level, and that of each class."""
    if paths is None:
        return None, None, None
    pairs = zip(true.tolist(), predicted.tolist(), strict=True)
    level_P = np.array([mistake_level(paths[a], paths[b]) for a, b in pairs], dtype=np.int64)
    found = np.bincount(level_P, weights=count).astype(np.int64)
    errors_K = np.bincount(true, weights=count, minlength=classes)
    total_K = np.bincount(true, weights=count * level_P, minlength=classes)
    mean_K = np.where(errors_K > 0, total_K / np.maximum(errors_K, 1), np.nan)
    mean = float(total_K.sum() / errors_K.sum()) if len(level_P) else None
    return {level: int(n) for level, n in enumerate(found.tolist()) if n}, mean, mean_K


def _groups(
    code_K: Integers,
    titles: Sequence[str],
    support_K: Integers,
    errors_K: Integers,
    within_K: Integers,
    reached_K: Integers,
    confidence_level: float,
) -> tuple[SuperclassGroup, ...]:
    found = []
    for code, title in enumerate(titles):
        members = np.flatnonzero(code_K == code)
        support, reached = int(support_K[members].sum()), int(reached_K[members].sum())
        found.append(
            SuperclassGroup(
                name=title,
                classes=len(members),
                support=support,
                errors=int(errors_K[members].sum()),
                within=int(within_K[members].sum()),
                accuracy=reached / support if support else None,
                interval=wilson_interval(reached, support, confidence_level) if support else None,
            )
        )
    return tuple(found)


def _classes(
    names: Sequence[str],
    parents: Sequence[str | None],
    support_K: Integers,
    errors_K: Integers,
    within_K: Integers,
    mean_level_K: Floats | None,
    confidence_level: float,
) -> tuple[SuperclassOfClass, ...]:
    reached_K = support_K - errors_K + within_K
    low_K, high_K = wilson_bounds(reached_K, support_K, confidence_level)
    found = []
    for k, name in enumerate(names):
        seen = bool(support_K[k])
        level = None if mean_level_K is None or np.isnan(mean_level_K[k]) else float(mean_level_K[k])
        found.append(
            SuperclassOfClass(
                name=name,
                superclass=parents[k],
                within=int(within_K[k]),
                outside=int(errors_K[k] - within_K[k]),
                accuracy=float(reached_K[k] / support_K[k]) if seen else None,
                interval=Interval(float(low_K[k]), float(high_K[k])) if seen else None,
                mean_level=level,
            )
        )
    return tuple(found)
