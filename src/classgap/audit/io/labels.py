"""Class names, and labels given as names or as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from classgap.audit._types import Integers


def checked_names(names: Sequence[Any] | NDArray[Any], num_classes: int | None = None) -> tuple[str, ...]:
    """Class names as text, refused if one is empty, two look the same, or their number is not ``num_classes``.

    >>> checked_names(["cat", "dog"])
    ('cat', 'dog')
    """
    if isinstance(names, np.ndarray) and names.ndim != 1:
        raise ValueError(f"class_names must be a list of names, shape (classes,); got shape {names.shape}.")
    texts = tuple(str(name) for name in names)
    if num_classes is not None and len(texts) != num_classes:
        raise ValueError(
            f"class_names must name {num_classes} classes, one for each column of the scores; got {len(texts)} names."
        )
    first: dict[str, str] = {}
    for position, text in enumerate(texts):
        bare = text.strip()
        if not bare:
            raise ValueError(f"class_names must not be empty; that of class {position} is {text!r}.")
        if bare in first:
            how = "appears more than once" if first[bare] == text else f"and {first[bare]!r} differ in white space only"
            raise ValueError(f"class_names must be different from each other; {text!r} {how}.")
        first[bare] = text
    return texts


def is_text(values: Any) -> bool:
    """Whether labels are names rather than numbers."""
    return not isinstance(values, torch.Tensor) and np.asarray(values).dtype.kind in "UO"


def names_in(*columns: Any) -> tuple[str, ...]:
    """The different labels of several columns in order: by number if all of them are whole numbers, else by letter.

    Raises:
        ValueError: if one column has numbers only and another has names only, which cannot be matched.

    >>> names_in(["10", "9"], ["9", "1"])
    ('1', '9', '10')
    """
    labels = [{str(value) for value in np.unique(np.asarray(column, dtype=str)).tolist()} for column in columns]
    found = set[str]().union(*labels)
    numbers = next((label for column in labels if all(map(_is_whole, column)) for label in sorted(column)), None)
    text = next((label for column in labels if not any(map(_is_whole, column)) for label in sorted(column)), None)
    if numbers is not None and text is not None:
        raise ValueError(
            f"targets and predictions must be both names or both numbers; got {numbers!r} in one and {text!r} in the "
            "other."
        )
    if all(_is_whole(name) for name in found):
        return tuple(sorted(found, key=int))
    return tuple(sorted(found))


def encode(what: str, values: Any, names: Sequence[str]) -> Integers:
    """Class indices of labels that are class names, or class indices themselves.

    A text is looked up among the names first; only if no name fits, and it is a whole number, is it an index.

    >>> encode("targets", ["dog", "0"], ["cat", "dog"]).tolist()
    [1, 0]
    """
    if is_text(values):
        return _encode_texts(what, np.asarray(values, dtype=str), names)
    array = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{what} must be one label a sample, shape (samples,); got shape {array.shape}.")
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all():
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what} must be class numbers or class names; got {array.dtype}.")
    if array.size and (array.min() < 0 or array.max() >= len(names)):
        worst = int(array.min() if array.min() < 0 else array.max())
        raise ValueError(
            f"{what} must be class numbers from 0 to {len(names) - 1}; got {worst}: {_advice(worst, len(names))}."
        )
    return array.astype(np.int64)


def _advice(label: int, num_classes: int) -> str:
    if label == -100:  # PyTorch's ignore_index
        return "losses ignore samples of this label, and an audit has no class for them: drop those samples"
    if (label, num_classes) == (1, 1):
        return (
            "two classes need two columns of scores, so make one logit z of a binary classifier the logits (0, z), and "
            "one probability p the probabilities (1 - p, p)"
        )
    return "check the labels"


def _encode_texts(what: str, values: NDArray[np.str_], names: Sequence[str]) -> Integers:
    if values.ndim != 1:
        raise ValueError(f"{what} must be one label a sample, shape (samples,); got shape {values.shape}.")
    position = {name: i for i, name in enumerate(names)}
    different, inverse = np.unique(values, return_inverse=True)
    codes = []
    for text in different.tolist():
        code = position.get(text)
        if code is None and _is_whole(text) and 0 <= int(text) < len(names):
            code = int(text)
        if code is None:
            raise ValueError(f"{what} has the unknown label {text!r}; known are {_some(names)}.")
        codes.append(code)
    return np.asarray(codes, dtype=np.int64)[inverse]


def _is_whole(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
