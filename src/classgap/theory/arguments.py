"""Checks of what the bounds are given: each returns the value or says what is allowed."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def between_zero_and_one(name: str, value: float) -> float:
    """A number strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must be above 0 and below 1, got {value!r}.")
    return float(value)


def at_least_zero(name: str, value: float) -> float:
    """A finite number that is not negative."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")
    return float(value)


def above_zero(name: str, value: float) -> float:
    """A finite number above 0."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}.")
    return float(value)


def matrix(name: str, values: Tensor, *, columns: int | None = None) -> Tensor:
    """A matrix in at least float32: half precision cannot hold sums of squares."""
    if values.dim() != 2 or (columns is not None and values.shape[1] != columns):
        wanted = "a matrix" if columns is None else f"a matrix with {columns} columns"
        raise ValueError(f"{name} must be {wanted}, got shape {tuple(values.shape)}.")
    return values.to(torch.promote_types(values.dtype, torch.float32))


def vector(name: str, values: Tensor, length: int, *, positive: bool = False) -> Tensor:
    """A vector of the given length in at least float32."""
    if values.shape != (length,):
        raise ValueError(f"{name} must be a vector of {length} numbers, got shape {tuple(values.shape)}.")
    if positive and not bool((values > 0).all()):
        raise ValueError(f"{name} must be above 0 everywhere, got a smallest value of {values.min().item():g}.")
    return values.to(torch.promote_types(values.dtype, torch.float32))


def class_labels(labels_N: Tensor, num_classes: int, *, rows: int) -> Tensor:
    """One label for each row, from 0 to K - 1, or -1 for a row of no class; at least one row has a class."""
    if labels_N.shape != (rows,) or labels_N.is_floating_point() or labels_N.dtype == torch.bool:
        raise ValueError(
            f"labels_N must be {rows} whole numbers, one a row; got shape {tuple(labels_N.shape)} of {labels_N.dtype}."
        )
    if not bool((labels_N >= 0).any()):
        raise ValueError("labels_N has no sample with a class, so there is nothing to bound.")
    lowest, highest = int(labels_N.min()), int(labels_N.max())
    if lowest < -1 or highest >= num_classes:
        wrong = lowest if lowest < -1 else highest
        raise ValueError(f"labels_N must be from 0 to {num_classes - 1}, or -1 for no class; got {wrong}.")
    return labels_N.long()
