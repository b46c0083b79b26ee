"""The triplet loss with batch-hard mining, added to cross-entropy."""

from __future__ import annotations

from torch import Tensor

from classgap.functional import SamplePairs, distances, hardest_triplets, on_sphere
from classgap.losses.added_term import AddedTermLoss
from classgap.losses.arguments import check_bool, check_choice, check_float
from classgap.losses.inputs import LossInputs


class TripletLoss(AddedTermLoss):
    """Cross-entropy plus a margin between each sample's farthest positive and nearest negative.

        mean over samples of   CE(z, y)  +  λ [γ + max_{x⁺} d(x, x⁺) - min_{x⁻} d(x, x⁻)]₊

    Schroff et al., "FaceNet", CVPR 2015, arXiv 1503.03832, with batch-hard mining by Hermans et al., "In defense of the
    triplet loss", 2017, arXiv 1703.07737. d is the Euclidean distance, or -f·f' as in the ELM paper (Sec. 3.2).
    Positives and negatives come from the global batch of all processes (N² distances). A sample without a positive or
    a negative contributes 0 and counts in the mean.

    Differences between sources: fast-reid uses a sample as its own positive, at distance 0, if it has no other.
    pytorch-metric-learning normalizes features, uses γ = 0.05 and divides by the number of nonzero terms. The ELM paper
    averages over x⁺ and x⁻ and does not specify mining.

    Args:
        num_classes: Number of classes K.
        strength: Weight λ of the term.
        margin: Margin γ, or "soft" for ln(1 + e^(…)) without γ instead of [γ + …]₊.
        distance: "euclidean" or "product".
        normalize: Whether to normalize features to unit length.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> loss = TripletLoss(num_classes=2)
    >>> features = torch.tensor([[0.0], [1.0], [-0.5]])
    >>> _ = loss(torch.zeros(3, 2), torch.tensor([0, 0, 1]), features=features)
    >>> loss.terms["triplet"]  # (0.8 + 0 + 0) / 3: the third has no class mate
    tensor(0.2667)
    """

    term_name = "triplet"

    def __init__(
        self,
        num_classes: int,
        *,
        strength: float = 1.0,
        margin: float | str = 0.3,
        distance: str = "euclidean",
        normalize: bool = False,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(
            num_classes, strength=strength, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args
        )
        self.margin = margin if margin == "soft" else check_float("margin", margin, ge=0, or_value="soft")
        self.distance = check_choice("distance", distance, ("euclidean", "product"))
        self.normalize = check_bool("normalize", normalize)

    def term(self, batch: LossInputs) -> Tensor:
        """Hinge with the hardest positive and negative."""
        features_BD = on_sphere(batch.features) if self.normalize else batch.features
        features_ND = batch.shards.gather(features_BD)
        pairs = SamplePairs.from_labels(batch.shards.gather(batch.labels_B), batch.shards.mine)
        if self.distance == "product":
            distance_BN = -features_BD @ features_ND.T
        else:
            distance_BN = distances(features_BD, features_ND)
        return hardest_triplets(distance_BN, pairs, None if self.margin == "soft" else float(self.margin))

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, margin={self.margin!r}, distance={self.distance!r}"
