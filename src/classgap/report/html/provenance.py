"""Where a page comes from: its date, the files it was made from, and the command that made it."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Provenance:
    """Origin of a page.

    Attributes:
        date: day the page was made, as ISO 8601.
        sources: files and directories it was made from.
        command: command that made it; empty if it was made in Python.
    """

    date: str
    sources: tuple[str, ...] = ()
    command: str = ""

    @classmethod
    def from_arguments(
        cls, date: datetime.date | None = None, sources: Sequence[str | os.PathLike[str]] = (), command: str = ""
    ) -> Provenance:
        """Describe a page; without a ``date``, it is made today.

        >>> Provenance.from_arguments(datetime.date(2026, 3, 1), ["a.npz"])
        Provenance(date='2026-03-01', sources=('a.npz',), command='')
        """
        day = today() if date is None else date
        return cls(f"{day:%Y-%m-%d}", tuple(os.fspath(source) for source in sources), command)


def today() -> datetime.date:
    """Return the current day in UTC, or that of the environment variable ``SOURCE_DATE_EPOCH``, in seconds.

    The variable makes pages reproducible byte for byte (https://reproducible-builds.org/specs/source-date-epoch). A
    value that is not a number of seconds is ignored: a training run must not fail at its report.
    """
    try:
        moment = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), tz=datetime.UTC)
    except (KeyError, ValueError, OverflowError, OSError):
        moment = datetime.datetime.now(tz=datetime.UTC)
    return moment.date()
