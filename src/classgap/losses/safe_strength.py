"""The largest weight of a pull on the features that does not dominate cross-entropy."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from classgap.functional import growing_force
from classgap.losses.inputs import LossInputs

# For strength="auto": largest ratio of the term's force to that of cross-entropy. Chosen from 1 to 8: 8 hurts on one
# problem, and 1 has little effect on both (docs/mr2.md, "How large should the cap be?").
LARGEST_FORCE = 2.0


def safe_strength(
    cross_entropy_B: Tensor,
    force_B: Tensor,
    batch: LossInputs,
    *,
    largest: float = math.inf,
    force: float = LARGEST_FORCE,
) -> Tensor:
    """Return the largest weight, up to ``largest``, that keeps a term's force within ``force`` times cross-entropy's.

    Both forces act on the scale of all features. A term that shrinks them falls by ``force_B`` per unit decrease of the
    log scale; cross-entropy falls by at least :func:`~classgap.functional.growing_force` per unit increase. Only
    samples whose true class has p > 1/2 count for cross-entropy, because over all samples of a calibrated model its
    force is 0 at any accuracy. As classes merge, p falls below 1/2 and the weight goes to 0. See docs/mr2.md for the
    derivation.

    Args:
        cross_entropy_B: Cross-entropy of the local samples, without gradient.
        force_B: Decrease of each sample's term as the features shrink; 0 for ignored samples.
        batch: Inputs of the call.
        largest: Largest weight to return.
        force: Largest ratio of the two forces.
    """
    growing_B = batch.counted(growing_force(cross_entropy_B).clamp_(min=0))
    growing, shrinking = batch.shards.sums(growing_B.sum(), force_B.sum())
    # If nothing shrinks, the quotient is huge or 0, and the weight does not matter.
    allowed = force * growing / shrinking.clamp(min=torch.finfo(shrinking.dtype).tiny)
    return allowed.clamp(max=min(largest, torch.finfo(shrinking.dtype).max))
