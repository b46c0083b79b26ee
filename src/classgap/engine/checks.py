"""Checks of settings, data, model and method before anything is written, and warnings about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from classgap._eval_mode import evaluating
from classgap.data.dataset import Dataset, Split
from classgap.engine.averaging import swa_start_epoch
from classgap.engine.config import TrainConfig
from classgap.engine.optim import warmup_updates
from classgap.losses.arguments import EmptyClassError
from classgap.losses.base import ClassLoss
from classgap.methods import Method, Stage

if TYPE_CHECKING:
    from classgap.engine.run import Run

MAX_CLASSES_SHOWN = 5
MIN_WORTH_SPLITTING = 32  # samples; fewer are one batch in any case


def check_monitor(config: TrainConfig, validation: Split | None) -> None:
    """Reject the selection of an epoch without validation samples."""
    if config.monitor != "last" and validation is None:
        raise ValueError(
            f"monitor={config.monitor!r} selects the best epoch on held-out samples, and {config.data} has no "
            "validation samples: set val_fraction, for example to 0.1. The test set is never used for selection."
        )


def check_mix(config: TrainConfig, method: Method) -> None:
    """Reject ``mix`` if the method needs hard labels."""
    reason = method.mixing_conflict()
    if config.mix != "none" and reason:
        raise ValueError(
            f"{config.method} cannot train on mixed samples because {reason}; mix must be none, got {config.mix!r}."
        )


def check_warmup(config: TrainConfig, stages: Sequence[Stage], steps_per_epoch: int) -> None:
    """Reject a warmup that lasts as long as a stage."""
    warmup = warmup_updates(config, steps_per_epoch)
    for stage in stages:
        length = (
            stage.length(config.max_steps) if config.max_steps else stage.length(config.epochs or 1) * steps_per_epoch
        )
        if warmup and warmup >= length:
            raise ValueError(
                f"the warmup takes {warmup} steps and stage {stage.name} has {length}, so almost no step would run "
                f"at the peak learning rate of {config.lr:g}; lower warmup_epochs or warmup_steps, or train longer."
            )


def check_swa(config: TrainConfig, stages: Sequence[Stage], steps_per_epoch: int) -> None:
    """Reject SWA over a single epoch, which averages nothing."""
    if config.swa_start is None:
        return
    last = stages[-1]
    epochs = (
        -(-last.length(config.max_steps) // steps_per_epoch) if config.max_steps else last.length(config.epochs or 1)
    )
    start = swa_start_epoch(config.swa_start, epochs)
    if epochs - start < 2:
        raise ValueError(
            f"swa_start={config.swa_start:g} leaves 1 of the {epochs} epochs of stage {last.name} to average, but at "
            "least 2 are needed; lower swa_start or train longer."
        )


def check_input(model: nn.Module, shape: tuple[int, ...], device: torch.device, config: TrainConfig) -> None:
    """Reject a model that cannot process the inputs, for example because the images are too small."""
    try:
        with evaluating(model), torch.no_grad():
            model(torch.zeros(1, *shape, device=device))
    except torch.cuda.OutOfMemoryError:
        raise
    except (RuntimeError, AssertionError) as error:  # timm's vision transformers assert that patches fit
        reason, sides = str(error).strip().splitlines()[0].rstrip("."), "×".join(map(str, shape))
        raise ValueError(
            f"model {config.model} cannot process inputs of shape {sides} ({reason}); choose another model, or set the "
            "image size with an option of the dataset (see `classgap datasets`)."
        ) from error


def check_crop(size: int | None, config: TrainConfig, data: Dataset) -> None:
    """Reject crops larger than the images: evaluation takes a center crop of the same size."""
    if size is not None and size > min(data.shape[1:]):
        raise ValueError(
            f"augment={config.augment} crops to {size}×{size}, but the images of {config.data} are "
            f"{'×'.join(map(str, data.shape[1:]))}; choose a size of at most {min(data.shape[1:])}, or larger images."
        )


def explain_empty_class(error: EmptyClassError, config: TrainConfig, data: Dataset) -> ValueError:
    """Return an error that names the class without training samples and possible fixes."""
    return ValueError(
        f"{config.method} needs training samples of every class, but class {data.class_names[error.number]!r} of "
        f"{config.data} has none. Add some or remove the class. In --data, a larger fraction, a smaller imbalance or "
        "less label-noise keeps more samples of each class. The methods erm and mr2 accept classes without samples."
    )


def training_warnings(run: Run) -> list[str]:
    """Return warnings about the data and the settings of a run."""
    tested = run.data.test.class_counts(run.num_classes) > 0
    untrained = (tested & (run.train_counts == 0)).nonzero().flatten().tolist()
    warnings = []
    if untrained:
        names = ", ".join(run.data.class_names[each] for each in untrained[:MAX_CLASSES_SHOWN])
        more = ", …" if len(untrained) > MAX_CLASSES_SHOWN else ""
        warnings.append(f"Classes in the test set without training samples: {names}{more}.")
    size = run.config.batch_size or 0
    if size >= len(run.train) >= MIN_WORTH_SPLITTING:
        warnings.append(
            f"batch_size={size}: there are only {len(run.train)} training samples, so each epoch is a single step. "
            "A smaller batch size gives more steps per epoch."
        )
    losses = [each for each in run.method.modules() if isinstance(each, ClassLoss) and not each.by_sample]
    if run.config.micro_batches > 1 and losses:
        warnings.append(
            f"micro_batches={run.config.micro_batches}: {type(losses[0]).__name__} compares samples or keeps "
            f"statistics, and sees one micro-batch at a time instead of the batch of {run.config.batch_size}."
        )
    return warnings
