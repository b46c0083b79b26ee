"""Hugging Face ``Trainer``: losses with features and state, and a per-class audit at every evaluation."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from classgap.audit import Audit
from classgap.audit.io.inference import id2label_names
from classgap.distributed import all_reduce_sum, world_size
from classgap.integrations._audit_metrics import audit_metrics
from classgap.integrations._tapped_loss import TappedLoss
from classgap.losses.base import ClassLoss
from classgap.losses.own_parameters import train_own_parameters

try:
    from transformers import EvalPrediction, Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer_utils import get_last_checkpoint
except ImportError as error:
    raise ImportError("classgap.integrations.huggingface requires transformers: pip install 'classgap[hf]'.") from error

STATE_FILE = "class_loss.safetensors"
LossFunc = Callable[..., Tensor]


def make_compute_loss_func(
    loss: ClassLoss | str,
    model: nn.Module,
    args: TrainingArguments,
    *,
    head: nn.Module | str | None = None,
    class_counts: Sequence[float] | Tensor | None = None,
) -> LossFunc:
    """Return a ``compute_loss_func`` for ``Trainer``.

    Under gradient accumulation and on several processes the gradient equals that of the global batch, if the loss is a
    mean over samples. Checkpoints do not contain the state of the loss, and the optimizer does not train its
    parameters: use ``ClassLossTrainer`` for losses with either.

    Args:
        loss: A loss, or the name of a method: "mr2", "elm:strength=0.1".
        model: The model that the trainer trains.
        args: The arguments of the trainer.
        head: Head of the model or its name, if it is not found.
        class_counts: Training samples per class, for methods built by name that need them.

    Raises:
        ValueError: If the loss has parameters, or an argument is not supported.
    """
    func = _LossFunc(TappedLoss(loss, model, head=head, class_counts=class_counts), args)
    name = type(func.tapped.loss).__name__
    if any(each.requires_grad for each in func.tapped.loss.parameters()):
        raise ValueError(f"{name} has parameters, which the optimizer would not train; use ClassLossTrainer.")
    if not func.tapped.loss.by_sample and func.tapped.loss.state_dict():
        warnings.warn(f"Checkpoints will not contain the state of {name}; use ClassLossTrainer.", stacklevel=2)
    return func


class ClassLossMixin:
    """Trains a ``Trainer`` with a loss of classgap and saves the state of the loss with each checkpoint.

    The model stays a plain ``PreTrainedModel``. Its folder also contains ``class_loss.safetensors``, which
    ``from_pretrained`` ignores and ``train(resume_from_checkpoint=…)`` reads. Parameters of the loss are trained in a
    parameter group of their own. The loss follows the mode of the model, so evaluation does not change its state.

    ``Trainer`` divides by the labels of all accumulated batches and multiplies by the number of processes. The mixin
    compensates: the gradient is that of the global batch for losses that are means over samples. Losses that compare
    samples or keep statistics see one micro-batch at a time, and a warning says so.

    Args:
        args: Positional arguments of the trainer.
        loss: A loss, or the name of a method: "mr2", "elm:strength=0.1".
        loss_lr: Learning rate of the parameters of the loss; ``args.learning_rate`` by default.
        head: Head of the model or its name, if it is not found.
        class_counts: Training samples per class, for methods built by name that need them.
        kwargs: Keyword arguments of the trainer, except ``compute_loss_func`` and ``model_init``.
    """

    model: nn.Module
    args: TrainingArguments
    state: Any

    def __init__(
        self,
        *args: Any,
        loss: ClassLoss | str,
        loss_lr: float | None = None,
        head: nn.Module | str | None = None,
        class_counts: Sequence[float] | Tensor | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        trainer: Any = self
        for name in ("compute_loss_func", "model_init"):
            if getattr(trainer, name) is not None:
                raise ValueError(f"{name} must be None, got {getattr(trainer, name)!r}; pass loss=… and model=….")
        tapped = TappedLoss(loss, self.model, head=head, class_counts=class_counts)
        self.loss, self.loss_lr = tapped.loss, loss_lr
        trainer.compute_loss_func = _LossFunc(tapped, self.args)
        trainer.add_callback(_ZeroGrad(self.loss))

    def create_optimizer(self, model: Any = None) -> Any:
        """Add the parameters of the loss to the optimizer."""
        trainer: Any = super()
        optimizer = trainer.create_optimizer(model)
        held = {id(each) for group in optimizer.param_groups for each in group["params"]}
        if not any(id(each) in held for each in self.loss.parameters()):
            train_own_parameters(self.loss, optimizer, lr=self.loss_lr)
        return optimizer

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        """Train; restore the loss with the model."""
        trainer: Any = super()
        folder = resume_from_checkpoint
        if folder is True:
            folder = get_last_checkpoint(self.args.output_dir)  # type: ignore[no-untyped-call]
        if folder:
            self._load_loss(folder)
        result = trainer.train(resume_from_checkpoint, *args, **kwargs)
        best = self.state.best_model_checkpoint if self.args.load_best_model_at_end else None
        if best is not None:
            self._load_loss(best)
        return result

    def save_model(self, output_dir: str | None = None, *args: Any, **kwargs: Any) -> None:
        """Save the model, and the state of the loss next to it."""
        trainer: Any = super()
        trainer.save_model(output_dir, *args, **kwargs)
        state = {name: each.detach().contiguous() for name, each in self.loss.state_dict().items()}
        if self.args.should_save and state:
            save_file(state, Path(output_dir or str(self.args.output_dir), STATE_FILE))

    def _load_loss(self, folder: str | os.PathLike[str]) -> None:
        if not self.loss.state_dict():
            return
        path = Path(folder, STATE_FILE)
        if not path.is_file():
            raise ValueError(f"{path} does not exist: resume from a checkpoint that a ClassLossTrainer saved.")
        self.loss.load_state_dict(load_file(path))


class ClassLossTrainer(ClassLossMixin, Trainer):  # type: ignore[misc]
    """``Trainer`` with a loss of classgap; see :class:`ClassLossMixin`."""


class AuditCallback(TrainerCallback):
    """Audits every evaluation and prediction of a ``Trainer``, class by class.

    Pass it twice: ``Trainer(…, callbacks=[audit], compute_metrics=audit.compute_metrics)``. The metrics appear in the
    logs as ``eval_hard_accuracy``, ``eval_worst_class_accuracy``, …; ``metric_for_best_model="hard_accuracy"`` works.
    Each evaluation writes ``audit.json`` and ``report.html`` to ``output_dir/eval``, each ``predict`` to
    ``output_dir/test``. ``Trainer`` drops the samples that several processes repeat to get equally many.

    Args:
        class_names: Names of the classes; ``id2label`` of the model by default.
        settings: Other keyword arguments of ``Audit.from_predictions``: ``train_counts``, ``rank_by``, ``groups``, ….

    Attributes:
        audit: The last audit.
    """

    def __init__(self, *, class_names: Sequence[str] | None = None, **settings: Any) -> None:
        self.class_names = class_names
        self.settings = settings
        self.audit: Audit | None = None
        self._model: nn.Module | None = None

    def compute_metrics(self, prediction: EvalPrediction) -> dict[str, float]:
        """Audit the predictions and return the main figures."""
        logits, targets = prediction.predictions, prediction.label_ids
        logits = logits[0] if isinstance(logits, tuple) else logits
        names = self.class_names
        if names is None and self._model is not None:
            names = id2label_names(self._model, logits.shape[1])
        labeled = targets != -100  # as in Trainer, such samples have no label
        self.audit = Audit.from_predictions(logits[labeled], targets[labeled], class_names=names, **self.settings)
        return audit_metrics(self.audit)

    def on_init_end(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        """Remember the model, for its class names."""
        self._model = model

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the audit of an evaluation."""
        self._write(args, state, kwargs["metrics"])

    def on_predict(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **kwargs: Any) -> None:
        """Write the audit of a prediction."""
        self._write(args, state, metrics)

    def _write(self, args: Any, state: Any, metrics: dict[str, float]) -> None:
        prefixes = [name.removesuffix("_balanced_accuracy") for name in metrics if name.endswith("_balanced_accuracy")]
        if self.audit is None or not prefixes:
            raise ValueError("AuditCallback saw no predictions: pass compute_metrics=audit.compute_metrics to Trainer.")
        if state.is_world_process_zero:
            folder = Path(args.output_dir, prefixes[0])
            folder.mkdir(parents=True, exist_ok=True)
            self.audit.save(folder / "audit.json")
            self.audit.to_html(folder / "report.html")


class _LossFunc:
    """``compute_loss_func`` whose accumulated and averaged gradient is that of the global batch."""

    def __init__(self, tapped: TappedLoss, args: TrainingArguments) -> None:
        loss, steps = tapped.loss, args.gradient_accumulation_steps
        if loss.reduction == "none" or loss.ignore_index != -100:
            raise ValueError(
                f"loss must have reduction 'mean' or 'sum' and ignore_index -100, as Trainer counts labels; got "
                f"{loss.reduction!r} and {loss.ignore_index}."
            )
        if args.label_smoothing_factor:
            raise ValueError(
                f"label_smoothing_factor must be 0, got {args.label_smoothing_factor}: Trainer would not apply it to "
                "this loss; use CrossEntropyLoss(…, label_smoothing=…)."
            )
        if args.n_gpu > 1:
            raise ValueError(f"Trainer would copy the model to {args.n_gpu} devices; start it with torchrun instead.")
        if steps > 1 and not loss.by_sample:
            warnings.warn(
                f"gradient_accumulation_steps={steps}: {type(loss).__name__} compares samples or keeps statistics, and "
                "sees one micro-batch at a time instead of the whole batch.",
                stacklevel=4,
            )
        self.tapped = tapped
        self.args = args
        loss.to(args.device)

    def __call__(self, outputs: Any, labels: Tensor | None, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        if labels is None:
            raise ValueError("labels are missing: the dataset or the data collator must provide 'labels'.")
        # The loss is not part of the model, so model.eval() does not reach it, and evaluation would change its state.
        self.tapped.loss.train(self.tapped.model.training)
        value = self.tapped(outputs, labels)
        # Trainer multiplies the result by the number of processes, in training and in evaluation.
        joint = self.args.average_tokens_across_devices and num_items_in_batch is not None
        factor = 1 / world_size() if joint else 1.0
        if not self.tapped.loss.training or self.tapped.loss.reduction == "sum":
            return value * factor
        if num_items_in_batch is None:
            return value / self.args.gradient_accumulation_steps
        # A micro-batch contributes its fraction of the labels. Both counts are global, because so is the loss.
        mine = labels.ne(-100).sum()
        total = torch.as_tensor(num_items_in_batch, device=mine.device).to(mine.dtype).reshape(())
        if world_size() > 1:
            own, summed = all_reduce_sum(torch.stack([mine, total])).unbind()
            mine, total = own, total if joint else summed
        return value * (mine / total.clamp(min=1)) * factor


class _ZeroGrad(TrainerCallback):
    """Clears the gradients of a loss after each step: ``Trainer`` clears those of the model only."""

    def __init__(self, loss: ClassLoss) -> None:
        self.loss = loss

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.loss.zero_grad()
