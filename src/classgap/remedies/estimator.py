"""``ClassOffsetClassifierCV``: class offsets for any scikit-learn classifier, tuned by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state, column_or_1d, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted
from torch import nn

from classgap.audit._types import Floats, Integers
from classgap.audit.diagnosis.counterfactuals import TopScores, fit_temperature
from classgap.remedies.adjustments import Adjustment, Calibrated, Candidate, Context, adjustments
from classgap.remedies.checks import MIN_SAMPLES
from classgap.remedies.class_values import check_costs, check_priors
from classgap.remedies.evaluation import Ranking
from classgap.remedies.modules import ClassAffine, ExpectedCost
from classgap.remedies.out_of_fold import make_splits, out_of_fold_scores, response_scores
from classgap.remedies.rule import GOALS, check_points
from classgap.remedies.selection import Limits, Option, choose, cross_fit
from classgap.remedies.sources import Source


def _base_has_probabilities(self: ClassOffsetClassifierCV) -> bool:
    return hasattr(getattr(self, "estimator_", self.estimator), "predict_proba")


class ClassOffsetClassifierCV(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier with an offset added to the score of each class, tuned by cross-validation.

    The multiclass counterpart of :class:`sklearn.model_selection.TunedThresholdClassifierCV`. Scores z are
    log-probabilities, or decision values if the estimator has no ``predict_proba``. The adjusted scores are
    z / ``temperature_`` + ``offsets_``. Offsets and their strength are chosen on out-of-fold scores, as
    :func:`classgap.fix` does: the candidate within the limits with the best cross-fitted goal, if it gains more than
    its standard error. Otherwise the offsets are 0 and predictions are those of the estimator.

    Args:
        estimator: classifier with ``predict_proba`` or ``decision_function``.
        goal: "hard" (mean accuracy of the hard third of the classes), "worst" (of the lowest tenth), "balanced" (of all
            classes) or "cost". ``costs`` imply "cost".
        max_easy_loss: accuracy of the easy third that offsets may cost, in percentage points. 100 is no limit, which
            imbalanced training sets often need: frequent classes are easy at the expense of rare ones.
        max_overall_loss: accuracy over all samples that offsets may cost, in percentage points.
        max_medium_loss: accuracy of the medium third that offsets may cost, in percentage points.
        costs: (K, K), cost of predicting the class of the column for a sample of the class of the row, in the order of
            ``classes_``. If given, predictions are the classes of lowest expected cost, Σ_j p_j C[j, k], and the
            temperature of p is chosen for the lowest cost.
        priors: (K,), class frequencies at prediction time. If given, Bayes' rule replaces the frequencies of ``y`` by
            them, p_k · priors_k / frequency_k, before offsets are chosen.
        cv: number of stratified folds (5 by default), fraction of samples for a single split, splitter, iterable of
            splits, or "prefit" for a fitted estimator, which is then used as it is. With "prefit", fit on other samples
            than those the estimator was trained on.
        n_jobs: number of parallel fits.
        random_state: seed of the folds that choose the offsets, and of the split if ``cv`` is a fraction.

    Attributes:
        estimator_: the classifier, fitted to all samples.
        classes_: class labels.
        offsets_: offset of each class, (K,).
        temperature_: temperature that divides the scores.
        best_score_: cross-fitted value of the goal with the chosen offsets; for "cost", minus the mean cost.
        cv_results_: "params" of every candidate with its "mean_test_score", "mean_test_change" against the estimator
            without adjustment, "standard_error" of the change, "change_easy", "change_medium", "change_overall" and
            "within_limits". The first candidate is no adjustment, except with costs.
        n_features_in_: number of features, if the estimator has it.
        feature_names_in_: names of the features, if the estimator has them.

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(
    ...     2000, n_classes=3, n_informative=5, weights=[0.8, 0.15, 0.05], class_sep=0.7, random_state=0
    ... )
    >>> limits = {"max_easy_loss": 100, "max_medium_loss": 100, "max_overall_loss": 10}
    >>> model = ClassOffsetClassifierCV(LogisticRegression(), goal="balanced", **limits)
    >>> model = model.set_params(random_state=0).fit(X[:1000], y[:1000])
    >>> from sklearn.metrics import balanced_accuracy_score
    >>> before, after = (each.predict(X[1000:]) for each in (model.estimator_, model))
    >>> balanced_accuracy_score(y[1000:], after) > balanced_accuracy_score(y[1000:], before) + 0.1
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        goal: str = "hard",
        max_easy_loss: float = 0.3,
        max_overall_loss: float = 0.1,
        max_medium_loss: float = 1.0,
        costs: Any = None,
        priors: Any = None,
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.goal = goal
        self.max_easy_loss = max_easy_loss
        self.max_overall_loss = max_overall_loss
        self.max_medium_loss = max_medium_loss
        self.costs = costs
        self.priors = priors
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit the estimator, and choose offsets by its out-of-fold scores.

        Args:
            X: (N, features), samples as the estimator accepts them.
            y: (N,), labels.
            params: metadata such as ``sample_weight``, routed to ``fit`` of the estimator and ``split`` of ``cv``.
                Needs ``sklearn.set_config(enable_metadata_routing=True)``.

        Raises:
            ValueError: if an argument is invalid.
        """
        limits = self._check_arguments(params)
        X, y = _check_samples(X, y, type(self).__name__)
        prefit = isinstance(self.cv, str) and self.cv == "prefit"
        if prefit:
            try:
                check_is_fitted(self.estimator, "classes_")
            except NotFittedError as error:
                raise NotFittedError("cv='prefit' needs a fitted estimator: call its fit first.") from error
        classes = np.asarray(self.estimator.classes_) if prefit else np.unique(y)
        labels_N = _encode(y, classes)
        names = [str(each) for each in classes]
        costs_KK, priors_K = check_costs(self.costs, names), check_priors(self.priors, names)
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        routed = process_routing(self, "fit", **params)
        if prefit:
            estimator = self.estimator
            scores_NK = response_scores(estimator, X, classes)
        else:
            splits = make_splits(self.cv, X, y, seed, routed.splitter.split)
            scores_NK, rows = out_of_fold_scores(
                self.estimator, X, y, classes, splits, fit_params=routed.estimator.fit, n_jobs=self.n_jobs
            )
            labels_N = labels_N[rows]
            estimator = clone(self.estimator).fit(X, y, **routed.estimator.fit)
        _check_support(labels_N, names)
        context = Context(
            len(classes),
            "cost" if costs_KK is not None else self.goal,
            None if priors_K is not None else np.bincount(labels_N, minlength=len(classes)).astype(float),
            priors_K,
            costs_KK,
        )
        self._choose(scores_NK, labels_N, context, limits, seed, calibrate=not hasattr(estimator, "predict_proba"))
        self.estimator_, self._costs = estimator, costs_KK
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
        return self

    def _choose(
        self, scores_NK: Floats, labels_N: Integers, context: Context, limits: Limits, seed: int, *, calibrate: bool
    ) -> None:
        """Set the temperature, the offsets and their estimates."""
        scale, shift_K = 1.0, np.zeros(context.num_classes)
        if calibrate:  # decision values are no logits: Bayes' rule and costs need probabilities
            scale = fit_temperature(TopScores.from_logits(torch.from_numpy(scores_NK), labels_N))
        if context.priors_K is not None:
            support_K = np.bincount(labels_N, minlength=context.num_classes)
            shift_K = np.log(context.priors_K) - np.log(np.maximum(support_K, 1) / support_K.sum())
        source = Source("estimator", torch.from_numpy(scale * scores_NK + shift_K), is_baseline=True)
        options = cross_fit([source], labels_N, _families(context), context, seed=seed)
        if context.goal == "cost":
            chosen: Option | None = max(options, key=lambda option: option.estimate["cost"].change)
        else:
            chosen = choose(options, context.goal, limits)
        if chosen is not None:
            ranking = Ranking.from_predictions(source.predictions_N, labels_N, context.num_classes)
            affine = _class_affine(chosen.fit(labels_N, ranking))
            factor = float(affine.scale[0])  # the same for all classes
            scale, shift_K = scale * factor, factor * shift_K + affine.offset.double().numpy()
        self.temperature_, self.offsets_ = 1 / scale, shift_K
        self._unchanged = chosen is None and context.priors_K is None
        self.best_score_ = (
            options[0].estimate[context.goal].before if chosen is None else chosen.estimate[context.goal].after
        )
        self.cv_results_ = _table(options, context.goal, limits)

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels."""
        return self.estimator_.classes_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the highest adjusted score, or with the lowest expected cost."""
        check_is_fitted(self, "estimator_")
        if self._unchanged:
            return self.estimator_.predict(X)
        return self.classes_[self._scores(X).argmax(axis=1)]

    @available_if(_base_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the softmax of the adjusted scores, (N, K)."""
        return np.exp(self.predict_log_proba(X))

    @available_if(_base_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of :meth:`predict_proba`."""
        check_is_fitted(self, "estimator_")
        return _log_softmax(self._adjusted(X))

    def decision_function(self, X: Any) -> Floats:
        """Return the adjusted scores, or minus the expected costs, (N, K); with two classes their difference, (N,)."""
        check_is_fitted(self, "estimator_")
        scores_NK = self._scores(X)
        return scores_NK[:, 1] - scores_NK[:, 0] if scores_NK.shape[1] == 2 else scores_NK

    def get_metadata_routing(self) -> Any:
        """Return the routing of metadata to the estimator and the splitter."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)
        return router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags, base = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse, tags.input_tags.allow_nan = base.input_tags.sparse, base.input_tags.allow_nan
        if base.classifier_tags is not None:
            tags.classifier_tags.multi_class = base.classifier_tags.multi_class
        return tags

    def _check_arguments(self, params: Mapping[str, Any]) -> Limits:
        if params and not get_config().get("enable_metadata_routing", False):
            raise ValueError(
                f"fit got {', '.join(sorted(params))}, which needs metadata routing: call "
                "sklearn.set_config(enable_metadata_routing=True) and set_fit_request of the estimator."
            )
        if not any(hasattr(self.estimator, name) for name in ("predict_proba", "decision_function")):
            raise ValueError(
                f"estimator must have predict_proba or decision_function, got {type(self.estimator).__name__}."
            )
        if self.goal not in GOALS:
            raise ValueError(f"goal must be one of {', '.join(GOALS)}; got {self.goal!r}.")
        if self.goal == "cost" and self.costs is None:
            raise ValueError("goal='cost' needs costs: pass a (K, K) array, rows are true classes.")
        if isinstance(self.cv, str) and self.cv != "prefit":
            raise ValueError(f"cv must be a number, a splitter, an iterable of splits or 'prefit', got {self.cv!r}.")
        easy = check_points("max_easy_loss", self.max_easy_loss)
        medium = check_points("max_medium_loss", self.max_medium_loss)
        return Limits(easy, check_points("max_overall_loss", self.max_overall_loss), medium)

    def _adjusted(self, X: Any) -> Floats:
        return response_scores(self.estimator_, X, self.classes_) / self.temperature_ + self.offsets_

    def _scores(self, X: Any) -> Floats:
        adjusted_NK = self._adjusted(X)
        if self._costs is None:
            return adjusted_NK
        # Ties are common with votes of trees; rounding keeps them ties, so that the first class wins as elsewhere.
        step = (float(self._costs.max()) or 1.0) * 2.0**-40
        return -np.round(np.exp(_log_softmax(adjusted_NK)) @ self._costs / step) * step


def _families(context: Context) -> list[Adjustment]:
    """Adjustments with one temperature for all classes, which ``offsets_`` and ``temperature_`` can hold."""
    if context.costs_KK is None:
        return [each for each in adjustments(context) if each.name in ("prior-correction", "class-offsets")]
    summary = "predict the class with the lowest expected cost"
    return [Adjustment("expected-cost", lambda data, ranking: _calibrations(context, data), summary)]


def _calibrations(context: Context, data: Calibrated) -> list[Candidate]:
    """Expected costs with probabilities as given and with a temperature; equal costs give the same predictions."""
    assert context.costs_KK is not None
    cost = ExpectedCost(torch.from_numpy(context.costs_KK))
    one_K = torch.ones(context.num_classes, dtype=torch.float64)
    return [
        Candidate({"calibrated": calibrated}, nn.Sequential(ClassAffine(scale * one_K, 0 * one_K), cost))
        for calibrated, scale in ((0.0, 1.0), (1.0, data.scale))
    ]


def _class_affine(module: nn.Module) -> ClassAffine:
    return next(each for each in module.modules() if isinstance(each, ClassAffine))


def _check_samples(X: Any, y: Any, name: str) -> tuple[Any, NDArray[Any]]:
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    X, y = indexable(X, y)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y must hold one label per sample, binary or multiclass; got {kind}.")
    return X, column_or_1d(y, warn=True)


def _encode(y: NDArray[Any], classes: NDArray[Any]) -> Integers:
    if len(classes) < 2:
        raise ValueError(f"y has {len(classes)} class, {classes.tolist()}; at least 2 classes are needed.")
    strange = np.setdiff1d(y, classes)
    if len(strange):
        raise ValueError(f"y has labels that the fitted estimator has not seen, such as {strange[0]!r}.")
    return np.searchsorted(classes, y).astype(np.int64)


def _check_support(labels_N: Integers, names: list[str]) -> None:
    support_K = np.bincount(labels_N, minlength=len(names))
    few = np.flatnonzero((support_K > 0) & (support_K < MIN_SAMPLES))
    if len(few):
        raise ValueError(
            f"class {names[few[0]]!r} has 1 sample with out-of-fold scores; offsets need at least {MIN_SAMPLES} per "
            "class, to fit on some and evaluate on others. Collect more, or remove the class."
        )


def _table(options: list[Option], goal: str, limits: Limits) -> dict[str, Any]:
    """Candidates and their estimates as columns."""
    rows: list[dict[str, Any]] = [
        {
            "params": {"adjustment": option.name, **option.settings},
            "mean_test_score": option.estimate[goal].after,
            "mean_test_change": option.estimate[goal].change,
            "standard_error": option.estimate[goal].error,
            "change_easy": option.estimate["easy"].change,
            "change_medium": option.estimate["medium"].change,
            "change_overall": option.estimate["overall"].change,
            "within_limits": goal == "cost" or limits.excess(option.estimate) == 0,
        }
        for option in options
    ]
    if goal != "cost":
        score = options[0].estimate[goal].before
        same = dict.fromkeys(rows[0], 0.0) | {"params": {"adjustment": None}, "mean_test_score": score}
        rows.insert(0, same | {"within_limits": True})
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return {name: column if name == "params" else np.array(column) for name, column in columns.items()}


def _log_softmax(scores_NK: Floats) -> Floats:
    shifted_NK = scores_NK - scores_NK.max(axis=1, keepdims=True)
    return shifted_NK - np.log(np.exp(shifted_NK).sum(axis=1, keepdims=True))
