"""Advice for a cause: what to do about it, with a command to paste."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from classgap.audit.figures import ClassResult
from classgap.audit.results import Cause
from classgap.report.causes import missing_inputs
from classgap.report.formatting import format_count, pluralize

MAX_SAMPLES = 30
TRAIN = "classgap train --data DATA"  # DATA: the data set of the user

Advice = tuple[str, str]  # sentence, command


def advice(cause: Cause, entry: ClassResult) -> str:
    """Return one line of advice for a cause of the class ``entry``; a command ends the line.

    >>> from types import SimpleNamespace
    >>> advice(Cause("over-fitted", 0.5, 0.1, 0.7, None, ()), SimpleNamespace(confident_errors=()))
    'Regularize: classgap train --data DATA --method sam'
    """
    sentence, command = advice_parts(cause, entry)
    if not command:
        return f"{sentence}."
    return f"{sentence}: {command}"


def advice_parts(cause: Cause, entry: ClassResult) -> Advice:
    """Return the sentence, without its final stop, and the command, which is empty if no command helps."""
    find = ADVICE.get(cause.name, _look_at_errors)
    return find(cause, entry)


def list_samples(samples: Sequence[int], limit: int = MAX_SAMPLES) -> str:
    """Return the first ``limit`` sample numbers, and how many follow.

    >>> list_samples([12, 57, 3]), list_samples([12, 57, 3], limit=2)
    ('12, 57, 3', '12, 57, and 1 more')
    """
    shown = ", ".join(map(str, samples[:limit]))
    return shown if len(samples) <= limit else f"{shown}, and {format_count(len(samples) - limit)} more"


def _few_training(cause: Cause, entry: ClassResult) -> Advice:
    command = f"{TRAIN} --method logit-adjustment"
    if cause.figure is None or cause.reference is None or cause.reference <= cause.figure:
        return f"Collect more training samples{_to_measure(cause)}, or run", command
    more = pluralize(math.ceil(cause.reference - cause.figure), "more training sample", "more training samples")
    usual = f" (the other classes have about {format_count(cause.reference)})"
    return f"Collect at least {more}{usual}{_to_measure(cause)}, or run", command


def _too_few_test(cause: Cause, entry: ClassResult) -> Advice:
    if cause.figure is None or cause.reference is None or cause.reference <= cause.figure:
        return f"Collect more test samples of the class{_to_measure(cause)}", ""
    more = pluralize(math.ceil(cause.reference - cause.figure), "more test sample", "more test samples")
    return f"Collect about {more} of the class{_to_measure(cause)}", ""


def _to_measure(cause: Cause) -> str:
    """Number of test samples that would show a change of 3 points, if known."""
    wanted = cause.details.get("test_samples_for_3_points")
    if not isinstance(wanted, int | float):
        return ""
    return f"; {format_count(wanted)} test samples per class would show a change of 3 points"


def _wrong_labels(cause: Cause, entry: ClassResult) -> Advice:
    if not entry.doubted_samples:
        return "Check the labels of its misclassified samples", ""
    return f"Label these samples again: {list_samples(entry.doubted_samples)}", ""


def _decision_bias(cause: Cause, entry: ClassResult) -> Advice:
    if entry.train_count is None:
        return "Add an offset to the logit of the class, chosen on validation samples", ""
    return "Correct the class priors", f"{TRAIN} --method post-hoc-logit-adjustment"


def _under_trained(cause: Cause, entry: ClassResult) -> Advice:
    epochs = cause.details.get("epochs")
    number = f"{2 * epochs:g}" if isinstance(epochs, int | float) else "N"
    return "Train longer", f"{TRAIN} --epochs {number}"


def _overlap(cause: Cause, entry: ClassResult) -> Advice:
    merge = f"Merge the class with {cause.other}" if cause.other else "Merge the classes"
    return f"{merge} if they mean the same, or run", f"{TRAIN} --method lmdl"


def _not_enough(cause: Cause, entry: ClassResult) -> Advice:
    missing = missing_inputs(cause)
    return (f"Audit again with {missing}", "") if missing else _look_at_errors(cause, entry)


def _look_at_errors(cause: Cause, entry: ClassResult) -> Advice:
    if not entry.confident_errors:
        return "Look at its misclassified samples", ""
    return f"Look at these confident errors: {list_samples(entry.confident_errors)}", ""


ADVICE: Mapping[str, Callable[[Cause, ClassResult], Advice]] = {
    "few-training-samples": _few_training,
    "under-trained": _under_trained,
    "over-fitted": lambda cause, entry: ("Regularize", f"{TRAIN} --method sam"),
    "wrong-labels": _wrong_labels,
    "decision-bias": _decision_bias,
    "close-boundary": lambda cause, entry: ("Retrain the head", f"{TRAIN} --method crt"),
    "overlap": _overlap,
    "large-spread": lambda cause, entry: ("Make the classes more compact", f"{TRAIN} --method feature-norm"),
    "representation": lambda cause, entry: ("Learn other features", f"{TRAIN} --method feature-norm"),
    "too-few-test-samples": _too_few_test,
    "not-enough-evidence": _not_enough,
}
