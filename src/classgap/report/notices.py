"""Sentences of an audit's notices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from classgap.audit.results import Notice
from classgap.report.formatting import format_count, format_percent, pluralize

LISTED = 6  # names in one sentence


def notice_text(notice: Notice) -> str:
    """Return the sentence of a notice.

    >>> notice_text(Notice("unseen-classes", {"unseen": 2, "classes": 10}))
    'Classes without test samples: 2 of 10. All metrics leave them out.'
    """
    sentence = SENTENCES.get(notice.code)
    if sentence is None:  # saved by a newer version
        return f"{notice.code}: {', '.join(f'{key} {value}' for key, value in notice.values.items()) or 'no details'}."
    return sentence if isinstance(sentence, str) else sentence(notice.values)


def _names(names: Any) -> str:
    return ", ".join(names[:LISTED]) + (" …" if len(names) > LISTED else "")


def _not_used(values: Mapping[str, Any]) -> str:
    return f"{_names(values['names'])} {'is' if len(values['names']) == 1 else 'are'} not used"


def _unused_arrays(values: Mapping[str, Any]) -> str:
    hint = f"; did you mean {_names(values['suggestions'])}?" if values["suggestions"] else "."
    return _not_used(values) + hint


def _duplicates(values: Mapping[str, Any]) -> str:
    dropped = pluralize(values["dropped"], "sample", "samples")
    return f"Dropped {dropped} of {format_count(values['samples'])} with a duplicate index."


def _renamed(values: Mapping[str, Any]) -> str:
    return (
        f"Accuracy is {format_percent(values['accuracy'])} %; with classes numbered alike, it would be at least "
        f"{format_percent(values['renamed_accuracy'])} %"
    )


def _shifted(values: Mapping[str, Any]) -> str:
    below = values["offset"] < 0
    one, zero = ("labels", "predictions") if below else ("predictions", "labels")
    return (
        f"Labels look shifted by one: in {format_count(values['classes'])} of {format_count(values['seen'])} classes, "
        f"class k is mostly predicted as class k {'−' if below else '+'} 1. {_renamed(values)}: check whether the "
        f"{one} count from 1 and the {zero} from 0."
    )


SENTENCES: Mapping[str, str | Callable[[Mapping[str, Any]], str]] = {
    "unseen-classes": lambda of: (
        f"Classes without test samples: {format_count(of['unseen'])} of {format_count(of['classes'])}. All metrics "
        "leave them out."
    ),
    "constant-prediction": lambda of: f"Every sample is predicted as {of['name']}.",
    "only-predicted-labels": "Only predicted labels were given: no top-k accuracy, calibration or margins.",
    "no-scores": "No scores were given: no top-k accuracy, calibration or margins.",
    "no-features": "No features were given: no spread, distances or map.",
    "features-not-found": lambda of: f"No feature metrics: {of['model']} has no single linear head.",
    "features-not-computed": lambda of: f"No feature metrics: the forward pass did not call the head ({of['head']}).",
    "features-not-of-logits": lambda of: (
        f"No feature metrics: the {format_count(of['logits'])} logits are not the output of the head ({of['head']})."
    ),
    "features-not-per-sample": lambda of: (
        f"No feature metrics: features must have shape (n_samples, n_features), got {tuple(of['shape'])}."
    ),
    "head-does-not-fit": (
        "No distances to decision boundaries: the head's weight and bias do not reproduce the predictions from these "
        "features (a cosine head, or features of another layer)."
    ),
    "unpaired-ranking": (
        "The accuracies that rank the thirds may come from other samples. If they come from the same samples, chance "
        "contributes to the gap."
    ),
    "logits-are-probabilities": "Scores were read as probabilities: they are in [0, 1] and every row sums to 1.",
    "zero-probabilities": lambda of: (
        f"No logit margins: in {format_count(of['zeros'])} of {format_count(of['samples'])} samples the probability of "
        "the true class, or of every other class, is 0. Pass logits instead."
    ),
    "duplicate-index": _duplicates,
    "no-superclass": lambda of: (
        f"Classes without a superclass: {format_count(of['missing'])} of {format_count(of['classes'])}. Their mistakes "
        "count as outside."
    ),
    "valid-labels-from-one": lambda of: (
        f"The {format_count(of['entries'])} sets of valid labels are numbered from 1: index 1 is the first entry."
    ),
    "labels-shifted": _shifted,
    "labels-permuted": lambda of: (
        f"Classes look permuted: {format_count(of['classes'])} of {format_count(of['seen'])} classes are mostly "
        f"predicted as another class each, such as {of['label']} as {of['prediction']}. {_renamed(of)}: check that "
        "labels and predictions number the classes in the same order."
    ),
    "labels-mostly-invalid": lambda of: (
        f"Only {format_percent(of['fraction'])} % of the labels are among their valid labels: check that both "
        "describe the same samples and number the classes in the same way."
    ),
    "unused-arrays": _unused_arrays,
    "unused-columns": lambda of: f"{_not_used(of)}.",
    "unused-columns-maybe-scores": lambda of: (
        f"{_not_used(of)}; if they are scores of the classes, remove the column prediction."
    ),
    "accumulated": lambda of: (
        "Accumulated as sums over batches: no quantiles of logit margins, error budget, label checks or pairing of "
        "samples; " + ("no distances within classes or map." if of["feature_dim"] else "no feature metrics.")
    ),
    "diagnosis-sampled": lambda of: (
        f"Error budget, causes and label checks examine {format_count(of['examined'])} of "
        f"{format_count(of['samples'])} samples, a random subset of each class; their counts refer to these samples."
    ),
    "map-sampled": lambda of: f"The map shows at most {of['points']} samples.",
    "distances-sampled": lambda of: (
        f"Distances within a class are measured to the {of['outermost']} samples farthest from its mean: the largest "
        "distances are lower bounds, and their means are estimates from a subset of the samples."
    ),
    "columns-are-classes": lambda of: (
        f"Read {pluralize(of['classes'], 'column', 'columns')} as classes with {of['kind']}."
    ),
}
