"""The run that a prediction file belongs to, with the settings that advice needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from classgap._text_checksums import check_text
from classgap._yaml_files import read_yaml
from classgap.audit.results import AuditSource

SETTINGS = "config.yaml"
VALIDATION = "val_predictions.safetensors"


def describe_source(file: Path, *, has_scores: bool, key: str | None = None) -> AuditSource:
    """Describe a prediction file, and the run directory that holds it, if any."""
    settings = _run_settings(file.parent)
    if settings is None:
        return AuditSource(str(file), has_scores, key=key)
    return AuditSource(
        str(file),
        has_scores,
        run=str(file.parent),
        epochs=_positive(settings.get("epochs")),
        steps=_positive(settings.get("steps")),
        has_validation=bool(settings.get("val_fraction")) or (file.parent / VALIDATION).is_file(),
        key=key,
    )


def _run_settings(directory: Path) -> Mapping[str, Any] | None:
    """Return the settings of a run, or ``None``: many projects have a ``config.yaml`` of their own."""
    if not ((directory / SETTINGS).is_file() and (directory / "metrics.jsonl").is_file()):
        return None
    try:
        check_text(directory / SETTINGS)
        settings, _ = read_yaml(directory / SETTINGS)
    except ValueError:
        return None
    return settings if isinstance(settings, Mapping) and {"data", "method"} <= settings.keys() else None


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
