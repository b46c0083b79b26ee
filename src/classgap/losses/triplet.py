"""The triplet loss with the hardest samples of the batch, added to cross-entropy."""

from __future__ import annotations

from torch import Tensor

from classgap.functional import SamplePairs, distances, hardest_triplets, on_sphere
from classgap.losses.added_term import AddedTermLoss
from classgap.losses.arguments import check_bool, check_choice, check_float
from classgap.losses.inputs import LossInputs


class TripletLoss(AddedTermLoss):
    """Cross-entropy, and a margin between each sample's farthest class mate and its nearest sample of another class.

        mean over samples of   CE(z, y)  +  λ [γ + max_{x⁺} d(x, x⁺) - min_{x⁻} d(x, x⁻)]₊

    Schroff et al., "FaceNet", CVPR 2015, arXiv 1503.03832; the hardest of the batch by Hermans et al., "In defense of
    the triplet loss", 2017, arXiv 1703.07737. d is the Euclidean distance, or -f·f' as the ELM paper writes it
    (Sec. 3.2). Both are sought in the whole batch, on all processes: N² distances. A sample without a class mate or
    without a stranger in the batch gives 0 and counts in the mean.

    Where sources differ: fast-reid takes a sample as its own class mate, at distance 0, if it has no other;
    pytorch-metric-learning normalizes features, has γ = 0.05 and divides by the number of terms above 0, not by that
    of samples. The ELM paper averages over x⁺ and x⁻ and leaves mining open.

    Args:
        num_classes: K.
        strength: λ.
        margin: γ, or "soft" for ln(1 + e^(…)) without γ in the place of [γ + …]₊.
        distance: "euclidean" or "product".
        normalize: put features on the unit sphere first.
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
        """The hinge, of the hardest."""
        features_BD = on_sphere(batch.features) if self.normalize else batch.features
        features_ND = batch.shards.gather(features_BD)
        pairs = SamplePairs.from_labels(batch.shards.gather(batch.labels_B), batch.shards.mine)
        if self.distance == "product":
            distance_BN = -features_BD @ features_ND.T
        else:
            distance_BN = distances(features_BD, features_ND)
        return hardest_triplets(distance_BN, pairs, None if self.margin == "soft" else float(self.margin))

    def extra_repr(self) -> str:
        """The settings that make the form."""
        return f"{super().extra_repr()}, margin={self.margin!r}, distance={self.distance!r}"
