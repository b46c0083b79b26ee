"""Samples to predict: arrays in memory, image files, or a split of a dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from classgap.data.dataset import Inputs, Split, Subset
from classgap.data.preprocessing import Preprocessing
from classgap.data.sources.folder import find_images
from classgap.data.sources.images import try_read
from classgap.data.sources.parallel import map_in_threads
from classgap.data.transforms.table import Table

MAX_LISTED = 5  # unreadable files that a message lists


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
        items = _as_items(inputs)
        if not isinstance(items, np.ndarray):
            if not items:
                raise ValueError("inputs must have at least one sample, got none.")
            if preprocessing.is_image:
                names = tuple(os.fspath(each) for each in items if isinstance(each, (str, os.PathLike)))
                filenames = names if len(names) == len(items) else None
                return cls(ImageItems(tuple(items), preprocessing), filenames=filenames)
            if any(isinstance(each, (str, os.PathLike)) for each in items):
                raise ValueError(f"inputs must be arrays of shape {preprocessing.shape}, got {items[0]!r}.")
            items = np.stack([np.asarray(each) for each in items])
        return cls.from_array(items, preprocessing)

    @classmethod
    def from_array(cls, array: np.ndarray, preprocessing: Preprocessing) -> InputSamples:
        """Take an array of inputs (N, …), or one image; images may be (N, H, W, C), and of any size."""
        if preprocessing.is_image and _is_one_image(array, preprocessing.shape[0]):
            array = array[None]
        if array.ndim == 0 or len(array) == 0:
            raise ValueError(f"inputs must have at least one sample, got shape {array.shape}.")
        fits = array.shape[1:] in (preprocessing.shape, preprocessing.stored_shape)
        if preprocessing.is_image and not fits and array.ndim in (3, 4):
            return cls(ImageItems(tuple(array), preprocessing))
        return cls(preprocessing.check_array(array))

    def without_unreadable(self, progress: Callable[[int], None] = lambda count: None) -> InputSamples:
        """Decode all image files once, and return the samples that can be read, with a note about the others.

        Raises:
            ValueError: If no image can be read.
        """
        if not isinstance(self.inputs, ImageItems):
            return self
        problems = self.inputs.problems(progress)
        if not problems:
            return self
        listed = "; ".join(list(problems.values())[:MAX_LISTED]) + ("; …" if len(problems) > MAX_LISTED else "")
        summary = f"cannot read {len(problems)} of {len(self)} images: {listed}"
        rows = [row for row in range(len(self)) if row not in problems]
        if not rows:
            raise ValueError(summary)
        return InputSamples(
            ImageItems(tuple(self.inputs.items[row] for row in rows), self.inputs.preprocessing),
            None if self.targets is None else self.targets[rows],
            None if self.index is None else self.index[rows],
            None if self.filenames is None else tuple(self.filenames[row] for row in rows),
            (*self.notes, f"Skipped: {summary}"),
        )

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

    def problems(self, progress: Callable[[int], None] = lambda count: None) -> dict[int, str]:
        """Decode all images, and return the rows that cannot be read, with the reasons."""
        reasons = map_in_threads(lambda row: self[row][1], range(len(self)), advance=progress)
        return {row: reason for row, reason in enumerate(reasons) if reason}

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
                raise ValueError(f"cannot read {problems[0]}{self._hint}")
            dtypes = {image.dtype for image, _ in pairs}
            if len(dtypes) > 1:
                raise ValueError("images must be all bytes or all numbers in [0, 1], got both.")
            shapes = {tuple(image.shape) for image, _ in pairs}
            if len(shapes) > 1:
                raise ValueError(f"images with numbers in [0, 1] must have one size, got {sorted(shapes)}.")
            yield torch.stack([image for image, _ in pairs])

    @property
    def _hint(self) -> str:
        files = all(isinstance(item, (str, os.PathLike)) for item in self.items)
        return " (`classgap predict --on-error skip` skips unreadable images)" if files else ""

    def _name(self, row: int) -> str:
        item = self.items[row]
        return str(item) if isinstance(item, (str, os.PathLike)) else f"image {row}"


def _as_items(inputs: Any) -> np.ndarray | list[Any]:
    """Return an array of numbers, or a list of images, image files and arrays; a folder gives its image files."""
    if isinstance(inputs, (str, os.PathLike)):
        path = Path(inputs)
        found = find_images(path) if path.is_dir() else [inputs]
        if not found:
            raise ValueError(f"{path} contains no images.")
        return list(found)
    if hasattr(inputs, "convert"):  # a Pillow image
        return [inputs]
    if isinstance(inputs, Tensor):
        return inputs.detach().cpu().numpy()
    if isinstance(inputs, (Sequence, Iterator)):
        return list(inputs)
    array = np.asarray(inputs)
    if array.ndim == 0:
        raise ValueError(f"inputs must be an array, an image, a file or a list of these, got {type(inputs).__name__}.")
    return list(array) if array.dtype.kind in "OU" and array.ndim == 1 else array  # a column of file names


def _is_one_image(array: np.ndarray, channels: int) -> bool:
    """Return whether an array is one image, (H, W, C) or (C, H, W), and not several; (H, W) could be rows of pixels."""
    return array.ndim == 3 and channels in (array.shape[2], array.shape[0] if channels > 1 else None)


def _check_split(split: Split, preprocessing: Preprocessing) -> None:
    shape = tuple(split.inputs[torch.arange(min(1, len(split)))].shape[1:])
    if not len(split) or shape != preprocessing.stored_shape:
        raise ValueError(
            f"the split must have samples of shape {preprocessing.stored_shape}, got {len(split)} of {shape}."
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
