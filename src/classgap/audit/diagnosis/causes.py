"""Likely causes of a failing class: each function returns a cause if the evidence supports it, else ``None``.

Most causes are read off the error budget, which tries changes on samples that they were not fitted on. Thresholds were
chosen on constructed problems with a known cause and checked on others: ``benchmarks/diagnosis.py``.

``CAUSES`` lists the functions in the order in which a failing class's causes are named. Causes that explain others come
first: a class with few training samples also has errors that offsets would remove, mislabeled samples also look like
over-fitting, and so on.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np

from classgap.audit._types import Integers
from classgap.audit.diagnosis.evidence import Evidence
from classgap.audit.results import Cause, Detail

FEW_TRAINING = 0.5  # of the median number of training samples
CLEARLY_FEWER = 0.8  # of the training samples of accurate classes, for tail classes
LABEL_FRACTION = 0.4  # of the class's errors
LABEL_RATE = 0.05  # of the class's samples
MAX_LABEL_RATE = 0.5  # more than half of a class is not mislabeled; the class itself is another one
LABEL_SAMPLES = 3
LABEL_P = 0.01
MIN_DOUBT_RATE = 0.01  # doubts that any model raises about clean labels
TRAIN_GAP = 0.05  # training accuracy may exceed test accuracy by this in an under-trained model
LIFT = 0.05  # accuracy that a refitted head must add on the other classes, too, to call the model under-trained
UNDER_TRAINED_FRACTION = 0.4  # of the class's errors that a refitted head removes
OVERLAP_RATE = 0.05  # of the class's samples
OVERLAP_SHARE = 1 / 3  # of the class's errors
OVERLAP_SAMPLES = 3
OVERLAP_P = 0.01
SEVERAL_CLASSES = 4  # most classes that a class is said to overlap with
SEVERAL_SHARE = 0.5  # of the class's errors
WIDE_SPREAD = 1.25  # times the median spread
SAMPLES_FOR_SPREAD = 5
EXCESS_FIT = 0.15  # train minus test accuracy, beyond the median
REMOVED = 1 / 3  # of the class's errors, net, that a change must remove
LOST = 0.4  # of the class's errors that nothing on these features removes


def few_training_samples(k: int, evidence: Evidence) -> Cause | None:
    """Fewer than half the training samples of the median class; in the tail, clearly fewer than accurate classes."""
    counts_K = evidence.train_counts_K
    if counts_K is None:
        return None
    count, usual, whose = float(counts_K[k]), float(np.median(counts_K)), "median"
    accurate = float(np.median(counts_K[evidence.accurate_K]))
    few = count < FEW_TRAINING * usual
    if not few and count < evidence.tail_below:
        usual, whose = accurate, "classes-above-mean"
        few = count < CLEARLY_FEWER * usual
    if not few:
        return None
    return _cause(
        "few-training-samples",
        figure=count,
        reference=usual,
        strength=1 - count / usual,
        methods=("logit-adjustment", "balanced-softmax", "ldam", "elm"),
        details={
            "compared_with": whose,
            "accurate_classes_have": accurate,
            "test_samples_for_3_points": samples_for_3_points(float(evidence.accuracy_K[k])),
        },
    )


def wrong_labels(k: int, evidence: Evidence) -> Cause | None:
    """Many of its errors look like ordinary samples of other classes, many more than in the median class.

    Where valid labels are given, many of its errors are predictions that are valid.
    """
    if evidence.doubted_K is None:
        return None
    from scipy.stats import binom

    doubted, support, errors = int(evidence.doubted_K[k]), int(evidence.examined_K[k]), int(evidence.wrong_K[k])
    seen_K = evidence.examined_K > 0
    valid = 0 if evidence.valid_K is None else int(evidence.valid_K[k])
    if evidence.valid_K is not None and valid >= max(LABEL_SAMPLES, LABEL_FRACTION * errors, LABEL_RATE * support):
        # People judged these samples, so that no comparison with other classes is needed.
        return _cause(
            "wrong-labels",
            figure=valid / support,
            reference=float(np.median(evidence.valid_K[seen_K] / evidence.examined_K[seen_K])),
            strength=valid / errors,
            details={"valid": valid, "errors": errors, "usual": _usual_fraction(evidence.valid_K, evidence)},
        )
    usual = float(np.median(evidence.doubted_K[seen_K] / evidence.examined_K[seen_K]))
    if (
        doubted < max(LABEL_SAMPLES, LABEL_FRACTION * errors, LABEL_RATE * support)
        or doubted > MAX_LABEL_RATE * support
    ):
        return None
    if binom.sf(doubted - 1, support, max(usual, MIN_DOUBT_RATE)) >= LABEL_P:
        return None
    return _cause(
        "wrong-labels",
        figure=doubted / support,
        reference=usual,
        strength=doubted / errors,
        details={"doubted": doubted, "errors": errors, "usual": _usual_fraction(evidence.doubted_K, evidence)},
    )


def under_trained(k: int, evidence: Evidence) -> Cause | None:
    """Training accuracy as low as test accuracy, and a sign that more was possible.

    Overlap alone keeps both accuracies low, too. The signs: a refitted head improves this class and the others clearly,
    or the training loss was still falling when the run ended. A head says nothing about models that have none: naive
    Bayes on pixels is worse than a linear classifier however long it is trained.
    """
    train_K, support_K = evidence.train_accuracy_K, evidence.support_K
    if train_K is None or evidence.train_support_K is None:
        return None
    train, test = float(train_K[k]), float(evidence.accuracy_K[k])
    deviation = _deviation(train, test, int(evidence.train_support_K[k]), int(support_K[k]))
    if not train - test <= TRAIN_GAP + deviation:
        return None
    details: dict[str, Detail] = {"train_accuracy": train, "test_accuracy": test}
    figure = reference = None
    strengths = []
    trend = evidence.loss_trend
    if trend is not None:
        details["epochs"] = trend.epochs
    if trend is not None and trend.falling:
        figure, reference = trend.after, trend.before
        strengths.append(trend.fall / trend.before)
        details |= {"loss_before": trend.before, "loss_after": trend.after, "loss_epoch": trend.epoch}
    if _head_lifts_all(k, evidence):
        net = evidence.net("head", k)
        figure, reference = test + net / int(evidence.examined_K[k]), test
        strengths.append(net / int(evidence.wrong_K[k]))
        details["refitted_accuracy"] = figure
    if not strengths:
        return None
    return _cause("under-trained", figure=figure, reference=reference, strength=max(strengths), details=details)


def _head_lifts_all(k: int, evidence: Evidence) -> bool:
    """Whether a refitted head improves the class and the others clearly."""
    if not evidence.has_head:
        return False
    if not evidence.improves("head", k) or evidence.net("head", k) < UNDER_TRAINED_FRACTION * evidence.wrong_K[k]:
        return False
    net_K = evidence.fixed_K["head"] - evidence.broken_K["head"]
    others = int(evidence.examined_K.sum() - evidence.examined_K[k])
    return float(net_K.sum() - net_K[k]) / max(others, 1) >= LIFT


def overlap(k: int, evidence: Evidence) -> Cause | None:
    """Many of its errors go to one class, far more than if errors were spread evenly.

    Where features are known, the mean of that class must be among the nearest.
    """
    from scipy.stats import binom

    confused = evidence.confusions[k]
    others = int((evidence.support_K > 0).sum()) - 1
    if not confused or others < 2:  # with two classes, all errors go to the other one
        return None
    top, errors = confused[0], evidence.errors(k)
    needed = max(OVERLAP_SHARE, min(2 / others, 1.0))
    if top.count < OVERLAP_SAMPLES or top.rate < OVERLAP_RATE or top.count < needed * errors:
        return None
    if others * binom.sf(top.count - 1, errors, 1 / others) >= OVERLAP_P:
        return None
    if evidence.nearest_Km is not None and evidence.names.index(top.name) not in evidence.nearest_Km[k]:
        return None
    return _cause(
        "overlap",
        figure=top.rate,
        reference=1 / others,
        strength=top.count / errors,
        other=top.name,
        methods=("lmdl", "supcon"),
        details={
            "count": top.count,
            "errors": errors,
            "back_count": int(evidence.confused_back[k]),
            "rate": top.rate,
            **_labels_given(evidence),
        },
    )


def overlap_with_several(k: int, evidence: Evidence) -> Cause | None:
    """At least half of its errors go to two to four classes, far more than if errors were spread evenly.

    Where features are known, the means of these classes must be among the nearest.
    """
    from scipy.special import comb
    from scipy.stats import binom

    confused, errors = evidence.confusions[k], evidence.errors(k)
    others = int((evidence.support_K > 0).sum()) - 1
    for several in range(2, SEVERAL_CLASSES + 1):
        if len(confused) < several or confused[several - 1].count < OVERLAP_SAMPLES:
            return None
        top = confused[:several]
        count, rate = sum(found.count for found in top), sum(found.rate for found in top)
        if rate < OVERLAP_RATE or count < max(SEVERAL_SHARE, 2 * several / others) * errors:
            continue
        if comb(others, several) * binom.sf(count - 1, errors, several / others) >= OVERLAP_P:
            continue
        near = None if evidence.nearest_Km is None else evidence.nearest_Km[k]
        if near is not None and any(evidence.names.index(found.name) not in near for found in top):
            continue
        return _cause(
            "overlap",
            figure=rate,
            reference=several / others,
            strength=count / errors,
            other=top[0].name,
            methods=("lmdl", "supcon"),
            details={
                "count": count,
                "errors": errors,
                "rate": rate,
                "others": tuple(found.name for found in top),
                **_labels_given(evidence),
            },
        )
    return None


def _labels_given(evidence: Evidence) -> dict[str, Detail]:
    """Detail for advice: whether the samples have valid labels."""
    return {} if evidence.valid_K is None else {"valid_labels": "given"}


def large_spread(k: int, evidence: Evidence) -> Cause | None:
    """Its features spread clearly wider than those of the median class (MR² Fig. 1b)."""
    if evidence.spread_K is None or evidence.support_K[k] < SAMPLES_FOR_SPREAD:
        return None
    spread, median = float(evidence.spread_K[k]), float(np.nanmedian(evidence.spread_K))
    if not spread >= WIDE_SPREAD * median > 0:
        return None
    return _cause(
        "large-spread",
        figure=spread,
        reference=median,
        strength=1 - median / spread,
        methods=("feature-norm", "mr2", "elm"),
    )


def over_fitted(k: int, evidence: Evidence) -> Cause | None:
    """Accurate on the training set and not on the test set, clearly more so than the median class."""
    if evidence.train_accuracy_K is None or evidence.train_support_K is None or not evidence.train_support_K[k]:
        return None
    train, test = float(evidence.train_accuracy_K[k]), float(evidence.accuracy_K[k])
    usual = float(np.nanmedian(evidence.train_accuracy_K - evidence.accuracy_K))
    excess = train - test - usual
    deviation = _deviation(train, test, int(evidence.train_support_K[k]), int(evidence.support_K[k]))
    if excess < EXCESS_FIT or excess < 2 * deviation:
        return None
    return _cause(
        "over-fitted",
        figure=train - test,
        reference=usual,
        strength=excess,
        methods=("feature-norm", "mr2", "sam"),
        details={"train_accuracy": train, "test_accuracy": test, "usual_gap": usual},
    )


def decision_bias(k: int, evidence: Evidence) -> Cause | None:
    """Class offsets, or the prior correction, remove many of its errors on samples they were not fitted on."""
    return _removed_by("decision", "decision-bias", k, evidence, ("post-hoc-logit-adjustment", "logit-adjustment"))


def close_boundary(k: int, evidence: Evidence) -> Cause | None:
    """A refitted linear head removes many of its errors on samples it was not fitted on."""
    found = _removed_by("head", "close-boundary", k, evidence, ("crt", "lws", "lmdl"))
    if found is None or evidence.has_head:
        return found
    return replace(found, methods=(), details={**found.details, "head": "none"})  # there is no head to train again


def representation(k: int, evidence: Evidence) -> Cause | None:
    """Neither a refitted head nor nearest neighbors on these features remove many of its errors."""
    if evidence.lost_K is None:
        return None
    lost, errors = int(evidence.lost_K[k]), int(evidence.wrong_K[k])
    if not errors or lost < LOST * errors:
        return None
    return _cause(
        "representation",
        figure=lost / errors,
        reference=None,
        strength=lost / errors,
        methods=("feature-norm", "mr2", "supcon"),
        details={"left": lost, "errors": errors},
    )


CAUSES = (
    few_training_samples,
    wrong_labels,
    under_trained,
    overlap,
    large_spread,
    over_fitted,
    decision_bias,
    close_boundary,
    representation,
)


def _removed_by(change: str, name: str, k: int, evidence: Evidence, methods: tuple[str, ...]) -> Cause | None:
    errors, net = int(evidence.wrong_K[k]), evidence.net(change, k)
    if not errors or net < REMOVED * errors or not evidence.improves(change, k):
        return None
    fixed, broken = int(evidence.fixed_K[change][k]), int(evidence.broken_K[change][k])
    return _cause(
        name,
        figure=net / errors,
        reference=None,
        strength=net / errors,
        methods=methods,
        details={"removed": fixed, "errors": errors, "added": broken},
    )


def _usual_fraction(part_K: Integers, evidence: Evidence) -> float:
    """Median over classes of the fraction of errors that belong to a part."""
    failed_K = evidence.wrong_K > 0
    return float(np.median(part_K[failed_K] / evidence.wrong_K[failed_K]))


def samples_for_3_points(accuracy: float) -> int:
    """Test samples of a class that show a gain of 3 points between two independent test sets at 95 %, 4 times in 5.

    >>> samples_for_3_points(0.7)  # (1.960 + 0.842)² (0.7 · 0.3 + 0.73 · 0.27) / 0.03²
    3551
    """
    after = min(accuracy + 0.03, 1.0)
    variance = accuracy * (1 - accuracy) + after * (1 - after)
    return int(np.ceil((NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)) ** 2 * variance / 0.03**2))


def _deviation(train: float, test: float, train_support: int, support: int) -> float:
    """Standard deviation of the difference of two accuracies."""
    return float(np.sqrt(train * (1 - train) / max(train_support, 1) + test * (1 - test) / max(support, 1) + 1e-4))


def _cause(
    name: str,
    *,
    figure: float | None,
    reference: float | None,
    strength: float,
    other: str | None = None,
    methods: tuple[str, ...] = (),
    details: dict[str, Detail] | None = None,
) -> Cause:
    return Cause(name, figure, reference, float(np.clip(strength, 0, 1)), other, methods, details or {})
