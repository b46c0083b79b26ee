"""Weight averages against direct computations."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from run_cases import short_refits, stored, trained
from torch import nn

from classgap.data import load
from classgap.remedies.runs import read_runs
from classgap.remedies.soup import recompute_batch_norm

SETTINGS = {"model": "resnet20:width=4", "epochs": None, "max_steps": 10, "split_seed": 0}


@pytest.fixture(scope="module", autouse=True)
def _short_refits() -> Iterator[None]:
    with short_refits():
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [trained(folder / f"run{seed}", seed=seed, **SETTINGS) for seed in (0, 1, 2)]


def test_weights_are_means_and_statistics_are_recomputed(runs: list[Path]) -> None:
    soup = next(source for source in read_runs(runs).sources if source.name == "soup").module
    found = soup.state_dict()
    weights = [stored(run / "checkpoints" / "model.safetensors") for run in runs]
    statistics = [name for name in weights[0] if "running" in name]
    assert statistics
    for name, tensor in weights[0].items():
        if name not in statistics and tensor.is_floating_point():
            expected = sum(each[name].double() for each in weights) / 3
            torch.testing.assert_close(found[f"module.{name}"], expected.float())

    # The first layer sees the training images only: its mean over all of them does not depend on the batches.
    data = load("digits")
    assert data.mean is not None
    assert data.std is not None
    held_out = stored(runs[0] / "val_predictions.safetensors")["index"]
    train = data.train.subset((~torch.isin(data.train.index, held_out)).nonzero().flatten())
    images = (train.inputs[torch.arange(len(train))].float() / 255 - data.mean[0]) / data.std[0]
    convolution = next(each for each in soup.modules() if isinstance(each, nn.Conv2d))
    norm = next(each for each in soup.modules() if isinstance(each, nn.BatchNorm2d))
    outputs = convolution(images)
    torch.testing.assert_close(norm.running_mean, outputs.mean(dim=(0, 2, 3)), atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(norm.running_var, outputs.var(dim=(0, 2, 3)), atol=1e-2, rtol=2e-2)
    means = [sum(each[name] for each in weights) / 3 for name in statistics]
    assert any(not torch.allclose(found[f"module.{n}"], mean) for n, mean in zip(statistics, means, strict=True))


def test_one_batch_gives_the_statistics_of_a_full_pass() -> None:
    model = nn.Sequential(
        nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2), nn.BatchNorm1d(2)
    )
    model.eval()
    inputs = torch.randn(50, 3)
    recompute_batch_norm(model, [inputs, inputs[:1]])  # a batch of one sample has no variance
    hidden = model[0](inputs)
    torch.testing.assert_close(model[1].running_mean, hidden.mean(dim=0))
    torch.testing.assert_close(model[1].running_var, hidden.var(dim=0))
    unit = (hidden - hidden.mean(dim=0)) / (hidden.var(dim=0, unbiased=False) + model[1].eps).sqrt()
    last = model[4](torch.relu(unit * model[1].weight + model[1].bias))  # without dropout
    torch.testing.assert_close(model[5].running_mean, last.mean(dim=0))
    assert not model[1].training
    assert model[1].momentum == 0.1


def test_batches_count_by_their_size() -> None:
    norm = nn.BatchNorm1d(1).eval()
    values = torch.randn(30, 1)
    recompute_batch_norm(norm, [values[:20], values[20:]])
    torch.testing.assert_close(norm.running_mean, values.mean(dim=0))
    expected = (20 * values[:20].var(dim=0) + 10 * values[20:].var(dim=0)) / 30
    torch.testing.assert_close(norm.running_var, expected)


def test_runs_of_different_networks_have_an_ensemble_but_no_soup(tmp_path: Path) -> None:
    paths = [
        trained(tmp_path / model.partition("=")[2], model=model, split_seed=0, epochs=1)
        for model in ("mlp:width=8", "mlp:width=9")
    ]
    names = [source.name for source in read_runs(paths).sources]
    assert "ensemble" in names
    assert "soup" not in names


def test_networks_with_different_inputs_are_averaged_by_their_logits(tmp_path: Path) -> None:
    settings = {"epochs": 1, "split_seed": 0}
    paths = [trained(tmp_path / "whole", **settings), trained(tmp_path / "crop", augment="rrc:size=6", **settings)]
    samples = read_runs(paths)
    source = next(source for source in samples.sources if source.name == "ensemble")
    assert (source.inputs, source.members) == ("ensemble", ("whole", "crop"))
    logits = [stored(path / "predictions.safetensors")["logits"] for path in paths]
    expected = (logits[0].softmax(dim=1) + logits[1].softmax(dim=1)) / 2
    assert source.test_logits_NK is not None
    torch.testing.assert_close(source.test_logits_NK.exp(), expected, atol=1e-5, rtol=1e-4)
