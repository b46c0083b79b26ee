"""Records of slices: parts of the samples by a metadata column, such as camera, site or language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from classgap.audit.results import STRICT, Interval


@dataclass(frozen=True)
class SliceGroup:
    """All samples of one slice.

    Attributes:
        value: value of the column.
        support: number of samples.
        accuracy: fraction of correct predictions.
        interval: Wilson interval of ``accuracy``.
        expected_accuracy: accuracy of a slice with the same number of samples of each class, if slices did not matter.
    """

    __pydantic_config__ = STRICT

    value: str
    support: int
    accuracy: float
    interval: Interval
    expected_accuracy: float


@dataclass(frozen=True)
class ClassSlice:
    """One slice of a hard class, compared with the rest of the class.

    Attributes:
        name: the class.
        column: metadata column.
        value: value of the column.
        support: samples of the class in the slice.
        errors: errors among them.
        other_support: samples of the class in other slices.
        other_errors: errors among these.
        p_value: Fisher's exact test, one-sided: errors are more frequent in the slice.
        adjusted_p_value: ``p_value`` after Holm's correction over all ``n_tests``.
        significant: whether ``adjusted_p_value`` is below 1 - confidence level.
    """

    __pydantic_config__ = STRICT

    name: str
    column: str
    value: str
    support: int
    errors: int
    other_support: int
    other_errors: int
    p_value: float
    adjusted_p_value: float
    significant: bool


@dataclass(frozen=True)
class SliceResult:
    """Slices that carry the errors of classes of the hard third below the balanced accuracy.

    Attributes:
        columns: metadata column → its slices, over all classes.
        classes: tested pairs of class and slice, smallest p-value first; at most 200, and all significant ones.
        n_classes: classes that were examined.
        n_pairs: pairs of class and slice that were examined.
        n_tests: pairs that the correction counts. Pairs with so few samples or errors that no outcome could be
            significant are not tested.
        correction: "holm".
    """

    __pydantic_config__ = STRICT

    columns: Mapping[str, tuple[SliceGroup, ...]]
    classes: tuple[ClassSlice, ...]
    n_classes: int
    n_pairs: int
    n_tests: int
    correction: str
