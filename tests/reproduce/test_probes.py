"""Measurements of trained networks, against direct computations."""

from pathlib import Path

import numpy as np
import pytest
import torch

from classgap.audit import read_predictions
from classgap.data import load
from classgap.engine import TrainConfig, train
from classgap.inference import load_run
from classgap.reproduce.metrics import find_metric, measure_run
from classgap.reproduce.probes import corrupt

DATA = "mnist1d:n_train=100:n_test=200"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run"
    train(TrainConfig(data=DATA, model="conv1d:width=8", epochs=3, out=path, audit=False), quiet=True)
    return path


def test_variance_of_an_earlier_layer(run: Path) -> None:
    data = load(DATA)
    record = measure_run(run, data, maps=["2"])
    with torch.no_grad():
        first_layers = load_run(run).model[:3](data.test.inputs[torch.arange(200)])
    features_ND, targets_N = first_layers.mean(dim=2).double().numpy(), data.test.targets.numpy()
    means_KD = np.stack([features_ND[targets_N == k].mean(axis=0) for k in range(10)])
    within = np.mean([features_ND[targets_N == k].var(axis=0, ddof=1).sum() for k in range(10)])
    between = np.mean(((means_KD - means_KD.mean(axis=0)) ** 2).sum(axis=1))
    assert find_metric(record, "maps.2.within_between") == pytest.approx(within / between, rel=1e-4)
    assert record["maps"]["2"]["points"]
    assert find_metric(record, "maps.5.within_between") is None


def test_accuracy_on_corrupted_samples(run: Path) -> None:
    data = load(DATA)
    record = measure_run(run, data, corruptions=True)
    assert set(record["corrupted"]) == {"noise", "blur", "contrast"}
    blurred = corrupt(data.test.inputs[torch.arange(200)], "blur")
    right_N = load_run(run).predict(blurred).predictions == data.test.targets
    assert find_metric(record, "corrupted.blur@all") == pytest.approx(
        np.mean([right_N[data.test.targets == k].double().mean() for k in range(10)]), abs=1e-6
    )


def test_corruptions_of_images() -> None:
    image = torch.tensor([[[[0, 0, 90], [0, 90, 90], [90, 90, 90]]]], dtype=torch.uint8)
    assert corrupt(image, "blur").tolist()[0][0][1] == [40, 60, 80]  # (4, 6, 8 of 9 neighbors are 90; edges repeat)
    contrast = corrupt(image, "contrast")
    assert contrast.dtype == torch.uint8
    assert int(contrast.max()) - int(contrast.min()) == 36  # 40 % of 90
    assert corrupt(image, "noise").equal(corrupt(image, "noise"))
    with pytest.raises(ValueError, match=r"\(2,\)"):
        corrupt(torch.zeros(1, 2), "noise")
    with pytest.raises(ValueError, match="'fog'"):
        corrupt(image, "fog")


def test_class_statistics_by_epoch() -> None:
    record = {"metrics": {}, "class_stats": {"spread@hard": [4.0, 3.0, 2.0, 1.0]}}
    names = ("epochs.0.25.spread@hard", "epochs.0.5.spread@hard", "epochs.1.spread@hard", "epochs.1.angle@hard")
    assert [find_metric(record, name) for name in names] == [4.0, 3.0, 1.0, None]


def test_quantiles_of_the_distances_within_classes(tmp_path: Path) -> None:
    config = TrainConfig(
        data=DATA, model="conv1d:width=8", epochs=1, out=tmp_path / "run", audit=False, save_train_features=True
    )
    train(config, quiet=True)
    classes = measure_run(tmp_path / "run")["train_classes"]
    data = read_predictions(tmp_path / "run" / "train_predictions.safetensors")
    features_ND = data.features_ND[torch.arange(len(data.targets_N))].double().numpy()
    largest = np.linalg.norm(features_ND, axis=1).max()
    for k, quantiles in enumerate(classes["max_intra_distance_quantiles"]):
        own_nD = features_ND[data.targets_N == k]
        far_n = np.linalg.norm(own_nD[:, None] - own_nD, axis=2).max(axis=1) / largest
        assert quantiles[0] == pytest.approx(far_n.min(), rel=1e-4)
        assert quantiles[4] == pytest.approx(np.median(far_n), rel=1e-4)
        assert quantiles[8] == pytest.approx(far_n.max(), rel=1e-4)
        assert far_n.mean() == pytest.approx(classes["max_intra_distance"][k], rel=1e-3)


def test_the_boundary_in_the_plane_separates_the_predictions(tmp_path: Path) -> None:
    run = tmp_path / "moons"
    config = TrainConfig(data="two-moons:n_train=300:n_test=200", model="elm-mlp", epochs=5, out=run, audit=False)
    train(config, quiet=True)
    a, b, c = measure_run(run, maps=["test"])["maps"]["test"]["boundary"]
    data = read_predictions(run)
    x, y = data.features_ND.double().T
    side = (a * x + b * y + c).numpy()
    clear = np.abs(side) > 0.01 * np.abs(side).max()  # features are stored in half precision
    assert clear.sum() > 100
    assert ((side > 0) == (data.predictions_N == 0))[clear].all()
