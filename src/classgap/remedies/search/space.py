"""The training settings that a search may choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from classgap.data.dataset import Dataset
from classgap.engine import TrainConfig
from classgap.engine.defaults import resolve_config
from classgap.remedies.search.config import SearchConfig

BALANCED_METHODS = ("erm", "label-smoothing", "mr2", "feature-norm", "ldam")
IMBALANCED_METHODS = (*BALANCED_METHODS, "logit-adjustment")  # on balanced data it is cross-entropy
IMBALANCED = 1.5  # ratio of training samples between the most and the least frequent class
EMA_DECAYS = (0.99, 0.999, 0.9999)
EMA_SPANS = 5  # times 1 / (1 - decay) steps: in a shorter run, the average is mostly of bad weights
MIN_SIDE = 24  # in smaller images a shifted crop loses too much
FIRST_DECAYS, FIRST_LR = (5.0, 15.0), 3.0  # multiples of the defaults in the first trials

# Method → option → its range, or the values to choose from. "auto" is capped in each batch.
STRENGTHS: dict[str, tuple[str, tuple[float, float] | tuple[str | float, ...]]] = {
    "label-smoothing": ("smoothing", (0.02, 0.3)),
    "mr2": ("strength", ("auto", 0.01, 0.1, 0.5)),
    "feature-norm": ("strength", ("auto", 1e-4, 1e-3, 1e-2)),
    "ldam": ("margin", (0.1, 0.8)),
    "logit-adjustment": ("tau", (0.25, 2.0)),
}


class Suggests(Protocol):
    """The part of an Optuna trial that chooses values."""

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """Choose one of several values."""
        ...

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """Choose a number in a range."""
        ...


@dataclass(frozen=True)
class Space:
    """Ranges of the settings, around the defaults for the data.

    Attributes:
        methods: Training methods; the first is the baseline's.
        lr: Default learning rate.
        weight_decay: Default weight decay.
        augments: Augmentations; the first is the default.
        ema_decays: Decays of averaged weights; empty if the trials are too short for averages.
    """

    methods: tuple[str, ...]
    lr: float
    weight_decay: float
    augments: tuple[str, ...]
    ema_decays: tuple[float, ...]

    @classmethod
    def from_data(cls, config: SearchConfig, data: Dataset) -> Space:
        """Return the space that suits the data."""
        default = resolve_config(config.train_config(), data)
        counts = data.train_counts
        imbalanced = float(counts.max()) > IMBALANCED * max(1.0, float(counts.min()))
        methods = config.methods or (IMBALANCED_METHODS if imbalanced else BALANCED_METHODS)
        assert default.lr is not None
        assert default.weight_decay is not None
        assert default.augment is not None
        return cls(
            tuple(dict.fromkeys(("erm", *methods))),
            default.lr,
            default.weight_decay,
            _augments(default.augment, data),
            _ema_decays(default, int(float(counts.sum()) * (1 - config.val_fraction))),
        )

    def default(self) -> dict[str, Any]:
        """Return the parameters of the baseline: cross-entropy with default settings."""
        values: dict[str, Any] = {"method": "erm", "lr": self.lr, "weight_decay": self.weight_decay}
        if len(self.augments) > 1:
            values["augment"] = self.augments[0]
        if self.ema_decays:
            values["ema_decay"] = 0.0
        return values

    def first_trials(self) -> list[dict[str, Any]]:
        """Return the parameters of the trials after the baseline, the most promising ones first.

        Random settings are rarely good, and a short budget ends before a model of the good ones can be fitted. Stronger
        weight decay gains most on small training sets; a prior in the logits does on imbalanced ones, an augmentation
        policy on images.

        >>> [each["method"] for each in Space(("erm", "mr2"), 0.1, 5e-4, ("none",), ()).first_trials()]
        ['erm', 'erm', 'mr2']
        """
        weak, strong = (self.weight_decay * factor for factor in FIRST_DECAYS)
        policies = [each for each in self.augments if each.startswith("auto-augment")]
        wanted: list[dict[str, Any]] = [
            {"method": "logit-adjustment", "logit-adjustment:tau": 1.0, "weight_decay": weak},
            *({"method": "erm", "augment": each} for each in policies),
            {"method": "erm", "weight_decay": weak},
            {"method": "erm", "lr": FIRST_LR * self.lr, "weight_decay": strong},
            {"method": "label-smoothing", "label-smoothing:smoothing": 0.1, "weight_decay": weak},
            {"method": "mr2", "mr2:strength": "auto", "weight_decay": weak},
        ]
        return [self.default() | each for each in wanted if each["method"] in self.methods]

    def suggest(self, trial: Suggests) -> dict[str, Any]:
        """Choose the parameters of a trial."""
        values: dict[str, Any] = {"method": trial.suggest_categorical("method", self.methods)}
        if values["method"] in STRENGTHS:
            option, allowed = STRENGTHS[values["method"]]
            name = f"{values['method']}:{option}"
            if len(allowed) == 2:
                values[name] = trial.suggest_float(name, float(allowed[0]), float(allowed[1]))
            else:
                values[name] = trial.suggest_categorical(name, allowed)
        values["lr"] = trial.suggest_float("lr", self.lr / 10, self.lr * 3, log=True)
        decay = self.weight_decay
        values["weight_decay"] = trial.suggest_float("weight_decay", decay / 10, decay * 20, log=True)
        if len(self.augments) > 1:
            values["augment"] = trial.suggest_categorical("augment", self.augments)
        if self.ema_decays:
            values["ema_decay"] = trial.suggest_categorical("ema_decay", (0.0, *self.ema_decays))  # 0: no average
        return values

    def settings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the parameters of a trial to settings of :class:`TrainConfig`.

        >>> space = Space(("erm", "mr2"), 0.1, 5e-4, ("none",), ())
        >>> space.settings({"method": "mr2", "mr2:strength": 0.1, "lr": 0.05, "weight_decay": 1e-3})
        {'method': 'mr2:strength=0.1', 'lr': 0.05, 'weight_decay': 0.001, 'augment': 'none'}
        """
        method = params["method"]
        options = "".join(f":{name.split(':')[1]}={params[name]}" for name in params if ":" in name)
        found = {"method": method + options, "lr": params["lr"], "weight_decay": params["weight_decay"]}
        found["augment"] = params.get("augment", self.augments[0])
        if params.get("ema_decay"):
            found["ema_decay"] = params["ema_decay"]
        return found


def describe_params(params: Mapping[str, Any]) -> str:
    """Describe the parameters of a trial in one line.

    >>> describe_params({"method": "mr2", "mr2:strength": "auto", "lr": 0.05, "weight_decay": 1e-3, "ema_decay": 0.0})
    'mr2, strength auto, lr 0.05, weight decay 0.001'
    """
    words = [str(params["method"])]
    for name, value in params.items():
        if name != "method" and not (name == "ema_decay" and not value):
            shown = f"{value:.3g}" if isinstance(value, float) else str(value)
            words.append(f"{name.split(':')[-1].replace('_', ' ')} {shown}")
    return ", ".join(words)


def _ema_decays(default: TrainConfig, n_train: int) -> tuple[float, ...]:
    if all(field.name != "ema_decay" for field in fields(TrainConfig)):
        return ()
    assert default.batch_size is not None
    steps = default.max_steps or (default.epochs or 0) * -(-n_train // default.batch_size)
    return tuple(decay for decay in EMA_DECAYS if steps * (1 - decay) >= EMA_SPANS)


def _augments(default: str, data: Dataset) -> tuple[str, ...]:
    if data.kind != "image" or max(data.shape[1:]) < MIN_SIDE:
        return (default,)
    crop = ":crop=rrc" if default.startswith("rrc") else ""
    policies = ("auto-augment", "rand-augment") if not crop else ("rand-augment",)
    colored = data.allow_flip and data.shape[0] == 3  # the policies flip images and change their colors
    return tuple(dict.fromkeys((default, "none", *(f"{name}{crop}" for name in policies if colored))))
