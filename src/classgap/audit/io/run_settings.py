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


def describe_source(file: Path, *, has_scores: bool, num_seen: int, key: str | None = None) -> AuditSource:
    """Describe a prediction file, and the run directory that holds it, if any.

    Args:
        file: prediction file.
        has_scores: see :class:`AuditSource`.
        num_seen: number of classes with test samples.
        key: array or column with the sample ids.
    """
    settings = _run_settings(file.parent)
    if settings is None:
        return AuditSource(str(file), has_scores, key=key)
    return AuditSource(
        str(file),
        has_scores,
        run=str(file.parent),
        epochs=_positive(settings.get("epochs")),
        max_steps=_positive(settings.get("max_steps")),
        has_validation=_has_validation(file.parent / VALIDATION, settings, num_seen),
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


def _has_validation(file: Path, settings: Mapping[str, Any], num_seen: int) -> bool:
    """Return whether a run held out samples that a fix can be fitted on: at least two of each class in the test set."""
    if not file.is_file():
        return bool(settings.get("val_fraction"))
    import numpy as np
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as tensors:
            _, counts = np.unique(tensors.get_tensor("targets"), return_counts=True)
    except (OSError, SafetensorError, ValueError):  # damaged, or written by another program
        return False
    return len(counts) >= num_seen > 0 and int(counts.min()) >= 2


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
