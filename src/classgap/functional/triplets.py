"""The hinge of the triplet loss with batch-hard mining.

Hermans et al., "In defense of the triplet loss for person re-identification", 2017, arXiv 1703.07737; the ELM paper
calls the hinge Ω_trip (Sec. 3.2).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from classgap.functional.sample_pairs import SamplePairs


def hardest_triplets(distance_BN: Tensor, pairs: SamplePairs, margin: float | None) -> Tensor:
    """[γ + max_{x⁺} d(x, x⁺) - min_{x⁻} d(x, x⁻)]₊ for each anchor, or its softplus without γ ("soft margin").

    0 for an anchor without a positive or without a negative.

    Args:
        distance_BN: Any distance d between anchors and samples.
        pairs: Positives and negatives of the anchors.
        margin: Margin γ; None for the soft margin.

    >>> distance = torch.tensor([[0.0, 1.0, 0.5]])
    >>> hardest_triplets(distance, SamplePairs.from_labels(torch.tensor([0, 0, 1]), slice(0, 1)), margin=0.3)
    tensor([0.8000])
    """
    # The padding makes anchors without such a sample infinitely easy, also in an empty batch.
    farthest_B = pad(distance_BN.masked_fill(~pairs.positive_BN, -torch.inf), (0, 1), value=-torch.inf).amax(dim=1)
    nearest_B = pad(distance_BN.masked_fill(~pairs.negative_BN, torch.inf), (0, 1), value=torch.inf).amin(dim=1)
    excess_B = farthest_B - nearest_B
    return softplus(excess_B) if margin is None else (excess_B + margin).clamp(min=0)
