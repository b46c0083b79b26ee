"""Parts of a split in which every class has its share, drawn the same way everywhere and always.

Each sample gets a number that depends on the seed, the purpose and the sample alone; a part takes the samples of a
class with the smallest numbers. So what is drawn in one class does not depend on the others, nor on the order of the
samples, and a smaller part of the same data lies inside a larger one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.data.dataset import Split
from classgap.data.sampling.keyed_random import keyed_bits


def draw(targets: Tensor, identity: Tensor, wanted: Tensor, seed: int, purpose: str) -> Tensor:
    """Rows of ``wanted[k]`` samples of each class k, in ascending order; fewer where a class has fewer.

    Args:
        targets: classes, (N,).
        identity: what a sample is known by, (N,), int64: its number in the source, or a hash of its name.
        wanted: how many of each class, (K,).
        seed: another one draws others.
        purpose: draws for different purposes are independent.

    >>> draw(torch.tensor([0, 0, 1, 1, 1]), torch.arange(5), torch.tensor([2, 0]), seed=0, purpose="example")
    tensor([0, 1])
    """
    by_number = keyed_bits(seed, 0, identity, 1, stream=purpose)[:, 0].argsort(stable=True)
    order = by_number[targets[by_number].argsort(stable=True)]
    counts = torch.bincount(targets, minlength=len(wanted))
    place = torch.arange(len(targets)) - (counts.cumsum(0) - counts)[targets[order]]
    return order[place < wanted[targets[order]]].sort().values


def held_counts(counts: Tensor, share: float) -> Tensor:
    """Samples of each class to hold out: ``share`` of them, rounded; of two or more at least one and not all."""
    if not 0 < share < 1:
        raise ValueError(f"share to hold out must lie between 0 and 1; got {share}.")
    if not (counts >= 2).any():
        raise ValueError(
            "nothing can be held out, as no class has two samples; keep more of the data (a larger fraction, a smaller "
            "lt), bring a test or validation set of your own, or hold out nothing."
        )
    rounded = (counts.double() * share + 0.5).floor().long()
    return torch.where(counts >= 2, rounded.clamp(min=1).minimum(counts - 1), 0)


def hold_out(split: Split, share: float, seed: int, num_classes: int) -> tuple[Split, Split]:
    """Part a split in two, in each class alike.

    Each class gives ``round(share · n_k)`` samples, at least one if it has two, and never its last.

    Args:
        split: what is parted.
        share: of the samples that are held out, between 0 and 1.
        seed: another one holds out others.
        num_classes: how many classes there are.

    Returns:
        The rest and the part held out.

    >>> split = Split.from_arrays(torch.zeros(12, 2), torch.tensor([0] * 10 + [1] * 2))
    >>> rest, held = hold_out(split, 0.2, seed=0, num_classes=2)
    >>> rest.counts(2).tolist(), held.counts(2).tolist()
    ([8, 1], [2, 1])
    """
    wanted = held_counts(split.counts(num_classes), share)
    rows = draw(split.targets, split.index, wanted, seed, "hold out")
    return split.part(_others(rows, len(split))), split.part(rows)


def _others(rows: Tensor, total: int) -> Tensor:
    left = torch.ones(total, dtype=torch.bool)
    left[rows] = False
    return left.nonzero().flatten()


def check_fraction(share: float) -> None:
    """Refuse what is no part of a whole."""
    if not 0 < share <= 1:
        raise ValueError(f"fraction must be above 0 and at most 1; got {share}.")


def fraction(split: Split, share: float, seed: int, num_classes: int) -> Split:
    """A stratified part: ``round(share · n_k)`` samples of each class, at least one of a class that has any.

    >>> split = Split.from_arrays(torch.zeros(12, 2), torch.tensor([0] * 10 + [1] * 2))
    >>> fraction(split, 0.2, seed=0, num_classes=2).counts(2).tolist()
    [2, 1]
    """
    check_fraction(share)
    counts = split.counts(num_classes)
    wanted = (counts.double() * share + 0.5).floor().long().clamp(min=1)
    return split.part(draw(split.targets, split.index, wanted, seed, "fraction"))
