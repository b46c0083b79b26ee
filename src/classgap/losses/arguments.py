"""Validators of constructor arguments: return the value or raise a ``ValueError`` that states what is allowed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


class EmptyClassError(ValueError):
    """A class without training samples where every class needs some.

    Attributes:
        number: Index of the first such class.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


def _is_number(value: Any, kind: type = numbers.Real) -> bool:
    """Return whether the value is a Python or NumPy number; booleans are not."""
    return isinstance(value, kind) and type(value) is not bool


def check_float(
    name: str, value: Any, *, ge: float = -math.inf, gt: float = -math.inf, or_value: str | None = None
) -> float:
    """Check for a finite number within bounds; ``or_value`` is an alternative to mention in the message."""
    if not _is_number(value) or not math.isfinite(value) or value < ge or value <= gt:
        bound = f" >= {ge:g}" if ge > -math.inf else ""
        bound = f" > {gt:g}" if gt > -math.inf else bound
        alternative = f" or {or_value!r}" if or_value else ""
        raise ValueError(f"{name} must be a finite number{bound}{alternative}, got {value!r}.")
    return float(value)


def check_int(name: str, value: Any, *, ge: int) -> int:
    """Check for an integer of at least ``ge``."""
    if not _is_number(value, numbers.Integral) or value < ge:
        raise ValueError(f"{name} must be an integer >= {ge}, got {value!r}.")
    return int(value)


def check_bool(name: str, value: Any) -> bool:
    """Check for True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return value


def check_fraction(name: str, value: Any) -> float:
    """Check for a number in [0, 1), such as the decay of a running mean."""
    if check_float(name, value, ge=0) >= 1:
        raise ValueError(f"{name} must be in [0, 1), got {value!r}.")
    return float(value)


def check_probability(name: str, value: Any) -> float:
    """Check for a number in [0, 1]."""
    if check_float(name, value, ge=0) > 1:
        raise ValueError(f"{name} must be in [0, 1], got {value!r}.")
    return float(value)


def check_norm_order(name: str, value: Any) -> float:
    """Check for the order p of an L_p norm, from 1 to infinity."""
    if _is_number(value) and value >= 1:
        return float(value)
    raise ValueError(f"{name} must be a number >= 1 or float('inf'), got {value!r}.")


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Check for one of the allowed strings."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
    return str(value)


def check_counts(name: str, counts: Sequence[float] | Tensor, num_classes: int | None = None) -> Tensor:
    """Check for positive sample counts, one per class; return a float64 tensor."""
    if isinstance(counts, Mapping):
        raise ValueError(f"{name} must be a list with the count of class 0 first; got a {type(counts).__name__}.")
    values = torch.as_tensor(counts, dtype=torch.float64).detach().cpu()
    if values.dim() != 1 or (num_classes is not None and len(values) != num_classes):
        wanted = "one number per class" if num_classes is None else f"{num_classes} numbers, one per class"
        raise ValueError(f"{name} must be {wanted}; got shape {tuple(values.shape)}.")
    wrong = (~(values > 0) | values.isinf()).nonzero().flatten().tolist()
    if wrong:
        raise EmptyClassError(
            f"{name} must be positive for every class, got {values[wrong[0]].item():g} for class {wrong[0]}: a class "
            "without training samples has no prior; remove the class or set its count to 1.",
            wrong[0],
        )
    return values


def check_class_weights(name: str, weights: Sequence[float] | Tensor, num_classes: int) -> Tensor:
    """Check for nonnegative weights, one per class and not all 0; return a float64 tensor."""
    values = torch.as_tensor(weights, dtype=torch.float64).detach().cpu()
    if values.shape != (num_classes,):
        raise ValueError(f"{name} must be {num_classes} numbers, one per class; got shape {tuple(values.shape)}.")
    wrong = (~(values >= 0) | values.isinf()).nonzero().flatten().tolist()
    if wrong:
        raise ValueError(f"{name} must be finite and >= 0, got {values[wrong[0]].item():g} for class {wrong[0]}.")
    if not bool(values.any()):
        raise ValueError(f"{name} must be positive for at least one class; all are 0, so nothing would be learned.")
    return values
