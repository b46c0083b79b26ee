"""What cannot be trained is refused before the run directory is taken."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from training_cases import config, new_run

from classgap import methods
from classgap.data.dataset import Dataset, Split
from classgap.engine import Run, train
from classgap.engine.defaults import complete

MOONS = {"data": "two-moons:n_train=64:n_test=20", "model": "mlp:width=8"}


def refused(out: Path, told: str, made: Dataset | None = None, **settings) -> None:
    with pytest.raises(ValueError, match=told):
        train(config(out=out, **settings), data=made, quiet=True)
    assert not out.exists()


# Mixed samples


def takes_mixed_samples(method: str) -> bool:
    """Whether every stage of it can make a step with mixed samples."""
    run = new_run(**MOONS, method=method)
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
def test_a_method_says_whether_samples_may_be_mixed(method: str) -> None:
    made = new_run(**MOONS, method=method).method
    assert takes_mixed_samples(method) == (not made.refuses_mixing())


@pytest.mark.parametrize(
    "method", ["mr2", "sam+mr2", "supcon-joint", "crt+focal", "lff", "lff+post-hoc-logit-adjustment"]
)
def test_mixing_is_refused_before_anything_is_written(method: str, tmp_path: Path) -> None:
    refused(tmp_path / "run", "mix must be none, got 'mixup:alpha=0.2'", method=method, mix="mixup:alpha=0.2")


# A class without training samples


def without_birds() -> Dataset:
    train_split = Split.from_arrays(torch.randn(20, 4), torch.arange(20) % 2)
    test = Split.from_arrays(torch.randn(6, 4), torch.arange(6) % 3)
    return Dataset("made", train_split, test, ("cat", "dog", "bird"), "vector", (4,))


COUNTING = ["logit-adjustment", "elm", "ldam-drw", "sam+cb-focal", "post-hoc-logit-adjustment", "fair-dro", "eql"]


@pytest.mark.parametrize("method", COUNTING)
def test_a_class_without_training_samples_is_named(method: str, tmp_path: Path) -> None:
    told = rf"{method.replace('+', '.')} needs .* class 'bird' of made has none.*fraction.*lt"
    refused(tmp_path / "run", told, without_birds(), data="made", method=method)


@pytest.mark.parametrize("method", ["erm", "mr2"])
def test_what_the_refusal_recommends_can_be_done(method: str, tmp_path: Path) -> None:
    settings = config(out=tmp_path / "run", data="made", method=method)
    assert train(settings, data=without_birds(), quiet=True).first


# A warm-up that leaves nothing


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"epochs": 3, "warmup_epochs": 3.0}, "takes 3 updates and stage train has 3"),
        ({"epochs": 2, "warmup_steps": 9}, "takes 9 updates and stage train has 2"),
        ({"epochs": None, "steps": 5, "warmup_steps": 5}, "takes 5 updates and stage train has 5"),
        (
            {"epochs": 10, "warmup_epochs": 2.0, "method": "jtt:first=0.2"},
            "takes 2 updates and stage find errors has 2",
        ),
        (
            {"epochs": 10, "warmup_epochs": 2.0, "method": "crt:share=0.1"},
            "takes 2 updates and stage re-training has 1",
        ),
    ],
)
def test_a_warm_up_as_long_as_a_stage_is_refused(settings: dict, told: str, tmp_path: Path) -> None:
    refused(tmp_path / "run", told, **MOONS, **settings)  # 64 samples: one update an epoch


def test_a_shorter_warm_up_reaches_the_rate() -> None:
    run = new_run(**MOONS, epochs=3, warmup_epochs=2.0)
    assert max(run.schedule.factor(update) for update in range(run.updates)) == 1


# Crops


def test_a_crop_of_more_than_there_is_is_refused(tmp_path: Path) -> None:
    told = r"makes squares of 16, but the images of digits are 8×8; choose a size of at most 8"
    refused(tmp_path / "run", told, model="resnet20:width=4", augment="rrc:size=16")


def test_images_that_are_too_small_for_the_network(tmp_path: Path) -> None:
    told = r"model timm:vit_tiny_patch16_224 cannot take inputs of 1×8×8 \(.+\); choose another model"
    refused(tmp_path / "run", told, data="digits", model="timm:vit_tiny_patch16_224")


def test_classes_that_are_tested_and_not_trained_are_named() -> None:
    train, test = (
        Split.from_arrays(torch.randn(len(each), 2), torch.tensor(each)) for each in ([0, 0, 2, 2], [0, 1, 2])
    )
    made = Dataset("mine", train, test, ("cat", "dog", "fox"), kind="vector", shape=(2,))
    wanted = complete(config(data="mine", model="linear"), made)
    assert Run(wanted, made, torch.device("cpu")).remarks() == [
        "Tested, but without training samples, so never right: dog."
    ]
