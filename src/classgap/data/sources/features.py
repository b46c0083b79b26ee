"""Features of a frozen network from a file, for linear probes and heads."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from classgap.data.dataset import Dataset, Split
from classgap.data.splits import hold_out

_FEATURES = ("{}_features", "{}_x", "{}_inputs", "x_{}")
_TARGETS = ("{}_targets", "{}_y", "{}_labels", "y_{}")
_NAMES = ("class_names", "classes")
_UNSPLIT = (("features", "x"), ("targets", "y", "labels"))


def features(path: str, *, test: float | None = None, on: str = "test", data_seed: int = 0) -> Dataset:
    """Vectors with classes from a ``.npz`` or ``.safetensors`` file.

    The file has ``train_features``, ``train_targets``, ``test_features``, ``test_targets`` (or ``train_x``,
    ``train_y``, …) and, if classes have names, ``class_names`` (in safetensors: JSON in the metadata). A file with
    ``features`` and ``targets`` only is parted in two. Numbers become float32 and are otherwise used as they are.

    Args:
        path: the file.
        test: share of each class in the test split, where the file has none; 0.2 unless given.
        on: whose arrays the test split is; ``on=val`` looks at ``val_features`` instead, to choose settings without
            the test samples.
        data_seed: of that draw.
    """
    arrays = _read(Path(path).expanduser())
    used: set[str] = set()
    remarks: tuple[str, ...] = ()
    if _find(arrays, [form.format("train") for form in _FEATURES]):
        if test is not None:
            raise ValueError(f"features: {path} has a test split; leave out test={test}.")
        parts = [_split(path, arrays, split, used) for split in ("train", on)]
    else:
        whole = Split.from_arrays(*_pair(path, arrays, _UNSPLIT[0], _UNSPLIT[1], used))
        parts = list(hold_out(whole, 0.2 if test is None else test, data_seed, int(whole.targets.max()) + 1))
        remarks = (f"{path} has no test split: {len(parts[1])} samples, drawn from each class alike, are it.",)
    train, held = parts
    names = _class_names(path, arrays, torch.cat([train.targets, held.targets]), used)
    unused = sorted(set(arrays) - used)
    if unused:
        remarks += (f"{path}: {', '.join(unused)} {'is' if len(unused) == 1 else 'are'} not used.",)
    width = _width(path, train, held)
    return Dataset(f"features:{path}", train, held, names, "vector", (width,), remarks=remarks)


def _read(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise ValueError(f"features: there is no file {str(path)!r}.")
    if path.suffix not in (".npz", ".safetensors"):
        raise ValueError(f"features: the file must be .npz or .safetensors; got {path.name!r}.")
    try:
        return _read_npz(path) if path.suffix == ".npz" else _read_safetensors(path)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"features: {path} cannot be read ({error}).") from error


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:  # by torch: numpy has no bfloat16
            tensors = {name: file.get_tensor(name) for name in list(file.keys())}
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    arrays = {name: (each.float() if each.is_floating_point() else each).numpy() for name, each in tensors.items()}
    return arrays | {name: np.array(json.loads(metadata[name])) for name in _NAMES if name in metadata}


def _split(path: str, arrays: Mapping[str, NDArray[Any]], split: str, used: set[str]) -> Split:
    inputs, targets = ([form.format(split) for form in forms] for forms in (_FEATURES, _TARGETS))
    return Split.from_arrays(*_pair(path, arrays, inputs, targets, used))


def _pair(
    path: str, arrays: Mapping[str, NDArray[Any]], inputs: Sequence[str], targets: Sequence[str], used: set[str]
) -> tuple[Tensor, Tensor]:
    found = [_find(arrays, names) for names in (inputs, targets)]
    for key, names in zip(found, (inputs, targets), strict=True):
        if not key:
            has = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise ValueError(f"features: {path} needs an array named {' or '.join(names)}; it has {has or 'nothing'}.")
    used |= set(found)
    values, classes = (arrays[key] for key in found)
    if values.ndim != 2 or values.dtype.kind not in "fiu" or len(values) == 0:
        raise ValueError(f"features: {found[0]} must be numbers, (N, D); got {values.dtype} {values.shape}.")
    if classes.shape != (len(values),) or classes.dtype.kind not in "iu" or int(classes.min()) < 0:
        wanted = f"classes from 0, one for each of {len(values)} samples"
        raise ValueError(f"features: {found[1]} must be {wanted}; got {classes.dtype} {classes.shape}.")
    tensor = torch.from_numpy(values.astype(np.float32))
    if not tensor.isfinite().all():
        raise ValueError(f"features: {found[0]} has values that are not finite, in {_bad_rows(tensor)} rows.")
    return tensor, torch.from_numpy(classes.astype(np.int64))


def _bad_rows(values: Tensor) -> int:
    return int((~values.isfinite()).any(dim=1).sum())


def _find(arrays: Mapping[str, NDArray[Any]], names: Sequence[str]) -> str:
    return next((name for name in names if name in arrays), "")


def _class_names(path: str, arrays: Mapping[str, NDArray[Any]], targets: Tensor, used: set[str]) -> tuple[str, ...]:
    largest = int(targets.max())
    key = _find(arrays, _NAMES)
    if not key:
        return tuple(str(number) for number in range(largest + 1))
    used.add(key)
    names = tuple(str(name) for name in arrays[key].tolist())
    if largest >= len(names):
        raise ValueError(f"features: {path} has {len(names)} {key} and a target of {largest}.")
    return names


def _width(path: str, train: Split, held: Split) -> int:
    widths = [int(split.inputs[torch.arange(1)].shape[1]) for split in (train, held)]
    if widths[0] != widths[1]:
        raise ValueError(f"features: {path} has {widths[0]} features in training and {widths[1]} in the test split.")
    return widths[0]
