"""Models of timm and torchvision; local files replace their downloads."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from classgap import FeatureTap
from classgap.models import Frozen, build, expected_images
from classgap.models.torchvision_model import torchvision_model

timm = pytest.importorskip("timm")
torchvision = pytest.importorskip("torchvision")

SMALL = "shufflenet_v2_x0_5"


def made(text: str, shape: tuple[int, ...] = (3, 32, 32), classes: int = 4) -> nn.Module:
    return build(text, num_classes=classes, input_shape=shape)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("timm:resnet18", (1, 32, 32)),
        ("timm:resnet18.a1_in1k:drop=0.2", (3, 32, 32)),
        ("timm:vit_tiny_patch16_224", (3, 32, 48)),
        ("torchvision:resnet18", (3, 32, 32)),
        (f"torchvision:{SMALL}", (3, 32, 32)),
        ("torchvision:mobilenet_v3_small", (3, 32, 32)),
    ],
)
def test_it_takes_these_images_and_can_be_tapped(text: str, shape: tuple[int, ...]) -> None:
    model = made(text, shape).eval()
    tap = FeatureTap(model)
    logits = model(torch.randn(2, *shape))
    assert logits.shape == (2, 4)
    torch.testing.assert_close(tap.head(tap.features), logits)


def test_parameters_are_those_of_the_library() -> None:
    count = sum(parameter.numel() for parameter in made("torchvision:resnet18", classes=1000).parameters())
    assert count == 11689512
    assert made("timm:resnet18:drop=0.2").drop_rate == 0.2


def test_drop_path_grows_linearly_over_the_blocks() -> None:
    model = made("timm:vit_tiny_patch16_224:drop_path=0.1")
    rates = [getattr(block.drop_path1, "drop_prob", 0.0) for block in model.blocks]
    assert rates == pytest.approx([0.1 * layer / 11 for layer in range(12)])
    assert made("timm:resnet18:drop_path=0.1").layer4[1].drop_path.drop_prob == pytest.approx(0.1)


def test_invalid_drop_path_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"drop_path must be in \[0, 1\), got 1\.0"):
        made("timm:resnet18:drop_path=1")
    with pytest.raises(ValueError, match=r"vgg11 has no stochastic depth; remove drop_path=0\.1"):
        made("timm:vgg11:drop_path=0.1")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("resnet18", ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))),
        ("efficientnet_v2_l", ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))),  # the only one that is not scaled as ImageNet
    ],
)
def test_torchvision_weights_have_image_statistics(name: str, wanted: tuple) -> None:
    with torch.device("meta"):  # its weights would take half a gigabyte
        model = torchvision_model(name, num_classes=4, input_shape=(3, 64, 64), pretrained=True, load=False)
    assert expected_images(model) == wanted


@pytest.mark.parametrize("text", ["timm:resnet18:frozen=yes", f"torchvision:{SMALL}:frozen=yes"])
def test_frozen_leaves_the_head(text: str) -> None:
    model = made(text).train()
    assert isinstance(model, Frozen)
    learning = {name for name, value in model.named_parameters() if value.requires_grad}
    assert learning == {"module.fc.weight", "module.fc.bias"}
    assert not model.module.conv1.training


@pytest.mark.filterwarnings("ignore:The default weight initialization:FutureWarning")
def test_auxiliary_heads_are_left_out() -> None:
    model = made("torchvision:googlenet", (3, 64, 64)).train()
    logits = model(torch.randn(2, 3, 64, 64))
    assert logits.shape == (2, 4)
    assert not [name for name, _ in model.named_parameters() if "aux" in name]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timm:resnett18", "no model 'resnett18'; .* 'resnet18'"),
        ("timm:resnet18.nope", r"no model 'resnet18\.nope': Invalid"),
        ("timm:zzzz", r"no model 'zzzz'; .*timm\.list_models"),
        ("torchvision:resnet81", "no classifier 'resnet81'; .* 'resnet"),
        ("torchvision:fcn_resnet50", "no classifier 'fcn_resnet50'"),
        ("timm:resnet18:pretrained=perhaps", "pretrained must be bool.* got 'perhaps'"),
    ],
)
def test_wrong_names_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(text)


@pytest.mark.parametrize("text", ["timm:resnet18", "torchvision:resnet18"])
def test_wrong_shapes_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=rf"{text} .*images.*\(40,\)"):
        made(text, (40,))


def test_an_unsupported_size_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"vit_b_32 .*224×224.* \(3, 32, 32\)"):
        made("torchvision:vit_b_32")


def test_torchvision_takes_three_channels_only() -> None:
    with pytest.raises(ValueError, match=r"3 channels.* \(1, 28, 28\).* timm:NAME"):
        made("torchvision:resnet18", (1, 28, 28))


@pytest.mark.parametrize(("text", "package"), [("timm:resnet18", "timm"), ("torchvision:resnet18", "torchvision")])
def test_a_missing_package_is_named(text: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ValueError, match=rf"{package}: pip install 'classgap\[vision\]'"):
        made(text)


def test_torchvision_weights_load_and_the_head_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = torchvision.models.get_model(SMALL)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    url = torchvision.models.get_model_weights(SMALL).DEFAULT.url
    torch.save(published.state_dict(), folder / url.rpartition("/")[2])

    model = made(f"torchvision:{SMALL}:pretrained=yes:frozen=yes")
    for name, value in published.state_dict().items():
        if not name.startswith("fc."):
            assert torch.equal(model.state_dict()[f"module.{name}"], value), name
    assert model(torch.randn(2, 3, 32, 32)).shape == (2, 4)
    assert expected_images(model) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert expected_images(made(f"torchvision:{SMALL}")) is None


def test_timm_weights_load_and_the_head_is_new(tmp_path: Path) -> None:
    published = timm.create_model("resnet18", num_classes=7)
    torch.save(published.state_dict(), tmp_path / "pytorch_model.bin")
    config = {
        "architecture": "resnet18",
        "num_classes": 7,
        "pretrained_cfg": {"num_classes": 7, "classifier": "fc", "mean": [0.1, 0.2, 0.3]},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))

    model = made(f"timm:local-dir:{tmp_path}:pretrained=yes")
    for name, value in published.state_dict().items():
        if not name.startswith("fc."):
            assert torch.equal(model.state_dict()[name], value), name
    assert model.fc.weight.shape == (4, 512)
    assert expected_images(model)[0] == (0.1, 0.2, 0.3)
