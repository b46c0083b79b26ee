"""What can be audited or compared: prediction files, run directories, and audits saved before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from classgap.audit import Audit
from classgap.audit.settings import AuditSettings

# For audits whose accuracies alone are used: the map and the label check take longest.
ACCURACIES = AuditSettings(map="none", check_labels=False)


def read_audit(
    source: Path,
    *,
    settings: AuditSettings,
    groups: Mapping[str, Sequence[Any]] | Sequence[Any] | None = None,
    rank_by: Audit | None = None,
    asked: Sequence[str] = (),
) -> Audit:
    """The audit that ``source`` holds, or the audit of the predictions that it holds.

    Args:
        source: an ``audit.json``, a prediction file, or a run directory with one of them.
        settings: for auditing predictions.
        groups: further groups, for auditing predictions.
        rank_by: whose thirds to use, for auditing predictions.
        asked: the flags that were given of those that only auditing predictions can heed.

    Raises:
        ValueError: in one sentence, if it cannot be read.
    """
    if not source.exists():
        raise ValueError(f"{source} does not exist.")
    saved = source if source.suffix.lower() == ".json" else _saved_in(source)
    if saved is None:
        return Audit.from_file(source, groups=groups, rank_by=rank_by, settings=settings)
    if asked:
        flags = " and ".join(asked)
        raise ValueError(f"{saved} is a finished audit: leave out {flags}, or give the predictions it was made from.")
    return Audit.load(saved)


def _saved_in(source: Path) -> Path | None:
    """A run's audit, if its predictions were not kept."""
    kept = source.is_dir() and not any(source.glob("predictions.*")) and (source / "audit.json").is_file()
    return source / "audit.json" if kept else None


@contextmanager
def busy(message: str) -> Iterator[None]:
    """Show a spinner on standard error while the block runs, if it is a terminal."""
    from rich.console import Console
    from rich.text import Text

    from classgap.report.formatting import printable

    with Console(stderr=True).status(Text(printable(message))):
        yield
