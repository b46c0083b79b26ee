"""How every metric was computed."""

from __future__ import annotations

from collections.abc import Iterable

from classgap.audit.audit import Audit
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
from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import CLASS_CHANGES
from classgap.audit.figures import FIGURES, TEST, Figure
from classgap.audit.geometry.embedding_map import COMPONENTS
from classgap.audit.settings import AuditSettings
from classgap.audit.stats.rank_correlation import ALL_ORDERS
from classgap.report.formatting import GAPS, format_level

# Headings of notes that are not about a per-class metric.
HEADINGS = {
    "interval": "intervals",
    "balanced_accuracy": "mean class accuracy",
    "macro_f1": "macro F1",
    "top_k": "top-k accuracy",
    "unseen": "classes without test samples",
    "thirds": "easy, medium and hard",
    "frequency": "head, torso and tail",
    **{f"gap.{name}": f"gap: {label}" for name, label in GAPS.items()},
    "gap.expected_by_chance": "gap by chance",
    "pairs": "confused pairs",
    "angle": "angle m_c",
    "within_between": "within-class / between-class variance",
    "centroid_agreement": "nearest class mean agrees",
    "correlation": "rank correlation",
    "diagnosis": "why classes fail",
    "own_groups": "each side's own thirds",
    "over_runs": "over runs",
}
LABELS = {figure.name: figure.label for figure in (*FIGURES, *CLASS_CHANGES) if figure.label}

# Interval of a mean if the bootstrap has no variance.
DEGENERATE = "if all these samples are correct or all are wrong, the Wilson interval of all of them together"


def audit_notes(audit: Audit) -> dict[str, str]:
    """Return metric → how it was computed.

    Args:
        audit: the audit whose settings the notes describe.
    """
    settings = audit.settings
    level = settings.confidence_level
    bootstrap = (
        f"{settings.n_resamples} bootstrap resamples of the test samples within each class, with deviations scaled by "
        f"√(n/(n-1)), seed {settings.seed}, {format_level(level)} percentile interval"
    )
    ranked = "this model's own accuracies" if audit.rank_by == "own" else "the accuracies of a given baseline"
    return {
        **_figure_notes((figure for figure in FIGURES if figure.section == TEST), level),
        **_accuracy_notes(settings, bootstrap, ranked),
        **_gap_notes(format_level(level), bootstrap),
        "pairs": (
            "Errors in both directions / samples of both classes, ranked by the lower end of the Wilson interval, so "
            "that pairs with few samples do not lead the list."
        ),
        **_figure_notes((figure for figure in FIGURES if figure.section != TEST), level),
        "angle": "m_c: smallest angle between two rows of the head, in degrees (MR² Table 4).",
        "within_between": "Mean ‖ŝ_k‖² / mean squared distance of the class means from their mean.",
        "centroid_agreement": (
            "Fraction of samples (a random subset of very many) whose nearest class mean is the predicted class."
        ),
        "correlation": (
            f"Spearman's rank correlation over classes with a two-sided p-value: exact for up to {ALL_ORDERS} classes, "
            "from the t distribution for more."
        ),
        "map": (
            f"t-SNE of the first {COMPONENTS} principal components of at most {settings.map_points} samples, seed "
            f"{settings.seed}."
        ),
        "diagnosis": DIAGNOSIS,
    }


def diff_notes(diff: AuditDiff) -> dict[str, str]:
    """Return metric → how it was computed."""
    return {
        "interval": (
            f"{diff.n_resamples} bootstrap resamples of the test samples within each class, each sample with its "
            f"results on both sides and deviations scaled by √(n/(n-1)), seed {diff.seed}; "
            f"{format_level(diff.confidence_level)} percentile interval of the difference. Intervals of the standard "
            "deviation and the Gini coefficient are centered on the change. For one class: Agresti and Min's interval."
        ),
        **_figure_notes(CLASS_CHANGES, diff.confidence_level),
        "groups": "Mean class accuracy; the members are those of the first side.",
        "expected_by_chance": (
            "Mean change of the thirds ranked by the first side's accuracies when the two sides of each sample are "
            "swapped at random: classes ranked hard by bad luck on these samples improve without a cause. A change is "
            "significant only beyond it."
        ),
        "own_groups": "Thirds of each side by its own accuracies; their members may differ.",
        "gap": "easy_hard keeps the first side's thirds; the other measures use each side's own classes.",
        "over_runs": (
            "Mean and sample standard deviation over runs, with a two-sided paired t-test. A change is significant "
            "only if this test is as well: intervals describe other test samples, not other runs."
        ),
    }


def note_name(key: str) -> str:
    """Return the heading of a note.

    >>> note_name("gap.easy_hard"), note_name("spread"), note_name("new_metric")
    ('Gap: easy third − hard third', 'Spread ‖ŝ‖', 'New metric')
    """
    name = HEADINGS.get(key) or LABELS.get(key) or key.replace("_", " ").replace(".", ": ")
    return name[:1].upper() + name[1:]


def _figure_notes(figures: Iterable[Figure], confidence_level: float) -> dict[str, str]:
    values = {"{level}": format_level(confidence_level), "{alpha}": f"{1 - confidence_level:g}"}
    notes = {figure.name: figure.note for figure in figures if figure.label and figure.note}
    for placeholder, value in values.items():
        notes = {name: note.replace(placeholder, value) for name, note in notes.items()}
    return notes


def _accuracy_notes(settings: AuditSettings, bootstrap: str, ranked: str) -> dict[str, str]:
    head, tail = settings.frequency_cuts
    return {
        "balanced_accuracy": f"Mean accuracy of the classes with test samples. Interval: {bootstrap}; {DEGENERATE}.",
        "macro_f1": "Mean F1 score of the classes with test samples.",
        "top_k": "Fraction of samples whose label is among the k highest scores.",
        "unseen": "A class without test samples has no accuracy; averages, rankings and gaps leave it out.",
        "thirds": (
            f"Classes with test samples ranked by {ranked}, best first, ties by class index, in three parts. One class "
            "left over goes to medium, two go to easy and hard."
        ),
        "frequency": f"Head: at least {head:g} training samples; tail: fewer than {tail:g}; torso: between.",
        "groups": f"Mean accuracy of the group's classes. Interval: {bootstrap}; {DEGENERATE}.",
    }


def _gap_notes(level: str, bootstrap: str) -> dict[str, str]:
    return {
        "gap.easy_hard": (
            f"Easy third minus hard third. Interval: {bootstrap}, with the thirds kept; if the samples of each third "
            "are all correct or all wrong, Newcombe's interval."
        ),
        "gap.best_worst": f"Best minus worst class. Interval: Newcombe's, {level}, for these two classes.",
        "gap.worst_class": f"Lowest class accuracy. Interval: Wilson, {level}, of that class.",
        "gap.worst_tenth": (
            f"Mean accuracy of the worst 10 % of the classes, rounded up. Interval: {bootstrap}; {DEGENERATE}."
        ),
        "gap.std": f"Standard deviation of the class accuracies. Interval: {bootstrap}, centered on the value.",
        "gap.gini": f"Gini coefficient of the class accuracies. Interval: {bootstrap}, centered on the value.",
        "gap.expected_by_chance": (
            "Mean of the measure over simulated test sets in which every class has the balanced accuracy: the gap that "
            "sampling alone produces. If a baseline ranks the thirds on the same samples, every class has the same "
            "fractions of samples that both, one or neither model predicts correctly."
        ),
    }


DIAGNOSIS = (
    "A class fails if it is in the hard third and significantly below the balanced accuracy (exact binomial test, "
    "Benjamini-Hochberg correction over all classes with test samples). "
    f"Few training samples: below {FEW_TRAINING:g} of the median, or in the tail and below {CLEARLY_FEWER:g} of the "
    "median of the classes above the mean accuracy. "
    f"Large spread: {WIDE_SPREAD:g} times the median. "
    f"Overlap: at least {OVERLAP_RATE:.0%} of its samples and {OVERLAP_SHARE:.0%} of its errors (more with few "
    "classes) are predicted as one class whose mean is among the three nearest and closer than usual. "
    f"Close boundary: its position between class mean and midpoint is below {CLOSE_BOUNDARY:g} of the median of the "
    "classes above the mean accuracy, and lower than nearly all of theirs. "
    f"Wrong labels: cleanlab doubts {LABEL_SHARE:.0%} of its labels, and {LABEL_EXCESS:g} times as many as of the "
    "median class. "
    f"Over-fitted: training minus test accuracy exceeds that of the median class by {EXCESS_FIT:.0%}. "
    "Causes are ranked by strength on one scale; a close boundary and over-fitting are symptoms of the others and "
    "count less."
)
