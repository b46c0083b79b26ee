"""Settings of a search."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from classgap.engine import TrainConfig
from classgap.engine.defaults import default_directory
from classgap.engine.executors import check_executor
from classgap.methods import names as method_names
from classgap.registry import suggestion
from classgap.remedies.search.budget import parse_budget

_LIMITS = ("out", "budget", "n_trials", "executor", "device", "cross_validate")  # may change when a search continues


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Settings of a search over training settings. ``None`` selects a default for the data.

    Attributes:
        data: Dataset with options; see ``classgap datasets``.
        model: Model with options; see ``classgap models``.
        out: Directory of the search. Start the same search again to continue it.
        budget: Limit of the training time, such as "2h" or "30m". The time of an interrupted search counts.
        n_trials: Limit of the number of trials, the baseline included.
        executor: Where trials run: "process:N" (N processes on this machine) or "dask:ADDRESS" (a Dask cluster whose
            workers share the file system of ``out``).
        val_fraction: Fraction of each class of the training set that judges the trials.
        methods: Training methods to try; by default the ones that suit the data.
        epochs: Epochs of each trial.
        max_steps: Optimizer steps of each trial, instead of ``epochs``.
        batch_size: Global batch size.
        cross_validate: Whether to cross-validate the best trials if the budget allows it, so that all training samples
            choose among them, and to train them on all samples at last.
        prune: Whether to stop trials that are below the median of the others.
        seed: Seed of the trials, of the held-out samples and of the search itself.
        device: Device of the trials.

    >>> SearchConfig(data="digits", budget="2 hours")
    Traceback (most recent call last):
    ValueError: budget must be a time such as 2h, 30m, 45s or 1h30m, above 0; got '2 hours'.
    """

    data: str
    model: str | None = None
    out: Path | None = None
    budget: str | None = None
    n_trials: int | None = None
    executor: str = "process:1"
    val_fraction: float = 0.2
    methods: tuple[str, ...] | None = None
    epochs: int | None = None
    max_steps: int | None = None
    batch_size: int | None = None
    cross_validate: bool = True
    prune: bool = True
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.budget is None and self.n_trials is None:
            raise ValueError("a search needs a limit: set budget, for example to 2h, or n_trials.")
        if self.budget is not None:
            parse_budget(self.budget)
        if self.n_trials is not None and self.n_trials < 2:
            raise ValueError(f"n_trials must be at least 2, the baseline and one trial; got {self.n_trials}.")
        if not self.val_fraction:
            raise ValueError("val_fraction must be above 0: held-out samples judge the trials.")
        check_executor(self.executor)
        for method in self.methods or ():
            for name in method.split("+"):
                if name not in method_names():
                    raise ValueError(f"methods: unknown method {name!r}; {suggestion(name, method_names())}")
        self.train_config()  # checks the settings that are passed on

    @property
    def directory(self) -> Path:
        """Directory of the search."""
        return self.out or default_directory(replace(self.train_config(), method="fix"))

    @property
    def seconds(self) -> float | None:
        """``budget`` in seconds."""
        return None if self.budget is None else parse_budget(self.budget)

    def train_config(self, out: Path | None = None, **settings: Any) -> TrainConfig:
        """Return the settings of a trial."""
        return TrainConfig(
            data=self.data,
            model=self.model,
            out=out,
            epochs=self.epochs,
            max_steps=self.max_steps,
            batch_size=self.batch_size,
            val_fraction=self.val_fraction,
            seed=self.seed,
            device=self.device,
            audit=False,
            **settings,
        )

    def stored(self) -> dict[str, Any]:
        """Return the settings that a search must keep to be continued."""
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _LIMITS}
        return plain | {"methods": None if self.methods is None else list(self.methods)}
