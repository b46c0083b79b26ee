"""Terms of the margin bounds of MR² and LMDL: the ramp loss and the low-order term."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.theory.arguments import check_delta


@dataclass(frozen=True)
class RiskBound:
    """A bound on an error rate: empirical risk, complexity of the functions, and a low-order term for the random draw.

    The terms are scalars or have one entry per class.

    >>> bound = RiskBound(risk=torch.tensor(0.25), complexity=torch.tensor(0.5), low_order=torch.tensor(0.125))
    >>> bound.total, bound.vacuous
    (tensor(0.8750), tensor(False))
    """

    risk: Tensor
    complexity: Tensor
    low_order: Tensor

    @property
    def total(self) -> Tensor:
        """The bound itself."""
        return self.risk + self.complexity + self.low_order

    @property
    def vacuous(self) -> Tensor:
        """Whether the bound is at least 1 and thus uninformative."""
        return self.total >= 1


def ramp_loss(margin: Tensor, width: Tensor | float) -> Tensor:
    """Φ_γ(u) = min(1, max(0, 1 - u/γ)), MR² Definition 1 and Eq. (9); the same function is LMDL Eq. (5.1).

    Args:
        margin: Margin u, positive for correct predictions.
        width: Width γ > 0; the loss is 0 for larger margins.

    >>> ramp_loss(torch.tensor([-1.0, 0.5, 3.0]), 2.0)
    tensor([1.0000, 0.7500, 0.0000])
    """
    return (1 - margin / width).clamp(min=0, max=1)


def low_order_term(count: Tensor | int, delta: float) -> Tensor:
    """3 √(ln(2/δ) / 2N), the last term of MR² Eq. (11) and of LMDL Eq. (5.2) to (5.4); infinite without samples.

    >>> low_order_term(1000, delta=0.05)
    tensor(0.1288)
    """
    count = torch.as_tensor(count)
    count = count.to(torch.promote_types(count.dtype, torch.float32))
    return 3 * (math.log(2 / check_delta("delta", delta)) / (2 * count)).sqrt()
