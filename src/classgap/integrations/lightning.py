"""Lightning: losses with features, state or parameters in a module, and audits of validation and test epochs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from classgap.integrations._lightning_audit import AuditCallback
from classgap.integrations._tapped_loss import TappedLoss
from classgap.losses.base import ClassLoss

__all__ = ["AuditCallback", "ClassLossMixin"]


class ClassLossMixin:
    """Loss of classgap in a ``LightningModule``: ``class Net(ClassLossMixin, LightningModule)``.

    Call ``set_class_loss`` in ``__init__`` and ``class_loss_of`` in the steps. The loss is a part of the module, so its
    state and parameters are in checkpoints, move with the module, belong to ``self.parameters()``, are synchronized by
    DDP, and do not change in evaluation.

    Attributes:
        class_loss: The loss.

    >>> import torch
    >>> from lightning.pytorch import LightningModule
    >>> class Net(ClassLossMixin, LightningModule):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    ...         self.set_class_loss("mr2", self.model)
    ...
    ...     def training_step(self, batch, batch_idx):
    ...         inputs, targets = batch
    ...         return self.class_loss_of(self.model(inputs), targets)
    >>> Net().training_step((torch.randn(6, 4), torch.arange(6) % 3), 0).dim()
    0
    """

    class_loss: ClassLoss

    def set_class_loss(
        self,
        loss: ClassLoss | str,
        model: nn.Module,
        *,
        head: nn.Module | str | None = None,
        class_counts: Sequence[float] | Tensor | None = None,
    ) -> None:
        """Add the loss to the module.

        Args:
            loss: A loss, or the name of a method: "mr2", "elm:strength=0.1".
            model: The network that returns the logits, a part of this module.
            head: Head of the network or its name, if it is not found.
            class_counts: Training samples per class, for methods built by name that need them.
        """
        self._tapped = TappedLoss(loss, model, head=head, class_counts=class_counts, caller="set_class_loss")
        self.class_loss = self._tapped.loss

    def class_loss_of(self, logits: Any, targets: Tensor) -> Tensor:
        """Compute the loss of the network's last batch."""
        self._check_loss()
        return self._tapped(logits, targets)

    def _check_loss(self) -> None:
        if "_tapped" not in vars(self):
            raise ValueError(
                f"{type(self).__name__} has no loss: call self.set_class_loss(loss, model) at the end of __init__."
            )

    def on_train_start(self) -> None:
        """Check that an optimizer trains the loss, and warn if gradient accumulation changes it."""
        self._check_loss()
        module: Any = self
        trainer, name = module.trainer, type(self.class_loss).__name__
        held = {id(each) for opt in trainer.optimizers for group in opt.param_groups for each in group["params"]}
        if any(each.requires_grad and id(each) not in held for each in self.class_loss.parameters()):
            raise ValueError(f"no optimizer holds the parameters of {name}: pass self.parameters() to the optimizer.")
        if trainer.accumulate_grad_batches > 1 and not self.class_loss.by_sample:
            warnings.warn(
                f"accumulate_grad_batches={trainer.accumulate_grad_batches}: {name} compares samples or keeps "
                "statistics, and sees one micro-batch at a time instead of the whole batch.",
                stacklevel=2,
            )
        parent: Any = super()
        parent.on_train_start()
