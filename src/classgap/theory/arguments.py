"""Validators of the arguments of the bounds: return the value or raise a ``ValueError`` that states what is allowed."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def check_delta(name: str, value: float) -> float:
    """Check for a number in (0, 1)."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must be in (0, 1), got {value!r}.")
    return float(value)


def check_nonnegative(name: str, value: float) -> float:
    """Check for a finite number >= 0."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}.")
    return float(value)


def check_positive(name: str, value: float) -> float:
    """Check for a finite number > 0."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}.")
    return float(value)


def check_matrix(name: str, values: Tensor, *, columns: int | None = None) -> Tensor:
    """Check for a matrix; return it in at least float32, as half precision cannot hold sums of squares."""
    if values.dim() != 2 or (columns is not None and values.shape[1] != columns):
        wanted = "a matrix" if columns is None else f"a matrix with {columns} columns"
        raise ValueError(f"{name} must be {wanted}, got shape {tuple(values.shape)}.")
    return values.to(torch.promote_types(values.dtype, torch.float32))


def check_vector(name: str, values: Tensor, length: int, *, positive: bool = False) -> Tensor:
    """Check for a vector of the given length; return it in at least float32."""
    if values.shape != (length,):
        raise ValueError(f"{name} must be a vector of {length} numbers, got shape {tuple(values.shape)}.")
    if positive and not bool((values > 0).all()):
        raise ValueError(f"{name} must be positive everywhere, got a minimum of {values.min().item():g}.")
    return values.to(torch.promote_types(values.dtype, torch.float32))


def check_labels(labels_N: Tensor, num_classes: int, *, rows: int) -> Tensor:
    """Check for one label per row, from 0 to K - 1, or -1 for no class; at least one row has a class."""
    if labels_N.shape != (rows,) or labels_N.is_floating_point() or labels_N.dtype == torch.bool:
        raise ValueError(
            f"labels_N must be {rows} integers, one per row; got shape {tuple(labels_N.shape)} of {labels_N.dtype}."
        )
    if not bool((labels_N >= 0).any()):
        raise ValueError("labels_N must contain at least one sample with a class, got none.")
    lowest, highest = int(labels_N.min()), int(labels_N.max())
    if lowest < -1 or highest >= num_classes:
        wrong = lowest if lowest < -1 else highest
        raise ValueError(f"labels_N must be from 0 to {num_classes - 1}, or -1 for no class; got {wrong}.")
    return labels_N.long()
