"""What an audit holds: plain frozen records. Accuracies, rates and shares are fractions; ``None`` means "not known".

A class without test samples has the status "unseen": its accuracy is ``None`` and it enters no average, no group's
mean and no ranking. Figures that need an input which was not given (scores, features, the head …) are ``None`` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

# The levels of every Distribution's quantiles.
QUANTILE_LEVELS = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)


class Interval(NamedTuple):
    """A confidence interval at the audit's level (0.95 unless set otherwise); ``[low, high]`` in JSON."""

    low: float
    high: float


@dataclass(frozen=True)
class Distribution:
    """How a figure is distributed over the samples of a class: mean, standard deviation (by n), quantiles.

    ``quantiles[i]`` belongs to ``QUANTILE_LEVELS[i]``; the first is the smallest value, the last the largest.
    """

    mean: float
    std: float
    quantiles: tuple[float, ...]

    @property
    def median(self) -> float:
        """The quantile at 0.5."""
        return self.quantiles[QUANTILE_LEVELS.index(0.5)]


@dataclass(frozen=True)
class Overall:
    """The whole test set in a few numbers.

    Attributes:
        n_samples: test samples.
        num_classes: classes, unseen ones included.
        seen_classes: classes with at least one test sample.
        accuracy: share of samples whose predicted label is right.
        interval: Wilson interval of ``accuracy``.
        balanced_accuracy: mean over seen classes of the class's accuracy.
        balanced_interval: bootstrap interval of ``balanced_accuracy``.
        top_k: k → share of samples whose label is among the k highest scores; without scores only k = 1.
        calibration_error: expected calibration error of the predicted label's probability over all samples.
        margin: mean output-level margin m_o over all samples (MR² Table 4, "Avg.").
    """

    n_samples: int
    num_classes: int
    seen_classes: int
    accuracy: float
    interval: Interval
    balanced_accuracy: float
    balanced_interval: Interval
    top_k: Mapping[int, float]
    calibration_error: float | None
    margin: float | None


@dataclass(frozen=True)
class Confusion:
    """One of the labels that a class's samples are mistaken for.

    Attributes:
        name: the predicted class.
        count: how many of the class's samples were predicted as it.
        rate: ``count`` divided by the class's support.
    """

    name: str
    count: int
    rate: float


@dataclass(frozen=True)
class ConfusionPair:
    """Two classes taken for each other; pairs are ranked by the lower Wilson bound of ``rate``.

    Attributes:
        first: the class of the pair that loses more to the other (ties: the lower class index).
        second: the other one.
        first_as_second: number of samples of ``first`` predicted as ``second``.
        second_as_first: number of samples of ``second`` predicted as ``first``.
        first_rate: ``first_as_second`` / support of ``first``; ``None`` if ``first`` is unseen.
        second_rate: ``second_as_first`` / support of ``second``; ``None`` if ``second`` is unseen.
        rate: both counts / both supports.
    """

    first: str
    second: str
    first_as_second: int
    second_as_first: int
    first_rate: float | None
    second_rate: float | None
    rate: float


@dataclass(frozen=True)
class Cause:
    """Something that the evidence says about why a class fails.

    Attributes:
        name: "few-training-samples", "large-spread", "overlap", "close-boundary", "wrong-labels", "over-fitted",
            "too-few-test-samples" or "not-enough-evidence".
        evidence: one plain sentence with the figures in it.
        figure: the number behind it (which one is said in ``evidence``), if there is one.
        reference: what ``figure`` is compared with, if anything.
        strength: 0 to 1, ranks the causes of a class; see :mod:`classgap.audit.diagnosis.causes` for the scale.
        other: the class that the cause names, for "overlap" and "close-boundary".
        methods: names of methods that address the cause; empty when more data or clean labels are what helps.
    """

    name: str
    evidence: str
    figure: float | None
    reference: float | None
    strength: float
    other: str | None
    methods: tuple[str, ...]


@dataclass(frozen=True)
class ClassResult:
    """Everything known about one class.

    Attributes:
        index: the class's number, which is its position in ``Audit.classes``.
        name: the class's name.
        status: "ok", or "unseen" if it has no test samples.
        support: number of test samples.
        accuracy: share of its samples that are predicted right (the same number as ``recall``); ``None`` if unseen.
        interval: Wilson interval of ``accuracy``.
        precision: share of the samples predicted as this class that belong to it; ``None`` if it is never predicted.
        recall: equals ``accuracy``; kept because readers look for it under this name.
        predicted: how many samples were predicted as this class.
        calibration_error: expected calibration error over the samples predicted as this class.
        group: its third: "easy", "medium" or "hard"; ``None`` if unseen.
        groups: every group it belongs to (third, head/torso/tail, given groupings).
        train_count: training samples, if given.
        train_accuracy: accuracy on the training set, if training predictions were given.
        margin: mean output-level margin m_o = P(y) - max other P (MR² Table 4).
        logit_margin: distribution of z_y - max other z over its samples (ELM Fig. 3 and 6).
        mean_norm: ‖μ̂_k‖, the length of the mean feature (MR² Table 6).
        spread: ‖ŝ_k‖, the root of the mean squared distance to the mean feature (MR² Sec. 3, Table 6).
        ratio: ``spread`` / ``mean_norm`` (MR² Discussion 3).
        gamma: γ_k with mean 1 that MR² would assign (MR² Eq. 1).
        weight_norm: ‖w_k‖ of the head (MR² Fig. 3).
        dispersion: largest distance of two of its samples (LMDL Def. 4.1).
        farthest: mean over its samples of the distance to the farthest sample of the class, divided by the largest
            feature norm of all samples (ELM Fig. 4).
        class_margin: smallest distance of one of its samples to its nearest decision boundary (LMDL Def. 4.2).
        centroid_margin: signed distance of its mean feature to the nearest boundary (LMDL Eq. 4.6), negative when
            the mean itself is on another class's side.
        nearest_class: the class whose mean feature is nearest.
        nearest_distance: distance to that mean.
        confusions: what it is mistaken for most, most frequent first.
        label_issues: test samples of it whose label confident learning doubts, if that was asked.
        diagnosis: causes, strongest first; empty for a class that does not fail.
    """

    index: int
    name: str
    status: str
    support: int
    accuracy: float | None
    interval: Interval | None
    precision: float | None
    recall: float | None
    predicted: int
    calibration_error: float | None
    group: str | None
    groups: tuple[str, ...]
    train_count: float | None
    train_accuracy: float | None
    margin: float | None
    logit_margin: Distribution | None
    mean_norm: float | None
    spread: float | None
    spread_to_norm: float | None
    gamma: float | None
    weight_norm: float | None
    dispersion: float | None
    max_intra_distance: float | None
    class_margin: float | None
    centroid_margin: float | None
    nearest_class: str | None
    nearest_distance: float | None
    confusions: tuple[Confusion, ...]
    label_issues: int | None
    diagnosis: tuple[Cause, ...]

    @property
    def top_confusion(self) -> Confusion | None:
        """What it is mistaken for most, if it ever is."""
        return self.confusions[0] if self.confusions else None


@dataclass(frozen=True)
class GroupResult:
    """Several classes together.

    Attributes:
        name: "easy", "medium", "hard", "head", "torso", "tail", or a name from a given grouping.
        kind: "thirds", "frequency" or "given".
        accuracy: mean over its seen classes of the class's accuracy; ``None`` if all are unseen.
        interval: bootstrap interval of ``accuracy``.
        min: lowest accuracy of a class in it.
        max: highest accuracy of a class in it.
        support: test samples in it.
        members: names of all its classes, unseen ones included; thirds are in order of their ranking.
        unseen: how many of ``members`` are unseen.
        margin: mean over its seen classes of the class's mean output-level margin m_o (MR² Table 4).
        spread: mean over its seen classes of ‖ŝ_k‖ (MR² Fig. 7).
    """

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
    """How unevenly the classes do; 0 is even for all but ``worst_class`` and ``worst_tenth``, which are accuracies.

    Attributes:
        easy_hard: accuracy of the easy third minus that of the hard third; ``None`` with fewer than two classes.
        best_worst: best class minus worst class.
        worst_class: accuracy of the worst class.
        worst_tenth: mean accuracy of the worst 10 % of the classes (rounded up to whole classes).
        std: standard deviation over classes (by the number of classes).
        gini: Gini coefficient of the accuracies over classes; 0 if all are 0.
        intervals: measure → interval.
        by_chance: measure → its mean if every class truly had the balanced accuracy, with these supports. A gap
            near this value is what sampling alone produces.
        worst_name: the worst class's name.
        best_name: the best class's name.
    """

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
    """Spearman's rank correlation over classes."""

    rho: float
    p_value: float
    classes: int


@dataclass(frozen=True)
class FeatureSummary:
    """Features and head as a whole.

    Attributes:
        mean_ratio: mean over classes of ‖ŝ_k‖ / ‖μ̂_k‖: 0 is complete variability collapse (MR² Table 6).
        within_between: mean ‖ŝ_k‖² / mean ‖μ̂_k - their mean‖²: within-class to between-class variance.
        centroid_agreement: share of samples whose nearest class mean is the model's predicted label.
        spread_accuracy: rank correlation of ‖ŝ_k‖ and accuracy over classes (MR² Fig. 1b: negative).
        weight_norm_accuracy: rank correlation of ‖w_k‖ and accuracy (MR² Fig. 3: none).
        weight_norm_variation: standard deviation / mean of ‖w_k‖: 0 is equal norms.
        mean_norm_variation: standard deviation / mean of ‖μ̂_k - their mean‖: 0 is equal norms.
        angle: m_c in degrees, the smallest angle between two rows of the head (MR² Table 4, "C.-level").
        angle_pair: the two classes whose rows they are.
        mean_cosine: mean cosine over pairs of rows; -1/(K-1) for an equiangular tight frame.
        std_cosine: standard deviation of it; 0 for an equiangular tight frame.
    """

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
    """A 2-D picture of the features of chosen classes (t-SNE); the four tuples run over points.

    Attributes:
        classes: the chosen classes.
        x: first coordinate, scaled to 0 … 1.
        y: second coordinate, scaled to 0 … 1.
        target: class index of each point.
        prediction: predicted class index of each point.
    """

    classes: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    target: tuple[int, ...]
    prediction: tuple[int, ...]
