"""Find slices that carry the errors of failing classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.io.slice_columns import SliceColumn
from classgap.audit.results import Interval
from classgap.audit.slice_results import ClassSlice, SliceGroup, SliceResult
from classgap.audit.stats.intervals import wilson_bounds
from classgap.audit.stats.paired_tests import holm

LISTED = 200


@dataclass(frozen=True)
class SliceCounts:
    """Samples and errors of pairs of class and slice, with those of the class.

    Attributes:
        class_P: class of each pair.
        code_P: slice of each pair.
        support_P: samples of the class in the slice.
        errors_P: errors among them.
        class_support_P: samples of the class.
        class_errors_P: errors of the class.
    """

    class_P: Integers
    code_P: Integers
    support_P: Integers
    errors_P: Integers
    class_support_P: Integers
    class_errors_P: Integers

    @classmethod
    def from_samples(
        cls, targets_N: Integers, correct_N: NDArray[np.bool_], codes_N: Integers, classes: Integers
    ) -> SliceCounts:
        """Count the pairs of some classes that occur; a slice that holds all samples of a class is left out."""
        values = int(codes_N.max(initial=-1)) + 1
        size = int(targets_N.max(initial=-1)) + 1
        support_K = np.bincount(targets_N, minlength=size)
        errors_K = np.bincount(targets_N[~correct_N], minlength=size)
        pair_N = targets_N * values + codes_N
        support = np.bincount(pair_N, minlength=size * values)
        errors = np.bincount(pair_N[~correct_N], minlength=size * values)
        pairs = (classes[:, None] * values + np.arange(values)).ravel()
        owner = np.repeat(classes, values)
        kept = (support[pairs] > 0) & (support[pairs] < support_K[owner])
        pairs, owner = pairs[kept], owner[kept]
        return cls(owner, pairs - owner * values, support[pairs], errors[pairs], support_K[owner], errors_K[owner])

    @property
    def p_values(self) -> Floats:
        """Fisher's exact test that errors are not more frequent in the slice than in the rest of the class.

        P(X ≥ errors), X ~ Hypergeometric(samples and errors of the class, samples of the slice).
        """
        return self._at_least(self.errors_P)

    @property
    def least_p_values(self) -> Floats:
        """Smallest p-value that is possible: all errors are in the slice, or the slice holds only errors."""
        return self._at_least(np.minimum(self.support_P, self.class_errors_P))

    def _at_least(self, errors_P: Integers) -> Floats:
        from scipy.stats import hypergeom

        p = hypergeom.sf(errors_P - 1, self.class_support_P, self.class_errors_P, self.support_P)
        return np.clip(np.asarray(p, dtype=np.float64), 0.0, 1.0)


def countable_tests(least_P: Floats, alpha: float) -> NDArray[np.bool_]:
    """Return the tests that a correction must count (Tarone, 1990).

    Only tests that could reach α / m are counted, where m is the smallest number that is at least their count. The
    choice depends on supports and on the errors of each class, which the exact test keeps fixed, so that it does not
    bias the test.

    >>> countable_tests(np.array([0.5, 0.04, 0.001]), 0.05).tolist()
    [False, False, True]
    """
    ordered = np.sort(least_P)
    for m in range(1, len(ordered) + 1):
        if np.searchsorted(ordered, alpha / m, side="right") <= m:
            return least_P <= alpha / m
    return np.zeros(len(least_P), dtype=np.bool_)


def slice_result(
    targets_N: Integers,
    correct_N: NDArray[np.bool_],
    columns: Mapping[str, SliceColumn],
    names: Sequence[str],
    failing: Integers,
    confidence_level: float,
) -> SliceResult:
    """Test every slice of every failing class, and measure every slice over all classes.

    Args:
        targets_N: class of each sample.
        correct_N: which predictions are correct.
        columns: metadata columns.
        names: class names.
        failing: classes to examine.
        confidence_level: level of tests and intervals.
    """
    alpha = 1 - confidence_level
    parts = {
        name: SliceCounts.from_samples(targets_N, correct_N, column.codes_N, failing)
        for name, column in columns.items()
    }
    least = np.concatenate([part.least_p_values for part in parts.values()])
    p = np.concatenate([part.p_values for part in parts.values()])
    kept = np.flatnonzero(countable_tests(least, alpha))
    adjusted = holm(p[kept])
    place = np.concatenate([np.arange(len(part.class_P)) for part in parts.values()])
    owner = np.repeat(np.arange(len(parts)), [len(part.class_P) for part in parts.values()])
    listed = list(parts.items())
    found: list[ClassSlice] = []
    for i in np.argsort(p[kept], kind="stable").tolist():
        if len(found) >= LISTED and adjusted[i] >= alpha:
            break
        column, part = listed[owner[kept[i]]]
        row = place[kept[i]]
        support, errors = int(part.support_P[row]), int(part.errors_P[row])
        found.append(
            ClassSlice(
                name=names[part.class_P[row]],
                column=column,
                value=columns[column].values[part.code_P[row]],
                support=support,
                errors=errors,
                other_support=int(part.class_support_P[row]) - support,
                other_errors=int(part.class_errors_P[row]) - errors,
                p_value=float(p[kept[i]]),
                adjusted_p_value=float(adjusted[i]),
                significant=bool(adjusted[i] < alpha),
            )
        )
    return SliceResult(
        columns={
            name: _groups(targets_N, correct_N, column, len(names), confidence_level)
            for name, column in columns.items()
        },
        classes=tuple(found),
        n_classes=len(failing),
        n_pairs=len(p),
        n_tests=len(kept),
        correction="holm",
    )


def _groups(
    targets_N: Integers, correct_N: NDArray[np.bool_], column: SliceColumn, classes: int, confidence_level: float
) -> tuple[SliceGroup, ...]:
    support_K = np.bincount(targets_N, minlength=classes)
    accuracy_K = np.bincount(targets_N, weights=correct_N, minlength=classes) / np.maximum(support_K, 1)
    values = len(column.values)
    support_S = np.bincount(column.codes_N, minlength=values)
    correct_S = np.bincount(column.codes_N[correct_N], minlength=values)
    expected_S = np.bincount(column.codes_N, weights=accuracy_K[targets_N], minlength=values)
    low_S, high_S = wilson_bounds(correct_S, support_S, confidence_level)
    return tuple(
        SliceGroup(
            value=value,
            support=int(support_S[s]),
            accuracy=float(correct_S[s] / support_S[s]),
            interval=Interval(float(low_S[s]), float(high_S[s])),
            expected_accuracy=float(expected_S[s] / support_S[s]),
        )
        for s, value in enumerate(column.values)
        if support_S[s]  # dropping duplicates may leave a slice empty
    )
