"""Hugging Face ``Trainer``: losses with features and state, and a per-class audit at every evaluation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from classgap.integrations._huggingface_audit import AuditCallback
from classgap.integrations._huggingface_loss import LossFunc, make_compute_loss_func
from classgap.integrations._tapped_loss import TappedLoss
from classgap.losses.base import ClassLoss
from classgap.losses.own_parameters import train_own_parameters

try:
    from transformers import Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer_utils import get_last_checkpoint
except ImportError as error:
    raise ImportError("classgap.integrations.huggingface requires transformers: pip install 'classgap[hf]'.") from error

__all__ = ["STATE_FILE", "AuditCallback", "ClassGapTrainer", "ClassLossMixin", "make_compute_loss_func"]

STATE_FILE = "class_loss.safetensors"


class ClassLossMixin:
    """Mixin that trains with a loss of classgap and saves the state of the loss in each checkpoint.

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

    >>> from transformers import Trainer
    >>> class MyTrainer(ClassLossMixin, Trainer):
    ...     pass  # MyTrainer(model, args, loss="mr2")
    >>> issubclass(MyTrainer, Trainer)
    True
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
        tapped = TappedLoss(loss, self.model, head=head, class_counts=class_counts, caller=type(self).__name__)
        self.loss, self.loss_lr = tapped.loss, loss_lr
        trainer.compute_loss_func = LossFunc(tapped, self.args)
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
            raise ValueError(f"{path} does not exist: resume from a checkpoint that a ClassGapTrainer saved.")
        self.loss.load_state_dict(load_file(path))


class ClassGapTrainer(ClassLossMixin, Trainer):  # type: ignore[misc]
    """``Trainer`` with a loss of classgap; see :class:`ClassLossMixin`.

    >>> import torch
    >>> from tempfile import TemporaryDirectory
    >>> from transformers import BertConfig, BertForSequenceClassification, TrainingArguments
    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    >>> model = BertForSequenceClassification(BertConfig(vocab_size=20, num_labels=3, **sizes))
    >>> data = [{"input_ids": torch.tensor([i % 20, 1]), "labels": i % 3} for i in range(12)]
    >>> with TemporaryDirectory() as folder:
    ...     quiet = {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, "dataloader_pin_memory": False}
    ...     args = TrainingArguments(folder, max_steps=1, **quiet)
    ...     trainer = ClassGapTrainer(model, args, train_dataset=data, loss="mr2")
    ...     trainer.train().global_step  # doctest: +ELLIPSIS
    {'train_runtime': ...}
    1
    """


class _ZeroGrad(TrainerCallback):
    """Clears the gradients of a loss after each step: ``Trainer`` clears those of the model only."""

    def __init__(self, loss: ClassLoss) -> None:
        self.loss = loss

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.loss.zero_grad()
