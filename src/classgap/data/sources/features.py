"""Feature vectors from a file, for linear probes and heads."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from classgap._array_files import map_npy, map_npz, npz_shapes
from classgap._regular_files import check_regular_file
from classgap.data.dataset import Dataset, Split
from classgap.data.splits import hold_out

_FEATURES = ("{}_features", "{}_x", "{}_inputs", "x_{}", "X_{}")
_TARGETS = ("{}_targets", "{}_y", "{}_labels", "y_{}")
_NAMES = ("class_names", "classes")
_UNSPLIT = (("features", "x", "X", "data"), ("targets", "y", "labels", "target"))  # the last of each: scikit-learn
_UNSPLIT_INPUTS = ("features", "x", "inputs", "images", "X", "data")

MAX_CLASSES = 1_000_000  # a damaged label would need a name for every number below it
Arrays = dict[str, NDArray[Any] | None]


def load_features(
    path: str, *, test_fraction: float | None = None, test_split: str = "test", data_seed: int = 0
) -> Dataset:
    """Load feature vectors and classes from a ``.npz`` or ``.safetensors`` file.

    The file has ``train_features``, ``train_targets``, ``test_features`` and ``test_targets`` (or ``train_x``,
    ``train_y``, ``X_train``, …), and optionally ``class_names`` (in safetensors: JSON in the metadata).
    ``val_features`` and ``val_targets`` are validation samples. From a file with only ``features`` and ``targets`` (or
    ``data`` and ``target``, ``X`` and ``y``), a test split is drawn. Features become float32 and are not normalized.

    Args:
        path: File.
        test_fraction: Fraction of each class to hold out as the test split if there is none, 0.2 by default.
        test_split: Prefix of the test arrays: ``val`` tests on ``val_features``, to tune without the test samples.
        data_seed: Random seed of the held-out test split.
    """
    arrays = _read(Path(os.path.expanduser(path)), ("train", "val", test_split))
    used: set[str] = set()
    notes: tuple[str, ...] = ()
    validation: Split | None = None
    if _find(arrays, [form.format("train") for form in _FEATURES]):
        if test_fraction is not None:
            raise ValueError(f"features: {path} has a test split; remove test_fraction={test_fraction}.")
        train, test = (_read_split(path, arrays, split, used) for split in ("train", test_split))
        if test_split != "val" and all(
            _find(arrays, [form.format("val") for form in each]) for each in (_FEATURES, _TARGETS)
        ):
            validation = _read_split(path, arrays, "val", used)
    else:
        both = Split.from_arrays(*_read_pair(path, arrays, _UNSPLIT[0], _UNSPLIT[1], used))
        fraction = 0.2 if test_fraction is None else test_fraction
        train, test = hold_out(both, fraction, data_seed, int(both.targets.max()) + 1)
        notes = (f"{path} has no test split: {len(test)} samples were drawn for testing, stratified by class.",)
    splits = [train, test, *([] if validation is None else [validation])]
    names = _class_names(path, arrays, torch.cat([split.targets for split in splits]), used)
    unused = sorted(set(arrays) - used)
    if unused:
        notes += (f"{path}: ignored {', '.join(unused)}.",)
    shape = (_width(path, splits),)
    return Dataset(f"features:{path}", train, test, names, "vector", shape, notes=notes, validation=validation)


def read_split_arrays(path: Path, split: str) -> tuple[NDArray[Any], NDArray[Any] | None, tuple[str, ...] | None]:
    """Read inputs, and targets and class names where the file has them, to predict with a trained model.

    Args:
        path: A ``.npz`` or ``.safetensors`` file as for :func:`load_features`, or a ``.npy`` file of inputs.
        split: "test", "val" or "train". A file without splits is read completely.

    Raises:
        ValueError: If the file cannot be read or has no inputs.
    """
    if path.suffix == ".npy":
        try:
            return map_npy(path), None, None
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot read {path} ({error}).") from None
    arrays = _read(path, (split,))
    key = _find(arrays, [form.format(split) for form in _FEATURES])
    targets = [form.format(split) for form in _TARGETS]
    if not key:
        key, targets = _find(arrays, _UNSPLIT_INPUTS), list(_UNSPLIT[1])
    if not key:
        raise ValueError(f"{path} needs an array {split}_features or features; it has {_describe(path)}.")
    found, names = _find(arrays, targets), _find(arrays, _NAMES)
    return (
        np.asarray(arrays[key]),
        arrays[found] if found else None,
        tuple(map(str, np.asarray(arrays[names]).ravel().tolist())) if names else None,
    )


def _read(path: Path, splits: Sequence[str]) -> Arrays:
    """Read the arrays of some splits; those of others are ``None``."""
    check_regular_file(path)
    if not path.is_file():
        raise ValueError(f"features: file not found: {str(path)!r}.")
    if path.suffix not in (".npz", ".safetensors"):
        raise ValueError(f"features: the file must be .npz or .safetensors, got {path.name!r}.")
    try:
        used = {form.format(split) for split in splits for form in (*_FEATURES, *_TARGETS)}
        used |= {*_NAMES, *_UNSPLIT[0], *_UNSPLIT[1], *_UNSPLIT_INPUTS}
        return map_npz(path, used.__contains__) if path.suffix == ".npz" else _read_safetensors(path, used)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"features: cannot read {path} ({str(error).rstrip('.')}).") from error


def _describe(path: Path) -> str:
    """Return the names and shapes of all arrays of a file."""
    shapes = npz_shapes(path) if path.suffix == ".npz" else _safetensors_shapes(path)
    return ", ".join(name if shape is None else f"{name} {shape}" for name, shape in shapes.items()) or "none"


def _safetensors_shapes(path: Path) -> dict[str, tuple[int, ...] | None]:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118  # no mapping


def _read_safetensors(path: Path, used: set[str]) -> Arrays:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:  # through torch: numpy has no bfloat16
            names = list(file.keys())
            tensors = {name: file.get_tensor(name) for name in names if name in used}
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    arrays: Arrays = dict.fromkeys(names)
    for name, tensor in tensors.items():
        arrays[name] = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    for name in _NAMES:
        if name in metadata:
            arrays[name] = np.array(_check_names(name, json.loads(metadata[name])))
    return arrays


def _check_names(name: str, values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} in the metadata must be a JSON list of strings")
    return values


def _read_split(path: str, arrays: Arrays, split: str, used: set[str]) -> Split:
    inputs, targets = ([form.format(split) for form in forms] for forms in (_FEATURES, _TARGETS))
    return Split.from_arrays(*_read_pair(path, arrays, inputs, targets, used))


def _read_pair(
    path: str, arrays: Arrays, inputs: Sequence[str], targets: Sequence[str], used: set[str]
) -> tuple[Tensor, Tensor]:
    found = [_find(arrays, names) for names in (inputs, targets)]
    for key, names in zip(found, (inputs, targets), strict=True):
        if not key:
            known = _describe(Path(os.path.expanduser(path)))
            raise ValueError(f"features: {path} needs an array {' or '.join(names)}; it has {known}.")
    used |= set(found)
    values, classes = (np.asarray(arrays[key]) for key in found)
    if values.ndim != 2 or values.dtype.kind not in "fiu" or len(values) == 0:
        raise ValueError(f"features: {path}: {found[0]} must be numeric, (N, D), got {values.dtype} {values.shape}.")
    if classes.shape != (len(values),) or classes.dtype.kind not in "iu" or int(classes.min()) < 0:
        raise ValueError(
            f"features: {path}: {found[1]} must be nonnegative integers, ({len(values)},), got {classes.dtype} "
            f"{classes.shape}."
        )
    if int(classes.max()) >= MAX_CLASSES:
        raise ValueError(
            f"features: {path}: {found[1]} must be class indices below {MAX_CLASSES:,}, got {classes.max()}."
        )
    with np.errstate(over="ignore"):  # infinities are reported below
        tensor = torch.from_numpy(values.astype(np.float32))
    if not tensor.isfinite().all():
        rows = int((~tensor.isfinite()).any(dim=1).sum())
        raise ValueError(f"features: {path}: {found[0]} has NaN or infinite values in {rows} rows.")
    return tensor, torch.from_numpy(classes.astype(np.int64))


def _find(arrays: Arrays, names: Sequence[str]) -> str:
    return next((name for name in names if arrays.get(name) is not None), "")


def _class_names(path: str, arrays: Arrays, targets: Tensor, used: set[str]) -> tuple[str, ...]:
    largest = int(targets.max())
    key = _find(arrays, _NAMES)
    if not key:
        return tuple(str(number) for number in range(largest + 1))
    used.add(key)
    values = np.asarray(arrays[key])
    if values.ndim != 1:
        raise ValueError(f"features: {path}: {key} must be a list with one name per class, got shape {values.shape}.")
    names = tuple(str(name) for name in values.tolist())
    if largest >= len(names):
        raise ValueError(f"features: {path} has {len(names)} {key}, but a target of {largest}.")
    return names


def _width(path: str, splits: Sequence[Split]) -> int:
    widths = [int(split.inputs[torch.arange(1)].shape[1]) for split in splits]
    if len(set(widths)) > 1:
        names = ("training", "test", "validation")
        parts = [f"{width} {name} features" for width, name in zip(widths, names, strict=False)]
        raise ValueError(f"features: {path} has {' and '.join(parts)}.")
    return widths[0]
