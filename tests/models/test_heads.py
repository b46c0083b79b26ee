import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from classgap import FeatureTap
from classgap.models import CosineClassifier, Frozen, build
from classgap.models.heads import exchange_head, head_name, head_of, linear_head


def probe() -> Frozen:
    return Frozen(build("resnet20:width=4", num_classes=3, input_shape=(3, 8, 8)))


def test_training_changes_the_head_only() -> None:
    model = probe().train()
    before = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for _ in range(2):
        F.cross_entropy(model(torch.randn(4, 3, 8, 8)), torch.tensor([0, 1, 2, 0])).backward()
        optimizer.step()
    after = model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"module.fc.weight", "module.fc.bias"}


def test_the_mode_of_the_head_alone_follows() -> None:
    model = probe()
    for mode in (True, False, True):
        model.train(mode)
        assert model.training is mode
        assert [name for name, part in model.module.named_modules() if part.training] == (["fc"] if mode else [])


def test_a_copy_and_an_outer_module_keep_it_frozen() -> None:
    outer = nn.Sequential(copy.deepcopy(probe())).train()
    assert not outer[0].module.bn1.training
    assert outer[0].head.training


def test_a_tap_and_the_compiler_look_through() -> None:
    model = probe().train()
    tap = FeatureTap(model)
    images = torch.randn(2, 3, 8, 8)
    logits = model(images)
    assert tap.head is model.head
    torch.testing.assert_close(tap.head(tap.features), logits)
    assert not tap.features.requires_grad
    tap.remove()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(images), logits)


def test_a_nested_head_is_named_and_replaced() -> None:
    model = nn.Module()
    model.classifier = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 10))
    assert head_name(model) == "classifier.2"
    other = nn.Linear(6, 3)
    exchange_head(model, other)
    assert model.classifier[2] is head_of(model) is linear_head(model, "this test") is other
    assert model.classifier[0].weight.shape == (6, 4)


def test_a_head_that_is_not_linear_is_rejected_by_name() -> None:
    with pytest.raises(ValueError, match=r"this test .*linear.* CosineClassifier"):
        linear_head(nn.Sequential(nn.Linear(4, 6), CosineClassifier(6, 3)), "this test")


def test_a_model_without_a_head_cannot_be_probed() -> None:
    with pytest.raises(ValueError, match="no single head"):
        Frozen(nn.Conv2d(3, 4, 1))
