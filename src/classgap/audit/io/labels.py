"""Class names, and labels given as class names or class indices."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from classgap.audit._types import Integers

BINARY = (
    "a binary classifier needs two columns of scores, logits (0, z) for a single logit z or probabilities (1 - p, p) "
    "for a single probability p; in scikit-learn, pass np.column_stack([0 * z, z]) of decision_function, or both "
    "columns of predict_proba"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def check_class_names(
    names: Sequence[Any] | Mapping[Any, Any] | NDArray[Any], num_classes: int | None = None
) -> tuple[str, ...]:
    """Convert class names to strings; a mapping such as ``id2label`` has the class indices as keys.

    Raises:
        ValueError: if ``names`` is one string, the keys of a mapping are not 0 to K - 1, a name is empty or contains
            half of a character, two names are equal up to white space, or there are not ``num_classes`` names.

    >>> check_class_names(["cat", "dog"])
    ('cat', 'dog')
    >>> check_class_names({1: "dog", 0: "cat"})
    ('cat', 'dog')
    """
    if isinstance(names, str):
        raise ValueError(f"class_names must be a list with one name per class, got the string {names!r}.")
    if isinstance(names, Mapping):
        by_index = {str(index): name for index, name in names.items()}
        if by_index.keys() != {str(k) for k in range(len(names))}:
            raise ValueError(
                f"class_names is a mapping, so its keys must be the class indices 0 to {len(names) - 1}, got "
                f"{', '.join(map(repr, list(names)[:5]))}: pass a list of names."
            )
        names = [by_index[str(k)] for k in range(len(names))]
    if isinstance(names, np.ndarray) and names.ndim != 1:
        raise ValueError(f"class_names must be a list of shape (classes,), got shape {names.shape}.")
    texts = tuple(str(name) for name in names)
    if num_classes is not None and len(texts) != num_classes:
        raise ValueError(f"class_names must have {num_classes} names, one per class, got {len(texts)}.")
    first: dict[str, str] = {}
    for position, text in enumerate(texts):
        bare = text.strip()
        if not bare:
            raise ValueError(f"class_names must not be empty, got {text!r} for class {position}.")
        if not bare.isprintable() and _SURROGATE.search(bare):
            raise ValueError(
                f"class_names must be valid Unicode, but {text!r} of class {position} contains an unpaired surrogate: "
                "rename the class."
            )
        if bare in first:
            how = "appears more than once" if first[bare] == text else f"and {first[bare]!r} differ only in white space"
            raise ValueError(f"class_names must be unique, but {text!r} {how}.")
        first[bare] = text
    return texts


def parse_names(text: str | bytes) -> list[Any]:
    """Return the class names in the metadata of a file.

    Raises:
        ValueError: if ``text`` is not a JSON list.

    >>> parse_names('["cat", "dog"]')
    ['cat', 'dog']
    """
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list):
        raise ValueError("class_names in the metadata must be a JSON list of strings.")
    return names


def is_text(values: Any) -> bool:
    """Return whether labels are strings rather than numbers."""
    return not isinstance(values, torch.Tensor) and np.asarray(values).dtype.kind in "UO"


def plain_tensor(what: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor on the CPU, in float32 if it has 8-bit floats, for which torch implements few operations.

    Raises:
        ValueError: if the tensor is complex, sparse, quantized or without values.

    >>> plain_tensor("targets", torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn)).tolist()
    [1.0, 2.0]
    """
    if tensor.is_complex() or tensor.is_quantized or tensor.is_meta or tensor.layout is not torch.strided:
        found = "meta" if tensor.is_meta else f"{tensor.dtype} {tensor.layout}".replace("torch.", "")
        raise ValueError(f"{what} must be a dense tensor of real numbers, got a {found} tensor.")
    tensor = tensor.detach().cpu()
    try:
        return tensor.float() if tensor.is_floating_point() and tensor.dtype.itemsize == 1 else tensor
    except (RuntimeError, NotImplementedError):
        raise ValueError(f"{what} must be a tensor of numbers, got {tensor.dtype}: convert it to float32.") from None


def infer_class_names(*columns: Any) -> tuple[str, ...]:
    """Return the distinct labels of all columns, sorted numerically if all are integers and alphabetically otherwise.

    Raises:
        ValueError: if one column has only integers and another only names, because they cannot be matched.

    >>> infer_class_names(["10", "9"], ["9", "1"])
    ('1', '9', '10')
    """
    labels = [{str(value) for value in np.unique(np.asarray(column, dtype=str)).tolist()} for column in columns]
    found = set[str]().union(*labels)
    number = next((label for column in labels if all(map(_is_integer, column)) for label in sorted(column)), None)
    text = next((label for column in labels if not any(map(_is_integer, column)) for label in sorted(column)), None)
    if number is not None and text is not None:
        raise ValueError(
            f"targets and predictions must both be class names or both be class indices, got {number!r} in one and "
            f"{text!r} in the other: use the same kind of label in both."
        )
    if all(_is_integer(name) for name in found):
        return tuple(sorted(found, key=int))
    return tuple(sorted(found))


def encode(what: str, values: Any, names: Sequence[str]) -> Integers:
    """Convert labels, given as class names or class indices, to class indices.

    A string is looked up among the names first, and parsed as an index only if no name matches. If all names are
    integers, every string is a name.

    >>> encode("targets", ["dog", "0"], ["cat", "dog"]).tolist()
    [1, 0]
    """
    if is_text(values):
        return _encode_texts(what, np.asarray(values, dtype=str), names)
    if isinstance(values, torch.Tensor):
        tensor = plain_tensor(what, values)
        values = (tensor.double() if tensor.is_floating_point() else tensor).numpy()  # numpy has no bfloat16
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{what} must have shape (samples,), one label per sample, got shape {array.shape}.")
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all():
        array = np.clip(array.astype(np.float64), -(2.0**62), 2.0**62).astype(
            np.int64
        )  # larger ones are rejected below
    if array.dtype.kind == "f":
        row = int(np.flatnonzero(~np.isfinite(array) | (array != np.floor(array)))[0])
        raise ValueError(
            f"{what} must be class indices or class names, got {array[row]:g} at row {row}: pass whole numbers from 0, "
            "and scores as logits or probabilities."
        )
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what} must be class indices or class names, got dtype {array.dtype}.")
    if array.size and (array.min() < 0 or array.max() >= len(names)):
        worst = int(array.min() if array.min() < 0 else array.max())
        raise ValueError(
            f"{what} must be class indices from 0 to {len(names) - 1}, got {worst}: {_advice(worst, len(names))}."
        )
    return array.astype(np.int64)


def _advice(label: int, num_classes: int) -> str:
    if label == -100:
        return "this is PyTorch's ignore_index, so drop these samples"
    if (label, num_classes) == (1, 1):
        return BINARY
    return "check the labels"


def _encode_texts(what: str, values: NDArray[np.str_], names: Sequence[str]) -> Integers:
    if values.ndim != 1:
        raise ValueError(f"{what} must have shape (samples,), one label per sample, got shape {values.shape}.")
    position = {name: i for i, name in enumerate(names)}
    distinct, inverse = np.unique(values, return_inverse=True)
    codes = []
    indices_allowed = not are_integers(names)  # "1" must not be a name while "0" is an index
    for text in distinct.tolist():
        code = position.get(text)
        if code is None and indices_allowed and _is_integer(text) and 0 <= int(text) < len(names):
            code = int(text)
        if code is None:
            raise ValueError(f"{what} has the unknown label {text!r}, expected one of {_list_names(names)}.")
        codes.append(code)
    return np.asarray(codes, dtype=np.int64)[inverse]


def are_integers(names: Sequence[str]) -> bool:
    """Return whether all names are integers, so that an integer label is ambiguous.

    >>> are_integers(["1", "2"]), are_integers(["1", "two"])
    (True, False)
    """
    return all(_is_integer(name) for name in names)


def _is_integer(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()


def _list_names(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
