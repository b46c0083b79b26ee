"""Display names of groups, gap measures, causes, methods and notes."""

from __future__ import annotations

from collections.abc import Iterable

CAUSES = {
    "few-training-samples": "few training samples",
    "large-spread": "large feature spread",
    "overlap": "overlap with another class",
    "close-boundary": "decision boundary too close",
    "wrong-labels": "likely label errors",
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
    "own_easy_hard": "easy third − hard third, each side's own thirds",
    "best_worst": "best class − worst class",
    "worst_class": "worst class",
    "worst_tenth": "worst 10 % of classes",
    "std": "standard deviation across classes",
    "gini": "Gini coefficient",
}

# Titles of the notes on how each metric is computed, where the metric's own name would not do.
NOTES = {
    "balanced_accuracy": "balanced accuracy",
    "top_k": "top-k accuracy",
    "interval": "confidence intervals",
    "unseen": "classes without test samples",
    "thirds": "easy, medium and hard thirds",
    "frequency": "head, torso and tail",
    "gap.easy_hard": "gap: easy third − hard third",
    "gap.best_worst": "gap: best class − worst class",
    "gap.worst_class": "gap: worst class",
    "gap.worst_tenth": "gap: worst 10 % of classes",
    "gap.std": "gap: standard deviation across classes",
    "gap.gini": "gap: Gini coefficient",
    "gap.expected_by_chance": "gap expected by chance",
    "pairs": "confused pairs",
    "margin": "output margin m_o",
    "angle": "smallest angle m_c",
    "mean_norm": "norm of the class mean ‖μ̂‖",
    "spread": "spread ‖ŝ‖",
    "spread_to_norm": "spread / norm of the class mean",
    "gamma": "margin γ",
    "weight_norm": "weight norm ‖w‖",
    "dispersion": "largest distance within the class",
    "max_intra_distance": "distance to the farthest sample",
    "class_margin": "smallest distance to a decision boundary",
    "centroid_margin": "class mean to nearest decision boundary",
    "within_between": "within-class / between-class variance",
    "centroid_agreement": "agreement with the nearest class mean",
    "correlation": "rank correlation",
    "diagnosis": "diagnosis",
    "p_value": "p-value",
    "p_adjusted": "adjusted p-value",
    "own_groups": "each side's own thirds",
    "over_runs": "statistics over runs",
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


def note_name(metric: str) -> str:
    """Title of the note on a metric.

    >>> note_name("gap.easy_hard"), note_name("new_metric")
    ('Gap: easy third − hard third', 'New metric')
    """
    name = NOTES.get(metric, metric.replace("_", " ").replace(".", ": "))
    return name[:1].upper() + name[1:]


def gap_name(measure: str, rank_by: str = "own") -> str:
    """Display name of a gap measure in an audit with this ``rank_by``.

    >>> gap_name("std")
    'standard deviation across classes'
    >>> gap_name("easy_hard", "baseline")
    "easy third − hard third, the baseline's thirds"
    """
    name = GAPS.get(measure, measure.replace("_", " "))
    return f"{name}, the baseline's thirds" if measure == "easy_hard" and rank_by != "own" else name


def third_name(group: str, rank_by: str = "own") -> str:
    """Display name of a third in an audit with this ``rank_by``.

    >>> third_name("hard"), third_name("hard", "baseline")
    ('hard third', 'hard for the baseline')
    """
    return f"{group} third" if rank_by == "own" else f"{group} for the baseline"
