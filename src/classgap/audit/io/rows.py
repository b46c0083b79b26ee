"""Matrices whose rows lie in one or several files and are converted block by block.

A matrix of scores or features may be larger than memory. Every step of an audit reads a slice or a list of its rows,
so a matrix only needs rows that can be read: a tensor, which may be memory-mapped, or :class:`Rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
import torch
from torch import Tensor

from classgap.audit._types import Integers

CHUNK_ENTRIES = 4_000_000  # entries converted to float32 at a time, 16 MB
CACHED_ENTRIES = 500_000  # for several operations in a row on the same entries; 2 MB stay in the cache
GROUP = 8  # columns whose maximum stands for them in a search for the highest scores
MAX_COPIED = 2**24  # entries of a matrix that may be copied whole, 64 MB in single precision
KEPT_BYTES = 2**25 - 2**16  # the largest block that raises glibc's limit, less some room for its header

Convert = Callable[[Tensor], Tensor]


class Rows:
    """Rows of one or several tensors, read in any order and converted as they are read.

    Args:
        parts: matrices with the same number of columns, one below the other.
        order: rows to read, in this order; by default all.
        convert: function of a block of rows that changes entries and not shape, such as a logarithm.
        dtype: type of the entries after conversion; by default that of the parts.

    >>> rows = Rows([torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0]])], order=np.array([2, 0]))
    >>> rows[:].tolist(), rows[torch.tensor([1])].tolist(), rows.shape
    ([[3.0], [1.0]], [[1.0]], (2, 1))
    """

    def __init__(
        self,
        parts: Sequence[Tensor],
        *,
        order: Integers | None = None,
        convert: Convert | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.parts = tuple(parts)
        self.order = order
        self.convert = convert
        self._dtype = dtype
        self._starts = np.cumsum([0, *(len(part) for part in self.parts)])

    @property
    def dtype(self) -> torch.dtype:
        """Type of the entries that are read."""
        if self._dtype is not None:
            return self._dtype
        kind = self.parts[0].dtype
        for part in self.parts[1:]:
            kind = torch.promote_types(kind, part.dtype)
        return kind

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self), self.parts[0].shape[1]

    def __len__(self) -> int:
        return int(self._starts[-1]) if self.order is None else len(self.order)

    @overload
    def __getitem__(self, key: slice | Tensor) -> Tensor: ...
    @overload
    def __getitem__(self, key: tuple[slice, int]) -> Tensor: ...
    def __getitem__(self, key: slice | Tensor | tuple[slice, int]) -> Tensor:
        """Read a slice of rows, the rows listed in an integer tensor, or one column."""
        if isinstance(key, tuple):
            rows, column = key
            chosen = range(*rows.indices(len(self)))
            blocks = row_chunks(len(chosen), self.shape[1])
            return torch.cat([self[torch.tensor(chosen[block])][:, column] for block in blocks])
        if isinstance(key, slice) and self.order is None and key.step in (None, 1):
            start, stop, _ = key.indices(len(self))
            found = self._read_slice(start, max(start, stop))
        elif isinstance(key, slice):
            rows_B = np.arange(*key.indices(len(self)))
            found = self._read_rows(rows_B if self.order is None else self.order[rows_B])
        else:
            found = self._read_rows(key.numpy() if self.order is None else self.order[key.numpy()])
        return (found if self.convert is None else self.convert(found)).to(self.dtype)

    def take(self, rows: Integers) -> Rows:
        """Return some of the rows without reading them."""
        order = rows if self.order is None else self.order[rows]
        return Rows(self.parts, order=order, convert=self.convert, dtype=self._dtype)

    def then(self, convert: Convert, dtype: torch.dtype) -> Rows:
        """Return the rows with one more conversion."""
        first = self.convert
        both = convert if first is None else lambda block: convert(first(block))
        return Rows(self.parts, order=self.order, convert=both, dtype=dtype)

    def _read_slice(self, start: int, stop: int) -> Tensor:
        found = [
            part[max(start - first, 0) : stop - first]
            for part, (first, last) in zip(self.parts, pairwise(self._starts.tolist()), strict=True)
            if first < stop and last > start
        ]
        return self._join(found)

    def _read_rows(self, rows_B: Integers) -> Tensor:
        if len(self.parts) == 1:
            return read_rows(self.parts[0], rows_B)
        part_B = np.searchsorted(self._starts, rows_B, side="right") - 1
        result = torch.empty(len(rows_B), self.shape[1], dtype=self._join([]).dtype)
        for i in np.unique(part_B).tolist():
            place = np.flatnonzero(part_B == i)
            found = read_rows(self.parts[i], rows_B[place] - int(self._starts[i]))
            result[torch.from_numpy(place)] = found.to(result.dtype)
        return result

    def _join(self, parts: list[Tensor]) -> Tensor:
        if len(parts) == 1:
            return parts[0]
        kind = Rows(self.parts).dtype
        return torch.cat([self.parts[0][:0].to(kind), *(part.to(kind) for part in parts)])


Matrix = Tensor | Rows


def read_rows(matrix: Matrix, rows: Integers) -> Tensor:
    """Read some rows of a matrix.

    >>> read_rows(torch.tensor([[1.0], [2.0]]), np.array([1])).tolist()
    [[2.0]]
    """
    at = torch.from_numpy(rows)
    return matrix.index_select(0, at) if isinstance(matrix, Tensor) else matrix[at]  # copies rows, not entries


def take_rows(matrix: Matrix, rows: Integers) -> Matrix:
    """Return some rows of a matrix; a large matrix is not copied.

    >>> take_rows(torch.tensor([[1.0], [2.0]]), np.array([1])).tolist()
    [[2.0]]
    """
    if isinstance(matrix, Rows):
        return matrix.take(rows)
    if len(rows) * matrix.shape[1] <= MAX_COPIED:
        return read_rows(matrix, rows)
    return Rows([matrix], order=rows)


def convert_rows(matrix: Matrix, convert: Convert, dtype: torch.dtype) -> Matrix:
    """Convert the entries of a matrix: now if it is small, and otherwise whenever rows are read."""
    if matrix.shape[0] * matrix.shape[1] <= MAX_COPIED:
        return convert(as_tensor(matrix)).to(dtype)
    return (matrix if isinstance(matrix, Rows) else Rows([matrix])).then(convert, dtype)


def stack_rows(parts: Sequence[Matrix]) -> Matrix:
    """Return matrices, one below the other; large ones are not copied."""
    if len(parts) == 1:
        return parts[0]
    tensors = [as_tensor(part) for part in parts]
    rows = Rows(tensors)
    return rows[:] if rows.shape[0] * rows.shape[1] <= MAX_COPIED else rows


def as_tensor(matrix: Matrix) -> Tensor:
    """Return a matrix as a tensor, which reads all of its rows."""
    return matrix if isinstance(matrix, Tensor) else matrix[:]


def row_chunks(rows: int, columns: int, entries: int = CHUNK_ENTRIES) -> Iterator[slice]:
    """Split the rows of a matrix into slices of about ``entries`` entries.

    >>> list(row_chunks(5, 2, entries=4))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, entries // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def highest_columns(scores_BK: Tensor) -> Integers:
    """Return the column of the highest entry of each row, the first of equal ones.

    >>> highest_columns(torch.tensor([[1.0, 3.0, 3.0]])).tolist()
    [1]
    """
    return single_or_double(scores_BK).numpy().argmax(axis=1)  # several times faster than torch


def highest_scores(scores_BK: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the highest entries of each row in descending order and their columns, (B, count) each.

    The same as ``topk``, in a third of the time: of the maxima of disjoint groups of columns, the smallest of the
    ``count`` highest is a bound that all highest entries reach and few others do.

    >>> values, columns = highest_scores(torch.tensor([[1.0, 3.0, 2.0]]), 2)
    >>> values.tolist(), columns.tolist()
    ([[3.0, 2.0]], [[1, 2]])
    """
    rows, columns = scores_BK.shape
    groups = columns // GROUP
    if groups <= 2 * count:
        top = scores_BK.topk(count, dim=1)
        return top.values, top.indices
    values_BK = scores_BK.numpy()
    maxima_Bg = scores_BK[:, : groups * GROUP].unflatten(1, (GROUP, groups)).amax(dim=1).numpy()
    bound_B1 = np.partition(maxima_Bg, groups - count, axis=1)[:, groups - count, None]
    flat = np.flatnonzero(values_BK >= bound_B1)
    row, column = np.divmod(flat, columns)
    found_B = np.bincount(row, minlength=rows)
    place = np.arange(len(flat)) - np.repeat(np.cumsum(found_B) - found_B, found_B)
    candidates_BW = torch.full((rows, int(found_B.max(initial=0))), -torch.inf, dtype=scores_BK.dtype)
    columns_BW = torch.zeros(candidates_BW.shape, dtype=torch.int64)
    candidates_BW.numpy()[row, place] = values_BK[row, column]
    columns_BW.numpy()[row, place] = column
    top = candidates_BW.topk(count, dim=1)
    return top.values, columns_BW.gather(1, top.indices)


def predict_labels(scores_NK: Matrix) -> Integers:
    """Return the class with the highest score of each sample, the first of equal ones.

    >>> predict_labels(torch.tensor([[1.0, 3.0, 3.0]])).tolist()
    [1]
    """
    samples, classes = scores_NK.shape
    labels_N = np.empty(samples, dtype=np.int64)
    for rows in row_chunks(samples, classes, CACHED_ENTRIES):
        labels_N[rows] = highest_columns(scores_NK[rows])
    return labels_N


def keep_freed_memory() -> None:
    """Let the C library reuse the memory of freed blocks instead of returning it to the system.

    By default, glibc returns a few freed megabytes at once, and the system must clear them again for the next block:
    that takes several times as long as the arithmetic. Freeing one block of almost 32 MB, which is never touched,
    raises the limit to 64 MB for the rest of the process.
    """
    torch.empty(KEPT_BYTES, dtype=torch.uint8)


def single_or_double(values: Tensor) -> Tensor:
    """Return values in at least single precision."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
