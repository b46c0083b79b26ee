"""Settings of a training run, from Python, flags or YAML."""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

from classgap._atomic_write import atomic_write_text
from classgap._synonyms import find_synonym
from classgap._yaml_files import read_yaml
from classgap.data.splits import count_folds
from classgap.losses.arguments import check_choice, check_float, check_fraction, check_int, check_probability
from classgap.registry import short_repr, suggestion, validate

Optimizers = Literal["sgd", "adamw"]
Schedules = Literal["cosine", "step", "constant"]
Precisions = Literal["fp32", "bf16", "fp16"]
Monitors = Literal["last", "accuracy", "balanced", "hard", "worst"]
_CHOICES = {"optimizer": Optimizers, "schedule": Schedules, "precision": Precisions, "monitor": Monitors}

MAX_RATE = 1e30  # optimizers compute in float32 (up to 3e38) and reject larger factors in the middle of a run
MAX_SEED = 2**32 - 1  # as in NumPy and scikit-learn; multiples of 2**64 would equal seed 0
_SURROGATE = re.compile("[\ud800-\udfff]")  # byte of a path that is not UTF-8


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of a run. ``None`` selects a default for the data.

    >>> TrainConfig(data="digits", method="sam+mr2", epochs=20).seed
    0
    >>> TrainConfig(data="digits", epochs=20, max_steps=100)
    Traceback (most recent call last):
    ValueError: epochs and max_steps cannot both be set; got 20 and 100.
    """

    data: str
    """Dataset with options: mnist1d, cifar100:imbalance=100, a folder of images … (see `classgap datasets`)."""

    model: str | None = None
    """Model with options: resnet32, timm:resnet18 … (see `classgap models`)."""

    method: str = "erm"
    """Training method with options: erm, mr2, mr2:strength=0.1, sam+mr2 … (see `classgap methods`)."""

    out: Path | None = None
    """Run directory. Run the same command again to resume an interrupted run."""

    epochs: int | None = None
    """Number of epochs, of each stage if the method has several."""

    max_steps: int | None = None
    """Number of optimizer steps in each stage, instead of --epochs."""

    batch_size: int | None = None
    """Global batch size."""

    optimizer: Optimizers = "sgd"
    """Optimizer."""

    lr: float | None = None
    """Peak learning rate."""

    loss_lr: float | None = None
    """Peak learning rate for the loss's own parameters."""

    momentum: float = 0.9
    """SGD momentum."""

    nesterov: bool = False
    """Use Nesterov momentum."""

    weight_decay: float | None = None
    """Weight decay."""

    layer_decay: float | None = None
    """Layer-wise learning-rate decay from the head to the input, for example 0.65. Also turns off weight decay for
    biases, norms and position embeddings. For timm models."""

    schedule: Schedules = "cosine"
    """Learning-rate schedule after the warmup."""

    warmup_epochs: float = 0.0
    """Epochs of linear warmup."""

    warmup_steps: int = 0
    """Steps of linear warmup, instead of --warmup-epochs."""

    warmup_start_factor: float | None = None
    """Start the warmup at this fraction of --lr, for example 0.3333, like torch's LinearLR."""

    min_lr: float = 0.0
    """Learning rate at the end of --schedule cosine."""

    milestones: tuple[float, ...] = (0.8, 0.9)
    """Epochs at which --schedule step lowers the learning rate; values below 1 are fractions of the stage."""

    gamma: float = 0.1
    """Decay factor of --schedule step."""

    clip_grad: float | None = None
    """Clip gradients to this norm."""

    micro_batches: int = 1
    """Split each batch into this many micro-batches to save memory. Losses and batch norm see one
    micro-batch at a time."""

    precision: Precisions = "fp32"
    """Precision of the model. Losses always use fp32."""

    channels_last: bool = False
    """Use the channels-last memory format (faster convolutions on most hardware)."""

    compile: bool = False
    """Compile the model with torch.compile."""

    augment: str | None = None
    """Augmentation: none, crop-flip, rrc, perspective, auto-augment, rand-augment."""

    mix: str = "none"
    """Sample mixing: none, mixup:alpha=0.2, cutmix:alpha=1."""

    sampler: str = "random"
    """Sampler: random, class-balanced, class-aware:per-class=4."""

    val_fraction: float = 0.0
    """Fraction of each training class to hold out for validation. By default, the dataset's own validation samples are
    used, if there are any."""

    val_fold: int = 0
    """Fold of the training set to hold out, for cross-validation. Folds are disjoint and numbered from 0 to
    (1 / val_fraction) - 1."""

    split_seed: int | None = None
    """Seed for the held-out split; --seed by default. Use one value for all runs passed to `classgap fix`."""

    monitor: Monitors = "last"
    """Epoch to keep: the last, or the best by overall, balanced, hard-third or worst-class validation accuracy."""

    ema_decay: float | None = None
    """Evaluate and save an exponential moving average of the weights with this decay, for example 0.999."""

    swa_start: float | None = None
    """Evaluate and save the running mean of the weights at the end of each epoch (SWA), starting at this
    fraction of the epochs, for example 0.75."""

    swa_lr: float | None = None
    """Constant learning rate for the epochs averaged by --swa-start."""

    wise_ft_alpha: float = 1.0
    """Weight of the trained model when interpolating with the initial one (WiSE-FT); 1 disables it."""

    seed: int = 0
    """Seed for the initial weights, sample order and augmentation. Subsets, long tails and label noise have their own
    seed (data-seed in --data)."""

    save_every: float = 30.0
    """Seconds between checkpoints."""

    save_features: bool = True
    """Store the features of the test and validation samples with their predictions."""

    save_train_features: bool = False
    """Also store logits and features of the training samples, without augmentation."""

    class_stats: bool = False
    """After each epoch, write the feature spread, the norm of the mean feature, and the accuracy of each class on the
    training samples."""

    audit: bool = True
    """Audit the test predictions and write report.html."""

    tensorboard: bool = False
    """Log metrics to TensorBoard (needs classgap[tensorboard])."""

    device: str = "auto"
    """Device: auto, cpu, cuda, cuda:1 …"""

    def __post_init__(self) -> None:
        if self.out is not None:  # accept a string
            object.__setattr__(self, "out", Path(self.out))
            if not str(self.out).isprintable() and _SURROGATE.search(str(self.out)):  # safetensors reads only these
                raise ValueError(f"out must be a path in UTF-8, got {str(self.out)!r}.")
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), typing.get_args(choices))
        self._check_numbers()
        self._check_combinations()

    def _check_numbers(self) -> None:
        """Check the range of each number; ``None`` is allowed where it selects a default."""
        given = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}
        for name, value in given.items():
            if name in ("epochs", "max_steps", "batch_size", "micro_batches"):
                check_int(name, value, ge=1)
            if name in ("warmup_steps", "seed", "split_seed", "val_fold"):
                check_int(name, value, ge=0)
            if name in ("seed", "split_seed") and value > MAX_SEED:
                raise ValueError(f"{name} must be at most {MAX_SEED}, got {short_repr(value)}.")
            if name in ("lr", "loss_lr", "clip_grad", "ema_decay", "swa_lr"):
                check_float(name, value, gt=0)
            if name in ("weight_decay", "momentum", "warmup_epochs", "gamma", "save_every", "min_lr"):
                check_float(name, value, ge=0)
            if name in ("lr", "loss_lr", "swa_lr", "weight_decay") and value > MAX_RATE:
                raise ValueError(f"{name} must be at most {MAX_RATE:g}, got {value!r}.")
            if name in ("ema_decay", "swa_start"):
                check_fraction(name, value)
        check_fraction("val_fraction", self.val_fraction)
        n_folds = count_folds(self.val_fraction) if self.val_fraction else 1
        if self.val_fold >= n_folds:
            raise ValueError(
                f"val_fold must be below {n_folds}, the number of folds with val_fraction={self.val_fraction}; got "
                f"{short_repr(self.val_fold)}."
            )
        if self.layer_decay is not None and not 0 < self.layer_decay <= 1:
            raise ValueError(f"layer_decay must be in (0, 1], got {self.layer_decay!r}.")
        if self.warmup_start_factor is not None and not 0 < self.warmup_start_factor <= 1:
            raise ValueError(f"warmup_start_factor must be in (0, 1], got {self.warmup_start_factor!r}.")
        check_probability("wise_ft_alpha", self.wise_ft_alpha)

    def _check_combinations(self) -> None:
        if self.epochs is not None and self.max_steps is not None:
            raise ValueError(f"epochs and max_steps cannot both be set; got {self.epochs} and {self.max_steps}.")
        if self.warmup_epochs and self.warmup_steps:
            raise ValueError(
                f"warmup_epochs and warmup_steps cannot both be set; got {self.warmup_epochs} and {self.warmup_steps}."
            )
        if self.warmup_start_factor is not None and not (self.warmup_epochs or self.warmup_steps):
            raise ValueError(
                f"warmup_start_factor={self.warmup_start_factor} needs a warmup: set warmup_epochs or warmup_steps."
            )
        if self.min_lr and self.schedule != "cosine":
            raise ValueError(f"min_lr={self.min_lr} applies to schedule cosine, got {self.schedule}; remove it.")
        if self.lr is not None and self.min_lr > self.lr:
            raise ValueError(f"min_lr must be at most lr = {self.lr}, got {self.min_lr}.")
        if self.ema_decay is not None and self.swa_start is not None:
            raise ValueError(
                f"ema_decay and swa_start cannot both be set; got {self.ema_decay} and {self.swa_start}. A run saves "
                "one average of its weights."
            )
        if self.swa_lr is not None and self.swa_start is None:
            raise ValueError(f"swa_lr={self.swa_lr} applies to the epochs that SWA averages: set swa_start, too.")
        if self.nesterov and (self.optimizer != "sgd" or not self.momentum):
            raise ValueError(f"nesterov needs sgd with momentum; got {self.optimizer} with momentum {self.momentum}.")
        for each in self.milestones:
            check_float("milestones", each, gt=0)
        if list(self.milestones) != sorted(self.milestones):
            raise ValueError(f"milestones must be increasing; got {self.milestones}.")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values for YAML."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return plain | {"out": None if self.out is None else str(self.out), "milestones": list(self.milestones)}


def _hint(name: str) -> str:
    """Return the end of an error message about an unknown setting."""
    names = [field.name for field in fields(TrainConfig)]
    synonym = find_synonym(name, names)
    return suggestion(name, names) if synonym is None else f"did you mean {synonym[0]!r}? {synonym[1]}".strip()


def _name_unknown_settings(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def checked(self: TrainConfig, *args: Any, **settings: Any) -> None:
        for name, value in settings.items():
            if name not in TrainConfig.__dataclass_fields__:
                raise TypeError(f"TrainConfig has no setting {name!r} (value {short_repr(value)}); {_hint(name)}")
        init(self, *args, **settings)

    return checked


TrainConfig.__init__ = _name_unknown_settings(TrainConfig.__init__)  # type: ignore[method-assign]


def parse_settings(settings: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert settings to the types of :class:`TrainConfig`; some may be missing, and dashes equal underscores.

    Raises:
        ValueError: If a name is unknown or given twice, or a value has the wrong type.

    >>> parse_settings({"data": "digits", "lr": "1e-3", "weight-decay": 0})
    {'data': 'digits', 'lr': 0.001, 'weight_decay': 0.0}
    >>> parse_settings({"epoch": 3})
    Traceback (most recent call last):
    ValueError: unknown setting 'epoch' (value 3); did you mean 'epochs'?
    """
    types = _types()
    parsed = {}
    for key, value in settings.items():
        name = str(key).replace("-", "_")
        if name not in types:
            raise ValueError(f"unknown setting {str(key)!r} (value {short_repr(value)}); {_hint(name)}")
        if name in parsed:
            raise ValueError(f"{name} is given twice, with a dash and an underscore; keep one of them.")
        parsed[name] = validate(name, value, types[name])
    return parsed


@cache
def _types() -> dict[str, Any]:
    return typing.get_type_hints(TrainConfig)


def read_settings(path: Path) -> dict[str, Any]:
    """Read settings from a YAML file; see :func:`parse_settings`.

    Raises:
        ValueError: If the file cannot be read, or a name or a value is invalid.
    """
    try:
        settings, tree = read_yaml(path)
    except ValueError as error:
        raise ValueError(f"the configuration file {error}") from None
    if settings is not None and not isinstance(settings, Mapping):
        raise ValueError(f"{path} must contain settings as NAME: VALUE, got a {type(settings).__name__}.")
    names = [str(key.value).replace("-", "_") for key, _ in tree.value] if settings else []
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path} sets {name} more than once: keep one.")
    try:
        return parse_settings(settings or {})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def write_config(config: TrainConfig, path: Path) -> None:
    """Write all settings as YAML; :func:`read_settings` reads them."""
    import yaml

    atomic_write_text(path, yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True))
