"""Records of an audit. Accuracies and rates are fractions; ``None`` means unknown.

A class without test samples is "unseen": its accuracy is ``None``, and averages, groups and rankings leave it out.
Metrics that need an input that was not given (scores, features, the head) are ``None`` as well.

Records hold values only. :mod:`classgap.report` turns them into sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

# Read by pydantic, which checks saved audits; a plain dict keeps its import out of this module.
STRICT = {"extra": "forbid"}

Detail = int | float | str | tuple[str, ...] | tuple[int, ...] | None

# Levels of the quantiles of a Distribution.
QUANTILE_LEVELS = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)


class Interval(NamedTuple):
    """Confidence interval at the audit's ``confidence_level``; ``[low, high]`` in JSON."""

    low: float
    high: float


@dataclass(frozen=True)
class Distribution:
    """Distribution of a value over the samples of a class: mean, population standard deviation and quantiles.

    ``quantiles[i]`` is the quantile at ``QUANTILE_LEVELS[i]``, from the minimum to the maximum; empty if unknown.
    """

    __pydantic_config__ = STRICT

    mean: float
    std: float
    quantiles: tuple[float, ...]

    @property
    def median(self) -> float | None:
        """The quantile at 0.5."""
        return self.quantiles[QUANTILE_LEVELS.index(0.5)] if self.quantiles else None


@dataclass(frozen=True)
class Overall:
    """Metrics over the entire test set.

    Attributes:
        n_samples: number of test samples.
        num_classes: number of classes, including unseen ones.
        seen_classes: number of classes with at least one test sample.
        accuracy: fraction of samples whose predicted label is correct.
        interval: Wilson interval of ``accuracy``.
        balanced_accuracy: mean accuracy of the seen classes.
        balanced_interval: bootstrap interval of ``balanced_accuracy``.
        macro_f1: mean F1 score of the seen classes; a class that is never predicted correctly counts as 0.
        top_k: k → fraction of samples whose label is among the k highest scores; only k = 1 without scores.
        calibration_error: expected calibration error of the predicted label's probability.
        margin: mean output-level margin m_o over all samples (MR² Table 4, "Avg.").
    """

    __pydantic_config__ = STRICT

    n_samples: int
    num_classes: int
    seen_classes: int
    accuracy: float
    interval: Interval
    balanced_accuracy: float
    balanced_interval: Interval
    macro_f1: float
    top_k: Mapping[int, float]
    calibration_error: float | None
    margin: float | None


@dataclass(frozen=True)
class Confusion:
    """A class that samples of another class are predicted as.

    Attributes:
        name: the predicted class.
        count: number of samples of the true class predicted as ``name``.
        rate: ``count`` divided by the support of the true class.
    """

    __pydantic_config__ = STRICT

    name: str
    count: int
    rate: float


@dataclass(frozen=True)
class ConfusionPair:
    """Two classes confused with each other; pairs are ranked by the lower Wilson bound of ``rate``.

    Attributes:
        first: the class with the higher confusion rate (ties: the lower class index).
        second: the other class.
        first_as_second: number of samples of ``first`` predicted as ``second``.
        second_as_first: number of samples of ``second`` predicted as ``first``.
        first_rate: ``first_as_second`` / support of ``first``; ``None`` if ``first`` is unseen.
        second_rate: ``second_as_first`` / support of ``second``; ``None`` if ``second`` is unseen.
        rate: sum of both counts / sum of both supports.
    """

    __pydantic_config__ = STRICT

    first: str
    second: str
    first_as_second: int
    second_as_first: int
    first_rate: float | None
    second_rate: float | None
    rate: float


@dataclass(frozen=True)
class Notice:
    """A warning about the inputs or about metrics that could not be computed.

    Attributes:
        code: "unseen-classes", "only-predicted-labels", "no-features", "unused-arrays" and so on; see
            :mod:`classgap.report.notices` for the sentence of each code.
        values: numbers and names that the sentence contains.

    >>> from classgap.audit import Audit
    >>> audit = Audit.from_predictions(predictions=[0, 1], targets=[0, 1])
    >>> [notice.code for notice in audit.notices]
    ['only-predicted-labels', 'no-features']
    """

    __pydantic_config__ = STRICT

    code: str
    values: Mapping[str, Detail] = field(default_factory=dict)


@dataclass(frozen=True)
class Cause:
    """A likely cause of a class's low accuracy.

    Attributes:
        name: "few-training-samples", "large-spread", "overlap", "close-boundary", "wrong-labels", "over-fitted",
            "too-few-test-samples" or "not-enough-evidence".
        figure: the value that supports the cause, if there is one.
        reference: the value that ``figure`` is compared with, if there is one.
        strength: 0 to 1, ranks the causes of a class; see :mod:`classgap.audit.diagnosis.causes` for the scale.
        other: the other class, for "overlap" and "close-boundary".
        methods: names of methods that address the cause; empty if only more data or clean labels help.
        details: additional values of the evidence.
    """

    __pydantic_config__ = STRICT

    name: str
    figure: float | None
    reference: float | None
    strength: float
    other: str | None
    methods: tuple[str, ...]
    details: Mapping[str, Detail] = field(default_factory=dict)


@dataclass(frozen=True)
class BudgetShare:
    """Errors that one counterfactual change removes, and the errors that it adds.

    Attributes:
        removed: errors assigned to this change; each error is assigned once.
        fraction: ``removed`` / all errors.
        interval: confidence interval of ``fraction`` (Wilson).
        added: correct predictions of the same class that the change breaks.
        added_elsewhere: correct predictions of other classes that become predictions of this class.
    """

    __pydantic_config__ = STRICT

    removed: int
    fraction: float
    interval: Interval
    added: int
    added_elsewhere: int


@dataclass(frozen=True)
class ErrorBudget:
    """The errors of a class, or of all classes, by the change that would remove them.

    Each change is fitted on other samples than those it is judged on. Each error is assigned to the first change that
    removes it, in the order of the fields. ``None`` means that the change could not be tried with the given inputs.

    Attributes:
        errors: number of errors that were examined.
        labels: errors whose label is in doubt.
        decision: errors that class offsets, or the prior correction, remove.
        head: errors that a refitted linear head removes.
        representation: errors that neither a head nor nearest neighbors on these features remove.
        unexplained: errors that remain without an explanation because inputs are missing.
        lower_bound: whether ``head`` is a lower bound because the head was refitted on test features only.
    """

    __pydantic_config__ = STRICT

    errors: int
    labels: BudgetShare | None
    decision: BudgetShare | None
    head: BudgetShare | None
    representation: BudgetShare | None
    unexplained: int
    lower_bound: bool


@dataclass(frozen=True)
class OffsetChange:
    """Change of accuracy that class offsets would make, cross-fitted.

    Other folds fit the offsets and rank the classes; each fold measures the change.

    Attributes:
        overall: change over all samples.
        easy: mean change of the classes in the easy third.
        hard: mean change of the classes in the hard third.
        hard_interval: normal interval of ``hard``.
    """

    __pydantic_config__ = STRICT

    overall: float
    easy: float
    hard: float
    hard_interval: Interval


@dataclass(frozen=True)
class AuditSource:
    """Files that an audit was computed from, as paths were given.

    Attributes:
        predictions: prediction file.
        has_scores: whether it has targets and logits or probabilities of more than one sample of each class, so that
            ``classgap fix`` can read it.
        run: run directory of ``classgap train`` that holds it.
        epochs: epochs of the run.
        max_steps: optimizer steps of the run, if it counts these instead.
        has_validation: whether the run held out validation samples, at least two of each class.
        key: array or column with the sample ids, if not ``index``.
    """

    __pydantic_config__ = STRICT

    predictions: str
    has_scores: bool
    run: str | None = None
    epochs: int | None = None
    max_steps: int | None = None
    has_validation: bool = False
    key: str | None = None


@dataclass(frozen=True)
class GroupResult:
    """A group of classes.

    Attributes:
        name: "easy", "medium", "hard", "head", "torso", "tail", or the name of a given group.
        kind: "thirds", "frequency" or "given".
        accuracy: mean accuracy of its seen classes; ``None`` if all are unseen.
        interval: bootstrap interval of ``accuracy``.
        min: lowest class accuracy.
        max: highest class accuracy.
        support: number of test samples.
        members: names of its classes with test samples; thirds are in rank order.
        unseen: number of its classes without test samples.
        margin: mean output-level margin m_o of its seen classes (MR² Table 4).
        spread: mean ‖ŝ_k‖ of its seen classes (MR² Fig. 7).
    """

    __pydantic_config__ = STRICT

    name: str
    kind: str
    accuracy: float | None
    interval: Interval | None
    min: float | None
    max: float | None
    support: int
    members: tuple[str, ...]
    unseen: int
    margin: float | None
    spread: float | None


@dataclass(frozen=True)
class Gap:
    """Measures of how unequal the class accuracies are.

    ``worst_class`` and ``worst_tenth`` are accuracies; for the others 0 means that all classes are equal.

    Attributes:
        easy_hard: accuracy of the easy third minus that of the hard third; ``None`` with fewer than two classes.
        best_worst: accuracy of the best class minus that of the worst.
        worst_class: accuracy of the worst class.
        worst_tenth: mean accuracy of the worst tenth of the classes, rounded up.
        std: population standard deviation of the class accuracies.
        gini: Gini coefficient of the class accuracies; 0 if all are 0.
        intervals: measure → interval.
        expected_by_chance: measure → its expected value if every class had the balanced accuracy, with these supports.
            Sampling alone produces a gap of this size.
        worst_name: name of the worst class.
        best_name: name of the best class.
    """

    __pydantic_config__ = STRICT

    easy_hard: float | None
    best_worst: float
    worst_class: float
    worst_tenth: float
    std: float
    gini: float
    intervals: Mapping[str, Interval]
    expected_by_chance: Mapping[str, float]
    worst_name: str
    best_name: str


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation over classes, with its two-sided p-value and the number of classes."""

    __pydantic_config__ = STRICT

    rho: float
    p_value: float
    classes: int


@dataclass(frozen=True)
class FeatureSummary:
    """Metrics of the features and the head over all classes.

    Attributes:
        mean_spread_to_norm: mean over classes of ‖ŝ_k‖ / ‖μ̂_k‖; 0 is complete variability collapse (MR² Table 6).
        within_between: mean ‖ŝ_k‖² / mean ‖μ̂_k - global mean‖², the within-class to between-class variance.
        centroid_agreement: fraction of samples whose nearest class mean is the predicted class.
        spread_accuracy: rank correlation of ‖ŝ_k‖ and accuracy over classes (MR² Fig. 1b: negative).
        weight_norm_accuracy: rank correlation of ‖w_k‖ and accuracy (MR² Fig. 3: none).
        weight_norm_variation: coefficient of variation of ‖w_k‖; 0 if all norms are equal.
        mean_norm_variation: coefficient of variation of ‖μ̂_k - global mean‖; 0 if all norms are equal.
        angle: m_c, the smallest angle between two rows of the head in degrees (MR² Table 4, "C.-level").
        angle_pair: the classes of these two rows.
        mean_cosine: mean cosine over pairs of rows; -1/(K-1) for an equiangular tight frame.
        std_cosine: standard deviation of these cosines; 0 for an equiangular tight frame.
    """

    __pydantic_config__ = STRICT

    mean_spread_to_norm: float | None
    within_between: float | None
    centroid_agreement: float | None
    spread_accuracy: Correlation | None
    weight_norm_accuracy: Correlation | None
    weight_norm_variation: float | None
    mean_norm_variation: float | None
    angle: float | None
    angle_pair: tuple[str, str] | None
    mean_cosine: float | None
    std_cosine: float | None


@dataclass(frozen=True)
class FeatureMap:
    """A t-SNE embedding of the features of some classes.

    Attributes:
        classes: names of these classes.
        x: first coordinate of each point, scaled to [0, 1].
        y: second coordinate of each point, scaled to [0, 1].
        target: true class index of each point.
        prediction: predicted class index of each point.
    """

    __pydantic_config__ = STRICT

    classes: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    target: tuple[int, ...]
    prediction: tuple[int, ...]
