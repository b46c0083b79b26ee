"""Samples' numbers in the test set: who repeats, and numbers that cannot be what they are taken for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit.results import Notice
from classgap.audit.samples import Integers


def contradiction(index_N: Integers, targets_N: NDArray[Any]) -> tuple[int, int, int] | None:
    """The lowest number that two samples with different targets share, with both targets; ``None`` if there is none.

    A sampler that pads repeats a sample, so its number comes with the same target again. Numbers that are counted
    anew in every batch, and labels of groups, come with several.

    >>> contradiction(np.array([7, 3, 7]), np.array([0, 2, 1]))
    (7, 0, 1)
    >>> contradiction(np.array([7, 3, 7]), np.array([0, 2, 0])) is None
    True
    """
    order = np.lexsort((targets_N, index_N))
    numbers, targets = index_N[order], targets_N[order]
    differ = np.flatnonzero((numbers[1:] == numbers[:-1]) & (targets[1:] != targets[:-1]))
    if not len(differ):
        return None
    at = int(differ[0])
    return int(numbers[at]), int(targets[at]), int(targets[at + 1])


def check_repeats(index_N: Integers, targets_N: Integers, names: Sequence[str]) -> None:
    """Refuse numbers that cannot be of samples.

    Raises:
        ValueError: if one number comes with two targets.
    """
    found = contradiction(index_N, targets_N)
    if found is not None:
        number, one, other = found
        raise ValueError(
            f"index must be each sample's own number in the test set; {number} comes with the targets {names[one]!r} "
            f"and {names[other]!r}: number the samples over the whole set, not within batches, or leave index out."
        )


def dropped_duplicates(samples: int, kept: int) -> tuple[Notice, ...]:
    """Return a notice if samples were dropped because their index occurred before.

    >>> dropped_duplicates(24, 23)
    (Notice(code='duplicate-index', values={'dropped': 1, 'samples': 24}),)
    """
    return (Notice("duplicate-index", {"dropped": samples - kept, "samples": samples}),) if kept < samples else ()
