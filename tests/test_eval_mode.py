"""What is in evaluation mode before stays in it, and nothing else does."""

import pytest
import torch
from torch import nn

from classgap._eval_mode import evaluating
from classgap.audit.io.inference import collect_predictions


def partly_frozen() -> nn.Module:
    frozen = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)).eval()
    frozen[0].train()  # a layer of a frozen part that trains all the same
    return nn.Sequential(frozen, nn.ReLU(), nn.Dropout(), nn.Linear(4, 3))


def modes(model: nn.Module) -> dict[str, bool]:
    return {name: module.training for name, module in model.named_modules()}


@pytest.mark.parametrize("training", [True, False])
def test_an_audit_between_epochs_leaves_every_layer_as_it_was(training: bool):
    model = partly_frozen()
    model.training = training
    before = modes(model)
    assert set(before.values()) == {True, False}
    collect_predictions(model, [(torch.randn(6, 5), torch.tensor([0, 1, 2, 0, 1, 2]))])
    assert modes(model) == before


def test_also_after_an_error():
    model = partly_frozen()
    before = modes(model)
    with pytest.raises(ValueError, match="a batch must be"):
        collect_predictions(model, [(torch.randn(6, 5),)])
    assert modes(model) == before


class Merging(nn.Module):
    """Does more in ``train`` than set the flag, as low-rank adapters do."""

    merged = False

    def train(self, mode: bool = True) -> nn.Module:
        self.merged = not mode
        return super().train(mode)


def test_train_and_eval_of_layers_are_called():
    model = nn.Sequential(Merging(), nn.Dropout().eval())
    with evaluating(model):
        assert model[0].merged
    assert not model[0].merged
    assert modes(model) == {"": True, "0": True, "1": False}


def test_a_model_inside_another_keeps_its_modes():
    inner = partly_frozen()
    outer = nn.Sequential(inner)
    before = modes(outer)
    with evaluating(inner, outer):
        assert not any(modes(outer).values())
    assert modes(outer) == before
