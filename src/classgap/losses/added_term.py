"""Base class of losses of the form "cross-entropy plus one term"."""

from __future__ import annotations

from torch import Tensor

from classgap.functional import margin_cross_entropy
from classgap.losses.arguments import check_float
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs


class AddedTermLoss(ClassLoss):
    """Base class of losses of the form CE(z, y) + λ · term. Subclasses implement ``term``.

    With λ = 0 the term and its required inputs are dropped, and cross-entropy remains.

    Args:
        num_classes: Number of classes K.
        strength: Weight λ of the term.
        required_inputs: Keywords that the term requires.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> class Small(AddedTermLoss):
    ...     term_name = "size"
    ...     def term(self, batch):
    ...         return batch.counted(batch.features.square().sum(dim=1))
    >>> import torch
    >>> loss = Small(3, strength=0.1)
    >>> _ = loss(torch.zeros(2, 3), torch.tensor([0, 1]), features=torch.ones(2, 4))
    >>> loss.terms
    {'cross_entropy': tensor(1.0986), 'size': tensor(4.)}
    """

    term_name = "term"

    def __init__(
        self,
        num_classes: int,
        *,
        strength: float,
        required_inputs: frozenset[str] = frozenset({"features"}),
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.strength = check_float("strength", strength, ge=0)
        if self.strength:
            self.required_inputs = required_inputs

    def term(self, batch: LossInputs) -> Tensor:
        """Return the term of each sample, (B,); 0 for ignored samples."""
        raise TypeError(f"{type(self).__name__} must define term(batch)")

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the parts "cross_entropy" and the term under ``term_name``."""
        parts = {"cross_entropy": Part(margin_cross_entropy(batch.logits_BK, batch.labels_B))}
        if self.strength:
            parts[self.term_name] = Part(self.term(batch), self.strength)
        return parts

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, strength={self.strength}"
