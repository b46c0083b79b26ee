"""What may be behind a failing class: one function a cause, which returns it if the evidence supports it.

Each compares the class with the others of the same audit. The limits are rules of thumb, named here in one place.

Strengths are on one scale, so that causes can be ranked by them. The evidence that just reaches a cause's limit has
0.5, the strongest that can be has 1, with even steps between in the cause's own figure:

====================  ================================================  ==========  ============
cause                 figure                                            0.5         1
====================  ================================================  ==========  ============
few training samples  training samples / the usual                      0.5         0
wrong labels          doubtful labels / mistakes, times mean accuracy   0           1
large spread          the median spread / the class's                   1 / 1.25    0
overlap               share of the mistakes that go to the one class    the limit   1
close boundary        share of the way to the midpoint / the usual      0.5         -1
over-fitted           train minus test accuracy, beyond the median      0.1         1
====================  ================================================  ==========  ============

A boundary that is too close and a class that is over-fitted are symptoms: the causes above them bring them about. Their
strengths are lowered by ``SYMPTOM``, so that a symptom comes first only if it is much stronger than every other cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classgap.audit.results import Cause, Confusion
from classgap.audit.samples import Integers
from classgap.audit.stats.intervals import Floats, wilson

FEW_TRAINING = 0.5  # of the median class's number of training samples
CLEARLY_FEWER = 0.8  # of another class's: enough to count where samples are few, or to weigh priors against each other
WIDE_SPREAD = 1.25  # times the median spread
SAMPLES_FOR_SPREAD = 5
OVERLAP_RATE = 0.1  # of the class's samples
OVERLAP_SHARE = 1 / 3  # of the class's mistakes
OVERLAP_SAMPLES = 3
CLOSE_BOUNDARY = 0.5  # of the usual share of the way to the midpoint between the two class means
LOWEST_BOUNDARIES = 0.1  # of the classes that do well: what is not unusual among them explains no failure
LABEL_SHARE = 0.1  # of the class's samples
LABEL_SAMPLES = 3
LABEL_EXCESS = 2.0  # times the median class's share: a weak model doubts the labels of every class
EXCESS_FIT = 0.1  # train minus test accuracy, beyond the median class's
SYMPTOM = 0.4  # taken off the strength of what other causes bring about


@dataclass(frozen=True)
class Evidence:
    """Everything the causes look at; arrays over classes, NaN or -1 where unknown, ``None`` where not given.

    Attributes:
        names: of the classes.
        support_K: test samples.
        correct_K: of them right.
        confusions: most frequent first.
        train_counts_K: training samples.
        tail_below: of fewer training samples than this, every one counts.
        spread_K: ‖ŝ_k‖.
        nearest_Km: classes with the nearest means.
        nearest_distance_Km: their distances.
        centroid_margin_K: signed distance of the class mean to the nearest boundary.
        facing_K: the class beyond it.
        midpoint_K: half the distance between the means of the class and of the class beyond.
        train_accuracy_K: accuracy on the training set.
        train_support_K: training samples that it is known of.
        label_issues_K: test samples with doubtful labels.
        level: of intervals.
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
        """Test accuracy, NaN for unseen classes."""
        return np.where(self.support_K > 0, self.correct_K / np.maximum(self.support_K, 1), np.nan)

    @property
    def doing_well_K(self) -> NDArray[np.bool_]:
        """Which classes are at least as accurate as classes are on average."""
        return self.accuracy_K >= np.nanmean(self.accuracy_K)


def few_training_samples(k: int, evidence: Evidence) -> Cause | None:
    """Fewer than half the training samples of the median class; in the tail, clearly fewer than classes that do well.

    What every class has explains no gap, however few it is. Where most classes are in the tail, the median class is
    one of them, and only those that do well tell what is missing.
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
    """Features spread clearly wider than the median class's (MR² Fig. 1b)."""
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
    """Most of its mistakes go to one class, whose mean is among the nearest and nearer than neighbours usually are."""
    confused = evidence.confusions[k]
    if evidence.nearest_Km is None or evidence.nearest_distance_Km is None or not confused:
        return None
    top = confused[0]
    errors = int(evidence.support_K[k] - evidence.correct_K[k])
    # With few classes much of the mistakes goes to one class whatever it is; twice the even share is asked for.
    others = int((evidence.support_K > 0).sum()) - 1
    if others < 2:  # of two classes the other one is always both the nearest and the one confused
        return None
    needed = max(OVERLAP_SHARE, min(2 / others, 1.0))
    if top.rate < OVERLAP_RATE or top.count < OVERLAP_SAMPLES or top.count / errors < needed:
        return None
    neighbours = evidence.nearest_Km[k].tolist()
    other = evidence.names.index(top.name)
    if other not in neighbours:
        return None
    distance = float(evidence.nearest_distance_Km[k, neighbours.index(other)])
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
            "neighbor_rank": neighbours.index(other) + 1,
            "distance": distance,
            "usual_distance": usual,
        },
    )


def close_boundary(k: int, evidence: Evidence) -> Cause | None:
    """The boundary runs nearer to this class's mean than boundaries usually do to the means of classes that do well.

    Nearness is the share of the way from the mean to the midpoint between the two means, 1 at the midpoint and negative
    if the mean itself is on the wrong side. A trained head rarely puts its boundaries at the midpoints: the shares of
    its well-classified classes tell what is usual.
    """
    if evidence.centroid_margin_K is None or evidence.midpoint_K is None or evidence.facing_K is None:
        return None
    midpoint_K = np.where(evidence.midpoint_K > 0, evidence.midpoint_K, np.nan)  # NaN where there is no boundary
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
    """Confident learning doubts the labels of many of its test samples, and of clearly more than usual.

    A doubt is worth as much as the model that doubts: the strength counts the mistakes that wrong labels would explain
    by the mean accuracy of the classes, and a model that saw only a tail class's few samples is not asked at all.
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
    """Right on the training set and wrong on the test set, clearly more so than the median class."""
    if evidence.train_accuracy_K is None or evidence.train_support_K is None or not evidence.train_support_K[k]:
        return None
    train, test = float(evidence.train_accuracy_K[k]), float(evidence.accuracy_K[k])
    usual = float(np.nanmedian(evidence.train_accuracy_K - evidence.accuracy_K))
    lowest_train = wilson(
        train * evidence.train_support_K[k], evidence.train_support_K[k], evidence.confidence_level
    ).low
    highest_test = wilson(evidence.correct_K[k], evidence.support_K[k], evidence.confidence_level).high
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
    """Whether class ``k`` is known to have clearly fewer training samples: methods that weigh priors help only then."""
    counts_K = evidence.train_counts_K
    return counts_K is not None and bool(counts_K[k] < CLEARLY_FEWER * counts_K[other])


def _strength(figure: float, limit: float, extreme: float) -> float:
    """0.5 where the figure is at the limit, 1 at the extreme or beyond, even steps between."""
    way = 1.0 if limit == extreme else (figure - limit) / (extreme - limit)
    return 0.5 + 0.5 * float(np.clip(way, 0, 1))


CAUSES = (few_training_samples, wrong_labels, large_spread, overlap, close_boundary, over_fitted)
