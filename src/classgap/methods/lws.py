"""Learned weight scaling, LWS (Kang et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from classgap.methods.classifier_stage import ClassifierStage
from classgap.methods.method import Method
from classgap.models.heads import exchange_head, head_of

if TYPE_CHECKING:
    from classgap.methods.protocol import TrainingRun


class ScaledLinear(nn.Linear):
    """A frozen linear layer with a learnable scale per output.

    >>> scaled = ScaledLinear.from_linear(nn.Linear(4, 3))
    >>> [name for name, each in scaled.named_parameters() if each.requires_grad]
    ['scale']
    """

    def __init__(self, features: int, classes: int, *, bias: bool) -> None:
        super().__init__(features, classes, bias=bias)
        self.requires_grad_(False)
        self.scale = nn.Parameter(torch.ones(classes))

    @classmethod
    def from_linear(cls, linear: nn.Linear) -> ScaledLinear:
        """Wrap a linear layer, with scales of 1."""
        made = cls(linear.in_features, linear.out_features, bias=linear.bias is not None).to(linear.weight)
        made.load_state_dict({**linear.state_dict(), "scale": made.scale.data})
        return made

    def forward(self, features: Tensor) -> Tensor:
        """Return the scaled logits, (B, K)."""
        return super().forward(features) * self.scale

    @torch.no_grad()
    def to_linear(self) -> nn.Linear:
        """Return the equivalent linear layer."""
        plain = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None).to(self.weight)
        plain.weight.copy_(self.weight * self.scale[:, None])
        if self.bias is not None:
            plain.bias.copy_(self.bias * self.scale)
        return plain


class LearnedWeightScaling(ClassifierStage):
    """Learn a scale for each classifier row after training, with class-balanced sampling.

        z_k  ←  f_k (w_k·x + b_k),      f by CE over class-balanced samples, all else frozen                   Eq. (4)

    Kang et al., "Decoupling representation and classifier for long-tailed recognition", ICLR 2020, arXiv 1910.09217.
    The learning rate schedule restarts for this stage. The scales are folded into the head at the end. As in
    the published code (TauNormClassifier), the scales also apply to the bias and are subject to weight decay. It
    trains the encoder for 90 epochs and the scales for 5.

    Args:
        inner: Method that trains encoder and classifier.
        num_classes: Number of classes K.
        fraction: Length of the stage, as a fraction of the run's epochs.

    >>> from classgap.losses import CrossEntropyLoss
    >>> [stage.name for stage in LearnedWeightScaling(Method(CrossEntropyLoss(10)), 10).stages()]
    ['train', 're-training']
    """

    name = "lws"

    def __init__(self, inner: Method, num_classes: int, *, fraction: float = 0.06) -> None:
        super().__init__(inner, num_classes, fraction=fraction)

    def prepare_head(self, head: nn.Linear, model: nn.Module) -> None:
        """Add the scales to the head."""
        exchange_head(model, ScaledLinear.from_linear(head))

    def finish(self, run: TrainingRun) -> None:
        """Fold the scales into the head."""
        super().finish(run)
        head = head_of(run.model)
        assert isinstance(head, ScaledLinear)
        exchange_head(run.model, head.to_linear())
        run.refresh_tap()
