"""Prediction files: ``.npz``, ``.safetensors``, ``.csv``, or a run directory that holds one.

``.npz`` and ``.safetensors`` hold, by name: ``logits`` or ``probabilities`` or ``predictions``; ``targets``; and where
known ``features``, ``head_weight``, ``head_bias``, ``class_names`` (in safetensors: a JSON list in the metadata),
``train_counts``, ``train_predictions`` and ``train_targets``, ``index``. Other arrays are not used; a remark says so.

What CSV files hold is told in :mod:`classgap.audit.io.csv`.
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

from classgap.audit.io.csv import Content, read_csv
from classgap.audit.io.near_names import renaming
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.run_files import file_in_run
from classgap.audit.results import Notice
from classgap.registry import nearest

KINDS = ("logits", "probabilities", "predictions")  # of which a file has one
FIELDS = (
    *("targets", *KINDS, "features", "index"),
    *("train_counts", "train_predictions", "train_targets"),
)
NAMES = (*FIELDS, "head_weight", "head_bias", "class_names")


def read_predictions(path: str | os.PathLike[str]) -> Predictions:
    """Read a prediction file or a run directory.

    Raises:
        ValueError: in one sentence, if the file is missing, damaged, of an unknown kind, or its content does not fit.
    """
    place = Path(path)
    name = place.resolve().name if place.is_dir() else place.stem
    file = file_in_run(place) if place.is_dir() else place
    if place.is_file() and place.stem == "predictions":
        name = place.resolve().parent.name  # a run's file is named like every other run's; the directory tells more
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise ValueError(_unknown_ending(file))
    if not file.is_file():
        raise ValueError(f"{file} does not exist.")
    if file.stat().st_size == 0:
        raise ValueError(f"{file} is empty.")
    try:
        with file.open("rb"):  # zipfile calls a file that may not be read no archive
            pass
        content, notices = reader(file)
        arguments = _arguments(content)
        predictions = Predictions.from_arrays(**arguments, name=name)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror or 'it is damaged'}.") from None
    return replace(predictions, notices=(*predictions.notices, *notices))


def _unknown_ending(file: Path) -> str:
    if file.suffix.lower() == ".json":
        return f"{file} is no prediction file: an audit that was saved as .json is read with Audit.load."
    kinds = f"{', '.join(READERS)} or, for a saved audit, .json"
    return f"{file} must end in {kinds}, or be a run directory; got {file.suffix or 'no ending'}."


def _unused(content: dict[str, Any]) -> tuple[Notice, ...]:
    """Notice about arrays with unknown names, with the names that may have been meant."""
    unknown = sorted(set(content) - set(NAMES))
    if not unknown:
        return ()
    missing = [name for name in NAMES if name not in content and name not in KINDS]
    meant = dict.fromkeys(near for name in unknown if (near := nearest(name, missing)))
    return (Notice("unused-arrays", {"names": tuple(unknown), "suggestions": tuple(meant)}),)


def _arguments(content: dict[str, Any]) -> dict[str, Any]:
    arguments = {name: value for name, value in content.items() if name in FIELDS}
    if "targets" not in content:
        found = ", ".join(sorted(content)) or "nothing"
        raise ValueError(f"targets are missing; found {found}{_renaming(['targets'], content)}.")
    if not any(kind in content for kind in KINDS) and (hint := _renaming(KINDS, content)):
        raise ValueError(f"none of {', '.join(KINDS)} is there; found {', '.join(sorted(content))}{hint}.")
    if "head_bias" in content and "head_weight" not in content:
        raise ValueError("head_bias is there without head_weight: save both, or neither.")
    if "head_weight" in content:
        arguments["head"] = (content["head_weight"], content.get("head_bias"))
    if "class_names" in content:
        arguments["class_names"] = content["class_names"]
    return arguments


def _renaming(wanted: Sequence[str], content: dict[str, Any]) -> str:
    hint = renaming(wanted, sorted(set(content) - set(NAMES)))
    return f": {hint}" if hint else ""


def _read_npz(path: Path) -> Content:
    damaged = "it is not a whole .npz archive of plain arrays: cut off or damaged."
    if not zipfile.is_zipfile(path):  # the list of contents is at the end, so a file that was cut off has none
        raise ValueError(damaged)
    try:
        with np.load(path, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, EOFError, ValueError, OSError, KeyError) as error:
        if "allow_pickle" in str(error):
            raise ValueError("it holds Python objects, which are not loaded for safety; save plain arrays.") from None
        raise ValueError(damaged) from None
    return content, _unused(content)


def _read_safetensors(path: Path) -> Content:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as archive:
            content: dict[str, Any] = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118
            metadata = archive.metadata() or {}
    except SafetensorError:
        raise ValueError("it is not a whole .safetensors file: cut off or damaged.") from None
    if "class_names" in metadata:
        try:
            names = json.loads(metadata["class_names"])
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list):
            raise ValueError("class_names in the metadata must be a JSON list of names.")
        content["class_names"] = names
    # Other metadata are nobody's business here, but a name like class_names is a slip to be told.
    slips = {name: text for name, text in metadata.items() if nearest(name, NAMES) == "class_names"}
    content = slips | content
    return content, _unused(content)


READERS: dict[str, Callable[[Path], Content]] = {
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".csv": read_csv,
}
