"""What may be behind a failing class: one function a cause, which returns it if the evidence supports it.

Each compares the class with the others of the same audit. The limits are rules of thumb, named here in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from classgap.audit.intervals import Floats, wilson
from classgap.audit.records import Cause, Confusion
from classgap.audit.samples import Integers

FEW_TRAINING = 0.5  # of the median class's number of training samples
WIDE_SPREAD = 1.25  # times the median spread
SAMPLES_FOR_SPREAD = 5
OVERLAP_RATE = 0.1  # of the class's samples
OVERLAP_SHARE = 1 / 3  # of the class's mistakes
OVERLAP_SAMPLES = 3
CLOSE_BOUNDARY = 0.5  # of the way to the midpoint between the two class means; 1 is the midpoint
LABEL_SHARE = 0.1  # of the class's samples
LABEL_SAMPLES = 3
EXCESS_FIT = 0.1  # train minus test accuracy, beyond the median class's


@dataclass(frozen=True)
class Evidence:
    """Everything the causes look at; arrays over classes, NaN or -1 where unknown, ``None`` where not given.

    Attributes:
        names: of the classes.
        support_K: test samples.
        correct_K: of them right.
        confusions: most frequent first.
        train_counts_K: training samples.
        tail_below: fewer training samples than this are few whatever the others have.
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
    level: float

    @property
    def accuracy_K(self) -> Floats:
        """Test accuracy, NaN for unseen classes."""
        return np.where(self.support_K > 0, self.correct_K / np.maximum(self.support_K, 1), np.nan)


def few_training_samples(k: int, evidence: Evidence) -> Cause | None:
    """Fewer than half the training samples of the median class, or so few that it is in the tail."""
    if evidence.train_counts_K is None:
        return None
    count, median = float(evidence.train_counts_K[k]), float(np.median(evidence.train_counts_K))
    if not (count < FEW_TRAINING * median or count < evidence.tail_below):
        return None
    strength = 1 - count / median if count < FEW_TRAINING * median else FEW_TRAINING
    return Cause(
        name="few-training-samples",
        evidence=f"{count:g} training samples; the median class has {median:g}.",
        figure=count,
        reference=median,
        strength=strength,
        other=None,
        methods=("logit-adjustment", "balanced-softmax", "ldam", "elm"),
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
        evidence=f"feature spread {spread:.3g}, {spread / median:.2f} times the median class's {median:.3g}.",
        figure=spread,
        reference=median,
        strength=1 - median / spread,
        other=None,
        methods=("mr2", "elm"),
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
    place = ("nearest", "second nearest", "third nearest")[neighbours.index(other)]
    return Cause(
        name="overlap",
        evidence=(
            f"{top.count} of its {errors} mistakes are taken for {top.name}, whose class mean is the {place} "
            f"(distance {distance:.3g}; nearest means are usually {usual:.3g} apart)."
        ),
        figure=top.rate,
        reference=distance,
        strength=top.count / errors,
        other=top.name,
        methods=("lmdl", "supcon"),
    )


def close_boundary(k: int, evidence: Evidence) -> Cause | None:
    """The boundary runs much nearer to this class's mean than to the midpoint between the two means."""
    if evidence.centroid_margin_K is None or evidence.midpoint_K is None or evidence.facing_K is None:
        return None
    margin, midpoint = float(evidence.centroid_margin_K[k]), float(evidence.midpoint_K[k])
    if not (midpoint > 0 and margin < CLOSE_BOUNDARY * midpoint):  # NaN where there is no boundary
        return None
    other = evidence.names[int(evidence.facing_K[k])]
    return Cause(
        name="close-boundary",
        evidence=(
            f"the boundary to {other} is {margin:.3g} from the class mean, the midpoint between the two means "
            f"{midpoint:.3g}."
        ),
        figure=margin,
        reference=midpoint,
        strength=float(np.clip(1 - margin / midpoint, 0, 1)),
        other=other,
        methods=("lmdl", "logit-adjustment", "ldam"),
    )


def wrong_labels(k: int, evidence: Evidence) -> Cause | None:
    """Confident learning doubts the labels of many of its test samples."""
    if evidence.label_issues_K is None:
        return None
    doubtful, support = int(evidence.label_issues_K[k]), int(evidence.support_K[k])
    errors = support - int(evidence.correct_K[k])
    if doubtful < LABEL_SAMPLES or doubtful / support < LABEL_SHARE:
        return None
    return Cause(
        name="wrong-labels",
        evidence=f"{doubtful} of its {support} test labels are doubtful by confident learning.",
        figure=doubtful / support,
        reference=LABEL_SHARE,
        strength=min(1.0, doubtful / max(errors, 1)),
        other=None,
        methods=(),
    )


def over_fitted(k: int, evidence: Evidence) -> Cause | None:
    """Right on the training set and wrong on the test set, clearly more so than the median class."""
    if evidence.train_accuracy_K is None or evidence.train_support_K is None or not evidence.train_support_K[k]:
        return None
    train, test = float(evidence.train_accuracy_K[k]), float(evidence.accuracy_K[k])
    usual = float(np.nanmedian(evidence.train_accuracy_K - evidence.accuracy_K))
    lowest_train = wilson(train * evidence.train_support_K[k], evidence.train_support_K[k], evidence.level).low
    highest_test = wilson(evidence.correct_K[k], evidence.support_K[k], evidence.level).high
    if train - test - usual < EXCESS_FIT or lowest_train <= highest_test:
        return None
    return Cause(
        name="over-fitted",
        evidence=f"{train:.1%} right in training but {test:.1%} in the test; the median class loses {usual:.1%}.",
        figure=train - test,
        reference=usual,
        strength=float(np.clip(train - test, 0, 1)),
        other=None,
        methods=("mr2", "sam"),
    )


CAUSES = (few_training_samples, large_spread, overlap, close_boundary, wrong_labels, over_fitted)
