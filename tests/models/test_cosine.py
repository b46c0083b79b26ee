import math

import pytest
import torch

from classgap import FeatureTap
from classgap.models import CosineClassifier


def test_logits_are_scaled_cosines() -> None:
    head = CosineClassifier(5, 3, scale=7.0)
    features = torch.randn(4, 5)
    logits = head(features)
    for row, feature in enumerate(features.tolist()):
        for column, weight in enumerate(head.weight.tolist()):
            product = sum(f * w for f, w in zip(feature, weight, strict=True))
            expected = 7 * product / (math.hypot(*feature) * math.hypot(*weight))
            assert logits[row, column].item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("scale", [30.0, 100.0])
def test_it_computes_in_float32_under_autocast_and_in_half_precision(scale: float) -> None:
    head, features = CosineClassifier(64, 10, scale=scale), torch.randn(200, 64)
    cosines = torch.cosine_similarity(features.double()[:, None], head.weight.double(), dim=2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = head(features)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits.double(), scale * cosines, rtol=1e-5, atol=1e-4)
    rounded = features.half()
    exact = head.half()(rounded)
    assert exact.dtype == torch.float32
    torch.testing.assert_close(exact, head.float()(rounded.float()), rtol=0, atol=0)


def test_zero_features_give_zero_logits_and_finite_gradients() -> None:
    head = CosineClassifier(5, 3)
    features = torch.zeros(2, 5, requires_grad=True)
    logits = head(features)
    assert not logits.any()
    logits.sum().backward()
    assert features.grad is not None
    assert features.grad.isfinite().all()


def test_the_scale_is_learned_only_on_request_and_always_saved() -> None:
    assert [name for name, _ in CosineClassifier(5, 3).named_parameters()] == ["weight"]
    learned = CosineClassifier(5, 3, scale=20.0, learn_scale=True)
    assert {name for name, _ in learned.named_parameters()} == {"weight", "scale"}
    fixed = CosineClassifier(5, 3)
    fixed.load_state_dict(learned.state_dict())
    assert fixed.scale.item() == 20
    features = torch.randn(2, 5)
    learned(features)[0, 0].backward()
    assert learned.scale.grad is not None
    torch.testing.assert_close(20 * learned.scale.grad, learned(features)[0, 0].detach())


def test_a_tap_finds_it() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), CosineClassifier(5, 3))
    tap = FeatureTap(model)
    logits = model(torch.randn(2, 4))
    assert tap.head is model[1]
    torch.testing.assert_close(tap.head(tap.features), logits)


def test_it_compiles_to_one_graph() -> None:
    head = CosineClassifier(5, 3)
    features = torch.randn(2, 5)
    compiled = torch.compile(head, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(features), head(features))


def test_a_scale_that_is_not_positive_is_rejected() -> None:
    with pytest.raises(ValueError, match="scale must be positive, got 0"):
        CosineClassifier(5, 3, scale=0)
