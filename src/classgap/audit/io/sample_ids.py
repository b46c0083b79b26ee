"""Ids of samples: find duplicates and values that cannot be ids, and encode strings as integers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Integers, SampleId
from classgap.audit.results import Notice

HASHED = 1 << 56  # encoded strings are at least this large; 56 bits keep two of a million ids apart


def encode_ids(values: Any) -> Integers:
    """Encode string ids as integers: a decimal integer as itself, any other string by a hash of 56 bits.

    The same id has the same code in every file, so saved audits need not store the strings.

    Raises:
        ValueError: if the ids are not a list, one is empty, or two have the same code.

    >>> encode_ids(["7", "val/7.png", "7"]).tolist()
    [7, 132342538830927683, 7]
    """
    if np.ndim(values) != 1:
        raise ValueError(f"index must be sample ids of shape (samples,), got shape {np.shape(values)}.")
    texts = [str(value) for value in values]
    codes: dict[str, int] = {}
    for text in texts:
        if not text:
            raise ValueError("sample ids must not be empty.")
        if text not in codes:
            codes[text] = _encode_id(text)
    if len(set(codes.values())) < len(codes):
        raise ValueError("two sample ids have the same hash: change one of them, or use integers.")
    return np.array([codes[text] for text in texts], dtype=np.int64)


def sample_number(sample: SampleId) -> int:
    """Return the integer that encodes an id.

    >>> sample_number("7"), sample_number(7)
    (7, 7)
    """
    return sample if isinstance(sample, int) else _encode_id(sample)


def hashed_ids(values: Any, codes_N: Integers) -> dict[int, str]:
    """Return the strings that :func:`encode_ids` encodes by a hash, by their codes.

    >>> hashed_ids(["7", "val/7.png"], encode_ids(["7", "val/7.png"]))
    {132342538830927683: 'val/7.png'}
    """
    return {code: str(text) for code, text in zip(codes_N.tolist(), values, strict=True) if code >= HASHED}


def _encode_id(text: str) -> int:
    if text.isascii() and text.isdecimal() and (text == "0" or text[0] != "0") and int(text) < HASHED:
        return int(text)
    return HASHED + int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest())


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
        if position >= HASHED:
            raise ValueError(
                f"sample ids must be unique, but one occurs with targets {names[first]!r} and {names[second]!r}."
            )
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
