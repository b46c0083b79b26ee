"""Positions of samples in the test set: find duplicates, and values that cannot be positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Integers
from classgap.audit.results import Notice


def find_conflict(index_N: Integers, targets_N: NDArray[Any]) -> tuple[int, int, int] | None:
    """Return the lowest position that occurs with two different targets, and both targets; ``None`` if none does.

    A sampler that pads repeats a sample together with its target. Positions counted within each batch, and group
    labels, occur with several targets.

    >>> find_conflict(np.array([7, 3, 7]), np.array([0, 2, 1]))
    (7, 0, 1)
    >>> find_conflict(np.array([7, 3, 7]), np.array([0, 2, 0])) is None
    True
    """
    order = np.lexsort((targets_N, index_N))
    index, targets = index_N[order], targets_N[order]
    conflicts = np.flatnonzero((index[1:] == index[:-1]) & (targets[1:] != targets[:-1]))
    if not len(conflicts):
        return None
    first = int(conflicts[0])
    return int(index[first]), int(targets[first]), int(targets[first + 1])


def check_duplicates(index_N: Integers, targets_N: Integers, names: Sequence[str]) -> None:
    """Check that samples with the same position have the same target.

    Raises:
        ValueError: if a position occurs with two targets.
    """
    conflict = find_conflict(index_N, targets_N)
    if conflict is not None:
        position, first, second = conflict
        raise ValueError(
            f"index must be the position of each sample in the test set, but {position} occurs with targets "
            f"{names[first]!r} and {names[second]!r}: count over the full test set, not within batches, or omit index."
        )


def dropped_duplicates(samples: int, kept: int) -> tuple[Notice, ...]:
    """Return a notice if samples were dropped because their index occurred before.

    >>> dropped_duplicates(24, 23)
    (Notice(code='duplicate-index', values={'dropped': 1, 'samples': 24}),)
    """
    return (Notice("duplicate-index", {"dropped": samples - kept, "samples": samples}),) if kept < samples else ()
