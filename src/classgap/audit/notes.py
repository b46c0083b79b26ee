"""How every number was computed, in words that go into the audit itself."""

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

# What an interval of a mean is where resampling shows no doubt.
SURE = "if all these samples are right or all are wrong, Wilson's of them together"


def notes(settings: AuditSettings, *, baseline: bool) -> dict[str, str]:
    """Figure → how it was computed.

    >>> "Wilson" in notes(AuditSettings(), baseline=False)["interval"]
    True
    """
    confidence_level = format_level(settings.confidence_level)
    bootstrap = (
        f"{settings.n_resamples} bootstrap replicates of the test samples within each class, with deviations stretched "
        f"by √(n/(n-1)), seed {settings.seed}, {confidence_level} percentile interval"
    )
    ranked = "a given baseline's accuracies" if baseline else "this model's own accuracies"
    return {
        **_accuracies(settings, confidence_level, bootstrap, ranked),
        **_gaps(confidence_level, bootstrap),
        **FIXED,
        "correlation": (
            f"Spearman's rank correlation over classes, two-sided p-value: of up to {ALL_ORDERS} classes over all "
            "orders, of more by the t distribution."
        ),
        "map": (
            f"t-SNE of the first {COMPONENTS} principal components, at most {settings.map_points} samples, seed "
            f"{settings.seed}."
        ),
        "diagnosis": DIAGNOSIS,
    }


def _accuracies(settings: AuditSettings, confidence_level: str, bootstrap: str, ranked: str) -> dict[str, str]:
    head, tail = settings.frequency_cuts
    return {
        "accuracy": "Share of samples whose predicted label is right; of equal scores the lower class index is taken.",
        "balanced_accuracy": (
            f"Mean over classes with test samples of the class's accuracy. Interval: {bootstrap}; {SURE}."
        ),
        "top_k": "Share of samples whose label is among the k highest scores.",
        "interval": f"Wilson score interval, {confidence_level}.",
        "unseen": "A class without test samples has no accuracy and enters no average, ranking or gap.",
        "precision": "Of the samples predicted as the class, the share that belongs to it.",
        "calibration_error": (
            f"Expected calibration error over {BINS} equal bins of the predicted label's probability. Of a class: over "
            "the samples predicted as it."
        ),
        "thirds": (
            f"Classes with test samples ranked by {ranked}, best first, ties by class index, in three parts; one class "
            "left over goes to medium, two go to easy and hard."
        ),
        "frequency": f"Head: at least {head:g} training samples; tail: fewer than {tail:g}; torso: between.",
        "groups": f"Mean over the group's classes of the class's accuracy. Interval: {bootstrap}; {SURE}.",
    }


def _gaps(confidence_level: str, bootstrap: str) -> dict[str, str]:
    return {
        "gap.easy_hard": (
            f"Easy third minus hard third. Interval: {bootstrap}, with the thirds kept; if in each of the two all "
            "samples are right or all are wrong, Newcombe's of their samples."
        ),
        "gap.best_worst": f"Best minus worst class. Interval: Newcombe's, {confidence_level}, for these two classes.",
        "gap.worst_class": f"Lowest accuracy of a class. Interval: Wilson, {confidence_level}, of that class.",
        "gap.worst_tenth": (
            f"Mean accuracy of the worst 10 % of the classes, rounded up. Interval: {bootstrap}; {SURE}."
        ),
        "gap.std": f"Standard deviation of the accuracies over classes. Interval: {bootstrap}, centred on the value.",
        "gap.gini": f"Gini coefficient of the accuracies over classes. Interval: {bootstrap}, centred on the value.",
        "gap.expected_by_chance": (
            "Mean of the measure over simulated test sets in which every class truly has the balanced accuracy: what "
            "sampling alone makes of a model without any gap. If a baseline ranks the thirds on the same samples, "
            "every class has the same shares of samples right by both, by one and by none: shared luck, too."
        ),
    }


# Of confusions, scores, features and the head: what no setting changes.
FIXED = {
    "pairs": (
        "Mistakes both ways over samples of both classes; ranked by the lower end of its Wilson interval, so that "
        "few samples do not lead the list."
    ),
    "margin": "m_o = P(true class) - highest other probability (MR² Table 4); groups: mean of the class means.",
    "logit_margin": (
        "z_true - highest other z, over the class's samples (ELM Fig. 3 and 6). Logarithms of probabilities stand "
        "for logits that are not given; with a probability of exactly 0 in any sample's margin there are none."
    ),
    "angle": "m_c: smallest angle between two rows of the head, in degrees (MR² Table 4).",
    "mean_norm": "‖μ̂_k‖, length of the mean of the class's test features (MR² Table 6).",
    "spread": "‖ŝ_k‖, root of Σ‖f - μ̂_k‖² / (n - 1) over the class's test features (MR² Table 6).",
    "spread_to_norm": "‖ŝ_k‖ / ‖μ̂_k‖; 0 is complete variability collapse (MR² Discussion 3).",
    "gamma": "γ_k with mean 1, in proportion to the cube root of the class's mean of ‖f‖² in the test set (MR² Eq. 1).",
    "weight_norm": "‖w_k‖ of the head (MR² Fig. 3).",
    "dispersion": f"Largest distance of two samples of the class (LMDL Def. 4.1), among its {OUTERMOST} outermost.",
    "max_intra_distance": "Mean distance to the farthest sample of the class / largest feature norm (ELM Fig. 4).",
    "class_margin": "Smallest distance of a sample of the class to one of its decision boundaries (LMDL Def. 4.2).",
    "centroid_margin": "Signed distance of the class mean to its nearest decision boundary (LMDL Eq. 4.6).",
    "nearest_class": "The class whose mean feature is nearest.",
    "within_between": "Mean ‖ŝ_k‖² / mean squared distance of the class means from their mean.",
    "centroid_agreement": "Share of samples (a random part if there are very many) nearest to the predicted mean.",
}

DIAGNOSIS = (
    "A class fails if it is in the hard third and below the balanced accuracy by more than chance brings about in as "
    "many classes (exact binomial test, Benjamini and Hochberg's correction over all classes with test samples). "
    f"Few training samples: below {FEW_TRAINING:g} of the median, or in the tail and below {CLEARLY_FEWER:g} of what "
    "classes above the balanced accuracy usually have. "
    f"Large spread: {WIDE_SPREAD:g} times the median. "
    f"Overlap: at least {OVERLAP_RATE:.0%} of its samples and {OVERLAP_SHARE:.0%} of its mistakes (more if "
    "there are few classes) go to one class whose mean is among the three nearest and nearer than usual. "
    f"Close boundary: at below {CLOSE_BOUNDARY:g} of the share of the way from class mean to midpoint that is "
    "usual for classes above the balanced accuracy, and lower than nearly all of theirs. "
    f"Wrong labels: cleanlab doubts {LABEL_SHARE:.0%} of its labels, and {LABEL_EXCESS:g} times as many as of "
    "the median class. "
    f"Over-fitted: train minus test accuracy exceeds the median class's by {EXCESS_FIT:.0%}. "
    "Ranked by strength, on one scale; a close boundary and over-fitting, which the others bring about, count "
    "less."
)
