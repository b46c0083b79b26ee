"""Likely causes of a failing class: each function returns a cause if the evidence supports it, else ``None``.

Each cause compares the class with the other classes of the audit. The thresholds are rules of thumb.

All strengths share one scale, so that causes can be ranked. A cause has strength 0.5 at its threshold and 1 at the
strongest possible evidence, and is linear between them in the value listed here:

====================  ================================================  ==========  ============
cause                 value                                             0.5         1
====================  ================================================  ==========  ============
few training samples  training samples / usual number                   0.5         0
wrong labels          label errors / mistakes, times mean accuracy      0           1
large spread          median spread / spread of the class               1 / 1.25    0
overlap               fraction of mistakes that go to one class         threshold   1
close boundary        fraction of the way to the midpoint / usual       0.5         -1
over-fitted           train minus test accuracy, beyond the median      0.1         1
====================  ================================================  ==========  ============

A close boundary and over-fitting are symptoms that the other causes bring about. Their strengths are lowered by
``SYMPTOM``, so that a symptom ranks first only if it is much stronger than every other cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.results import Cause, Confusion
from classgap.audit.stats.intervals import wilson_interval

FEW_TRAINING = 0.5  # of the median number of training samples
CLEARLY_FEWER = 0.8  # of another class's training samples; matters for tail classes and for methods that use priors
WIDE_SPREAD = 1.25  # times the median spread
SAMPLES_FOR_SPREAD = 5
OVERLAP_RATE = 0.1  # of the class's samples
OVERLAP_SHARE = 1 / 3  # of the class's mistakes
OVERLAP_SAMPLES = 3
CLOSE_BOUNDARY = 0.5  # of the usual fraction of the way to the midpoint between the two class means
LOWEST_BOUNDARIES = 0.1  # quantile of the accurate classes; a boundary that is common among them explains no failure
LABEL_SHARE = 0.1  # of the class's samples
LABEL_SAMPLES = 3
LABEL_EXCESS = 2.0  # times the median fraction; a weak model contradicts labels of all classes
EXCESS_FIT = 0.1  # train minus test accuracy, beyond the median
SYMPTOM = 0.4  # subtracted from the strength of symptoms


@dataclass(frozen=True)
class Evidence:
    """Inputs of the causes, per class: NaN or -1 where unknown, ``None`` where not given.

    Attributes:
        names: class names.
        support_K: number of test samples.
        correct_K: number of correct test samples.
        confusions: confusions of each class, most frequent first.
        train_counts_K: number of training samples.
        tail_below: classes with fewer training samples belong to the tail.
        spread_K: ‖ŝ_k‖.
        nearest_Km: classes with the nearest means.
        nearest_distance_Km: distances to these means.
        centroid_margin_K: signed distance of the class mean to the nearest boundary.
        facing_K: the class across that boundary.
        midpoint_K: half the distance between the mean of the class and that of the class across the boundary.
        train_accuracy_K: accuracy on the training set.
        train_support_K: number of training samples behind ``train_accuracy_K``.
        label_issues_K: number of test samples with a likely label error.
        confidence_level: level of the intervals.
    """

    names: Sequence[str]
    support_K: Integers
    correct_K: Integers
    confusions: Sequence[tuple[Confusion, ...]]
    train_counts_K: Floats | None
    tail_below: float
    spread_K: Floats | None
    nearest_Km: Integers | None
    nearest_distance_Km: Floats | None
    centroid_margin_K: Floats | None
    facing_K: Integers | None
    midpoint_K: Floats | None
    train_accuracy_K: Floats | None
    train_support_K: Integers | None
    label_issues_K: Integers | None
    confidence_level: float

    @property
    def accuracy_K(self) -> Floats:
        """Test accuracy; NaN for unseen classes."""
        return np.where(self.support_K > 0, self.correct_K / np.maximum(self.support_K, 1), np.nan)

    @property
    def doing_well_K(self) -> NDArray[np.bool_]:
        """Whether the accuracy of each class is at least the mean over classes."""
        return self.accuracy_K >= np.nanmean(self.accuracy_K)


def few_training_samples(k: int, evidence: Evidence) -> Cause | None:
    """Fewer than half the median number of training samples or, in the tail, clearly fewer than accurate classes have.

    If most classes are in the tail, so is the median class. Then only the accurate classes show how many samples are
    enough. A number that all classes share explains no gap.
    """
    counts_K = evidence.train_counts_K
    if counts_K is None:
        return None
    count, usual, compared_with = float(counts_K[k]), float(np.median(counts_K)), "median"
    few = count < FEW_TRAINING * usual
    if not few and count < evidence.tail_below:
        usual, compared_with = float(np.median(counts_K[evidence.doing_well_K])), "classes-above-mean"
        few = count < CLEARLY_FEWER * usual
    if not few:
        return None
    return Cause(
        name="few-training-samples",
        figure=count,
        reference=usual,
        strength=_strength(min(count / usual, FEW_TRAINING), FEW_TRAINING, 0),
        other=None,
        methods=("logit-adjustment", "balanced-softmax", "ldam", "elm"),
        details={"compared_with": compared_with},
    )


def large_spread(k: int, evidence: Evidence) -> Cause | None:
    """Feature spread clearly above the median (MR² Fig. 1b)."""
    if evidence.spread_K is None or evidence.support_K[k] < SAMPLES_FOR_SPREAD:
        return None
    spread, median = float(evidence.spread_K[k]), float(np.nanmedian(evidence.spread_K))
    if not spread >= WIDE_SPREAD * median > 0:
        return None
    return Cause(
        name="large-spread",
        figure=spread,
        reference=median,
        strength=_strength(median / spread, 1 / WIDE_SPREAD, 0),
        other=None,
        methods=("feature-norm", "mr2", "elm"),
    )


def overlap(k: int, evidence: Evidence) -> Cause | None:
    """Most mistakes go to one class whose mean is among the nearest, and closer than nearest means usually are."""
    confused = evidence.confusions[k]
    if evidence.nearest_Km is None or evidence.nearest_distance_Km is None or not confused:
        return None
    top = confused[0]
    errors = int(evidence.support_K[k] - evidence.correct_K[k])
    # With few classes, many mistakes go to one class anyway, so at least twice the even fraction is required.
    others = int((evidence.support_K > 0).sum()) - 1
    if others < 2:  # the only other class is always both the nearest and the most confused
        return None
    needed = max(OVERLAP_SHARE, min(2 / others, 1.0))
    if top.rate < OVERLAP_RATE or top.count < OVERLAP_SAMPLES or top.count / errors < needed:
        return None
    neighbors = evidence.nearest_Km[k].tolist()
    other = evidence.names.index(top.name)
    if other not in neighbors:
        return None
    distance = float(evidence.nearest_distance_Km[k, neighbors.index(other)])
    usual = float(np.nanmedian(evidence.nearest_distance_Km[:, 0]))
    if distance > usual:
        return None
    return Cause(
        name="overlap",
        figure=top.rate,
        reference=distance,
        strength=_strength(top.count / errors, needed, 1),
        other=top.name,
        methods=("lmdl", "supcon"),
        details={
            "confused": top.count,
            "errors": errors,
            "neighbor_rank": neighbors.index(other) + 1,
            "distance": distance,
            "usual_distance": usual,
        },
    )


def close_boundary(k: int, evidence: Evidence) -> Cause | None:
    """The nearest boundary is closer to the class mean than it is for accurate classes.

    Closeness is the position of the boundary on the way from the class mean to the midpoint between the two means: 1 at
    the midpoint, negative if the mean itself is on the wrong side. A trained head rarely puts its boundaries at the
    midpoints, so the accurate classes define the usual position.
    """
    if evidence.centroid_margin_K is None or evidence.midpoint_K is None or evidence.facing_K is None:
        return None
    midpoint_K = np.where(evidence.midpoint_K > 0, evidence.midpoint_K, np.nan)  # NaN where no boundary exists
    share_K = evidence.centroid_margin_K / midpoint_K
    well = share_K[evidence.doing_well_K & np.isfinite(share_K)]
    if not len(well):
        return None
    share, usual = float(share_K[k]), float(np.median(well))
    lowest = float(np.quantile(well, LOWEST_BOUNDARIES))
    if not (usual > 0 and share < CLOSE_BOUNDARY * usual and share < lowest):
        return None
    facing = int(evidence.facing_K[k])
    other = evidence.names[facing]
    return Cause(
        name="close-boundary",
        figure=share,
        reference=usual,
        strength=_strength(share / usual, CLOSE_BOUNDARY, -1) - SYMPTOM,
        other=other,
        methods=("lmdl", *(("logit-adjustment", "ldam") if _has_fewer(k, facing, evidence) else ())),
    )


def wrong_labels(k: int, evidence: Evidence) -> Cause | None:
    """Confident learning finds many label errors among the test samples, and clearly more than usual.

    A label error is only as credible as the model: the strength is the fraction of mistakes that label errors would
    explain, times the mean accuracy. Tail classes are skipped because the model has seen too few of their samples.
    """
    if evidence.label_issues_K is None:
        return None
    if evidence.train_counts_K is not None and evidence.train_counts_K[k] < evidence.tail_below:
        return None
    doubtful, support = int(evidence.label_issues_K[k]), int(evidence.support_K[k])
    errors = support - int(evidence.correct_K[k])
    seen_K = evidence.support_K > 0
    usual = float(np.median(evidence.label_issues_K[seen_K] / evidence.support_K[seen_K]))
    if doubtful < LABEL_SAMPLES or doubtful / support < max(LABEL_SHARE, LABEL_EXCESS * usual):
        return None
    return Cause(
        name="wrong-labels",
        figure=doubtful / support,
        reference=usual,
        strength=_strength(doubtful / max(errors, 1) * float(np.nanmean(evidence.accuracy_K)), 0, 1),
        other=None,
        methods=(),
        details={"doubtful": doubtful, "samples": support},
    )


def over_fitted(k: int, evidence: Evidence) -> Cause | None:
    """The accuracy drops from the training set to the test set clearly more than that of the median class."""
    if evidence.train_accuracy_K is None or evidence.train_support_K is None or not evidence.train_support_K[k]:
        return None
    train, test = float(evidence.train_accuracy_K[k]), float(evidence.accuracy_K[k])
    usual = float(np.nanmedian(evidence.train_accuracy_K - evidence.accuracy_K))
    lowest_train = wilson_interval(
        train * evidence.train_support_K[k], evidence.train_support_K[k], evidence.confidence_level
    ).low
    highest_test = wilson_interval(evidence.correct_K[k], evidence.support_K[k], evidence.confidence_level).high
    if train - test - usual < EXCESS_FIT or lowest_train <= highest_test:
        return None
    return Cause(
        name="over-fitted",
        figure=train - test,
        reference=usual,
        strength=_strength(train - test - usual, EXCESS_FIT, 1) - SYMPTOM,
        other=None,
        methods=("feature-norm", "mr2", "sam"),
        details={"train_accuracy": train, "test_accuracy": test},
    )


def _has_fewer(k: int, other: int, evidence: Evidence) -> bool:
    """Return whether class ``k`` is known to have clearly fewer training samples; methods that use priors need this."""
    counts_K = evidence.train_counts_K
    return counts_K is not None and bool(counts_K[k] < CLEARLY_FEWER * counts_K[other])


def _strength(figure: float, limit: float, extreme: float) -> float:
    """Return 0.5 at the threshold and 1 at the extreme or beyond, linear between them."""
    way = 1.0 if limit == extreme else (figure - limit) / (extreme - limit)
    return 0.5 + 0.5 * float(np.clip(way, 0, 1))


CAUSES = (few_training_samples, wrong_labels, large_spread, overlap, close_boundary, over_fitted)
