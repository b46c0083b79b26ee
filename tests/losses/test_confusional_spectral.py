import pytest
import torch
import torch.nn.functional as F

from classgap.functional import count_confusions, spectral_weights
from classgap.losses import ConfusionalSpectralLoss

LOGITS, TARGETS = torch.randn(8, 3), torch.tensor([0, 1, 2, 0, 1, 2, 0, -100])


def test_worked_example() -> None:
    expected = torch.tensor([[0.01, 2.01], [0.01, 0.01]])
    torch.testing.assert_close(spectral_weights(torch.tensor([[0.0, 2.0], [1.0, 0.0]])), expected)


def test_weights_follow_the_gradient_of_the_spectral_norm() -> None:
    confusion = torch.rand(4, 4, dtype=torch.float64).requires_grad_()
    torch.linalg.matrix_norm(confusion, ord=2).backward()
    slope = confusion.grad
    expected = 2 * (slope - slope.min()) / (slope.max() - slope.min()) + 0.01
    torch.testing.assert_close(spectral_weights(confusion.detach()), expected)


def test_confusions_are_counted_by_predicted_and_true_class() -> None:
    counts = torch.zeros(3, 3, dtype=torch.long)
    for row, target in zip(LOGITS.tolist(), TARGETS.tolist(), strict=True):
        if target >= 0:
            row[target] *= 0.9
            predicted = row.index(max(row))
            counts[predicted, target] += predicted != target
    assert counts.any()
    assert torch.equal(ConfusionalSpectralLoss(3).count_confusions(LOGITS, TARGETS), counts)


def test_narrowing_makes_narrow_wins_confusions() -> None:
    logits, targets = torch.tensor([[1.0, 0.95]]), torch.tensor([0])
    assert count_confusions(logits, targets)[1, 0] == 1
    assert not count_confusions(logits, targets, narrowing=0.0).any()


@pytest.mark.parametrize("counts", [None, torch.zeros(3, 3), torch.diag(torch.tensor([5.0, 6.0, 7.0]))])
def test_before_a_pass_or_without_confusions_it_is_cross_entropy(counts) -> None:
    loss = ConfusionalSpectralLoss(3)
    if counts is not None:
        loss.update_confusion(counts)
    torch.testing.assert_close(loss(LOGITS, TARGETS), F.cross_entropy(LOGITS, TARGETS))


def test_without_strength_it_is_cross_entropy() -> None:
    loss = ConfusionalSpectralLoss(3, strength=0)
    loss.update_confusion([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    torch.testing.assert_close(loss(LOGITS, TARGETS), F.cross_entropy(LOGITS, TARGETS))


@pytest.mark.parametrize("counts", [[[0.0, 1.0]], [[0.0, -1.0], [1.0, 0.0]], [[0.0, float("nan")], [1.0, 0.0]]])
def test_wrong_counts_are_rejected(counts) -> None:
    loss = ConfusionalSpectralLoss(2)
    with pytest.raises(ValueError, match="counts must be confusions by"):
        loss.update_confusion(counts)
    assert loss.pair_weights.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"strength must be in \[0, 1\]"):
        ConfusionalSpectralLoss(3, strength=1.5)
    with pytest.raises(ValueError, match="narrowing must be a finite number >= 0"):
        ConfusionalSpectralLoss(3, narrowing=-0.1)
