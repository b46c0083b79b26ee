"""The class-balanced focal loss (Cui et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from classgap.functional import effective_number_weights
from classgap.losses.arguments import check_counts, check_fraction
from classgap.losses.focal import FocalLoss


class ClassBalancedFocalLoss(FocalLoss):
    """Focal loss with each class weighted by the inverse of its effective number of samples.

        mean over samples of   w_y · focal(z, y),      w_c ∝ (1 - β) / (1 - β^{N_c}),   Σ_c w_c = K           Eq. (13)

    Cui et al., "Class-Balanced Loss Based on Effective Number of Samples", CVPR 2019, arXiv 1901.05555. The defaults
    follow the published script, including the sigmoid form; the paper tunes γ over 0.5, 1 and 2. As published,
    initialize the bias of the last layer to -ln(K - 1) and exclude it from weight decay.

    The "softmax" option of a widely used port is the binary cross-entropy of softmax outputs. ``form="softmax"`` is the
    softmax focal loss.

    Args:
        class_counts: Number of training samples of each class.
        beta: β in [0, 1); 0 weights all classes equally.
        gamma: Focusing parameter γ of ``FocalLoss``.
        form: "sigmoid" or "softmax".
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> loss = ClassBalancedFocalLoss([100, 10])
    >>> loss.weight
    tensor([0.1826, 1.8174])
    >>> loss(torch.zeros(2, 2), torch.tensor([0, 1]))
    tensor(0.6931)
    """

    def __init__(
        self,
        class_counts: Sequence[float] | Tensor,
        *,
        beta: float = 0.9999,
        gamma: float = 1.0,
        form: str = "sigmoid",
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        counts = check_counts("class_counts", class_counts)
        weights = effective_number_weights(counts, check_fraction("beta", beta))
        super().__init__(
            len(counts),
            gamma=gamma,
            form=form,
            weight=weights,
            reduction=reduction,
            ignore_index=ignore_index,
            validate_args=validate_args,
        )
