"""A training run in memory: what a method may look at, and the verbs it acts with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from classgap import models
from classgap.data.batches import Batch, Batches
from classgap.data.dataset import Dataset, Split
from classgap.data.sampling.order import Order
from classgap.data.splits import hold_out
from classgap.distributed import all_gather_object, average_gradients, rank, world_size
from classgap.engine.checks import check_crop, check_input, check_mix, check_warmup, for_want_of_samples
from classgap.engine.config import TrainConfig
from classgap.engine.errors import NonFiniteLossError, non_finite
from classgap.engine.evaluation import Seen, looked_at, predictions_of, scores_of
from classgap.engine.logging.meter import Meter, numbers_in
from classgap.engine.micro_batches import micro_batches
from classgap.engine.optim import make_optimizer, make_schedule
from classgap.engine.position import Position
from classgap.engine.precision import autocast, grad_scaler
from classgap.engine.random_state import seed_everything
from classgap.engine.sampling import build_order
from classgap.engine.scores import Predicted, Scores
from classgap.features import FeatureTap
from classgap.losses.arguments import EmptyClassError
from classgap.losses.base import ClassLoss
from classgap.losses.inputs import InvalidBatchError
from classgap.methods import Method, Stage
from classgap.methods import build as build_method
from classgap.registry import Spec, convert


class Run:
    """Model, method, data and optimiser of one training.

    Attributes:
        config: complete settings.
        data: the data set; ``train`` and ``validation`` are the parts that its training split was cut into.
        model: the network itself.
        network: the same, compiled or data-parallel if asked for: what is called in training.
        tap: features and head of the model.
        method: what is being done.
        order: in which order an epoch uses the samples; ``stage_start`` of a method may set another one.
        position: what is done so far.
        meter: means of this epoch.

    >>> from classgap.data import load
    >>> from classgap.engine.defaults import complete
    >>> data = load("two-moons:train=64:test=64")
    >>> config = complete(TrainConfig(data=data.name, method="jtt", epochs=10, batch_size=32), data)
    >>> run = Run(config, data, torch.device("cpu"))
    >>> run.stage.name, run.epochs, run.updates
    ('find errors', 2, 4)
    """

    def __init__(self, config: TrainConfig, data: Dataset, device: torch.device) -> None:
        assert config.model is not None
        if data.num_classes < 2:
            raise ValueError(f"{config.data} has {data.num_classes} class; a classifier needs two.")
        self.config, self.data, self.device = config, data, device
        self.train, self.validation = _cut(config, data)
        self.train_counts = self.train.counts(data.num_classes)
        self.position, self.meter = Position(), Meter()
        seed_everything(config.seed)
        self.model = self.new_model()
        check_input(self.model, self.input_shape, device, config)
        # Loaded weights expect images scaled as those that they were trained on.
        self.mean, self.std = models.expected_images(self.model) or (data.mean, data.std)
        self.tap = FeatureTap(self.model)
        try:
            self.method = self._new_method()
            check_mix(config, self.method)
            self.method.prepare(self)
        except EmptyClassError as empty:
            raise for_want_of_samples(empty, config, data) from None
        self.stages = tuple(self.method.stages())
        seed_everything(config.seed, process=rank())  # dropout may differ between processes, weights may not
        # What a stage trains with; made here already to refuse what cannot be, and by begin_stage anew.
        self.order: Order = build_order(config, self.train)
        self.batches = self._batches()
        check_warmup(config, self.stages, len(self.batches))
        self.optimizer: Optimizer = make_optimizer(config, self.method.parameter_groups(self))
        self.schedule = make_schedule(config, updates=self.updates, steps=len(self.batches))
        self.scaler = grad_scaler(config.precision, device)
        self.network: nn.Module = self.model
        self._averaging: list[RemovableHandle] = []
        self._logits: Tensor | None = None

    # What a method asks for

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return self.data.num_classes

    @property
    def stage(self) -> Stage:
        """The current stage."""
        return self.stages[self.position.stage]

    @property
    def epochs(self) -> int:
        """Epochs of the current stage."""
        if self.config.steps is not None:
            return -(-self.updates // len(self.batches))
        assert self.config.epochs is not None
        return self.stage.length(self.config.epochs)

    @property
    def updates(self) -> int:
        """Updates of the current stage."""
        if self.config.steps is not None:
            return self.stage.length(self.config.steps)
        return self.epochs * len(self.batches)

    def new_model(self) -> nn.Module:
        """A network with fresh weights, like that of the run."""
        assert self.config.model is not None
        made = models.build(
            self.config.model,
            num_classes=self.num_classes,
            input_shape=self.input_shape,
            class_names=self.data.class_names,
        )
        return self._placed(made)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of what the network is given, without the batch."""
        channels, *sides = self.data.shape
        return channels, *(self.crop or side for side in sides)

    @property
    def crop(self) -> int | None:
        """The side of the square that an augmentation cuts out, ``rrc:size=224`` say; tests cut it from the middle."""
        text = Spec.parse(self.config.augment or "none").options.get("size")
        size = None if text is None else int(convert("augment: size", text, int))
        check_crop(size, self.config, self.data)
        return size

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits, in the precision of the run; ``tap.features`` are theirs. Without gradients no process waits."""
        logits = self.outputs(self.network if torch.is_grad_enabled() else self.model, inputs)
        self._logits = logits.detach()
        return logits

    def outputs(self, network: nn.Module, inputs: Tensor) -> Tensor:
        """What any network, such as a method's second one, makes of inputs in the precision of the run."""
        with autocast(self.config.precision, self.device):
            made: Tensor = network(inputs)
        return made

    def backward(self, objective: Callable[[Run, Batch], Tensor], batch: Batch, *, measured: bool = True) -> None:
        """Gradients of the mean objective of a batch, in as many parts as asked for; those before are forgotten.

        Args:
            objective: the loss of a part.
            batch: this process's samples.
            measured: whether the values belong in the metrics: not those of a second pass over the same batch.

        Raises:
            NonFiniteLossError: before the gradients are used.
        """
        for group in self.optimizer.param_groups:  # as zero_grad does, without its detour through the profiler
            for parameter in group["params"]:
                parameter.grad = None
        parts = micro_batches(batch, self.config.micro_batches)
        for i, (part, share) in enumerate(parts):
            self._logits = None
            with self._communication(last=i == len(parts) - 1):
                value = self._evaluate(objective, part, share * batch.total if measured else 0.0)
                self.scaler.scale(value * share if share < 1 else value).backward()

    def update(self) -> None:
        """One step of the optimiser at the scheduled rate, with clipped gradients."""
        factor = self.schedule.factor(self.position.updates)
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor
        if self.config.clip_grad is not None:
            self.scaler.unscale_(self.optimizer)
            parameters = [each for group in self.optimizer.param_groups for each in group["params"]]
            nn.utils.clip_grad_norm_(parameters, self.config.clip_grad)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def tap_again(self) -> None:
        """Look for the head, after a method exchanged it; at the start of a stage the engine does this."""
        self.tap.remove()
        self.tap = FeatureTap(self.model)

    def look(self, split: Split) -> Iterator[Seen]:
        """What the model says about this process's share of a split, without augmentation, a few samples at a time."""
        return looked_at(self, split)

    def predictions(self, split: Split) -> Predicted:
        """The predicted class of every sample of a split, on every process."""
        return predictions_of(self, split)

    def scores(self, split: Split, *, features: bool = False) -> Scores:
        """Logits of every sample, and features if asked; of a large training set they would not fit into memory."""
        return scores_of(self, split, features=features)

    # What the engine asks for

    def begin_stage(self) -> None:
        """Build what a stage trains with."""
        self.order = build_order(self.config, self.train)
        self.method.stage_start(self)
        self.tap_again()
        self._placed(self.model)
        self.method.to(self.device)
        self.network = self._wrapped()
        self.batches = self._batches()
        groups = self.method.parameter_groups(self)
        self.optimizer = make_optimizer(self.config, groups)
        self.schedule = make_schedule(self.config, updates=self.updates, steps=len(self.batches))
        self.scaler = grad_scaler(self.config.precision, self.device)
        for handle in self._averaging:
            handle.remove()
        self._averaging = average_gradients(self.method)

    def remarks(self) -> list[str]:
        """What there is to say about the data and the settings before the first step."""
        tested = self.data.test.counts(self.num_classes) > 0
        untrained = (tested & (self.train_counts == 0)).nonzero().flatten().tolist()
        named = ", ".join(self.data.class_names[each] for each in untrained[:5]) + (", …" if len(untrained) > 5 else "")
        found = [f"Tested, but without training samples, so never right: {named}."] if untrained else []
        return found + self._remarks_on_parts()

    def _remarks_on_parts(self) -> list[str]:
        losses = [each for each in self.method.modules() if isinstance(each, ClassLoss) and not each.by_sample]
        if self.config.micro_batches == 1 or not losses:
            return []
        return [
            f"micro_batches={self.config.micro_batches}: {type(losses[0]).__name__} compares samples or remembers "
            f"them; it sees one micro-batch at a time, not whole batches of {self.config.batch_size}."
        ]

    def where(self) -> str:
        """The current place, for messages."""
        name = f"stage {self.stage.name}, " if len(self.stages) > 1 else ""
        return f"{name}epoch {self.position.epoch + 1}, step {self.position.step + 1}"

    def state_dict(self) -> dict[str, Any]:
        """Everything that later steps depend on, but random states."""
        return {
            "position": self.position.to_dict(),
            "model": self.model.state_dict(),
            "method": self.method.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "meter": self.meter.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a stored state."""
        self.position = Position(**state["position"])
        self.method.load_state_dict(state["method"])
        self.begin_stage()
        self.method.load_state_dict(state["method"])  # a stage's start may have changed it
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.meter.load_state_dict(state["meter"])

    def _new_method(self) -> Method:
        return build_method(
            self.config.method,
            num_classes=self.num_classes,
            class_counts=self.train_counts,
            feature_dim=self.tap.head.get_parameter("weight").shape[1],
            num_samples=len(self.train),
        )

    def _placed(self, module: nn.Module) -> nn.Module:
        module = module.to(self.device)
        return module.to(memory_format=torch.channels_last) if self.config.channels_last else module

    def _wrapped(self) -> nn.Module:
        network: Any = torch.compile(self.model) if self.config.compile else self.model
        if world_size() > 1 and any(each.requires_grad for each in self.model.parameters()):
            return DistributedDataParallel(network, [self.device] if self.device.type == "cuda" else None)
        return network

    def _batches(self) -> Batches:
        config, data = self.config, self.data
        assert config.batch_size is not None
        return Batches(
            self.train,
            self.order,
            batch_size=config.batch_size,
            augment=config.augment or "none",
            mix=None if config.mix == "none" else config.mix,
            mean=self.mean,
            std=self.std,
            seed=config.seed,
            num_classes=data.num_classes,
            views=self.method.views,
            device=self.device,
            channels_last=config.channels_last,
        )

    def _communication(self, last: bool) -> AbstractContextManager[object]:
        """Gradients of a batch's parts are exchanged once, with the last."""
        if not last and isinstance(self.network, DistributedDataParallel):
            return self.network.no_sync()
        return nullcontext()

    def _evaluate(self, objective: Callable[[Run, Batch], Tensor], batch: Batch, weight: float) -> Tensor:
        try:
            value = objective(self, batch)
        except InvalidBatchError:  # as losses do with what is not finite, or has no finite square: on all processes
            seen = {} if self._logits is None else {"size of the features": self.tap.features.detach().norm()}
            self._stop_if_not_finite(seen, batch)
            raise
        values = {"loss": value.detach(), **self.method.loss.terms}
        numbers = numbers_in(values | self._right(batch))
        if not math.isfinite(numbers["loss"]):
            self._stop_if_not_finite(values, batch)
        if weight:
            self.meter.add({name: numbers[name] for name in values}, weight)
            if "right" in numbers:
                here = len(batch.labels)
                self.meter.add({"train_accuracy": numbers["right"] / max(1, here)}, here, local=True)
        return value

    def _right(self, batch: Batch) -> dict[str, Tensor]:
        """How many samples of a part are classified correctly; not of several views or mixed samples, where none is."""
        logits_BK, labels_B = self._logits, batch.labels
        if logits_BK is None or len(logits_BK) != len(labels_B) or batch.targets.dim() != 1:
            return {}
        return {"right": (logits_BK.argmax(dim=1) == labels_B).sum()}

    def _stop_if_not_finite(self, values: dict[str, Tensor], batch: Batch) -> None:
        """Raise the same on every process if a value is not finite on one; all processes must ask."""
        logits = {} if self._logits is None else {"logits": self._logits}
        everywhere = all_gather_object([non_finite(logits | values), self.train.index[batch.rows.cpu()].tolist()])
        found = list(dict.fromkeys(name for names, _ in everywhere for name in names))
        if found:
            raise NonFiniteLossError(self.where(), found, [each for _, samples in everywhere for each in samples])


def _cut(config: TrainConfig, data: Dataset) -> tuple[Split, Split | None]:
    if not config.val_fraction:
        return data.train, None
    return hold_out(data.train, config.val_fraction, config.seed, data.num_classes)
