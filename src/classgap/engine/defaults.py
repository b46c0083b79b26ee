"""Settings that suit the data, where none were given."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from classgap.data.dataset import Dataset
from classgap.engine.config import TrainConfig
from classgap.models import default_for


@dataclass(frozen=True)
class Suited:
    """What suits one kind of data, with SGD."""

    epochs: int
    batch_size: int
    weight_decay: float
    augment: str


# Small images: Cao et al. 2019 and MR² (App. C), but for the number of epochs. Large images: the usual ImageNet recipe.
SIGNALS = Suited(epochs=200, batch_size=128, weight_decay=5e-4, augment="none")
VECTORS = Suited(epochs=60, batch_size=128, weight_decay=5e-4, augment="none")
TINY_IMAGES = Suited(epochs=60, batch_size=128, weight_decay=5e-4, augment="none")
SMALL_IMAGES = Suited(epochs=200, batch_size=128, weight_decay=5e-4, augment="crop-flip")
LARGE_IMAGES = Suited(epochs=90, batch_size=256, weight_decay=1e-4, augment="rrc")

SGD_RATE, ADAMW_RATE, ADAMW_DECAY = 0.1, 1e-3, 0.05


def complete(config: TrainConfig, data: Dataset) -> TrainConfig:
    """The settings with every gap filled."""
    suited = _suited(data)
    adamw = config.optimizer == "adamw"
    model = config.model or default_for(data.kind, data.shape)
    epochs = config.epochs if config.steps is not None else config.epochs or suited.epochs
    decay = ADAMW_DECAY if adamw else suited.weight_decay
    return replace(
        config,
        model=model,
        epochs=epochs,
        batch_size=config.batch_size or suited.batch_size,
        lr=config.lr or (ADAMW_RATE if adamw else SGD_RATE),
        weight_decay=decay if config.weight_decay is None else config.weight_decay,
        augment=suited.augment if config.augment is None else config.augment,
    )


def default_directory(config: TrainConfig) -> Path:
    """Where a run goes that was given no directory: a name made of what was typed."""
    return Path("runs") / _slug(config.data, config.model or "", config.method, f"seed{config.seed}")


def _suited(data: Dataset) -> Suited:
    if data.kind != "image":
        return SIGNALS if data.kind == "signal" else VECTORS
    side = max(data.shape[1:])
    if side < 24:  # a shifted crop would lose half of it
        return TINY_IMAGES
    suited = SMALL_IMAGES if side <= 64 else LARGE_IMAGES
    return suited if data.allow_flip else replace(suited, augment=f"{suited.augment}:flip=no")


def _slug(*parts: str) -> str:
    """A directory name.

    >>> _slug("folder:/data/my birds:size=32", "resnet20", "mr2")
    'my-birds-size-32-resnet20-mr2'
    """
    words = [re.sub(r"[^\w.]+", "-", part.split("/")[-1] if "/" in part else part).strip("-.") for part in parts]
    return "-".join(word for word in words if word)
