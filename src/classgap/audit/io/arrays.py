"""Convert arrays and lists to tensors, and check their shapes and entries."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from classgap.audit._types import Integers
from classgap.audit.io.labels import BINARY, plain_tensor
from classgap.audit.io.rows import Matrix, Rows, convert_rows, row_chunks

MAX_LOGIT = 1e100  # variances of margins must not overflow
MAX_FEATURE = 1e15  # sums of squares over all samples and features must not overflow in single precision
WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # torch implements few operations for these


def to_tensor(what: str, values: Any) -> Tensor:
    """Convert an array-like to a CPU tensor, without a copy where possible.

    Raises:
        ValueError: if it is not numeric, or an unsigned integer is too large.

    >>> to_tensor("priors", [1, 2])
    tensor([1, 2])
    """
    if isinstance(values, Tensor):
        values = plain_tensor(what, values)
        if values.dtype not in WIDE_UNSIGNED:
            return values
        values = values.numpy()
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise ValueError(array.dtype)
    except ValueError:
        raise ValueError(
            f"{what} must be a numeric array, got a {type(values).__name__} that is not numeric."
        ) from None
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # torch has no long double
        with np.errstate(over="ignore"):  # infinities are reported where values must be finite
            array = array.astype(np.float64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = _signed(what, array)
    # torch rejects negative strides. A reversed array of one row counts as contiguous.
    if any(stride < 0 for stride in array.strides):
        array = array.copy()
    with warnings.catch_warnings():  # torch warns about read-only arrays, such as memory-mapped files; none is written
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(array))


def _signed(what: str, array: NDArray[Any]) -> Integers:
    most = np.iinfo(np.int64).max
    if array.size and int(array.max()) > most:
        raise ValueError(f"{what} must be integers up to {most}, got {array.max()}: count from 0.")
    return array.astype(np.int64)


def to_column(what: str, values: Any) -> Tensor:
    """Convert an array-like to a 1-D tensor.

    Raises:
        ValueError: if it is not numeric, or not 1-D.
    """
    tensor = to_tensor(what, values)
    if tensor.dim() != 1:
        raise ValueError(f"{what} must be a 1-D array, got shape {tuple(tensor.shape)}.")
    return tensor


def to_matrix(what: str, values: Any) -> Matrix:
    """Convert an array-like to a matrix of floats whose entries are finite and small enough to be squared.

    Raises:
        ValueError: if it is not a matrix, or an entry is not finite or too large.
    """
    matrix = two_dimensional(what, values)
    check_range(what, matrix)
    return matrix


def two_dimensional(what: str, values: Any) -> Matrix:
    """Convert an array-like to a matrix of floats, whose entries are not checked.

    Raises:
        ValueError: if it is not numeric, not 2-D, or has no columns.
    """
    matrix = values if isinstance(values, Rows) else to_tensor(what, values)
    if len(matrix.shape) != 2 or matrix.shape[1] == 0:
        hint = ""
        if len(matrix.shape) == 1 and what in ("logits", "probabilities"):
            hint = f": pass predicted labels as predictions=; {BINARY}"
        raise ValueError(f"{what} must be a 2-D array with at least one column, got shape {tuple(matrix.shape)}{hint}.")
    return matrix if matrix.dtype.is_floating_point else convert_rows(matrix, Tensor.float, torch.float32)


def in_range(lowest: float, highest: float) -> bool:
    """Return whether logits between two values are finite and small enough to be squared."""
    return lowest >= -MAX_LOGIT and highest <= MAX_LOGIT  # false for NaN


def check_range(what: str, matrix: Matrix) -> None:
    """Check that all entries are finite and small enough to be squared.

    Raises:
        ValueError: if one is not, with its row.
    """
    largest = 0.0
    for rows in row_chunks(*matrix.shape):
        block = matrix[rows]
        lowest, highest = block.aminmax()  # NaN if anything is
        if not bool(lowest.isfinite() & highest.isfinite()):
            row = rows.start + int((~block.isfinite()).any(dim=1).nonzero()[0, 0])
            raise ValueError(f"{what} must be finite, but row {row} contains NaN or infinity.")
        largest = max(largest, abs(float(lowest)), abs(float(highest)))
    if largest > MAX_FEATURE and what in ("features", "train_features", "head weight"):
        raise ValueError(
            f"{what} must be at most {MAX_FEATURE:g} in absolute value to be squared, got {largest:g}: rescale it."
        )
    if largest > MAX_LOGIT:
        raise ValueError(
            f"{what} must be at most {MAX_LOGIT:g} in absolute value to be squared, got {largest:g}: rescale it."
        )
