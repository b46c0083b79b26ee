"""Everything that can be set about a training run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

from classgap.losses.arguments import check_float, check_fraction, check_int

Optimizers = Literal["sgd", "adamw"]
Schedules = Literal["cosine", "step", "constant"]
Precisions = Literal["fp32", "bf16", "fp16"]
Rules = Literal["last", "accuracy", "balanced", "hard", "worst"]

LARGEST_RATE = 1e30  # optimisers step in 32 bits, where numbers end at 3e38, and refuse larger factors in mid-run

_suited = "what suits the data"


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of a run; ``None`` stands for what suits the data.

    >>> TrainConfig(data="digits", method="sam+mr2", epochs=20).seed
    0
    >>> TrainConfig(data="digits", monitor="hard")
    Traceback (most recent call last):
    ValueError: monitor='hard' picks the best epoch on held-out samples: set val_fraction, such as 0.1. ...
    """

    data: Annotated[str, arg(metavar="DATA")]
    """Data set, with options: mnist1d, folder:PATH:size=32, cifar100:lt=100 … (classgap datasets)."""

    model: Annotated[str | None, arg(metavar="MODEL", help_behavior_hint=f"(default: {_suited})")] = None
    """Network, with options: resnet32, timm:resnet18 … (classgap models)."""

    method: Annotated[str, arg(metavar="METHOD")] = "erm"
    """Training method, with options: erm, mr2, mr2:strength=0.1 …"""

    out: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="(default: runs/DATA-METHOD-seedN)")] = None
    """Run directory. The same command with the same directory goes on where it stopped."""

    epochs: Annotated[int | None, arg(metavar="INT", help_behavior_hint=f"(default: {_suited})")] = None
    """Times to go through the training set, in each stage of the method."""

    steps: Annotated[int | None, arg(metavar="INT", help_behavior_hint="")] = None
    """Updates in each stage, in place of --epochs."""

    batch_size: Annotated[int | None, arg(metavar="INT", help_behavior_hint=f"(default: {_suited})")] = None
    """Samples an update, over all processes."""

    optimizer: Optimizers = "sgd"
    """Optimiser."""

    lr: Annotated[float | None, arg(metavar="FLOAT", help_behavior_hint=f"(default: {_suited})")] = None
    """Highest learning rate."""

    loss_lr: Annotated[float | None, arg(metavar="FLOAT", help_behavior_hint="(default: --lr)")] = None
    """Highest learning rate of parameters that the loss owns."""

    momentum: float = 0.9
    """Momentum of SGD."""

    nesterov: bool = False
    """Nesterov's form of momentum."""

    weight_decay: Annotated[float | None, arg(metavar="FLOAT", help_behavior_hint=f"(default: {_suited})")] = None
    """Weight decay."""

    schedule: Schedules = "cosine"
    """Course of the learning rate after the warm-up."""

    warmup_epochs: float = 0.0
    """Epochs in which the learning rate rises from 0."""

    warmup_steps: int = 0
    """Updates in which the learning rate rises from 0, in place of --warmup-epochs."""

    milestones: tuple[float, ...] = (0.8, 0.9)
    """Where --schedule step lowers the rate: epochs, or shares of the stage if below 1."""

    gamma: float = 0.1
    """Factor of --schedule step at each milestone."""

    clip_grad: Annotated[float | None, arg(metavar="FLOAT", help_behavior_hint="")] = None
    """Largest norm of the gradient; longer ones are shortened to it."""

    micro_batches: int = 1
    """Parts in which a batch goes through the network, to save memory. Batch norm, and losses that compare samples or
    remember them, see a part at a time."""

    precision: Precisions = "fp32"
    """Arithmetic of the network; losses always use fp32."""

    channels_last: bool = False
    """Keep images with their channels last in memory, which convolutions on GPUs like."""

    compile: bool = False
    """Compile the network with torch.compile."""

    augment: Annotated[str | None, arg(metavar="NAME", help_behavior_hint=f"(default: {_suited})")] = None
    """Augmentation: none, crop-flip, rrc, auto-augment, rand-augment."""

    mix: Annotated[str, arg(metavar="NAME")] = "none"
    """Mixing of samples: none, mixup:alpha=0.2, cutmix:alpha=1."""

    sampler: Annotated[str, arg(metavar="NAME")] = "random"
    """Order of the samples: random, class-balanced, class-aware:per-class=4."""

    val_fraction: float = 0.0
    """Share of the training set, of each class, that is held out to choose the epoch."""

    monitor: Rules = "last"
    """Epoch to keep: the last, or the best on held-out samples by accuracy, mean class, hard third or worst class."""

    wise_ft_alpha: float = 1.0
    """Share of the trained weights in the tested model, the rest being those it started with (WiSE-FT); 1 is off."""

    seed: int = 0
    """Seed of weights, order and augmentation. The data set's own seed is an option of --data."""

    save_every: float = 30.0
    """Seconds between checkpoints."""

    save_features: bool = True
    """Store the test samples' features with the predictions."""

    report: bool = True
    """Audit the test predictions and write report.html; sweeps may do without."""

    tensorboard: bool = False
    """Write metrics for TensorBoard too (pip install 'classgap[tensorboard]')."""

    device: Annotated[str, arg(metavar="NAME")] = "auto"
    """Where to compute: auto, cpu, cuda, cuda:1 …"""

    def __post_init__(self) -> None:
        if self.out is not None:  # from Python a text is as good
            object.__setattr__(self, "out", Path(self.out))
        for name in ("epochs", "steps", "batch_size"):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name), ge=1)
        for name in ("lr", "loss_lr", "clip_grad"):
            if getattr(self, name) is not None:
                check_float(name, getattr(self, name), gt=0)
        for name in ("weight_decay", "momentum", "warmup_epochs", "gamma", "save_every"):
            if getattr(self, name) is not None:
                check_float(name, getattr(self, name), ge=0)
        for name in ("lr", "loss_lr", "weight_decay"):
            if (getattr(self, name) or 0) > LARGEST_RATE:
                raise ValueError(f"{name} must be at most {LARGEST_RATE:g}, got {getattr(self, name)!r}.")
        check_int("micro_batches", self.micro_batches, ge=1)
        check_int("warmup_steps", self.warmup_steps, ge=0)
        check_int("seed", self.seed, ge=0)
        check_fraction("val_fraction", self.val_fraction)
        if not 0 <= check_float("wise_ft_alpha", self.wise_ft_alpha) <= 1:
            raise ValueError(f"wise_ft_alpha must be from 0 to 1, got {self.wise_ft_alpha!r}.")
        self._check_pairs()

    def _check_pairs(self) -> None:
        if self.epochs is not None and self.steps is not None:
            raise ValueError(f"epochs and steps cannot both be given; got {self.epochs} and {self.steps}.")
        if self.warmup_epochs and self.warmup_steps:
            raise ValueError(
                f"warmup_epochs and warmup_steps cannot both be given; got {self.warmup_epochs} and "
                f"{self.warmup_steps}."
            )
        if self.monitor != "last" and not self.val_fraction:
            raise ValueError(
                f"monitor={self.monitor!r} picks the best epoch on held-out samples: set val_fraction, such as 0.1. The "
                "test set is never used to choose."
            )
        if self.nesterov and (self.optimizer != "sgd" or not self.momentum):
            raise ValueError(f"nesterov needs sgd with momentum; got {self.optimizer} with momentum {self.momentum}.")
        if list(self.milestones) != sorted(self.milestones) or any(each <= 0 for each in self.milestones):
            raise ValueError(f"milestones must be above 0 and in rising order; got {self.milestones}.")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for YAML and checkpoints."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return plain | {"out": None if self.out is None else str(self.out), "milestones": list(self.milestones)}
