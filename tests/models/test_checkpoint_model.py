"""Weights from checkpoints of all layouts, written as their original code writes them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from classgap.losses import GaussianMixtureHead
from classgap.models import Frozen, build, expected_images
from classgap.models.checkpoint import load_weights
from classgap.models.cosine import CosineClassifier

SHAPE = (3, 8, 8)
NETWORK = "resnet20:width=4"
State = dict[str, Tensor]


def made(text: str, classes: int = 5) -> nn.Module:
    return build(text, num_classes=classes, input_shape=SHAPE)


def saved_state(classes: int = 5) -> State:
    """Of a network whose every entry, buffers too, differs from a new one's."""
    model = made("resnet20", classes)
    return {
        name: torch.randn_like(value) if value.is_floating_point() else value + 7
        for name, value in model.state_dict().items()
    }


def prefixed(state: State, prefix: str) -> State:
    return {prefix + name: value for name, value in state.items()}


def same(model: nn.Module, state: State, *, but: str = "") -> bool:
    loaded = model.state_dict()
    return all(torch.equal(loaded[name], state[name]) for name in loaded if not (but and name.startswith(but)))


LAYOUTS: dict[str, Any] = {
    "plain": lambda state: state,
    "state_dict": lambda state: {"epoch": 3, "state_dict": state},
    "model": lambda state: {"model": state, "optimizer": {"lr": 0.1}},
    "model_state_dict": lambda state: {"model_state_dict": state},
    "data parallel": lambda state: {"state_dict": prefixed(state, "module.")},
    "compiled": lambda state: prefixed(state, "_orig_mod."),
    "both": lambda state: prefixed(state, "module._orig_mod."),
    "backbone": lambda state: prefixed(state, "backbone.") | {"projector.weight": torch.zeros(3)},
    "encoder": lambda state: {"state_dict": prefixed(state, "model.encoder.")},
    "other head name": lambda state: {name.replace("fc.", "linear."): value for name, value in state.items()},
    "no counters": lambda state: {name: value for name, value in state.items() if "num_batches" not in name},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_layouts_are_read(layout: str, tmp_path: Path) -> None:
    state = saved_state()
    torch.save(LAYOUTS[layout](state), tmp_path / "weights.pth")
    model = made(f"checkpoint:{tmp_path}/weights.pth:model=resnet20")
    kept = state if layout != "no counters" else state | {n: v - 7 for n, v in state.items() if "num_batches" in n}
    assert same(model, kept)


def test_safetensors_are_read(tmp_path: Path) -> None:
    state = saved_state()
    save_file(prefixed(state, "module."), tmp_path / "weights.safetensors")
    assert same(made(f"checkpoint:{tmp_path}/weights.safetensors:model=resnet20"), state)


def test_a_head_of_another_width_is_new_and_small(tmp_path: Path) -> None:
    state = saved_state(classes=9)
    torch.save(state, tmp_path / "weights.pt")
    model = made(f"checkpoint:{tmp_path}/weights.pt:model=resnet20")
    assert same(model, state, but="fc.")
    assert model.fc.weight.shape == (5, 64)
    assert model.fc.weight.std().item() == pytest.approx(0.01, rel=0.15)
    assert not model.fc.bias.any()


def moco_file(path: Path, classes: int, *, deep_head: bool) -> State:
    """As MoCo writes it: queried and key encoder, a queue, a head of its own, and the network's name."""
    torchvision = pytest.importorskip("torchvision")
    queried = torchvision.models.resnet18(num_classes=classes).state_dict()
    head = {name: queried.pop(name) for name in ("fc.weight", "fc.bias")}
    if deep_head:
        head = {"fc.0.weight": torch.zeros(512, 512), "fc.0.bias": torch.zeros(512)} | {
            name.replace("fc.", "fc.2."): value for name, value in head.items()
        }
    keys = {name: torch.zeros_like(value) for name, value in (queried | head).items()}
    state = prefixed(queried | head, "module.encoder_q.") | prefixed(keys, "module.encoder_k.")
    state |= {"module.queue": torch.zeros(4, 6), "module.queue_ptr": torch.zeros(1, dtype=torch.long)}
    torch.save({"epoch": 800, "arch": "resnet18", "state_dict": state, "optimizer": {"param_groups": []}}, path)
    return queried


@pytest.mark.parametrize("deep_head", [False, True])
def test_moco_files_give_a_frozen_backbone_and_a_new_head(deep_head: bool, tmp_path: Path) -> None:
    # As many classes as its head has outputs: they are still not classes.
    queried = moco_file(tmp_path / "moco_v2.pth.tar", classes=5, deep_head=deep_head)
    probe = made(f"checkpoint:{tmp_path}/moco_v2.pth.tar:frozen=yes").train()
    assert isinstance(probe, Frozen)
    assert same(probe.module, queried, but="fc.")
    assert {name for name, value in probe.named_parameters() if value.requires_grad} == {
        "module.fc.weight",
        "module.fc.bias",
    }
    assert not probe.module.bn1.training
    assert probe.module.fc.weight.std().item() == pytest.approx(0.01, rel=0.1)


def test_a_library_model_is_written_with_a_dot(tmp_path: Path) -> None:
    queried = moco_file(tmp_path / "moco.pth", classes=5, deep_head=True)
    for model in ("torchvision.resnet18", "timm.resnet18.a1_in1k"):
        assert same(made(f"checkpoint:{tmp_path}/moco.pth:model={model}"), queried, but="fc.")


def test_a_network_with_its_own_encoder_is_read_completely(tmp_path: Path) -> None:
    models = pytest.importorskip("torchvision").models
    state = models.VisionTransformer(32, 16, 1, 2, 8, 16, num_classes=5).state_dict()
    assert any(name.startswith("encoder.") for name in state)
    network = models.VisionTransformer(32, 16, 1, 2, 8, 16, num_classes=5)
    load_weights(network, state, source="a file")
    assert same(network, state)


def run_directory(path: Path, files: dict[str, State], model: str = NETWORK) -> Path:
    (path / "checkpoints").mkdir(parents=True)
    (path / "config.yaml").write_text(f"model: {model}\nmethod: mr2\n")
    for name, state in files.items():
        save_file(state, path / "checkpoints" / f"{name}.safetensors")
    return path


def test_a_run_provides_its_selected_weights(tmp_path: Path) -> None:
    best, chosen = made(NETWORK).state_dict(), made(NETWORK).state_dict()
    run = run_directory(tmp_path / "run", {"best": best, "model": chosen})
    assert same(made(f"checkpoint:{run}"), chosen)


def test_an_unfinished_run_has_no_weights(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", {"best": made(NETWORK).state_dict()})
    with pytest.raises(ValueError, match="not finished"):
        made(f"checkpoint:{run}")


def test_a_frozen_run_and_one_with_published_weights_need_no_download(tmp_path: Path) -> None:
    probe = made("torchvision:resnet18:frozen=yes")
    run = run_directory(
        tmp_path / "run", {"model": probe.state_dict()}, "torchvision:resnet18:pretrained=yes:frozen=yes"
    )
    loaded = made(f"checkpoint:{run}")
    assert not isinstance(loaded, Frozen)
    assert same(loaded, probe.module.state_dict())
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert expected_images(loaded) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@pytest.mark.parametrize(
    "text",
    [
        "timm:test_resnet.r160_in1k:pretrained=yes",
        "timm:test_vit.r160_in1k:pretrained=yes:frozen=yes",
        "timm:test_resnet.r160_in1k",
    ],
)
def test_a_run_of_timm_expects_the_images_of_its_weights(text: str, tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    plain = text.split(":pretrained")[0]
    run = run_directory(tmp_path / "run", {"model": made(plain).state_dict()}, text)
    published = timm.get_pretrained_cfg(plain.removeprefix("timm:"))
    wanted = (published.mean, published.std) if "pretrained" in text else None
    assert expected_images(made(f"checkpoint:{run}")) == wanted
    again = run_directory(tmp_path / "again", {"model": made(plain).state_dict()}, f"checkpoint:{run}")
    assert expected_images(made(f"checkpoint:{again}")) == wanted  # of a run that started from that run


@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_a_run_of_torchvision_scales_its_images_again_where_the_published_weights_do(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torchvision")
    plain = build(f"torchvision:{name}", num_classes=5, input_shape=(3, 75, 75))
    run = run_directory(tmp_path / "run", {"model": plain.state_dict()}, f"torchvision:{name}:pretrained=yes")
    loaded = build(f"checkpoint:{run}", num_classes=5, input_shape=(3, 75, 75))
    assert (plain.transform_input, loaded.transform_input) == (False, True)


HEADS: dict[str, Any] = {
    "ldam": lambda: CosineClassifier(16, 5, 30.0),
    "lgm": lambda: GaussianMixtureHead(16, 5),
    "lgm:variances=learned": lambda: GaussianMixtureHead(16, 5, variances="learned"),
}


@pytest.mark.parametrize("method", HEADS)
def test_a_head_of_another_type_is_not_dropped_silently(method: str, tmp_path: Path) -> None:
    trained = made(NETWORK)
    trained.fc = HEADS[method]()
    run = run_directory(tmp_path / "run", {"model": trained.state_dict()})
    with pytest.raises(ValueError, match=r"5 classes .*fc\.weight \(5, 16\).*head=new"):
        made(f"checkpoint:{run}")
    loaded = made(f"checkpoint:{run}:head=new")
    assert same(loaded, trained.state_dict(), but="fc.")
    assert loaded.fc.weight.std().item() == pytest.approx(0.01, rel=0.4)
    assert same(made(f"checkpoint:{run}", 7), trained.state_dict(), but="fc.")  # other classes need a new one anyway


def test_a_matching_head_can_be_reinitialized(tmp_path: Path) -> None:
    state = saved_state()
    torch.save(state, tmp_path / "weights.pth")
    model = made(f"checkpoint:{tmp_path}/weights.pth:model=resnet20:head=new")
    assert same(model, state, but="fc.")
    assert not torch.equal(model.fc.weight, state["fc.weight"])
    with pytest.raises(ValueError, match="head must be kept or new, got 'old'"):
        made(f"checkpoint:{tmp_path}/weights.pth:model=resnet20:head=old")


def test_weights_that_do_not_fit_are_named(tmp_path: Path) -> None:
    state = saved_state()
    file = tmp_path / "weights.pth"
    del state["layer1.0.conv1.weight"]
    state["extra.weight"] = torch.zeros(1)
    state["conv1.weight"] = torch.zeros(16, 1, 3, 3)
    torch.save(state, file)
    with pytest.raises(ValueError, match="do not fit CifarResNet") as caught:
        made(f"checkpoint:{file}:model=resnet20")
    for part in ("missing: layer1.0.conv1.weight;", "unexpected: extra.weight;", "shape: conv1.weight."):
        assert part in str(caught.value)
    with pytest.raises(ValueError, match=r"missing: .* and \d+ more"):
        made(f"checkpoint:{file}:model=resnet32")


class NotWeights:
    pass


def test_files_without_weights_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"missing\.pth' is neither a file nor a run"):
        made(f"checkpoint:{tmp_path}/missing.pth:model=resnet20")
    with pytest.raises(ValueError, match=r"config\.yaml is missing"):
        made(f"checkpoint:{tmp_path}")
    with pytest.raises(ValueError, match=r"checkpoints/model\.safetensors is missing"):
        made(f"checkpoint:{run_directory(tmp_path / 'run', {})}")
    for content, message in (
        ({"epoch": 3}, "no state dict.* keys are: epoch"),
        ({}, "keys are: none"),
        ([torch.zeros(1)], "must contain a state dict, got list"),
        ({"model": NotWeights()}, "only tensors and plain Python values"),
    ):
        torch.save(content, tmp_path / "odd.pth")
        with pytest.raises(ValueError, match=message):
            made(f"checkpoint:{tmp_path}/odd.pth:model=resnet20")
    (tmp_path / "text.pth").write_text("hello")
    with pytest.raises(ValueError, match="cannot be read as weights"):
        made(f"checkpoint:{tmp_path}/text.pth:model=resnet20")


def test_a_file_without_a_network_name_is_rejected(tmp_path: Path) -> None:
    torch.save(saved_state(), tmp_path / "weights.pth")
    with pytest.raises(ValueError, match=r"weights\.pth:model=NAME"):
        made(f"checkpoint:{tmp_path}/weights.pth")
    with pytest.raises(ValueError, match="unknown model 'resnet50'"):
        made(f"checkpoint:{tmp_path}/weights.pth:model=resnet50")
