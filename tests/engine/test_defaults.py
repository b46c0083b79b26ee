import pytest
import torch

from classgap.data import load
from classgap.data.dataset import Dataset, Split
from classgap.data.transforms.augment import build_augment
from classgap.engine import Run
from classgap.engine.config import TrainConfig
from classgap.engine.defaults import resolve_config


def images(side: int, *, allow_flip: bool) -> Dataset:
    split = Split.from_arrays(torch.zeros(2, 3, side, side, dtype=torch.uint8), torch.tensor([0, 1]))
    return Dataset("made", split, split, ("a", "b"), "image", (3, side, side), allow_flip=allow_flip)


@pytest.mark.parametrize(
    ("side", "allow_flip", "wanted"),
    [
        (32, True, "crop-flip"),
        (32, False, "crop-flip:flip=no"),
        (256, True, "rrc"),
        (256, False, "rrc:flip=no"),
        (8, False, "none"),
    ],
)
def test_only_images_that_may_be_mirrored_are_flipped(side: int, allow_flip: bool, wanted: str) -> None:
    augment = resolve_config(TrainConfig(data="made"), images(side, allow_flip=allow_flip)).augment
    assert augment == wanted
    assert getattr(build_augment(augment), "flip", False) == (allow_flip and side > 8)


@pytest.mark.parametrize(("height", "width"), [(80, 112), (96, 72)])
def test_rectangular_images_have_the_same_size_in_training_and_testing(height: int, width: int) -> None:
    split = Split.from_arrays(torch.zeros(4, 3, height, width, dtype=torch.uint8), torch.tensor([0, 1, 0, 1]))
    data = Dataset("made", split, split, ("a", "b"), "image", (3, height, width))
    for augment in (None, "rand-augment:crop=rrc"):
        config = resolve_config(TrainConfig(data="made", model="resnet20:width=4", batch_size=4, augment=augment), data)
        run = Run(config, data, torch.device("cpu"))
        seen: list[torch.Size] = []
        run.model.register_forward_hook(lambda model, inputs, output, seen=seen: seen.append(inputs[0].shape[1:]))
        run.method.step(run, next(iter(run.batches.epoch(0))))
        run.predictions(data.test)
        assert seen == [(3, height, width)] * 2


def test_stored_settings_precede_defaults_and_given_ones_precede_both() -> None:
    stored = {"lr": 0.5, "batch_size": 16, "clip_grad": 2.0, "epochs": None, "max_steps": 7, "device": "cuda"}
    found = resolve_config(TrainConfig(data="made", lr=0.3), images(32, allow_flip=True), stored)
    assert (found.lr, found.batch_size, found.clip_grad, found.device) == (0.3, 16, 2.0, "auto")
    assert (found.epochs, found.max_steps, found.weight_decay) == (None, 7, 5e-4)
    assert found.out is not None
    assert resolve_config(found, images(32, allow_flip=True)) == found


def test_a_given_augmentation_is_kept() -> None:
    config = TrainConfig(data="made", augment="crop-flip")
    assert resolve_config(config, images(32, allow_flip=False)).augment == "crop-flip"


def test_subsampled_digits_are_not_mirrored() -> None:
    assert not load("digits").allow_flip
    assert not load("digits:fraction=0.5:imbalance=10:label_noise=0.1").allow_flip
