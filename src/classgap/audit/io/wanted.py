"""Columns or arrays of a prediction file that are read on request: slices and sample ids."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from classgap.audit.io.fields import NAMES, SAMPLE_COLUMNS
from classgap.audit.io.slice_columns import check_slice_names


@dataclass(frozen=True)
class Wanted:
    """Names of columns or arrays to read.

    Attributes:
        slices: columns that divide the samples into slices.
        key: column of sample ids, in place of ``index``.

    >>> Wanted(("camera",), "file").names
    ('camera', 'file')
    """

    slices: tuple[str, ...] = ()
    key: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return self.slices if self.key in (None, *self.slices) else (*self.slices, str(self.key))

    def check(self, found: Collection[str]) -> None:
        """Check that a file contains the columns.

        Raises:
            ValueError: if one is missing, or is part of the predictions.
        """
        check_slice_names(self.slices, found)
        taken = {*NAMES, "target", "prediction"} - {"index", *SAMPLE_COLUMNS.values()}
        if self.key is not None and (self.key not in found or self.key in taken):
            shown = ", ".join(sorted(found)[:6]) + (" …" if len(found) > 6 else "")
            raise ValueError(f"key must name a column of sample ids, got {self.key!r}, found {shown}.")


NOTHING = Wanted()
