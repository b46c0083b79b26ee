import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from classgap.data.dataset import Split
from classgap.data.splits import hold_out

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=60)


def split_of(labels: list[int]) -> Split:
    return Split.from_arrays(torch.arange(len(labels)).float()[:, None], torch.tensor(labels))


@settings(deadline=None)
@given(LABELS.filter(lambda labels: max(Counter(labels).values()) > 1), st.floats(0.01, 0.99), st.integers(0, 5))
def test_hold_out_is_stratified(labels: list[int], fraction: float, seed: int) -> None:
    rest, held = hold_out(split_of(labels), fraction, seed, 5)
    for k, total in Counter(labels).items():
        wanted = 0 if total == 1 else min(max(1, math.floor(fraction * total + 0.5)), total - 1)
        assert int((held.targets == k).sum()) == wanted
    assert sorted([*rest.index.tolist(), *held.index.tolist()]) == list(range(len(labels)))
    for part in (rest, held):
        assert part.targets.tolist() == [labels[row] for row in part.index.tolist()]
        assert part.inputs[torch.arange(len(part))].flatten().tolist() == part.index.tolist()


def test_draws_ignore_other_classes_and_the_sample_order() -> None:
    labels = torch.tensor([0] * 40 + [1] * 40)
    split = Split(torch.zeros(80, 1), labels, torch.arange(80))
    mixed = split.subset(torch.randperm(80))
    alone = split.subset(torch.arange(40))
    held = [hold_out(each, 0.3, 7, 2)[1] for each in (split, mixed, alone)]
    ours = [set(each.index[each.targets == 0].tolist()) for each in held]
    assert ours[0] == ours[1] == ours[2]


def test_every_sample_is_equally_likely() -> None:
    split = split_of([0] * 50)
    often = torch.zeros(50)
    for seed in range(400):
        often[hold_out(split, 0.2, seed, 1)[1].index] += 1
    # 400 draws of probability 0.2: mean 80, deviation 8.
    assert often.mean() == 80
    assert often.min() > 48
    assert often.max() < 112


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan")])
def test_invalid_fractions_raise(fraction: float) -> None:
    with pytest.raises(ValueError, match=r"held-out fraction must be in \(0, 1\)"):
        hold_out(split_of([0, 0]), fraction, 0, 1)


def test_nothing_to_hold_out_raises() -> None:
    with pytest.raises(ValueError, match="no class has two"):
        hold_out(split_of([0, 1]), 0.5, 0, 2)
