"""Training splits made harder on purpose: a long tail, wrong labels."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from classgap.data.dataset import Split
from classgap.data.sampling.keyed_random import keyed_bits, keyed_uniform
from classgap.data.splits import draw


def check_ratio(ratio: float) -> None:
    """Refuse what is no ratio of a large class to a small one."""
    if not 1 <= ratio < math.inf:
        raise ValueError(f"lt must be the first class's size over the last one's, 1 or more; got {ratio}.")


def check_noise(share: float) -> None:
    """Refuse what is no share of the labels."""
    if not 0 <= share <= 1:
        raise ValueError(f"noise must be a share between 0 and 1; got {share}.")


def long_tail_counts(head: int, ratio: float, num_classes: int) -> Tensor:
    """Samples of each class in the exponential long tail of Cao et al. (2019): ``int(head · (1/ratio)^(k/(K−1)))``.

    A class keeps at least one sample.

    >>> long_tail_counts(500, 100, 5).tolist()
    [500, 158, 50, 15, 5]
    """
    check_ratio(ratio)
    steps = max(num_classes - 1, 1)
    return torch.tensor([max(1, int(head * (1 / ratio) ** (k / steps))) for k in range(num_classes)])


def long_tail(split: Split, ratio: float, seed: int, num_classes: int) -> Split:
    """The first class keeps ``N // K`` samples, the last ``ratio`` times fewer, those between fall exponentially.

    N/K is what the published code takes; for balanced data it is the size of every class. Data that are imbalanced
    already follow the same counts as far as they go: a class that has fewer samples than its count keeps all.

    Args:
        split: the training split.
        ratio: first class's count over the last one's.
        seed: another one keeps other samples.
        num_classes: how many classes there are.
    """
    wanted = long_tail_counts(len(split) // num_classes, ratio, num_classes)
    return split.part(draw(split.targets, split.index, wanted, seed, "long tail"))


def label_noise(split: Split, share: float, seed: int, num_classes: int) -> Split:
    """Exactly ``round(share · N)`` samples, drawn from all alike, get another class, each other one equally likely.

    Args:
        split: the training split.
        share: of labels that become wrong.
        seed: another one changes others.
        num_classes: how many classes there are.

    >>> clean = Split.from_arrays(torch.zeros(10, 2), torch.arange(10) % 2)
    >>> noisy = label_noise(clean, 0.3, seed=0, num_classes=2)
    >>> int((noisy.targets != clean.targets).sum())
    3
    """
    check_noise(share)
    if num_classes < 2:
        raise ValueError("noise needs two classes; there is one.")
    order = keyed_bits(seed, 0, split.index, 1, stream="noise")[:, 0].argsort(stable=True)
    rows = order[: math.floor(share * len(split) + 0.5)]
    where = keyed_uniform(seed, 0, split.index[rows], 1, stream="noisy class", dtype=torch.float64)[:, 0]
    targets = split.targets.clone()
    targets[rows] = (targets[rows] + 1 + (where * (num_classes - 1)).long()) % num_classes
    return replace(split, targets=targets)
