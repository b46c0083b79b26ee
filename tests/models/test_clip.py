"""A small CLIP with random weights; the tokenizer's vocabulary comes with open_clip."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from classgap import FeatureTap
from classgap.models import CosineClassifier, Frozen, build, expected_images
from classgap.models.clip import prompt_names

open_clip = pytest.importorskip("open_clip")

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 8, "heads": 2, "layers": 1}
TOWERS = {
    "vit": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16},
    "resnet": {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8},
}
CLASSES = ("cat", "aquarium_fish", "lorry")
SHAPE = (3, 32, 32)


@pytest.fixture(params=list(TOWERS))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory as open_clip publishes models: settings and weights."""
    config = {"model_cfg": {"embed_dim": 8, "vision_cfg": TOWERS[request.param], "text_cfg": TEXT}}
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    clip = open_clip.create_model(f"local-dir:{tmp_path}")
    torch.save(clip.state_dict(), tmp_path / "open_clip_pytorch_model.bin")
    return tmp_path


def made(folder: Path, options: str = "", shape: tuple[int, ...] = SHAPE) -> nn.Module:
    return build(f"open_clip:local-dir:{folder}{options}", num_classes=3, input_shape=shape, class_names=CLASSES)


def zero_shot(folder: Path, images: torch.Tensor, templates: list[str]) -> torch.Tensor:
    """With open_clip's own functions."""
    name = f"local-dir:{folder}"
    clip = open_clip.create_model(name).eval()
    names = [each.replace("_", " ") for each in CLASSES]
    with torch.no_grad():
        text = open_clip.build_zero_shot_classifier(clip, open_clip.get_tokenizer(name), names, templates)
        return clip.logit_scale.exp() * clip.encode_image(images, normalize=True) @ text


def test_it_starts_as_zero_shot_clip(folder: Path) -> None:
    images = torch.randn(4, *SHAPE)
    expected = zero_shot(folder, images, ["a photo of a {}."])
    torch.testing.assert_close(made(folder).eval()(images), expected, rtol=1e-4, atol=1e-4)


def test_several_templates_are_averaged_as_directions(folder: Path) -> None:
    images = torch.randn(2, *SHAPE)
    expected = zero_shot(folder, images, ["a {}.", "a bad photo of the {}."])
    logits = made(folder, ":template=a {}.|a bad photo of the {}.").eval()(images)
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


def test_the_templates_of_imagenet_are_known(folder: Path) -> None:
    images = torch.randn(2, *SHAPE)
    expected = zero_shot(folder, images, open_clip.OPENAI_IMAGENET_TEMPLATES)
    torch.testing.assert_close(made(folder, ":template=imagenet").eval()(images), expected, rtol=1e-4, atol=1e-4)


# WordNet IDs and the place of the class among ImageNet's 1,000, from the published list of the challenge.
IMAGENET = {"n03126707": 517, "n01440764": 0, "n02012849": 134, "n15075141": 999}


def test_wordnet_ids_get_the_curated_names() -> None:
    curated = open_clip.IMAGENET_CLASSNAMES
    assert [curated[place] for place in IMAGENET.values()] == [
        "construction crane",
        "tench",
        "crane bird",
        "toilet paper",
    ]
    wanted = [curated[place] for place in IMAGENET.values()]
    assert prompt_names(tuple(IMAGENET), "auto") == prompt_names(tuple(IMAGENET), "imagenet") == wanted
    assert prompt_names(tuple(IMAGENET), "data") == tuple(IMAGENET)


def test_other_classes_keep_their_names() -> None:
    thousand = tuple(f"class {number}" for number in range(1000))
    assert prompt_names(thousand, "auto") == thousand
    assert prompt_names(thousand, "imagenet") == open_clip.IMAGENET_CLASSNAMES
    assert prompt_names(CLASSES, "auto") == CLASSES
    assert prompt_names(("n00000000",), "auto") == ("n00000000",)
    with pytest.raises(ValueError, match=r"names=imagenet .*3 classes such as 'cat'"):
        prompt_names(CLASSES, "imagenet")
    with pytest.raises(ValueError, match=r"names=imagenet .*'n00000000'"):
        prompt_names(("n00000000",), "imagenet")


@pytest.mark.parametrize("folder", ["vit"], indirect=True)
def test_a_head_for_wordnet_ids_is_the_zero_shot_head_of_the_curated_names(folder: Path) -> None:
    ids = ("n01440764", "n02012849", "n03126707")
    text = f"open_clip:local-dir:{folder}"
    model = build(text, num_classes=3, input_shape=SHAPE, class_names=ids)
    named = build(text, num_classes=3, input_shape=SHAPE, class_names=("tench", "crane bird", "construction crane"))
    other = build(f"{text}:names=data", num_classes=3, input_shape=SHAPE, class_names=ids)
    assert torch.equal(model.head.weight, named.head.weight)
    assert not torch.equal(model.head.weight, other.head.weight)


def test_it_learns_everywhere_and_can_be_tapped(folder: Path) -> None:
    model = made(folder, ":learn-scale=yes")
    tap = FeatureTap(model)
    logits = model(torch.randn(4, *SHAPE))
    assert isinstance(tap.head, CosineClassifier)
    assert tap.features.shape == (4, 8)
    torch.testing.assert_close(tap.head(tap.features), logits)
    F.cross_entropy(logits, torch.tensor([0, 1, 2, 0])).backward()
    assert [name for name, value in model.named_parameters() if value.grad is None] == []
    assert {name.partition(".")[0] for name, _ in model.named_parameters()} == {"visual", "head"}  # no text encoder


def test_rows_have_the_norm_of_the_scale(folder: Path) -> None:
    head = made(folder).head
    scale = 1 / 0.07  # with which CLIP starts
    assert head.scale.item() == pytest.approx(scale, rel=1e-5)
    torch.testing.assert_close(head.weight.norm(dim=1), torch.full((3,), scale))


def test_frozen_leaves_the_head(folder: Path) -> None:
    model = made(folder, ":frozen=yes").train()
    assert isinstance(model, Frozen)
    assert [name for name, value in model.named_parameters() if value.requires_grad] == ["module.head.weight"]


def test_a_run_of_it_is_loaded_again(folder: Path, tmp_path: Path) -> None:
    model = made(folder)
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.yaml").write_text(f"model: open_clip:local-dir:{folder}\n")
    with torch.no_grad():
        model.head.weight.add_(1)
    save_file(model.state_dict(), run / "checkpoints" / "model.safetensors")
    loaded = build(f"checkpoint:{run}", num_classes=3, input_shape=SHAPE, class_names=CLASSES)
    images = torch.randn(2, *SHAPE)
    assert torch.equal(loaded.eval()(images), model.eval()(images))


@pytest.mark.parametrize("folder", ["vit"], indirect=True)
def test_other_sizes_are_supported(folder: Path) -> None:
    assert made(folder, shape=(3, 64, 64)).eval()(torch.randn(1, 3, 64, 64)).shape == (1, 3)


@pytest.mark.parametrize("folder", ["resnet"], indirect=True)
def test_weights_of_a_resnet_fit_one_size(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"(?s)\(3, 64, 64\): .*size mismatch"):
        made(folder, shape=(3, 64, 64))


@pytest.mark.parametrize("folder", ["vit"], indirect=True)
def test_a_directory_has_its_own_weights(folder: Path) -> None:
    with pytest.raises(ValueError, match="remove weights=openai"):
        made(folder, ":weights=openai")


@pytest.fixture
def tiny_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Registered as open_clip's own configurations are, so that the name is typed without a directory."""
    monkeypatch.setattr(open_clip.factory, "_MODEL_CONFIGS", dict(open_clip.factory._MODEL_CONFIGS))
    monkeypatch.setattr(open_clip.factory, "_MODEL_CONFIG_PATHS", list(open_clip.factory._MODEL_CONFIG_PATHS))
    (tmp_path / "tiny-clip.json").write_text(
        json.dumps({"embed_dim": 8, "vision_cfg": TOWERS["vit"], "text_cfg": TEXT})
    )
    open_clip.add_model_config(tmp_path / "tiny-clip.json")
    return "tiny-clip"


def test_weights_from_a_file(tiny_clip: str, tmp_path: Path) -> None:
    published = open_clip.create_model(tiny_clip)
    torch.save(published.state_dict(), tmp_path / "weights.pt")
    text = f"open_clip:{tiny_clip}:weights={tmp_path}/weights.pt"
    model = build(text, num_classes=3, input_shape=SHAPE, class_names=CLASSES)
    for name, value in published.visual.state_dict().items():
        assert torch.equal(model.visual.state_dict()[name], value), name


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", None),
        (":weights=half", ((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))),
        (":weights=gone.pt", (open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD)),
    ],
)
def test_a_run_expects_the_images_of_its_weights_and_does_not_load_them(
    options: str, expected: object, tiny_clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = {"half": {"url": "", "mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}}
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, tiny_clip, tag)
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.yaml").write_text(f"model: open_clip:{tiny_clip}{options}\n")
    model = build(f"open_clip:{tiny_clip}", num_classes=3, input_shape=SHAPE, class_names=CLASSES)
    save_file(model.state_dict(), run / "checkpoints" / "model.safetensors")
    loaded = build(f"checkpoint:{run}", num_classes=3, input_shape=SHAPE, class_names=CLASSES)
    assert expected_images(loaded) == expected
    images = torch.randn(2, *SHAPE)
    assert torch.equal(loaded.eval()(images), model.eval()(images))


def test_invalid_models_are_rejected() -> None:
    def assert_rejected(
        text: str, message: str, shape: tuple[int, ...] = SHAPE, names: tuple[str, ...] | None = CLASSES
    ) -> None:
        with pytest.raises(ValueError, match=message):
            build(text, num_classes=3, input_shape=shape, class_names=names)

    assert_rejected("open_clip:ViT-B-23", "no model 'ViT-B-23'; .* 'ViT-B")
    assert_rejected("open_clip:ViT-B-32", "square images with 3 channels", shape=(1, 32, 32))
    assert_rejected("open_clip:ViT-B-32", "square images with 3 channels", shape=(3, 32, 48))
    assert_rejected("open_clip:ViT-B-32", "requires images", shape=(40,))
    assert_rejected("open_clip:ViT-B-32", "requires class_names", names=None)
    assert_rejected("open_clip:ViT-B-32:template=a photo", r"template must contain .* got 'a photo'")
    assert_rejected("open_clip:ViT-B-32:weights=nothing", "weights=nothing .* ViT-B-32")
