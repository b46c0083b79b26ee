"""Tables with numeric and categorical columns, in CSV or Parquet files."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from classgap._regular_files import check_regular_file
from classgap.data.dataset import Dataset, Split
from classgap.data.splits import hold_out
from classgap.data.transforms.table import Table, TableEncoder, is_numeric, to_numbers, to_text
from classgap.data.transforms.text import DEFAULT_ENCODER, TextColumn

TEST_FRACTION = 0.2  # of a drawn test split


def load_table(
    files: str,
    *,
    target: str = "target",
    drop: str = "",
    categorical: str = "",
    text: str = "",
    encoder: str = DEFAULT_ENCODER,
    test_fraction: float | None = None,
    data_seed: int = 0,
) -> Dataset:
    """Load a table with one row per sample: ``TRAIN,TEST``, or one file from which a test split is drawn.

    A column is numeric if all its cells are numbers or missing; missing numbers become the median, and columns are
    standardized. Other columns are one-hot encoded, with a category for missing cells. The training rows determine
    medians, scales and categories; ``preprocessing.json`` of a run has them. Columns without a name are ignored.

    Args:
        files: Training file and test file, separated by a comma, or one file. They end in ``.csv`` or ``.parquet``.
        target: Column with the class labels.
        drop: Columns to ignore, separated by commas.
        categorical: Numeric columns to treat as categories, separated by commas.
        text: Text columns to encode with a sentence encoder, separated by commas.
        encoder: Sentence encoder: the folder of a ``transformers`` model, used with mean pooling, or a folder or name
            that ``sentence-transformers`` loads. It is not trained.
        test_fraction: Fraction of each class to hold out as the test split if there is none, 0.2 by default.
        data_seed: Random seed of the held-out test split.
    """
    paths = [Path(os.path.expanduser(part)) for part in files.split(",")]
    if len(paths) > 2:
        raise ValueError(f"a table has one file, or two separated by a comma, got {files!r}.")
    if len(paths) == 2 and test_fraction is not None:
        raise ValueError(f"{files} has a test file; remove test_fraction={test_fraction}.")
    parts = [(str(path), read_table(path)) for path in paths]
    _check_columns({"drop": drop, "categorical": categorical, "text": text}, parts[0][1], paths[0])
    return make_table_dataset(
        files,
        parts,
        target=target,
        drop=split_names(drop),
        categorical=split_names(categorical),
        texts=[TextColumn.from_encoder(name, encoder) for name in split_names(text)],
        test_fraction=test_fraction,
        data_seed=data_seed,
    )


def make_table_dataset(
    name: str,
    parts: Sequence[tuple[str, Table]],
    *,
    target: str,
    class_names: tuple[str, ...] | None = None,
    drop: Collection[str] = (),
    categorical: Collection[str] = (),
    texts: Sequence[TextColumn] = (),
    test_fraction: float | None = None,
    data_seed: int = 0,
) -> Dataset:
    """Encode tables as a dataset.

    Args:
        name: Name of the dataset.
        parts: Name and columns of the training rows, and of the test and validation rows if there are any.
        target: Name of the column of classes.
        class_names: One name per class; by default the classes of the training rows.
        drop: Columns to leave out.
        categorical: Columns whose numbers are categories.
        texts: Columns of texts, with their encoders.
        test_fraction: Fraction of each class in a drawn test split.
        data_seed: Random seed of a drawn test split.
    """
    names, targets = number_classes(
        [(source, read_labels(table, target, source)) for source, table in parts], class_names
    )
    used = {name: cells for name, cells in parts[0][1].items() if name and name != target and name not in drop}
    notes = tuple(
        f"{parts[0][0]}: column {column!r} numbers the rows and is used as an input; ignore it with drop={column}."
        for column, cells in used.items()
        if _numbers_rows(cells) and column not in categorical
    )
    train_rows: Tensor | None = None
    if len(parts) == 1:
        numbered = Split.from_arrays(torch.arange(len(targets[0]))[:, None], targets[0])
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        train, test = hold_out(numbered, fraction, data_seed, len(names))
        train_rows = train.index
        notes += (f"{name} has no test split: {len(test)} rows were drawn for testing, stratified by class.",)
        used = {column: [cells[row] for row in train_rows.tolist()] for column, cells in used.items()}
    try:
        encoder = TableEncoder.fit(used, target=target, categorical=categorical, texts=texts)
    except ValueError as error:
        raise ValueError(f"{parts[0][0]}: {error}") from None
    splits = [
        Split.from_arrays(torch.from_numpy(_encode_table(encoder, table, source)), each)
        for (source, table), each in zip(parts, targets, strict=True)
    ]
    if train_rows is not None:
        splits = [splits[0].subset(train_rows), splits[0].subset(test.index)]
    validation = splits[2] if len(splits) > 2 else None
    shape = (encoder.width,)
    return Dataset(
        name, splits[0], splits[1], names, "vector", shape, notes=notes, validation=validation, table=encoder
    )


def _numbers_rows(cells: Sequence[Any]) -> bool:
    """Return whether a column has consecutive whole numbers, each once: an identifier, not a measurement.

    >>> _numbers_rows(["7", "9", "8"]), _numbers_rows(["1", "2", "2"]), _numbers_rows(["1", "", "inf"])
    (True, False, False)
    """
    try:
        values = sorted(to_numbers("", cells).tolist()) if len(cells) > 2 and is_numeric(cells) else []
    except ValueError:  # an infinite number; encoding the column names it
        return False
    return bool(values) and values[0] % 1 == 0 and values == [values[0] + row for row in range(len(values))]


def read_table(path: Path) -> dict[str, Sequence[Any]]:
    """Read a CSV or Parquet file as columns.

    Raises:
        ValueError: If the file is missing, damaged or empty, or two columns have the same name.
    """
    check_regular_file(path)
    if not path.is_file():
        raise ValueError(f"table not found: {str(path)!r}.")
    readers = {".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise ValueError(f"a table must end in {' or '.join(readers)}, got {path.name!r}.")
    header, columns = readers[path.suffix.lower()](path)
    named = [name for name in header if name]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{path} has two columns named {twice!r}.")
    if not columns or not len(columns[0]):
        raise ValueError(f"{path} has no rows.")
    return {name: cells for name, cells in zip(header, columns, strict=True) if name}


def _read_csv(path: Path) -> tuple[list[str], list[Sequence[Any]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip() for name in next(reader, [])]
            rows = []
            for row in reader:
                if row and len(row) != len(header):
                    raise ValueError(f"line {reader.line_num} has {len(row)} fields, but the header has {len(header)}")
                if row:
                    rows.append(row)
    except (OSError, ValueError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read as CSV ({error}).") from None
    return header, list(zip(*rows, strict=True)) if rows else []


def _read_parquet(path: Path) -> tuple[list[str], list[Sequence[Any]]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f"{path} needs pyarrow: pip install 'classgap[parquet]'.") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise ValueError(f"{path} cannot be read as Parquet ({error}).") from None
    nested = next((field.name for field in table.schema if pyarrow.types.is_nested(field.type)), None)
    if nested is not None:
        raise ValueError(f"{path}: column {nested!r} must hold numbers or text, got {table.schema.field(nested).type}.")
    return list(table.column_names), [column.to_pylist() for column in table.columns]


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in an option, which are separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _check_columns(options: dict[str, str], table: Table, path: Path) -> None:
    for option, names in options.items():
        for name in split_names(names):
            if name not in table:
                raise ValueError(f"{path} has no column {name!r}, which {option} names; it has {', '.join(table)}.")


def read_labels(table: Table, target: str, source: str | Path) -> list[str]:
    """Return the class of each row as text.

    Raises:
        ValueError: If there is no such column, or a class is missing.
    """
    if target not in table:
        raise ValueError(
            f"{source} has no column {target!r}; name the column of classes: target=NAME of {', '.join(table)}."
        )
    labels = [_label(cell) for cell in table[target]]
    if "" in labels:
        raise ValueError(f"{source}, row {labels.index('') + 1}: the class in column {target!r} is missing.")
    return labels


def number_classes(
    parts: Sequence[tuple[str, Sequence[Any]]], class_names: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...], list[Tensor]]:
    """Number the classes of some columns.

    Args:
        parts: Name and labels of the training samples, and of other samples.
        class_names: One name per class; by default the labels of the training samples.

    Returns:
        The class names, and the classes of each part.

    Raises:
        ValueError: If a part has a class that the training samples do not have.
    """
    labels = [(source, [_label(cell) for cell in cells]) for source, cells in parts]
    names = class_names or _class_names(labels[0][1])
    return names, [_encode(each, names, source) for source, each in labels]


def _label(cell: Any) -> str:
    """Return a class as text; pandas stores integers with gaps as floats."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else to_text(cell)


def _class_names(labels: Sequence[str]) -> tuple[str, ...]:
    distinct = set(labels)
    numbers = all(label.isascii() and label.isdigit() for label in distinct)
    return tuple(sorted(distinct, key=int) if numbers else sorted(distinct))


def _encode(labels: Sequence[str], names: Sequence[str], source: str) -> Tensor:
    numbers = {name: number for number, name in enumerate(names)}
    unknown = next((label for label in labels if label not in numbers), None)
    if unknown is not None:
        raise ValueError(f"{source} has the class {unknown!r}, which does not occur in the training rows.")
    return torch.tensor([numbers[label] for label in labels])


def _encode_table(encoder: TableEncoder, table: Table, source: str) -> np.ndarray:
    try:
        return encoder.encode(table)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
