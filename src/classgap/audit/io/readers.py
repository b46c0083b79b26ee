"""Read prediction files (``.npz``, ``.safetensors``, ``.csv``) and run directories that contain one.

``.npz`` and ``.safetensors`` files hold ``targets`` and one of ``logits``, ``probabilities`` and ``predictions``; of
``logits`` and ``probabilities`` in one file, ``logits`` are read.
Optional arrays: ``features``, ``head_weight``, ``head_bias``, ``class_names`` (a JSON list in the metadata of a
safetensors file), ``train_counts``, ``train_predictions``, ``train_targets``, ``train_features`` and ``index``. Other
arrays are ignored with a notice. The losses in ``metrics.jsonl`` of a run directory are read too.

:mod:`classgap.audit.io.csv` describes the CSV layouts.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from classgap.audit._types import Floats
from classgap.audit.io.csv import Content, read_csv
from classgap.audit.io.fields import FIELDS, KINDS, NAMES, PREDICTED, suggest_rename
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.run_settings import describe_source
from classgap.audit.results import Notice
from classgap.registry import nearest

RUN_FILES = ("predictions.safetensors", "predictions.npz", "predictions.csv")  # in order of preference
AUDIT_FILE = "audit.json"
METRICS_FILE = "metrics.jsonl"


def read_predictions(path: str | os.PathLike[str]) -> Predictions:
    """Read a prediction file, or the predictions of a run directory.

    Raises:
        ValueError: if the file is missing, unreadable, damaged, of an unknown type, or has invalid content. The
            message is one sentence that starts with the path.
    """
    source = Path(path)
    name = source.resolve().name if source.is_dir() else source.stem
    file = find_predictions(source) if source.is_dir() else source
    if source.is_file() and source.stem == "predictions":
        name = source.resolve().parent.name  # every run's file has this name; its directory is more telling
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise ValueError(_unknown_suffix(file))
    if not file.is_file():
        raise ValueError(f"{file} does not exist.")
    if file.stat().st_size == 0:
        raise ValueError(f"{file} is empty.")
    try:
        with file.open("rb"):  # zipfile reports an unreadable file as "not a zip file"
            pass
        content, notices = reader(file)
        arguments = _to_arguments(content)
        predictions = Predictions.from_arrays(**arguments, name=name)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror or 'it is damaged'}.") from None
    losses_E, rates_E = None, None
    if file.stem == "predictions":  # of a run
        losses_E, rates_E = _read_losses(file.with_name(METRICS_FILE))
    return replace(
        predictions,
        train_losses_E=losses_E,
        learning_rates_E=rates_E,
        notices=(*predictions.notices, *notices),
        source=describe_source(file, has_scores=predictions.logits_NK is not None),
    )


def find_predictions(run: Path) -> Path:
    """Return the prediction file of a run directory.

    Raises:
        ValueError: if the directory has no predictions, with the reason where its files show one.
    """
    for name in RUN_FILES:
        if (run / name).is_file():
            return run / name
    if (run / AUDIT_FILE).is_file():
        raise ValueError(f"{run} has no predictions, only an audit: pass {run / AUDIT_FILE} or use Audit.load.")
    if (run / "failure.json").is_file():
        raise ValueError(f"{run} has no predictions because its run failed: {_read_failure(run / 'failure.json')}")
    if _is_unfinished(run):
        raise ValueError(
            f"{run} has no predictions yet because its run is not finished: wait for it, or resume it by running the "
            "same train command."
        )
    raise ValueError(f"{run} has no predictions: expected one of {', '.join((*RUN_FILES, AUDIT_FILE))}.")


def _is_unfinished(run: Path) -> bool:
    """Return whether ``run`` holds a training run whose last line of metrics is not the final one."""
    if not ((run / "config.yaml").is_file() and (run / "checkpoints").is_dir()):
        return False
    try:
        lines = (run / METRICS_FILE).read_text(encoding="utf-8").splitlines()
        return not json.loads(lines[-1]).get("final")
    except (OSError, ValueError, IndexError, AttributeError):  # no epoch has ended, or the last line is incomplete
        return True


def _read_losses(path: Path) -> tuple[Floats | None, Floats | None]:
    """Read training loss and learning rate of each epoch of the last stage; ``None`` if the file does not have them."""
    try:
        lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, RecursionError):  # missing, damaged, or written by another program
        return None, None
    epochs = [line for line in lines if isinstance(line, dict) and "epoch" in line]
    last = [line for line in epochs if line.get("stage") == epochs[-1].get("stage")]
    try:
        rows_E2 = np.array([(line["loss"], line["lr"]) for line in last], dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        return None, None
    if not len(rows_E2) or not np.isfinite(rows_E2).all():
        return None, None
    return rows_E2[:, 0], rows_E2[:, 1]


def _read_failure(path: Path) -> str:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return f"the loss was not finite at {record['where']}: {', '.join(record['not_finite'])}."
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # damaged, or written by another program
        return f"see {path}."


def _unknown_suffix(file: Path) -> str:
    if file.suffix.lower() == ".json":
        return f"{file} is not a prediction file: load a saved audit with Audit.load."
    expected = f"{', '.join(READERS)} or .json (a saved audit)"
    return f"{file} must be a run directory or end in {expected}, got {file.suffix or 'no file extension'}."


def _unused(content: dict[str, Any]) -> tuple[Notice, ...]:
    """Notice about arrays with unknown names, with the names that may have been meant."""
    unknown = sorted(set(content) - {*NAMES, *PREDICTED})
    if not unknown:
        return ()
    missing = [name for name in NAMES if name not in content and name not in KINDS]
    meant = dict.fromkeys(near for name in unknown if (near := nearest(name, missing)))
    return (Notice("unused-arrays", {"names": tuple(unknown), "suggestions": tuple(meant)}),)


def _to_arguments(content: dict[str, Any]) -> dict[str, Any]:
    """Convert a file's arrays to the keyword arguments of ``Predictions.from_arrays``."""
    arguments = {name: value for name, value in content.items() if name in FIELDS}
    if "logits" in arguments:  # classgap predict writes both; probabilities are their softmax
        arguments.pop("probabilities", None)
    found = ", ".join(sorted(content)) or "no arrays"
    if "targets" not in content:
        raise ValueError(f"targets is missing, found {found}{_rename_hint(['targets'], content)}.")
    if not any(kind in content for kind in KINDS) and (hint := _rename_hint(KINDS, content)):
        raise ValueError(f"one of {', '.join(KINDS)} is required, found {found}{hint}.")
    if "head_bias" in content and "head_weight" not in content:
        raise ValueError("head_bias requires head_weight: save both or neither.")
    if "head_weight" in content:
        arguments["head"] = (content["head_weight"], content.get("head_bias"))
    if "class_names" in content:
        arguments["class_names"] = content["class_names"]
    return arguments


def _rename_hint(expected: Sequence[str], content: dict[str, Any]) -> str:
    hint = suggest_rename(expected, sorted(set(content) - set(NAMES)))
    return f": {hint}" if hint else ""


def _read_npz(path: Path) -> Content:
    damaged = "not a valid .npz archive of arrays; the file is truncated or damaged."
    if not zipfile.is_zipfile(path):
        raise ValueError(damaged)
    try:
        with np.load(path, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, EOFError, ValueError, OSError, KeyError) as error:
        if "allow_pickle" in str(error):
            raise ValueError("the archive contains pickled objects, which are unsafe to load: save arrays.") from None
        raise ValueError(damaged) from None
    return content, _unused(content)


def _read_safetensors(path: Path) -> Content:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as archive:
            content: dict[str, Any] = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118
            metadata = archive.metadata() or {}
    except SafetensorError:
        raise ValueError("not a valid .safetensors file; the file is truncated or damaged.") from None
    if "class_names" in metadata:
        try:
            names = json.loads(metadata["class_names"])
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list):
            raise ValueError("class_names in the metadata must be a JSON list of strings.")
        content["class_names"] = names
    # Other metadata may serve other programs; only a misspelled class_names is worth reporting.
    typos = {name: text for name, text in metadata.items() if nearest(name, NAMES) == "class_names"}
    content = typos | content
    return content, _unused(content)


READERS: dict[str, Callable[[Path], Content]] = {
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".csv": read_csv,
}
