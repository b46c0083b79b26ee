import pytest
import torch

from classgap.data import load
from classgap.data.dataset import Dataset, Split
from classgap.data.transforms.augment import build_augment
from classgap.engine import Run
from classgap.engine.config import TrainConfig
from classgap.engine.defaults import complete


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
def test_default_augmentation_flips_only_if_allowed(side: int, allow_flip: bool, wanted: str) -> None:
    augment = complete(TrainConfig(data="made"), images(side, allow_flip=allow_flip)).augment
    assert augment == wanted
    assert getattr(build_augment(augment), "flip", False) == (allow_flip and side > 8)


@pytest.mark.parametrize(("height", "width"), [(80, 112), (96, 72)])
def test_oblong_photographs_are_trained_as_they_are_tested(height: int, width: int) -> None:
    split = Split.from_arrays(torch.zeros(4, 3, height, width, dtype=torch.uint8), torch.tensor([0, 1, 0, 1]))
    data = Dataset("made", split, split, ("a", "b"), "image", (3, height, width))
    for augment in (None, "rand-augment:crop=rrc"):
        config = complete(TrainConfig(data="made", model="resnet20:width=4", batch_size=4, augment=augment), data)
        run = Run(config, data, torch.device("cpu"))
        seen: list[torch.Size] = []
        run.model.register_forward_hook(lambda model, inputs, output, seen=seen: seen.append(inputs[0].shape[1:]))
        run.method.step(run, next(iter(run.batches.epoch(0))))
        run.predictions(data.test)
        assert seen == [(3, height, width)] * 2


def test_an_augmentation_that_was_asked_for_stays() -> None:
    assert complete(TrainConfig(data="made", augment="crop-flip"), images(32, allow_flip=False)).augment == "crop-flip"


def test_digits_do_not_allow_flips() -> None:
    assert not load("digits").allow_flip
    assert not load("digits:fraction=0.5:imbalance=10:label_noise=0.1").allow_flip
