"""What a data source gives: two splits with class names."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Inputs(Protocol):
    """Inputs of a split, in memory (a tensor is one) or read when asked for."""

    def __len__(self) -> int:
        """How many."""
        ...

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """The inputs of these rows, (B, …)."""
        ...


@dataclass(frozen=True, repr=False)
class Split:
    """Samples with their classes; a data set for a ``torch.utils.data.DataLoader``, too.

    Attributes:
        inputs: unaugmented; images as uint8 (N, C, H, W), anything else as float32 (N, …).
        targets: (N,), int64.
        index: (N,), the samples' numbers in the source, which a part of a split keeps.

    >>> split = Split.from_arrays(torch.zeros(4, 2), torch.tensor([0, 1, 1, 1]))
    >>> len(split), split.counts(2), split.part(torch.tensor([0, 3])).index
    (4, tensor([1, 3]), tensor([0, 3]))
    >>> split, split[3]
    (Split(4 samples of 2 classes), (tensor([0., 0.]), 1, 3))
    """

    inputs: Inputs
    targets: Tensor
    index: Tensor

    @classmethod
    def from_arrays(cls, inputs: Inputs, targets: Tensor) -> Split:
        """A whole split, numbered from 0."""
        if len(inputs) != len(targets):
            raise ValueError(f"inputs and targets must be equally many; got {len(inputs)} and {len(targets)}.")
        return cls(inputs, targets.long(), torch.arange(len(targets)))

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, number: int) -> tuple[Tensor, int, int]:
        """One sample: its input, its class, and its place in the split, which is the ``index`` that losses ask for."""
        row = range(len(self))[operator.index(number)]  # refuses what is outside, which ends a loop over the split
        return self.inputs[torch.tensor([row])][0], int(self.targets[row]), row

    def __repr__(self) -> str:
        return f"Split({len(self)} samples of {len(self.targets.unique())} classes)"

    def part(self, rows: Tensor) -> Split:
        """Some of its samples. Inputs in memory are shared as long as possible: rows are looked up when read."""
        base, taken = (
            (self.inputs.inputs, self.inputs.rows[rows]) if isinstance(self.inputs, Rows) else (self.inputs, rows)
        )
        return Split(Rows(base, taken), self.targets[rows], self.index[rows])

    def counts(self, num_classes: int) -> Tensor:
        """Samples of each class."""
        return torch.bincount(self.targets, minlength=num_classes)


@dataclass(frozen=True)
class Rows:
    """Some rows of other inputs."""

    inputs: Inputs
    rows: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        return self.inputs[self.rows[rows]]


@dataclass(frozen=True)
class Dataset:
    """A source's training and test split.

    Attributes:
        name: as it was typed.
        train: to learn from.
        test: to look at once, at the end.
        class_names: one name a class.
        kind: "image", "signal" (channels of a series) or "vector": what network and augmentation suit it.
        shape: of one input.
        mean: of each channel, as a share of 255 for images; ``None`` if inputs are used as they are.
        std: of each channel.
        remarks: what was changed, left out or drawn on the way here, in sentences for the reader.
        mirrored: whether a mirrored image keeps its class; a digit does not.

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
    remarks: tuple[str, ...] = ()
    mirrored: bool = True

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    @property
    def train_counts(self) -> Tensor:
        """Training samples of each class, (K,)."""
        return self.train.counts(self.num_classes)
