"""The networks match the papers: layers, parameter counts, formulas, initialization."""

import math

import pytest
import torch
from torch import Tensor, nn

from classgap.models import build
from classgap.models.cifar_resnet import BasicBlock
from classgap.models.preact_resnet import PreActBlock, PreActResNet
from classgap.models.resnet18 import ResNet18


def parameters(text: str, classes: int, shape: tuple[int, ...] = (3, 32, 32)) -> int:
    with torch.device("meta"):
        model = build(text, num_classes=classes, input_shape=shape)
    return sum(parameter.numel() for parameter in model.parameters())


def resnet_formula(depth: int, classes: int) -> int:
    """3×3 convolutions 9ab, batch norms 2b, no shortcuts, a linear layer."""
    n = (depth - 2) // 6
    total = 9 * 3 * 16 + 2 * 16
    for channels, before in ((16, 16), (32, 16), (64, 32)):
        total += 9 * before * channels + (2 * n - 1) * 9 * channels**2 + 2 * n * 2 * channels
    return total + 64 * classes + classes


def preact_formula(n: int, k: int, classes: int) -> int:
    """The same with 1×1 projections ab, and batch norms in front."""
    total, before = 9 * 3 * 16, 16
    for channels in (16 * k, 32 * k, 64 * k):
        total += 9 * before * channels + (2 * n - 1) * 9 * channels**2
        total += 2 * before + (2 * n - 1) * 2 * channels
        total += before * channels if before != channels else 0
        before = channels
    return total + 2 * before + before * classes + classes


@pytest.mark.parametrize(
    ("depth", "published", "millions"),
    [(20, 269722, 0.27), (32, 464154, 0.46), (44, 658586, 0.66), (56, 853018, 0.85), (110, 1727962, 1.7)],
)
def test_resnets_have_the_published_parameters(depth: int, published: int, millions: float) -> None:
    assert parameters(f"resnet{depth}", 10) == published == resnet_formula(depth, 10)
    assert parameters(f"resnet{depth}", 100) == resnet_formula(depth, 100)
    assert round(published / 1e6, 1 if depth == 110 else 2) == millions


@pytest.mark.parametrize("depth", [20, 32])
def test_projection_shortcuts_add_two_convolutions_with_batch_norm(depth: int) -> None:
    extra = (16 * 32 + 2 * 32) + (32 * 64 + 2 * 64)
    assert parameters(f"resnet{depth}:shortcut=projection", 100) == resnet_formula(depth, 100) + extra
    assert parameters(f"resnet{depth}:shortcut=pad", 100) == resnet_formula(depth, 100)


@pytest.mark.parametrize(("classes", "published"), [(10, 36479194), (100, 36536884)])
def test_wrn_28_10_has_the_published_parameters(classes: int, published: int) -> None:
    assert parameters("wrn-28-10", classes) == published == preact_formula(4, 10, classes)


def test_wrn_22_10_has_the_published_parameters() -> None:
    count = parameters("wrn-22-10", 10)
    assert count == preact_formula(3, 10, 10)
    assert round(count / 1e6, 1) == 26.8


@pytest.mark.parametrize("depth", [20, 32])
def test_preact_resnets_have_the_parameters_of_their_formula(depth: int) -> None:
    assert parameters(f"preact-resnet{depth}", 100) == preact_formula((depth - 2) // 6, 1, 100)


def test_resnet18_has_the_known_parameters_and_lmdl_adds_a_layer() -> None:
    assert parameters("resnet18", 10) == 11173962
    assert parameters("lmdl-resnet18", 10) == 11173962 - (512 * 10 + 10) + (512 * 30 + 30) + (30 * 10 + 10)


def test_depths_count_the_weighted_layers() -> None:
    for depth in (20, 32, 44, 56, 110):
        with torch.device("meta"):
            model = build(f"resnet{depth}", num_classes=10, input_shape=(3, 32, 32))
        assert sum(isinstance(part, (nn.Conv2d, nn.Linear)) for part in model.modules()) == depth
    with torch.device("meta"):
        wide = build("wrn-28-10", num_classes=10, input_shape=(3, 32, 32))
    convolutions = [part for part in wide.modules() if isinstance(part, nn.Conv2d)]
    assert len(convolutions) == 28  # the authors count three projections and not the linear layer
    assert [part.out_channels for part in convolutions if part.kernel_size == (1, 1)] == [160, 320, 640]


def test_the_stages_halve_the_image_twice() -> None:
    model = build("resnet20", num_classes=10, input_shape=(3, 32, 32))
    seen = {}
    for name in ("layer1", "layer2", "layer3"):
        model.get_submodule(name).register_forward_hook(lambda _m, _i, out, name=name: seen.update({name: out.shape}))
    model(torch.zeros(1, 3, 32, 32).expand(2, -1, -1, -1))
    assert seen == {"layer1": (2, 16, 32, 32), "layer2": (2, 32, 16, 16), "layer3": (2, 64, 8, 8)}


def silenced(block: nn.Module) -> nn.Module:
    """With its second convolution at zero a block is its shortcut."""
    nn.init.zeros_(block.conv2.weight)  # type: ignore[union-attr]
    return block.eval()


def test_option_a_takes_every_second_pixel_and_pads_zero_channels() -> None:
    x = torch.rand(2, 4, 5, 6)
    out = silenced(BasicBlock(4, 8, 2))(x)
    expected = torch.zeros(2, 8, 3, 3)
    for row in range(3):
        for column in range(3):
            expected[:, 2:6, row, column] = x[:, :, 2 * row, 2 * column]
    assert torch.equal(out, expected)
    assert torch.equal(silenced(BasicBlock(4, 4, 1))(x), x)


def test_option_b_matches_a_forward_pass_by_hand() -> None:
    torch.manual_seed(0)
    model = build("resnet20:shortcut=projection:width=4", num_classes=5, input_shape=(3, 8, 8)).eval()
    state = model.state_dict()
    for name, value in state.items():  # statistics and scales that batch norm does not start with
        if name.endswith(("running_var", "running_mean")) or ("bn" in name and name.endswith("weight")):
            value.uniform_(0.5, 1.5)

    def convolve(x: Tensor, name: str, stride: int, padding: int) -> Tensor:
        return nn.functional.conv2d(x, state[f"{name}.weight"], stride=stride, padding=padding)

    def normalize(x: Tensor, name: str) -> Tensor:
        mean, var, weight, bias = (
            state[f"{name}.{each}"][:, None, None] for each in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + 1e-5).sqrt() * weight + bias

    images = torch.randn(2, 3, 8, 8)
    x = normalize(convolve(images, "conv1", 1, 1), "bn1").clamp(min=0)
    for stage in (1, 2, 3):
        for block in range(3):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            out = normalize(convolve(x, f"{name}.conv1", stride, 1), f"{name}.bn1").clamp(min=0)
            out = normalize(convolve(out, f"{name}.conv2", 1, 1), f"{name}.bn2")
            if stride == 2:
                x = normalize(convolve(x, f"{name}.shortcut.0", 2, 0), f"{name}.shortcut.1")
            x = (out + x).clamp(min=0)
    expected = x.mean(dim=(2, 3)) @ state["fc.weight"].T + state["fc.bias"]
    torch.testing.assert_close(model(images), expected, rtol=1e-4, atol=1e-4)


def test_preact_shortcuts_are_the_identity_or_project_the_activated_input() -> None:
    x = torch.randn(2, 4, 6, 6)
    assert torch.equal(silenced(PreActBlock(4, 4, 1, 0.0))(x), x)
    block = silenced(PreActBlock(4, 8, 2, 0.0))
    active = (x / math.sqrt(1 + 1e-5)).clamp(min=0)[:, :, ::2, ::2]
    weight: Tensor = block.shortcut.weight[:, :, 0, 0]  # type: ignore[union-attr]
    torch.testing.assert_close(block(x), torch.einsum("oi,bihw->bohw", weight, active))


@pytest.mark.parametrize("text", ["resnet56", "preact-resnet32"])
def test_weights_are_he_normal(text: str) -> None:
    model = build(text, num_classes=200, input_shape=(3, 32, 32))
    for part in model.modules():
        if isinstance(part, (nn.Conv2d, nn.Linear)) and part.weight.numel() > 4000:
            wanted = math.sqrt(2 / part.weight[0].numel())
            assert part.weight.std().item() == pytest.approx(wanted, rel=0.06)
            assert part.weight.mean().item() == pytest.approx(0, abs=0.06 * wanted)
            assert part.bias is None or not part.bias.any()


def test_dropout_works_in_training_only() -> None:
    model = PreActResNet(1, 3, dropout=0.5)
    x = torch.randn(2, 3, 8, 8)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))


def test_lmdl_features_are_linear() -> None:
    model = ResNet18(10, features=30)
    pooled = torch.randn(64, 512)
    assert (model.embed(pooled) < 0).any()
    assert model.fc.in_features == 30


def test_conv1d_is_the_network_of_the_demo() -> None:
    torch.manual_seed(3)
    model = build("conv1d", num_classes=10, input_shape=(1, 40))
    torch.manual_seed(3)
    demo = nn.Sequential(
        nn.Conv1d(1, 64, 5, stride=2, padding=2), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Conv1d(64, 64, 5, stride=2, padding=2), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Conv1d(64, 64, 5, stride=2, padding=2), nn.BatchNorm1d(64), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    x = torch.randn(3, 1, 40)
    assert torch.equal(model(x), demo(x))
    assert list(model.state_dict()) == list(demo.state_dict())


def test_the_elm_network_has_16_8_and_2_units() -> None:
    model = build("elm-mlp", num_classes=2, input_shape=(2,))
    first, second, third, head = [part for part in model if isinstance(part, nn.Linear)]
    x = torch.randn(7, 2)
    by_hand = head(third(second(first(x).clamp(min=0)).clamp(min=0)))
    torch.testing.assert_close(model(x), by_hand)
    assert [part.out_features for part in (first, second, third)] == [16, 8, 2]
