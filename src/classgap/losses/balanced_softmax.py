"""Balanced softmax (Ren et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from classgap.losses.logit_adjusted import LogitAdjustedLoss


class BalancedSoftmaxLoss(LogitAdjustedLoss):
    """Cross-entropy under a softmax in which each class is weighted by its sample count.

        mean over samples of   -ln( N_y e^{z_y} / Σ_k N_k e^{z_k} )

    Ren et al., "Balanced Meta-Softmax for Long-Tailed Visual Recognition", NeurIPS 2020, arXiv 2007.10740, without the
    meta sampler. It equals :class:`LogitAdjustedLoss` with τ = 1, which was derived independently. Predict with the raw
    logits.

    Args:
        class_counts: Number of training samples of each class.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> BalancedSoftmaxLoss([90, 10])(torch.zeros(1, 2), torch.tensor([1]))
    tensor(2.3026)
    """

    def __init__(
        self,
        class_counts: Sequence[float] | Tensor,
        *,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(class_counts, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
