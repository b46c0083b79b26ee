"""Inputs of ``classgap predict``: image and text files and folders, feature files, tables, and datasets by name."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from classgap._csv_cells import is_number
from classgap._regular_files import check_regular_file
from classgap.audit.io.labels import encode
from classgap.data import load
from classgap.data.dataset import Dataset
from classgap.data.sources.features import read_split_arrays
from classgap.data.sources.folder import find_images
from classgap.data.sources.huggingface import is_saved_dataset
from classgap.data.sources.images import is_image_name
from classgap.data.sources.table import read_labels, read_table
from classgap.data.sources.text_folder import find_texts, is_text_name, read_text
from classgap.data.transforms.table import TableEncoder
from classgap.engine.run import split_training
from classgap.inference.loaded_run import LoadedRun
from classgap.inference.samples import ImageItems, InputSamples

ARRAYS = (".npz", ".safetensors", ".npy")
TABLES = (".csv", ".parquet")
SPLITS = ("test", "val", "train")
TARGET = "target"  # column of a CSV file


def read_inputs(run: LoadedRun, inputs: Sequence[str], split: str = "test") -> InputSamples:
    """Read the inputs of a prediction.

    Args:
        run: The model.
        inputs: Image or text files and folders; ``.npz``, ``.safetensors``, ``.npy``, ``.csv`` or ``.parquet`` files;
            or the name of a dataset. Empty for the data of the run.
        split: Split of a dataset or of a file with splits: "test", "val" or "train".

    Raises:
        ValueError: If an input does not exist, cannot be read or does not fit the model.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}; got {split!r}.")
    paths = [Path(each) for each in inputs]
    missing = [text for text, path in zip(inputs, paths, strict=True) if not path.exists()]
    if not inputs or (len(inputs) == 1 and (missing or is_saved_dataset(paths[0]))):
        return _read_dataset(run, inputs[0] if inputs else run.config.data, split)
    if missing:
        raise ValueError(f"{missing[0]} does not exist.")
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError(f"all inputs must be images or texts, or all files of numbers; got {', '.join(inputs[:5])}.")
    if kinds == {"files"}:
        return _read_files(run, paths)
    return _join([_read_numbers(run, path, split) for path in paths])


def _kind(path: Path) -> str:
    if path.is_dir() or is_image_name(path.name) or is_text_name(path.name):
        return "files"
    if path.suffix.lower() in (*ARRAYS, *TABLES):
        return "numbers"
    raise ValueError(
        f"{path} must be an image, a text (.txt), a folder of either, or a file that ends in "
        f"{', '.join((*ARRAYS, *TABLES))}."
    )


def _read_files(run: LoadedRun, paths: Sequence[Path]) -> InputSamples:
    """Read images or texts, each a file; its class is named by a folder."""
    column = None if run.preprocessing.table is None else run.preprocessing.table.text_column
    if column is None and run.preprocessing.resize is None:
        raise ValueError(
            f"{run.directory.path} was trained on inputs of shape {run.preprocessing.shape}, not on images or text "
            f"files; got {paths[0]}."
        )
    find, kind = (find_images, "images") if column is None else (find_texts, "text files")
    wrong = next((path for path in paths if path.is_file() and is_text_name(path.name) != bool(column)), None)
    if wrong is not None:
        raise ValueError(f"{run.directory.path} was trained on {kind}; got {wrong}.")
    numbers = {name: number for number, name in enumerate(run.class_names)}
    names: list[str] = []
    targets: list[int | None] = []
    for path in paths:
        found = find(path) if path.is_dir() else [str(path)]
        if not found:
            raise ValueError(f"{path} contains no {kind}.")
        classes = {file: _class_of(Path(file), path, numbers) for file in found}
        pairs = sorted(classes.items(), key=lambda pair: (pair[1] or 0, pair[0]))  # by class, as in training
        names += [file for file, _ in pairs]
        targets += [target for _, target in pairs]
    known = [target for target in targets if target is not None]
    notes = tuple(
        f"{path} has a folder train: its {kind} are predicted too. For the test split alone, pass {path / 'test'}."
        for path in paths
        if (path / "train").is_dir() and (path / "test").is_dir()
    )
    if 0 < len(known) < len(targets):
        notes += (
            f"{len(targets) - len(known)} of {len(targets)} {kind} are in no folder named after a class: no targets "
            "are written.",
        )
    if column is None:
        samples = InputSamples(ImageItems(tuple(names), run.preprocessing))
    else:
        samples = InputSamples.from_any([read_text(name) for name in names], run.preprocessing)
    return replace(
        samples,
        targets=torch.tensor(known) if len(known) == len(targets) else None,
        filenames=tuple(names),
        notes=notes,
    )


def _class_of(file: Path, given: Path, numbers: Mapping[str, int]) -> int | None:
    """Return the class that the folders of an image name: the first one below the given folder, or else that folder."""
    inside = file.relative_to(given).parts[:-1] if given.is_dir() else ()
    own = given.resolve() if given.is_dir() else given.resolve().parent
    return next((numbers[part] for part in (*inside, own.name) if part in numbers), None)


def _read_numbers(run: LoadedRun, path: Path, split: str) -> InputSamples:
    try:
        if run.preprocessing.table is not None and path.suffix.lower() in TABLES:
            values, labels, names = *_read_table(path, run.preprocessing.table), None
        elif path.suffix.lower() == ".parquet":
            raise ValueError(f"{run.directory.path} was not trained on a table.")
        elif path.suffix.lower() == ".csv":
            values, labels, names = *_read_csv(path), None
        else:
            values, labels, names = read_split_arrays(path, split)
        if names is not None and names != run.class_names:
            raise ValueError(f"its classes {', '.join(names[:3])}, … do not match those of {run.directory.path}.")
        samples = InputSamples.from_array(values, run.preprocessing)
        targets = None if labels is None else torch.from_numpy(encode("targets", labels, run.class_names))
        if targets is not None and len(targets) != len(samples):
            raise ValueError(f"it has {len(samples)} inputs and {len(targets)} targets.")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return replace(samples, targets=targets, index=torch.arange(len(samples)))


def _read_table(path: Path, encoder: TableEncoder) -> tuple[np.ndarray, np.ndarray | None]:
    table = read_table(path)
    labels = read_labels(table, encoder.target, path) if encoder.target in table else None
    return encoder.encode(table), None if labels is None else np.array(labels)


def _read_csv(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Read a header, one row of numbers per sample, and the optional column ``target``."""
    check_regular_file(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            header = [column.strip() for column in next(rows, [])]
            places = [place for place, name in enumerate(header) if name != TARGET]
            if header and all(map(is_number, header)):
                raise ValueError("the first row must be a header with column names, got numbers.")
            values: list[np.ndarray] = []
            targets: list[str] = []
            for row in rows:
                if not row:
                    continue
                if len(row) != len(header):
                    raise ValueError(f"line {rows.line_num} has {len(row)} fields, but the header has {len(header)}.")
                values.append(_numbers([row[place] for place in places], header, places, rows.line_num))
                if TARGET in header:
                    targets.append(row[header.index(TARGET)].strip())
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise ValueError(f"cannot be read as CSV ({error}).") from None
    if not values:
        raise ValueError("the file has no samples.")
    return np.stack(values), np.array(targets) if targets else None


def _numbers(cells: Sequence[str], header: Sequence[str], places: Sequence[int], line: int) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # infinities are reported
            return np.array(cells, dtype=np.float32)
    except ValueError:
        bad = next(place for place, cell in zip(places, cells, strict=True) if not is_number(cell))
        cell = cells[places.index(bad)]
        raise ValueError(f"line {line}: column {header[bad]!r} must be a number, got {cell[:40]!r}.") from None


def _join(parts: Sequence[InputSamples]) -> InputSamples:
    if len(parts) == 1:
        return parts[0]
    arrays = [part.inputs for part in parts]
    if not all(isinstance(each, torch.Tensor) for each in arrays):
        raise ValueError("image arrays that do not have the model's input size must be passed one file at a time.")
    targets = [part.targets for part in parts if part.targets is not None]
    joined: Any = torch.cat([each for each in arrays if isinstance(each, torch.Tensor)])
    return InputSamples(joined, torch.cat(targets) if len(targets) == len(parts) else None)


def _read_dataset(run: LoadedRun, text: str, split: str) -> InputSamples:
    try:
        data = load(text)
    except (ValueError, OSError) as error:
        if text == run.config.data:
            raise ValueError(
                f"the data of {run.directory.path}, {text}, cannot be loaded: {error} If its path has moved or is "
                "relative to another directory, name the inputs: classgap predict RUN INPUT."
            ) from None
        raise ValueError(f"{text} is neither an existing path nor a dataset: {error}") from None
    _check_dataset(run, data)
    own = text == run.config.data
    train, validation = split_training(run.config, data) if own else (data.train, data.validation)
    samples = {"train": train, "val": validation, "test": data.test}[split]
    if samples is None:
        raise ValueError(f"{text} has no validation samples{': the run held out none' if own else ''}.")
    return InputSamples(samples.inputs, samples.targets, samples.index, notes=data.notes)


def _check_dataset(run: LoadedRun, data: Dataset) -> None:
    if data.shape != run.preprocessing.stored_shape:
        raise ValueError(
            f"inputs of {data.name} have shape {data.shape}, but {run.directory.path} needs "
            f"{run.preprocessing.stored_shape}."
        )
    if data.class_names != run.class_names:
        raise ValueError(
            f"the classes of {data.name} ({', '.join(data.class_names[:3])}, …) do not match those of "
            f"{run.directory.path} ({', '.join(run.class_names[:3])}, …)."
        )
