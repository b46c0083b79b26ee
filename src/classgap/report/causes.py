"""Sentences about the evidence for a cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from classgap.audit.results import Cause
from classgap.report.formatting import format_count, format_percent

INPUTS = {
    "train-counts": "training counts",
    "spread": "feature spread",
    "boundaries": "decision boundaries",
    "train-accuracy": "training accuracy",
}
NEAREST = ("nearest", "second nearest", "third nearest")


def cause_evidence(cause: Cause) -> str:
    """Return the evidence for a cause as one sentence, which starts with a lower-case letter or a number.

    >>> cause_evidence(Cause("large-spread", 3.0, 2.0, 0.6, None, ()))
    "feature spread 3, 1.50 times the median class's 2."
    """
    sentence = SENTENCES.get(cause.name)
    if sentence is None:  # saved by a newer version
        return f"{cause.figure}, compared with {cause.reference}."
    return sentence(cause)


def _few_training(cause: Cause) -> str:
    others = {"median": "the median class has", "classes-above-mean": "classes above the mean accuracy usually have"}
    return f"{cause.figure:g} training samples; {others[str(cause.details['compared_with'])]} {cause.reference:g}."


def _overlap(cause: Cause) -> str:
    of: Mapping[str, Any] = cause.details
    return (
        f"{of['confused']} of its {of['errors']} errors are predicted as {cause.other}, whose class mean is the "
        f"{NEAREST[of['neighbor_rank'] - 1]} (distance {of['distance']:.3g}; the usual distance to the nearest mean is "
        f"{of['usual_distance']:.3g})."
    )


def _close_boundary(cause: Cause) -> str:
    share, usual = cause.figure or 0.0, cause.reference or 0.0
    where = f"{share:.0%} of the way from" if share >= 0 else "on the wrong side of"
    toward = " to the midpoint between the two means" if share >= 0 else ""
    return (
        f"the boundary to {cause.other} is {where} the class mean{toward}; for classes above the mean accuracy it is "
        f"usually at {usual:.0%} of the way to the midpoint."
    )


def _over_fitted(cause: Cause) -> str:
    of: Mapping[str, Any] = cause.details
    return (
        f"{format_percent(of['train_accuracy'])} % training accuracy, but {format_percent(of['test_accuracy'])} % test "
        f"accuracy; the median class loses {format_percent(cause.reference)} points."
    )


def _too_few(cause: Cause) -> str:
    of: Mapping[str, Any] = cause.details
    samples, wanted = cause.figure or 0.0, cause.reference or 0.0
    enough = f"about {format_count(-(-wanted // 1))}" if wanted > samples else "slightly more"
    return (
        f"{format_percent(of['accuracy'])} % correct of only {format_count(samples)} test samples can occur by chance "
        f"in one of {format_count(of['classes'])} classes; {enough} would be enough to decide."
    )


def _not_enough(cause: Cause) -> str:
    of: Mapping[str, Any] = cause.details
    examined, unknown = (", ".join(INPUTS.get(name, name) for name in of[key]) for key in ("examined", "unknown"))
    text = f"nothing unusual in {examined}" if examined else "only predictions were given"
    return f"{text}; unknown: {unknown}." if unknown else f"{text}."


SENTENCES: Mapping[str, Callable[[Any], str]] = {
    "few-training-samples": _few_training,
    "large-spread": lambda cause: (
        f"feature spread {cause.figure:.3g}, {cause.figure / cause.reference:.2f} times the median class's "
        f"{cause.reference:.3g}."
    ),
    "overlap": _overlap,
    "close-boundary": _close_boundary,
    "wrong-labels": lambda cause: (
        f"confident learning flags {cause.details['doubtful']} of its {cause.details['samples']} test labels, compared "
        f"with {format_percent(cause.reference)} % in the median class."
    ),
    "over-fitted": _over_fitted,
    "too-few-test-samples": _too_few,
    "not-enough-evidence": _not_enough,
}
