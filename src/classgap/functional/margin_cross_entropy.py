"""The γ-margin cross-entropy of MR², Eq. (1), with optional class priors for logit adjustment."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

PLAIN_ELEMENTS = 2**17  # up to this number of logits, a backward pass in Python costs more than it saves
LOG2_E = 1 / math.log(2)


def margin_cross_entropy(
    logits_BK: Tensor, labels_B: Tensor, gamma_B: Tensor | None = None, log_prior_K: Tensor | None = None
) -> Tensor:
    """-ln softmax((z + ln π) / γ_y)_y for each sample, MR² Eq. (1); cross-entropy for γ = 1 and uniform π.

    All K logits of a sample are divided by the margin of *its* class. γ and π carry no gradient. 0 for samples labeled
    -1.

    >>> z, y = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    >>> margin_cross_entropy(z, y, gamma_B=torch.tensor([4 / 3, 2 / 3]))
    tensor([0.2014, 3.0486])
    """
    if log_prior_K is not None:
        logits_BK = logits_BK + log_prior_K.detach()
    if gamma_B is None:
        return F.cross_entropy(logits_BK, labels_B, reduction="none", ignore_index=-1)
    inverse_B = gamma_B.detach().reciprocal()
    # The compiler fuses this.
    if torch.compiler.is_compiling() or logits_BK.numel() <= PLAIN_ELEMENTS:
        return F.cross_entropy(logits_BK * inverse_B[:, None], labels_B, reduction="none", ignore_index=-1)
    return _MarginCrossEntropy.apply(logits_BK, labels_B, inverse_B)


def growing_force(cross_entropy_B: Tensor) -> Tensor:
    """Lower bound on how fast cross-entropy falls as all features grow: (1 - p) ln(p / (1 - p)), p = e^-cross-entropy.

    Under a linear head without bias, -dCE / d ln(scale) = z_y - Σ_k p_k z_k = H(p) - CE, and the entropy H(p) of K
    outcomes is at least that of the two outcomes "true class" and "another class". Negative for p < 1/2.

    >>> growing_force(-torch.tensor([0.5, 0.9]).log())
    tensor([0.0000, 0.2197])
    """
    minus_other_B = torch.expm1(-cross_entropy_B)  # -(1 - p), exact where p is nearly 1
    return torch.addcmul(torch.special.entr(-minus_other_B), minus_other_B, cross_entropy_B)


class _MarginCrossEntropy(torch.autograd.Function):
    """Scales inside the function, which avoids storing the scaled logits and two passes over (B, K) in backward."""

    @staticmethod
    def forward(ctx: Any, logits_BK: Tensor, labels_B: Tensor, inverse_B: Tensor) -> Tensor:
        log_p_BK = torch.log_softmax(logits_BK * inverse_B[:, None], dim=1)
        ctx.save_for_backward(log_p_BK, labels_B, inverse_B)
        return F.nll_loss(log_p_BK, labels_B, reduction="none", ignore_index=-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_B: Tensor) -> tuple[Tensor, None, None]:
        log_p_BK, labels_B, inverse_B = ctx.saved_tensors
        # d/dz = (softmax - onehot) / γ, and 0 for samples without a class.
        scale_B1 = (grad_B * inverse_B * (labels_B >= 0))[:, None]
        # On a CPU powers of 2 take half the time of powers of e.
        grad_BK = (log_p_BK * LOG2_E).exp2_().mul_(scale_B1)
        grad_BK.scatter_add_(1, labels_B.clamp(min=0)[:, None], -scale_B1)
        return grad_BK, None, None
