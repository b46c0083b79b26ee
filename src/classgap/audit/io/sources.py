"""Read audits from prediction files, run directories and saved audits."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from classgap.audit.audit import Audit, Source
from classgap.audit.io.readers import AUDIT_FILE, RUN_FILES
from classgap.audit.io.shards import find_shards
from classgap.audit.settings import AuditSettings

# For audits used only for their accuracies; the map and the label check take longest.
ACCURACIES_ONLY = AuditSettings(map="none", diagnose=False)


def read_audit(
    source: str | os.PathLike[str],
    *,
    settings: AuditSettings = ACCURACIES_ONLY,
    groups: Mapping[str, Sequence[Any]] | Sequence[Any] | None = None,
    rank_by: Audit | None = None,
    flags: Sequence[str] = (),
    key: str | None = None,
    **inputs: Any,
) -> Audit:
    """Load a saved audit, or audit predictions.

    Args:
        source: a saved audit (``.json``), a prediction file, a pattern of prediction files, or a run directory that
            holds one of them.
        settings: settings for auditing predictions.
        groups: additional groups for auditing predictions.
        rank_by: audit that ranks the thirds, for auditing predictions.
        flags: command-line flags given that a saved audit cannot follow.
        key: array or column of a prediction file with sample ids; a saved audit keeps the ids it was made with.
        inputs: other arguments of :meth:`Audit.from_file`, for auditing predictions.

    Raises:
        ValueError: if ``source`` cannot be read, or is a saved audit and ``flags`` are given.
    """
    path = Path(source)
    if not path.exists() and find_shards(source) is None:
        raise ValueError(f"{path} does not exist.")
    saved = path if path.suffix.lower() == ".json" else _saved_in(path)
    if saved is None:
        return Audit.from_file(path, groups=groups, rank_by=rank_by, settings=settings, key=key, **inputs)
    if flags:
        raise ValueError(f"{saved} is a saved audit: remove {' and '.join(flags)}, or pass its predictions instead.")
    audit = Audit.load(saved)
    if key is not None and audit.samples.index is None:
        raise ValueError(f"{saved} is a saved audit without sample ids: save it with classgap audit --key {key}.")
    return audit


def read_audits(
    sources: Sequence[Source], *, settings: AuditSettings = ACCURACIES_ONLY, key: str | None = None
) -> list[Audit]:
    """Read several sources; if two have the same name, audits from files are named by their paths."""
    audits = [
        source if isinstance(source, Audit) else read_audit(source, settings=settings, key=key) for source in sources
    ]
    if len({audit.name for audit in audits}) < len(audits):
        pairs = zip(audits, sources, strict=True)
        return [audit if isinstance(path, Audit) else replace(audit, name=str(path)) for audit, path in pairs]
    return audits


def _saved_in(directory: Path) -> Path | None:
    """Return the saved audit of a run directory that has no predictions."""
    if any((directory / name).is_file() for name in RUN_FILES):
        return None
    saved = directory / AUDIT_FILE
    return saved if saved.is_file() else None
