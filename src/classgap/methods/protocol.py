"""Structural types of the training run that a method works with; ``classgap.engine.Run`` implements them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from classgap.data.batch import Batch
    from classgap.data.dataset import Split
    from classgap.data.sampling.orders import Order
    from classgap.features import FeatureTap
    from classgap.methods.method import Stage


class RunConfig(Protocol):
    """Training options that methods read; a subset of ``TrainConfig``."""

    @property
    def model(self) -> str | None:
        """Name of the network."""

    @property
    def batch_size(self) -> int | None:
        """Global batch size."""

    @property
    def max_steps(self) -> int | None:
        """Optimizer steps per stage, or ``None`` if the run counts epochs."""

    @property
    def lr(self) -> float | None:
        """Peak learning rate."""

    @property
    def loss_lr(self) -> float | None:
        """Peak learning rate of parameters of the loss, or ``None`` for ``lr``."""

    @property
    def sampler(self) -> str:
        """Sampler of the training set."""

    @property
    def wise_ft_alpha(self) -> float:
        """Weight of the trained model in the final one (WiSE-FT); 1 disables interpolation."""

    @property
    def seed(self) -> int:
        """Random seed."""


class RunPosition(Protocol):
    """Progress of a run."""

    @property
    def stage(self) -> int:
        """Index of the current stage."""

    @property
    def epoch(self) -> int:
        """Index of the current epoch in its stage."""

    @property
    def updates(self) -> int:
        """Completed updates of the current stage."""


class RunMeter(Protocol):
    """Running means of the current epoch."""

    def add(self, values: Mapping[str, float], weight: float) -> None:
        """Add named values with a weight."""


class BatchOutputs(Protocol):
    """Outputs of the model on one evaluation batch."""

    @property
    def logits_BK(self) -> Tensor:
        """Logits, at least float32."""

    @property
    def features_BD(self) -> Tensor:
        """Input of the head."""

    @property
    def targets_B(self) -> Tensor:
        """Labels."""


class Predictions(Protocol):
    """Predicted classes of a split."""

    @property
    def classes_N(self) -> Tensor:
        """Predicted classes."""

    @property
    def targets_N(self) -> Tensor:
        """Labels."""


class Scores(Protocol):
    """Logits and features of a split, as a dataclass: ``dataclasses.replace`` swaps the logits."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def features_ND(self) -> Tensor:
        """Input of the head."""

    def accuracies(self) -> dict[str, float]:
        """Return the accuracies of the predictions by name: "accuracy", "balanced", "hard", "worst", …"""


class TrainingRun(Protocol):
    """A training run as methods see it: model, data, progress and the operations of a training step.

    Attributes:
        model: The network without wrappers.
        order: Sample order of the stage; ``stage_start`` may replace it.
    """

    model: nn.Module
    order: Order

    @property
    def config(self) -> RunConfig:
        """Options of the run."""

    @property
    def device(self) -> torch.device:
        """Device of the model and the batches."""

    @property
    def num_classes(self) -> int:
        """Number of classes."""

    @property
    def train(self) -> Split:
        """Training samples, without the held-out ones."""

    @property
    def train_counts(self) -> Tensor:
        """Training samples per class, (K,)."""

    @property
    def validation(self) -> Split | None:
        """Held-out samples, or ``None``."""

    @property
    def tap(self) -> FeatureTap:
        """Features and head of the model."""

    @property
    def optimizer(self) -> Optimizer:
        """Optimizer of the current stage."""

    @property
    def meter(self) -> RunMeter:
        """Metrics of the current epoch."""

    @property
    def position(self) -> RunPosition:
        """Progress so far."""

    @property
    def stage(self) -> Stage:
        """The current stage."""

    @property
    def epochs(self) -> int:
        """Epochs of the current stage."""

    @property
    def updates(self) -> int:
        """Updates of the current stage."""

    def new_model(self) -> nn.Module:
        """Build another network of the same architecture with fresh weights."""

    def refresh_tap(self) -> None:
        """Recreate ``tap`` after the head was replaced."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of the training network; ``tap.features`` holds their features."""

    def outputs(self, network: nn.Module, inputs: Tensor) -> Tensor:
        """Apply another network, in the precision of the run."""

    def backward(
        self, objective: Callable[[TrainingRun, Batch], Tensor], batch: Batch, *, measured: bool = True
    ) -> None:
        """Set the gradients of the mean objective over the micro-batches of a batch.

        Args:
            objective: Returns the loss of a micro-batch.
            batch: Samples of this process.
            measured: Whether to add the loss and its terms to the metrics.
        """

    def update(self) -> None:
        """Clip the gradients and take one optimizer step."""

    def iterate_outputs(self, split: Split) -> Iterator[BatchOutputs]:
        """Iterate over the outputs for the samples of this process, in evaluation mode and without augmentation."""

    def predictions(self, split: Split) -> Predictions:
        """Return the predicted classes of a split, on every process."""

    def scores(self, split: Split, *, features: bool = False) -> Scores:
        """Return logits and, on request, features of a split, on every process."""
