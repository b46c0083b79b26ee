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
    """A linear layer that does not learn, times a factor for each output that does.

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
        """A layer's own weights, with factors of 1."""
        made = cls(linear.in_features, linear.out_features, bias=linear.bias is not None).to(linear.weight)
        made.load_state_dict({**linear.state_dict(), "scale": made.scale.data})
        return made

    def forward(self, features: Tensor) -> Tensor:
        """Scaled logits, (B, K)."""
        return super().forward(features) * self.scale

    @torch.no_grad()
    def folded(self) -> nn.Linear:
        """The linear layer that does the same."""
        plain = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None).to(self.weight)
        plain.weight.copy_(self.weight * self.scale[:, None])
        if self.bias is not None:
            plain.bias.copy_(self.bias * self.scale)
        return plain


class LearnedWeightScaling(ClassifierStage):
    """After training, a factor for each row of the classifier, learned with all classes drawn equally often.

        z_k  ←  f_k (w_k·x + b_k),      f by CE over class-balanced draws, all else frozen                     Eq. (4)

    Kang et al., "Decoupling representation and classifier for long-tailed recognition", ICLR 2020, arXiv 1910.09217.
    The rate starts again from the run's own and follows its schedule. The factors end up in the head. The published
    code has 5 epochs after 90, scales the bias too, and decays the factors towards 0, as the run's weight decay does
    here; its file for this is called TauNormClassifier.

    Args:
        inner: what trains encoder and classifier.
        num_classes: K.
        share: of the run's epochs, for the factors.

    >>> from classgap.losses import CrossEntropyLoss
    >>> [stage.name for stage in LearnedWeightScaling(Method(CrossEntropyLoss(10)), 10).stages()]
    ['train', 're-training']
    """

    name = "lws"

    def __init__(self, inner: Method, num_classes: int, *, share: float = 0.06) -> None:
        super().__init__(inner, num_classes, share=share)

    def trained_head(self, head: nn.Linear, model: nn.Module) -> None:
        """Put factors on it."""
        exchange_head(model, ScaledLinear.from_linear(head))

    def finish(self, run: TrainingRun) -> None:
        """Put the factors into the head."""
        super().finish(run)
        head = head_of(run.model)
        assert isinstance(head, ScaledLinear)
        exchange_head(run.model, head.folded())
        run.tap_again()
