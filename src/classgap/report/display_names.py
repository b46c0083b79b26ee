"""Display names of groups, gap measures, causes and methods."""

from __future__ import annotations

from collections.abc import Iterable

CAUSES = {
    "few-training-samples": "few training samples",
    "under-trained": "under-trained",
    "decision-bias": "decision bias",
    "representation": "features do not separate the class",
    "large-spread": "large feature spread",
    "overlap": "overlap with other classes",
    "close-boundary": "decision boundary too close",
    "wrong-labels": "labels in doubt",
    "over-fitted": "overfitting",
    "too-few-test-samples": "too few test samples",
    "not-enough-evidence": "not enough evidence",
}

# Losses of this package by the name to import, other methods by the name in the literature.
METHODS = {
    "mr2": "MR2Loss",
    "elm": "ELMLoss",
    "feature-norm": "FeatureNormLoss",
    "lmdl": "LargeMarginDiscriminativeLoss",
    "ldam": "LDAM",
    "sam": "SAM",
    "supcon": "supervised contrastive learning",
}

GAPS = {
    "easy_hard": "easy third − hard third",
    "own_easy_hard": "easy third − hard third, each model's own thirds",
    "best_worst": "best class − worst class",
    "worst_class": "worst class",
    "worst_tenth": "worst tenth of classes",
    "std": "standard deviation across classes",
    "gini": "Gini coefficient",
}


def cause_name(name: str) -> str:
    """Display name of a cause.

    >>> cause_name("over-fitted"), cause_name("new-cause")
    ('overfitting', 'new cause')
    """
    return CAUSES.get(name, name.replace("-", " "))


def method_names(methods: Iterable[str]) -> str:
    """Display names of methods, separated by commas.

    >>> method_names(["mr2", "logit-adjustment"]), method_names([])
    ('MR2Loss, logit adjustment', '')
    """
    return ", ".join(METHODS.get(method, method.replace("-", " ")) for method in methods)


def gap_name(measure: str, rank_by: str = "own") -> str:
    """Display name of a gap measure in an audit with this ``rank_by``.

    >>> gap_name("std"), gap_name("macro_f1")
    ('standard deviation across classes', 'macro F1')
    >>> gap_name("easy_hard", "baseline")
    "easy third − hard third, the baseline's thirds"
    """
    name = "macro F1" if measure == "macro_f1" else GAPS.get(measure, measure.replace("_", " "))
    return f"{name}, the baseline's thirds" if measure == "easy_hard" and rank_by != "own" else name


def third_name(group: str, rank_by: str = "own") -> str:
    """Display name of a third in an audit with this ``rank_by``.

    >>> third_name("hard"), third_name("hard", "baseline")
    ('hard third', 'hard for the baseline')
    """
    return f"{group} third" if rank_by == "own" else f"{group} for the baseline"
