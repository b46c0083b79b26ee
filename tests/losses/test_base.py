import pytest
import torch
import torch.nn.functional as F
from torch import nn

from classgap.losses import ClassLoss, CrossEntropyLoss, MR2Loss, Part


class Halves(ClassLoss):
    """Two parts with different weights, to test the reduction alone."""

    def parts(self, batch) -> dict[str, Part]:
        valid = (batch.labels_B >= 0).float()
        return {"one": Part(batch.logits_BK[:, 0] * valid), "two": Part(batch.logits_BK[:, 1] * valid, 0.5)}


LOGITS = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
TARGETS = torch.tensor([0, 1, -100])


@pytest.mark.parametrize(("reduction", "expected"), [("mean", 9.0), ("sum", 18.0), ("none", [6.0, 12.0, 0.0])])
def test_reductions_exclude_ignored_samples(reduction: str, expected) -> None:
    loss = Halves(2, reduction=reduction)
    assert loss(LOGITS, TARGETS).tolist() == expected
    scale = 1 if reduction == "sum" else 2
    assert {name: term.item() * scale for name, term in loss.terms.items()} == {"one": 3.0, "two": 30.0}


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_terms_stay_when_a_caller_changes_the_value_in_place(reduction: str) -> None:
    """A loss of one part is its part: they may not share memory."""
    loss = CrossEntropyLoss(2, reduction=reduction)
    value = loss(LOGITS, TARGETS)
    expected = F.cross_entropy(LOGITS, TARGETS, reduction=reduction)
    value /= 4
    torch.testing.assert_close(value, expected / 4)
    torch.testing.assert_close(loss.terms["cross_entropy"], expected)


def test_weights_do_not_change_the_divisor() -> None:
    weight = torch.tensor([2.0, 2.0, 5.0])
    assert Halves(2)(LOGITS, TARGETS, sample_weight=weight) == 2 * Halves(2)(LOGITS, TARGETS)


def test_frozen_ends_even_after_an_error_and_nests() -> None:
    loss = MR2Loss(2)
    with pytest.raises(RuntimeError), loss.frozen():
        raise RuntimeError
    assert loss.updates
    with loss.frozen():
        with loss.frozen():
            pass
        assert not loss.updates
    assert not loss.eval().updates


def test_a_loss_without_parts_raises() -> None:
    with pytest.raises(TypeError, match=r"ClassLoss must define parts\(batch\)"):
        ClassLoss(2)(LOGITS, TARGETS)


def test_three_lines_train_a_model() -> None:
    """The use that the README shows: features reach the loss, gradients the first layer."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    import classgap as cg

    tap, loss = cg.FeatureTap(model), cg.losses.MR2Loss(num_classes=3)
    x, y = torch.randn(12, 4), torch.arange(12) % 3
    logits = model(x)
    loss(logits, y, features=tap.features).backward()
    assert model[0].weight.grad.any()


@pytest.mark.slow  # generates and compiles C++
def test_a_loss_of_one_part_keeps_its_gradient_when_compiled() -> None:
    """Code generation once took the detached term for the loss, which it equals."""
    loss = torch.compile(MR2Loss(2, logit="none", strength=0), fullgraph=True)
    logits = LOGITS.clone().requires_grad_()
    loss(logits, TARGETS).backward()
    assert logits.grad[:2].any()
