"""The spread-out regularizer, added to cross-entropy (Zhang et al. 2017)."""

from __future__ import annotations

from torch import Tensor

from classgap.functional import SamplePairs, on_sphere, spread_out
from classgap.losses.added_term import AddedTermLoss
from classgap.losses.arguments import check_choice
from classgap.losses.inputs import LossInputs


class SpreadOutLoss(AddedTermLoss):
    """Cross-entropy plus a regularizer that spreads feature directions as evenly as random ones.

        CE  +  λ [M₁² + max(0, M₂ - 1/D)],   M₁ = mean of f·f',  M₂ = mean of (f·f')²           ELM Eq. (7) to (9)

    Zhang et al., "Learning spread-out local feature descriptors", ICCV 2017, arXiv 1708.06320. Features are normalized
    to unit length. The means are over pairs of the global batch of all processes (N² products). Every sample has the
    same term.

    Differences between sources: the official code (ColumbiaDVMM/Spread-out_Local_Feature_Descriptor) compares one
    non-matching pair per anchor and adds the term to a triplet loss. ``pairs="different"`` generalizes this to all
    pairs of different classes. The ELM paper uses all pairs, ``pairs="all"``, which also pushes samples of a class
    apart.

    Args:
        num_classes: Number of classes K.
        strength: Weight λ of the regularizer.
        pairs: "different" for pairs of different classes, "all" for all pairs.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> loss = SpreadOutLoss(num_classes=2)
    >>> _ = loss(torch.zeros(2, 2), torch.tensor([0, 1]), features=torch.tensor([[1.0, 0.0], [3.0, 0.0]]))
    >>> loss.terms["spread"]  # 1 + (1 - 1/2)
    tensor(1.5000)
    """

    term_name = "spread"

    def __init__(
        self,
        num_classes: int,
        *,
        strength: float = 1.0,
        pairs: str = "different",
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(
            num_classes, strength=strength, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args
        )
        self.pairs = check_choice("pairs", pairs, ("different", "all"))

    def term(self, batch: LossInputs) -> Tensor:
        """ELM Eq. (9), the same for every sample."""
        unit_ND = batch.shards.gather(on_sphere(batch.features))
        pairs = SamplePairs.from_labels(batch.shards.gather(batch.labels_B))
        value = spread_out(unit_ND, pairs.negative_BN if self.pairs == "different" else pairs.other_BN)
        return batch.counted(value.expand_as(batch.labels_B))

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, pairs={self.pairs!r}"
