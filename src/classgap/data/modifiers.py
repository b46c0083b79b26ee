"""Modify the training split: subsample it, make it long-tailed, add label noise."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from classgap.data.dataset import Dataset, Split
from classgap.data.sampling.keyed_random import keyed_bits, keyed_uniform
from classgap.data.splits import draw_per_class

LABEL_NOISE_TYPES = ("symmetric", "asymmetric")


@dataclass(frozen=True, kw_only=True)
class Modifiers:
    """Options of every dataset, applied to the training split in this order.

    Attributes:
        fraction: Fraction of each class to keep.
        imbalance: Imbalance factor of an exponential long tail (Cao et al., 2019): first class size / last class size.
        label_noise: Fraction of labels to replace with another class.
        label_noise_type: "symmetric" (any other class, uniformly) or "asymmetric" (the next class, so that the error
            depends on the class; pair flipping of Han et al., 2018).
        data_seed: Random seed of the draws, and of a test split that the source draws.
    """

    fraction: float = 1.0
    imbalance: float = 1.0
    label_noise: float = 0.0
    label_noise_type: str = "symmetric"
    data_seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise ValueError(f"fraction must be in (0, 1], got {self.fraction}.")
        if not 1 <= self.imbalance < math.inf:
            raise ValueError(
                f"imbalance (first class size / last class size) must be at least 1, got {self.imbalance}."
            )
        if not 0 <= self.label_noise <= 1:
            raise ValueError(f"label_noise must be in [0, 1], got {self.label_noise}.")
        if self.label_noise_type not in LABEL_NOISE_TYPES:
            raise ValueError(
                f"label_noise_type must be {' or '.join(LABEL_NOISE_TYPES)}, got {reprlib.repr(self.label_noise_type)}."
            )
        if not 0 <= self.data_seed < 2**32:  # as of all other seeds; multiples of 2**64 would equal seed 0
            raise ValueError(f"data_seed must be from 0 to 4294967295, got {reprlib.repr(self.data_seed)}.")

    def apply(self, data: Dataset) -> Dataset:
        """Return the dataset with a modified training split and a note for each modification."""
        train, notes, num_classes = data.train, list(data.notes), data.num_classes
        if self.fraction != 1:
            train = subsample(train, self.fraction, self.data_seed, num_classes)
            notes.append(f"fraction={self.fraction:g}: {len(train)} of {len(data.train)} training samples.")
        if self.imbalance != 1:
            train = make_long_tailed(train, self.imbalance, self.data_seed, num_classes)
            counts = train.class_counts(num_classes)
            sizes = f"{int(counts.max())} to {int(counts.min())}"
            notes.append(f"imbalance={self.imbalance:g}: {sizes} training samples per class.")
        if self.label_noise != 0:
            clean = train.targets
            symmetric = self.label_noise_type == "symmetric"
            train = add_label_noise(train, self.label_noise, self.data_seed, num_classes, symmetric=symmetric)
            wrong = int((train.targets != clean).sum())
            notes.append(f"label_noise={self.label_noise:g}: {wrong} of {len(train)} training labels are wrong.")
        return replace(data, train=train, notes=tuple(notes))


def subsample(split: Split, fraction: float, seed: int, num_classes: int) -> Split:
    """Keep ``round(fraction · n_k)`` samples of each class, at least one.

    >>> split = Split.from_arrays(torch.zeros(12, 2), torch.tensor([0] * 10 + [1] * 2))
    >>> subsample(split, 0.2, seed=0, num_classes=2).class_counts(2).tolist()
    [2, 1]
    """
    counts = (split.class_counts(num_classes).double() * fraction + 0.5).floor().long().clamp(min=1)
    return split.subset(draw_per_class(split.targets, split.index, counts, seed, "fraction"))


def long_tail_counts(head: int, imbalance: float, num_classes: int) -> Tensor:
    """Class sizes of the exponential long tail of Cao et al. (2019): ``int(head · (1/imbalance)^(k/(K−1)))``.

    Every class keeps at least one sample.

    >>> long_tail_counts(500, 100, 5).tolist()
    [500, 158, 50, 15, 5]
    """
    steps = max(num_classes - 1, 1)
    return torch.tensor([max(1, int(head * (1 / imbalance) ** (k / steps))) for k in range(num_classes)])


def make_long_tailed(split: Split, imbalance: float, seed: int, num_classes: int) -> Split:
    """Reduce class sizes exponentially, from ``N // K`` in the first class to ``N // K / imbalance`` in the last.

    ``N // K`` follows the published code; on balanced data it is the class size. A class that has fewer samples than
    its long-tail count keeps all of them.

    Args:
        split: Training split.
        imbalance: Imbalance factor, first class size / last class size.
        seed: Random seed.
        num_classes: Number of classes, K.
    """
    counts = long_tail_counts(len(split) // num_classes, imbalance, num_classes)
    return split.subset(draw_per_class(split.targets, split.index, counts, seed, "long tail"))


def add_label_noise(split: Split, fraction: float, seed: int, num_classes: int, *, symmetric: bool = True) -> Split:
    """Replace exactly ``round(fraction · N)`` labels with another class.

    Args:
        split: Training split.
        fraction: Fraction of labels to replace.
        seed: Random seed.
        num_classes: Number of classes.
        symmetric: Choose the other class uniformly; otherwise take the next one, and the first after the last.

    >>> clean = Split.from_arrays(torch.zeros(10, 2), torch.arange(10) % 2)
    >>> noisy = add_label_noise(clean, 0.3, seed=0, num_classes=2)
    >>> int((noisy.targets != clean.targets).sum())
    3
    """
    if num_classes < 2:
        raise ValueError(f"label_noise needs at least two classes, got {num_classes}.")
    order = keyed_bits(seed, 0, split.index, 1, stream="noise")[:, 0].argsort(stable=True)
    rows = order[: math.floor(fraction * len(split) + 0.5)]
    where = keyed_uniform(seed, 0, split.index[rows], 1, stream="noisy class", dtype=torch.float64)[:, 0]
    further = (where * (num_classes - 1)).long() if symmetric else 0
    targets = split.targets.clone()
    targets[rows] = (targets[rows] + 1 + further) % num_classes
    return replace(split, targets=targets)
