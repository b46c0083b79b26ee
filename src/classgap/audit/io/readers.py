"""Read prediction files (``.npz``, ``.safetensors``, ``.csv``, ``.parquet``, ``.npy``) and run directories.

``.npz`` and ``.safetensors`` files hold ``targets`` and one of ``logits``, ``probabilities`` and ``predictions``; of
``logits`` and ``probabilities`` in one file, ``logits`` are read.
Optional arrays: ``features``, ``head_weight``, ``head_bias``, ``class_names`` (a JSON list in the metadata of a
safetensors file), ``train_counts``, ``train_predictions``, ``train_targets``, ``train_features``, ``index``, and
``valid_labels`` with ``valid_labels_offsets``: the valid labels of all samples in one array, and N + 1 positions in it.
Those of sample i are ``valid_labels[valid_labels_offsets[i]:valid_labels_offsets[i + 1]]``. ``filenames`` and ``texts``
serve thumbnails (:mod:`classgap.audit.io.sample_columns`). Other arrays are ignored with a notice. A directory may hold
the same arrays as ``.npy`` files (and ``class_names.json``), and a single ``.npy`` file scores or predicted labels. The
losses in ``metrics.jsonl`` of a run directory are read too.

:mod:`classgap.audit.io.csv` and :mod:`classgap.audit.io.parquet` describe the columns of these files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from classgap._array_files import map_directory, map_npy, map_npz
from classgap._regular_files import check_regular_file, to_path
from classgap._tensor_files import has_valid_checksum
from classgap._text_checksums import check_text
from classgap.audit._types import Floats
from classgap.audit.io.companions import TARGETS_ADVICE, add_companions, read_companion
from classgap.audit.io.csv import Content, read_csv
from classgap.audit.io.fields import FIELDS, KINDS, NAMES, PREDICTED, SAMPLE_COLUMNS, suggest_rename
from classgap.audit.io.label_sets import RaggedLabels, sets_from
from classgap.audit.io.labels import parse_names
from classgap.audit.io.parquet import read_parquet
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.run_settings import describe_source
from classgap.audit.io.shards import find_shards, join_shards
from classgap.audit.io.wanted import Wanted
from classgap.audit.results import Notice
from classgap.audit.serialization import read_json
from classgap.registry import nearest

RUN_FILES = ("predictions.safetensors", "predictions.npz", "predictions.csv")  # in order of preference
AUDIT_FILE = "audit.json"
METRICS_FILE = "metrics.jsonl"


def read_predictions(
    path: str | os.PathLike[str],
    *,
    targets: str | os.PathLike[str] | None = None,
    features: str | os.PathLike[str] | None = None,
    train_counts: str | os.PathLike[str] | None = None,
    valid_labels: Any = None,
    slices: Sequence[str] = (),
    key: str | None = None,
) -> Predictions:
    """Read a prediction file, the predictions of a run directory, or all files that match a pattern.

    Large arrays are mapped into memory where the format allows, and not read until they are used.

    Args:
        path: file, directory, or a pattern such as ``preds-*.npz``; the samples of all matching files are joined.
        targets: file with the true labels, if the predictions have none.
        features: ``.npy`` file with the features.
        train_counts: file with the number of training samples of each class.
        valid_labels: sets of valid labels instead of those of the file: as for ``Predictions.from_arrays``, or the path
            of a JSON file.
        slices: names of arrays or columns of the file that divide the samples into slices.
        key: array or column with sample ids, strings or integers, in place of ``index``.

    Raises:
        ValueError: if a file is missing, unreadable, damaged, of an unknown type, or has invalid content. The
            message is one sentence that starts with the path.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "test.csv"
    ...     _ = file.write_text("target,prediction\\ncat,cat\\ndog,cat\\n")
    ...     read_predictions(file).class_names
    ('cat', 'dog')
    """
    source = to_path("path", path, "pass a prediction file or a run directory; for arrays, use from_predictions")
    shards = find_shards(path)
    given = {"targets": targets, "features": features, "train_counts": train_counts}
    companions = {name: read_companion(name, file) for name, file in given.items() if file is not None}
    name = source.resolve().name if source.is_dir() else source.stem
    file = find_predictions(source) if source.is_dir() and not _holds_arrays(source) else source
    if source.is_file() and source.stem == "predictions":
        name = source.resolve().parent.name  # every run's file has this name; its directory is more telling
    sets = None if valid_labels is None else sets_from(valid_labels)
    wanted = Wanted(tuple(slices), key)
    contents = [_read_content(each, wanted) for each in shards or [file]]
    try:
        content = (
            contents[0][0]
            if shards is None
            else join_shards(shards, [content for content, _ in contents], wanted.names)
        )
        arguments = _to_arguments(add_companions(content, companions), wanted)
        if sets is not None:
            arguments["valid_labels"] = sets
        predictions = Predictions.from_arrays(**arguments, name=name)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror or 'it is damaged'}.") from None
    losses_E, rates_E = None, None
    if file.stem == "predictions":  # of a run
        losses_E, rates_E = _read_losses(file.with_name(METRICS_FILE))
    # Fixes read the file alone, fit on some samples of each class and judge by others.
    support_K = np.bincount(predictions.targets_N)
    fixable = predictions.logits_NK is not None and targets is None and bool((support_K != 1).all())
    return replace(
        predictions,
        train_losses_E=losses_E,
        learning_rates_E=rates_E,
        notices=(*predictions.notices, *_distinct(notice for _, found in contents for notice in found)),
        source=describe_source(file, has_scores=fixable, num_seen=int((support_K > 0).sum()), key=key),
    )


def _read_content(file: Path, wanted: Wanted) -> Content:
    """Read the arrays of one file, or of a directory of ``.npy`` files."""
    reader = _read_directory if file.is_dir() else READERS.get(file.suffix.lower())
    if not file.exists():
        raise ValueError(f"{file} does not exist.")
    if reader is None:
        raise ValueError(_unknown_suffix(file))
    check_regular_file(file)
    if file.is_file() and file.stat().st_size == 0:
        raise ValueError(f"{file} is empty.")
    try:
        if file.is_file():
            with file.open("rb"):  # zipfile reports an unreadable file as "not a zip file"
                pass
        content, notices = reader(file, wanted)
        wanted.check(content)
        return content, notices
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror or 'it is damaged'}.") from None


def _holds_arrays(directory: Path) -> bool:
    return any(directory.glob("*.npy")) and not any((directory / name).is_file() for name in (*RUN_FILES, AUDIT_FILE))


def _distinct(notices: Iterable[Notice]) -> list[Notice]:
    """Notices without repetitions; shards usually have the same."""
    found: list[Notice] = []
    for notice in notices:
        if notice not in found:
            found.append(notice)
    return found


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
        check_regular_file(run / METRICS_FILE)
        lines = (run / METRICS_FILE).read_text(encoding="utf-8").splitlines()
        return not json.loads(lines[-1]).get("final")
    except (
        OSError,
        ValueError,
        IndexError,
        AttributeError,
        RecursionError,
    ):  # no epoch has ended, or the last line is incomplete
        return True


def _read_losses(path: Path) -> tuple[Floats | None, Floats | None]:
    """Read training loss and learning rate of each epoch of the last stage; ``None`` if the file does not have them."""
    try:
        check_text(path)
        lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, RecursionError):  # missing, damaged, or written by another program
        return None, None
    epochs = [line for line in lines if isinstance(line, dict) and "epoch" in line]
    last = [line for line in epochs if line.get("stage") == epochs[-1].get("stage")]
    try:
        rows_E2 = np.array([(line["loss"], line["lr"]) for line in last], dtype=np.float64)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None, None
    if not len(rows_E2) or not np.isfinite(rows_E2).all():
        return None, None
    return rows_E2[:, 0], rows_E2[:, 1]


def _read_failure(path: Path) -> str:
    try:
        record = read_json(path)
        return f"the loss was not finite at {record['where']}: {', '.join(record['not_finite'])}."
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # damaged, or written by another program
        return f"see {path}."


def _unknown_suffix(file: Path) -> str:
    if file.suffix.lower() == ".json":
        return (
            f"{file} is not a prediction file. A saved audit has no scores: pass the predictions that were audited "
            "(in Python, Audit.load reads the audit)."
        )
    expected = f"{', '.join(READERS)} or .json (a saved audit)"
    return f"{file} must be a run directory or end in {expected}, got {file.suffix or 'no file extension'}."


def _unused(content: dict[str, Any], wanted: Wanted) -> tuple[Notice, ...]:
    """Notice about arrays with unknown names, with the names that may have been meant."""
    unknown = sorted(set(content) - {*NAMES, *PREDICTED, *wanted.names})
    if not unknown:
        return ()
    missing = [name for name in NAMES if name not in content and name not in KINDS]
    meant = dict.fromkeys(near for name in unknown if (near := nearest(name, missing)))
    return (Notice("unused-arrays", {"names": tuple(unknown), "suggestions": tuple(meant)}),)


def _to_arguments(content: dict[str, Any], wanted: Wanted) -> dict[str, Any]:
    """Convert a file's arrays to the keyword arguments of ``Predictions.from_arrays``."""
    arguments = {name: value for name, value in content.items() if name in FIELDS}
    if "logits" in arguments:  # classgap predict writes both; probabilities are their softmax
        arguments.pop("probabilities", None)
    found = ", ".join(sorted(content)) or "no arrays"
    if "targets" not in content:
        lone = f": give them in a file of their own, {TARGETS_ADVICE}" if len(content) == 1 else ""
        raise ValueError(f"targets is missing, found {found}{_rename_hint(['targets'], content) or lone}.")
    if not any(kind in content for kind in KINDS) and (hint := _rename_hint(KINDS, content)):
        raise ValueError(f"one of {', '.join(KINDS)} is required, found {found}{hint}.")
    if "head_bias" in content and "head_weight" not in content:
        raise ValueError("head_bias requires head_weight: save both or neither.")
    if "head_weight" in content:
        arguments["head"] = (content["head_weight"], content.get("head_bias"))
    if "class_names" in content:
        arguments["class_names"] = content["class_names"]
    if "valid_labels" in content or "valid_labels_offsets" in content:
        arguments["valid_labels"] = _ragged(content)
    if wanted.slices:
        arguments["slices"] = {name: content[name] for name in wanted.slices}
    if wanted.key is not None:
        arguments["index"] = content[wanted.key]
    return arguments


def _ragged(content: dict[str, Any]) -> Any:
    """Return the sets of a file; those of a CSV file are lists already."""
    if isinstance(content.get("valid_labels"), list):
        return content["valid_labels"]
    for name in ("valid_labels", "valid_labels_offsets"):
        if name not in content:
            raise ValueError(f"{name} is missing: save valid_labels and valid_labels_offsets, or neither.")
    return RaggedLabels(content["valid_labels"], content["valid_labels_offsets"])


def _rename_hint(expected: Sequence[str], content: dict[str, Any]) -> str:
    hint = suggest_rename(expected, sorted(set(content) - set(NAMES)))
    return f": {hint}" if hint else ""


def _read_npy(path: Path, wanted: Wanted) -> Content:
    """Read scores (N, K) or predicted labels (N,); the targets are in another file."""
    try:
        array = map_npy(path)
    except ValueError as error:
        raise ValueError(f"not a valid .npy file: {error}.") from None
    return {"logits" if array.ndim == 2 else "predictions": array}, ()


def _read_directory(path: Path, wanted: Wanted) -> Content:
    content: dict[str, Any] = dict(map_directory(path))
    if (path / "class_names.json").is_file():
        content["class_names"] = read_companion("class_names", path / "class_names.json")
    return content, _unused(content, wanted)


def _read_npz(path: Path, wanted: Wanted) -> Content:
    content: dict[str, Any] = dict(map_npz(path, {*NAMES, "filename", *wanted.names}.__contains__))
    return content, _unused(content, wanted)


def _read_safetensors(path: Path, wanted: Wanted) -> Content:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as archive:
            content: dict[str, Any] = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118
            metadata = archive.metadata() or {}
    except SafetensorError:
        raise ValueError("not a valid .safetensors file; the file is truncated or damaged.") from None
    if not has_valid_checksum(content, metadata):
        raise ValueError("the contents do not match the checksum, so the file is damaged: restore it or train again.")
    if "class_names" in metadata:
        content["class_names"] = parse_names(metadata["class_names"])
    if wanted.key is not None and wanted.key in SAMPLE_COLUMNS.values() and wanted.key in metadata:
        try:
            content[wanted.key] = [str(text) for text in json.loads(metadata[wanted.key])]
        except (TypeError, ValueError, RecursionError):
            raise ValueError(f"{wanted.key} in the metadata must be a JSON list of strings.") from None
    # Other metadata may serve other programs; only a misspelled class_names is worth reporting.
    typos = {name: text for name, text in metadata.items() if nearest(name, NAMES) == "class_names"}
    content = typos | content
    return content, _unused(content, wanted)


READERS: dict[str, Callable[[Path, Wanted], Content]] = {
    ".npy": _read_npy,
    ".parquet": read_parquet,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".csv": read_csv,
}
