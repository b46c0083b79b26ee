"""Stratified random subsets that are the same on every machine.

Each sample gets a random number that depends only on the seed, the purpose and the sample. A subset takes the samples
with the smallest numbers of each class. It therefore depends neither on the other classes nor on the order of the
samples, and a smaller subset is contained in a larger one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.data.dataset import Split
from classgap.data.sampling.keyed_random import keyed_bits


def draw_per_class(targets: Tensor, identity: Tensor, counts: Tensor, seed: int, purpose: str) -> Tensor:
    """Draw ``counts[k]`` samples of each class k, or all if the class has fewer. Return their rows, sorted.

    Args:
        targets: Class of each sample, (N,).
        identity: Identifier of each sample, int64, (N,): its index in the source, or a hash of its name.
        counts: Samples to draw from each class, (K,).
        seed: Random seed.
        purpose: Name of the random stream. Draws for different purposes are independent.

    >>> draw_per_class(torch.tensor([0, 0, 1, 1, 1]), torch.arange(5), torch.tensor([2, 0]), 0, "example")
    tensor([0, 1])
    """
    by_number = keyed_bits(seed, 0, identity, 1, stream=purpose)[:, 0].argsort(stable=True)
    order = by_number[targets[by_number].argsort(stable=True)]
    sizes = torch.bincount(targets, minlength=len(counts))
    position = torch.arange(len(targets)) - (sizes.cumsum(0) - sizes)[targets[order]]
    return order[position < counts[targets[order]]].sort().values


def other_rows(rows: Tensor, total: int) -> Tensor:
    """Return the rows in 0, …, total − 1 that are not in ``rows``."""
    rest = torch.ones(total, dtype=torch.bool)
    rest[rows] = False
    return rest.nonzero().flatten()


def holdout_counts(counts: Tensor, fraction: float) -> Tensor:
    """Number of samples to hold out per class: ``fraction`` of them, rounded, at least one and never all.

    A class with a single sample keeps it.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"the held-out fraction must be in (0, 1), got {fraction}.")
    if not (counts >= 2).any():
        raise ValueError(
            "cannot hold out samples: no class has two. Use more data (a larger fraction=, a smaller imbalance=), "
            "provide a test or validation set, or hold out nothing."
        )
    rounded = (counts.double() * fraction + 0.5).floor().long()
    return torch.where(counts >= 2, rounded.clamp(min=1).minimum(counts - 1), 0)


def count_folds(fraction: float) -> int:
    """Number of disjoint parts that can be held out.

    >>> count_folds(0.2), count_folds(0.3)
    (5, 3)
    """
    return int(1 / fraction + 1e-9)


def hold_out(split: Split, fraction: float, seed: int, num_classes: int, fold: int = 0) -> tuple[Split, Split]:
    """Split off a stratified part.

    Each class contributes ``round(fraction · n_k)`` samples, at least one if it has two, and never its last.

    Args:
        split: Split to divide.
        fraction: Fraction of samples to hold out, in (0, 1).
        seed: Random seed.
        num_classes: Number of classes.
        fold: Which part to hold out, from 0 to :func:`count_folds` − 1. The parts of one seed are disjoint.

    Returns:
        The remaining split and the held-out split.

    >>> split = Split.from_arrays(torch.zeros(12, 2), torch.tensor([0] * 10 + [1] * 2))
    >>> rest, held_out = hold_out(split, 0.2, seed=0, num_classes=2)
    >>> rest.class_counts(2).tolist(), held_out.class_counts(2).tolist()
    ([8, 1], [2, 1])
    """
    counts = holdout_counts(split.class_counts(num_classes), fraction)
    rows = draw_per_class(split.targets, split.index, counts * (fold + 1), seed, "hold out")
    if fold:  # a smaller draw is contained in a larger one
        earlier = draw_per_class(split.targets, split.index, counts * fold, seed, "hold out")
        rows = rows[~torch.isin(rows, earlier)]
    return split.subset(other_rows(rows, len(split))), split.subset(rows)
