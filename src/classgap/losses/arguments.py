"""Checks of constructor arguments: each returns the value or says what is allowed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


class EmptyClassError(ValueError):
    """A class has no training samples where each must have some.

    Attributes:
        number: of the first such class.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


def _is_number(value: Any, kind: type = numbers.Real) -> bool:
    """Whether it is a number, NumPy's included; True and False are none here."""
    return isinstance(value, kind) and type(value) is not bool


def number(
    name: str, value: Any, *, at_least: float = -math.inf, above: float = -math.inf, or_word: str | None = None
) -> float:
    """A finite number within bounds; ``or_word`` is what the argument may be instead, for the message."""
    if not _is_number(value) or not math.isfinite(value) or value < at_least or value <= above:
        bound = f" of at least {at_least:g}" if at_least > -math.inf else ""
        bound = f" above {above:g}" if above > -math.inf else bound
        word = f" or {or_word!r}" if or_word else ""
        raise ValueError(f"{name} must be a finite number{bound}{word}, got {value!r}.")
    return float(value)


def whole_number(name: str, value: Any, *, at_least: int) -> int:
    """An integer that is large enough."""
    if not _is_number(value, numbers.Integral) or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {value!r}.")
    return int(value)


def yes_or_no(name: str, value: Any) -> bool:
    """True or False themselves."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return value


def share(name: str, value: Any) -> float:
    """A number of [0, 1), such as the decay of a running mean."""
    if number(name, value, at_least=0) >= 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}: at 1 nothing would be learned.")
    return float(value)


def probability(name: str, value: Any) -> float:
    """A number from 0 to 1, both included."""
    if number(name, value, at_least=0) > 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}.")
    return float(value)


def norm_order(name: str, value: Any) -> float:
    """The p of an L_p norm, from 1 to infinity."""
    if _is_number(value) and value >= 1:
        return float(value)
    raise ValueError(f"{name} must be a number from 1 to infinity (float('inf')), got {value!r}.")


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of the allowed words."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
    return str(value)


def positive_counts(name: str, counts: Sequence[float] | Tensor, num_classes: int | None = None) -> Tensor:
    """Training samples of each class as a float64 tensor, all above 0."""
    if isinstance(counts, Mapping):
        raise ValueError(f"{name} must be a list, the count of class 0 first; got a {type(counts).__name__}.")
    values = torch.as_tensor(counts, dtype=torch.float64).detach().cpu()
    if values.dim() != 1 or (num_classes is not None and len(values) != num_classes):
        wanted = "one number a class" if num_classes is None else f"{num_classes} numbers, one a class"
        raise ValueError(f"{name} must be {wanted}; got shape {tuple(values.shape)}.")
    wrong = (~(values > 0) | values.isinf()).nonzero().flatten().tolist()
    if wrong:
        raise EmptyClassError(
            f"{name} must be above 0 for every class, got {values[wrong[0]].item():g} for class {wrong[0]}: a class "
            "without training samples has no prior; leave it out or give it a count of 1.",
            wrong[0],
        )
    return values


def weight_per_class(name: str, weights: Sequence[float] | Tensor, num_classes: int) -> Tensor:
    """A factor for each class as a float64 tensor, none negative and not all 0."""
    values = torch.as_tensor(weights, dtype=torch.float64).detach().cpu()
    if values.shape != (num_classes,):
        raise ValueError(f"{name} must be {num_classes} numbers, one a class; got shape {tuple(values.shape)}.")
    wrong = (~(values >= 0) | values.isinf()).nonzero().flatten().tolist()
    if wrong:
        raise ValueError(
            f"{name} must be finite and at least 0 for every class; got {values[wrong[0]].item():g} for class "
            f"{wrong[0]}."
        )
    if not bool(values.any()):
        raise ValueError(f"{name} must be above 0 for some class; all are 0, so nothing would be learned.")
    return values
