"""Sentences about the evidence for a cause."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from classgap.audit.results import Cause
from classgap.report.formatting import format_count, format_number, format_percent

INPUTS = {
    "train-counts": "training counts",
    "train-accuracy": "training predictions",
}
REFERENCES = {
    "median": "the median class has",
    "classes-above-mean": "classes above the mean accuracy usually have",
}


def cause_evidence(cause: Cause) -> str:
    """Return the evidence for a cause as one sentence, which starts with a lower-case letter or a number.

    Values that the cause does not have are left out.

    >>> cause_evidence(Cause("large-spread", 3.0, 2.0, 0.6, None, ()))
    "feature spread 3.00, 1.50 times the median class's 2.00."
    """
    sentence = SENTENCES.get(cause.name)
    if sentence is None:  # saved by a newer version
        return f"{cause.figure}, compared with {cause.reference}."
    return sentence(cause, cause.details)


def missing_inputs(cause: Cause) -> str:
    """Return the inputs that were not given, separated by commas.

    >>> missing_inputs(Cause("not-enough-evidence", None, None, 0, None, (), {"missing": ("features", "train-counts")}))
    'features, training counts'
    """
    missing: Any = cause.details.get("missing") or ()
    names = (missing,) if isinstance(missing, str) else missing
    return ", ".join(INPUTS.get(name, name.replace("-", " ")) for name in names)


def reference_name(cause: Cause) -> str:
    """Return which classes have the number of training samples that a cause refers to."""
    return REFERENCES.get(str(cause.details.get("compared_with")), "the other classes usually have")


def join_names(names: Sequence[str], word: str = "and") -> str:
    """Return names as a list in words.

    >>> join_names(["a"]), join_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def _of_errors(details: Mapping[str, Any], key: str) -> str:
    """For example "5 of its 23 errors"; "some of its errors" if the number is unknown."""
    count, errors = details.get(key), details.get("errors")
    if count is None:
        return "some of its errors"
    return (
        f"{format_count(count)} of its errors" if errors is None else f"{format_count(count)} of its {errors:,} errors"
    )


def _broken(details: Mapping[str, Any]) -> str:
    added = details.get("added")
    if added is None:
        return ""
    return f" and break {format_count(added)} of its correct predictions"


def _few_training(cause: Cause, details: Mapping[str, Any]) -> str:
    usual = "" if cause.reference is None else f"; {reference_name(cause)} {format_count(math.ceil(cause.reference))}"
    return f"{format_count(cause.figure)} training sample{'' if cause.figure == 1 else 's'}{usual}."


def _large_spread(cause: Cause, details: Mapping[str, Any]) -> str:
    text = f"feature spread {format_number(cause.figure)}"
    if not cause.figure or not cause.reference:
        return f"{text}."
    return f"{text}, {cause.figure / cause.reference:.2f} times the median class's {format_number(cause.reference)}."


def _overlap(cause: Cause, details: Mapping[str, Any]) -> str:
    back = details.get("back_count")
    other = cause.other or "another class"
    reverse = "" if back is None else f", and {format_count(back)} samples of {other} as this class"
    others: Any = details.get("others")
    if others:
        return f"{_of_errors(details, 'count')} are predicted as {join_names(others, 'or')}."
    if details.get("count") is None and cause.figure is not None:
        return f"{format_percent(cause.figure)} % of its samples are predicted as {other}{reverse}."
    return f"{_of_errors(details, 'count')} are predicted as {other}{reverse}."


def _wrong_labels(cause: Cause, details: Mapping[str, Any]) -> str:
    usual = details.get("usual")
    others = "" if usual is None else f"; for the other classes it is usually {format_percent(usual)} %"
    if "valid" in details:
        return f"{_of_errors(details, 'valid')} predict a valid label of the sample{others}."
    return f"{_of_errors(details, 'doubted')} look like ordinary samples of the class they are predicted as{others}."


def _over_fitted(cause: Cause, details: Mapping[str, Any]) -> str:
    usual = details.get("usual_gap", cause.reference)
    others = "" if usual is None else f"; the median class loses {format_percent(usual)} points"
    return (
        f"{format_percent(details.get('train_accuracy'))} % training accuracy, but "
        f"{format_percent(details.get('test_accuracy'))} % test accuracy{others}."
    )


def _under_trained(cause: Cause, details: Mapping[str, Any]) -> str:
    refitted, before, after = (details.get(name) for name in ("refitted_accuracy", "loss_before", "loss_after"))
    epoch, epochs = details.get("loss_epoch"), details.get("epochs")
    signs = [] if refitted is None else [f"a refitted head reaches {format_percent(refitted)} %"]
    if before is not None and after is not None:
        when = "" if epoch is None or epochs is None else f" until epoch {epoch} of {epochs}"
        signs.append(f"the training loss was still falling ({format_number(before)} to {format_number(after)}{when})")
    more = f", and {' and '.join(signs)}" if signs else ""
    return (
        f"training accuracy {format_percent(details.get('train_accuracy'))} % is as low as test accuracy "
        f"{format_percent(details.get('test_accuracy'))} %{more}."
    )


def _close_boundary(cause: Cause, details: Mapping[str, Any]) -> str:
    change = "a linear classifier on these features" if details.get("head") == "none" else "a refitted linear head"
    return f"{change} removes {_of_errors(details, 'removed')}{_broken(details).replace(' break ', ' breaks ')}."


def _too_few(cause: Cause, details: Mapping[str, Any]) -> str:
    samples, wanted = cause.figure or 0.0, cause.reference or 0.0
    enough = f"about {format_count(-(-wanted // 1))}" if wanted > samples else "slightly more"
    accuracy, mean, classes = details.get("accuracy"), details.get("mean"), details.get("classes")
    rate = "an accuracy" if accuracy is None else f"{format_percent(accuracy)} % correct"
    below = "" if accuracy is None or mean is None else f", {format_percent(mean - accuracy)} points below the mean,"
    which = "a class" if classes is None else f"one of {format_count(classes)} equally good classes"
    return (
        f"{rate} of {format_count(samples)} test samples{below} can occur by chance in {which}; {enough} samples would "
        "be enough to decide whether it is below the mean."
    )


def _not_enough(cause: Cause, details: Mapping[str, Any]) -> str:
    missing = missing_inputs(cause)
    return f"the given inputs show no cause; not given: {missing}." if missing else "the given inputs show no cause."


SENTENCES: Mapping[str, Callable[[Cause, Mapping[str, Any]], str]] = {
    "few-training-samples": _few_training,
    "under-trained": _under_trained,
    "over-fitted": _over_fitted,
    "wrong-labels": _wrong_labels,
    "decision-bias": lambda cause, details: (
        f"class offsets fitted on other samples remove {_of_errors(details, 'removed')}{_broken(details)}."
    ),
    "close-boundary": _close_boundary,
    "overlap": _overlap,
    "large-spread": _large_spread,
    "representation": lambda cause, details: (
        f"neither a refitted head nor nearest neighbors on these features fix {_of_errors(details, 'left')}."
    ),
    "too-few-test-samples": _too_few,
    "not-enough-evidence": _not_enough,
}
