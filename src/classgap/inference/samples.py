"""Samples to predict: arrays in memory, image files, or a split of a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from classgap.data.dataset import Inputs, Split, Subset
from classgap.data.preprocessing import Preprocessing
from classgap.data.sources.images import try_read
from classgap.data.transforms.table import Table


@dataclass(frozen=True)
class InputSamples:
    """Samples to predict.

    Attributes:
        inputs: Inputs before crop and normalization, (N, …), or a list of images and image files.
        targets: True classes, int64, (N,), if known.
        index: Position of each sample in its source, (N,), if it has one.
        filenames: File of each sample, if it has one.
        notes: Messages for the user.

    >>> samples = InputSamples(torch.zeros(3, 2), targets=torch.tensor([0, 1, 1]))
    >>> len(samples)
    3
    """

    inputs: Inputs | ImageItems
    targets: Tensor | None = None
    index: Tensor | None = None
    filenames: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.inputs)

    @classmethod
    def from_any(cls, inputs: Any, preprocessing: Preprocessing) -> InputSamples:
        """Take an array or tensor of inputs (N, …), one image, a list of images, image files and arrays, or a split.

        For a model of a table, also take a data frame, or a list of rows as mappings; for a model of texts, a text or a
        list of texts.

        Raises:
            ValueError: If the inputs have the wrong shape or type.
        """
        if isinstance(inputs, InputSamples):
            return inputs
        if isinstance(inputs, Split):
            _check_split(inputs, preprocessing)
            return cls(inputs.inputs, inputs.targets, inputs.index)
        if (
            preprocessing.table is not None
            and (table := _as_table(inputs, preprocessing.table.text_column)) is not None
        ):
            return cls(torch.from_numpy(preprocessing.table.encode(table)))
        if isinstance(inputs, (str, os.PathLike)) or hasattr(inputs, "convert"):
            inputs = [inputs]
        if isinstance(inputs, Sequence):
            if not len(inputs):
                raise ValueError("inputs must have at least one sample, got an empty list.")
            if preprocessing.is_image:
                return cls(ImageItems(tuple(inputs), preprocessing))
            inputs = np.stack([np.asarray(each) for each in inputs])
        array = inputs.detach().cpu().numpy() if isinstance(inputs, Tensor) else np.asarray(inputs)
        return cls.from_array(array, preprocessing)

    @classmethod
    def from_array(cls, array: np.ndarray, preprocessing: Preprocessing) -> InputSamples:
        """Take an array of inputs (N, …); images may be (N, H, W, C), and of any size if they are bytes."""
        if array.ndim == 0 or len(array) == 0:
            raise ValueError(f"inputs must have at least one sample, got shape {array.shape}.")
        fits = array.shape[1:] in (preprocessing.shape, preprocessing.stored_shape)
        if preprocessing.is_image and not fits and array.ndim in (3, 4):
            return cls(ImageItems(tuple(array), preprocessing))
        return cls(preprocessing.check_array(array))

    def shard(self, rank: int, world_size: int, batch_size: int) -> InputSamples:
        """Return the part of one process: whole batches, the same ones that a single process would form.

        >>> samples = InputSamples(torch.arange(5.0)[:, None])
        >>> [len(samples.shard(rank, 3, batch_size=2)) for rank in range(3)]
        [2, 2, 1]
        """
        per_process = -(-len(self) // (batch_size * world_size)) * batch_size
        rows = slice(rank * per_process, (rank + 1) * per_process)
        if isinstance(self.inputs, ImageItems):
            return InputSamples(ImageItems(self.inputs.items[rows], self.inputs.preprocessing))
        return InputSamples(Subset(self.inputs, torch.arange(len(self))[rows]))

    def batches(self, batch_size: int, *, workers: int = 0) -> Iterator[Tensor]:
        """Iterate over inputs before crop and normalization.

        Args:
            batch_size: Samples in a batch.
            workers: Processes that decode images; 0 decodes in this one.

        Raises:
            ValueError: If an image cannot be read.
        """
        if isinstance(self.inputs, ImageItems):
            yield from self.inputs.batches(batch_size, workers)
            return
        for rows in torch.arange(len(self)).split(batch_size):
            yield self.inputs[rows]


@dataclass(frozen=True)
class ImageItems:
    """Images and image files, decoded on demand. A map-style dataset for ``torch.utils.data.DataLoader``.

    Attributes:
        items: Pillow images, file names or arrays.
        preprocessing: Size and channels of the decoded images.
    """

    items: tuple[Any, ...]
    preprocessing: Preprocessing

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, row: int) -> tuple[Tensor | None, str]:
        """Return an image and "", or ``None`` and the reason why it cannot be read; workers cannot raise cleanly."""
        image, reason = try_read(lambda: self.preprocessing.read(self.items[row]))
        return image, f"{self._name(row)}: {reason}" if reason else ""

    def batches(self, batch_size: int, workers: int) -> Iterator[Tensor]:
        """Iterate over decoded images, (B, C, H, W)."""
        from torch.utils.data import DataLoader

        loader: DataLoader[Any] = DataLoader(
            self,  # type: ignore[arg-type]
            batch_size=batch_size,
            num_workers=workers,
            collate_fn=list,
        )
        for pairs in loader:
            problems = [reason for _, reason in pairs if reason]
            if problems:
                raise ValueError(f"cannot read {problems[0]}")
            dtypes = {image.dtype for image, _ in pairs}
            if len(dtypes) > 1:
                raise ValueError("images must be all bytes or all numbers in [0, 1], got both.")
            shapes = {tuple(image.shape) for image, _ in pairs}
            if len(shapes) > 1:
                raise ValueError(f"images with numbers in [0, 1] must have one size, got {sorted(shapes)}.")
            yield torch.stack([image for image, _ in pairs])

    def _name(self, row: int) -> str:
        item = self.items[row]
        return str(item) if isinstance(item, (str, os.PathLike)) else f"image {row}"


def _check_split(split: Split, preprocessing: Preprocessing) -> None:
    shape = tuple(split.inputs[torch.arange(min(1, len(split)))].shape[1:])
    if not len(split) or shape != preprocessing.stored_shape:
        raise ValueError(
            f"the split must have samples of the shape {preprocessing.stored_shape}, got {len(split)} of {shape}."
        )


def _as_table(inputs: Any, text_column: str | None) -> Table | None:
    """Return the columns of a data frame or of a list of rows or texts, or ``None`` for other inputs."""
    texts = [inputs] if isinstance(inputs, str) else inputs
    if text_column and isinstance(texts, Sequence) and len(texts) and all(isinstance(text, str) for text in texts):
        return {text_column: texts}
    if hasattr(inputs, "columns"):
        return {str(name): inputs[name].tolist() for name in inputs.columns}
    if isinstance(inputs, Sequence) and len(inputs) and all(isinstance(row, Mapping) for row in inputs):
        return {name: [row.get(name) for row in inputs] for name in inputs[0]}
    return None
