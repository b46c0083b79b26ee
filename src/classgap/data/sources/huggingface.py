"""Hugging Face datasets: from the Hub, saved with ``save_to_disk``, or in Parquet and Arrow files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from classgap.data.dataset import Dataset, Split
from classgap.data.sources.encoded_images import load_encoded_images
from classgap.data.sources.image_dataset import choose_stats
from classgap.data.sources.table import TEST_FRACTION, make_table_dataset, number_classes, split_names
from classgap.data.splits import hold_out
from classgap.data.transforms.table import to_text
from classgap.data.transforms.text import TextColumn

FILES = {".parquet": "parquet", ".arrow": "arrow"}
TEST_SPLITS = ("test", "validation", "valid", "val", "dev")
TARGETS = ("label", "labels", "target", "class")  # usual names of a column of classes without a ClassLabel
NO_LABEL = (None, -1)  # of a ClassLabel


def load_huggingface(
    path: str,
    *,
    config: str = "",
    input: str = "",
    target: str = "",
    encoder: str = "",
    train_split: str = "train",
    test_split: str = "",
    drop: str = "",
    categorical: str = "",
    size: int | None = None,
    test_fraction: float | None = None,
    cache_gb: float = 4.0,
    data_seed: int = 0,
) -> Dataset:
    """Load images, texts, vectors or a table with ``datasets``.

    The inputs are the column of images if there is one, the column of texts if ``encoder`` is given, and otherwise all
    columns besides the classes, as in ``csv``. Class names are those of the ``ClassLabel``. If there is a test split, a
    validation split is used to select an epoch.

    Args:
        path: Name on the Hugging Face Hub, a folder that ``save_to_disk`` wrote or that ``load_dataset`` reads, or
            ``.parquet`` or ``.arrow`` files: ``TRAIN,TEST`` or one.
        config: Configuration (subset) of the dataset.
        input: Column of images, texts or vectors, if there are several.
        target: Column with the class labels. By default, the only ``ClassLabel``, or the column ``label``.
        encoder: Sentence encoder for texts, as in ``csv``.
        train_split: Name of the training split.
        test_split: Name of the test split. By default, ``test``, or else the validation split. Without either, a test
            split is drawn.
        drop: Columns of a table to ignore, separated by commas.
        categorical: Numeric columns of a table to treat as categories, separated by commas.
        size: As in ``folder``.
        test_fraction: Fraction of each class to hold out as the test split if there is none, 0.2 by default.
        cache_gb: Keep decoded images in memory if they take at most this many gigabytes.
        data_seed: Random seed of the held-out test split.
    """
    name = f"hf:{path}"
    found = _open(name, path, config)
    splits = _choose_splits(name, found, train_split, test_split)
    if len(splits) > 1 and test_fraction is not None:
        raise ValueError(f"{name} has the test split {list(splits)[1]}; remove test_fraction={test_fraction}.")
    train = next(iter(splits.values()))
    features = train.features
    target = target or _find_target(name, features)
    _check_column(name, "target", target, features)
    column = input or _find_input(name, features, target, encoder)
    _check_column(name, "input", column or target, features)
    class_names, labels = _read_labels(name, splits, target)
    kind = type(features[column]).__name__ if column else ""
    if kind == "Image" or _is_vector(features, column):
        read = _image_reader(size, cache_gb) if kind == "Image" else _read_vectors
        return _make_dataset(name, splits, column, read, labels, class_names, test_fraction, data_seed)
    texts = [TextColumn.from_encoder(column, encoder)] if column and encoder else []
    used = [column, target] if column else list(features)
    parts = []
    for (split, rows), classes in zip(splits.items(), labels, strict=True):
        table = {each: rows[each][:] for each in used if each != target}
        parts.append(
            (f"{name}, split {split}", {**table, target: [class_names[number] for number in classes.tolist()]})
        )
    return make_table_dataset(
        name,
        parts,
        target=target,
        class_names=class_names,
        drop=split_names(drop),
        categorical=split_names(categorical),
        texts=texts,
        test_fraction=test_fraction,
        data_seed=data_seed,
    )


def is_saved_dataset(folder: Path) -> bool:
    """Return whether ``save_to_disk`` of ``datasets`` wrote a folder."""
    return (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file()


def _open(name: str, path: str, config: str) -> Mapping[str, Any]:
    """Return the splits by name."""
    try:
        import datasets
    except ImportError:
        raise ValueError(f"{name} needs datasets: pip install 'classgap[hf]'.") from None
    place, files = Path(os.path.expanduser(path)), [Path(os.path.expanduser(part)) for part in path.split(",")]
    verbosity = datasets.logging.get_verbosity()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # its errors are raised as well, and reported below
    try:
        if is_saved_dataset(place):
            found = datasets.load_from_disk(str(place))
        elif all(file.is_file() for file in files):
            if len(files) > 2 or {file.suffix for file in files} - FILES.keys():
                raise ValueError(f"expected one or two files that end in {' or '.join(FILES)}")
            data_files = {split: str(file) for split, file in zip(("train", "test"), files, strict=False)}
            found = datasets.load_dataset(FILES[files[0].suffix], data_files=data_files)
        else:
            found = datasets.load_dataset(str(place) if place.is_dir() else path, config or None)
    except Exception as error:  # of the network, of files, of a wrong name: each library below has its own
        cause = error.__cause__ or error  # datasets say only that an error occurred
        reason = " ".join(str(cause).split())[:300]
        raise ValueError(f"{name} cannot be loaded ({type(cause).__name__}: {reason}).") from None
    finally:
        datasets.logging.set_verbosity(verbosity)
    return found if isinstance(found, Mapping) else {"train": found}


def _choose_splits(name: str, found: Mapping[str, Any], train: str, test: str) -> dict[str, Any]:
    """Return the training split, and the test and validation splits if there are any, in this order."""
    others = [split for split in TEST_SPLITS if split in found and split != train]
    chosen = [train, *([test] if test else others[:1])]
    missing = [split for split in chosen if split not in found]
    if missing:
        option = "train_split" if missing[0] == train else "test_split"
        raise ValueError(f"{name} has no split {missing[0]!r}; it has {', '.join(found)}: set {option}=NAME.")
    chosen += [split for split in others if split not in (*chosen, "test")][:1] if len(chosen) > 1 else []
    return {split: found[split] for split in chosen}


def _check_column(name: str, option: str, column: str, features: Mapping[str, Any]) -> None:
    if column not in features:
        raise ValueError(f"{name} has no column {column!r}, which {option} names; it has {', '.join(features)}.")


def _find_target(name: str, features: Mapping[str, Any]) -> str:
    labels = [column for column, kind in features.items() if type(kind).__name__ == "ClassLabel"]
    labels = labels or [column for column in TARGETS if column in features][:1]
    if len(labels) != 1:
        seen = f"several columns of classes: {', '.join(labels)}" if labels else f"the columns {', '.join(features)}"
        raise ValueError(f"{name} has {seen}; name the column of classes with target=NAME.")
    return labels[0]


def _find_input(name: str, features: Mapping[str, Any], target: str, encoder: str) -> str:
    """Return the column of images or texts, or "" for a table."""
    rest = {column: kind for column, kind in features.items() if column != target}
    images = [column for column, kind in rest.items() if type(kind).__name__ == "Image"]
    texts = [column for column, kind in rest.items() if getattr(kind, "dtype", "") in ("string", "large_string")]
    found = images or (texts if encoder else [])
    if len(found) > 1 or (encoder and not found):
        seen = ", ".join(found) or "no text"
        raise ValueError(f"{name} has the columns {seen}; name the column of inputs with input=NAME.")
    if not found and len(rest) == 1 and _is_vector(rest, next(iter(rest))):
        return next(iter(rest))
    return found[0] if found else ""


def _is_vector(features: Mapping[str, Any], column: str) -> bool:
    """Return whether a column has lists of numbers."""
    inner = getattr(features.get(column), "feature", None)
    return str(getattr(inner, "dtype", "")).startswith(("float", "int", "uint"))


def _read_labels(name: str, splits: Mapping[str, Any], target: str) -> tuple[tuple[str, ...], list[Tensor]]:
    """Return the class names, and the classes of each split."""
    columns = {split: rows[target][:] for split, rows in splits.items()}
    label = next(iter(splits.values())).features[target]
    named = type(label).__name__ == "ClassLabel"
    for split, cells in columns.items():
        bad = next(
            (row for row, cell in enumerate(cells) if cell in NO_LABEL[: 1 + named] or to_text(cell) == ""), None
        )
        if bad is not None:
            raise ValueError(
                f"{name}, split {split}, row {bad}: the class in column {target!r} is missing; choose a split with "
                "labels, such as test_split=validation."
            )
    if named:
        return tuple(label.names), [torch.tensor(cells) for cells in columns.values()]
    return number_classes(list(columns.items()))


def _image_reader(size: int | None, cache_gb: float) -> Callable[[list[Any], str], list[Any]]:
    def read(parts: list[Any], column: str) -> list[Any]:
        encoded = type(parts[0].features[column])(decode=False)  # datasets.Image: bytes or file names
        cells = [rows.select_columns([column]).cast_column(column, encoded) for rows in parts]
        return load_encoded_images(cells, column, size=size, cache_gb=cache_gb)

    return read


def _read_vectors(parts: list[Any], column: str) -> list[Any]:
    found = [torch.tensor(rows[column][:], dtype=torch.float32) for rows in parts]
    if any(each.ndim != 2 or each.shape[1] != found[0].shape[1] or not each.isfinite().all() for each in found):
        raise ValueError(f"column {column!r} must have finite vectors of equal length.")
    return found


def _make_dataset(
    name: str,
    splits: Mapping[str, Any],
    column: str,
    read: Callable[[list[Any], str], list[Any]],
    labels: list[Tensor],
    class_names: tuple[str, ...],
    test_fraction: float | None,
    data_seed: int,
) -> Dataset:
    try:
        inputs = read(list(splits.values()), column)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    parts = [Split.from_arrays(each, classes) for each, classes in zip(inputs, labels, strict=True)]
    shape = tuple(parts[0].inputs[torch.arange(1)].shape[1:])
    image = len(shape) == 3
    notes: tuple[str, ...] = ()
    if len(parts) == 1:
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        parts = list(hold_out(parts[0], fraction, data_seed, len(class_names)))
        notes = (f"{name} has no test split: {len(parts[1])} rows were drawn for testing, stratified by class.",)
    mean, std = choose_stats(parts[0].inputs) if image else (None, None)
    return Dataset(
        name,
        parts[0],
        parts[1],
        class_names,
        "image" if image else "vector",
        shape,
        mean,
        std,
        notes=notes,
        validation=parts[2] if len(parts) > 2 else None,
    )
