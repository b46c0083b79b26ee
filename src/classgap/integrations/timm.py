"""timm: a training task whose loss uses features, has state in timm's checkpoints, and may have parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from classgap.distributed import average_gradients
from classgap.integrations._tapped_loss import TappedLoss
from classgap.losses.base import ClassLoss
from classgap.losses.own_parameters import train_own_parameters

try:
    from timm.task import ClassificationTask
except ImportError as error:
    raise ImportError(
        "classgap.integrations.timm requires timm 1.0.30 or later: pip install 'classgap[vision]'."
    ) from error


class ClassLossTask(ClassificationTask):
    """``timm.task.ClassificationTask`` with a loss of classgap.

    ``CheckpointSaver(task=task, …)`` stores the state of the loss under ``task_state``, next to the weights of the
    model, which stay those of a plain timm model. ``resume_task_checkpoint`` restores both. The loss is a part of the
    task: ``task.eval()`` stops its updates, and timm validates the model without the task.

    Args:
        model: A timm model, or any classifier.
        loss: A loss, or the name of a method: "mr2", "elm:strength=0.1".
        head: Head of the model or its name, if it is not found.
        class_counts: Training samples per class, for methods built by name that need them.
        device: Device of the loss.
        dtype: As in ``ClassificationTask``.
        verbose: As in ``ClassificationTask``.

    >>> import timm
    >>> model = timm.create_model("test_resnet", num_classes=3)
    >>> task = ClassLossTask(model, "mr2", verbose=False)
    >>> result = task(torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 0]))
    >>> sorted(result)
    ['logit', 'loss', 'output', 'representation', 'representation_weight']
    """

    criterion: ClassLoss

    def __init__(
        self,
        model: nn.Module,
        loss: ClassLoss | str,
        *,
        head: nn.Module | str | None = None,
        class_counts: Sequence[float] | Tensor | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
        verbose: bool = True,
    ) -> None:
        tapped = TappedLoss(loss, model, head=head, class_counts=class_counts, caller=type(self).__name__)
        super().__init__(model, tapped.loss, device=device, dtype=dtype, verbose=verbose)
        self._tapped = tapped
        self._trained = not any(each.requires_grad for each in tapped.loss.parameters())
        self.criterion.to(self.device)

    def train_loss_parameters(self, optimizer: Optimizer, *, lr: float | None = None) -> None:
        """Add the parameters of the loss to the optimizer, without weight decay.

        Does nothing for a loss without parameters. Call it after ``prepare_distributed``: DDP wraps the model only, so
        the gradients of the loss are averaged here.

        Args:
            optimizer: Optimizer of the model.
            lr: Learning rate of the parameters; that of the optimizer by default.
        """
        held = {id(each) for group in optimizer.param_groups for each in group["params"]}
        if any(id(each) in held for each in self.criterion.parameters()):
            average_gradients(self.criterion)
        else:
            train_own_parameters(self.criterion, optimizer, lr=lr)
        self._trained = True

    def forward(self, input: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Compute the loss, the logits as ``output``, and the named terms of the loss.

        Raises:
            ValueError: If the loss has parameters that no optimizer trains.
        """
        if self.training and not self._trained:
            raise ValueError(
                f"no optimizer trains the parameters of {type(self.criterion).__name__}: call "
                "task.train_loss_parameters(optimizer)."
            )
        output = self.trainable_module(input)
        loss = self._tapped(output, target)
        return {**self.criterion.terms, "loss": loss, "output": output}

    def get_task_state(self, module: nn.Module | None = None, ema: bool = False) -> dict[str, Any]:
        """Return the state of the loss; it has no moving average."""
        state = self.criterion.state_dict()
        return {"class_loss": state} if state and not ema else {}

    def load_task_state(
        self, state: dict[str, Any] | None, strict: bool = True, module: nn.Module | None = None, ema: bool = False
    ) -> None:
        """Restore the state of the loss."""
        if not ema and state and "class_loss" in state:
            self.criterion.load_state_dict(state["class_loss"], strict=strict)

    def load_checkpoint_state(
        self,
        state_dict: dict[str, Any],
        task_state: dict[str, Any] | None = None,
        ema: bool = False,
        strict: bool = True,
    ) -> None:
        """Restore the model and the loss.

        Raises:
            ValueError: If ``strict`` and the checkpoint has no state of the loss; nothing is changed.
        """
        if strict and not ema and self.criterion.state_dict() and "class_loss" not in (task_state or {}):
            raise ValueError(
                f"the checkpoint has no state of {type(self.criterion).__name__} (task_state.class_loss): resume from "
                "a checkpoint of a ClassLossTask, or load the weights into the model itself."
            )
        super().load_checkpoint_state(state_dict, task_state, ema=ema, strict=strict)
