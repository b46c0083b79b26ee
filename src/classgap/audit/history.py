"""``History``: overall accuracy, hard classes and gap over the releases of a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from classgap.audit.audit import Audit, Source
from classgap.audit.results import STRICT, Interval
from classgap.audit.serialization import to_plain, write_json


@dataclass(frozen=True)
class Release:
    """One release; accuracies are fractions.

    Attributes:
        name: name of the release.
        n_samples: number of test samples.
        n_classes: number of classes with test samples.
        overall: accuracy.
        overall_interval: its interval.
        hard: mean accuracy of its own hard third; ``None`` with one class.
        hard_interval: its interval.
        first_hard: mean accuracy of the classes that were in the first release's hard third, if it has any of them.
        worst_class: lowest accuracy of a class.
        worst_interval: its interval.
        worst_name: name of that class.
        gap: easy third - hard third; ``None`` with one class.
        gap_interval: its interval.
    """

    __pydantic_config__ = STRICT

    name: str
    n_samples: int
    n_classes: int
    overall: float
    overall_interval: Interval
    hard: float | None
    hard_interval: Interval | None
    first_hard: float | None
    worst_class: float
    worst_interval: Interval
    worst_name: str
    gap: float | None
    gap_interval: Interval | None


@dataclass(frozen=True)
class History:
    """Releases of a model, oldest first.

    Attributes:
        releases: one entry per release.
        confidence_level: level of the intervals, that of the first audit.

    >>> targets = [0, 0, 1, 1]
    >>> audits = [Audit.from_predictions(predictions=each, targets=targets) for each in ([0, 1, 1, 0], targets)]
    >>> [release.overall for release in History.from_audits(audits, ["v1", "v2"]).releases]
    [0.5, 1.0]
    """

    SCHEMA: ClassVar[int] = 1
    __pydantic_config__ = STRICT

    releases: tuple[Release, ...]
    confidence_level: float

    @classmethod
    def from_audits(cls, audits: Sequence[Audit], names: Sequence[str] | None = None) -> History:
        """Collect audits, oldest first.

        Args:
            audits: one audit per release.
            names: names of the releases; by default those of the audits.

        Raises:
            ValueError: if there is no audit, or the levels of their intervals differ.

        >>> targets = [0, 0, 1, 1]
        >>> first = Audit.from_predictions(predictions=[0, 0, 1, 0], targets=targets)
        >>> second = Audit.from_predictions(predictions=[0, 1, 1, 1], targets=targets)
        >>> history = History.from_audits([first, second], ["v1", "v2"])
        >>> [(release.name, release.hard, release.first_hard) for release in history.releases]
        [('v1', 0.5, 0.5), ('v2', 0.5, 1.0)]
        """
        if not audits:
            raise ValueError("a history needs at least one audit.")
        levels = sorted({audit.confidence_level for audit in audits})
        if len(levels) > 1:
            raise ValueError(f"all audits must have the same confidence level, got {levels[0]:g} and {levels[1]:g}.")
        names = [audit.name for audit in audits] if names is None else names
        hard = set(audits[0].groups["hard"].members) if "hard" in audits[0].groups else set()
        found = tuple(_release(name, audit, hard) for name, audit in zip(names, audits, strict=True))
        return cls(found, levels[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON file."""
        return {"schema": self.SCHEMA, **to_plain(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the history as JSON, atomically."""
        write_json(path, self.to_dict())

    def __str__(self) -> str:
        from classgap import report

        return report.history_text(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the history as a self-contained HTML page."""
        from classgap import report

        report.write_html(self, path)


def history(sources: Sequence[Source], *, key: str | None = None) -> History:
    """Read the audits of several releases, oldest first; files are named without their extension.

    Args:
        sources: audits, or paths of saved audits, prediction files or run directories.
        key: array or column of prediction files with sample ids.

    Raises:
        ValueError: if a source cannot be read.

    >>> audits = [Audit.from_predictions(predictions=[0, 0, 1], targets=[0, 1, 1], name=name) for name in ("v1", "v2")]
    >>> [release.name for release in history(audits).releases]
    ['v1', 'v2']
    """
    from classgap.audit.io.sources import read_audits

    audits = read_audits(sources, key=key)
    names = [
        audit.name if isinstance(source, Audit) or Path(source).is_dir() else Path(source).stem
        for audit, source in zip(audits, sources, strict=True)
    ]
    return History.from_audits(audits, names if len(set(names)) == len(names) else [audit.name for audit in audits])


def _release(name: str, audit: Audit, first_hard: set[str]) -> Release:
    hard, gap = audit.groups.get("hard"), audit.gap
    old = [entry.accuracy for entry in audit.classes if entry.name in first_hard and entry.accuracy is not None]
    return Release(
        name=name,
        n_samples=audit.overall.n_samples,
        n_classes=sum(entry.accuracy is not None for entry in audit.classes),
        overall=audit.overall.accuracy,
        overall_interval=audit.overall.interval,
        hard=None if hard is None else hard.accuracy,
        hard_interval=None if hard is None else hard.interval,
        first_hard=float(np.mean(old)) if old else None,
        worst_class=gap.worst_class,
        worst_interval=gap.intervals["worst_class"],
        worst_name=gap.worst_name,
        gap=gap.easy_hard,
        gap_interval=gap.intervals.get("easy_hard"),
    )
