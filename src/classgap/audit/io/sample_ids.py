"""Samples' numbers in the test set: who repeats, and numbers that cannot be what they are taken for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Integers


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


def left_out(samples: int, kept: int) -> tuple[str, ...]:
    """The remark on samples that were there before, if there are any.

    >>> left_out(24, 23)
    ('1 of 24 samples was left out: its number in index was there before.',)
    """
    repeats = samples - kept
    if not repeats:
        return ()
    which = "was left out: its number" if repeats == 1 else "were left out: their numbers"
    verb = "was" if repeats == 1 else "were"
    return (f"{repeats:,} of {samples:,} samples {which} in index {verb} there before.",)
