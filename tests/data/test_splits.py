import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from classgap.data.dataset import Split
from classgap.data.splits import count_folds, hold_out

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


@settings(deadline=None)
@given(LABELS.filter(lambda labels: max(Counter(labels).values()) > 1), st.floats(0.05, 0.5), st.integers(0, 5))
def test_folds_are_disjoint_and_none_takes_all_samples_of_a_class(
    labels: list[int], fraction: float, seed: int
) -> None:
    folds = [hold_out(split_of(labels), fraction, seed, 5, fold) for fold in range(count_folds(fraction))]
    held = [row for _, part in folds for row in part.index.tolist()]
    first = hold_out(split_of(labels), fraction, seed, 5)[1]
    assert len(set(held)) == len(held)
    assert folds[0][1].index.tolist() == first.index.tolist()
    for k, total in Counter(labels).items():
        size = int((first.targets == k).sum())
        taken = [int((part.targets == k).sum()) for _, part in folds]
        assert taken == [min(size, max(0, total - fold * size)) for fold in range(len(folds))]
        assert all(k in rest.targets for rest, _ in folds)


def test_five_folds_of_a_fifth_hold_out_every_sample_once() -> None:
    split = split_of([0] * 20 + [1] * 35)
    held = [row for fold in range(5) for row in hold_out(split, 0.2, 3, 2, fold)[1].index.tolist()]
    assert sorted(held) == list(range(55))


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
