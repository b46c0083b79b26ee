"""Datasets: a training and a test split with class names."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from classgap.data.transforms.table import TableEncoder


class Inputs(Protocol):
    """Inputs of a split: a tensor, or an object that reads rows on demand."""

    def __len__(self) -> int:
        """Number of inputs."""
        ...

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Return the inputs of some rows, (B, …)."""
        ...


@dataclass(frozen=True, repr=False)
class Split:
    """Samples with their classes. Also a map-style dataset for ``torch.utils.data.DataLoader``.

    Attributes:
        inputs: Unaugmented inputs; images as uint8 (N, C, H, W), others as float32 (N, …).
        targets: Classes, int64, (N,).
        index: Position of each sample in its source, (N,). Subsets keep it.

    >>> split = Split.from_arrays(torch.zeros(4, 2), torch.tensor([0, 1, 1, 1]))
    >>> len(split), split.class_counts(2), split.subset(torch.tensor([0, 3])).index
    (4, tensor([1, 3]), tensor([0, 3]))
    >>> split, split[3]
    (Split(4 samples of 2 classes), (tensor([0., 0.]), 1, 3))
    """

    inputs: Inputs
    targets: Tensor
    index: Tensor

    @classmethod
    def from_arrays(cls, inputs: Inputs, targets: Tensor) -> Split:
        """Create a split whose samples are numbered from 0."""
        if len(inputs) != len(targets):
            raise ValueError(f"inputs and targets must have the same length, got {len(inputs)} and {len(targets)}.")
        return cls(inputs, targets.long(), torch.arange(len(targets)))

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, row: int) -> tuple[Tensor, int, int]:
        """Return a sample as (input, class, row). Losses take the row as ``index``."""
        row = range(len(self))[operator.index(row)]  # raises IndexError, which ends a loop over the split
        return self.inputs[torch.tensor([row])][0], int(self.targets[row]), row

    def __repr__(self) -> str:
        return f"Split({len(self)} samples of {len(self.targets.unique())} classes)"

    def subset(self, rows: Tensor) -> Split:
        """Return the split of some rows. Inputs are shared, not copied."""
        base, taken = (
            (self.inputs.inputs, self.inputs.rows[rows]) if isinstance(self.inputs, Subset) else (self.inputs, rows)
        )
        return Split(Subset(base, taken), self.targets[rows], self.index[rows])

    def class_counts(self, num_classes: int) -> Tensor:
        """Count the samples of each class, (K,)."""
        return torch.bincount(self.targets, minlength=num_classes)


@dataclass(frozen=True)
class Subset:
    """Some rows of other inputs."""

    inputs: Inputs
    rows: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        return self.inputs[self.rows[rows]]


@dataclass(frozen=True)
class Dataset:
    """A training and a test split with class names.

    Attributes:
        name: Name as typed.
        train: Training split.
        test: Test split, evaluated once after training.
        class_names: One name per class.
        kind: "image", "signal" (channels × length) or "vector"; selects default models and augmentation.
        shape: Shape of one input.
        mean: Mean of each channel, for images on the scale [0, 1]; ``None`` if inputs are not normalized.
        std: Standard deviation of each channel.
        notes: Messages for the user about changed, skipped or randomly drawn samples.
        allow_flip: Whether a horizontally flipped image keeps its class; False for digits.
        validation: Samples to select an epoch on, if the source has some.
        table: How rows of a table became inputs, if the source is one.

    >>> split = Split.from_arrays(torch.zeros(4, 2), torch.tensor([0, 1, 1, 1]))
    >>> Dataset("mine", split, split, ("cat", "dog"), kind="vector", shape=(2,)).train_counts
    tensor([1, 3])
    """

    name: str
    train: Split
    test: Split
    class_names: tuple[str, ...]
    kind: str
    shape: tuple[int, ...]
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()
    allow_flip: bool = True
    validation: Split | None = None
    table: TableEncoder | None = None

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def train_counts(self) -> Tensor:
        """Training samples per class, (K,)."""
        return self.train.class_counts(self.num_classes)
