"""How strongly a term may pull on the features in a batch without wrecking the classifier."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from classgap.functional import growing_force
from classgap.losses.inputs import LossInputs

# strength="auto" of every loss: at most so many times the force of cross-entropy. Chosen from 1 to 8, where 8 hurts on
# one problem and 1 does little on both (docs/mr2.md, "How much").
LARGEST_FORCE = 2.0


def safe_strength(
    cross_entropy_B: Tensor,
    force_B: Tensor,
    batch: LossInputs,
    *,
    largest: float = math.inf,
    force: float = LARGEST_FORCE,
) -> Tensor:
    """The largest factor that keeps a term's force within ``force`` times cross-entropy's, and up to ``largest``.

    Both forces act on the scale of all features: a term that shrinks them falls by ``force_B`` as the logarithm of the
    scale falls by 1, and cross-entropy falls by at least :func:`~classgap.functional.growing_force` as it grows by 1.
    Only samples that are right with p > 1/2 are counted for cross-entropy: over all samples of a well calibrated model
    its force is 0 at any accuracy. As classes merge, p falls below 1/2 and the term is let go. docs/mr2.md has the
    derivation.

    Args:
        cross_entropy_B: cross-entropy of this process's samples, without gradient.
        force_B: how fast each sample's term falls as the features shrink; 0 for samples that are ignored.
        batch: what the samples are.
        largest: the factor where cross-entropy allows more.
        force: how many times cross-entropy's the term's force may be.
    """
    growing_B = batch.counted(growing_force(cross_entropy_B).clamp_(min=0))
    growing, shrinking = batch.shards.sums(growing_B.sum(), force_B.sum())
    # Where nothing shrinks the quotient is huge or 0, and the factor does not matter.
    allowed = force * growing / shrinking.clamp(min=torch.finfo(shrinking.dtype).tiny)
    return allowed.clamp(max=min(largest, torch.finfo(shrinking.dtype).max))
