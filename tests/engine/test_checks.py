"""Invalid combinations are rejected before anything is written."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from training_cases import config, new_run

from classgap import methods
from classgap.data.dataset import Dataset, Split
from classgap.engine import Run, train
from classgap.engine.checks import training_warnings
from classgap.engine.defaults import resolve_config

MOONS = {"data": "two-moons:n_train=64:n_test=20", "model": "mlp:width=8"}


def assert_rejected(out: Path, message: str, made: Dataset | None = None, **settings) -> None:
    with pytest.raises(ValueError, match=message):
        train(config(out=out, **settings), data=made, quiet=True)
    assert not out.exists()


# Validation samples


def test_a_monitor_needs_validation_samples(tmp_path: Path) -> None:
    assert_rejected(tmp_path / "run", "val_fraction", monitor="hard")


# Mixed samples


def accepts_mixed_samples(method: str) -> bool:
    """Return whether all stages accept soft targets."""
    run = new_run(**MOONS, method=method, val_fraction=0.2)  # cdb needs held-out samples
    for stage in range(len(run.stages)):
        run.position.stage = stage
        run.begin_stage()
        run.model.train()
        run.method.epoch_start(run)
        batch = next(iter(run.batches.epoch(0)))
        mixed = torch.nn.functional.one_hot(batch.labels, 2) * 0.5 + 0.25
        try:
            run.method.objective(run, replace(batch, targets=mixed))
        except ValueError:
            return False
    return True


@pytest.mark.parametrize("method", [name for name in methods.names() if name not in ("lff", "tau-norm")])
def test_methods_declare_whether_they_accept_mixed_samples(method: str) -> None:
    made = new_run(**MOONS, method=method, val_fraction=0.2).method
    assert accepts_mixed_samples(method) == (not made.mixing_conflict())


@pytest.mark.parametrize(
    "method", ["mr2", "sam+mr2", "supcon-joint", "crt+focal", "lff", "lff+post-hoc-logit-adjustment"]
)
def test_mixing_is_rejected_before_anything_is_written(method: str, tmp_path: Path) -> None:
    assert_rejected(tmp_path / "run", "mix .*got 'mixup:alpha=0.2'", method=method, mix="mixup:alpha=0.2")


# A class without training samples


def dataset_without_birds() -> Dataset:
    train_split = Split.from_arrays(torch.randn(20, 4), torch.arange(20) % 2)
    test = Split.from_arrays(torch.randn(6, 4), torch.arange(6) % 3)
    return Dataset("made", train_split, test, ("cat", "dog", "bird"), "vector", (4,))


COUNTING = ["logit-adjustment", "elm", "ldam-drw", "sam+cb-focal", "post-hoc-logit-adjustment", "fair-dro", "eql"]


@pytest.mark.parametrize("method", COUNTING)
def test_a_class_without_training_samples_is_named(method: str, tmp_path: Path) -> None:
    message = rf"{method.replace('+', '.')} .*'bird'.*fraction.*imbalance"
    assert_rejected(tmp_path / "run", message, dataset_without_birds(), data="made", method=method)


@pytest.mark.parametrize("method", ["erm", "mr2"])
def test_the_recommended_methods_accept_an_empty_class(method: str, tmp_path: Path) -> None:
    settings = config(out=tmp_path / "run", data="made", method=method)
    assert train(settings, data=dataset_without_birds(), quiet=True).is_main_process


# Warm-up


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 3, "warmup_epochs": 3.0}, "3 steps .*stage train has 3"),
        ({"epochs": 2, "warmup_steps": 9}, "9 steps .*stage train has 2"),
        ({"epochs": None, "max_steps": 5, "warmup_steps": 5}, "5 steps .*stage train has 5"),
        (
            {"epochs": 10, "warmup_epochs": 2.0, "method": "jtt:first=0.2"},
            "2 steps .*stage find errors has 2",
        ),
        (
            {"epochs": 10, "warmup_epochs": 2.0, "method": "crt:fraction=0.1"},
            "2 steps .*stage re-training has 1",
        ),
    ],
)
def test_a_warmup_as_long_as_a_stage_is_rejected(settings: dict, message: str, tmp_path: Path) -> None:
    assert_rejected(tmp_path / "run", message, **MOONS, **settings)  # 64 samples: one update per epoch


def test_a_shorter_warmup_reaches_the_peak() -> None:
    run = new_run(**MOONS, epochs=3, warmup_epochs=2.0)
    assert max(run.schedule.factor(update) for update in range(run.updates)) == 1


# Image sizes


def test_a_crop_larger_than_the_images_is_rejected(tmp_path: Path) -> None:
    message = r"16.* of digits are 8×8; .* at most 8"
    assert_rejected(tmp_path / "run", message, model="resnet20:width=4", augment="rrc:size=16")


def test_images_too_small_for_the_network_are_rejected(tmp_path: Path) -> None:
    message = r"timm:vit_tiny_patch16_224 .*1×8×8 \(.+\)"
    assert_rejected(tmp_path / "run", message, data="digits", model="timm:vit_tiny_patch16_224")


def test_classes_without_training_samples_cause_a_warning() -> None:
    train, test = (
        Split.from_arrays(torch.randn(len(each), 2), torch.tensor(each)) for each in ([0, 0, 2, 2], [0, 1, 2])
    )
    made = Dataset("mine", train, test, ("cat", "dog", "fox"), kind="vector", shape=(2,))
    wanted = resolve_config(config(data="mine", model="linear"), made)
    (warning,) = training_warnings(Run(wanted, made, torch.device("cpu")))
    assert "without training samples: dog." in warning


@pytest.mark.parametrize(
    ("samples", "size", "warns"), [(40, 64, True), (40, 40, True), (40, 16, False), (20, 64, False)]
)
def test_a_batch_of_all_samples_causes_a_warning(samples: int, size: int, warns: bool) -> None:
    split = Split.from_arrays(torch.randn(samples, 2), torch.arange(samples) % 2)
    made = Dataset("mine", split, split, ("cat", "dog"), kind="vector", shape=(2,))
    wanted = resolve_config(config(data="mine", model="linear", batch_size=size), made)
    found = training_warnings(Run(wanted, made, torch.device("cpu")))
    assert [f"batch_size={size}" in each for each in found] == [True] * warns
