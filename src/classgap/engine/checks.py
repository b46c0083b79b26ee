"""What cannot be trained: told before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from classgap._eval_mode import evaluating
from classgap.data.dataset import Dataset
from classgap.engine.config import TrainConfig
from classgap.engine.optim import warmup_updates
from classgap.losses.arguments import EmptyClassError
from classgap.methods import Method, Stage


def check_mix(config: TrainConfig, method: Method) -> None:
    """Refuse to mix samples where the method needs whole classes."""
    reason = method.refuses_mixing()
    if config.mix != "none" and reason:
        raise ValueError(
            f"{config.method} cannot learn from mixed samples, as {reason}; mix must be none, got {config.mix!r}."
        )


def check_warmup(config: TrainConfig, stages: Sequence[Stage], steps: int) -> None:
    """Refuse a warm-up that leaves nothing of a stage.

    Args:
        config: complete settings.
        stages: of the method.
        steps: updates in an epoch.
    """
    warmup = warmup_updates(config, steps)
    for stage in stages:
        length = stage.length(config.steps) if config.steps else stage.length(config.epochs or 1) * steps
        if warmup and warmup >= length:
            raise ValueError(
                f"the warm-up takes {warmup} updates and stage {stage.name} has {length}: hardly one would be made at "
                f"the rate of {config.lr:g}; lower warmup_epochs or warmup_steps, or train longer."
            )


def check_input(model: nn.Module, shape: tuple[int, ...], device: torch.device, config: TrainConfig) -> None:
    """Refuse a network that cannot take the inputs at all, images that are too small for it, say."""
    try:
        with evaluating(model), torch.no_grad():
            model(torch.zeros(1, *shape, device=device))
    except torch.cuda.OutOfMemoryError:  # a matter of the machine
        raise
    except RuntimeError as error:
        reason, sides = str(error).strip().splitlines()[0].rstrip("."), "×".join(map(str, shape))
        raise ValueError(
            f"model {config.model} cannot take inputs of {sides} ({reason}); choose another model, or another size of "
            "the images where the data have one (classgap datasets)."
        ) from error


def check_crop(size: int | None, config: TrainConfig, data: Dataset) -> None:
    """Refuse an augmentation that cuts out more than there is: tests cut the same square from the middle."""
    if size is not None and size > min(data.shape[1:]):
        raise ValueError(
            f"augment={config.augment} makes squares of {size}, but the images of {config.data} are "
            f"{'×'.join(map(str, data.shape[1:]))}; choose a size of at most {min(data.shape[1:])}, or larger images."
        )


def for_want_of_samples(empty: EmptyClassError, config: TrainConfig, data: Dataset) -> ValueError:
    """The refusal of a method that needs samples of every class."""
    return ValueError(
        f"{config.method} needs training samples of every class, and class {data.class_names[empty.number]!r} of "
        f"{config.data} has none. Add some, or leave the class out of the data; less noise, a larger fraction or a "
        "smaller lt in --data leaves more of a class; erm and mr2 do without."
    )
