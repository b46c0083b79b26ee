"""Conformance cases of the losses on features that the papers compare with."""

from functools import partial

import torch
from slow_feature_references import (
    SlowCenter,
    SlowContrastive,
    SlowDROLT,
    SlowGaussianMixture,
    SlowHybrid,
    SlowRange,
    SlowSpreadOut,
    SlowTriplet,
)

from classgap.losses import (
    CenterLoss,
    DROLTLoss,
    GaussianMixtureHead,
    GaussianMixtureLoss,
    HybridContrastiveLoss,
    RangeLoss,
    SpreadOutLoss,
    SupervisedContrastiveLoss,
    TripletLoss,
)
from classgap.testing import LossCase

CENTROIDS = [[((3 * k + 5 * j) % 7) / 3 - 1 for j in range(6)] for k in range(5)]
ELM_FORM = {"centroids": "running", "squared": True, "epsilon": 0.5, "average": "sample"}


def plain(loss, reference, num_classes: int = 5, **settings) -> LossCase:
    return LossCase(partial(loss, num_classes, **settings), num_classes, reference=reference(**settings))


def center(num_classes: int = 5, **settings) -> LossCase:
    return LossCase(partial(CenterLoss, num_classes, 6, **settings), num_classes, reference=SlowCenter(**settings))


def dro_lt_with_centroids(**settings) -> DROLTLoss:
    loss = DROLTLoss(5, 6, **settings)
    loss.update(torch.tensor(CENTROIDS))
    return loss


def dro_lt(epsilon: float | str = "learned", **settings) -> LossCase:
    factory = partial(dro_lt_with_centroids, epsilon=epsilon, **settings)
    start = 1.0 if epsilon == "learned" else epsilon
    return LossCase(factory, 5, reference=SlowDROLT([start] * 5, CENTROIDS, **settings))


def dro_lt_one_stage(num_classes: int = 5) -> LossCase:
    counts = [90, 30, 9, 3, 1][:num_classes]
    factory = partial(DROLTLoss, num_classes, 6, class_counts=counts, **ELM_FORM)
    epsilons = [0.5 / (count / sum(counts)) ** 0.5 for count in counts]
    return LossCase(factory, num_classes, reference=SlowDROLT(epsilons, None, squared=True, average="sample"))


def gaussian(num_classes: int = 5, *, margin: float = 0.1, strength: float = 0.1, **head) -> LossCase:
    settings = {"margin": margin, "strength": strength}
    reference = SlowGaussianMixture(**settings, log_determinant=head.get("log_determinant", "variances" in head))
    factory = partial(GaussianMixtureLoss, num_classes, **settings)
    return LossCase(factory, num_classes, reference=reference, head=partial(GaussianMixtureHead, **head))


FEATURE_CASES = {
    "center": center(strength=0.5),
    "center-trained": center(strength=0.5, centers="trained"),
    "center-rate": center(strength=0.5, rate=1.5),
    "gaussian": gaussian(),
    "gaussian-log-determinant": gaussian(margin=0.5, strength=0.7, variances="learned"),
    "gaussian-distances": gaussian(variances="learned", log_determinant=False),
    "gaussian-no-likelihood": gaussian(strength=0.0),
    "supcon": plain(SupervisedContrastiveLoss, SlowContrastive, strength=0.5),
    "supcon-alone": plain(SupervisedContrastiveLoss, SlowContrastive, cross_entropy=0.0, temperature=0.5),
    "dro-lt": dro_lt(temperature=0.5),
    "dro-lt-fixed": dro_lt(epsilon=0.3, average="sample"),
    "dro-lt-one-stage": dro_lt_one_stage(),
    "triplet": plain(TripletLoss, SlowTriplet, margin=2.0),
    "triplet-soft": plain(TripletLoss, SlowTriplet, margin="soft", normalize=True),
    "triplet-product": plain(TripletLoss, SlowTriplet, margin=1.0, distance="product"),
    "range": plain(RangeLoss, SlowRange),
    "range-plain": plain(RangeLoss, SlowRange, intra=0.5, inter=0.5, margin=9.0, squared=False),
    "range-elm": plain(RangeLoss, SlowRange, intra=0.0, inter=1.0, margin=50.0),
    "range-intra": plain(RangeLoss, SlowRange, intra=0.5, inter=0.0, widest=4),
    "spread-out": plain(SpreadOutLoss, SlowSpreadOut),
    "spread-out-all": plain(SpreadOutLoss, SlowSpreadOut, pairs="all", strength=2.0),
    "hybrid": plain(HybridContrastiveLoss, SlowHybrid, queue=20),
    "hybrid-elm": plain(HybridContrastiveLoss, SlowHybrid, normalize=False, temperature=1.0, queue=0),
}

# What differs with a single class shows without the slower checks.
ONE_CLASS_CASES = {
    "center": center(num_classes=1),
    "gaussian": gaussian(num_classes=1),
    "supcon": plain(SupervisedContrastiveLoss, SlowContrastive, num_classes=1),
    "dro-lt": dro_lt_one_stage(num_classes=1),
    "triplet": plain(TripletLoss, SlowTriplet, num_classes=1),
    "range": plain(RangeLoss, SlowRange, num_classes=1, intra=0.5),
    "spread-out": plain(SpreadOutLoss, SlowSpreadOut, num_classes=1),
    "hybrid": plain(HybridContrastiveLoss, SlowHybrid, num_classes=1),
}
