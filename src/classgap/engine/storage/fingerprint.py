"""Fingerprint of a dataset, so that a run is not resumed with other data."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import torch
from torch import Tensor

from classgap.data.dataset import Dataset, Inputs, Split, Subset
from classgap.data.sources.images import ImageFiles

MAX_BYTES = 8_000_000_000  # of each split; beyond, evenly spaced samples are hashed
BLOCK = 256  # samples, or files


def fingerprint(data: Dataset) -> dict[str, Any]:
    """Describe a dataset by names, sizes, counts and hashes of its contents, ready for JSON.

    File times are not part of it: copied files are the same data.

    >>> split = Split.from_arrays(torch.zeros(4, 2), torch.tensor([0, 1, 1, 1]))
    >>> found = fingerprint(Dataset("mine", split, split, ("cat", "dog"), kind="vector", shape=(2,)))
    >>> found["class names"], found["training samples"], found["shape of an input"]
    (['cat', 'dog'], 4, [2])
    """
    found: dict[str, Any] = {"class names": list(data.class_names), "shape of an input": list(data.shape)}
    for name, split in (("training", data.train), ("validation", data.validation), ("test", data.test)):
        if split is None:
            continue
        found[f"{name} samples"] = len(split)
        found[f"{name} labels"] = _hash(split.targets)
        found[f"{name} inputs"] = _hash_inputs(split)
    return found


def changes(stored: dict[str, Any], current: dict[str, Any]) -> list[str]:
    """Say what differs between two fingerprints.

    >>> changes({"test samples": 10, "test labels": "ab"}, {"test samples": 12, "test labels": "cd"})
    ['test samples (10 before, 12 now)', 'test labels']
    """
    found = []
    for name, value in current.items():
        if name in stored and stored[name] != value:
            sizes = f" ({stored[name]} before, {value} now)" if isinstance(value, int) or "shape" in name else ""
            found.append(f"{name}{sizes}")
    return found


def write_fingerprint(data: dict[str, Any]) -> str:
    """Return the text of ``data.json``."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _hash(tensor: Tensor) -> str:
    return hashlib.sha256(_bytes(tensor)).hexdigest()


def _hash_inputs(split: Split) -> str:
    inputs: Inputs = split.inputs
    rows = torch.arange(len(split))
    while isinstance(inputs, Subset):
        rows = inputs.rows[rows]
        inputs = inputs.inputs
    digest = hashlib.sha256()
    if isinstance(inputs, ImageFiles):
        paths = [inputs.paths[row] for row in rows.tolist()]
        sizes = [os.path.getsize(path) if os.path.exists(path) else -1 for path in paths]
        digest.update(json.dumps([[os.path.basename(path) for path in paths], sizes]).encode())
        for path in _spaced(paths, sum(sizes)):
            digest.update(_file_bytes(path))
    elif len(rows):
        size = len(rows) * inputs[rows[:1]].nbytes
        kept = torch.tensor(_spaced(rows.tolist(), size))
        for block in kept.split(BLOCK):
            digest.update(_bytes(inputs[block]))
    return digest.hexdigest()


def _spaced(items: list[Any], size: int) -> list[Any]:
    """All items, or evenly spaced ones of at most ``MAX_BYTES`` in all."""
    return items[:: max(1, -(-size // MAX_BYTES))]


def _file_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # the error is reported when the image is needed
        return b""


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data
