"""How each metric of an audit or a comparison is computed."""

from __future__ import annotations

from collections.abc import Iterable

from classgap.audit.audit import Audit
from classgap.audit.diagnosis.causes import (
    CLEARLY_FEWER,
    EXCESS_FIT,
    FEW_TRAINING,
    LABEL_FRACTION,
    LIFT,
    LOST,
    OVERLAP_RATE,
    OVERLAP_SHARE,
    REMOVED,
    SEVERAL_CLASSES,
    SEVERAL_SHARE,
    WIDE_SPREAD,
)
from classgap.audit.diagnosis.loss_trend import MIN_FALL
from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import CLASS_CHANGES
from classgap.audit.figures import FIGURES, TEST, Figure
from classgap.audit.geometry.embedding_map import COMPONENTS
from classgap.audit.settings import AuditSettings
from classgap.audit.stats.multiple_tests import THRESHOLD
from classgap.audit.stats.rank_correlation import ALL_ORDERS
from classgap.remedies.results import FixResult
from classgap.remedies.selection import N_FOLDS, N_REPEATS, prefers_balance
from classgap.report.display_names import GAPS
from classgap.report.formatting import format_level

# Titles of notes that are not about a per-class metric.
TITLES = {
    "interval": "confidence intervals",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "top_k": "top-k accuracy",
    "unseen": "classes without test samples",
    "thirds": "easy, medium and hard thirds",
    "frequency": "head, torso and tail",
    **{f"gap.{name}": f"gap: {label}" for name, label in GAPS.items()},
    "gap.expected_by_chance": "gap expected by chance",
    "pairs": "confused pairs",
    "angle": "smallest angle m_c",
    "within_between": "within-class / between-class variance",
    "centroid_agreement": "agreement with the nearest class mean",
    "correlation": "rank correlation",
    "error_budget": "error budget",
    "diagnosis": "diagnosis",
    "own_groups": "each model's own thirds",
    "valid": "valid labels",
    "sign_test": "sign test",
    "changed": "number of changed classes",
    "choice": "choice of the remedy",
    "change": "change of each remedy",
    "over_runs": "statistics over runs",
}
LABELS = {figure.name: figure.label for figure in (*FIGURES, *CLASS_CHANGES) if figure.label}

# Fallback for the interval of a mean where all resamples are equal.
ALL_EQUAL = "Wilson interval of the pooled samples if all of them are correct or all are wrong"


def audit_notes(audit: Audit) -> dict[str, str]:
    """Return a description of how each metric of ``audit`` is computed."""
    settings = audit.settings
    level = settings.confidence_level
    bootstrap = (
        f"{settings.n_resamples} bootstrap resamples of the test samples within each class, deviations scaled by "
        f"√(n/(n-1)), seed {settings.seed}, {format_level(level)} percentile interval"
    )
    ranking = "the accuracies of this model" if audit.rank_by == "own" else "the accuracies of the baseline"
    return {
        **_figure_notes((figure for figure in FIGURES if figure.section == TEST), level),
        **_accuracy_notes(settings, bootstrap, ranking),
        **_gap_notes(format_level(level), bootstrap),
        "pairs": (
            "Errors in both directions divided by the samples of both classes. Ranked by the lower end of the Wilson "
            "interval, so that pairs with few samples do not lead the list."
        ),
        **_figure_notes((figure for figure in FIGURES if figure.section != TEST), level),
        "angle": "m_c: smallest angle between the weights of two classes in the head, in degrees (MR² Table 4).",
        "within_between": "Mean ‖ŝ_k‖² divided by the mean squared distance of the class means to their mean.",
        "centroid_agreement": (
            "Fraction of samples whose nearest class mean is that of the predicted class; estimated on a random subset "
            "of large test sets."
        ),
        "correlation": (
            "Spearman's rank correlation over classes. Two-sided p-value: exact (all permutations) for up to "
            f"{ALL_ORDERS} classes, from the t distribution for more."
        ),
        "map": (
            f"t-SNE of the first {COMPONENTS} principal components of at most {settings.map_points} samples, seed "
            f"{settings.seed}."
        ),
        "error_budget": next(figure.note for figure in FIGURES if figure.name == "error_budget"),
        "diagnosis": DIAGNOSIS,
        **_label_notes(audit),
    }


def diff_notes(diff: AuditDiff) -> dict[str, str]:
    """Return a description of how each metric of ``diff`` is computed."""
    swap = (
        "swaps the two models of each class" if diff.paired else "assigns the samples of each class to the two models"
    )
    return {
        "interval": (
            f"{diff.n_resamples} {'paired ' if diff.paired else ''}bootstrap resamples of the test samples within each "
            f"class, deviations scaled by √(n/(n-1)), seed {diff.seed}, {format_level(diff.confidence_level)} "
            "percentile interval of the difference. Intervals of the standard deviation and the Gini coefficient are "
            "centered on the change. "
            f"Single classes: {'Agresti-Min' if diff.paired else 'Newcombe'} interval."
        ),
        **_figure_notes(CLASS_CHANGES, diff.confidence_level),
        "macro_f1": (
            "Mean F1 score of the compared classes. Interval of the change: normal, by the delta method, from the "
            "variance within each class."
        ),
        "groups": "Mean accuracy of the classes in the group. The groups are those of the first model.",
        "expected_by_chance": (
            "Mean change of the thirds if the two predictions of each sample are swapped at random. Classes that "
            "rank as hard by bad luck improve without any real change (regression to the mean). A change is "
            "significant only if its interval also excludes this value."
        ),
        "sign_test": (
            "Exact binomial test of the classes that rose against the classes that fell. For thirds formed from "
            "the first model's accuracies on these samples, the larger of its p-value and that of a randomization test "
            f"of the same difference, which {swap} at random and forms the thirds again."
        ),
        "changed": CHANGED,
        "own_groups": "Thirds of each model by its own accuracies; they may contain different classes.",
        "gap": (
            "The easy-hard gap uses the thirds of the first model; other measures rank the classes of each model by "
            "itself."
        ),
        "over_runs": (
            "Mean and sample standard deviation over runs, with a two-sided paired t-test. With several runs, a change "
            "is significant only if this test is significant as well: bootstrap intervals reflect the choice of test "
            "samples, not the variation between runs."
        ),
    }


def fix_notes(result: FixResult) -> dict[str, str]:
    """Return a description of how the numbers of a fix are computed."""
    level = format_level(result.confidence_level)
    notes = {
        "choice": (
            f"Estimates are means over {N_REPEATS} × {N_FOLDS} stratified folds of the fitting samples: the other "
            "folds calibrate the scores, rank the classes and fit each remedy at each strength, and the fold evaluates "
            "it. Among the strengths and remedies within the limits, "
            + (
                "those whose estimate exceeds its standard error and is within one standard error of the best count as "
                "equal, and the one with the highest balanced accuracy is chosen."
                if prefers_balance(result.goal, result.limits["easy"])
                else "the one with the best estimate is chosen, if its estimate exceeds its standard error."
            )
        ),
        "change": (
            f"Nested cross-fitting with {N_FOLDS} folds: the other folds choose strength and remedy as above, and the "
            "fold evaluates the result."
            if result.nested
            else "Measured on the test samples, which are used neither to fit nor to choose. Each remedy is fitted to "
            "all fitting samples, at the strength chosen on them."
        ),
        "interval": (
            f"{level} normal interval from the paired differences of the samples; approximate, because folds share the "
            "samples they fit to."
            if result.nested
            else f"{level} interval from paired bootstrap resamples, the same for all remedies, as in classgap "
            "compare. Costs have a normal interval."
        ),
        "thirds": "By accuracy on the fitting samples. The worst tenth has at least one class.",
    }
    return (
        notes
        if result.diff is None
        else notes | {key: text for key, text in diff_notes(result.diff).items() if key not in (*notes, "over_runs")}
    )


def _label_notes(audit: Audit) -> dict[str, str]:
    """Notes on the inputs given in addition to the labels."""
    given = {"valid": audit.valid, "slices": audit.slices, "superclasses": audit.superclasses}
    return {key: LABEL_NOTES[key] for key, found in given.items() if found is not None}


def note_name(key: str) -> str:
    """Return the title of a note.

    >>> note_name("gap.easy_hard"), note_name("spread"), note_name("new_metric")
    ('Gap: easy third − hard third', 'Spread ‖ŝ‖', 'New metric')
    """
    name = TITLES.get(key) or LABELS.get(key) or key.replace("_", " ").replace(".", ": ")
    return name[:1].upper() + name[1:]


def _figure_notes(figures: Iterable[Figure], confidence_level: float) -> dict[str, str]:
    values = {"{level}": format_level(confidence_level), "{alpha}": f"{1 - confidence_level:g}"}
    notes = {figure.name: figure.note for figure in figures if figure.label and figure.note}
    for placeholder, value in values.items():
        notes = {name: note.replace(placeholder, value) for name, note in notes.items()}
    return notes


def _accuracy_notes(settings: AuditSettings, bootstrap: str, ranking: str) -> dict[str, str]:
    head, tail = settings.frequency_cuts
    return {
        "balanced_accuracy": f"Mean accuracy of the classes with test samples. Interval: {bootstrap}; {ALL_EQUAL}.",
        "macro_f1": "Mean F1 score of the classes with test samples.",
        "top_k": "Fraction of samples whose label is among the k highest scores.",
        "unseen": "A class without test samples has no accuracy. Averages, rankings and gaps ignore it.",
        "thirds": (
            f"Classes with test samples, ranked by {ranking} (ties by class index) and split into three equal parts. "
            "If one class remains, it is medium; if two remain, one is easy and one is hard."
        ),
        "frequency": (
            f"Head: at least {head:g} training samples. Tail: fewer than {tail:g}. Torso: the classes in between."
        ),
        "groups": f"Mean accuracy of the classes in the group. Interval: {bootstrap}; {ALL_EQUAL}.",
    }


def _gap_notes(confidence_level: str, bootstrap: str) -> dict[str, str]:
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
            f"Mean accuracy of the worst tenth of the classes, rounded up. Interval: {bootstrap}; {ALL_EQUAL}."
        ),
        "gap.std": f"Standard deviation of the class accuracies. Interval: {bootstrap}, centered on the estimate.",
        "gap.gini": f"Gini coefficient of the class accuracies. Interval: {bootstrap}, centered on the estimate.",
        "gap.expected_by_chance": (
            "Mean of the measure over simulated test sets in which every class has the balanced accuracy: the gap that "
            "sampling noise alone produces. If the thirds are formed from a baseline's accuracies on the same samples, "
            "the simulation also keeps the fractions of samples that both models, one of them or neither predict "
            "correctly."
        ),
    }


LABEL_NOTES = {
    "valid": (
        "A prediction is correct if it is one of the sample's valid labels; samples without any are left out. Groups "
        "keep their classes, and intervals are computed as for the given labels. Interval of the change of the gap: "
        "normal, from the same samples scored both ways. The labeled thirds are formed and scored by the same labels. "
        "Scored by other labels, they regress to the mean, which exaggerates the change. Re-ranked thirds are formed "
        "and scored by the valid labels, so their gap can be compared with the labeled gap."
    ),
    "slices": (
        "Fisher's exact test, one-sided: errors are more frequent in the slice than in the rest of the class. Holm's "
        "correction over all classes, slices and columns, without pairs that no outcome could make significant "
        "(Tarone). Expected accuracy of a slice: mean accuracy of the classes of its samples."
    ),
    "superclasses": (
        "Errors whose predicted class has the superclass of the label. By chance: the errors of each class spread "
        "evenly over all other classes. Level of an error: steps from the true class up to an ancestor of the "
        "predicted class."
    ),
}
CHANGED = (
    f"Each class has a threshold: the largest p-value of at most {THRESHOLD:g} that its test can attain. An unchanged "
    "class exceeds its threshold τ with probability exactly 1 - τ, so the sum of 1/(1 - τ) over classes that "
    "exceed it estimates the number of unchanged classes from above, also for discrete p-values (Storey's estimator "
    "as generalized by Chen, Doerge and Heyse, 2018). The bound subtracts a normal quantile of this sum."
)

DIAGNOSIS = (
    "A class fails if it is in the hard third and significantly below the balanced accuracy (exact binomial test, "
    "Benjamini-Hochberg correction over all classes with test samples). Its causes are named in this order. "
    f"Few training samples: fewer than {FEW_TRAINING:g} times the median, or in the tail with fewer than "
    f"{CLEARLY_FEWER:g} times the median of the classes above the balanced accuracy. "
    f"Labels in doubt: at least {100 * LABEL_FRACTION:.0f} % of its errors are ruled out by calibrated "
    "probabilities and look like ordinary samples of the class they are predicted as, more often than expected by "
    "chance. "
    "Under-trained: training accuracy is as low as test accuracy, and a given head, refitted, improves this class and "
    f"adds at least {100 * LIFT:g} points on the others, or the last fifth of the epochs with a high learning rate "
    f"lowered the training loss by {100 * MIN_FALL:.0f} %, or brought {100 * MIN_FALL:.0f} % of its fall since the "
    "first epoch. "
    f"Overlap with other classes: at least {100 * OVERLAP_RATE:.0f} % of its samples and {100 * OVERLAP_SHARE:.0f} % "
    "of its errors (more with few classes) go to one class, significantly more than if errors were spread evenly; if "
    f"nothing else is found, at least {100 * SEVERAL_SHARE:.0f} % to at most {SEVERAL_CLASSES} classes. Offsets or a "
    f"head come before overlap if they remove {100 * REMOVED:.0f} % of its errors, net of both classes. "
    f"Large feature spread: at least {WIDE_SPREAD:g} times the median. "
    f"Overfitting: train minus test accuracy exceeds that of the median class by {100 * EXCESS_FIT:g} points. "
    f"Decision bias: class offsets remove at least {100 * REMOVED:.0f} % of its errors, net. "
    f"Decision boundary too close: a refitted linear head removes at least {100 * REMOVED:.0f} % of its errors, net. "
    f"Features do not separate the class: neither a refitted head nor nearest neighbors remove at least "
    f"{100 * LOST:.0f} % of its errors. "
    "Offsets and heads are fitted and evaluated on different samples (5 folds)."
)
