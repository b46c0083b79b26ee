"""State of a training run, and the operations that a method uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from classgap import models
from classgap.data.batch import Batch
from classgap.data.dataset import Dataset, Split
from classgap.data.loader import BatchLoader
from classgap.data.sampling.orders import Order
from classgap.data.splits import hold_out
from classgap.distributed import average_gradients, rank, world_size
from classgap.engine.averaging import ExponentialAverage, StochasticWeightAverage, WeightAverage, swa_start_epoch
from classgap.engine.batches import make_order, split_micro_batches
from classgap.engine.checks import (
    check_crop,
    check_input,
    check_mix,
    check_monitor,
    check_swa,
    check_warmup,
    explain_empty_class,
)
from classgap.engine.config import TrainConfig
from classgap.engine.evaluation import (
    BatchOutputs,
    Predictions,
    Scores,
    compute_predictions,
    compute_scores,
    iterate_outputs,
)
from classgap.engine.layer_decay import layer_decay_groups
from classgap.engine.logging.meter import Meter
from classgap.engine.objective import evaluate_objective
from classgap.engine.optim import autocast, make_grad_scaler, make_optimizer, make_schedule
from classgap.engine.random_state import seed_everything
from classgap.features import FeatureTap
from classgap.losses.arguments import EmptyClassError
from classgap.methods import Method, Stage
from classgap.methods import build as build_method
from classgap.models.checkpoint import architecture
from classgap.registry import Spec, convert


@dataclass
class Position:
    """Progress of a run.

    Attributes:
        stage: Index of the current stage.
        epoch: Index of the current epoch in the stage.
        step: Steps completed in this epoch.
        updates: Steps completed in this stage.
    """

    stage: int = 0
    epoch: int = 0
    step: int = 0
    updates: int = 0

    def after_step(self) -> None:
        """Count a completed step."""
        self.step += 1
        self.updates += 1

    def after_epoch(self) -> None:
        """Count a completed epoch."""
        self.epoch += 1
        self.step = 0

    def after_stage(self) -> None:
        """Count a completed stage."""
        self.stage += 1
        self.epoch = self.step = self.updates = 0


class Run:
    """Model, method, data and optimizer of a training run, ready for the first step.

    Args:
        config: Complete configuration; see :func:`classgap.engine.defaults.resolve_config`.
        data: The dataset that ``config.data`` names.
        device: Device to train on.

    Attributes:
        train: Training samples, without the held-out ones.
        validation: Held-out samples or those of the dataset, or ``None``.
        train_counts: Training samples of each class.
        architecture: Name of the network without options that load or freeze weights.
        model: The network.
        network: The network as called in training: compiled or wrapped for data parallelism if configured.
        tap: Features and head of the model.
        method: The training method.
        order: Order of the samples in an epoch; a method may replace it in ``stage_start``.
        batches: Batches of the current stage.
        optimizer: Optimizer of the current stage.
        average: Average of the weights over the current stage, or ``None``.
        position: Progress of the run.
        meter: Running means of the current epoch.
        logits: Detached logits of the last forward pass.

    Raises:
        ValueError: If the settings, the data, the model and the method do not fit together.

    >>> from classgap.data import load
    >>> from classgap.engine.defaults import resolve_config
    >>> data = load("two-moons:n_train=64:n_test=64")
    >>> config = resolve_config(TrainConfig(data=data.name, method="jtt", epochs=10, batch_size=32), data)
    >>> run = Run(config, data, torch.device("cpu"))
    >>> run.stage.name, run.epochs, run.updates
    ('find errors', 2, 4)
    """

    order: Order
    batches: BatchLoader
    optimizer: Optimizer

    def __init__(self, config: TrainConfig, data: Dataset, device: torch.device) -> None:
        if data.num_classes < 2:
            raise ValueError(f"{config.data} has {data.num_classes} class; a classifier needs at least 2.")
        self.config, self.data, self.device = config, data, device
        self.train, self.validation = split_training(config, data)
        check_monitor(config, self.validation)
        self.train_counts = self.train.class_counts(data.num_classes)
        self.position, self.meter = Position(), Meter()
        self.logits: Tensor | None = None
        self._gradient_hooks: list[RemovableHandle] = []
        self.architecture = architecture(config.model or "")  # now: the file of a checkpoint may be gone at the end
        seed_everything(config.seed)
        self.model = self.network = self.new_model()
        check_input(self.model, self.input_shape, device, config)
        # Pretrained weights expect images normalized as in their own training.
        self.mean, self.std = models.expected_images(self.model) or (data.mean, data.std)
        self.tap = FeatureTap(self.model)
        try:
            self.method = self._new_method()
            check_mix(config, self.method)
            self.method.prepare(self)
        except EmptyClassError as error:
            raise explain_empty_class(error, config, data) from None
        self.stages = tuple(self.method.stages())
        seed_everything(config.seed, process=rank())  # processes share the weights, but not the dropout masks
        self.begin_stage()
        check_warmup(config, self.stages, len(self.batches))
        check_swa(config, self.stages, len(self.batches))

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.data.num_classes

    @property
    def stage(self) -> Stage:
        """Current stage."""
        return self.stages[self.position.stage]

    @property
    def epochs(self) -> int:
        """Number of epochs in the current stage."""
        if self.config.max_steps is not None:
            return -(-self.updates // len(self.batches))
        assert self.config.epochs is not None
        return self.stage.length(self.config.epochs)

    @property
    def updates(self) -> int:
        """Number of optimizer updates in the current stage."""
        if self.config.max_steps is not None:
            return self.stage.length(self.config.max_steps)
        return self.epochs * len(self.batches)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input of the network."""
        channels, *sides = self.data.shape
        return channels, *(self.crop or side for side in sides)

    @property
    def crop(self) -> int | None:
        """Side of the augmentation's crop (``rrc:size=224``); evaluation takes a center crop of the same size."""
        text = Spec.parse(self.config.augment or "none").options.get("size")
        size = None if text is None else int(convert("augment: size", text, int))
        check_crop(size, self.config, self.data)
        return size

    # Operations for methods

    def new_model(self) -> nn.Module:
        """Build the configured network with new weights."""
        assert self.config.model is not None
        model = models.build(
            self.config.model,
            num_classes=self.num_classes,
            input_shape=self.input_shape,
            class_names=self.data.class_names,
        )
        return self._place(model)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits in the precision of the run and set ``tap.features``; no communication without gradients."""
        logits = self.outputs(self.network if torch.is_grad_enabled() else self.model, inputs)
        self.logits = logits.detach()
        return logits

    def outputs(self, network: nn.Module, inputs: Tensor) -> Tensor:
        """Apply any network, for example a method's second one, in the precision of the run."""
        with autocast(self.config.precision, self.device):
            outputs: Tensor = network(inputs)
        return outputs

    def backward(self, objective: Callable[[Run, Batch], Tensor], batch: Batch, *, measured: bool = True) -> None:
        """Set the gradients of the mean objective of a batch, one micro-batch at a time.

        Args:
            objective: Loss of a micro-batch.
            batch: Samples of this process.
            measured: Whether to add the values to the metrics; False for a second pass over the same batch.

        Raises:
            NonFiniteLossError: Before the gradients are used.
        """
        for group in self.optimizer.param_groups:  # zero_grad without its profiler overhead
            for parameter in group["params"]:
                parameter.grad = None
        micro_batches = split_micro_batches(batch, self.config.micro_batches)
        for i, (part, fraction) in enumerate(micro_batches):
            self.logits = None
            with self._gradient_sync(last=i == len(micro_batches) - 1):
                value = evaluate_objective(self, objective, part, fraction * batch.total if measured else 0.0)
                self.scaler.scale(value * fraction if fraction < 1 else value).backward()

    def update(self) -> None:
        """Set the scheduled learning rate, clip the gradients and step the optimizer."""
        factor = self.schedule.factor(self.position.updates)
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor
        if self.config.clip_grad is not None:
            self.scaler.unscale_(self.optimizer)
            parameters = [each for group in self.optimizer.param_groups for each in group["params"]]
            nn.utils.clip_grad_norm_(parameters, self.config.clip_grad)
        scale = self.scaler.get_scale() if self.average is not None else 0.0
        self.scaler.step(self.optimizer)
        self.scaler.update()
        # The scaler lowers its scale if and only if it skipped the step.
        if self.average is not None and self.scaler.get_scale() >= scale:
            self.average.after_step()

    def refresh_tap(self) -> None:
        """Find the head again after a method replaced it; the engine does so at the start of each stage."""
        self.tap.remove()
        self.tap = FeatureTap(self.model)

    def iterate_outputs(self, split: Split) -> Iterator[BatchOutputs]:
        """Iterate over the outputs for this process's part of a split, without augmentation, batch by batch."""
        return iterate_outputs(self, split)

    def predictions(self, split: Split) -> Predictions:
        """Return the predicted class of each sample of a split, on every process."""
        return compute_predictions(self, split)

    def scores(self, split: Split, *, features: bool = False) -> Scores:
        """Return the logits of each sample, and optionally its features; a large training set may not fit in memory."""
        return compute_scores(self, split, features=features)

    # Operations for the engine

    def begin_stage(self) -> None:
        """Set up the current stage: order, batches, optimizer, schedule, gradient scaler and network."""
        config = self.config
        self.order = make_order(config, self.train)
        self.method.stage_start(self)
        self.refresh_tap()
        self._place(self.model)
        self.method.to(self.device)
        self.batches = self._make_batches()
        self.optimizer = make_optimizer(config, self._parameter_groups())
        self.schedule = make_schedule(
            config, updates=self.updates, steps_per_epoch=len(self.batches), epochs=self.epochs
        )
        self.scaler = make_grad_scaler(config.precision, self.device)
        self.average = self._make_average()
        self.network = self._wrap()  # after all that may raise: processes meet here
        for hook in self._gradient_hooks:
            hook.remove()
        self._gradient_hooks = average_gradients(self.method)

    def end_epoch(self) -> None:
        """Add the weights to an average over epochs, if the run has one."""
        if self.average is not None:
            self.average.after_epoch(self)

    def averaged_weights(self) -> AbstractContextManager[object]:
        """Return a context in which the model has its averaged weights, if the run averages them."""
        return nullcontext() if self.average is None else self.average.applied()

    def end_stage(self) -> None:
        """Continue from the averaged weights, if the run averages them, and call the method's ``stage_end``."""
        if self.average is not None:
            self.average.copy_to_model()
        self.method.stage_end(self)

    def describe_position(self) -> str:
        """Return the current stage, epoch and step as text."""
        name = f"stage {self.stage.name}, " if len(self.stages) > 1 else ""
        return f"{name}epoch {self.position.epoch + 1}, step {self.position.step + 1}"

    def state_dict(self) -> dict[str, Any]:
        """Return the state that later steps depend on, except random states."""
        state = {
            "position": asdict(self.position),
            "model": self.model.state_dict(),
            "method": self.method.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "meter": self.meter.state_dict(),
        }
        return state if self.average is None else state | {"average": self.average.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state and set up its stage."""
        self.position = Position(**state["position"])
        self.method.load_state_dict(state["method"])
        self.begin_stage()
        self.method.load_state_dict(state["method"])  # stage_start may have changed it
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.meter.load_state_dict(state["meter"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])

    def _new_method(self) -> Method:
        return build_method(
            self.config.method,
            num_classes=self.num_classes,
            class_counts=self.train_counts,
            feature_dim=self.tap.head.get_parameter("weight").shape[1],
            num_samples=len(self.train),
        )

    def _place(self, module: nn.Module) -> nn.Module:
        module = module.to(self.device)
        return module.to(memory_format=torch.channels_last) if self.config.channels_last else module

    def _wrap(self) -> nn.Module:
        network: Any = torch.compile(self.model) if self.config.compile else self.model
        if world_size() > 1 and any(each.requires_grad for each in self.model.parameters()):
            return DistributedDataParallel(network, [self.device] if self.device.type == "cuda" else None)
        return network

    def _parameter_groups(self) -> list[dict[str, Any]]:
        groups, layer_decay = self.method.parameter_groups(self), self.config.layer_decay
        if layer_decay is None:
            return groups
        # A method may train a second network.
        return layer_decay_groups(groups, nn.ModuleList([self.model, self.method]), self.config, layer_decay)

    def _make_average(self) -> WeightAverage | None:
        if self.config.ema_decay is not None:
            return ExponentialAverage(self.model, self.config.ema_decay)
        if self.config.swa_start is not None:
            return StochasticWeightAverage(self.model, swa_start_epoch(self.config.swa_start, self.epochs))
        return None

    def _make_batches(self) -> BatchLoader:
        config = self.config
        assert config.batch_size is not None
        return BatchLoader(
            self.train,
            self.order,
            batch_size=config.batch_size,
            augment=config.augment or "none",
            mix=None if config.mix == "none" else config.mix,
            mean=self.mean,
            std=self.std,
            seed=config.seed,
            num_classes=self.num_classes,
            views=self.method.views,
            device=self.device,
            channels_last=config.channels_last,
        )

    def _gradient_sync(self, last: bool) -> AbstractContextManager[object]:
        """Exchange gradients between processes once per batch, with the last micro-batch."""
        if not last and isinstance(self.network, DistributedDataParallel):
            return self.network.no_sync()
        return nullcontext()


def split_training(config: TrainConfig, data: Dataset) -> tuple[Split, Split | None]:
    """Return the training and the validation samples of a run."""
    if not config.val_fraction:
        return data.train, data.validation
    seed = config.seed if config.split_seed is None else config.split_seed
    return hold_out(data.train, config.val_fraction, seed, data.num_classes, config.val_fold)
