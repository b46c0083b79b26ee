"""The ranking of thirds by another model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats
from classgap.audit.io.predictions import Predictions

if TYPE_CHECKING:
    from classgap.audit.audit import Audit, RankBy


def read_ranking(rank_by: RankBy | None, data: Predictions) -> tuple[Floats | None, NDArray[np.bool_] | None]:
    """Return the numbers that rank the classes, and which samples their model predicts correctly, if known.

    Args:
        rank_by: an audit, the path of one or of predictions, or one number per class; ``None`` for no ranking.
        data: predictions that are audited.

    Raises:
        ValueError: if ``rank_by`` has other classes.
    """
    from classgap.audit.audit import Audit  # imports this module
    from classgap.audit.io.sources import read_audit  # imports the audit

    if rank_by is None:
        return None, None
    if isinstance(rank_by, str | os.PathLike):
        rank_by = read_audit(rank_by)
    if isinstance(rank_by, Audit):
        return _accuracies(rank_by, data.class_names), _correct_samples(rank_by, data)
    return _numbers(rank_by, data.class_names), None


def _accuracies(baseline: Audit, names: tuple[str, ...]) -> Floats:
    """Accuracies of another audit, NaN for unseen classes."""
    if baseline.class_names != names:
        raise ValueError("rank_by must be an audit of the same classes in the same order; its class names differ.")
    return np.array([np.nan if entry.accuracy is None else entry.accuracy for entry in baseline.classes])


def _numbers(rank_by: Sequence[float], names: tuple[str, ...]) -> Floats:
    try:
        numbers = np.asarray(rank_by, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"rank_by must be an audit, a path or one number per class, got {type(rank_by).__name__}."
        ) from None
    if numbers.shape != (len(names),):
        raise ValueError(f"rank_by must have {len(names)} numbers, one per class, got shape {numbers.shape}.")
    return numbers


def _correct_samples(baseline: Audit, data: Predictions) -> NDArray[np.bool_] | None:
    """Which samples the baseline predicts correctly; ``None`` if its samples are not these."""
    if not baseline.has_samples:
        return None
    theirs, index = baseline.samples, data.index_N
    if theirs.index is None or index is None:  # samples with ids are sorted by them, others in the order of their file
        other_numbers = theirs.index is not index
    else:
        other_numbers = not np.array_equal(theirs.index, index)
    return None if other_numbers or not np.array_equal(theirs.targets, data.targets_N) else theirs.correct
