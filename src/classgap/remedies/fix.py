"""``fix``: try remedies on fitting samples, choose one, and test it on samples that were not used for the choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from classgap.audit import Audit, AuditDiff, AuditSettings
from classgap.audit._types import Integers
from classgap.audit.diagnosis.counterfactuals import stratified_folds
from classgap.audit.io.predictions import Predictions
from classgap.remedies.adjustments import Context, adjustments
from classgap.remedies.evaluation import Measured, Ranking, average, class_accuracies, group_weights, measure, resample
from classgap.remedies.fixed_model import Fix
from classgap.remedies.modules import Part
from classgap.remedies.reading import FilePath, read_samples
from classgap.remedies.results import Excluded, FixResult, Proof, RemedyResult
from classgap.remedies.rule import Rule, is_imbalanced
from classgap.remedies.samples import Samples
from classgap.remedies.selection import (
    N_FOLDS,
    Limits,
    Option,
    best_excluded,
    best_strengths,
    choose,
    cross_fit,
    is_within,
    predict,
)
from classgap.remedies.sources import Source

FEW_SAMPLES = 10  # per class: the standard error of an accuracy of 90 % is 9 points


def fix(
    fit: FilePath | Predictions | Sequence[FilePath | Predictions],
    test: FilePath | Predictions | Sequence[FilePath | Predictions] | None = None,
    *,
    goal: str = "hard",
    max_easy_loss: float | None = None,
    max_overall_loss: float = 0.1,
    max_medium_loss: float | None = None,
    costs: Any = None,
    priors: Any = None,
    confidence_level: float = 0.95,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> FixResult:
    """Find a remedy for a trained classifier, and test it on samples that were not used for the choice.

    Remedies and strengths are chosen by cross-fitting on the fitting samples. Test samples are not used for the
    choice: every remedy is measured on them, and the chosen one is tested. Without test samples, the choice itself is
    cross-fitted.

    Args:
        fit: prediction file with scores, or several of different models on the same samples; or run directories with
            validation samples.
        test: prediction files of the same models for other samples.
        goal: "hard" (mean accuracy of the hard third of the classes), "worst" (of the lowest tenth), "balanced" (of
            all classes) or "cost".
        max_easy_loss: accuracy of the easy third that a remedy may cost, in percentage points. By default 0.3, or no
            limit if the training set is imbalanced: then frequent classes are easy at the expense of rare ones.
        max_overall_loss: accuracy over all samples that a remedy may cost, in percentage points.
        max_medium_loss: the same for the medium third. By default 1, or no limit if the training set is imbalanced.
        costs: (K, K), cost of predicting the class of the column for a sample of the class of the row; or a mapping
            from true to predicted classes to costs, with 1 for missing errors.
        priors: (K,), class frequencies at prediction time, or a mapping by class name; by default those of the samples,
            or equal ones if the training set is imbalanced.
        confidence_level: level of all intervals.
        seed: seed of the folds.
        progress: called with a line of text before each step that takes time.

    Raises:
        ValueError: if an argument is invalid.

    >>> rng, targets = np.random.default_rng(0), np.arange(1200) % 3
    >>> logits = 2 * np.eye(3)[targets] + rng.normal(size=(1200, 3)) + [1.5, 0, 0]  # favors class 0
    >>> parts = [Predictions.from_arrays(targets[part], logits=logits[part]) for part in (slice(600), slice(600, None))]
    >>> result = fix(*parts, max_easy_loss=50, max_medium_loss=50)
    >>> result.chosen, result.proof["hard"].change > 0.1
    ('class-offsets', True)
    """
    rule = Rule(goal, max_easy_loss, max_overall_loss, max_medium_loss, costs, priors)
    settings = AuditSettings(map="none", diagnose=False, confidence_level=confidence_level, seed=seed)
    samples = read_samples(fit, test, progress)
    context, limits = rule.resolve(samples.fit.class_names, samples.fit.train_counts_K)
    return fix_samples(samples, context, limits, settings)


def fix_samples(samples: Samples, context: Context, limits: Limits, settings: AuditSettings) -> FixResult:
    """Choose on the fitting samples, and prove on the test samples or by nested cross-fitting."""
    labels_N = samples.fit.targets_N
    options = cross_fit(samples.sources, labels_N, adjustments(context), context, seed=settings.seed)
    chosen = choose(options, context.goal, limits)
    rows = best_strengths(options, context.goal, limits)
    rows = [chosen if chosen is not None and row.name == chosen.name else row for row in rows]
    if samples.test is not None:
        found = _test_changes(samples, rows, chosen, context, settings)
        diff = None if chosen is None else _compare(samples, chosen, context, settings)
    else:
        found, diff = _nested_changes(samples, rows, context, limits, settings.seed), None
    ordered = sorted(rows, key=lambda option: (option is not chosen, -option.estimate[context.goal].change))
    return FixResult(
        model_name=samples.sources[0].name,
        goal=context.goal,
        limits=limits.by_measure,
        n_fit=len(samples.fit),
        n_test=0 if samples.test is None else len(samples.test),
        nested=samples.test is None,
        remedies=tuple(
            _remedy(option, found[option.name], chosen, limits, context.goal, settings.confidence_level)
            for option in ordered
        ),
        chosen=None if chosen is None else chosen.name,
        proof=None if chosen is None else _proof(found["chosen"], settings.confidence_level),
        excluded=_excluded(best_excluded(options, context.goal, limits), limits),
        confidence_level=settings.confidence_level,
        notices=(*samples.notices, *_imbalance_notice(context, limits), *_support_notice(labels_N)),
        diff=diff,
        fix=None if chosen is None else _build(chosen, samples, context),
    )


def _ranking(source: Source, labels_N: Integers, context: Context) -> Ranking:
    return Ranking.from_predictions(source.predictions_N, labels_N, context.num_classes)


def _test_changes(
    samples: Samples, rows: Sequence[Option], chosen: Option | None, context: Context, settings: AuditSettings
) -> dict[str, dict[str, Measured]]:
    """Measure each remedy on the test samples, with the tested classes ranked on the fitting samples.

    Intervals come from the same resamples as those of the comparison.
    """
    assert samples.test is not None
    labels_N, test_labels_N = samples.fit.targets_N, samples.test.targets_N
    before_N, test_before_N = samples.sources[0].predictions_N, samples.test.predictions_N
    ranking = _ranking(samples.sources[0], labels_N, context)
    tested = Ranking.from_predictions(before_N, labels_N, context.num_classes, among=test_labels_N)
    weights = group_weights(test_labels_N, tested, context.num_classes, context.reported_priors_K)
    found = {}
    for option in rows:
        after_N = _predict_test(option, labels_N, ranking)
        measured = measure(test_before_N, after_N, test_labels_N, weights, context.costs_KK)
        found[option.name] = measured | resample(
            measured, test_before_N, after_N, test_labels_N, weights, settings.confidence_level, settings.seed
        )
        if option is chosen:
            found["chosen"] = found[option.name]
    return found


def _predict_test(option: Option, labels_N: Integers, ranking: Ranking) -> Integers:
    assert option.source.test_logits_NK is not None
    return predict(option.fit(labels_N, ranking), option.source.test_logits_NK)


def _nested_changes(
    samples: Samples, rows: Sequence[Option], context: Context, limits: Limits, seed: int
) -> dict[str, dict[str, Measured]]:
    """Measure each remedy, and the choice itself, on outer folds; strengths and choice are made inside the others."""
    labels_N, baseline = samples.fit.targets_N, samples.sources[0]
    folds_N = stratified_folds(labels_N, np.random.default_rng([seed, 1]).random(len(labels_N)), N_FOLDS)
    parts: dict[str, list[dict[str, Measured]]] = {name: [] for name in (*(option.name for option in rows), "chosen")}
    for fold in range(N_FOLDS):
        held, rest = np.flatnonzero(folds_N == fold), np.flatnonzero(folds_N != fold)
        if not len(held) or not len(rest):
            continue
        sources = [source.take(rest) for source in samples.sources]
        options = cross_fit(sources, labels_N[rest], adjustments(context), context, n_repeats=1, seed=seed + fold)
        ranking = _ranking(sources[0], labels_N[rest], context)
        weights = group_weights(labels_N[held], ranking, context.num_classes, context.reported_priors_K)
        inside = {option.name: option for option in best_strengths(options, context.goal, limits)}
        choice = choose(options, context.goal, limits)
        for name in parts:
            option = choice if name == "chosen" else inside.get(name)
            after_N = baseline.predictions_N[held]
            if option is not None:
                whole = next(source for source in samples.sources if source.name == option.source.name)
                after_N = predict(option.fit(labels_N[rest], ranking), whole.logits_NK[torch.from_numpy(held)])
            parts[name].append(
                measure(baseline.predictions_N[held], after_N, labels_N[held], weights, context.costs_KK)
            )
    return {name: average(found) for name, found in parts.items()}


def _compare(samples: Samples, chosen: Option, context: Context, settings: AuditSettings) -> AuditDiff:
    """Compare the model before and after on the test samples, as ``classgap compare`` does."""
    assert samples.test is not None
    labels_N = samples.fit.targets_N
    after_N = _predict_test(chosen, labels_N, _ranking(samples.sources[0], labels_N, context))
    accuracy_K = class_accuracies(samples.fit.predictions_N == labels_N, labels_N, context.num_classes)
    audits = [
        Audit.from_checked(
            Predictions(samples.test.targets_N, predictions_N, samples.test.class_names, name=name),
            rank_by=accuracy_K.tolist(),
            settings=settings,
        )
        for name, predictions_N in ((samples.sources[0].name, samples.test.predictions_N), (chosen.name, after_N))
    ]
    return AuditDiff.from_audits(*audits, seed=settings.seed)


def _proof(found: Mapping[str, Measured], level: float) -> dict[str, Proof]:
    return {
        name: Proof(each.before, each.after, each.change, each.interval(level))
        for name, each in found.items()
        if each.present
    }


def _imbalance_notice(context: Context, limits: Limits) -> tuple[str, ...]:
    """Explain the rule for imbalanced training sets."""
    if context.goal == "cost" or not is_imbalanced(context.train_counts_K):
        return ()
    effects = []
    free = [name for name in ("easy", "medium") if getattr(limits, name) >= 1]
    if free:
        thirds = " and ".join(free)
        effects.append(f"losses of the {thirds} third{'s' if len(free) > 1 else ''} have no limit")
    if context.reported_priors_K is None and limits.overall < 1:
        effects.append("the limit on overall losses weights all classes equally")
    if not effects:
        return ()
    return (
        "The training set is imbalanced, so frequent classes are easy at the expense of rare ones: "
        f"{', and '.join(effects)}.",
    )


def _support_notice(labels_N: Integers) -> tuple[str, ...]:
    """Warn of rankings that are mostly luck."""
    support_K = np.bincount(labels_N)
    median = float(np.median(support_K[support_K > 0]))
    if median >= FEW_SAMPLES:
        return ()
    return (f"The median class has {median:g} fitting samples: too few to know which classes are hard. Add samples.",)


def _remedy(
    option: Option, found: Mapping[str, Measured], chosen: Option | None, limits: Limits, goal: str, level: float
) -> RemedyResult:
    return RemedyResult(
        name=option.name,
        settings=dict(option.settings),
        change={name: each.change for name, each in found.items()},
        interval={name: each.interval(level) for name, each in found.items()},
        estimate={name: each.change for name, each in option.estimate.items()},
        within_limits=is_within(option, goal, limits),
        passes=option.source.passes,
        chosen=chosen is not None and option.name == chosen.name,
    )


def _excluded(option: Option | None, limits: Limits) -> Excluded | None:
    if option is None:
        return None
    losses = {name: -option.estimate[name].change for name in limits.by_measure}
    needed = {
        name: math.ceil(1000 * loss + 1e-6) / 1000 for name, loss in losses.items() if loss > getattr(limits, name)
    }
    return Excluded(
        option.name, dict(option.settings), {name: each.change for name, each in option.estimate.items()}, needed
    )


def _build(chosen: Option, samples: Samples, context: Context) -> Fix:
    labels_N = samples.fit.targets_N
    fitted = chosen.fit(labels_N, _ranking(samples.sources[0], labels_N, context))
    parts = [*_flatten(chosen.source.module), *_flatten(fitted)]
    return Fix(
        chosen.name,
        chosen.source.inputs,
        parts,
        samples.fit.class_names,
        members=chosen.source.members,
        details={"settings": dict(chosen.settings), **dict(chosen.source.details)},
    )


def _flatten(module: nn.Module) -> list[Part]:
    if isinstance(module, nn.Sequential):
        return [part for each in module for part in _flatten(each)]
    return [module] if isinstance(module, Part) else []
