"""Checks of all built-in networks."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from classgap import FeatureTap
from classgap.models import build, default_for, names
from classgap.models.preact_resnet import PreActResNet

IMAGE, SIGNAL, VECTOR, POINT = (3, 16, 16), (2, 40), (12,), (2,)
CASES = [
    ("resnet20", IMAGE),
    ("resnet32:width=5", IMAGE),
    ("resnet44:width=4", (1, 9, 11)),
    ("resnet56:width=4:shortcut=projection", IMAGE),
    ("resnet110:width=4", IMAGE),
    ("preact-resnet20", IMAGE),
    ("preact-resnet32:dropout=0.1", (1, 9, 11)),
    ("resnet18", IMAGE),
    ("lmdl-resnet18:features=12", (1, 9, 11)),
    ("conv1d:width=8", SIGNAL),
    ("mlp:width=8:depth=3", IMAGE),
    ("linear", SIGNAL),
    ("elm-mlp", POINT),
]
FAMILIES = ["resnet20", "preact-resnet20", "lmdl-resnet18", "conv1d", "mlp", "elm-mlp"]
SHAPE_OF = {"conv1d": SIGNAL, "mlp": VECTOR, "elm-mlp": POINT}


def made(text: str, shape: tuple[int, ...], classes: int = 5) -> nn.Module:
    return build(text, num_classes=classes, input_shape=shape)


def check_gradients_and_tap(model: nn.Module, shape: tuple[int, ...]) -> None:
    tap = FeatureTap(model)
    inputs = torch.randn(4, *shape)
    logits = model(inputs)
    assert logits.shape == (4, 5)
    assert tap.features.dim() == 2
    torch.testing.assert_close(tap.head(tap.features), logits)
    assert isinstance(tap.head, nn.Linear)
    F.cross_entropy(logits, torch.arange(4)).backward()
    still = [name for name, value in model.named_parameters() if value.grad is None or not value.grad.abs().sum() > 0]
    assert still == []


@pytest.mark.parametrize(("text", "shape"), CASES, ids=[text for text, _ in CASES])
def test_it_classifies_learns_everywhere_and_can_be_tapped(text: str, shape: tuple[int, ...]) -> None:
    model = made(text, shape)
    check_gradients_and_tap(model, shape)
    single = model.eval()(torch.randn(1, *shape))
    assert single.shape == (1, 5)
    assert single.isfinite().all()


def test_a_wide_network_classifies_and_learns_everywhere() -> None:
    check_gradients_and_tap(PreActResNet(1, 5, widen=2, dropout=0.3), IMAGE)


@pytest.mark.parametrize("text", FAMILIES)
def test_the_seed_decides_the_weights(text: str) -> None:
    shape = SHAPE_OF.get(text, IMAGE)
    states = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        states.append(made(text, shape).state_dict())
    first, again, other = states
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize("text", ["resnet20", "preact-resnet20", "lmdl-resnet18"])
def test_the_memory_format_changes_no_output(text: str) -> None:
    model = made(text, IMAGE).eval()
    images = torch.randn(2, *IMAGE)
    plain = model(images)
    model.to(memory_format=torch.channels_last)
    torch.testing.assert_close(model(images.to(memory_format=torch.channels_last)), plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("text", FAMILIES)
def test_it_compiles_to_one_graph(text: str) -> None:
    shape = SHAPE_OF.get(text, (3, 8, 8))
    model = made(text, shape).eval()
    inputs = torch.randn(2, *shape)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(inputs), model(inputs))


@pytest.mark.parametrize("text", ["resnet20", "preact-resnet32", "wrn-28-10", "resnet18", "lmdl-resnet18"])
def test_image_networks_reject_vectors(text: str) -> None:
    with pytest.raises(ValueError, match=rf"{text} requires images .*\(40,\)"):
        made(text, (40,))


def test_conv1d_rejects_images() -> None:
    with pytest.raises(ValueError, match=r"conv1d requires signals .*\(3, 32, 32\)"):
        made("conv1d", (3, 32, 32))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("resnet21", "did you mean 'resnet"),
        ("resnet20:width=0", "width must be at least 1, got 0"),
        ("resnet20:shortcut=conv", "shortcut must be one of 'pad', 'projection'; got 'conv'"),
        ("mlp:depth=0", "depth must be at least 1, got 0"),
        ("lmdl-resnet18:features=0", "features must be at least 1"),
        ("wrn-22-10:dropout=1", r"dropout must be in \[0, 1\), got 1\.0"),
        ("linear:width=3", "has no option 'width'"),
        ("timm", "timm:NAME"),
    ],
)
def test_wrong_names_and_options_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(text, IMAGE)


def test_wrong_numbers_are_rejected() -> None:
    with pytest.raises(ValueError, match="num_classes must be at least 1, got 0"):
        made("linear", VECTOR, classes=0)
    with pytest.raises(ValueError, match=r"input_shape must be .* got \(3, 0, 4\)"):
        made("linear", (3, 0, 4))
    with pytest.raises(ValueError, match=r"class_names .* num_classes = 2 .* got 1"):
        build("linear", num_classes=2, input_shape=VECTOR, class_names=["cat"])


@pytest.mark.parametrize(
    ("kind", "shape", "network"),
    [
        ("image", (1, 28, 28), "resnet32"),
        ("image", (3, 64, 64), "resnet32"),
        ("image", (3, 96, 64), "timm:resnet18"),
        ("signal", (1, 40), "conv1d"),
        ("vector", (2,), "elm-mlp"),
        ("vector", (3,), "mlp"),
    ],
)
def test_the_default_suits_the_data(kind: str, shape: tuple[int, ...], network: str) -> None:
    assert default_for(kind, shape) == network
    assert network.partition(":")[0] in names()
    assert build(network, num_classes=2, input_shape=shape).eval()(torch.zeros(1, *shape)).shape == (1, 2)


def test_an_unknown_kind_has_no_default() -> None:
    with pytest.raises(ValueError, match=r"kind must be .* got 'graph'"):
        default_for("graph", (2,))
