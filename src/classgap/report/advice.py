"""Advice for a cause: what to do about it, with a command that can be pasted where the audit's files are known."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from classgap.audit._types import SampleId
from classgap.audit.figures import ClassResult
from classgap.audit.results import AuditSource, Cause
from classgap.report.causes import REFERENCES, join_names, missing_inputs, reference_name
from classgap.report.formatting import format_count, pluralize, printable

MAX_SAMPLES = 30
MIN_EPOCHS = 10  # of an advised run; twice as many epochs as one or two are still too few

Advice = tuple[str, str]  # sentence, command


def advice(cause: Cause, entry: ClassResult, source: AuditSource | None = None) -> str:
    """Return one line of advice for a cause of the class ``entry``; a command ends the line.

    >>> from types import SimpleNamespace
    >>> cause, entry = Cause("over-fitted", 0.5, 0.1, 0.7, None, ()), SimpleNamespace(confident_errors=())
    >>> advice(cause, entry, AuditSource("run/predictions.safetensors", True, run="run"))
    'Regularize: classgap train --config run/config.yaml --method sam --out run-sam'
    >>> advice(cause, entry)
    'Regularize, for example with sharpness-aware minimization (sam).'
    """
    sentence, command = advice_parts(cause, entry, source)
    if not command:
        return f"{sentence}."
    return f"{sentence}: {command}"


def advice_parts(cause: Cause, entry: ClassResult, source: AuditSource | None = None) -> Advice:
    """Return the sentence, without its final stop, and the command, which is empty if none is known.

    Args:
        cause: cause of the failing class.
        entry: the class.
        source: files of the audit; without them, the advice has no command.
    """
    find = ADVICE.get(cause.name, _look_at_errors)
    return find(cause, entry, source)


def fix_command(source: AuditSource | None) -> str:
    """Return the command that looks for a remedy, or an empty string without scores.

    >>> fix_command(AuditSource("my predictions.npz", has_scores=True))
    "classgap fix 'my predictions.npz'"
    """
    if source is None or not source.has_scores:
        return ""
    given = source.run if source.run is not None and _has_validation(source) else source.predictions
    return f"classgap fix {shlex.quote(given)}"


def remedy_advice(source: AuditSource | None) -> Advice:
    """Return what to do about the errors of many classes; without scores, the command is empty.

    Without validation samples, the remedy is fitted and chosen on the audited samples. Cross-fitting keeps its estimate
    honest, but whatever is chosen afterwards has seen them.

    >>> remedy_advice(AuditSource("run/predictions.safetensors", True, run="run", has_validation=True))
    ('Find a remedy on the validation samples and test it on the test samples', 'classgap fix run')
    """
    if source is None or not source.has_scores:
        return "", ""
    if _has_validation(source):
        return "Find a remedy on the validation samples and test it on the test samples", fix_command(source)
    instead = (
        "pass validation samples to fix, and these with --test" if source.run is None else "train with --val-fraction"
    )
    return (
        "Find a remedy on these samples by nested cross-fitting; they are no untouched test set afterwards "
        f"(to keep one, {instead})",
        fix_command(source),
    )


def _has_validation(source: AuditSource | None) -> bool:
    return source is not None and source.run is not None and source.has_validation


def _train(source: AuditSource | None, flags: str, name: str) -> str:
    """Return the command that repeats the audited run with other settings, in a directory next to it."""
    if source is None or source.run is None:
        return ""
    run = source.run.rstrip("/")
    return f"classgap train --config {shlex.quote(f'{run}/config.yaml')} {flags} --out {shlex.quote(f'{run}-{name}')}"


def _try_method(
    sentence: str, method: str, otherwise: str
) -> Callable[[Cause, ClassResult, AuditSource | None], Advice]:
    """Advise a method: as a command if the run is known, otherwise in words."""

    def find(cause: Cause, entry: ClassResult, source: AuditSource | None) -> Advice:
        command = _train(source, f"--method {method}", method)
        return (sentence, command) if command else (f"{sentence}, {otherwise} ({method})", "")

    return find


def list_samples(samples: Sequence[SampleId], limit: int = MAX_SAMPLES) -> str:
    """Return the first ``limit`` sample ids, and how many follow.

    >>> list_samples([12, 57, 3]), list_samples([12, 57, 3], limit=2)
    ('12, 57, 3', '12, 57, and 1 more')
    """
    shown = ", ".join(printable(str(sample)) for sample in samples[:limit])
    return shown if len(samples) <= limit else f"{shown}, and {format_count(len(samples) - limit)} more"


def _few_training(cause: Cause, entry: ClassResult, source: AuditSource | None) -> Advice:
    accurate: Any = cause.details.get("accurate_classes_have")
    wanted, whose = cause.reference, reference_name(cause)
    if accurate is not None and (wanted is None or accurate > wanted):
        wanted, whose = accurate, REFERENCES["classes-above-mean"]
    if cause.figure is None or wanted is None or wanted <= cause.figure:
        collect = "Collect more training samples"
    else:
        goal = math.ceil(wanted)
        more = pluralize(math.ceil(goal - cause.figure), "more training sample", "more training samples")
        collect = f"Collect at least {more}, because {whose} {format_count(goal)}"
    collect += _to_measure(cause, entry)
    command = _train(source, "--method logit-adjustment", "logit-adjustment")
    if command:
        return f"{collect}. For now, run", command
    if entry.train_count is not None and fix_command(source):
        how = "" if _has_validation(source) else ", by cross-fitting on the test samples"
        return f"{collect}. For now, correct the class priors{how}", fix_command(source)
    return f"{collect}. For now, train with adjusted logits (logit-adjustment)", ""


def _too_few_test(cause: Cause, entry: ClassResult, source: AuditSource | None) -> Advice:
    more = "a few more test samples"
    if cause.figure is not None and cause.reference is not None and cause.reference > cause.figure:
        more = pluralize(math.ceil(cause.reference - cause.figure), "more test sample", "more test samples")
        more = f"about {more}"
    return f"Collect {more} of the class to decide whether it is below the mean{_to_measure(cause, entry)}", ""


def _to_measure(cause: Cause, entry: ClassResult) -> str:
    """A sentence with the number of test samples that a change of 3 points needs, if the class has fewer."""
    wanted = cause.details.get("test_samples_for_3_points")
    if not isinstance(wanted, int | float) or wanted <= entry.support:  # 0 if the class is never predicted correctly
        return ""
    return f". To detect a change of 3 points, you need {format_count(wanted)} test samples of this class"


def _wrong_labels(cause: Cause, entry: ClassResult, source: AuditSource | None) -> Advice:
    if not entry.doubted_samples:
        return "Check the labels of its misclassified samples", ""
    if "valid" in cause.details:
        return (
            f"Count every valid label as correct; these errors predict one: {list_samples(entry.doubted_samples)}",
            "",
        )
    return f"Label these samples again: {list_samples(entry.doubted_samples)}", ""


def _decision_bias(cause: Cause, entry: ClassResult, source: AuditSource | None) -> Advice:
    change = "Fit class offsets" if entry.train_count is None else "Correct the class priors, or fit class offsets"
    command = fix_command(source)
    if not command:
        return f"{change}, on validation samples", ""
    return (change if _has_validation(source) else f"{change}, by cross-fitting on the test samples"), command


def _under_trained(cause: Cause, entry: ClassResult, source: AuditSource | None) -> Advice:
    if source is not None and source.epochs is not None:
        epochs = max(2 * source.epochs, MIN_EPOCHS)
        return "Train longer", _train(source, f"--epochs {epochs}", f"{epochs}-epochs")
    if source is not None and source.max_steps is not None:
        return "Train longer", _train(source, f"--max-steps {2 * source.max_steps}", f"{2 * source.max_steps}-steps")
    return "Train longer, with a higher learning rate or with less regularization", ""


def _overlap(cause: Cause, entry: ClassResult, source: AuditSource | None) -> Advice:
    others: Any = cause.details.get("others") or (() if cause.other is None else (cause.other,))
    merge = f"Merge the class with {join_names(others, 'or')}" if others else "Merge the classes"
    both = "both" if len(others) < 2 else "several"
    allow = f"allow {both} labels where a sample shows {both} (valid_labels)"
    if cause.details.get("valid_labels"):
        allow = f"check that the valid labels hold {both} where a sample shows {both}"
    choices = f"{merge} if they mean the same, {allow}"
    command = _train(source, "--method lmdl", "lmdl")
    if command:
        return f"{choices}, or run", command
    return f"{choices}, or separate them by a large margin (lmdl)", ""


def _close_boundary(cause: Cause, entry: ClassResult, source: AuditSource | None) -> Advice:
    if cause.details.get("head") == "none":
        return "Replace the model with a linear classifier on these features", ""
    return _try_method("Retrain the head", "crt", "for example on class-balanced batches")(cause, entry, source)


def _not_enough(cause: Cause, entry: ClassResult, source: AuditSource | None) -> Advice:
    missing = missing_inputs(cause)
    return (f"Audit again with {missing}", "") if missing else _look_at_errors(cause, entry, source)


def _look_at_errors(cause: Cause, entry: ClassResult, source: AuditSource | None) -> Advice:
    if not entry.confident_errors:
        return "Look at its misclassified samples", ""
    return f"Look at these confident errors: {list_samples(entry.confident_errors)}", ""


ADVICE: Mapping[str, Callable[[Cause, ClassResult, AuditSource | None], Advice]] = {
    "few-training-samples": _few_training,
    "under-trained": _under_trained,
    "over-fitted": _try_method("Regularize", "sam", "for example with sharpness-aware minimization"),
    "wrong-labels": _wrong_labels,
    "decision-bias": _decision_bias,
    "close-boundary": _close_boundary,
    "overlap": _overlap,
    "large-spread": _try_method(
        "Make the classes more compact", "feature-norm", "for example with a penalty on feature norms"
    ),
    "representation": _try_method("Learn better features", "feature-norm", "for example with a penalty on their norms"),
    "too-few-test-samples": _too_few_test,
    "not-enough-evidence": _not_enough,
}
