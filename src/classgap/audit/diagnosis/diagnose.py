"""Find failing classes and rank the likely causes."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.diagnosis.causes import CAUSES, REMOVED, overlap_with_several, samples_for_3_points
from classgap.audit.diagnosis.evidence import Evidence
from classgap.audit.results import Cause
from classgap.audit.stats.intervals import wilson_interval
from classgap.audit.stats.paired_tests import benjamini_hochberg

CLEARLY_MORE = 0.15  # of the errors
SMALL = 0.03  # accuracy below the mean that is no failure
REMOVERS = {"decision-bias": "decision", "close-boundary": "head"}  # cause → change
ROUNDING = 1e-9  # the mean of equal accuracies may differ from them by rounding


def diagnose(evidence: Evidence, hard_U: Integers, balanced_accuracy: float) -> dict[int, tuple[Cause, ...]]:
    """Return the causes of each class in the hard third whose accuracy is below the balanced accuracy.

    A class fails if it is significantly below the balanced accuracy (``below_mean``, adjusted over all seen classes).
    Other classes get "too-few-test-samples" as their only cause, unless their interval shows that they are at most
    ``SMALL`` below. Causes are in the order of ``CAUSES``. A failing class without a supported cause gets "overlap" if
    most of its errors go to a few classes, or else "not-enough-evidence".
    """
    seen_U = np.flatnonzero(evidence.support_K)
    # Holm's method would miss most real failures among a thousand classes of fifty samples.
    p_U = benjamini_hochberg(below_mean(evidence.correct_K[seen_U], evidence.support_K[seen_U], balanced_accuracy))
    fails_K = np.zeros(len(evidence.support_K), dtype=np.bool_)
    fails_K[seen_U] = p_U < 1 - evidence.confidence_level
    # The largest p-value that would make one more class significant.
    limit = (1 - evidence.confidence_level) * min(1.0, (fails_K.sum() + 1) / len(seen_U))
    found: dict[int, tuple[Cause, ...]] = {}
    for k in hard_U.tolist():
        if evidence.accuracy_K[k] >= balanced_accuracy - ROUNDING:
            continue
        if not fails_K[k]:
            correct, support = int(evidence.correct_K[k]), int(evidence.support_K[k])
            if wilson_interval(correct, support, evidence.confidence_level).low > balanced_accuracy - SMALL:
                continue
            found[k] = (_too_few_to_tell(k, evidence, balanced_accuracy, limit, len(seen_U)),)
            continue
        causes = [cause for look in CAUSES if (cause := look(k, evidence)) is not None]
        causes = _removable_overlap_last(k, _larger_change_first(_overlap_before_loss(causes)), evidence)
        found[k] = tuple(causes) or (overlap_with_several(k, evidence) or _not_enough(evidence),)
    return found


def _removable_overlap_last(k: int, causes: list[Cause], evidence: Evidence) -> list[Cause]:
    """Name a change before overlap if it removes many errors of the class without costing the other one as much.

    Offsets and heads can only move errors from one to the other of two classes that look alike. If both classes
    together gain, the scores or features separate them and the decision does not.
    """
    overlap = next((cause for cause in causes if cause.name == "overlap"), None)
    if overlap is None or overlap.other is None:
        return causes
    other = evidence.names.index(overlap.other)
    removers = [
        place
        for place, cause in enumerate(causes)
        if (change := REMOVERS.get(cause.name)) is not None
        and evidence.net(change, k) + evidence.net(change, other) >= REMOVED * evidence.wrong_K[k]
    ]
    if not removers or removers[0] < causes.index(overlap):
        return causes
    rest = [cause for cause in causes if cause is not overlap]
    return [*rest[: removers[0]], overlap, *rest[removers[0] :]]


def _overlap_before_loss(causes: list[Cause]) -> list[Cause]:
    """Name overlap before under-training that only the loss shows: the loss is that of all classes, not of this one."""
    by_name = {cause.name: cause for cause in causes}
    trained, overlap = by_name.get("under-trained"), by_name.get("overlap")
    if trained is None or overlap is None or "refitted_accuracy" in trained.details:
        return causes
    swapped = {"under-trained": overlap, "overlap": trained}
    return [swapped.get(cause.name, cause) for cause in causes]


def _larger_change_first(causes: list[Cause]) -> list[Cause]:
    """Name a head before offsets if it removes clearly more: both follow from a head that is wrong for the class."""
    places = {cause.name: place for place, cause in enumerate(causes)}
    if "decision-bias" in places and "close-boundary" in places:
        decision, head = causes[places["decision-bias"]], causes[places["close-boundary"]]
        if head.strength > decision.strength + CLEARLY_MORE:
            causes[places["decision-bias"]], causes[places["close-boundary"]] = head, decision
    return causes


def below_mean(correct_U: Integers, support_U: Integers, balanced_accuracy: float) -> Floats:
    """Two-sided p-value of each class for an accuracy below the mean. Each class must have samples.

    Twice P(X ≤ correct), X ~ Binomial(n, b), exact for few samples too. The mean b of U classes is itself an estimate:
    Var(p_k - b) = b(1-b) ((1 - 1/U)² / n_k + Σ_{j≠k} 1/n_j / U²). Where that exceeds b(1-b) / n_k because most other
    classes have fewer samples, n_k is replaced by the smaller n that has this variance.

    >>> below_mean(np.array([0, 3]), np.array([3, 3]), 0.5).tolist()
    [0.25, 1.0]
    """
    from scipy.special import betainc

    classes, each_U = len(support_U), 1 / support_U
    variance_U = (1 - 2 / classes) * each_U + each_U.sum() / classes**2
    n_U = 1 / np.maximum(each_U, variance_U)
    right_U = n_U * correct_U / support_U
    at_most_U = betainc(n_U - right_U, right_U + 1, 1 - min(balanced_accuracy, 1.0))
    return np.where(correct_U == support_U, 1.0, np.minimum(1.0, 2 * at_most_U))


def _too_few_to_tell(k: int, evidence: Evidence, balanced_accuracy: float, limit: float, classes: int) -> Cause:
    share, support = float(evidence.accuracy_K[k]), int(evidence.support_K[k])
    # Normal approximation of ``below_mean`` for this accuracy and an exact mean: n = z² b(1-b) / (b - p)².
    z = NormalDist().inv_cdf(1 - limit / 2)
    wanted = z**2 * balanced_accuracy * (1 - balanced_accuracy) / (balanced_accuracy - share) ** 2
    return Cause(
        name="too-few-test-samples",
        figure=float(support),
        reference=float(wanted),
        strength=1.0,
        other=None,
        methods=(),
        details={
            "accuracy": share,
            "classes": classes,
            "mean": balanced_accuracy,
            "test_samples_for_3_points": samples_for_3_points(share),
        },
    )


def _not_enough(evidence: Evidence) -> Cause:
    inputs = {
        "train-counts": evidence.train_counts_K,
        "scores": evidence.fixed_K.get("decision"),
        "features": evidence.lost_K,
        "train-accuracy": evidence.train_accuracy_K,
    }
    return Cause(
        name="not-enough-evidence",
        figure=None,
        reference=None,
        strength=0.0,
        other=None,
        methods=(),
        details={"missing": tuple(name for name, value in inputs.items() if value is None)},
    )
