"""Defaults that depend on the data, and the complete configuration of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from classgap.data.dataset import Dataset
from classgap.engine.config import TrainConfig
from classgap.models import default_for


@dataclass(frozen=True)
class DataDefaults:
    """Defaults for one kind of data, with SGD."""

    epochs: int
    batch_size: int
    weight_decay: float
    augment: str


# Small images: Cao et al. 2019 and MR² (App. C), except for the number of epochs. Large images: the usual ImageNet
# recipe.
SIGNALS = DataDefaults(epochs=200, batch_size=128, weight_decay=5e-4, augment="none")
VECTORS = DataDefaults(epochs=60, batch_size=128, weight_decay=5e-4, augment="none")
TINY_IMAGES = DataDefaults(epochs=60, batch_size=128, weight_decay=5e-4, augment="none")
SMALL_IMAGES = DataDefaults(epochs=200, batch_size=128, weight_decay=5e-4, augment="crop-flip")
LARGE_IMAGES = DataDefaults(epochs=90, batch_size=256, weight_decay=1e-4, augment="rrc")

SGD_LR, ADAMW_LR, ADAMW_WEIGHT_DECAY = 0.1, 1e-3, 0.05


def resolve_config(config: TrainConfig, data: Dataset, stored: Mapping[str, Any] | None = None) -> TrainConfig:
    """Return the complete configuration of a run.

    Args:
        config: Settings of the user; ``None`` selects a default.
        data: The dataset that ``config.data`` names.
        stored: Settings of the run to resume; they take precedence over defaults.
    """
    given = {field.name: getattr(config, field.name) for field in fields(config)}
    known = _without_none(stored or {}) | _without_none(given)
    settings = _defaults(config, data) | known
    if "max_steps" in known:
        settings["epochs"] = known.get("epochs")
    return replace(config, **settings)


def default_directory(config: TrainConfig) -> Path:
    """Return the directory of a run without ``out``, named after its settings."""
    return Path("runs") / _slug(config.data, config.model or "", config.method, f"seed{config.seed}")


def _defaults(config: TrainConfig, data: Dataset) -> dict[str, Any]:
    by_data, adamw = _data_defaults(data), config.optimizer == "adamw"
    return {
        "model": config.model or default_for(data.kind, data.shape),
        "out": default_directory(config),
        "epochs": by_data.epochs,
        "batch_size": by_data.batch_size,
        "lr": ADAMW_LR if adamw else SGD_LR,
        "weight_decay": ADAMW_WEIGHT_DECAY if adamw else by_data.weight_decay,
        "augment": by_data.augment,
    }


def _data_defaults(data: Dataset) -> DataDefaults:
    if data.kind != "image":
        return SIGNALS if data.kind == "signal" else VECTORS
    side = max(data.shape[1:])
    if side < 24:  # a shifted crop would lose too much of the image
        return TINY_IMAGES
    defaults = SMALL_IMAGES if side <= 64 else LARGE_IMAGES
    return defaults if data.allow_flip else replace(defaults, augment=f"{defaults.augment}:flip=no")


def _without_none(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _slug(*parts: str) -> str:
    """Join parts into a directory name.

    >>> _slug("folder:/data/my birds:size=32", "resnet20", "mr2")
    'my-birds-size-32-resnet20-mr2'
    """
    words = [re.sub(r"[^\w.]+", "-", part.split("/")[-1] if "/" in part else part).strip("-.") for part in parts]
    return "-".join(word for word in words if word)
