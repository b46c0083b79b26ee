"""Views, ensembles and their export, against probabilities averaged by hand."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from run_cases import short_refits, trained
from torch import Tensor, nn

from classgap.data import load
from classgap.remedies.fixed_model import Fix, load_fix
from classgap.remedies.modules import ClassAffine, Part
from classgap.remedies.networks import MeanNetwork, Network
from classgap.remedies.runs import read_runs
from classgap.remedies.sources import Source
from classgap.remedies.views import Views, shift_size


@pytest.fixture(scope="module", autouse=True)
def _short_refits() -> Iterator[None]:
    with short_refits():
        yield


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Source]:
    """Sources of two convolutional networks."""
    folder = tmp_path_factory.mktemp("runs")
    settings = {"model": "resnet20:width=4", "epochs": None, "max_steps": 20, "split_seed": 0}
    runs = [trained(folder / f"run{seed}", seed=seed, **settings) for seed in (0, 1)]
    return {source.name: source for source in read_runs(runs).sources}


@pytest.fixture(scope="module")
def images() -> Tensor:
    """Normalized test images."""
    data = load("digits")
    assert data.mean is not None
    assert data.std is not None
    pixels = data.test.inputs[torch.arange(len(data.test))].float() / 255
    return (pixels - data.mean[0]) / data.std[0]


def networks(source: Source) -> list[nn.Module]:
    """Networks of an ensemble in order."""
    return [module for module in source.module.modules() if type(module).__name__ == "Network"]


def shifted(images: Tensor, rows: int, columns: int) -> Tensor:
    """Move the content of each image by loops over pixels; positions outside are reflected."""
    height, width = images.shape[-2:]
    moved = torch.empty_like(images)
    for row in range(height):
        for column in range(width):
            places = []
            for place, size in ((row + rows, height), (column + columns, width)):
                place = abs(place)
                places.append(place if place < size else 2 * (size - 1) - place)
            moved[..., row, column] = images[..., places[0], places[1]]
    return moved


@torch.no_grad()
def mean_probabilities(models: list[nn.Module], views: list[Tensor]) -> Tensor:
    return torch.stack([model(view).softmax(dim=1) for model in models for view in views]).mean(dim=0)


def all_views(images: Tensor) -> list[Tensor]:
    moved = [shifted(images, *shift) for shift in ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))]
    return [*moved, *(torch.from_numpy(np.ascontiguousarray(each.numpy()[..., ::-1])) for each in moved)]


@pytest.mark.parametrize("prefix", ["", "ensemble+"])
def test_views_average_the_probabilities(sources: dict[str, Source], images: Tensor, prefix: str) -> None:
    views = all_views(images)
    models = networks(sources[f"{prefix}mirror"])
    assert len(models) == (2 if prefix else 1)
    for name, used in (("mirror", [views[0], views[5]]), ("ten-views", views)):
        source = sources[prefix + name]
        expected = mean_probabilities(models, used)
        assert source.test_logits_NK is not None
        torch.testing.assert_close(source.test_logits_NK.exp(), expected, atol=1e-5, rtol=1e-4)
        with torch.no_grad():
            torch.testing.assert_close(source.module(images).exp(), expected, atol=1e-5, rtol=1e-4)
        assert source.passes == len(models) * len(used)


def test_ensemble_averages_the_networks(sources: dict[str, Source], images: Tensor) -> None:
    source = sources["ensemble"]
    expected = mean_probabilities(networks(source), [images])
    assert source.test_logits_NK is not None
    torch.testing.assert_close(source.test_logits_NK.exp(), expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(source.module(images).exp(), expected, atol=1e-5, rtol=1e-4)
    assert dict(source.details)["models"] == ["run0", "run1"]


def test_shift_is_a_32nd_of_the_shorter_side() -> None:
    assert [shift_size((3, side, side)) for side in (8, 32, 64, 224)] == [1, 1, 2, 7]


@pytest.mark.parametrize("name", ["mirror", "ensemble+ten-views"])
def test_saved_fix_of_images(tmp_path: Path, sources: dict[str, Source], images: Tensor, name: str) -> None:
    source = sources[name]
    assert isinstance(source.module, Part)
    offsets = ClassAffine(torch.ones(10), torch.linspace(-1, 1, 10))
    details = dict(source.details)
    fix = Fix(name, source.inputs, [source.module, offsets], [str(k) for k in range(10)], details=details)
    fix.save(tmp_path / "fixed")
    loaded = load_fix(tmp_path / "fixed")
    assert (loaded.inputs, loaded.details["input_shape"]) == ("images", [1, 8, 8])
    mean, std = loaded.details["mean"], loaded.details["std"]
    assert (len(mean), len(std)) == (1, 1)
    assert f"{mean[0]:.3f}" in loaded.input_description
    with pytest.raises(ValueError, match=r"1, 8, 8.*got shape \(20, 1, 9, 9\)"):
        loaded(torch.zeros(20, 1, 9, 9))
    assert source.test_logits_NK is not None
    expected = source.test_logits_NK[:20] + torch.linspace(-1, 1, 10)
    torch.testing.assert_close(loaded(images[:20]), expected, atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(loaded(images[:20].numpy()), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["soup", "mirror", "mlp"])
def test_export_to_onnx(tmp_path: Path, sources: dict[str, Source], images: Tensor, name: str) -> None:
    if name == "mlp":  # ten views of a convolutional network take long to export
        config = {"model": "mlp:width=8", "num_classes": 10, "input_shape": [1, 8, 8]}
        heads = [{"head": "linear"}, {"head": "cosine"}]
        module: Part = MeanNetwork([Views(Network.from_config(config | head), "ten-views", 1) for head in heads])
    else:
        assert isinstance(sources[name].module, Part)
        module = sources[name].module
    fix = Fix(name, "images", [module], [str(k) for k in range(10)])
    path = tmp_path / "fix.onnx"
    batch = torch.export.Dim("batch")
    torch.onnx.export(fix, (images[:3],), path, dynamo=True, dynamic_shapes=({0: batch},), verbose=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, {session.get_inputs()[0].name: images[:7].numpy()})
    np.testing.assert_allclose(scores, fix(images[:7].numpy()), atol=1e-4, rtol=1e-4)
