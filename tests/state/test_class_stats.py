import math

import pytest
import torch

from classgap.functional import group_by_class
from classgap.state import ClassStats


def update(stats: ClassStats, features: torch.Tensor, labels: list[int]) -> None:
    stats.update(features, group_by_class(torch.tensor(labels), num_classes=len(stats.size)))


def test_first_batch_sets_and_later_ones_blend() -> None:
    stats = ClassStats(3, decay=0.9)
    update(stats, torch.tensor([[1.0], [3.0], [5.0]]), [0, 0, 2])
    torch.testing.assert_close(stats.size, torch.tensor([5.0, 0.0, 25.0]))
    torch.testing.assert_close(stats.spread, torch.tensor([2.0, 0.0, 0.0]))
    update(stats, torch.tensor([[0.0], [4.0]]), [0, 0])
    torch.testing.assert_close(stats.size, torch.tensor([0.9 * 5 + 0.1 * 8, 0.0, 25.0]))
    torch.testing.assert_close(stats.spread, torch.tensor([0.9 * 2 + 0.1 * 8, 0.0, 0.0]))


def test_size_is_the_squared_norm_of_the_mean_plus_the_plain_spread() -> None:
    features = torch.randn(12, 4)
    stats = ClassStats(1, unbiased=False)
    update(stats, features, [0] * 12)
    mean_square = features.mean(dim=0).square().sum()
    torch.testing.assert_close(stats.size[0], mean_square + stats.spread[0])


@pytest.mark.parametrize("unbiased", [True, False])
def test_spread_of_small_batches(unbiased: bool) -> None:
    """With 1.3 samples a class and batch, the plain spread is far too small and the unbiased one is right."""
    classes, width, truth = 100, 8, 8.0
    stats = ClassStats(classes, decay=0.9, unbiased=unbiased)
    generator = torch.Generator().manual_seed(0)
    seen = []
    for step in range(300):
        labels = torch.randint(classes, (128,), generator=generator)
        stats.update(torch.randn(128, width, generator=generator), group_by_class(labels, classes))
        if step >= 50:
            seen.append(stats.mean_spread().item())
    mean = sum(seen) / len(seen)
    if unbiased:
        assert mean == pytest.approx(truth, rel=0.02)
    else:
        chances = {n: math.exp(-1.28) * 1.28**n / math.factorial(n) for n in range(1, 30)}
        shown = sum(chance * (n - 1) / n for n, chance in chances.items()) / sum(chances.values())
        assert shown < 0.3
        assert mean == pytest.approx(shown * truth, rel=0.05)


def test_single_samples_teach_the_unbiased_spread_nothing() -> None:
    stats = ClassStats(2)
    update(stats, torch.tensor([[1.0], [2.0]]), [0, 1])
    assert not stats.spread_seen.any()
    assert stats.mean_spread() == 0
    update(stats, torch.tensor([[0.0], [2.0]]), [0, 0])
    update(stats, torch.tensor([[9.0]]), [0])
    assert stats.spread.tolist() == [2.0, 0.0]
    assert stats.mean_spread() == 2.0


def test_a_batch_that_is_not_finite_changes_nothing() -> None:
    stats = ClassStats(2)
    update(stats, torch.tensor([[0.0], [2.0]]), [0, 0])
    before = {name: tensor.clone() for name, tensor in stats.state_dict().items()}
    features = torch.tensor([[torch.nan], [1.0], [1.0]])
    stats.update(features, group_by_class(torch.tensor([0, 0, 1]), 2), finite=torch.tensor(False))
    for name, tensor in stats.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)
