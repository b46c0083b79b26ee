"""Prediction files: ``.npz``, ``.safetensors``, ``.csv``, or a run directory that holds one.

``.npz`` and ``.safetensors`` hold, by name: ``logits`` or ``probabilities`` or ``predictions``; ``targets``; and where
known ``features``, ``head_weight``, ``head_bias``, ``class_names`` (in safetensors: a JSON list in the metadata),
``train_counts``, ``train_predictions`` and ``train_targets``, ``index``. Other arrays are not used; a remark says so.

CSV has a header line and a line a sample, in one of two forms:

- ``target`` and ``prediction``, both class names or both class numbers; the classes are those that occur, and further
  columns are passed over;
- ``target`` and one column a class, headed by the class's name, that holds its probability or its logit. ``target`` is
  a class name or, if no name fits, a class number from 0. Scores from 0 to 1 of which every row sums to 1 are
  probabilities; two decimals may be 0.005 a class off. A column that numbers the samples is refused.

A column ``index`` may hold each sample's number in the test set.
"""

from __future__ import annotations

import csv
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from classgap.audit.csv_scores import ScoreColumns
from classgap.audit.predictions import Predictions
from classgap.registry import nearest

IN_A_RUN = ("predictions.safetensors", "predictions.npz", "predictions.csv")
SAVED = "audit.json"  # what a run has of its own audit
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
    file = _file_in_run(place) if place.is_dir() else place
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
        content = reader(file)
        arguments = _arguments(content)
        predictions = Predictions.of(**arguments, name=name)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror or 'it is damaged'}.") from None
    remarks = _unused(content)
    if reader is _read_csv and predictions.logits_NK is not None:
        kind = "probabilities" if "probabilities" in arguments else "logits"
        remarks += (f"{predictions.num_classes} columns were taken as classes, and their scores as {kind}.",)
    return replace(predictions, remarks=(*predictions.remarks, *remarks))


def _unknown_ending(file: Path) -> str:
    if file.suffix.lower() == ".json":
        return f"{file} is no prediction file: an audit that was saved as .json is read with Audit.load."
    kinds = f"{', '.join(READERS)} or, for a saved audit, .json"
    return f"{file} must end in {kinds}, or be a run directory; got {file.suffix or 'no ending'}."


def _unused(content: dict[str, Any]) -> tuple[str, ...]:
    """The remark on arrays of unknown names, with the names they may have been meant for."""
    unknown = sorted(set(content) - set(NAMES))
    if not unknown:
        return ()
    missing = [name for name in NAMES if name not in content and name not in KINDS]
    meant = dict.fromkeys(near for name in unknown if (near := nearest(name, missing)))
    hint = f"; did you mean {', '.join(meant)}?" if meant else "."
    return (f"{', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not used{hint}",)


def _file_in_run(directory: Path) -> Path:
    for name in IN_A_RUN:
        if (directory / name).is_file():
            return directory / name
    if (directory / SAVED).is_file():
        saved = directory / SAVED
        raise ValueError(f"{directory} holds no predictions but an audit: name {saved}, or read it with Audit.load.")
    raise ValueError(f"{directory} holds no predictions: none of {', '.join((*IN_A_RUN, SAVED))} is in it.")


def _arguments(content: dict[str, Any]) -> dict[str, Any]:
    arguments = {name: value for name, value in content.items() if name in FIELDS}
    if "targets" not in content:
        raise ValueError(f"targets are missing; found {', '.join(sorted(content)) or 'nothing'}.")
    if "head_bias" in content and "head_weight" not in content:
        raise ValueError("head_bias is there without head_weight: save both, or neither.")
    if "head_weight" in content:
        arguments["head"] = (content["head_weight"], content.get("head_bias"))
    if "class_names" in content:
        arguments["class_names"] = content["class_names"]
    return arguments


def _read_npz(path: Path) -> dict[str, Any]:
    damaged = "it is not a whole .npz archive of plain arrays: cut off or damaged."
    if not zipfile.is_zipfile(path):  # the list of contents is at the end, so a file that was cut off has none
        raise ValueError(damaged)
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, EOFError, ValueError, OSError, KeyError) as error:
        if "allow_pickle" in str(error):
            raise ValueError("it holds Python objects, which are not loaded for safety; save plain arrays.") from None
        raise ValueError(damaged) from None


def _read_safetensors(path: Path) -> dict[str, Any]:
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
    return slips | content


def _read_csv(path: Path) -> dict[str, Any]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            header = [column.strip() for column in next(rows, [])]
            if "target" not in header:
                raise ValueError(f"the column target is missing; the header has {_short(header)}.")
            if len(set(header)) != len(header):
                twice = next(column for i, column in enumerate(header) if column in header[:i])
                raise ValueError(f"column names, and so class names, must differ; {twice!r} appears more than once.")
            return _labels(header, rows) if "prediction" in header else _scores(header, rows)
    except UnicodeDecodeError:
        raise ValueError("it is not a text file in UTF-8.") from None
    except csv.Error as error:
        raise ValueError(f"it is not well-formed CSV: {error}.") from None


def _labels(header: list[str], rows: Any) -> dict[str, Any]:
    wanted = [name for name in ("target", "prediction", "index") if name in header]
    columns = [header.index(name) for name in wanted]
    entries: list[list[str]] = []
    for row in rows:
        if row:
            _check_width(row, header, rows.line_num)
            entries.append([row[column].strip() for column in columns])
            if "" in entries[-1]:
                raise ValueError(f"line {rows.line_num} has an empty {wanted[entries[-1].index('')]}.")
    if not entries:
        raise ValueError("there are no samples below the header.")
    content: dict[str, Any] = dict(
        zip(wanted, (np.array(column) for column in zip(*entries, strict=True)), strict=True)
    )
    result = {"targets": content["target"], "predictions": content["prediction"]}
    return result | ({"index": _whole(content["index"])} if "index" in content else {})


def _scores(header: list[str], rows: Any) -> dict[str, Any]:
    target, index = header.index("target"), header.index("index") if "index" in header else None
    classes = [i for i in range(len(header)) if i not in (target, index)]
    if not classes:
        raise ValueError("the column prediction is missing, and there is no column for any class either.")
    if "" in header:
        raise ValueError(f"column {header.index('') + 1} has no name: head it with a class, or leave it out.")
    targets, numbers, scores = [], [], ScoreColumns([header[i] for i in classes])
    for row in rows:
        if not row:
            continue
        _check_width(row, header, rows.line_num)
        targets.append(row[target].strip())
        if index is not None:
            numbers.append(row[index].strip())
        try:
            scores.add(np.array([row[i] for i in classes], dtype=np.float64))
        except ValueError:
            raise ValueError(f"line {rows.line_num} must hold a number for each class.") from None
    if not targets:
        raise ValueError("there are no samples below the header.")
    kind, scores_NK = scores.finish(set(targets))
    content = {"targets": np.array(targets), kind: scores_NK, "class_names": scores.names}
    return content | ({"index": _whole(np.array(numbers))} if index is not None else {})


def _check_width(row: list[str], header: list[str], line: int) -> None:
    if len(row) != len(header):
        raise ValueError(f"line {line} has {len(row)} fields, the header {len(header)}.")


def _whole(texts: Any) -> Any:
    try:
        return np.array([int(text) for text in texts])
    except ValueError:
        raise ValueError("the column index must hold whole numbers.") from None


def _short(header: list[str]) -> str:
    return ", ".join(header[:6]) + (" …" if len(header) > 6 else "") if any(header) else "nothing"


READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".csv": _read_csv,
}
