"""How each metric of an audit is computed."""

from __future__ import annotations

from classgap.audit.diagnosis.causes import (
    CLEARLY_FEWER,
    CLOSE_BOUNDARY,
    EXCESS_FIT,
    FEW_TRAINING,
    LABEL_EXCESS,
    LABEL_SHARE,
    OVERLAP_RATE,
    OVERLAP_SHARE,
    WIDE_SPREAD,
)
from classgap.audit.geometry.class_clouds import OUTERMOST
from classgap.audit.geometry.embedding_map import COMPONENTS
from classgap.audit.metrics.calibration import BINS
from classgap.audit.settings import AuditSettings, format_level
from classgap.audit.stats.rank_correlation import ALL_ORDERS

# Fallback for the interval of a mean where all resamples are equal.
ALL_EQUAL = "Wilson interval of the pooled samples if all of them are correct or all are wrong"


def notes(settings: AuditSettings, *, baseline: bool) -> dict[str, str]:
    """Return a description of how each metric is computed.

    >>> "Wilson" in notes(AuditSettings(), baseline=False)["interval"]
    True
    """
    confidence_level = format_level(settings.confidence_level)
    bootstrap = (
        f"{settings.n_resamples} bootstrap resamples of the test samples within each class, deviations scaled by "
        f"√(n/(n-1)), seed {settings.seed}, {confidence_level} percentile interval"
    )
    ranking = "the accuracies of the baseline" if baseline else "the accuracies of this model"
    return {
        **_accuracies(settings, confidence_level, bootstrap, ranking),
        **_gaps(confidence_level, bootstrap),
        **FIXED,
        "correlation": (
            "Spearman's rank correlation over classes. Two-sided p-value: exact (all permutations) for up to "
            f"{ALL_ORDERS} classes, from the t distribution for more."
        ),
        "map": (
            f"t-SNE of the first {COMPONENTS} principal components of at most {settings.map_points} samples, seed "
            f"{settings.seed}."
        ),
        "diagnosis": DIAGNOSIS,
    }


def _accuracies(settings: AuditSettings, confidence_level: str, bootstrap: str, ranking: str) -> dict[str, str]:
    head, tail = settings.frequency_cuts
    return {
        "accuracy": "Fraction of samples whose predicted label is correct. Equal scores: the lowest class index wins.",
        "balanced_accuracy": (f"Mean accuracy of the classes with test samples. Interval: {bootstrap}; {ALL_EQUAL}."),
        "top_k": "Fraction of samples whose label is among the k highest scores.",
        "interval": f"Wilson score interval, {confidence_level}.",
        "unseen": "A class without test samples has no accuracy. Averages, rankings and gaps ignore it.",
        "precision": "Fraction of the samples predicted as the class that have its label.",
        "calibration_error": (
            f"Expected calibration error with {BINS} equal-width bins of the predicted label's probability. For a "
            "class: over the samples predicted as it."
        ),
        "thirds": (
            f"Classes with test samples, ranked by {ranking} (ties by class index) and split into three equal parts. "
            "If one class remains, it is medium; if two remain, one is easy and one is hard."
        ),
        "frequency": (
            f"Head: at least {head:g} training samples. Tail: fewer than {tail:g}. Torso: the classes in between."
        ),
        "groups": f"Mean accuracy of the classes in the group. Interval: {bootstrap}; {ALL_EQUAL}.",
    }


def _gaps(confidence_level: str, bootstrap: str) -> dict[str, str]:
    return {
        "gap.easy_hard": (
            f"Accuracy of the easy third minus accuracy of the hard third. Interval: {bootstrap}, with fixed thirds; "
            "Newcombe interval of the pooled samples if in each third all samples are correct or all are wrong."
        ),
        "gap.best_worst": (
            f"Accuracy of the best class minus accuracy of the worst class. Interval: Newcombe, {confidence_level}."
        ),
        "gap.worst_class": f"Lowest accuracy of a class. Interval: Wilson, {confidence_level}.",
        "gap.worst_tenth": (
            f"Mean accuracy of the worst 10 % of classes, rounded up. Interval: {bootstrap}; {ALL_EQUAL}."
        ),
        "gap.std": f"Standard deviation of the class accuracies. Interval: {bootstrap}, centered on the estimate.",
        "gap.gini": f"Gini coefficient of the class accuracies. Interval: {bootstrap}, centered on the estimate.",
        "gap.expected_by_chance": (
            "Mean of the measure over simulated test sets in which every class has the balanced accuracy: the gap that "
            "sampling noise alone produces. If a baseline ranks the thirds on the same samples, the simulation also "
            "keeps the fractions of samples that both models, one of them or neither predict correctly."
        ),
    }


# Notes that do not depend on settings.
FIXED = {
    "pairs": (
        "Errors in both directions divided by the samples of both classes. Ranked by the lower end of the Wilson "
        "interval, so that pairs with few samples do not lead the list."
    ),
    "margin": "m_o = P(true class) - max other P (MR² Table 4). Groups: mean of the class means.",
    "logit_margin": (
        "z_true - max other z over the samples of the class (ELM Fig. 3 and 6). Computed from log probabilities if no "
        "logits were given; omitted if a probability in a margin is exactly 0."
    ),
    "angle": "m_c: smallest angle between the weights of two classes in the head, in degrees (MR² Table 4).",
    "mean_norm": "‖μ̂_k‖, norm of the mean test feature of the class (MR² Table 6).",
    "spread": "‖ŝ_k‖ = √(Σ‖f - μ̂_k‖² / (n - 1)) over the test features of the class (MR² Table 6).",
    "spread_to_norm": "‖ŝ_k‖ / ‖μ̂_k‖; 0 is complete variability collapse (MR² Discussion 3).",
    "gamma": "γ_k, proportional to the cube root of the mean ‖f‖² of the class in the test set, mean 1 (MR² Eq. 1).",
    "weight_norm": "‖w_k‖, norm of the class's weights in the head (MR² Fig. 3).",
    "dispersion": (
        f"Largest distance between two samples of the class (LMDL Def. 4.1), among its {OUTERMOST} outermost samples."
    ),
    "max_intra_distance": (
        "Distance to the farthest sample of the class, averaged over its samples, divided by the largest feature norm "
        "(ELM Fig. 4)."
    ),
    "class_margin": "Smallest distance from a sample of the class to its nearest decision boundary (LMDL Def. 4.2).",
    "centroid_margin": "Signed distance from the class mean to its nearest decision boundary (LMDL Eq. 4.6).",
    "nearest_class": "The class with the nearest mean feature.",
    "within_between": "Mean ‖ŝ_k‖² divided by the mean squared distance of the class means to their mean.",
    "centroid_agreement": (
        "Fraction of samples whose nearest class mean is that of the predicted class; estimated on a random subset of "
        "large test sets."
    ),
}

DIAGNOSIS = (
    "A class fails if it is in the hard third and significantly below the balanced accuracy (exact binomial test, "
    "Benjamini-Hochberg correction over all classes with test samples). "
    f"Few training samples: fewer than {FEW_TRAINING:g} times the median, or in the tail with fewer than "
    f"{CLEARLY_FEWER:g} times the median of the classes above the balanced accuracy. "
    f"Large feature spread: at least {WIDE_SPREAD:g} times the median. "
    f"Overlap: at least {OVERLAP_RATE:.0%} of its samples and {OVERLAP_SHARE:.0%} of its errors (more with few "
    "classes) go to one class whose mean is among its three nearest and closer than usual. "
    "Decision boundary too close: the distance from the class mean to the boundary, relative to the midpoint between "
    f"the two means, is less than {CLOSE_BOUNDARY:g} times the usual value of the classes above the balanced accuracy "
    "and lower than almost all of theirs. "
    f"Likely label errors: cleanlab flags at least {LABEL_SHARE:.0%} of its labels and {LABEL_EXCESS:g} times as many "
    "as in the median class. "
    f"Overfitting: train minus test accuracy exceeds that of the median class by {EXCESS_FIT:.0%}. "
    "Causes are ranked by strength on a common scale. A close boundary and overfitting are often consequences of the "
    "other causes, so they count less."
)
